"""`events/*`: the event store for other programs, with the JSON of seed 002 §4-5."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from bridge.methods import erasing
from bridge.methods.door import Door
from bridge.methods.table import Context, Method, NoParams, Params
from sync import contract, published
from sync.log import intake
from sync.log.intake import Intake
from sync.log.model import EVENT_ID_LENGTH, READ_LIMIT, Draft

if TYPE_CHECKING:  # importing it is what a starting sidecar has not done yet
    from sync.app import App

EventId = Annotated[str, msgspec.Meta(min_length=1, max_length=EVENT_ID_LENGTH)]
Limit = Annotated[int, msgspec.Meta(ge=1)]


class Append(Params, frozen=True):
    event: dict[str, Any]


class AppendBatch(Params, frozen=True):
    events: list[dict[str, Any]]


class Forget(Params, frozen=True):
    event_ids: Annotated[list[EventId], msgspec.Meta(min_length=1, max_length=400)]  # what one event can name


class Read(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The filter of seed 002 §5.2, in its own snake_case names."""

    project_id: str | None = None
    session_id: str | None = None
    since_ts: str | None = None
    until_ts: str | None = None
    after: Annotated[int, msgspec.Meta(ge=0)] = 0
    types: list[str] = []
    limit: Limit = READ_LIMIT


class Tail(Read, frozen=True):
    """`follow`: go on telling new events of this filter as `events/appended`.

    Until `events/unfollow`, or another account comes in (`auth/changed`): then tail again.
    """

    follow: bool = False


async def append(context: Context[Door], params: Append) -> published.RecordedJson:
    return await _record(await context.app.opened(), lambda intake: [intake.appended(params.event)])


async def append_batch(context: Context[Door], params: AppendBatch) -> published.RecordedJson:
    return await _record(await context.app.opened(), lambda intake: intake.drafts(params.events))


async def _record(app: "App", drafts: Callable[[Intake], list[Draft]]) -> published.RecordedJson:
    given = drafts(app.intake.for_programs())
    recorded = await app.conversation.pauses.record(given)
    if app.is_sidecar:  # which has to end what begins through it
        await app.events.sessions.heard(recorded)
    left_out, texts = len(given) - len(recorded), app.settings.privacy.store_messages
    return contract.recorded(recorded, left_out=left_out, stores_messages=texts)


async def forget(context: Context[Door], params: Forget) -> published.ForgottenJson:
    app = await context.app.opened()
    return contract.forgotten(await erasing.forget(app, params.event_ids))


async def read(context: Context[Door], params: Read) -> published.EventsJson:
    app = await context.app.opened()
    return contract.events(await app.log.read(intake.query(msgspec.to_builtins(params)), foreign=True))


async def tail(context: Context[Door], params: Tail) -> published.EventsJson:
    app = await context.app.opened()
    asked = msgspec.to_builtins(params)
    asked.pop("follow", None)
    query = intake.query(asked)
    page = await app.log.tail(query, foreign=True)
    if params.follow:
        context.app.follow(app, replace(query, after=page.next_offset))
    return contract.events(page)


async def unfollow(context: Context[Door], params: NoParams) -> None:  # noqa: ARG001 - every row has params
    context.app.unfollow()


METHODS: Final[list[Method[Door, Any]]] = [
    Method("events/append", Append, append, "Record one event; idempotent on its event_id."),
    Method(
        "events/appendBatch",
        AppendBatch,
        append_batch,
        "Record all events of an array, or none.",
    ),
    Method("events/forget", Forget, forget, "Take the payloads of events away, here, on the server and everywhere."),
    Method("events/read", Read, read, "Events after a position, oldest first."),
    Method("events/tail", Tail, tail, "The newest events; with follow, the later ones too, as events/appended."),
    Method("events/unfollow", NoParams, unfollow, "End what events/tail began with follow."),
]
