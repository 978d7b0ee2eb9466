"""One peer's conversation about events: what each side has, what it lacks, what it gets. Pure.

Erasure requests travel first, in both directions: no other event is sent before all requests that the peer offers were
received. Every list of numbers belongs to an epoch; numbers of another epoch are forgotten.
Reasons: docs/decisions/030-lan-sync.md.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Final

from sync.lan.protocol import frames
from sync.lan.protocol.frames import Message, ProtocolError, from_wire_ranges, to_wire_ranges
from sync.lan.protocol.ranges import NO_NUMBERS, NumberRanges, count, first_numbers, intersect, subtract, union

WANT_EVENTS: Final = 1_000  # numbers in one request
MAX_EMPTY_ANSWERS: Final = 100  # in a row, of a peer that offers what it does not send


@dataclass(frozen=True, slots=True)
class Holdings:
    """What this device's log holds, of one epoch, and the part of it that it offers to peers.

    `erasures`: offered erasure requests and corrections; `events`: all other offered events. `last`: the highest
    offered number of each replica and its event id. `proven`, `unproven`: the numbers of each device's events.
    `position`: that of the last event that was read, of the log's `order`.
    """

    epoch: str
    held: NumberRanges = field(default_factory=dict)
    erasures: NumberRanges = field(default_factory=dict)
    events: NumberRanges = field(default_factory=dict)
    last: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    proven: Mapping[str, NumberRanges] = field(default_factory=dict)
    unproven: Mapping[str, NumberRanges] = field(default_factory=dict)
    position: int = 0
    order: int = 0


@dataclass(frozen=True, slots=True)
class Send:
    """Send a message."""

    message: Message


@dataclass(frozen=True, slots=True)
class SendEvents:
    """Read these events, send them in parts, then `Sent`. All of them were offered."""

    epoch: str
    numbers: NumberRanges


@dataclass(frozen=True, slots=True)
class StoreEvents:
    """Store these records; only those whose numbers are in `asked`."""

    records: tuple[dict[str, object], ...]
    asked: NumberRanges


@dataclass(frozen=True, slots=True)
class CheckNumbers:
    """Compare these numbers and event ids with the log; end the conversation if one of the two is a copy."""

    last: Mapping[str, tuple[int, str]]
    proven: Mapping[str, NumberRanges]


@dataclass(frozen=True, slots=True)
class ReadHoldings:
    """Read the holdings and pass them to `on_holdings`: the log has changed."""


Action = Send | SendEvents | StoreEvents | CheckNumbers | ReadHoldings


class PeerConversation:
    """The state of one connection. Methods return what to do, in order.

    `provable`: the devices whose events can be proven here. `may_ask`: whether the peer may bring more today.
    """

    def __init__(self, own: Holdings) -> None:
        self._own = own
        self.provable: Collection[str] = ()
        self.may_ask: Callable[[], bool] = lambda: True
        self._peer: Holdings | None = None
        self._requested = NO_NUMBERS  # and not yet answered
        self._answered_numbers = NO_NUMBERS  # answered in this epoch: stored, or no longer offered; not asked for again
        self._deferred: frames.Want | None = None  # waits until the peer's erasure requests are here
        self._received = 0  # events of the running answer
        self._empty_answers = 0

    @property
    def own(self) -> Holdings:
        """The newest holdings of this device."""
        return self._own

    @property
    def is_level(self) -> bool:
        """Whether this device lacks nothing that the peer offers."""
        return self._peer is not None and not self._requested and not self._lacking()

    @property
    def lacking(self) -> int:
        """How many offered events this device lacks."""
        return count(self._lacking())

    def start(self) -> list[Action]:
        return [self._announce()]

    def on_holdings(self, own: Holdings) -> list[Action]:
        """The log has changed."""
        before, self._own = self._own, own
        is_news = (before.epoch, before.erasures, before.events) != (own.epoch, own.erasures, own.events)
        return [*([self._announce()] if is_news else []), *self._go_on()]

    def on_message(self, message: Message) -> list[Action]:
        """Handle one message. Raises ProtocolError."""
        match message:
            case frames.Have():
                return self._on_have(message)
            case frames.Want():
                return self._on_want(message)
            case frames.Events():
                return self._on_events(message)
            case frames.Sent():
                return self._on_sent(message)
            case _:
                return []

    def _on_have(self, have: frames.Have) -> list[Action]:
        erasures, events = from_wire_ranges(have.erasures), from_wire_ranges(have.events)
        if self._peer is not None and self._peer.epoch != have.epoch:
            self._requested = self._answered_numbers = NO_NUMBERS
            self._empty_answers = 0
        proven = {device: from_wire_ranges(numbers) for device, numbers in have.proven.items()}
        self._peer = Holdings(have.epoch, NO_NUMBERS, erasures, events, proven=proven)
        return [*([CheckNumbers(have.last, proven)] if have.last else []), *self._go_on()]

    def _on_want(self, want: frames.Want) -> list[Action]:
        if want.epoch != self._own.epoch:
            return [self._announce()]
        self._deferred = want
        return self._answer_deferred()

    def _on_events(self, events: frames.Events) -> list[Action]:
        if self._peer is None or events.epoch != self._peer.epoch:
            return []  # the answer to an earlier request
        if not self._requested:
            raise ProtocolError("events came that were not asked for")
        self._received += len(events.events)
        if self._received > count(self._requested):
            raise ProtocolError("more events came than were asked for")
        return [StoreEvents(tuple(events.events), self._requested)]

    def _on_sent(self, sent: frames.Sent) -> list[Action]:
        if self._peer is None or sent.epoch != self._peer.epoch:
            return []
        self._empty_answers = 0 if self._received else self._empty_answers + 1
        self._answered_numbers = union(self._answered_numbers, self._requested)
        self._requested, self._received = NO_NUMBERS, 0
        return self._go_on()

    def _go_on(self) -> list[Action]:
        """Ask for what is lacking, erasure requests first, and answer a request that waited for them."""
        asking: list[Action] = []
        lacking = self._lacking_erasures() or self._lacking()
        may_ask = not self._requested and self._empty_answers < MAX_EMPTY_ANSWERS
        if self._peer is not None and lacking and may_ask and self.may_ask():
            self._requested = first_numbers(lacking, WANT_EVENTS)
            asking.append(Send(frames.Want(self._peer.epoch, to_wire_ranges(self._requested))))
        return [*asking, *self._answer_deferred()]

    def _answer_deferred(self) -> list[Action]:
        """Answer the waiting request, unless events would be sent before the peer's erasure requests are here."""
        want = self._deferred
        if want is None:
            return []
        if want.epoch != self._own.epoch:
            self._deferred = None
            return []
        wanted = from_wire_ranges(want.numbers)
        if subtract(wanted, self._own.erasures) and not self._has_peers_erasures():
            return []
        self._deferred = None
        offered = union(self._own.erasures, self._own.events)
        return [SendEvents(want.epoch, first_numbers(intersect(wanted, offered), WANT_EVENTS))]

    def _has_peers_erasures(self) -> bool:
        return self._peer is not None and not self._lacking_erasures()

    def _lacking_erasures(self) -> NumberRanges:
        if self._peer is None:
            return NO_NUMBERS
        return subtract(self._not_held(self._peer, self._peer.erasures), self._answered_numbers)

    def _lacking(self) -> NumberRanges:
        """What the peer offers and this device lacks, apart from what it requested in vain."""
        if self._peer is None:
            return NO_NUMBERS
        offered = union(self._peer.erasures, self._peer.events)
        return subtract(self._not_held(self._peer, offered), self._answered_numbers)

    def _not_held(self, peer: Holdings, offered: NumberRanges) -> NumberRanges:
        """The offered numbers that this device lacks, has for another device, or could prove with the peer's copy."""
        lacking = subtract(offered, self._own.held)
        for device, numbers in peer.proven.items():
            differing = subtract(numbers, self._own.proven.get(device, NO_NUMBERS))
            if device not in self.provable:
                differing = subtract(differing, self._own.unproven.get(device, NO_NUMBERS))
            lacking = union(lacking, intersect(differing, offered))
        return lacking

    def _announce(self) -> Send:
        own = self._own
        proven = {device: to_wire_ranges(numbers) for device, numbers in own.proven.items()}
        offered = (to_wire_ranges(own.erasures), to_wire_ranges(own.events))
        return Send(frames.Have(own.epoch, *offered, dict(own.last), proven))
