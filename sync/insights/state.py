"""The state of the insights: a fold over the events of the log. Pure.

It depends only on the events, not on batches or the time of day, so a cached state has the same bytes as a rebuilt one.
Every table is bounded: the rarest entries are dropped, of those the oldest. An erased event counts as an empty one, a
corrected event as if it had always been so.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from sync.insights.features import (
    action_of,
    language_of,
    outcome_of,
    question_of,
    stage_of,
    terms_of,
    text_of,
    topic_text_of,
)
from sync.lessons.corrections import UNTRUSTED_ORIGINS, instinct_id, normalise_text
from sync.log.authorship import author_of
from sync.log.envelope import event_ms
from sync.log.event_types import MEMORY_FACT, SESSION_META, TOOL_CALL, TYPES_WITH_TAGS, USER_FEEDBACK
from sync.log.model import GLOBAL_PROJECT, Event

FORMAT: Final = 3  # another number invalidates the cache
ALL_PROJECTS: Final = ""  # the scope of all projects together
MAX_EVENTS: Final = 8  # the newest of a transition
MAX_EVIDENCE: Final = 60  # the newest events for and against an instinct
MAX_SESSIONS: Final = 500
MAX_KEYS: Final = 2_000  # of a table
MAX_TEXT_CHARS: Final = 300
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


class Occurrences(msgspec.Struct):
    """Counts something; `last`: the position of its newest event."""

    count: int = 0
    last: int = 0
    text: str = ""
    events: list[str] = []


class Evidence(msgspec.Struct, array_like=True):
    """One event for (`weight` above 0) or against an instinct."""

    event_id: str
    at_ms: int
    weight: float
    session_id: str


class Instinct(msgspec.Struct):
    """`trusted`: some evidence is from the user or this device, not only from a model or another device.

    `project_id`: where it was seen; `proj_global` once it was seen in two projects.
    """

    kind: str
    text: str
    stage: str | None = None
    project_id: str = GLOBAL_PROJECT
    trusted: bool = False
    count: int = 0
    last: int = 0
    proofs: list[Evidence] = []


class SessionProgress(msgspec.Struct):
    """The latest step of a session."""

    project_id: str
    last: int
    type: str = ""
    stage: str | None = None
    action: str | None = None


class InsightsState(msgspec.Struct):
    """All tables. `source_watermark` and `source_event_id`: the last applied event."""

    format: int = FORMAT
    source_watermark: int = 0
    source_event_id: str = ""
    sessions: dict[str, SessionProgress] = {}
    stages: dict[str, dict[str, dict[str, Occurrences]]] = {}  # project → stage → the one after it
    types: dict[str, dict[str, dict[str, Occurrences]]] = {}
    usual: dict[str, dict[str, int]] = {}  # project → stage → how often
    languages: dict[str, dict[str, int]] = {}
    tools: dict[str, dict[str, int]] = {}
    preferences: dict[str, Occurrences] = {}
    instincts: dict[str, Instinct] = {}
    topics: dict[str, Occurrences] = {}
    tags: dict[str, Occurrences] = {}
    questions: dict[str, Occurrences] = {}
    days: dict[str, dict[str, int]] = {}  # local date → type → how many events
    hours: dict[str, int] = {}  # local hour → how many events
    projects: dict[str, Occurrences] = {}

    def apply(self, event: Event) -> None:
        """Apply the next event of the log."""
        here = self.sessions.get(event.session_id)
        if here is None:
            here = SessionProgress(event.project_id, event.position)
        self._count_transitions(event, here)
        self._update_profile(event)
        self._update_instincts(event, here)
        self._update_report_counts(event)
        here.last = event.position
        here.type = here.type if event.type == SESSION_META else event.type  # metadata is no step
        here.stage, here.action = stage_of(event) or here.stage, action_of(event) or here.action
        self.sessions[event.session_id] = here
        if len(self.sessions) > MAX_SESSIONS:
            del self.sessions[min(self.sessions, key=lambda name: self.sessions[name].last)]
        self.source_watermark, self.source_event_id = event.position, event.event_id

    def _count_transitions(self, event: Event, session: SessionProgress) -> None:
        stage = stage_of(event)
        for scope in dict.fromkeys((ALL_PROJECTS, event.project_id)):
            if session.type and event.type != SESSION_META:
                _count_transition(self.types.setdefault(scope, {}), session.type, event)
            if stage and session.stage and stage != session.stage:
                _count_transition(self.stages.setdefault(scope, {}), session.stage, event, stage)

    def _update_profile(self, event: Event) -> None:
        features = ((self.usual, stage_of(event)), (self.languages, language_of(event)), (self.tools, _tool_of(event)))
        for table, name in features:
            if name:
                for scope in dict.fromkeys((ALL_PROJECTS, event.project_id)):
                    counts = table.setdefault(scope, {})
                    if name in counts or len(counts) < MAX_KEYS:
                        counts[name] = counts.get(name, 0) + 1
        if event.type == MEMORY_FACT and event.payload.get("fact_type") == "preference":
            _count_occurrence(
                self.preferences, normalise_text(text_of(event, "content")), event, text_of(event, "content")
            )

    def _update_instincts(self, event: Event, session: SessionProgress) -> None:
        if event.type == USER_FEEDBACK:
            self._apply_feedback(event, session)
        elif event.type == TOOL_CALL:
            self._apply_tool_call(event)

    def _apply_feedback(self, event: Event, session: SessionProgress) -> None:
        """The user's feedback creates an instinct, or is evidence for or against one."""
        verdict = text_of(event, "feedback_type")
        weight = FEEDBACK_WEIGHTS.get(verdict)
        target_id = text_of(event, "instinct_id")
        if weight is None:
            return
        if target_id:
            target = next((item for key, item in self.instincts.items() if instinct_id(key) == target_id), None)
            if target is not None:
                _add_evidence(target, event, weight=VERDICT_WEIGHT if verdict == "approval" else -VERDICT_WEIGHT)
            return
        text = text_of(event, "content").strip()
        if not normalise_text(text):
            return
        kind = "keep" if verdict == "approval" else "correct"
        other = self.instincts.get(f"{'correct' if kind == 'keep' else 'keep'}:{normalise_text(text)}")
        if other is not None:
            _add_evidence(other, event, weight=-weight)
        self._reinforce(f"{kind}:{normalise_text(text)}", event, weight, kind, text, session.stage)

    def _apply_tool_call(self, event: Event) -> None:
        """A failing tool call creates an instinct or supports it; the same call's success is evidence against it."""
        action, succeeded = action_of(event), outcome_of(event)
        if action is None or succeeded is None:
            return
        key = f"fails:{normalise_text(action)}"
        instinct = self.instincts.get(key)
        if not succeeded:
            self._reinforce(key, event, FAILURE_WEIGHT, "fails", action, stage_of(event))
        elif instinct is not None:
            _add_evidence(instinct, event, weight=-SUCCESS_WEIGHT)

    def _reinforce(self, key: str, event: Event, weight: float, kind: str, text: str, stage: str | None) -> None:
        instinct = self.instincts.get(key)
        if instinct is None:
            instinct = self.instincts[key] = Instinct(kind, text[:MAX_TEXT_CHARS], stage, event.project_id)
        elif instinct.project_id != event.project_id:
            instinct.project_id = GLOBAL_PROJECT
        _add_evidence(instinct, event, weight=weight)
        _trim_table(self.instincts, lambda item: (item.count, item.last))

    def _update_report_counts(self, event: Event) -> None:
        day = self.days.setdefault(event.local_date, {})
        day[event.type] = day.get(event.type, 0) + 1
        hour = str((event_ms(event) + event.utc_offset * 60_000) // HOUR_MS % 24)
        self.hours[hour] = self.hours.get(hour, 0) + 1
        _count_occurrence(self.projects, event.project_id, event, event.project_path or "")
        for term in dict.fromkeys(terms_of(topic_text_of(event))):
            _count_occurrence(self.topics, term, event, term)
        tags = event.payload.get("tags") if event.type in TYPES_WITH_TAGS else None
        for tag in dict.fromkeys(tags) if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) else ():
            _count_occurrence(self.tags, tag, event, tag)
        if question := question_of(event):
            _count_occurrence(self.questions, normalise_text(question), event, question)


