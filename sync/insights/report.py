"""The analysis report of seed 000: what the last days were about, when, and what was asked again. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from sync.clock import to_unix_ms
from sync.insights import queries
from sync.insights.queries import ActivityProfile, ScoredInstinct
from sync.insights.state import InsightsState, Occurrences

MAX_TOPICS: Final = 20
MAX_QUESTIONS: Final = 15
MIN_REPEATS: Final = 2  # times, and a question was asked again
MIN_QUESTION_CHARS: Final = 4  # characters of a question that can repeat; 继续 and ok are none
MIN_TOPIC_EVENTS: Final = 2  # events that speak of a topic


@dataclass(frozen=True, slots=True)
class RepeatedQuestion:
    """A question that came again; `evidence`: the newest events in which it did."""

    text: str
    count: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """`days` and `hours` are of the local calendar and clock; `total` counts events of all time."""

    made_at: datetime
    source_watermark: int
    total: int
    days: tuple[tuple[date, int], ...]
    kinds: tuple[tuple[str, int], ...]
    hours: tuple[tuple[int, int], ...]
    topics: tuple[tuple[str, int], ...]
    tags: tuple[tuple[str, int], ...]
    projects: tuple[tuple[str, int], ...]
    questions: tuple[RepeatedQuestion, ...]
    profile: ActivityProfile
    instincts: tuple[ScoredInstinct, ...]


def build_report(state: InsightsState, now: datetime, *, days: int) -> Report:
    """The report of so many days up to today; topics, questions and projects are of all time."""
    shown = [now.date() - timedelta(days=back) for back in range(days - 1, -1, -1)]
    counts = [state.days.get(day.isoformat(), {}) for day in shown]
    kinds: dict[str, int] = {}
    for day in counts:
        for kind, count in day.items():
            kinds[kind] = kinds.get(kind, 0) + count
    judged = queries.scored_instincts(state, to_unix_ms(now))
    return Report(
        made_at=now,
        source_watermark=state.source_watermark,
        total=sum(item.count for item in state.projects.values()),
        days=tuple((day, sum(found.values())) for day, found in zip(shown, counts, strict=True)),
        kinds=_most_frequent(kinds, MAX_TOPICS),
        hours=tuple((hour, state.hours.get(str(hour), 0)) for hour in range(24)),
        topics=_ranked_topics(state.topics),
        tags=_most_frequent({name: item.count for name, item in state.tags.items()}, MAX_TOPICS),
        projects=_most_frequent({item.text or name: item.count for name, item in state.projects.items()}, MAX_TOPICS),
        questions=_repeated_questions(state.questions),
        profile=queries.activity_profile(state, project_id=None, limit=8),
        instincts=tuple(item for item in judged if item.status == "promoted")[:MAX_TOPICS],
    )


def _most_frequent(counts: Mapping[str, int], limit: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit])


def _ranked_topics(topics: Mapping[str, Occurrences]) -> tuple[tuple[str, int], ...]:
    """The terms that were seen most; of those that are pieces of one, the most common, else the longest."""
    ranked = sorted(
        ((item.count, term) for term, item in topics.items() if item.count >= MIN_TOPIC_EVENTS),
        key=lambda pair: (-pair[0], -len(pair[1]), pair[1]),
    )
    chosen: list[tuple[str, int]] = []
    for count, term in ranked:
        if not any(_overlap(term, known) and count <= other for known, other in chosen):
            chosen.append((term, count))
        if len(chosen) >= MAX_TOPICS:
            break
    return tuple(chosen)


def _overlap(one: str, other: str) -> bool:
    """Whether two terms are pieces of one: one holds the other, or two characters of theirs are the same."""
    meet = any(first[-2:] == second[:2] or first[-3:] == second[:3] for first, second in ((one, other), (other, one)))
    return one in other or other in one or (meet and not one.isascii())


def _repeated_questions(questions: Mapping[str, Occurrences]) -> tuple[RepeatedQuestion, ...]:
    again = [item for name, item in questions.items() if item.count >= MIN_REPEATS and len(name) >= MIN_QUESTION_CHARS]
    again.sort(key=lambda item: (-item.count, -item.last))
    return tuple(
        RepeatedQuestion(item.text, item.count, tuple(reversed(item.events))) for item in again[:MAX_QUESTIONS]
    )
