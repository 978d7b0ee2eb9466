"""`events/*`: the event store for other programs, with the JSON of the command line."""

from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, Params
from sync.app import App
from sync.contract.events import (
    EventsJson,
    ForgottenJson,
    FoundEventsJson,
    RecordedJson,
    append_results_to_json,
    events_to_json,
    forgotten_to_json,
    found_events_to_json,
)
from sync.log import ingest
from sync.log.event_types import TEXT_SUFFIX
from sync.log.ingest import DraftBuilder
from sync.log.log import find_events, resolve_ids
from sync.log.model import MAX_EVENT_ID_LENGTH, MAX_PAGE_EVENTS, EventDraft

EventId = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_EVENT_ID_LENGTH)]
Limit = Annotated[int, msgspec.Meta(ge=1)]


class Append(Params, frozen=True):
    event: dict[str, Any]


class AppendBatch(Params, frozen=True):
    events: list[dict[str, Any]]


class Forget(Params, frozen=True):
    event_ids: Annotated[list[EventId], msgspec.Meta(min_length=1, max_length=400)]  # what one event can name


class GetEvents(Params, frozen=True):
    event_ids: Annotated[list[EventId], msgspec.Meta(min_length=1, max_length=200)]


class Read(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The filter of `events read`, in snake_case as on the command line."""

    project_id: str | None = None
    session_id: str | None = None
    since_ts: str | None = None
    until_ts: str | None = None
    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    types: list[str] = []
    limit: Limit = MAX_PAGE_EVENTS


class TailParams(Read, frozen=True):
    """`follow`: go on telling new events of this filter as `events/appended`.

    Until `events/unfollow`, or another account comes in (`auth/changed`): then tail again.
    """

    follow: bool = False


async def append(app: App, params: Append) -> RecordedJson:
    """Record one event; idempotent on its event_id."""
    return await _record(app, lambda intake: [intake.build_appended(params.event)])


async def append_batch(app: App, params: AppendBatch) -> RecordedJson:
    """Record all events of an array, or none."""
    return await _record(app, lambda intake: intake.build_batch(params.events))


async def _record(app: App, drafts: Callable[[DraftBuilder], list[EventDraft]]) -> RecordedJson:
    given = drafts(app.draft_builder.for_other_programs(app.log.device_id))
    recorded = await app.memory_service.pauses.append_allowed(given)
    if app.is_sidecar:  # which has to end what begins through it
        await app.event_files.sessions.track(recorded)
    left_out, texts = len(given) - len(recorded), app.settings.privacy.keeps_messages
    return append_results_to_json(recorded, left_out=left_out, stores_messages=texts)


async def forget(app: App, params: Forget) -> ForgottenJson:
    """Erase the payloads of events here, on the server and on every device."""
    return forgotten_to_json(await app.erasure.request_by_id(params.event_ids))


async def get(app: App, params: GetEvents) -> FoundEventsJson:
    """Events by their ids, and what was said in an exchange as it was typed."""
    known = await resolve_ids(app.log, params.event_ids)
    names = {given: known.get(given) for given in params.event_ids}
    texts = (f"{name}{TEXT_SUFFIX}" for name in known.values())
    return found_events_to_json(names, await find_events(app.log, [*known.values(), *texts]))


async def read(app: App, params: Read) -> EventsJson:
    """Events after a position, oldest first."""
    return events_to_json(
        await app.log.read(ingest.parse_event_query(msgspec.to_builtins(params)), from_other_program=True)
    )


async def tail(context: Context[AppProvider], params: TailParams) -> EventsJson:
    """The newest events; with follow, later ones arrive as events/appended."""
    app = await context.app.wait_until_open()
    asked = msgspec.to_builtins(params)
    asked.pop("follow", None)
    query = ingest.parse_event_query(asked)
    page = await app.log.tail(query, from_other_program=True)
    if params.follow:
        context.app.subscribe(app, replace(query, after=page.next_offset))
    return events_to_json(page)


async def unfollow(context: Context[AppProvider]) -> None:
    """Stop following the events."""
    context.app.unsubscribe()
