"""The one HTTP client to a Supabase project: our deadlines, and a look at every answer before anybody parses it.

Decisions
    Our deadline instead of a library's 120 s, no HTTP/2, no redirects (a token must not follow one to another host).
    Bodies are unpacked here, piece by piece and never beyond what an answer may hold: httpx unpacks a whole piece at
    once, and packings inside each other (gzip, gzip) would turn one of 64 KiB into gigabytes.
    What is not JSON of an API is no answer: a captive portal's page, a 5xx or a 429 is never taken for an
    acknowledgement. The two halves that use it (`supabase.py`, `supabase_logins.py`) turn their libraries' errors into
    ours.
"""

import asyncio
import json
import logging
import re
import socket
import ssl
import zlib
from collections.abc import Awaitable
from contextlib import suppress
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Final, TypeVar
from urllib.request import getproxies

import httpx
from socksio import SOCKSError

from sync.cloud.port import QUOTA_CODE
from sync.cloud.supabase.proxy import proxy_for
from sync.errors import (
    CloudUnavailable,
    CloudUnreachable,
    Forbidden,
    LoginRequired,
    QuotaExceeded,
    RateLimited,
    Rejected,
)

T = TypeVar("T")

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024  # the server answers 1 MiB of events at most; more is not our server
CONNECT_ERRORS: Final = (httpx.ConnectError, httpx.ConnectTimeout)  # nothing was sent
GZIP_WBITS: Final = 16 + zlib.MAX_WBITS  # zlib's way to ask for gzip's header and check
# What a client cannot be built with: a proxy of an unknown kind or without its package, an address that is none, a file
# of certificates that is not there or not one, a file for session keys that cannot be written.
CLIENT_SETUP_ERRORS: Final = (httpx.InvalidURL, ValueError, ImportError, OSError)
MACHINE_SETTINGS_HINT: Final = (
    "Check ALL_PROXY, HTTPS_PROXY, SSL_CERT_FILE and SSLKEYLOGFILE where this program is started, and the system's"
    " proxy; everything is kept on this device meanwhile."
)
RETRY_AFTER_TEXT: Final = re.compile(
    rb"request this after (\d{1,6}) seconds"
)  # GoTrue names the wait in its sentence alone

logging.getLogger("httpx").setLevel(logging.WARNING)  # its INFO lines hold addresses


@cache
def tls_context() -> ssl.SSLContext:
    """One trust store, for requests and for the channel: reading it takes 25 ms and a megabyte."""
    return httpx.create_ssl_context()


