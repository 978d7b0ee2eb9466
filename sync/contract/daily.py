"""Daily records as JSON."""

from collections.abc import Iterable

from sync.daily import config as options
from sync.daily.commands.command_handler import CommandReply
from sync.daily.model import Record
from sync.daily.pages.page_folders import EffectiveOptions
from sync.daily.record_service import ChangeResult
from sync.daily.records.maintenance import RecordMerge
from sync.daily.service import Review
from sync.published.daily import (
    CommandJson,
    DailyConfigJson,
    DailyMergedJson,
    DailyOutcomeJson,
    DailyRecordJson,
    DailyReviewJson,
)


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
        "author": value.author,
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