FEEDBACK_WEIGHTS: Final[Mapping[str, float]] = {"correction": 1.0, "rejection": 1.0, "approval": 0.7}
FAILURE_WEIGHT: Final = 0.5  # one failure may be chance
SUCCESS_WEIGHT: Final = 0.5
VERDICT_WEIGHT: Final = 3.0  # the user's verdict on the instinct itself


def encode(state: InsightsState) -> bytes:
    """The cache file's bytes."""
    return msgspec.json.encode(state, order="deterministic") + b"\n"


def decode(data: bytes) -> InsightsState | None:
    """The state in a cache file; None if the file is damaged or has another format."""
    try:
        state = msgspec.json.decode(data, type=InsightsState)
    except msgspec.MsgspecError:
        return None
    return state if state.format == FORMAT else None


def _tool_of(event: Event) -> str | None:
    return text_of(event, "tool")[:MAX_TEXT_CHARS] or None if event.type == TOOL_CALL else None


def _count_transition(
    table: dict[str, dict[str, Occurrences]], before: str, event: Event, after: str | None = None
) -> None:
    following = table.setdefault(before, {})
    _count_occurrence(following, after or event.type, event, "")
    if len(table) > MAX_KEYS:
        del table[min(table, key=lambda name: (max(item.last for item in table[name].values()), name))]


def _count_occurrence(table: dict[str, Occurrences], key: str, event: Event, text: str) -> None:
    if not key:
        return
    item = table.setdefault(key[:MAX_TEXT_CHARS], Occurrences())
    item.count += 1
    item.last = event.position
    item.text = text[:MAX_TEXT_CHARS] or item.text
    item.events = [*item.events, event.event_id][-MAX_EVENTS:]
    _trim_table(table, lambda item: (item.count, item.last))


def _add_evidence(instinct: Instinct, event: Event, *, weight: float) -> None:
    instinct.count += 1
    instinct.last = event.position
    is_proposal = event.type == USER_FEEDBACK and not author_of(event).is_users
    instinct.trusted = instinct.trusted or not (is_proposal or event.origin in UNTRUSTED_ORIGINS)
    proof = Evidence(event.event_id, event_ms(event), weight, event.session_id)
    instinct.proofs = [*instinct.proofs, proof][-MAX_EVIDENCE:]


def _trim_table(table: dict[str, Any], rank_of: Callable[[Any], tuple[int, int]]) -> None:
    """Keep the better half of a full table."""
    if len(table) > 2 * MAX_KEYS:
        best = set(sorted(table, key=lambda key: (rank_of(table[key]), key), reverse=True)[:MAX_KEYS])
        for key in [key for key in table if key not in best]:
            del table[key]
