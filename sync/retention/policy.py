"""Which events may expire, and the plan of a run. Pure. See docs/decisions/013-retention.md."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from sync.clock import parse_hlc
from sync.document.capture.exchange_events import preference_entries_of
from sync.document.erasure.related_events import entry_ids_of
from sync.log.envelope import event_ms
from sync.log.event_types import (
    DOCUMENT_RESTORED,
    ENTRY_ADDED,
    ENTRY_EDITED,
    ENTRY_MOVED,
    ENTRY_REMOVED,
    EXCHANGE_RECORDED,
    FACT_EDITED,
    FACT_VERDICT_TYPES,
    HIDING_TYPES,
    LESSON_COUNTED,
    LESSON_EDITED,
    LESSON_LEARNED,
    LESSON_REMOVED,
    RECORD_CHANGE_TYPES,
    SECTION_ADDED,
    SECTION_REMOVED,
    SESSION_ORIGINAL,
)
from sync.log.model import Event, Origin
from sync.log.projections.registry import ProjectionEntry

MEGABYTE: Final = 1024 * 1024

NEVER_EXPIRED_TYPES: Final = frozenset(
    {
        *HIDING_TYPES,
        ENTRY_REMOVED,
        ENTRY_MOVED,
        SECTION_ADDED,
        SECTION_REMOVED,
        DOCUMENT_RESTORED,
        *RECORD_CHANGE_TYPES,
        LESSON_LEARNED,
        LESSON_EDITED,
        LESSON_REMOVED,
        LESSON_COUNTED,
        FACT_EDITED,
        *FACT_VERDICT_TYPES,
        SESSION_ORIGINAL,
    }
)


class RetentionRules(msgspec.Struct, frozen=True):
    """Events older than `before_ms`, and those beyond `most_bytes`, expire. None: no such limit."""

    before_ms: int | None = None
    most_bytes: int | None = None


class HoldReason(StrEnum):
    """Why an event stays although it is due."""

    SHOWN_IN_DOCUMENT = "shown"
    UNDELIVERED = "undelivered"
    NOT_YET_CONSUMED = "followed"


class ConsumerOffset(msgspec.Struct, frozen=True):
    """How far a consumer of the log has come."""

    consumer: ProjectionEntry
    position: int


class RetentionCandidate(msgspec.Struct, frozen=True):
    """An event that may be due. `size`: bytes of its payload."""

    event: Event
    size: int
    is_undelivered: bool


class RetentionConstraints(msgspec.Struct, frozen=True):
    """What keeps events. `corrections`: corrections by the id of the corrected event. `kept_fact_ids`: see `Facts`."""

    device_id: str
    shown_line_ids: frozenset[str]
    consumer_offsets: Sequence[ConsumerOffset]
    corrections: Mapping[str, Sequence[RetentionCandidate]] = msgspec.field(default_factory=dict)
    kept_fact_ids: frozenset[str] = frozenset()

    def hold_reason(self, candidate: RetentionCandidate) -> HoldReason | None:
        """Return why an event stays; None if it may expire with its corrections."""
        parts = (candidate, *self.corrections.get(candidate.event.event_id, ()))
        if self._is_shown(candidate.event):
            return HoldReason.SHOWN_IN_DOCUMENT
        if any(part.is_undelivered for part in parts):
            return HoldReason.UNDELIVERED
        return HoldReason.NOT_YET_CONSUMED if any(self.lagging_consumers(part.event) for part in parts) else None

    def lagging_consumers(self, event: Event) -> list[ConsumerOffset]:
        """Return the consumers that have not read the event yet."""
        return [
            offset
            for offset in self.consumer_offsets
            if event.position > offset.position and offset.consumer.reads(event, self.device_id)
        ]

    def _is_shown(self, event: Event) -> bool:
        if event.event_id in self.kept_fact_ids or not self.shown_line_ids.isdisjoint(entry_ids_of(event)):
            return True
        if event.device_id == self.device_id:
            return False
        return event.type in {ENTRY_ADDED, ENTRY_EDITED} or (
            event.type == EXCHANGE_RECORDED and bool(preference_entries_of(event))
        )


def age_from_ms(event: Event) -> int:
    """Return the time from which an event's age counts. For an import that is the HLC: when it was recorded."""
    if event.origin != Origin.IMPORTED:
        return event_ms(event)
    return max(event_ms(event), parse_hlc(event.hlc)[0])


class RetentionPlan(msgspec.Struct):
    """What would expire. `held` counts events that stay, by reason; `behind`: the consumers that hold some back."""

    rules: RetentionRules
    total_events: int
    total_bytes: int
    positions: list[int] = msgspec.field(default_factory=list)
    bytes: int = 0
    oldest: str | None = None
    newest: str | None = None
    held: dict[HoldReason, int] = msgspec.field(default_factory=dict)
    behind: dict[str, int] = msgspec.field(default_factory=dict)

    @property
    def is_over_size(self) -> bool:
        return self.rules.most_bytes is not None and self.total_bytes - self.bytes > self.rules.most_bytes

    @property
    def is_complete(self) -> bool:
        """Return whether no later event can be due."""
        return self.rules.before_ms is None and not self.is_over_size

    def consider(self, candidate: RetentionCandidate, constraints: RetentionConstraints) -> None:
        """Add the next event, oldest recorded first."""
        due = self.rules.before_ms is not None and age_from_ms(candidate.event) < self.rules.before_ms
        if not due and not self.is_over_size:
            return
        reason = constraints.hold_reason(candidate)
        if reason is not None:
            self.held[reason] = self.held.get(reason, 0) + 1
            if reason is HoldReason.NOT_YET_CONSUMED:
                self.behind |= {
                    offset.consumer.name: offset.position for offset in constraints.lagging_consumers(candidate.event)
                }
            return
        parts = (candidate, *constraints.corrections.get(candidate.event.event_id, ()))
        self.positions += [part.event.position for part in parts]
        self.bytes += sum(part.size for part in parts)
        self.oldest = min(self.oldest or candidate.event.ts, candidate.event.ts)
        self.newest = max(self.newest or candidate.event.ts, candidate.event.ts)


class RetentionResult(msgspec.Struct, frozen=True):
    """The result of a run. `archive`: the file with the expired events; None if nothing was due."""

    plan: RetentionPlan
    archive: str | None = None
    sha256: str | None = None
    forgotten: int = 0
