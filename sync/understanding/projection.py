"""The facts as a projection of the log, in memory: read at the first use, then brought up to date by new events.

Readers run on several threads: one at a time brings the state up to date, and what it returned never changes.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from threading import Lock
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.devices import store as registry_store
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.devices.device_view import EVERY_DEVICE, DeviceView
from sync.log.event_types import (
    FACT_TYPES,
    FOREIGN_CHANGE_ANSWERED,
    FORGET_ENDED,
    HIDING_TYPES,
    HOLDING_TYPES,
    REGISTRY_TYPES,
)
from sync.log.model import CLOUD, Event, changed_by
from sync.log.projections.registry import ERASURE
from sync.log.retractions import Retractions, correction_of
from sync.understanding import store
from sync.understanding.changes.admission import ForeignChange
from sync.understanding.fact_events import (
    order_of,
    recorded_answer,
    recorded_decisions,
    recorded_statement,
)
from sync.understanding.model import TRUSTED, Fact, FactAnswer, FactStatus, RecordedStatement
from sync.understanding.reconcile import FactTimeline

OUTDATED: Final = frozenset({FactStatus.SUPERSEDED, FactStatus.RETRACTED})
_KEPT_TYPES: Final = (*FACT_TYPES, FOREIGN_CHANGE_ANSWERED)
READ_TYPES: Final = (*_KEPT_TYPES, *HIDING_TYPES)


@dataclass(frozen=True)
class Facts:
    """All facts of the log, whatever their status, ordered by the time of their first statement.

    `answers`: those that have an effect.
    """

    facts: tuple[Fact, ...] = ()
    statements: Mapping[str, RecordedStatement] = field(default_factory=lambda: MappingProxyType({}))
    answers: tuple[FactAnswer, ...] = ()
    answered: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))  # changes, by event
    changes: tuple[ForeignChange, ...] = ()  # in facts of other devices: those that wait, and all in vital facts

    @cached_property
    def by_id(self) -> Mapping[str, Fact]:
        """The facts by their ids."""
        return {fact.fact_id: fact for fact in self.facts}

    @property
    def active(self) -> list[Fact]:
        """The facts that hold now."""
        return [fact for fact in self.facts if fact.status is FactStatus.ACTIVE]

    @property
    def candidates(self) -> list[Fact]:
        """The facts that wait for the user's confirmation."""
        return [fact for fact in self.facts if fact.status is FactStatus.CANDIDATE]

    @cached_property
    def id_of_statement(self) -> Mapping[str, str]:
        """The id of the fact that a statement belongs to, by the id of the statement."""
        return {name: fact.fact_id for fact in self.facts for name in fact.statement_ids}

    @cached_property
    def outdated_texts(self) -> Mapping[str, frozenset[str]]:
        """By event, the texts in it that no longer hold: all of an outdated fact, the former ones of an edited one."""
        found: dict[str, set[str]] = {}
        for fact in self.facts:
            is_outdated = fact.status in OUTDATED
            if not is_outdated and fact.fact_id not in self.edit_events:
                continue
            events = [(name, fact.statement) for name in (fact.fact_id, *fact.evidence)]
            for one in self.statements_of(fact):
                events += [(name, one.statement.text) for name in (one.fact_id, one.event_id)]
            events += [(event_id, text) for event_id, text, _ in self._edits.get(fact.fact_id, ())]
            for event_id, text in events:
                if is_outdated or text != fact.statement:
                    found.setdefault(event_id, set()).add(text)
        return {event_id: frozenset(texts) for event_id, texts in found.items()}

    @cached_property
    def edit_events(self) -> Mapping[str, str]:
        """The event of the edit that gave a fact its text, by the id of the fact; only facts that were edited."""
        texts = {fact.fact_id: fact.statement for fact in self.facts}
        return {
            fact_id: event_id
            for fact_id, edits in self._edits.items()
            for event_id, text, _ in edits
            if text == texts[fact_id]
        }

    @property
    def kept_ids(self) -> frozenset[str]:
        """The ids of the statements that retention keeps: what the user stated, confirmed or retracted."""
        proposed = {fact.fact_id for fact in self.candidates if fact.origin not in TRUSTED}
        return frozenset(name for name, fact_id in self.id_of_statement.items() if fact_id not in proposed)

    def on(self, today: date) -> "Facts":
        """The facts of a day: an active one that held until an earlier day is superseded."""
        over = [
            fact for fact in self.active if fact.valid_until is not None and fact.valid_until[:10] < today.isoformat()
        ]
        if not over:
            return self
        ids = {fact.fact_id for fact in over}
        now = (replace(fact, status=FactStatus.SUPERSEDED) if fact.fact_id in ids else fact for fact in self.facts)
        return dataclasses.replace(self, facts=tuple(now))

    def device_of(self, fact: Fact) -> str:
        """The device whose words a fact has: that of the edit that gave it its text, else of its first statement."""
        return self.editor_of(fact) or self.statements[fact.fact_id].device_id

    def editor_of(self, fact: Fact) -> str | None:
        """The device of the edit that gave a fact its text; None for a text that was stated."""
        edits = self._edits.get(fact.fact_id)
        return edits[-1][-1] if edits else None

    def statements_of(self, fact: Fact) -> list[RecordedStatement]:
        """The statements that a fact is made of, the first one first."""
        return [self.statements[name] for name in fact.statement_ids]

    def answers_of(self, fact: Fact) -> list[FactAnswer]:
        """The answers about a fact, oldest first."""
        return sorted(
            (one for one in self.answers if one.fact_id in fact.statement_ids), key=lambda one: (one.hlc, one.event_id)
        )

    @cached_property
    def _edits(self) -> Mapping[str, list[tuple[str, str, str]]]:
        """The edits of each edited fact, oldest first: the event, the text that it gave, and the device."""
        found: dict[str, list[tuple[str, str, str]]] = {}
        for answer in sorted(self.answers, key=lambda one: (one.hlc, one.event_id)):
            fact_id = self.id_of_statement.get(answer.fact_id)
            if fact_id is not None and answer.statement is not None:
                edit = answer.event_id, answer.statement.text, answer.device_id
                found.setdefault(fact_id, []).append(edit)
        return found


