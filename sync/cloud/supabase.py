"""The port on a Supabase project: supabase-py's Auth and PostgREST clients over one HTTP client of our own.

Decisions
    The two clients are used apart, not through `supabase.AsyncClient`: that one swaps the user's token for the
    publishable key when a session ends and then reads `[]` without an error. Here every request but sign-in carries
    the token it was given, or is not sent. Sessions are neither kept nor refreshed by the library.
    One httpx client: our deadline instead of 120 s, no HTTP/2, no redirects (a token must not follow one to another
    host), a hook that looks at every answer before anybody parses it, so that a captive portal's page, a 5xx or a 429
    is never taken for an acknowledgement.
"""

import asyncio
import json
import logging
from collections.abc import Awaitable
from contextlib import suppress
from dataclasses import asdict
from email.utils import parsedate_to_datetime
from typing import Any, Final, TypeVar

import httpx
import msgspec
from postgrest import AsyncPostgrestClient
from postgrest.exceptions import APIError
from supabase_auth import AsyncGoTrueClient
from supabase_auth.errors import AuthApiError, AuthError, AuthRetryableError
from supabase_auth.types import AuthResponse

from sync.clock import Clock
from sync.cloud import schema
from sync.cloud.port import DeviceFacts, Session, SyncAnswer, SyncRequest
from sync.errors import (
    BadCredentials,
    CloudError,
    CloudUnavailable,
    DeviceConflict,
    DeviceForked,
    Forbidden,
    InvalidInput,
    LoginRequired,
    RateLimited,
    Rejected,
)
from sync.log.envelope import from_wire, to_wire

T = TypeVar("T")

ANSWER_BYTES: Final = 16 * 1024 * 1024  # the server answers 1 MiB of events at most; more is not our server
FUNCTION_MISSING: Final = frozenset({"PGRST202", "PGRST204", "PGRST205", "42P01", "42883", "3F000"})
# SQLSTATE classes that pass by themselves: connection, rollback, resources, lock, operator, system; and PostgREST's own
TRY_LATER: Final = ("08", "40", "53", "55", "57", "58", "PGRST0")
NOBODY: Final = frozenset({"not_signed_in", "account_gone"})
SQLSTATE_LENGTH: Final = 5
TOKEN_REFUSED: Final = frozenset({"PGRST301", "PGRST302", "PGRST303"})

logging.getLogger("httpx").setLevel(logging.WARNING)  # its INFO lines hold addresses


class _Answer(msgspec.Struct):
    """What `ai_memory_sync` returns (sql/README.md)."""

    epoch: str
    head: int
    floor: int
    reset: bool
    events: list[dict[str, Any]]
    acked: list[tuple[str, int]]
    server_time: str
    error: str | None = None


