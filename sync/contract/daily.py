"""Daily records as JSON."""

from collections.abc import Iterable

from sync.memory.daily import config as options
from sync.memory.daily.commander import Reply
from sync.memory.daily.deeds import Outcome
from sync.memory.daily.model import Record
from sync.memory.daily.places import Options
from sync.memory.daily.room import Review
from sync.memory.daily.tidying import Fold
from sync.published.daily import (
    CommandJson,
    DailyConfigJson,
    DailyMergedJson,
    DailyOutcomeJson,
    DailyRecordJson,
    DailyReviewJson,
)


def record(value: Record) -> DailyRecordJson:
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
        "author": value.author,
        "sessionId": value.session_id,
        "projectId": value.project_id,
        "projectPath": value.project_path,
        "deviceId": value.device_id,
    }


def records(values: Iterable[Record]) -> list[DailyRecordJson]:
    return [record(value) for value in values]


def outcome(value: Outcome) -> DailyOutcomeJson:
    found = None if value.record is None else record(value.record)
    return {"record": found, "reason": value.reason, "eventId": value.event_id}


def review(value: Review, *, chinese: bool) -> DailyReviewJson:
    return {
        "due": value.due,
        "questions": [
            {"record": record(item.record), "why": item.why, "text": item.text(chinese=chinese)}
            for item in value.questions
        ],
    }


def merged(values: Iterable[Fold], *, dry_run: bool) -> DailyMergedJson:
    return {
        "dryRun": dry_run,
        "folds": [
            {
                "into": value.into.record_id,
                "topic": value.content.topic,
                "folded": [item.record_id for item in value.folded],
            }
            for value in values
        ],
    }


def configured(value: Options) -> DailyConfigJson:
    return {"path": str(value.path), "options": options.to_json(value.value), "problem": value.problem}


def reply(value: Reply, *, recall: bool) -> CommandJson:
    found: CommandJson = {
        "command": value.command.kind.value,
        "done": value.done,
        "message": value.message,
        "recall": recall,
        "eventId": value.event_id,
    }
    if value.records is not None:
        found["records"] = records(value.records)
    if value.hits is not None:
        found["hits"] = list(value.hits)
    if value.page is not None:
        found["page"] = value.page
    if value.options is not None:
        found["config"] = configured(value.options)
    return found