def unreachable_error(error: BaseException, default_message: str) -> CloudUnreachable:
    """`error` as ours. A name that no name service knows is most often a typing error, so it is named as the cause."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, socket.gaierror):
        cause = cause.__cause__ or cause.__context__
    return CloudUnreachable(default_message if cause is None else "no connection: the name of the server is not known")


class _RetryingTransport(httpx.AsyncBaseTransport):
    """Two kept connections: one request at a time, and room for a login beside it.

    A kept connection may have died in an outage without a sign. A call of the API that meets one is sent once more on a
    new connection: all of ours may come twice (sql/README.md). A login is not: it may use up a token.
    """

    def __init__(self, tls: ssl.SSLContext, proxy: str | None) -> None:
        kept, none = httpx.Limits(max_connections=2), httpx.Limits(max_connections=2, max_keepalive_connections=0)
        self._keepalive, self._fresh = (
            httpx.AsyncHTTPTransport(verify=tls, http2=False, limits=limits, proxy=proxy, trust_env=False)
            for limits in (kept, none)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request."""
        connected = False

        async def trace(name: str, _: object) -> None:
            nonlocal connected
            connected = connected or name.startswith("connection.connect_")

        request.extensions = {**request.extensions, "trace": trace}
        try:
            return await self._keepalive.handle_async_request(request)
        except (httpx.RemoteProtocolError, httpx.ReadError, httpx.WriteError):
            if connected or "/rest/v1/" not in request.url.path:
                raise
            return await self._fresh.handle_async_request(request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._keepalive.aclose()
        await self._fresh.aclose()


class HttpClient:
    """To the server of `url`. `timeout`: seconds that one call may take as a whole.

    Raises CloudUnavailable where the machine's proxy or certificates cannot be used: somebody may mend them meanwhile.
    """

    def __init__(self, url: str, timeout: float) -> None:
        self._timeout = timeout
        try:
            self.tls = tls_context()
            self.client = httpx.AsyncClient(
                transport=_RetryingTransport(self.tls, proxy_for(url, getproxies())),
                timeout=timeout,
                headers={"Accept-Encoding": "gzip"},
                follow_redirects=False,
                event_hooks={"response": [_check_response]},
                trust_env=False,
            )
        except CLIENT_SETUP_ERRORS as error:
            told = f"the proxy or certificate settings of this machine cannot be used ({type(error).__name__})"
            raise CloudUnavailable(told, hint=MACHINE_SETTINGS_HINT) from error

    async def await_reply(self, call: Awaitable[T]) -> T:
        """Within the deadline as a whole (the client's own counts each read); what breaks on the way as our error."""
        try:
            async with asyncio.timeout(self._timeout):
                return await call
        except TimeoutError as error:
            raise CloudUnavailable(f"no answer within {self._timeout:g} s") from error
        except CONNECT_ERRORS as error:
            raise unreachable_error(error, f"no connection ({type(error).__name__})") from error
        except (httpx.HTTPError, httpx.InvalidURL, SOCKSError, json.JSONDecodeError, RecursionError) as error:
            raise CloudUnavailable(f"no usable answer ({type(error).__name__})") from error
        except (
            ValueError,
            OverflowError,
        ) as error:  # pydantic's, or of the library's sums: no body of the API's
            raise CloudUnavailable("the answer is not one of Supabase") from error

    async def close(self) -> None:
        await self.client.aclose()


async def can_connect(url: str, timeout: float) -> bool:
    """Whether a connection to the server of `url` can be made within so many seconds; nothing is sent over it."""
    address = httpx.URL(url)
    port = address.port or (443 if address.scheme == "https" else 80)
    try:
        async with asyncio.timeout(timeout):
            _, writer = await asyncio.open_connection(address.host, port)
    except (OSError, TimeoutError):
        return False
    writer.close()
    return True


async def _check_response(response: httpx.Response) -> None:
    """Look at an answer before anybody reads it: what is not JSON of an API is no answer."""
    status = response.status_code
    if response.is_redirect:
        raise CloudUnavailable("the server sent us elsewhere; a captive portal or a wrong address")
    if status == httpx.codes.TOO_MANY_REQUESTS:
        await _read_bounded(response)
        _raise_if_quota(response)
        raise RateLimited("the server asks for fewer requests", retry_after=_retry_after(response))
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise CloudUnavailable(f"the server answered {status}", retry_after=_retry_after(response))
    if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
        raise Rejected("the request is too large for the server", code="413")
    refused = status >= httpx.codes.BAD_REQUEST
    empty = status == httpx.codes.NO_CONTENT or (refused and response.headers.get("content-length") == "0")
    if not empty and "json" not in response.headers.get("content-type", ""):
        raise CloudUnavailable("the answer is not JSON; a captive portal or a wrong address")
    await _read_bounded(response)
    if status == httpx.codes.UNAUTHORIZED:
        _raise_if_unauthorized(response)


def _raise_if_quota(response: httpx.Response) -> None:
    """Raise what a limit of the account means (sql/README.md); an erasure beyond it does not hold up anything else."""
    with suppress(ValueError, RecursionError):
        said = json.loads(response.content)
        told = json.loads(said["details"]) if isinstance(said, dict) and isinstance(said.get("details"), str) else None
        if not isinstance(told, dict) or told.get("kind") != "quota":
            return
        message = f"the account has reached a limit of the server ({str(told.get('field'))[:32]})"
        if told.get("field") == "erasures_a_day":
            raise Rejected(
                message, code=QUOTA_CODE, hint="It is sent again by itself; an administrator may raise the limit."
            )
        raise QuotaExceeded(message)


def _raise_if_unauthorized(response: httpx.Response) -> None:
    """401 has two causes, which the libraries' errors do not tell apart.

    The gateway does not know the key, or the API took us for nobody (whatever its code says, 42501 included).
    """
    with suppress(ValueError):
        said = json.loads(response.content)
        if isinstance(said, dict) and not any(said.get(name) for name in ("code", "error_code", "error")):
            hint = "Check XIAOBAI_SUPABASE_KEY and XIAOBAI_SUPABASE_URL: they belong together."
            raise Forbidden("the project does not know the publishable key", hint=hint)
    if "/rest/v1/" in response.request.url.path:
        raise LoginRequired("the server does not accept the session's token")


async def _read_bounded(response: httpx.Response) -> None:
    """Read the body here, stopping where no answer of ours would go on; what is unpacked counts."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in {"", "identity", "gzip"}:
        raise CloudUnavailable("the answer is packed in a way that nobody asked for")
    unpacking = zlib.decompressobj(GZIP_WBITS) if coding == "gzip" else None
    body = bytearray()
    received = 0
    try:
        async for part in response.aiter_raw():
            received += len(part)
            body += part if unpacking is None else unpacking.decompress(part, MAX_ANSWER_BYTES + 1 - len(body))
            if max(len(body), received) > MAX_ANSWER_BYTES:
                raise CloudUnavailable("the answer is larger than any of ours")
    except zlib.error as error:
        raise CloudUnavailable("the answer cannot be unpacked") from error
    if unpacking is not None and received and not unpacking.eof:
        raise CloudUnavailable("the answer ends in the middle")
    if not body and response.is_success:
        body += b"null"  # PostgREST's client reads no body as [], which would be a list of no devices
    response._content = bytes(body)  # noqa: SLF001 - httpx has no public way to keep a body that was streamed


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds of a Retry-After header in either of its two forms (RFC 9110 §10.2.3), else of GoTrue's sentence."""
    value = response.headers.get("retry-after", "")
    if value.isascii() and value.isdigit():
        return float(value)
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS and (named := RETRY_AFTER_TEXT.search(response.content)):
        return float(named.group(1))
    with suppress(ValueError, TypeError):
        served = parsedate_to_datetime(response.headers.get("date", ""))
        return max(0.0, (parsedate_to_datetime(value) - served).total_seconds())
    return None
