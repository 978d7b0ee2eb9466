"""`daily/*`: what is kept of each session, by day (seed 000)."""

from typing import Annotated, Any, Final, Literal

import msgspec

from bridge.methods.door import Door
from bridge.methods.moments import project_id
from bridge.methods.table import Context, Method, NoParams, Params
from sync.errors import InvalidInput
from sync.log.model import NAME_LENGTH
from sync.published.daily import (
    DailyCleanedJson,
    DailyConfigJson,
    DailyMarkJson,
    DailyMergedJson,
    DailyOutcomeJson,
    DailyPageJson,
    DailyRecordsJson,
    DailyReviewJson,
    DailyStatusJson,
)

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=NAME_LENGTH)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
Day = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Text = Annotated[str, msgspec.Meta(max_length=100_000)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
PARTS: Final = ("topic", "facts", "code", "tags")


class TurnGiven(Params, frozen=True):
    role: Literal["user", "assistant"]
    content: Text


class CodeGiven(Params, frozen=True):
    text: Text
    language: Annotated[str, msgspec.Meta(max_length=64)] = ""


class Summary(Params, frozen=True):
    """What is to be kept, in the caller's own words."""

    topic: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
    facts: Annotated[tuple[Text, ...], msgspec.Meta(max_length=100)] = ()
    code: Annotated[tuple[CodeGiven, ...], msgspec.Meta(max_length=20)] = ()
    tags: Annotated[tuple[Text, ...], msgspec.Meta(max_length=50)] = ()


Turns = Annotated[tuple[TurnGiven, ...], msgspec.Meta(max_length=2_000)]


class Recording(Params, frozen=True):
    """A conversation: its session, its turns, or a summary of it. `force`: a person asked for it."""

    session_id: Name | None = None
    turns: Turns = ()
    summary: Summary | None = None
    project_path: Path | None = None
    force: bool = False


class Adding(Params, frozen=True):
    """A record by hand, for today and now where nothing else is said."""

    summary: Summary
    date: Day | None = None
    time: Annotated[str, msgspec.Meta(pattern=r"^\d{2}:\d{2}:\d{2}$")] | None = None
    project_path: Path | None = None
    important: bool = False


class Editing(Params, frozen=True):
    """The parts that are given take the place of what the record has."""

    id: Name
    topic: Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)] | None = None
    facts: Annotated[tuple[Text, ...], msgspec.Meta(max_length=100)] | None = None
    code: Annotated[tuple[CodeGiven, ...], msgspec.Meta(max_length=20)] | None = None
    tags: Annotated[tuple[Text, ...], msgspec.Meta(max_length=50)] | None = None


class One(Params, frozen=True):
    id: Name


class Marking(Params, frozen=True):
    """`sensitive` forgets the record and its conversation for good; the others can be taken away (`on: false`)."""

    id: Name
    mark: Literal["important", "outdated", "reviewed", "expired", "sensitive"]
    on: bool = True


class Undoing(Params, frozen=True):
    """A deed by its event, or this device's last one."""

    event_id: Name | None = None


class Showing(Params, frozen=True):
    """A day, today where none is given; of one project, or of all."""

    date: Day | None = None
    project: Path | None = None


class Listing(Params, frozen=True):
    """The newest first. `project`: its id or its path."""

    project: Path | None = None
    since: Day | None = None
    until: Day | None = None
    mark: DailyMarkJson | None = None
    limit: Limit = 100


class Reviewing(Params, frozen=True):
    language: Literal["zh", "en"] = "zh"


class Merging(Params, frozen=True):
    date: Day | None = None
    dry_run: bool = False


class Cleaning(Params, frozen=True):
    """Nothing is put away unless `confirm` is true."""

    confirm: bool = False


class Configuring(Params, frozen=True):
    """What holds, for a project or for none; with `option`, set to `value` first.

    `for_project`: in the project's own `config.json`, which then holds for it instead of the home's.
    """

    project_path: Path | None = None
    option: Name | None = None
    value: Any = None
    for_project: bool = False


def summary_of(given: Summary) -> Any:
    """The content of a record. TooLarge, InvalidInput."""
    from sync.memory.daily import model  # noqa: PLC0415 - the room, which a start need not load

    code = [model.Code(block.language, block.text) for block in given.code]
    return model.content(given.topic, given.facts, code, given.tags)


def turns_of(given: Turns) -> Any:
    from sync.memory.daily.summarise import Turn  # noqa: PLC0415 - as above

    return tuple(Turn(turn.role, turn.content) for turn in given)


async def record(context: Context[Door], params: Recording) -> DailyOutcomeJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above
    from sync.memory.daily.deeds import Conversation  # noqa: PLC0415

    room = app.daily()
    if params.summary is None and not params.turns and params.session_id is None:
        raise InvalidInput("there is nothing to keep", field="sessionId", hint="Give sessionId, turns or summary.")
    given = Conversation(
        session_id=app.intake.session(params.session_id),
        turns=turns_of(params.turns),
        summary=None if params.summary is None else summary_of(params.summary),
        project_path=params.project_path,
        forced=params.force,
    )
    done = await room.deeds.keep(given)
    await room.settle()
    return contract.outcome(done)


