"""The `Cloud` port on a Supabase project, through PostgREST's client.

Every request carries the user's token or is not sent; docs/decisions/004-supabase-clients.md has the reasons.
"""

import json
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from typing import Any, Final

import msgspec
from msgspec.structs import asdict
from postgrest import APIResponse, AsyncPostgrestClient
from postgrest.exceptions import APIError

from sync.clock import Clock
from sync.cloud.auth_port import AuthSession
from sync.cloud.port import Channel, DeviceFacts, DeviceRow, EndedSessions, StoredDocument, SyncAnswer, SyncRequest
from sync.cloud.supabase import realtime, schema_version
from sync.cloud.supabase.auth import SupabaseAuth, check_token
from sync.cloud.supabase.http_client import HttpClient, can_connect
from sync.errors import (
    CloudError,
    CloudUnavailable,
    DeviceConflict,
    DeviceForked,
    DeviceKeyInUse,
    DeviceRevoked,
    DeviceUnknown,
    Forbidden,
    InvalidInput,
    LoginRequired,
    Rejected,
    SchemaMismatch,
)
from sync.log.envelope import from_wire, to_wire

PROBE_SECONDS: Final = 3.0  # to make a connection without a request
FUNCTION_MISSING: Final = frozenset({"PGRST202", "PGRST204", "PGRST205", "42P01", "42883", "3F000"})
# temporary SQLSTATE classes: connection, rollback, resources, lock, operator, system; and PostgREST's own
TRANSIENT_CODES: Final = ("08", "40", "53", "55", "57", "58", "PGRST0")
NO_USER_KINDS: Final = frozenset({"not_signed_in", "account_gone"})
DEVICE_ERRORS: Final[dict[str, type[Forbidden]]] = {  # with their own hints: the server knows no client
    "device_revoked": DeviceRevoked,
    "key_revoked": DeviceRevoked,
    "key_in_use": DeviceKeyInUse,
    "device_unregistered": DeviceUnknown,
}
SQLSTATE_LENGTH: Final = 5
TOKEN_REFUSED: Final = frozenset({"PGRST301", "PGRST302", "PGRST303"})


class _SyncReply(msgspec.Struct):
    """What `ai_memory_sync` returns (sql/README.md)."""

    epoch: str
    head: int
    floor: int
    reset: bool
    events: list[dict[str, Any]]
    acked: list[tuple[str, int]]
    server_time: str
    snapshot: str | None = None
    poll_seconds: float | None = None
    error: str | None = None


class _RevokeReply(msgspec.Struct):
    """What `ai_memory_revoke` returns."""

    known: int
    ended: int
    error: str | None = None


