"""`sync/*`: the state of synchronisation."""

import asyncio
from typing import Annotated, Final, Literal

import msgspec

from bridge.api.method_table import Params
from sync.app import App
from sync.cloud.status import RoundJson
from sync.contract.events import QuarantineJson, quarantine_to_json
from sync.contract.status import StatusJson, status_to_json
from sync.errors import CloudNotConfigured, CloudUnavailable, InvalidInput
from sync.log.log import resolve_ids
from sync.log.model import MAX_EVENT_ID_LENGTH

DEFAULT_TIMEOUT_MS: Final = 30_000
MAX_NAMED: Final = 5  # unknown ids in a message


class Now(Params, frozen=True):
    timeout_ms: Annotated[int, msgspec.Meta(ge=1, le=600_000)] = DEFAULT_TIMEOUT_MS


class QuarantineParams(Params, frozen=True):
    action: Literal["list", "retry", "drop"] = "list"
    event_ids: list[Annotated[str, msgspec.Meta(max_length=MAX_EVENT_ID_LENGTH)]] | None = None


async def status(app: App) -> StatusJson:
    """Account, device, cloud, pending events, warnings about the file."""
    return status_to_json(await app.status())


async def sync_now(app: App, params: Now) -> RoundJson:
    """Push and pull until both sides are equal; how many events that took."""
    if app.replicator is None:
        raise CloudNotConfigured("no Supabase project is set")
    try:
        async with asyncio.timeout(params.timeout_ms / 1000):
            return await app.replicator.sync_now()
    except TimeoutError as error:
        raise CloudUnavailable(f"not level within {params.timeout_ms} ms; it goes on in the background") from error


async def quarantine(app: App, params: QuarantineParams) -> QuarantineJson:
    """Events the server refuses: list, retry or drop them."""
    released: list[str] = []
    if params.action != "list":
        refused = {event.event_id for event in await app.log.quarantine.list_refused()}
        named = await resolve_ids(app.log, params.event_ids or ())
        if unknown := [name for name in params.event_ids or () if named.get(name) not in refused]:
            hint = "Nothing was changed. `xiaobai-memory quarantine list` shows the ids."
            message = f"no event in quarantine has the id {', '.join(unknown[:MAX_NAMED])}"
            raise InvalidInput(message, field="eventIds", hint=hint)
        event_ids = None if params.event_ids is None else list(named.values())
        released = await app.log.quarantine.release(event_ids, "pending" if params.action == "retry" else "dropped")
    return quarantine_to_json(await app.log.quarantine.list_refused(), released)
