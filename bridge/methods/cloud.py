"""`sync/*`: how the cloud stands."""

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


METHODS: Final[list[Method[Door, Any]]] = [
    Method(
        "sync/status",
        NoParams,
        status,
        "Account, device, cloud, what waits, warnings about the file.",
    ),
    Method("sync/now", Now, now, "Push and pull until level; what was done.", timeout=None),
    Method("sync/quarantine", Quarantine, quarantine, "Events the server refuses: list, retry or drop them."),
]
