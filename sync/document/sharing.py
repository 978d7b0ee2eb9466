"""The shared document of one device: the fold kept level with the log, and what the versions ask of it.

The fold lives in memory and is fed what is new. It is made from the whole log at the first event after a start, not
at the start itself: a version that holds all there is needs none. The reader's and the writer's thread both use it,
under a lock; the writer sees events of its own transaction, so where that fails the fold is thrown away.
"""

import threading
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from sqlalchemy import Connection

from sync.clock import Clock
from sync.db.tables import RECOVERY
from sync.document.canonical import canonical
from sync.document.deeds import FOLDED
from sync.document.hand import shared_drafts
from sync.document.labels import is_shared
from sync.document.model import Operation, Plan, Snapshot, Version
from sync.document.overlay import overlay
from sync.document.recovery import additions, adopted
from sync.document.shared import SharedFold
from sync.log import store as log_store
from sync.log.log import Log
from sync.log.model import Draft, Origin
from sync.redaction import Redactor

SHARED: Final = "document.shared"  # how far the log is in the newest version of a shared document
ORDERED: Final = "document.shared.order"  # which order of the log the newest version follows
REMEMBERED: Final = 4_096  # redacted forms of lines typed here; each costs a look through all rules


@dataclass(frozen=True, slots=True)
class News:
    """A document with what the log has beyond the newest version; when that was said, and up to which position."""

    snapshot: Snapshot
    ts: str
    position: int


class Sharing:
    """One profile's part in the shared document. Everything runs inside a transaction of the caller."""

    def __init__(self, events: Log, redactor: Redactor, *, clock: Clock) -> None:
        self._log = events
        self._redactor = redactor.for_leaving()
        self._clean = lru_cache(maxsize=REMEMBERED)(self._redactor.clean)
        self._clock = clock
        self._guard = threading.Lock()
        self._fold: SharedFold | None = None
        self._last: tuple[str | None, Snapshot | None, Snapshot] | None = None
        self._position = 0
        self._order = 0

    def forget(self) -> None:
        """Fold from the start at the next question."""
        with self._guard:
            self._fold = None

    def is_behind(self, connection: Connection, current: Version | None) -> bool:
        """Whether the newest version lacks an event, has them in an older order, or is of the time before sharing."""
        newest = log_store.newest_of_types(connection, FOLDED)
        if newest == 0:
            return False
        level = current is not None and is_shared(current.label)
        if not level or newest > log_store.watermark(connection, SHARED):
            return True
        return log_store.order(connection) != log_store.watermark(connection, ORDERED)

    def news(self, connection: Connection, current: Version | None) -> News | None:
        """The shared document where the newest version is behind it."""
        if not self.is_behind(connection, current):
            return None
        with self._guard:
            fold = self._level(connection)
            shown = self._shown(fold, self._adopted(connection, fold, current.snapshot) if current else None)
            return News(shown, fold.newest_ts or "", self._position)

    def finished(self, connection: Connection, local: Snapshot) -> Snapshot | None:
        """The shared document as this device shows it, noted as what the next version holds. None before any event."""
        with self._guard:
            fold = self._level(connection)
            if fold.label is None:
                return None
            log_store.set_watermark(connection, SHARED, self._position, self._clock)
            log_store.set_watermark(connection, ORDERED, self._order, self._clock)
            return self._shown(fold, self._adopted(connection, fold, local))

    def _adopted(self, connection: Connection, fold: SharedFold, local: Snapshot) -> Snapshot:
        if not log_store.watermark(connection, RECOVERY):
            return local
        return adopted(local, canonical(fold, overlay(None, fold, self._clean)), fold, self._clean)

    def additions(self, connection: Connection, local: Snapshot) -> tuple[Operation, ...]:
        """The lines that no event speaks of, as what a hand would have added."""
        with self._guard:
            return additions(local, self._level(connection))

    def drafts(self, connection: Connection, planned: Plan, base: Version | None, origin: Origin) -> list[Draft]:
        """What a hand did, ready to record."""
        with self._guard:
            fold = self._level(connection)
            return shared_drafts(planned, base.snapshot if base else None, fold, self._redactor, origin)

    def _shown(self, fold: SharedFold, local: Snapshot | None) -> Snapshot:
        """The document on this device; the last one is kept, since a load and the file ask for the same."""
        if self._last is None or self._last[0] != fold.label or self._last[1] is not local:
            self._last = (fold.label, local, canonical(fold, overlay(local, fold, self._clean)))
        return self._last[2]

    def _level(self, connection: Connection) -> SharedFold:
        """The fold with all that this transaction sees."""
        order = log_store.order(connection)
        if self._fold is None or order != self._order:
            self._fold, self._last, self._position, self._order = SharedFold(), None, 0, order
        fold = self._fold
        for event in log_store.of_types(connection, FOLDED, after=self._position):
            fold.add(event)
            self._position = event.position
        return fold