class SupabaseCloud:
    """A user's project. `url` without a trailing slash; `key` the publishable one; `timeout` in seconds."""

    def __init__(self, url: str, key: str, *, timeout: float, clock: Clock) -> None:
        self._url = url
        self._rest = f"{url}/rest/v1"
        self._key = key
        self._timeout = timeout
        self._http = HttpClient(url, timeout)
        self.auth = SupabaseAuth(f"{url}/auth/v1", key, self._http, clock=clock)

    async def register_device(self, session: AuthSession, device_id: str, facts: DeviceFacts) -> None:
        arguments = {
            "p_device_id": device_id,
            "p_replica_id": facts.replica_id,
            "p_name": facts.name,
            "p_platform": facts.platform,
            "p_app_version": facts.app_version,
            "p_takeover": facts.takeover,
            "p_public_key": facts.public_key,
            "p_proof": facts.proof,
            "p_proof_next": facts.proof_next,
        }
        answer = await self._call(session, "ai_memory_register_device", arguments)
        if not isinstance(answer, dict) or "device_id" not in answer:
            raise CloudUnavailable("the answer is not one of ai_memory_register_device")
        schema_version.check_version(answer.get("schema_version"))
        holder = answer.get("replica_id") if answer.get("proven") is True else None
        _raise_reported(answer.get("error"), holder=holder if isinstance(holder, str) else None)

    async def list_devices(self, session: AuthSession) -> tuple[DeviceRow, ...]:
        value = await self._call(session, "ai_memory_list_devices", {})
        try:
            return msgspec.convert(value, tuple[DeviceRow, ...])
        except msgspec.ValidationError as error:
            raise CloudUnavailable("the answer is not one of ai_memory_list_devices") from error

    async def rename_device(self, session: AuthSession, device_id: str, name: str) -> None:
        await self._call_void(session, "ai_memory_rename_device", {"p_device_id": device_id, "p_name": name})

    async def revoke_device(self, session: AuthSession, device_id: str) -> EndedSessions:
        value = await self._call(session, "ai_memory_revoke", {"p_device_id": device_id})
        try:
            reply = msgspec.convert(value, _RevokeReply)
        except msgspec.ValidationError as error:
            raise CloudUnavailable("the answer is not one of ai_memory_revoke") from error
        return EndedSessions(reply.known, reply.ended, refused=reply.error is not None)

    async def report_refusals(self, session: AuthSession, device_id: str, refused: Mapping[str, int]) -> None:
        await self._call(session, "ai_memory_report", {"p_device_id": device_id, "p_codes": dict(refused)})

    async def sync(self, session: AuthSession, request: SyncRequest) -> SyncAnswer:
        snapshot = request.snapshot
        arguments = {
            "p_device_id": request.device_id,
            "p_replica_id": request.replica_id,
            "p_events": [to_wire(event) for event in request.events],
            "p_after": request.after,
            "p_after_event": request.after_event,
            "p_after_ts": request.after_ts,
            "p_epoch": request.epoch,
            "p_limit": request.limit,
            "p_snapshot": None if snapshot is None else asdict(snapshot),
        }
        value = await self._call(session, "ai_memory_sync", arguments)
        try:
            answer = msgspec.convert(value, _SyncReply)
            _raise_reported(answer.error)
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
            snapshot=answer.snapshot,
            poll_seconds=answer.poll_seconds,
        )

    async def open_channel(self, session: AuthSession) -> Channel:
        check_token(session)
        return await realtime.join_channel(self._url, self._key, session, timeout=self._timeout, tls=self._http.tls)

    async def read_document(self, session: AuthSession, device_id: str) -> StoredDocument | None:
        table = self._client(session).from_("ai_memory")
        value = await self._await_reply(
            table.select("content,content_sha256,replica_id").eq("device_id", device_id).execute()
        )
        try:
            rows = msgspec.convert(value, list[StoredDocument])
        except msgspec.ValidationError as error:
            raise CloudUnavailable("the answer is not a document") from error
        return rows[0] if rows else None

    async def is_reachable(self) -> bool:
        return await can_connect(self._url, min(PROBE_SECONDS, self._timeout))

    async def close(self) -> None:
        await self._http.close()

    async def _call_void(self, session: AuthSession, function: str, arguments: dict[str, Any]) -> None:
        """Call a procedure that returns nothing. Any other answer is not the server's."""
        if await self._call(session, function, arguments):
            raise CloudUnavailable(f"the answer is not one of {function}")

    async def _call(self, session: AuthSession, function: str, arguments: dict[str, Any]) -> object:
        """Call a function with the user's own token."""
        try:
            return await self._await_reply(self._client(session).rpc(function, arguments).execute())
        except SchemaMismatch as error:
            raise await self._name_version(session, error) from error

    async def _name_version(self, session: AuthSession, error: SchemaMismatch) -> SchemaMismatch:
        """The error with the version of a project that lacks a function: an older one has some of them."""
        try:
            version = await self._await_reply(self._client(session).rpc("ai_memory_schema_version", {}).execute())
        except CloudError:
            return error
        return schema_version.mismatch_error(version) if isinstance(version, int) else error

    def _client(self, session: AuthSession) -> AsyncPostgrestClient:
        check_token(session)
        return AsyncPostgrestClient(
            self._rest,
            headers={"apikey": self._key, "Authorization": f"Bearer {session.access_token}"},
            http_client=self._http.client,
            retry_enabled=False,  # the replicator retries
        )

    async def _await_reply(self, request: Awaitable[APIResponse]) -> object:
        try:
            return (await self._http.await_reply(request)).data
        except APIError as error:
            raise error_of_reply(error) from error


def error_of_reply(error: APIError) -> CloudError:
    """Translate PostgREST's codes and Postgres' SQLSTATEs (docs.postgrest.org, errors)."""
    code = str(error.code or "")
    message = f"the server refused the call ({code or 'no code'})"
    if code in TOKEN_REFUSED or code == "401":
        return LoginRequired("the server does not accept the session's token")
    if code in FUNCTION_MISSING or code == "404":
        return schema_version.mismatch_error(0, f" (the project lacks a table or function: {code})")
    if code == "42501" and _error_kind(error) in NO_USER_KINDS:
        return LoginRequired(str(error.message or message))
    if code == "42501" and _error_kind(error) in DEVICE_ERRORS:
        return DEVICE_ERRORS[_error_kind(error)](str(error.message or message))
    if code in {"42501", "403"}:
        return Forbidden(str(error.message or message), hint=error.hint)
    if code.startswith(TRANSIENT_CODES) or len(code) < SQLSTATE_LENGTH:  # short: an HTTP status, not the API's code
        return CloudUnavailable(message)
    return Rejected(message, code=code, hint=error.hint)


def _error_kind(error: APIError) -> str:
    """The `kind` that our functions put into DETAIL (sql/README.md)."""
    with suppress(ValueError, TypeError):
        details = json.loads(error.details or "")
        return str(details.get("kind", "")) if isinstance(details, dict) else ""
    return ""


def _raise_reported(error: str | None, *, holder: str | None = None) -> None:
    """Raise the error that a function has put into its answer."""
    if error == "device_forked":
        raise DeviceForked("the server has other events under this replica's numbers")
    if error == "device_conflict":
        raise DeviceConflict("another live installation speaks for this device id", holder=holder)
    if error is not None:
        raise CloudUnavailable(f"the server answered {error}")