async def add(context: Context[Door], params: Adding) -> DailyOutcomeJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above
    from sync.memory.daily.model import checked_day, checked_time  # noqa: PLC0415

    room = app.daily()
    day = None if params.date is None else checked_day(params.date)
    time = None if params.time is None else checked_time(params.time)
    said = summary_of(params.summary)
    done = await room.deeds.add(day, time, said, params.project_path, ("important",) if params.important else ())
    await room.settle()
    return contract.outcome(done)


async def edit(context: Context[Door], params: Editing) -> DailyOutcomeJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above

    room = app.daily()
    parts = [part for part in PARTS if getattr(params, part) is not None]
    if not parts:
        raise InvalidInput("nothing is to be changed", field="topic", hint="Give topic, facts, code or tags.")
    said = summary_of(Summary(params.topic or "-", params.facts or (), params.code or (), params.tags or ()))
    return contract.outcome(await room.levelled(lambda: room.deeds.edit(params.id, said, parts)))


async def remove(context: Context[Door], params: One) -> DailyOutcomeJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above

    room = app.daily()
    return contract.outcome(await room.levelled(lambda: room.deeds.remove(params.id)))


async def mark(context: Context[Door], params: Marking) -> DailyOutcomeJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above
    from sync.memory.daily.deeds import Outcome  # noqa: PLC0415

    room = app.daily()
    if params.mark == "sensitive":
        await room.deeds.forget(params.id)
        await app.let_go()
        done = Outcome(None, "forgotten")
    else:
        done = await room.deeds.mark(params.id, params.mark, on=params.on)
    await room.settle()
    return contract.outcome(done)


async def undo(context: Context[Door], params: Undoing) -> DailyOutcomeJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above

    room = app.daily()
    return contract.outcome(await room.levelled(lambda: room.deeds.undo(params.event_id)))


async def show(context: Context[Door], params: Showing) -> DailyPageJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above
    from sync.memory.daily.model import checked_day  # noqa: PLC0415

    room = app.daily()
    day = checked_day(params.date) if params.date else room.today
    text, records = await room.page(day, project_id(params.project))
    return {"date": day, "text": text, "records": contract.records(records)}


async def listed(context: Context[Door], params: Listing) -> DailyRecordsJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above
    from sync.memory.daily.model import checked_day  # noqa: PLC0415

    since = None if params.since is None else checked_day(params.since, field="since")
    until = None if params.until is None else checked_day(params.until, field="until")
    found = await app.daily().listed(
        project_id(params.project), since=since, until=until, mark=params.mark, limit=params.limit
    )
    return {"records": contract.records(found)}


async def review(context: Context[Door], params: Reviewing) -> DailyReviewJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above

    return contract.review(await app.daily().review(), chinese=params.language == "zh")


async def merge(context: Context[Door], params: Merging) -> DailyMergedJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above
    from sync.memory.daily.model import checked_day  # noqa: PLC0415

    room = app.daily()
    day = checked_day(params.date) if params.date else room.today
    found = await room.merge(day, dry_run=params.dry_run)
    await room.settle()
    return contract.merged(found, dry_run=params.dry_run)


async def clean(context: Context[Door], params: Cleaning) -> DailyCleanedJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above

    room = app.daily()
    found = await room.clean(dry_run=not params.confirm)
    await room.settle()
    return {"dryRun": not params.confirm, "records": contract.records(found)}


async def config(context: Context[Door], params: Configuring) -> DailyConfigJson:
    app = await context.app.opened()
    from sync.contract import daily as contract  # noqa: PLC0415 - as above

    room = app.daily()
    if params.option is None:
        return contract.configured(await room.options(params.project_path))
    told = await room.set_option(params.project_path, params.option, params.value, for_project=params.for_project)
    await room.settle()
    return contract.configured(told)


async def status(context: Context[Door], params: NoParams) -> DailyStatusJson:  # noqa: ARG001 - every row has params
    app = await context.app.opened()

    room = app.daily()
    shown = (await room.book()).shown()
    return {
        "records": len(shown),
        "days": len({record.date for record in shown}),
        "today": sum(record.date == room.today for record in shown),
        "due": len(await room.clean(dry_run=True)),
        "reviewDue": (await room.review()).due,
        "home": str(room.places.home),
        "notices": dict(room.keeper.pages.notices),
    }


METHODS: Final[list[Method[Door, Any]]] = [
    Method("daily/record", Recording, record, "Keep a conversation: a session, its turns, or the caller's summary."),
    Method("daily/add", Adding, add, "Add a record by hand."),
    Method("daily/edit", Editing, edit, "Change parts of a record."),
    Method("daily/remove", One, remove, "Take a record away; daily/undo brings it back."),
    Method("daily/mark", Marking, mark, "Mark a record as important, outdated, reviewed or sensitive."),
    Method("daily/undo", Undoing, undo, "Take back a deed, an undo included."),
    Method("daily/show", Showing, show, "A day as its page shows it."),
    Method("daily/list", Listing, listed, "Records, newest first."),
    Method("daily/review", Reviewing, review, "What to ask a person about: outdated, doubtful or old records."),
    Method("daily/merge", Merging, merge, "Fold a day's repeats."),
    Method("daily/clean", Cleaning, clean, "What is older than it is to be kept; put away with confirm.", timeout=None),
    Method("daily/config", Configuring, config, "The options of config.json, read or set."),
    Method("daily/status", NoParams, status, "How many records there are, what is due, which pages were left alone."),
]