class SupabaseCloud:
    """A user's project. `url` without a trailing slash; `key` the publishable one; `timeout` in seconds."""

    def __init__(self, url: str, key: str, *, timeout: float, clock: Clock) -> None:
        self._rest = f"{url}/rest/v1"
        self._key = key
        self._clock = clock
        self._timeout = timeout
        self._http = httpx.AsyncClient(
            timeout=timeout,
            http2=False,
            follow_redirects=False,
            event_hooks={"response": [_inspect]},
            limits=httpx.Limits(max_connections=2),  # one request at a time, and room for a login beside it
        )
        self._auth = AsyncGoTrueClient(
            url=f"{url}/auth/v1",
            headers={"apikey": key},
            auto_refresh_token=False,
            persist_session=False,
            http_client=self._http,
        )

    async def sign_in(self, email: str, password: str) -> Session:
        answer = await self._told(self._auth.sign_in_with_password({"email": email, "password": password}))
        return self._session(answer, email)

    async def refresh(self, session: Session) -> Session:
        try:
            answer = await self._told(self._auth.refresh_session(session.refresh_token))
        except BadCredentials as error:
            raise LoginRequired("the session was ended by the server") from error
        return self._session(answer, session.label)

    async def identify(self, access_token: str) -> tuple[str, str]:
        try:
            answer = await self._told(self._auth.get_user(access_token))
        except BadCredentials as error:
            raise LoginRequired("the server does not know this token") from error
        if answer is None:
            raise LoginRequired("the server does not know this token")
        return answer.user.id, answer.user.email or answer.user.phone or answer.user.id

    async def sign_out(self, session: Session) -> None:
        _check_token(session)
        await self._told(self._auth.admin.sign_out(session.access_token, "local"))

    async def register_device(self, session: Session, device_id: str, facts: DeviceFacts) -> None:
        arguments = {
            "p_device_id": device_id,
            "p_replica_id": facts.replica_id,
            "p_name": facts.name,
            "p_platform": facts.platform,
            "p_app_version": facts.app_version,
            "p_takeover": facts.takeover,
        }
        answer = await self._call(session, "ai_memory_register_device", arguments)
        if not isinstance(answer, dict) or "device_id" not in answer:
            raise CloudUnavailable("the answer is not one of ai_memory_register_device")
        schema.check(answer.get("schema_version"))
        _raise_stated(answer.get("error"))

    async def sync(self, session: Session, request: SyncRequest) -> SyncAnswer:
        snapshot = request.snapshot
        arguments = {
            "p_device_id": request.device_id,
            "p_replica_id": request.replica_id,
            "p_events": [to_wire(event) for event in request.events],
            "p_after": request.after,
            "p_after_event": request.after_event,
            "p_epoch": request.epoch,
            "p_limit": request.limit,
            "p_snapshot": None if snapshot is None else asdict(snapshot),
        }
        value = await self._call(session, "ai_memory_sync", arguments)
        try:
            answer = msgspec.convert(value, _Answer)
            _raise_stated(answer.error)
            events = tuple(from_wire(event) for event in answer.events)
        except (msgspec.ValidationError, InvalidInput) as error:
            raise CloudUnavailable("the answer is not one of ai_memory_sync") from error
        return SyncAnswer(
            epoch=answer.epoch,
            head=answer.head,
            floor=answer.floor,
            reset=answer.reset,
            events=events,
            acked=tuple(answer.acked),
            server_time=answer.server_time,
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def _call(self, session: Session, function: str, arguments: dict[str, Any]) -> object:
        """One remote procedure under the user's own token."""
        _check_token(session)
        client = AsyncPostgrestClient(
            self._rest,
            headers={"apikey": self._key, "Authorization": f"Bearer {session.access_token}"},
            http_client=self._http,
            retry_enabled=False,  # the replicator decides when to try again
        )
        answer = await self._told(client.rpc(function, arguments).execute())
        return answer.data

    def _session(self, answer: AuthResponse, label: str) -> Session:
        """The server says for how long; until when is a matter of our own clock, which it is compared with."""
        if answer.session is None:
            raise CloudUnavailable("the server signed nobody in")
        found = answer.session
        expires_at = self._clock.now().timestamp() + found.expires_in
        return Session(found.user.id, label, found.access_token, found.refresh_token, expires_at)

    async def _told(self, call: Awaitable[T]) -> T:
        """Within the deadline as a whole (the client's own counts each read), with the libraries' errors as ours."""
        try:
            async with asyncio.timeout(self._timeout):
                return await call
        except TimeoutError as error:
            raise CloudUnavailable(f"no answer within {self._timeout:g} s") from error
        except APIError as error:
            raise _refusal(error) from error
        except AuthError as error:
            raise _auth_failure(error) from error
        except (httpx.HTTPError, httpx.InvalidURL, json.JSONDecodeError) as error:
            raise CloudUnavailable(f"no usable answer ({type(error).__name__})") from error
        except ValueError as error:  # pydantic's, for a body that is none of the API's
            raise CloudUnavailable("the answer is not one of Supabase") from error


def _check_token(session: Session) -> None:
    """Without a token that can be sent the server would take us for anybody."""
    token = session.access_token
    if not token or not token.isascii() or not token.isprintable():
        raise LoginRequired("the session holds no token")


def _refusal(error: APIError) -> CloudError:
    """PostgREST's codes and Postgres' SQLSTATEs (docs.postgrest.org, errors) as ours."""
    code = str(error.code or "")
    message = f"the server refused the call ({code or 'no code'})"
    if code in TOKEN_REFUSED or code == "401":
        return LoginRequired("the server does not accept the session's token")
    if code in FUNCTION_MISSING or code == "404":
        return schema.mismatch(0, f" (the project lacks a table or function: {code})")
    if code == "42501" and _kind(error) in NOBODY:
        return LoginRequired(str(error.message or message))
    if code in {"42501", "403"}:
        return Forbidden(str(error.message or message), hint=error.hint)
    if code.startswith(TRY_LATER) or len(code) < SQLSTATE_LENGTH:  # an HTTP status, or no code: not the API's words
        return CloudUnavailable(message)
    return Rejected(message, code=code, hint=error.hint)


def _kind(error: APIError) -> str:
    """The `kind` that our functions put into DETAIL (sql/README.md)."""
    with suppress(ValueError, TypeError):
        said = json.loads(error.details or "")
        return str(said.get("kind", "")) if isinstance(said, dict) else ""
    return ""


def _auth_failure(error: AuthError) -> CloudError:
    status = error.status if isinstance(error, AuthApiError) else 0
    if isinstance(error, AuthRetryableError) or status >= httpx.codes.INTERNAL_SERVER_ERROR:
        return CloudUnavailable("the login server does not answer")
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return RateLimited("too many login attempts", hint="Wait a minute, then try again.")
    if status in {httpx.codes.BAD_REQUEST, httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
        return BadCredentials(f"the login was refused ({error.code or status})")
    return CloudUnavailable(f"the login server answered {error.code or status}")


def _raise_stated(error: str | None) -> None:
    """Errors that `ai_memory_sync` states in its answer instead of raising."""
    if error == "device_forked":
        raise DeviceForked("the server knows this replica's numbers under other event ids")
    if error == "device_conflict":
        raise DeviceConflict("another live installation speaks for this device id")
    if error is not None:
        raise CloudUnavailable(f"the server answered {error}")


async def _inspect(response: httpx.Response) -> None:
    """Look at an answer before anybody reads it: what is not JSON of an API is no answer."""
    status = response.status_code
    if response.is_redirect:
        raise CloudUnavailable("the server sent us elsewhere; a captive portal or a wrong address")
    if status == httpx.codes.TOO_MANY_REQUESTS:
        raise RateLimited("the server asks for fewer requests", retry_after=_retry_after(response))
    if status >= httpx.codes.INTERNAL_SERVER_ERROR:
        raise CloudUnavailable(f"the server answered {status}", retry_after=_retry_after(response))
    if status == httpx.codes.REQUEST_ENTITY_TOO_LARGE:
        raise Rejected("the request is too large for the server", code="413")
    empty = status == httpx.codes.NO_CONTENT or response.headers.get("content-length") == "0"
    if not empty and "json" not in response.headers.get("content-type", ""):
        raise CloudUnavailable("the answer is not JSON; a captive portal or a wrong address")
    await _bounded(response)
    if status == httpx.codes.UNAUTHORIZED:
        _explain_unauthorized(response)


def _explain_unauthorized(response: httpx.Response) -> None:
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


async def _bounded(response: httpx.Response) -> None:
    """Read the body here, stopping where no answer of ours would go on; decompression is counted too."""
    parts: list[bytes] = []
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > ANSWER_BYTES:
            raise CloudUnavailable("the answer is larger than any of ours")
        parts.append(part)
    response._content = b"".join(parts)  # noqa: SLF001 - httpx has no public way to keep a body that was streamed


def _retry_after(response: httpx.Response) -> float | None:
    """Seconds of a Retry-After header, in either of its two forms (RFC 9110 §10.2.3)."""
    value = response.headers.get("retry-after", "")
    if value.isascii() and value.isdigit():
        return float(value)
    with suppress(ValueError, TypeError):
        served = parsedate_to_datetime(response.headers.get("date", ""))
        return max(0.0, (parsedate_to_datetime(value) - served).total_seconds())
    return None