class _State(msgspec.Struct, frozen=True):
    """What was read. `last`: position and id of the newest event. `registry`: the devices, and their version."""

    order_version: int = 0
    last: tuple[int, str] = (0, "")
    events: Mapping[str, Event] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    retracted: frozenset[str] = frozenset()  # events that were erased or corrected
    registry: "tuple[DeviceRegistry, object]" = (DeviceRegistry(), None)
    admitted: DeviceView = EVERY_DEVICE
    answers: tuple[FactAnswer, ...] = ()  # also those that wait
    facts: Facts = msgspec.field(default_factory=Facts)
    timeline: FactTimeline = msgspec.field(default_factory=FactTimeline)  # of `facts`


class FactProjection:
    """The facts of one profile's log. With a clock, what held until an earlier day is superseded.

    `own_device_ids`: what this device corrects in the facts of others holds here even before it is admitted.
    """

    def __init__(self, own_device_ids: Callable[[], Collection[str]] = tuple, clock: Clock | None = None) -> None:
        self._state = _State()
        self._lock = Lock()
        self._own_device_ids = own_device_ids
        self._clock = clock
        self._today = Facts(), date.min, Facts()  # what was read, the day, and the same without what is over on it

    def is_retracted(self, event_id: str) -> bool:
        """Whether an event was erased or corrected, as of the last `read`."""
        return event_id in self._state.retracted

    def read(self, connection: Transaction) -> Facts:
        """The facts as the log says them in this transaction."""
        with self._lock:
            facts = self._read(connection)
        if self._clock is None:
            return facts
        today = self._clock.now().date()
        of, day, current = self._today
        if of is not facts or day != today:
            current = facts.on(today)
            self._today = facts, today, current
        return current

    def _read(self, connection: Transaction) -> Facts:
        state = self._state
        newest = log_store.newest_position_of_types(connection, READ_TYPES)
        if not newest:
            return Facts()
        order = log_store.order_version(connection)
        if order != state.order_version or not store.is_recorded(connection, *state.last):
            state = _State(order_version=order)  # a transaction that was rolled back gives its positions again
        registry = self._registry(connection, state, order)
        if newest != state.last[0] or registry != state.registry:
            self._state = state = _advance(connection, replace(state, registry=registry), self._own_device_ids())
        return state.facts

    def _registry(self, connection: Transaction, state: _State, order: int) -> tuple[DeviceRegistry, object]:
        """The devices of the account; read again after an event about them, an erasure, and what a recovery needs."""
        known, version = state.registry
        types = log_store.newest_position_of_types(connection, REGISTRY_TYPES)
        cursor = outbox_store.read_cursor(connection, CLOUD) if known.has_recovery else None
        last = cursor and (cursor.seq, log_store.newest_position(connection))
        now = types, last, log_store.watermark(connection, ERASURE.name), order, frozenset(self._own_device_ids())
        return state.registry if now == version else (registry_store.read_registry(connection), now)


