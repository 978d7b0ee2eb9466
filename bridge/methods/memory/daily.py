"""`daily/*`: what is kept of each session, by day."""

from typing import Annotated, Any, Final, Literal

import msgspec

from bridge.api.filter_params import resolve_project_id
from bridge.api.method_table import Params
from sync.app import App
from sync.contract import daily as contract
from sync.contract.daily import (
    DailyCleanedJson,
    DailyConfigJson,
    DailyMarkJson,
    DailyMergedJson,
    DailyOutcomeJson,
    DailyPageJson,
    DailyRecordsJson,
    DailyReviewJson,
    DailyTakenJson,
)
from sync.daily import model
from sync.daily.conversation.extractive_summary import SummaryTurn
from sync.daily.model import parse_day, parse_time
from sync.daily.record_service import ChangeResult, RecordRequest
from sync.daily.service import DailyStatusJson
from sync.errors import InvalidInput
from sync.log.model import MAX_NAME_LENGTH, Door
from sync.texts.language import ZH

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
Day = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$", examples=["2026-01-08"])]
Text = Annotated[str, msgspec.Meta(max_length=100_000)]
Limit = Annotated[int, msgspec.Meta(ge=1, le=1_000)]
EDITABLE_PARTS: Final = ("topic", "facts", "code", "tags")


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


class RecordingParams(Params, frozen=True):
    """A conversation: its session, its turns, or a summary of it. `force`: a person asked for it."""

    session_id: Name | None = None
    turns: Turns = ()
    summary: Summary | None = None
    project_path: Path | None = None
    force: bool = False


class Adding(Params, frozen=True):
    """A record by hand; for today and now by default."""

    summary: Summary
    date: Day | None = None
    time: Annotated[str, msgspec.Meta(pattern=r"^\d{2}:\d{2}:\d{2}$", examples=["18:30:00"])] | None = None
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
    """A change by its event, or this device's last one."""

    event_id: Name | None = None


class Showing(Params, frozen=True):
    """A day, today by default; of one project, or of all."""

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
    language: Literal["zh", "en"] | None = None


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


def record_content(summary: Summary) -> Any:
    """The content of a record. TooLarge, InvalidInput."""
    code = [model.Code(block.language, block.text) for block in summary.code]
    return model.normalised_content(summary.topic, summary.facts, code, summary.tags)


def summary_turns(turns: Turns) -> Any:
    return tuple(SummaryTurn(turn.role, turn.content) for turn in turns)


async def record(app: App, params: RecordingParams) -> DailyOutcomeJson:
    """Record a conversation: a session, its turns, or a summary of it."""
    service = app.daily()
    if params.summary is None and not params.turns and params.session_id is None:
        raise InvalidInput("there is nothing to keep", field="sessionId", hint="Give sessionId, turns or summary.")
    given = RecordRequest(
        session_id=app.draft_builder.safe_session_id(params.session_id),
        turns=summary_turns(params.turns),
        summary=None if params.summary is None else record_content(params.summary),
        project_path=params.project_path,
        is_explicit=params.force,
    )
    done = await service.record_service.record_conversation(given)
    await service.reconcile()
    return contract.change_result_to_json(done)


async def add(app: App, params: Adding) -> DailyOutcomeJson:
    """Add a record; whoever calls, it is a program's word."""
    service = app.daily()
    day = None if params.date is None else parse_day(params.date)
    time = None if params.time is None else parse_time(params.time)
    said = record_content(params.summary)
    done = await service.record_service.add(
        day, time, said, params.project_path, ("important",) if params.important else (), door=Door.PROGRAM
    )
    await service.reconcile()
    return contract.change_result_to_json(done)


async def edit(app: App, params: Editing) -> DailyOutcomeJson:
    """Change parts of a record."""
    service = app.daily()
    parts = [part for part in EDITABLE_PARTS if getattr(params, part) is not None]
    if not parts:
        raise InvalidInput("nothing is to be changed", field="topic", hint="Give topic, facts, code or tags.")
    said = record_content(Summary(params.topic or "-", params.facts or (), params.code or (), params.tags or ()))
    return contract.change_result_to_json(
        await service.apply_and_reconcile(lambda: service.record_service.edit(params.id, said, parts))
    )


async def remove(app: App, params: One) -> DailyOutcomeJson:
    """Remove a record; daily/undo restores it."""
    service = app.daily()
    return contract.change_result_to_json(
        await service.apply_and_reconcile(lambda: service.record_service.remove(params.id))
    )


async def mark(app: App, params: Marking) -> DailyOutcomeJson:
    """Mark a record as important, outdated, reviewed or sensitive."""
    service = app.daily()
    if params.mark == "sensitive":
        await service.record_service.forget(params.id, before=app.erasure.keep_retracted)
        await app.erasure.apply()
        done = ChangeResult(None, "forgotten")
    else:
        done = await service.record_service.mark(params.id, params.mark, on=params.on)
    await service.reconcile()
    return contract.change_result_to_json(done)


async def undo(app: App, params: Undoing) -> DailyOutcomeJson:
    """Undo a change of the daily records, an undo included."""
    service = app.daily()
    return contract.change_result_to_json(
        await service.apply_and_reconcile(lambda: service.record_service.undo(params.event_id))
    )


async def show(app: App, params: Showing) -> DailyPageJson:
    """A day, as on its page."""
    service = app.daily()
    day = parse_day(params.date) if params.date else service.today
    text, records = await service.day_page(day, resolve_project_id(params.project))
    return {"date": day, "text": text, "records": contract.records_to_json(records)}


async def list_records(app: App, params: Listing) -> DailyRecordsJson:
    """Records, newest first."""
    since = None if params.since is None else parse_day(params.since, field="since")
    until = None if params.until is None else parse_day(params.until, field="until")
    found = await app.daily().list_records(
        resolve_project_id(params.project), since=since, until=until, mark=params.mark, limit=params.limit
    )
    return {"records": contract.records_to_json(found)}


async def review(app: App, params: Reviewing) -> DailyReviewJson:
    """The records to ask the user about: outdated, doubtful or old ones."""
    return contract.review_to_json(
        await app.daily().review_questions(), chinese=await app.memory_service.language(params.language) is ZH
    )


async def merge(app: App, params: Merging) -> DailyMergedJson:
    """Merge repeated records of a day."""
    service = app.daily()
    day = parse_day(params.date) if params.date else service.today
    found = await service.merge_repeats(day, dry_run=params.dry_run)
    await service.reconcile()
    return contract.merge_to_json(found, dry_run=params.dry_run)


async def clean(app: App, params: Cleaning) -> DailyCleanedJson:
    """Records older than their retention; with confirm they expire."""
    service = app.daily()
    found = await service.expire_old_records(dry_run=not params.confirm)
    await service.reconcile()
    return {"dryRun": not params.confirm, "records": contract.records_to_json(found)}


async def config(app: App, params: Configuring) -> DailyConfigJson:
    """The options of config.json, read or set."""
    service = app.daily()
    if params.option is None:
        return contract.config_to_json(await service.options(params.project_path))
    options = await service.set_option(params.project_path, params.option, params.value, for_project=params.for_project)
    await service.reconcile()
    return contract.config_to_json(options)


async def take(app: App) -> DailyTakenJson:
    """Make the pages and records that repositories brought the person's own."""
    service = app.daily()
    await service.reconcile()
    taken = await service.worker.take()
    await service.reconcile()
    return {"taken": taken}


async def status(app: App) -> DailyStatusJson:
    """The number of records, what is due, and pages that were not written."""
    return await app.daily().status()
