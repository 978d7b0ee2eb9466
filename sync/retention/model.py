"""What may be forgotten, and what a plan of it comes to. Pure.

Decisions
    Age counts from an event's own time (`ts`), of what a user imported from the time of the import on: an old chat that
    was brought in today does not go tonight. Size is that of payloads;
    beyond it the oldest recorded go first.
    Kept memory has rules of its own: the lines of the document (`document.keep_days`) and the daily records
    (`storage.retention_days`) stay, with every event that they are made of. A shared document is made anew from all
    its events, on every device the same, so there none of them goes. What another device typed, and wishes somebody
    stated there, stand in its document as far as we know.
    Small facts without words of anybody stay too: what was removed, moved, forgotten, renamed.
    No follower misses anything: what one has not taken yet stays, as what has not reached the cloud does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from sync.clock import hlc_parts
from sync.document.capture import ADDED, EDITED, EXCHANGE, REMOVED, RESTORED, is_shown, preferences_of
from sync.document.deeds import FOLDED, MOVED, SECTION_ADDED, SECTION_REMOVED
from sync.document.forgetting import lines_of
from sync.log.envelope import event_ms
from sync.log.model import TAKING_AWAY, Event, Origin
from sync.log.payloads import ENDED
from sync.log.withdrawn import REDACTED
from sync.memory.daily.model import DEEDS, ORIGINAL
from sync.memory.daily.talk import TALK

MEGABYTE: Final = 1024 * 1024

KEPT: Final = frozenset(
    {*TAKING_AWAY, REDACTED, REMOVED, MOVED, SECTION_ADDED, SECTION_REMOVED, RESTORED, *DEEDS, ORIGINAL}
)
NO_PLACES: Final = frozenset(  # marks that are no position, or that only wishes move
    {"document.on_disk", "document.order", "document.shared", "document.shared.order", "document.forgotten"}
    | {"daily.begun", "retention.archives"}
)
TAKES: Final[Mapping[str, tuple[str, ...]]] = {  # followers whose mark moves with some types only
    "document": FOLDED,
    "daily": (*TALK, *ENDED),
}
OF_THIS_DEVICE: Final = frozenset({"document", "daily"})  # followers that take nothing of other devices


@dataclass(frozen=True, slots=True)
class Rules:
    """`before_ms`: what is older goes; `most_bytes`: what is beyond goes. None: no such bound."""

    before_ms: int | None = None
    most_bytes: int | None = None


class Held(StrEnum):
    """Why an event stays although the rules would let it go."""

    SHOWN = "shown"
    UNDELIVERED = "undelivered"
    FOLLOWED = "followed"


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a follower has come."""

    name: str
    position: int


@dataclass(frozen=True, slots=True)
class Old:
    """An event that the rules would let go. `size`: bytes of its payload."""

    event: Event
    size: int
    undelivered: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands against forgetting. `corrections`: events that hold the payload of another anew, by that one."""

    device_id: str
    shown: frozenset[str]
    shared: bool
    marks: Sequence[Mark]
    corrections: Mapping[str, Sequence[Old]] = field(default_factory=dict)

    def held(self, old: Old) -> Held | None:
        """Why it stays; None where it may go, with its corrections."""
        parts = (old, *self.corrections.get(old.event.event_id, ()))
        if self._is_shown(old.event):
            return Held.SHOWN
        if any(part.undelivered for part in parts):
            return Held.UNDELIVERED
        return Held.FOLLOWED if any(self.waiting(part.event) for part in parts) else None

    def waiting(self, event: Event) -> list[Mark]:
        """The followers that have not taken it yet."""
        return [mark for mark in self.marks if event.position > mark.position and self._is_taken_by(mark.name, event)]

    def _is_taken_by(self, name: str, event: Event) -> bool:
        theirs = name in OF_THIS_DEVICE and event.device_id != self.device_id
        return not theirs and event.type in TAKES.get(name, (event.type,))

    def _is_shown(self, event: Event) -> bool:
        if not self.shown.isdisjoint(lines_of(event)):
            return True
        if self.shared and event.type in FOLDED:
            return event.type != EXCHANGE or is_shown(event)
        if event.device_id == self.device_id:
            return False
        return event.type in {ADDED, EDITED} or (event.type == EXCHANGE and bool(preferences_of(event)))


def is_place(name: str) -> bool:
    """Whether a watermark is a position in the log."""
    return name not in NO_PLACES and not name.endswith(".rules")


def age_from_ms(event: Event) -> int:
    """The time from which an event's age counts. The HLC of an import says when it was recorded."""
    if event.origin != Origin.IMPORTED:
        return event_ms(event)
    return max(event_ms(event), hlc_parts(event.hlc)[0])


@dataclass(slots=True)
class Plan:
    """What would go. `held`: how many stay, by reason; `behind`: the followers that hold something back."""

    rules: Rules
    total_events: int
    total_bytes: int
    positions: list[int] = field(default_factory=list)
    bytes: int = 0
    oldest: str | None = None
    newest: str | None = None
    held: dict[Held, int] = field(default_factory=dict)
    behind: dict[str, int] = field(default_factory=dict)

    @property
    def is_over_size(self) -> bool:
        return self.rules.most_bytes is not None and self.total_bytes - self.bytes > self.rules.most_bytes

    @property
    def is_done(self) -> bool:
        """Whether nothing that comes later can be due."""
        return self.rules.before_ms is None and not self.is_over_size

    def take(self, old: Old, standing: Standing) -> None:
        """Look at the next event, oldest recorded first."""
        due = self.rules.before_ms is not None and age_from_ms(old.event) < self.rules.before_ms
        if not due and not self.is_over_size:
            return
        reason = standing.held(old)
        if reason is not None:
            self.held[reason] = self.held.get(reason, 0) + 1
            if reason is Held.FOLLOWED:
                self.behind |= {mark.name: mark.position for mark in standing.waiting(old.event)}
            return
        parts = (old, *standing.corrections.get(old.event.event_id, ()))
        self.positions += [part.event.position for part in parts]
        self.bytes += sum(part.size for part in parts)
        self.oldest = min(self.oldest or old.event.ts, old.event.ts)
        self.newest = max(self.newest or old.event.ts, old.event.ts)


@dataclass(frozen=True, slots=True)
class Applied:
    """What was done with a plan. `archive`: the file that holds what went; None where nothing was due."""

    plan: Plan
    archive: str | None = None
    sha256: str | None = None
    forgotten: int = 0
