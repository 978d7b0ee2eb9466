"""Answers from the state: next steps, activity profile, instincts. Pure; the time is an argument."""

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from sync.insights.state import ALL_PROJECTS, DAY_MS, InsightsState, Instinct, Occurrences
from sync.lessons.corrections import instinct_id
from sync.log.model import GLOBAL_PROJECT

MIN_TRANSITIONS: Final = 3  # of one project; with fewer, all projects are used
HALF_LIFE_DAYS: Final = 60.0  # of an event's weight
PRIOR_AGAINST: Final = 1.0  # weight against every instinct, so that one event alone makes none certain
PROMOTION_CONFIDENCE: Final = 0.6
RETIREMENT_CONFIDENCE: Final = 0.25
MIN_SUPPORTING_SESSIONS: Final = 2  # for a promotion


class NextStep(msgspec.Struct, frozen=True):
    """A possible next step. `share`: of all transitions from here; `evidence`: its newest events."""

    step: str
    share: float
    count: int
    evidence: tuple[str, ...]


class NextSteps(msgspec.Struct, frozen=True):
    """`scope`: the project, or empty for all projects."""

    scope: str
    session_id: str | None
    stage: str | None
    type: str | None
    stages: tuple[NextStep, ...]
    types: tuple[NextStep, ...]


class LearnedPreference(msgspec.Struct, frozen=True):
    text: str
    count: int
    evidence: tuple[str, ...]


class ActivityProfile(msgspec.Struct, frozen=True):
    """Names with their counts, most frequent first."""

    project_id: str | None
    languages: tuple[tuple[str, int], ...]
    tools: tuple[tuple[str, int], ...]
    stages: tuple[tuple[str, int], ...]
    hours: tuple[tuple[str, int], ...]
    preferences: tuple[LearnedPreference, ...]
    events: int


class ScoredInstinct(msgspec.Struct, frozen=True):
    """An instinct with its confidence at a moment."""

    instinct_id: str
    kind: str  # correct: the user's correction; keep: what they approved; fails: a tool call that fails
    text: str
    stage: str | None
    project_id: str
    status: str  # promoted, candidate, retired
    confidence: float
    count: int
    last_at_ms: int
    supporting_events: tuple[str, ...]
    opposing_events: tuple[str, ...]


def next_steps(
    state: InsightsState, *, project_id: str | None, session_id: str | None, stage: str | None, limit: int
) -> NextSteps:
    """The usual next steps of a session, by default of the project's newest one."""
    session_id = session_id or _newest_session(state, project_id)
    session = state.sessions.get(session_id) if session_id else None
    at_stage = stage.strip().lower() if stage else (session.stage if session else None)
    at_type = session.type if session else None
    project = project_id or (session.project_id if session else None)
    scope = (
        project if project and _transition_count(state, project, at_stage, at_type) >= MIN_TRANSITIONS else ALL_PROJECTS
    )
    return NextSteps(
        scope=scope,
        session_id=session_id,
        stage=at_stage,
        type=at_type,
        stages=_ranked_steps(state.stages.get(scope, {}).get(at_stage or "", {}), limit),
        types=_ranked_steps(state.types.get(scope, {}).get(at_type or "", {}), limit),
    )


def activity_profile(state: InsightsState, *, project_id: str | None, limit: int) -> ActivityProfile:
    scope = project_id or ALL_PROJECTS
    preferences = sorted(state.preferences.values(), key=lambda item: (-item.last, item.text))
    projects = state.projects.items()
    return ActivityProfile(
        project_id=project_id,
        languages=_most_frequent(state.languages.get(scope, {}), limit),
        tools=_most_frequent(state.tools.get(scope, {}), limit),
        stages=_most_frequent(state.usual.get(scope, {}), limit),
        hours=_most_frequent(state.hours, limit),
        preferences=tuple(LearnedPreference(item.text, item.count, tuple(item.events)) for item in preferences[:limit]),
        events=sum(item.count for name, item in projects if project_id in {None, name}),
    )


def scored_instincts(state: InsightsState, now_ms: int, *, project_id: str | None = None) -> list[ScoredInstinct]:
    """All instincts, or those that hold in a project, the most confident first."""
    instincts = [
        score_instinct(key, item, now_ms)
        for key, item in state.instincts.items()
        if project_id is None or item.project_id in {project_id, GLOBAL_PROJECT}
    ]
    return sorted(instincts, key=lambda item: (-item.confidence, -item.last_at_ms, item.instinct_id))


def score_instinct(key: str, instinct: Instinct, now_ms: int) -> ScoredInstinct:
    """An instinct's confidence and status at a moment.

    An event's weight halves every 60 days. Without evidence from the user or this device nothing is promoted.
    """
    speaks_for = speaks_against = 0.0
    for proof in instinct.proofs:
        weight = proof.weight * math.pow(0.5, max(0, now_ms - proof.at_ms) / DAY_MS / HALF_LIFE_DAYS)
        speaks_for += max(0.0, weight)
        speaks_against -= min(0.0, weight)
    confidence = round(speaks_for / (speaks_for + speaks_against + PRIOR_AGAINST), 4)
    witnesses = {proof.session_id for proof in instinct.proofs if proof.weight > 0}
    return ScoredInstinct(
        instinct_id=instinct_id(key),
        kind=instinct.kind,
        text=instinct.text,
        stage=instinct.stage,
        project_id=instinct.project_id,
        status=_status(confidence, len(witnesses), trusted=instinct.trusted),
        confidence=confidence,
        count=instinct.count,
        last_at_ms=max(proof.at_ms for proof in instinct.proofs),
        supporting_events=tuple(proof.event_id for proof in instinct.proofs if proof.weight > 0),
        opposing_events=tuple(proof.event_id for proof in instinct.proofs if proof.weight < 0),
    )


def _status(confidence: float, session_count: int, *, trusted: bool) -> str:
    if confidence < RETIREMENT_CONFIDENCE:
        return "retired"
    return (
        "promoted"
        if confidence >= PROMOTION_CONFIDENCE and session_count >= MIN_SUPPORTING_SESSIONS and trusted
        else "candidate"
    )


def _newest_session(state: InsightsState, project_id: str | None) -> str | None:
    mine = [name for name, here in state.sessions.items() if project_id in {None, here.project_id}]
    return max(mine, key=lambda name: state.sessions[name].last, default=None)


def _transition_count(state: InsightsState, project: str, stage: str | None, kind: str | None) -> int:
    """The number of a project's own transitions from a stage or type."""
    tables = (state.stages.get(project, {}).get(stage or "", {}), state.types.get(project, {}).get(kind or "", {}))
    return max(sum(item.count for item in table.values()) for table in tables)


def _ranked_steps(table: Mapping[str, Occurrences], limit: int) -> tuple[NextStep, ...]:
    total = sum(item.count for item in table.values())
    ranked = sorted(table.items(), key=lambda pair: (-pair[1].count, -pair[1].last, pair[0]))
    return tuple(
        NextStep(name, round(item.count / total, 4), item.count, tuple(reversed(item.events)))
        for name, item in ranked[:limit]
    )


def _most_frequent(counts: Mapping[str, int], limit: int) -> tuple[tuple[str, int], ...]:
    ranked: Sequence[tuple[str, int]] = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(ranked[:limit])
