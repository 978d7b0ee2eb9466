"""`watermarks/*` and `events/verify`: how far other programs have come, and whether the log is sound."""

from typing import TYPE_CHECKING, Annotated

import msgspec

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, NoParams, Params
from sync.contract.events import VerifyJson, WatermarkJson, verification_to_json
from sync.errors import InvalidInput
from sync.log.ingest import MAX_POSITION
from sync.log.model import MAX_EVENT_ID_LENGTH, Query

if TYPE_CHECKING:  # importing it is what a starting sidecar has not done yet
    from sync.app import App

EventId = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_EVENT_ID_LENGTH)]
Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9._-]{0,63}$")]


class Get(Params, frozen=True):
    name: Name


class Set(Params, frozen=True):
    """One of the two: a `nextOffset` of events read, or the id of the last event that was taken."""

    name: Name
    position: Annotated[int, msgspec.Meta(ge=0)] | None = None
    event_id: EventId | None = None


async def get_watermark(context: Context[AppProvider], params: Get) -> WatermarkJson:
    app = await context.app.wait_until_open()
    return await _watermark_json(app, params.name)


async def set_watermark(context: Context[AppProvider], params: Set) -> WatermarkJson:
    place = params.event_id if params.position is None else params.position
    if place is None or (params.position is not None and params.event_id is not None):
        raise InvalidInput("watermarks/set takes a position or an eventId", field="position")
    if params.position is not None and params.position > MAX_POSITION:
        raise InvalidInput("position is larger than any in a log", field="position")
    app = await context.app.wait_until_open()
    await app.log.set_watermark(params.name, place)
    return await _watermark_json(app, params.name)


async def _watermark_json(app: "App", name: str) -> WatermarkJson:
    position = await app.log.watermark(name)
    page = await app.log.read(Query(after=max(0, position - 1), limit=1))
    at = page.events[0] if page.events and page.events[0].position == position else None
    return {"name": name, "position": position, "eventId": None if at is None else at.event_id}


async def verify_log(context: Context[AppProvider], params: NoParams) -> VerifyJson:  # noqa: ARG001 - every row has params
    app = await context.app.wait_until_open()
    return verification_to_json(await app.log.find_problems(), await app.log.newest_position())
