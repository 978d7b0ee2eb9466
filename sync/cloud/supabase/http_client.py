"""The HTTP client of a Supabase project: one deadline a call, bounded answers, and a check before anybody parses them.

There is no HTTP/2, and no redirect, which would take the token to another host. Bodies are decompressed here, piece by
piece: httpx decompresses nested gzip without a bound. A 5xx, a 429 or anything but JSON (a captive portal's page) is an
error and never an acknowledgement.
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

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024  # the server sends 1 MiB of events at most
CONNECT_ERRORS: Final = (httpx.ConnectError, httpx.ConnectTimeout)  # nothing was sent
GZIP_WBITS: Final = 16 + zlib.MAX_WBITS  # zlib's flag for gzip's header and check
# The client cannot be built with an unknown kind of proxy, an invalid address, a missing or invalid file of
# certificates, or a file for session keys that is not writable.
CLIENT_SETUP_ERRORS: Final = (httpx.InvalidURL, ValueError, ImportError, OSError)
MACHINE_SETTINGS_HINT: Final = (
    "Check ALL_PROXY, HTTPS_PROXY, SSL_CERT_FILE and SSLKEYLOGFILE where this program is started, and the system's"
    " proxy; everything is kept on this device meanwhile."
)
RETRY_AFTER_TEXT: Final = re.compile(rb"request this after (\d{1,6}) seconds")  # GoTrue sends no header

logging.getLogger("httpx").setLevel(logging.WARNING)  # its INFO lines contain addresses


@cache
def tls_context() -> ssl.SSLContext:
    """The trust store, read once: that takes 25 ms and a megabyte."""
    return httpx.create_ssl_context()


def unreachable_error(error: BaseException, default_message: str) -> CloudUnreachable:
    """Translate a failed connection. An unknown host name is named as the cause: most often it is a typing error."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, socket.gaierror):
        cause = cause.__cause__ or cause.__context__
    return CloudUnreachable(default_message if cause is None else "no connection: the name of the server is not known")


class _RetryingTransport(httpx.AsyncBaseTransport):
    """Keep two connections alive: one for requests, one for a login beside them.

    A kept connection may have died unnoticed in an outage. A call of the API that fails on one is sent again on a new
    connection, because all of them may arrive twice (sql/README.md). A login is not: it may use up a token.
    """

    def __init__(self, tls: ssl.SSLContext, proxy: str | None) -> None:
        kept, none = httpx.Limits(max_connections=2), httpx.Limits(max_connections=2, max_keepalive_connections=0)
        self._keepalive, self._fresh = (
            httpx.AsyncHTTPTransport(verify=tls, http2=False, limits=limits, proxy=proxy, trust_env=False)
            for limits in (kept, none)
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request, on a new connection if a kept one has died."""
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
    """The client of the server at `url`. One call may take `timeout` seconds as a whole.

    Raises CloudUnavailable if the machine's proxy or certificates are unusable: they may be repaired later.
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
            message = f"the proxy or certificate settings of this machine cannot be used ({type(error).__name__})"
            raise CloudUnavailable(message, hint=MACHINE_SETTINGS_HINT) from error

    async def await_reply(self, call: Awaitable[T]) -> T:
        """Await a call within the deadline, and translate its errors. httpx's own timeout counts each read."""
        try:
            async with asyncio.timeout(self._timeout):
                return await call
        except TimeoutError as error:
            raise CloudUnavailable(f"no answer within {self._timeout:g} s") from error
        except CONNECT_ERRORS as error:
            raise unreachable_error(error, f"no connection ({type(error).__name__})") from error
        except (httpx.HTTPError, httpx.InvalidURL, SOCKSError, json.JSONDecodeError, RecursionError) as error:
            raise CloudUnavailable(f"no usable answer ({type(error).__name__})") from error
        except (ValueError, OverflowError) as error:  # from pydantic or the library's arithmetic
            raise CloudUnavailable("the answer is not one of Supabase") from error

    async def close(self) -> None:
        await self.client.aclose()


async def can_connect(url: str, timeout: float) -> bool:
    """Whether a connection to the server can be made within `timeout` seconds. Sends nothing."""
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
    """Check an answer before the libraries parse it: it must be JSON of an API."""
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
    """Raise the error of an account limit (sql/README.md). A refused erasure must not block other events."""
    with suppress(ValueError, RecursionError):
        body = json.loads(response.content)
        text = body.get("details") if isinstance(body, dict) else None
        details = json.loads(text) if isinstance(text, str) else None
        if not isinstance(details, dict) or details.get("kind") != "quota":
            return
        message = f"the account has reached a limit of the server ({str(details.get('field'))[:32]})"
        if details.get("field") == "erasures_a_day":
            raise Rejected(
                message, code=QUOTA_CODE, hint="It is sent again by itself; an administrator may raise the limit."
            )
        raise QuotaExceeded(message)


def _raise_if_unauthorized(response: httpx.Response) -> None:
    """Tell the two causes of a 401 apart, which the libraries do not.

    Either the gateway does not know the key, or the API does not accept the token, whatever code it sends.
    """
    with suppress(ValueError):
        body = json.loads(response.content)
        if isinstance(body, dict) and not any(body.get(name) for name in ("code", "error_code", "error")):
            hint = "Check XIAOBAI_SUPABASE_KEY and XIAOBAI_SUPABASE_URL: they belong together."
            raise Forbidden("the project does not know the publishable key", hint=hint)
    if "/rest/v1/" in response.request.url.path:
        raise LoginRequired("the server does not accept the session's token")


async def _read_bounded(response: httpx.Response) -> None:
    """Read the body, at most as much as an answer may have after decompression."""
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding not in {"", "identity", "gzip"}:
        raise CloudUnavailable("the answer is compressed in a way that was not requested")
    decompressor = zlib.decompressobj(GZIP_WBITS) if coding == "gzip" else None
    body = bytearray()
    received = 0
    try:
        async for part in response.aiter_raw():
            received += len(part)
            body += part if decompressor is None else decompressor.decompress(part, MAX_ANSWER_BYTES + 1 - len(body))
            if max(len(body), received) > MAX_ANSWER_BYTES:
                raise CloudUnavailable("the answer is too large")
    except zlib.error as error:
        raise CloudUnavailable("the answer cannot be decompressed") from error
    if decompressor is not None and received and not decompressor.eof:
        raise CloudUnavailable("the answer ends in the middle")
    if not body and response.is_success:
        body += b"null"  # PostgREST's client reads an empty body as [], an empty list
    response._content = bytes(body)  # noqa: SLF001 - httpx has no public way to keep a streamed body


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds of a Retry-After header in either form (RFC 9110 §10.2.3), else of GoTrue's sentence."""
    value = response.headers.get("retry-after", "")
    if value.isascii() and value.isdigit():
        return float(value)
    if response.status_code == httpx.codes.TOO_MANY_REQUESTS and (named := RETRY_AFTER_TEXT.search(response.content)):
        return float(named.group(1))
    with suppress(ValueError, TypeError):
        served = parsedate_to_datetime(response.headers.get("date", ""))
        return max(0.0, (parsedate_to_datetime(value) - served).total_seconds())
    return None