def _advance(connection: Transaction, state: _State, own_device_ids: Collection[str]) -> _State:
    """Apply the new events. A retraction of a fact's event means to read all of them again."""
    fresh = list(log_store.read_by_types(connection, READ_TYPES, after=state.last[0]))
    named = frozenset(name for event in fresh for name in _retracted_ids(event))
    is_shown_again = any(event.type == FORGET_ENDED for event in fresh)
    is_changed = is_shown_again or any(event.event_id in state.retracted for event in fresh)
    if is_changed or not named.isdisjoint(state.events):
        state = _State(order_version=state.order_version, registry=state.registry)
        fresh = list(log_store.read_by_types(connection, READ_TYPES, after=0))
    retractions = Retractions()
    retractions.apply(fresh)
    gone = (event for event in fresh if event.type not in HOLDING_TYPES)
    named = retractions.held_ids.union(name for event in gone for name in _retracted_ids(event))
    news = {event.event_id: retractions.effective_event(event) for event in fresh if event.type in _KEPT_TYPES}
    last = (fresh[-1].position, fresh[-1].event_id) if fresh else state.last
    events = {**state.events, **news}
    admitted = admitted_devices(state.registry[0], own_device_ids, events.values())
    state = replace(state, last=last, retracted=state.retracted | named)
    if not news and admitted == state.admitted:
        return state
    statements, answers = _timeline_items(events.values(), state.facts.statements)
    timeline = _extended(state, statements, answers) if admitted == state.admitted else None
    if timeline is None:
        timeline = FactTimeline(statements.values(), answers, admitted)
    book = timeline.book
    applied = tuple(one for one in answers if one.event_id not in book.withheld)
    facts = Facts(book.facts(), statements, applied, admitted.answers, book.open_changes())
    return replace(state, events=events, answers=answers, facts=facts, timeline=timeline, admitted=admitted)


def admitted_devices(registry: DeviceRegistry, own_device_ids: Collection[str], events: Iterable[Event]) -> DeviceView:
    """The admitted devices, and the user's answers about single changes, given on an admitted device."""
    everywhere = DeviceView(registry)
    answers: dict[str, bool] = {}
    for event in sorted((one for one in events if one.type == FOREIGN_CHANGE_ANSWERED), key=order_of):
        if everywhere.is_trusted(event):
            answers |= recorded_decisions(event)
    return DeviceView(registry, frozenset(own_device_ids), answers)


def _extended(
    state: _State, statements: Mapping[str, RecordedStatement], answers: tuple[FactAnswer, ...]
) -> FactTimeline | None:
    """The timeline of a state with what is new; None if what it has changed, or if something is not at its end."""
    known, answered = state.facts.statements, state.answers
    if answers[: len(answered)] != answered or any(statements.get(name) != one for name, one in known.items()):
        return None
    news = [one for name, one in statements.items() if name not in known]
    return state.timeline if state.timeline.add(news, answers[len(answered) :]) else None


def _timeline_items(
    events: Collection[Event], known: Mapping[str, RecordedStatement]
) -> tuple[dict[str, RecordedStatement], tuple[FactAnswer, ...]]:
    """The statements and answers of these events, in the order of arrival. `known`: statements read before."""
    statements = {
        event.event_id: statement
        for event in events
        if (statement := known.get(event.event_id) or recorded_statement(event)) is not None
    }
    answers = (answer for event in events if (answer := recorded_answer(event, statements)) is not None)
    return statements, tuple(answers)


def _retracted_ids(event: Event) -> Iterable[str]:
    correction = correction_of(event)
    return changed_by(event) if correction is None else (correction[0],)
