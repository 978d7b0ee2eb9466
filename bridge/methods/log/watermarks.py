"""`watermarks/*` and `events/verify`: how far other programs have come, and whether the log is sound."""

from typing import Annotated

import msgspec

from bridge.api.method_table import Params
from sync.app import App
from sync.contract.events import VerifyJson, WatermarkJson, verification_to_json
from sync.errors import InvalidInput
from sync.log.ingest import MAX_POSITION
from sync.log.integrity.store import count_events
from sync.log.model import CLIENT_ID_FIELD, MAX_EVENT_ID_LENGTH, Query

EventId = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_EVENT_ID_LENGTH)]
Name = Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9._-]{0,63}$", examples=["my-exporter"])]


class Get(Params, frozen=True):
    name: Name


class Set(Params, frozen=True):
    """One of the two: a `nextOffset` of events read, or the id of the last event that was taken."""

    name: Name
    position: Annotated[int, msgspec.Meta(ge=0)] | None = None
    event_id: EventId | None = None


async def get_watermark(app: App, params: Get) -> WatermarkJson:
    """The position of a reader of the log; 0 if it is unknown."""
    return await _watermark_json(app, params.name)


async def set_watermark(app: App, params: Set) -> WatermarkJson:
    """Store the position of a reader of the log."""
    place = params.event_id if params.position is None else params.position
    if place is None or (params.position is not None and params.event_id is not None):
        raise InvalidInput("watermarks/set takes a position or an eventId", field="position")
    if params.position is not None and params.position > MAX_POSITION:
        raise InvalidInput("position is larger than any in a log", field="position")
    await app.log.set_watermark(params.name, place)
    return await _watermark_json(app, params.name)


async def _watermark_json(app: App, name: str) -> WatermarkJson:
    position = await app.log.watermark(name)
    page = await app.log.read(Query(after=max(0, position - 1), limit=1))
    at = page.events[0] if page.events and page.events[0].position == position else None
    event_id = None if at is None else at.extra.get(CLIENT_ID_FIELD, at.event_id)
    return {"name": name, "position": position, "eventId": event_id}


async def verify_log(app: App) -> VerifyJson:
    """Check the log: numbers, deliveries, pages."""
    return verification_to_json(await app.log.find_problems(), await app.log.database.read(count_events))
