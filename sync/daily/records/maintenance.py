"""Find records that repeat another, have expired, need a review, or match a reference. Pure."""

import re
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Final, Literal

import msgspec

from sync.daily.conversation.keywords import is_same_text, keywords, named_words
from sync.daily.model import (
    MAX_CODE_BLOCKS,
    MAX_CONTENT_CHARS,
    MAX_FACTS,
    MAX_TAGS,
    Content,
    Record,
    normalised_content,
)

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?: .*)?$", re.ASCII)
MIN_QUALITY: Final = 0.4  # below it a summary may have missed the point
OLD_AFTER_DAYS: Final = 30
REVIEW_AGAIN_DAYS: Final = 30  # between two reviews of one record
MAX_QUESTIONS: Final = 5
REVIEW_INTERVAL_DAYS: Final = 7  # between two rounds of questions


class RecordMerge(msgspec.Struct, frozen=True):
    """A merge: the first record, its merged content, and the repeats to remove."""

    target: Record
    content: Content
    repeats: tuple[Record, ...]


class ReviewQuestion(msgspec.Struct, frozen=True):
    """Ask the user about a record, and why."""

    record: Record
    why: Literal["outdated", "doubtful", "old"]

    def text(self, *, chinese: bool) -> str:
        name = f"{self.record.date} #{self.record.number}「{self.record.content.topic}」"
        questions = {
            "outdated": ("已标为过时，要删除吗？", "is marked as outdated: delete it?"),
            "doubtful": ("这条摘要可能不准确，要修改吗？", "may have missed the point: edit it?"),
            "old": ("已经有一段时间了，还对吗？", "is some time old: does it still hold?"),
        }[self.why]
        return f"{name} {questions[0] if chinese else questions[1]}"


def find_repeats(records: Sequence[Record]) -> list[RecordMerge]:
    """Find repeats among a day's records. A later record merges into an earlier one of its project and author."""
    merges: list[RecordMerge] = []
    left = list(records)
    while left:
        first, *rest = left
        same = [record for record in rest if record.merge_key == first.merge_key and _is_repeat(first, record)]
        merged = _merged_content([first, *same]) if same else None
        if merged is not None:
            merges.append(RecordMerge(first, merged, tuple(same)))
        left = [record for record in rest if record not in same]
    return merges


def _is_repeat(first: Record, other: Record) -> bool:
    if not is_same_text(first.content.topic, other.content.topic):
        return False
    if not first.content.facts or not other.content.facts:
        return True
    shared = sum(any(is_same_text(fact, old) for old in first.content.facts) for fact in other.content.facts)
    return shared * 2 >= min(len(first.content.facts), len(other.content.facts))


def _merged_content(records: Sequence[Record]) -> Content | None:
    """Everything these records say, without repetitions; None if it exceeds the limits of one record."""
    facts: list[str] = []
    for record in records:
        facts += [fact for fact in record.content.facts if not any(is_same_text(fact, old) for old in facts)]
    code = dict.fromkeys(block for record in records for block in record.content.code)
    tags = dict.fromkeys(tag for record in records for tag in record.content.tags)
    size = sum(map(len, facts)) + sum(len(block.text) for block in code) + 1_000
    if len(facts) > MAX_FACTS or len(code) > MAX_CODE_BLOCKS or len(tags) > MAX_TAGS or size > MAX_CONTENT_CHARS:
        return None
    return normalised_content(records[0].content.topic, facts, code, tags)


def expired_records(records: Iterable[Record], today: str, retention_days: int) -> list[Record]:
    """The records older than `retention_days`, except important ones."""
    if retention_days < 0:
        return []
    before = (date.fromisoformat(today) - timedelta(days=retention_days)).isoformat()
    return [record for record in records if record.date < before and not {"important", "expired"} & set(record.marks)]


def review_questions(records: Iterable[Record], today: str, limit: int = MAX_QUESTIONS) -> list[ReviewQuestion]:
    """What to ask the user: outdated records first, then doubtful summaries, then the oldest."""
    questions = [
        question for record in records if (question := _review_question(record, date.fromisoformat(today))) is not None
    ]
    order = {"outdated": 0, "doubtful": 1, "old": 2}
    return sorted(questions, key=lambda question: (order[question.why], question.record.moment))[:limit]


def _review_question(record: Record, today: date) -> ReviewQuestion | None:
    if "outdated" in record.marks:
        return ReviewQuestion(record, "outdated")
    seen = record.reviewed_on
    if seen is not None and (today - date.fromisoformat(seen)).days < REVIEW_AGAIN_DAYS:
        return None
    if record.quality is not None and record.quality < MIN_QUALITY and record.author != "hand" and seen is None:
        return ReviewQuestion(record, "doubtful")
    if (today - date.fromisoformat(record.date)).days >= OLD_AFTER_DAYS and "important" not in record.marks:
        return ReviewQuestion(record, "old")
    return None


def review_is_due(records: Iterable[Record], today: str) -> bool:
    """Whether there is something to ask and the last review is at least a week old."""
    records = list(records)
    last = max((record.reviewed_on for record in records if record.reviewed_on), default=None)
    if last is not None and (date.fromisoformat(today) - date.fromisoformat(last)).days < REVIEW_INTERVAL_DAYS:
        return False
    return bool(review_questions(records, today, limit=1))


def match_records(records: Sequence[Record], reference: str) -> list[Record]:
    """The records that a reference means: by id, by day and number (`2026-01-29 #1`), by day, or by their words.

    `records` have the numbers that their pages show.
    """
    reference = reference.strip()
    by_id = [record for record in records if reference in {record.record_id, record.event_id}]
    if by_id:
        return by_id
    day, _, rest = reference.partition(" ")
    number = rest.strip().lower().removeprefix("session").strip().lstrip("#").strip()
    if len(day) == 10 and day[4:5] == "-":
        return [record for record in records if record.date == day and (not number or str(record.number) == number)]
    exact = [record for record in records if reference.lower() == record.content.topic.lower()]
    return exact or [
        record for record in records if reference and reference.lower() in record.content.full_text.lower()
    ]


def names_records(records: Sequence[Record], text: str) -> bool:
    """Whether a text refers to records by id or by day, not by their words."""
    text = text.strip()
    return _DAY.match(text) is not None or any(text in {record.record_id, record.event_id} for record in records)


def keywords_of(value: Content, limit: int = 20) -> list[str]:
    """A record's keywords in `index/keywords.json`: its tags, then the words of its topic and facts."""
    words = keywords([f"{value.topic}\n{value.topic}", *value.facts], limit)
    return list(dict.fromkeys([*(tag.lower() for tag in value.tags), *named_words(value.topic), *words]))[:limit]
