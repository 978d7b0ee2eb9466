"""What is answered from the state: the next step, the profile, the instincts. Pure; the time is an argument."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sync.insights.state import DAY_MS, EVERYWHERE, Counted, Instinct, State, instinct_id

ENOUGH: Final = 3  # transitions of a project itself; below, those of all projects answer
HALF_LIFE_DAYS: Final = 60.0  # after it an event weighs half
DOUBT: Final = 1.0  # what stands against any instinct: one event alone makes none certain
PROMOTED: Final = 0.6  # confidence from which an instinct is to be followed
RETIRED: Final = 0.25  # and below which it is none any more
WITNESSES: Final = 2  # sessions that have to speak for one that is promoted


@dataclass(frozen=True, slots=True)
class Step:
    """What may come next. `share`: of the transitions seen from there; `evidence`: the newest events that were it."""

    step: str
    share: float
    count: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Next:
    """`scope`: the project, or empty where all projects together answer."""

    scope: str
    session_id: str | None
    stage: str | None
    type: str | None
    stages: tuple[Step, ...]
    types: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Preference:
    text: str
    count: int
    evidence: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Profile:
    """How somebody works: names with how often, most often first."""

    project_id: str | None
    languages: tuple[tuple[str, int], ...]
    tools: tuple[tuple[str, int], ...]
    stages: tuple[tuple[str, int], ...]
    hours: tuple[tuple[str, int], ...]
    preferences: tuple[Preference, ...]
    events: int


@dataclass(frozen=True, slots=True)
class Judged:
    """An instinct at a moment. `speak_for` and `speak_against`: ids of events."""

    instinct_id: str
    kind: str  # correct: a user's correction; keep: what he approved; fails: a tool call that goes wrong
    text: str
    stage: str | None
    project_id: str
    status: str  # promoted, candidate, retired
    confidence: float
    count: int
    last_at_ms: int
    speak_for: tuple[str, ...]
    speak_against: tuple[str, ...]


def following(state: State, *, project_id: str | None, session_id: str | None, stage: str | None, limit: int) -> Next:
    """What usually comes after where a session stands: the one named, else the project's newest."""
    session_id = session_id or _newest(state, project_id)
    here = state.sessions.get(session_id) if session_id else None
    at_stage = stage.strip().lower() if stage else (here.stage if here else None)
    at_type = here.type if here else None
    project = project_id or (here.project_id if here else None)
    scope = project if project and _known(state, project, at_stage, at_type) >= ENOUGH else EVERYWHERE
    return Next(
        scope=scope,
        session_id=session_id,
        stage=at_stage,
        type=at_type,
        stages=_steps(state.stages.get(scope, {}).get(at_stage or "", {}), limit),
        types=_steps(state.types.get(scope, {}).get(at_type or "", {}), limit),
    )


def profile(state: State, *, project_id: str | None, limit: int) -> Profile:
    scope = project_id or EVERYWHERE
    preferences = sorted(state.preferences.values(), key=lambda item: (-item.last, item.text))
    projects = state.projects.items()
    return Profile(
        project_id=project_id,
        languages=_most(state.languages.get(scope, {}), limit),
        tools=_most(state.tools.get(scope, {}), limit),
        stages=_most(state.usual.get(scope, {}), limit),
        hours=_most(state.hours, limit),
        preferences=tuple(Preference(item.text, item.count, tuple(item.events)) for item in preferences[:limit]),
        events=sum(item.count for name, item in projects if project_id in {None, name}),
    )


def instincts(state: State, now_ms: int, *, project_id: str | None = None) -> list[Judged]:
    """All of them, or a project's, the surest first."""
    found = [
        judged(key, item, now_ms)
        for key, item in state.instincts.items()
        if project_id is None or item.project_id == project_id
    ]
    return sorted(found, key=lambda item: (-item.confidence, -item.last_at_ms, item.instinct_id))


def judged(key: str, instinct: Instinct, now_ms: int) -> Judged:
    """How sure an instinct is at a moment, and what follows from that.

    Each event weighs less as it grows old (half after 60 days); what speaks against it counts as what speaks for it.
    Words of a model or of another device never promote anything by themselves.
    """
    speaks_for = speaks_against = 0.0
    for proof in instinct.proofs:
        weight = proof.weight * math.pow(0.5, max(0, now_ms - proof.at_ms) / DAY_MS / HALF_LIFE_DAYS)
        speaks_for += max(0.0, weight)
        speaks_against -= min(0.0, weight)
    confidence = round(speaks_for / (speaks_for + speaks_against + DOUBT), 4)
    witnesses = {proof.session_id for proof in instinct.proofs if proof.weight > 0}
    return Judged(
        instinct_id=instinct_id(key),
        kind=instinct.kind,
        text=instinct.text,
        stage=instinct.stage,
        project_id=instinct.project_id,
        status=_status(confidence, len(witnesses), trusted=instinct.trusted),
        confidence=confidence,
        count=instinct.count,
        last_at_ms=max(proof.at_ms for proof in instinct.proofs),
        speak_for=tuple(proof.event_id for proof in instinct.proofs if proof.weight > 0),
        speak_against=tuple(proof.event_id for proof in instinct.proofs if proof.weight < 0),
    )


def _status(confidence: float, witnesses: int, *, trusted: bool) -> str:
    if confidence < RETIRED:
        return "retired"
    return "promoted" if confidence >= PROMOTED and witnesses >= WITNESSES and trusted else "candidate"


def _newest(state: State, project_id: str | None) -> str | None:
    mine = [name for name, here in state.sessions.items() if project_id in {None, here.project_id}]
    return max(mine, key=lambda name: state.sessions[name].last, default=None)


def _known(state: State, project: str, stage: str | None, kind: str | None) -> int:
    """How many transitions a project itself has seen from there."""
    tables = (state.stages.get(project, {}).get(stage or "", {}), state.types.get(project, {}).get(kind or "", {}))
    return max(sum(item.count for item in table.values()) for table in tables)


def _steps(table: Mapping[str, Counted], limit: int) -> tuple[Step, ...]:
    total = sum(item.count for item in table.values())
    ranked = sorted(table.items(), key=lambda pair: (-pair[1].count, -pair[1].last, pair[0]))
    return tuple(
        Step(name, round(item.count / total, 4), item.count, tuple(reversed(item.events)))
        for name, item in ranked[:limit]
    )


def _most(counts: Mapping[str, int], limit: int) -> tuple[tuple[str, int], ...]:
    ranked: Sequence[tuple[str, int]] = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return tuple(ranked[:limit])
