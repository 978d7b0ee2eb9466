"""Everything the views remember of the log: a fold over its events, one after the other. Pure.

Decisions
    The state after an event is a function of the events up to it. Taken in one by one or all at once, the cache has the
    same bytes; nothing in it depends on the time of day, on batches, or on who asks.
    Every table is bounded. When one is full, what was seen least often goes, and of those what was seen longest ago.
    What was forgotten counts as an event that says nothing, what was corrected as one that said so at once.
"""

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from sync.insights.reading import (
    action_of,
    language_of,
    normal,
    outcome_of,
    question_of,
    said_in,
    stage_of,
    terms_of,
    text_of,
)
from sync.log.envelope import event_ms
from sync.log.model import GLOBAL_PROJECT, Event
from sync.log.payloads import FACT, FEEDBACK, SESSION_META, TAGGED, TOOL_CALL

FORMAT: Final = 1  # raised, it has the cache built anew
EVERYWHERE: Final = ""  # the transitions of all projects together
EVIDENCE: Final = 8  # events kept for a transition: the newest
PROOFS: Final = 60  # events kept for and against an instinct: the newest
MOST_SESSIONS: Final = 500
MOST_KEYS: Final = 2_000  # questions, instincts, topics in each table
LONGEST: Final = 300  # characters of a text that is shown again
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


class Counted(msgspec.Struct):
    """Something that was seen again and again; `last` is the position where it last was."""

    count: int = 0
    last: int = 0
    text: str = ""
    events: list[str] = []


class Proof(msgspec.Struct, array_like=True):
    """One event that speaks for (`weight` above 0) or against an instinct."""

    event_id: str
    at_ms: int
    weight: float
    session_id: str


class Instinct(msgspec.Struct):
    """`trusted`: some of it was said by the user, or seen by us; what a model or another device says is not."""

    kind: str
    text: str
    stage: str | None = None
    project_id: str = GLOBAL_PROJECT
    trusted: bool = False
    count: int = 0
    last: int = 0
    proofs: list[Proof] = []


class Here(msgspec.Struct):
    """Where a session stands."""

    project_id: str
    last: int
    type: str = ""
    stage: str | None = None
    action: str | None = None


