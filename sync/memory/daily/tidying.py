"""What may be folded, is due, should be looked at again, or is meant by a few words. Pure."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final, Literal

from sync.memory.daily.model import CONTENT_LENGTH, MOST_CODE, MOST_FACTS, MOST_TAGS, Content, Record, content
from sync.memory.daily.words import keywords, says_the_same, terms

_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}(?: .*)?$", re.ASCII)
DOUBTFUL: Final = 0.4  # quality below which a summary may have missed the point
OLD_AFTER: Final = 30  # days
AGAIN_AFTER: Final = 30  # days between two looks at the same record
MOST_ASKED: Final = 5
REVIEW_EVERY: Final = 7  # days


@dataclass(frozen=True, slots=True)
class Fold:
    """Repeats that become one: the first record, what it then says, and the records that go."""

    into: Record
    content: Content
    folded: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class Question:
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


def folds(records: Sequence[Record]) -> list[Fold]:
    """The repeats among a day's records of one project; an earlier record takes in the later ones that repeat it."""
    found: list[Fold] = []
    left = list(records)
    while left:
        first, *rest = left
        same = [record for record in rest if record.project_id == first.project_id and _repeats(first, record)]
        both = _together([first, *same]) if same else None
        if both is not None:
            found.append(Fold(first, both, tuple(same)))
        left = [record for record in rest if record not in same]
    return found


def _repeats(first: Record, other: Record) -> bool:
    if not says_the_same(first.content.topic, other.content.topic):
        return False
    if not first.content.facts or not other.content.facts:
        return True
    known = sum(any(says_the_same(fact, old) for old in first.content.facts) for fact in other.content.facts)
    return known * 2 >= min(len(first.content.facts), len(other.content.facts))


def _together(records: Sequence[Record]) -> Content | None:
    """All that they say, each thing once; None where that is more than one record holds."""
    facts: list[str] = []
    for record in records:
        facts += [fact for fact in record.content.facts if not any(says_the_same(fact, old) for old in facts)]
    code = dict.fromkeys(block for record in records for block in record.content.code)
    tags = dict.fromkeys(tag for record in records for tag in record.content.tags)
    size = sum(map(len, facts)) + sum(len(block.text) for block in code) + 1_000
    if len(facts) > MOST_FACTS or len(code) > MOST_CODE or len(tags) > MOST_TAGS or size > CONTENT_LENGTH:
        return None
    return content(records[0].content.topic, facts, code, tags)


def due(records: Iterable[Record], today: str, retention_days: int) -> list[Record]:
    """What is older than it is to be kept. What is important stays."""
    if retention_days < 0:
        return []
    before = (date.fromisoformat(today) - timedelta(days=retention_days)).isoformat()
    return [record for record in records if record.date < before and not {"important", "expired"} & set(record.marks)]


def questions(records: Iterable[Record], today: str, most: int = MOST_ASKED) -> list[Question]:
    """What to ask a person about: outdated ones first, then doubtful summaries, then the oldest."""
    found = [question for record in records if (question := _question(record, date.fromisoformat(today))) is not None]
    order = {"outdated": 0, "doubtful": 1, "old": 2}
    return sorted(found, key=lambda question: (order[question.why], question.record.moment))[:most]


def _question(record: Record, today: date) -> Question | None:
    if "outdated" in record.marks:
        return Question(record, "outdated")
    seen = record.reviewed_on
    if seen is not None and (today - date.fromisoformat(seen)).days < AGAIN_AFTER:
        return None
    if record.quality is not None and record.quality < DOUBTFUL and record.author != "hand" and seen is None:
        return Question(record, "doubtful")
    if (today - date.fromisoformat(record.date)).days >= OLD_AFTER and "important" not in record.marks:
        return Question(record, "old")
    return None


def review_is_due(records: Iterable[Record], today: str) -> bool:
    """Whether it is time to ask again: there is something to ask, and the last look is a week ago."""
    every = list(records)
    last = max((record.reviewed_on for record in every if record.reviewed_on), default=None)
    if last is not None and (date.fromisoformat(today) - date.fromisoformat(last)).days < REVIEW_EVERY:
        return False
    return bool(questions(every, today, most=1))


def meant(records: Sequence[Record], text: str) -> list[Record]:
    """The records that a person means: by id, by day and number (`2026-01-29 #1`), by day, or by words in them.

    `records`: under the numbers that their pages show.
    """
    text = text.strip()
    by_id = [record for record in records if text in {record.record_id, record.event_id}]
    if by_id:
        return by_id
    day, _, rest = text.partition(" ")
    number = rest.strip().lower().removeprefix("session").strip().lstrip("#").strip()
    if len(day) == 10 and day[4:5] == "-":
        return [record for record in records if record.date == day and (not number or str(record.number) == number)]
    exact = [record for record in records if text.lower() == record.content.topic.lower()]
    return exact or [record for record in records if text and text.lower() in record.content.words.lower()]


def names_records(records: Sequence[Record], text: str) -> bool:
    """Whether a text names daily records as such, by id or by day, rather than by their words."""
    text = text.strip()
    return _DAY.match(text) is not None or any(text in {record.record_id, record.event_id} for record in records)


def keywords_of(value: Content, most: int = 20) -> list[str]:
    """What a record is found by in `index/keywords.json`: its tags, then the words of topic and facts."""
    said = keywords([f"{value.topic}\n{value.topic}", *value.facts], most)
    return list(dict.fromkeys([*(tag.lower() for tag in value.tags), *terms(value.topic), *said]))[:most]
