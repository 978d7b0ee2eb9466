"""Answers about daily records, and how they become JSON."""

from collections.abc import Iterable
from typing import Any, Literal, NotRequired, TypedDict

from sync.contract.recall import HitJson
from sync.daily import config as options
from sync.daily.commands.command_handler import CommandReply
from sync.daily.model import Record
from sync.daily.pages.page_folders import EffectiveOptions
from sync.daily.record_service import ChangeResult
from sync.daily.records.maintenance import RecordMerge
from sync.daily.service import Review

CommandName = Literal[
    "save",
    "skip",
    "sensitive",
    "search",
    "show",
    "delete",
    "clean",
    "settings",
    "undo",
    "remember",
    "forget_last",
    "pause",
    "facts",
]
DailyMarkJson = Literal["important", "outdated", "reviewed", "expired"]


class DailyCodeJson(TypedDict):
    language: str
    text: str


class DailyRecordJson(TypedDict):
    """What is kept of one session. `quality` of the summary is 0 to 1; null for a record made by hand.

    `label`, as 来自 手机, and the author `device`: of what another device recorded, or changed.
    """

    id: str
    date: str
    time: str
    session: int
    topic: str
    facts: list[str]
    code: list[DailyCodeJson]
    tags: list[str]
    marks: list[DailyMarkJson]
    quality: float | None
    author: Literal["extractive", "caller", "hand", "device"]
    label: str | None
    sessionId: str | None
    projectId: str
    projectPath: str | None
    deviceId: str


class DailyOutcomeJson(TypedDict):
    """`eventId` is the change, for `daily/undo`; `reason` says why there is none."""

    record: DailyRecordJson | None
    reason: str | None
    eventId: str | None


class DailyRecordsJson(TypedDict):
    records: list[DailyRecordJson]


class DailyTakenJson(TypedDict):
    """How many pages and records of repositories are the person's now."""

    taken: int


class DailyPageJson(TypedDict):
    """`text` is the page; empty if the day has none."""

    date: str
    text: str
    records: list[DailyRecordJson]


class DailyQuestionJson(TypedDict):
    record: DailyRecordJson
    why: Literal["outdated", "doubtful", "old"]
    text: str


class DailyReviewJson(TypedDict):
    """`due`: whether it is time to ask."""

    due: bool
    questions: list[DailyQuestionJson]


class DailyFoldJson(TypedDict):
    into: str
    topic: str
    folded: list[str]


class DailyMergedJson(TypedDict):
    dryRun: bool
    folds: list[DailyFoldJson]


class DailyCleanedJson(TypedDict):
    dryRun: bool
    records: list[DailyRecordJson]


class DailyConfigJson(TypedDict):
    """The `options` in force. `problem`: the file cannot be read, so the defaults are in force."""

    path: str
    options: dict[str, Any]
    problem: str | None


class CommandJson(TypedDict):
    """`command` is null if the message is no command; `recall`: whether a search for the message makes sense.

    `message` is for the person, in the language of the command. What else there is depends on the command.
    """

    command: CommandName | None
    done: bool
    message: str
    recall: bool
    records: NotRequired[list[DailyRecordJson]]
    hits: NotRequired[list[HitJson]]
    page: NotRequired[str]
    config: NotRequired[DailyConfigJson]
    eventId: NotRequired[str | None]


def record_to_json(value: Record) -> DailyRecordJson:
    return {
        "id": value.record_id,
        "date": value.date,
        "time": value.time,
        "session": value.number,
        "topic": value.content.topic,
        "facts": list(value.content.facts),
        "code": [{"language": block.language, "text": block.text} for block in value.content.code],
        "tags": list(value.content.tags),
        "marks": list(value.marks),
        "quality": value.quality,
        "author": value.author if value.label is None else "device",
        "label": value.label,
        "sessionId": value.session_id,
        "projectId": value.project_id,
        "projectPath": value.project_path,
        "deviceId": value.device_id,
    }


def records_to_json(values: Iterable[Record]) -> list[DailyRecordJson]:
    return [record_to_json(value) for value in values]


def change_result_to_json(value: ChangeResult) -> DailyOutcomeJson:
    found = None if value.record is None else record_to_json(value.record)
    return {"record": found, "reason": value.reason, "eventId": value.event_id}


def review_to_json(value: Review, *, chinese: bool) -> DailyReviewJson:
    return {
        "due": value.is_due,
        "questions": [
            {"record": record_to_json(item.record), "why": item.why, "text": item.text(chinese=chinese)}
            for item in value.questions
        ],
    }


def merge_to_json(values: Iterable[RecordMerge], *, dry_run: bool) -> DailyMergedJson:
    return {
        "dryRun": dry_run,
        "folds": [
            {
                "into": value.target.record_id,
                "topic": value.content.topic,
                "folded": [item.record_id for item in value.repeats],
            }
            for value in values
        ],
    }


def config_to_json(value: EffectiveOptions) -> DailyConfigJson:
    return {"path": str(value.path), "options": options.to_json(value.value), "problem": value.problem}


def command_reply_to_json(value: CommandReply, *, recall: bool) -> CommandJson:
    found: CommandJson = {
        "command": value.command.kind.value,
        "done": value.done,
        "message": value.message,
        "recall": recall,
        "eventId": value.event_id,
    }
    if value.records is not None:
        found["records"] = records_to_json(value.records)
    if value.hits is not None:
        found["hits"] = list(value.hits)
    if value.page is not None:
        found["page"] = value.page
    if value.options is not None:
        found["config"] = config_to_json(value.options)
    return found