class State(msgspec.Struct):
    """The fold. `source_watermark`: the position of the last event in it, `source_event_id` that event."""

    format: int = FORMAT
    source_watermark: int = 0
    source_event_id: str = ""
    sessions: dict[str, Here] = {}
    stages: dict[str, dict[str, dict[str, Counted]]] = {}  # project → stage → the one after it
    types: dict[str, dict[str, dict[str, Counted]]] = {}
    usual: dict[str, dict[str, int]] = {}  # project → stage → how often
    languages: dict[str, dict[str, int]] = {}
    tools: dict[str, dict[str, int]] = {}
    preferences: dict[str, Counted] = {}
    instincts: dict[str, Instinct] = {}
    topics: dict[str, Counted] = {}
    tags: dict[str, Counted] = {}
    questions: dict[str, Counted] = {}
    days: dict[str, dict[str, int]] = {}  # local date → type → how many events
    hours: dict[str, int] = {}  # local hour → how many events
    projects: dict[str, Counted] = {}

    def take(self, event: Event) -> None:
        """Take in the next event of the log."""
        here = self.sessions.get(event.session_id)
        if here is None:
            here = Here(event.project_id, event.position)
        self._follow(event, here)
        self._profile(event)
        self._learn(event, here)
        self._report(event)
        here.last = event.position
        here.type = here.type if event.type == SESSION_META else event.type  # words about it are no step of it
        here.stage, here.action = stage_of(event) or here.stage, action_of(event) or here.action
        self.sessions[event.session_id] = here
        if len(self.sessions) > MOST_SESSIONS:
            del self.sessions[min(self.sessions, key=lambda name: self.sessions[name].last)]
        self.source_watermark, self.source_event_id = event.position, event.event_id

    def _follow(self, event: Event, here: Here) -> None:
        stage = stage_of(event)
        for scope in dict.fromkeys((EVERYWHERE, event.project_id)):
            if here.type and event.type != SESSION_META:
                _step(self.types.setdefault(scope, {}), here.type, event)
            if stage and here.stage and stage != here.stage:
                _step(self.stages.setdefault(scope, {}), here.stage, event, stage)

    def _profile(self, event: Event) -> None:
        said = ((self.usual, stage_of(event)), (self.languages, language_of(event)), (self.tools, _tool(event)))
        for table, name in said:
            if name:
                for scope in dict.fromkeys((EVERYWHERE, event.project_id)):
                    counts = table.setdefault(scope, {})
                    if name in counts or len(counts) < MOST_KEYS:
                        counts[name] = counts.get(name, 0) + 1
        if event.type == FACT and event.payload.get("fact_type") == "preference":
            _count(self.preferences, normal(text_of(event, "content")), event, text_of(event, "content"))

    def _learn(self, event: Event, here: Here) -> None:
        if event.type == FEEDBACK:
            self._hear(event, here)
        elif event.type == TOOL_CALL:
            self._watch(event)

    def _hear(self, event: Event, here: Here) -> None:
        """A user's word on what was done: it founds an instinct, strengthens it, or speaks against it."""
        verdict = text_of(event, "feedback_type")
        weight = WEIGHTS.get(verdict)
        named = text_of(event, "instinct_id")
        if weight is None:
            return
        if named:
            known = next((item for key, item in self.instincts.items() if instinct_id(key) == named), None)
            if known is not None:
                _prove(known, event, weight=JUDGED if verdict == "approval" else -JUDGED)
            return
        text = text_of(event, "content").strip()
        if not normal(text):
            return
        kind = "keep" if verdict == "approval" else "correct"
        other = self.instincts.get(f"{'correct' if kind == 'keep' else 'keep'}:{normal(text)}")
        if other is not None:
            _prove(other, event, weight=-weight)
        self._found(f"{kind}:{normal(text)}", event, weight, kind, text, here.stage)

    def _watch(self, event: Event) -> None:
        """A tool call that fails is a lesson; the same one that goes well speaks against it."""
        action, went_well = action_of(event), outcome_of(event)
        if action is None or went_well is None:
            return
        key = f"fails:{event.project_id}:{normal(action)}"
        known = self.instincts.get(key)
        if not went_well:
            self._found(key, event, FAILED, "fails", action, stage_of(event))
        elif known is not None:
            _prove(known, event, weight=-WENT_WELL)

    def _found(self, key: str, event: Event, weight: float, kind: str, text: str, stage: str | None) -> None:
        known = self.instincts.get(key)
        if known is None:
            known = self.instincts[key] = Instinct(kind, text[:LONGEST], stage, event.project_id)
        _prove(known, event, weight=weight)
        _bound(self.instincts, lambda item: (item.count, item.last))

    def _report(self, event: Event) -> None:
        day = self.days.setdefault(event.local_date, {})
        day[event.type] = day.get(event.type, 0) + 1
        hour = str((event_ms(event) + event.utc_offset * 60_000) // HOUR_MS % 24)
        self.hours[hour] = self.hours.get(hour, 0) + 1
        _count(self.projects, event.project_id, event, event.project_path or "")
        for term in dict.fromkeys(terms_of(said_in(event))):
            _count(self.topics, term, event, term)
        tags = event.payload.get("tags") if event.type in TAGGED else None
        for tag in dict.fromkeys(tags) if isinstance(tags, list) and all(isinstance(tag, str) for tag in tags) else ():
            _count(self.tags, tag, event, tag)
        if question := question_of(event):
            _count(self.questions, normal(question), event, question)


WEIGHTS: Final[Mapping[str, float]] = {"correction": 1.0, "rejection": 1.0, "approval": 0.7}
FAILED: Final = 0.5  # one failure may be chance
WENT_WELL: Final = 0.5
JUDGED: Final = 3.0  # a person's verdict on the instinct itself
_UNTRUSTED: Final = frozenset({"model-written", "peer"})


def instinct_id(key: str) -> str:
    """The stable name of an instinct."""
    return f"ins_{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def encode(state: State) -> bytes:
    """The cache file's bytes."""
    return msgspec.json.encode(state, order="deterministic") + b"\n"


def decode(data: bytes) -> State | None:
    """The state of a cache file; None where it is none, or one of another format."""
    try:
        state = msgspec.json.decode(data, type=State)
    except msgspec.MsgspecError:
        return None
    return state if state.format == FORMAT else None


def _tool(event: Event) -> str | None:
    return text_of(event, "tool")[:LONGEST] or None if event.type == TOOL_CALL else None


def _step(table: dict[str, dict[str, Counted]], before: str, event: Event, after: str | None = None) -> None:
    following = table.setdefault(before, {})
    _count(following, after or event.type, event, "")
    if len(table) > MOST_KEYS:
        del table[min(table, key=lambda name: (max(item.last for item in table[name].values()), name))]


def _count(table: dict[str, Counted], key: str, event: Event, text: str) -> None:
    if not key:
        return
    found = table.setdefault(key[:LONGEST], Counted())
    found.count += 1
    found.last = event.position
    found.text = text[:LONGEST] or found.text
    found.events = [*found.events, event.event_id][-EVIDENCE:]
    _bound(table, lambda item: (item.count, item.last))


def _prove(known: Instinct, event: Event, *, weight: float) -> None:
    known.count += 1
    known.last = event.position
    known.trusted = known.trusted or event.origin not in _UNTRUSTED
    proof = Proof(event.event_id, event_ms(event), weight, event.session_id)
    known.proofs = [*known.proofs, proof][-PROOFS:]


def _bound(table: dict[str, Any], worth: Callable[[Any], tuple[int, int]]) -> None:
    """Keep the better half of a full table."""
    if len(table) > 2 * MOST_KEYS:
        best = set(sorted(table, key=lambda key: (worth(table[key]), key), reverse=True)[:MOST_KEYS])
        for key in [key for key in table if key not in best]:
            del table[key]
