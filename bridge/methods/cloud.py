"""`sync/*` and `auth/*`: how the cloud stands, and who is logged in."""

import asyncio
from typing import Annotated, Any, Final, Literal

import msgspec

from bridge.methods.door import Door
from bridge.methods.table import Context, Method, NoParams, Params
from sync import contract, published
from sync.errors import CloudNotConfigured, CloudUnavailable

DEFAULT_TIMEOUT_MS: Final = 30_000


class Now(Params, frozen=True):
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=600_000)] = DEFAULT_TIMEOUT_MS


class Quarantine(Params, frozen=True):
    action: Literal["list", "retry", "drop"] = "list"
    event_ids: list[str] | None = None


class Password(Params, frozen=True):
    email: Annotated[str, msgspec.Meta(min_length=3, max_length=320, pattern="^[^@\\s]+@[^@\\s]+$")]
    password: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    accept: bool = False


class SetSession(Params, frozen=True):
    """`expiresAt` in Unix seconds, as Supabase's own session has it."""

    access_token: Annotated[str, msgspec.Meta(min_length=1, max_length=16_384)]
    expires_at: Annotated[float, msgspec.Meta(gt=0)]


async def status(context: Context[Door], params: NoParams) -> published.StatusJson:  # noqa: ARG001 - every row has params
    return contract.status(await (await context.app.opened()).status())


async def now(context: Context[Door], params: Now) -> published.RoundJson:
    app = await context.app.opened()
    if app.replicator is None:
        raise CloudNotConfigured("no Supabase project is set")
    try:
        async with asyncio.timeout(params.timeout_ms / 1000):
            return contract.round_done(await app.replicator.sync_now())
    except TimeoutError as error:
        raise CloudUnavailable(f"not level within {params.timeout_ms} ms; it goes on in the background") from error


async def quarantine(context: Context[Door], params: Quarantine) -> published.QuarantineJson:
    app = await context.app.opened()
    released: list[str] = []
    if params.action != "list":
        released = await app.log.quarantine.release(
            params.event_ids, "pending" if params.action == "retry" else "dropped"
        )
    return contract.quarantine(await app.log.quarantine.refusals(), released)


async def password(context: Context[Door], params: Password) -> published.AuthJson:
    app = await context.app.opened()
    return {"account": contract.account(await app.log_in(params.email, params.password, accept=params.accept))}


async def set_session(context: Context[Door], params: SetSession) -> published.AuthJson:
    app = await context.app.opened()
    return {"account": contract.account(await app.adopt_session(params.access_token, params.expires_at))}


async def auth_status(context: Context[Door], params: NoParams) -> published.AuthJson:  # noqa: ARG001
    app = await context.app.opened()
    return {"account": contract.account(await app.account.state())}


async def logout(context: Context[Door], params: NoParams) -> published.AuthJson:  # noqa: ARG001
    app = await context.app.opened()
    return {"account": contract.account(await app.log_out())}


METHODS: Final[list[Method[Door, Any]]] = [
    Method(
        "sync/status",
        NoParams,
        status,
        "Account, device, cloud, what waits, warnings about the file.",
    ),
    Method("sync/now", Now, now, "Push and pull until level; what was done.", timeout=None),
    Method("sync/quarantine", Quarantine, quarantine, "Events the server refuses: list, retry or drop them."),
    Method("auth/password", Password, password, "Log in with e-mail and password."),
    Method("auth/setSession", SetSession, set_session, "Work with a session that the app opened and refreshes."),
    Method("auth/status", NoParams, auth_status, "Whose memory this is, and whether he is logged in."),
    Method("auth/logout", NoParams, logout, "End the session; the memory stays on this device."),
]
