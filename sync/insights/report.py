"""The analysis report: activity by day and hour, topics, repeated questions. Pure."""

from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Final

import msgspec

from sync.clock import to_unix_ms
from sync.insights import queries
from sync.insights.queries import ActivityProfile, ScoredInstinct
from sync.insights.state import InsightsState, Occurrences

MAX_TOPICS: Final = 20
MAX_QUESTIONS: Final = 15
MIN_REPEATS: Final = 2
MIN_QUESTION_CHARS: Final = 4  # 继续 and ok are no questions
MIN_TOPIC_EVENTS: Final = 2


class RepeatedQuestion(msgspec.Struct, frozen=True):
    """A question that was asked several times; `evidence`: the newest events with it."""

    text: str
    count: int
    evidence: tuple[str, ...]


class Report(msgspec.Struct, frozen=True):
    """`days` and `hours` are local; `total` counts all events ever."""

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
    """The report of the last `days` days; topics, questions and projects are of all time."""
    shown = [now.date() - timedelta(days=back) for back in range(days - 1, -1, -1)]
    counts = [state.days.get(day.isoformat(), {}) for day in shown]
    kinds: dict[str, int] = {}
    for day in counts:
        for kind, count in day.items():
            kinds[kind] = kinds.get(kind, 0) + count
    instincts = queries.scored_instincts(state, to_unix_ms(now))
    return Report(
        made_at=now,
        source_watermark=state.source_watermark,
        total=sum(item.count for item in state.projects.values()),
        days=tuple((day, sum(of_day.values())) for day, of_day in zip(shown, counts, strict=True)),
        kinds=_most_frequent(kinds, MAX_TOPICS),
        hours=tuple((hour, state.hours.get(str(hour), 0)) for hour in range(24)),
        topics=_ranked_topics(state.topics),
        tags=_most_frequent({name: item.count for name, item in state.tags.items()}, MAX_TOPICS),
        projects=_most_frequent({item.text or name: item.count for name, item in state.projects.items()}, MAX_TOPICS),
        questions=_repeated_questions(state.questions),
        profile=queries.activity_profile(state, project_id=None, limit=8),
        instincts=tuple(item for item in instincts if item.status == "promoted")[:MAX_TOPICS],
    )


def _most_frequent(counts: Mapping[str, int], limit: int) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:limit])


def _ranked_topics(topics: Mapping[str, Occurrences]) -> tuple[tuple[str, int], ...]:
    """The most frequent terms; of overlapping ones the most frequent, else the longest."""
    ranked = sorted(
        ((item.count, term) for term, item in topics.items() if item.count >= MIN_TOPIC_EVENTS),
        key=lambda pair: (-pair[0], -len(pair[1]), pair[1]),
    )
    chosen: list[tuple[str, int]] = []
    for count, term in ranked:
        if not any(_overlap(term, other) and count <= other_count for other, other_count in chosen):
            chosen.append((term, count))
        if len(chosen) >= MAX_TOPICS:
            break
    return tuple(chosen)


def _overlap(one: str, other: str) -> bool:
    """Whether one term contains the other, or the end of one is the beginning of the other."""
    meet = any(first[-2:] == second[:2] or first[-3:] == second[:3] for first, second in ((one, other), (other, one)))
    return one in other or other in one or (meet and not one.isascii())


def _repeated_questions(questions: Mapping[str, Occurrences]) -> tuple[RepeatedQuestion, ...]:
    again = [item for name, item in questions.items() if item.count >= MIN_REPEATS and len(name) >= MIN_QUESTION_CHARS]
    again.sort(key=lambda item: (-item.count, -item.last))
    return tuple(
        RepeatedQuestion(item.text, item.count, tuple(reversed(item.events))) for item in again[:MAX_QUESTIONS]
    )
