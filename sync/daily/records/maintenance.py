"""What may be folded, is due, should be looked at again, or is meant by a few words. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Literal

from sync.daily.conversation.keywords import is_same_text, keywords, terms
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
MIN_QUALITY: Final = 0.4  # quality below which a summary may have missed the point
OLD_AFTER_DAYS: Final = 30  # days
REVIEW_AGAIN_DAYS: Final = 30  # days between two looks at the same record
MAX_QUESTIONS: Final = 5
REVIEW_INTERVAL_DAYS: Final = 7  # days


@dataclass(frozen=True, slots=True)
class RecordMerge:
    """Repeats that become one: the first record, what it then says, and the records that go."""

    target: Record
    content: Content
    repeats: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class ReviewQuestion:
    """A record that a person is asked about, and why."""

    record: Record
    why: Literal["outdated", "doubtful", "old"]

    def text(self, *, chinese: bool) -> str:
        where = f"{self.record.date} #{self.record.number}「{self.record.content.topic}」"
        told = {
            "outdated": ("已标为过时，要删除吗？", "is marked as outdated: delete it?"),
            "doubtful": ("这条摘要可能不准确，要修改吗？", "may have missed the point: edit it?"),
            "old": ("已经有一段时间了，还对吗？", "is some time old: does it still hold?"),
        }[self.why]
        return f"{where} {told[0] if chinese else told[1]}"


def find_repeats(records: Sequence[Record]) -> list[RecordMerge]:
    """The repeats among a day's records of one project; an earlier record takes in the later ones that repeat it."""
    found: list[RecordMerge] = []
    left = list(records)
    while left:
        first, *rest = left
        same = [record for record in rest if record.project_id == first.project_id and _is_repeat(first, record)]
        both = _merged_content([first, *same]) if same else None
        if both is not None:
            found.append(RecordMerge(first, both, tuple(same)))
        left = [record for record in rest if record not in same]
    return found


def _is_repeat(first: Record, other: Record) -> bool:
    if not is_same_text(first.content.topic, other.content.topic):
        return False
    if not first.content.facts or not other.content.facts:
        return True
    known = sum(any(is_same_text(fact, old) for old in first.content.facts) for fact in other.content.facts)
    return known * 2 >= min(len(first.content.facts), len(other.content.facts))


def _merged_content(records: Sequence[Record]) -> Content | None:
    """All that they say, each thing once; None where that is more than one record holds."""
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
    """What is older than it is to be kept. What is important stays."""
    if retention_days < 0:
        return []
    before = (date.fromisoformat(today) - timedelta(days=retention_days)).isoformat()
    return [record for record in records if record.date < before and not {"important", "expired"} & set(record.marks)]


def review_questions(records: Iterable[Record], today: str, limit: int = MAX_QUESTIONS) -> list[ReviewQuestion]:
    """What to ask a person about: outdated ones first, then doubtful summaries, then the oldest."""
    found = [
        question for record in records if (question := _review_question(record, date.fromisoformat(today))) is not None
    ]
    order = {"outdated": 0, "doubtful": 1, "old": 2}
    return sorted(found, key=lambda question: (order[question.why], question.record.moment))[:limit]


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
    """Whether it is time to ask again: there is something to ask, and the last look is a week ago."""
    every = list(records)
    last = max((record.reviewed_on for record in every if record.reviewed_on), default=None)
    if last is not None and (date.fromisoformat(today) - date.fromisoformat(last)).days < REVIEW_INTERVAL_DAYS:
        return False
    return bool(review_questions(every, today, limit=1))


def match_records(records: Sequence[Record], reference: str) -> list[Record]:
    """The records that a person means: by id, by day and number (`2026-01-29 #1`), by day, or by words in them.

    `records`: under the numbers that their pages show.
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
    """Whether a text names daily records as such, by id or by day, rather than by their words."""
    text = text.strip()
    return _DAY.match(text) is not None or any(text in {record.record_id, record.event_id} for record in records)


def keywords_of(value: Content, limit: int = 20) -> list[str]:
    """What a record is found by in `index/keywords.json`: its tags, then the words of topic and facts."""
    said = keywords([f"{value.topic}\n{value.topic}", *value.facts], limit)
    return list(dict.fromkeys([*(tag.lower() for tag in value.tags), *terms(value.topic), *said]))[:limit]
