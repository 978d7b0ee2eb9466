"""The shared document of one device: a reducer kept up to date with the log.

The reducer is in memory, built at the first new event after a start; an up-to-date version needs none. Reader and
writer threads share it under a lock. The writer adds events of its open transaction, so a failed transaction resets it.
"""

import threading
from functools import lru_cache
from typing import Final

import msgspec

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.db.schema import RECOVERY_STARTED
from sync.document.markdown.language import LanguageChoice
from sync.document.markdown.model import MergePlan, Operation, Snapshot, Version
from sync.document.markdown.version_labels import is_shared_label
from sync.document.shared.local_edits import draft_edit_events
from sync.document.shared.local_overlay import build_overlay
from sync.document.shared.reducer import SharedReducer
from sync.document.shared.render import render_shared
from sync.document.shared.unlogged_entries import adopt_logged_ids, unlogged_additions
from sync.log import store as log_store
from sync.log.event_types import DOCUMENT_EVENT_TYPES
from sync.log.local_state import SHARED_ORDER_VERSION
from sync.log.log import EventLog
from sync.log.model import EventDraft, Origin
from sync.log.projections.registry import SHARED_DOCUMENT
from sync.redaction import Redactor

SHARED_OFFSET: Final = SHARED_DOCUMENT.name  # log position up to which the newest version has it
CACHED_REDACTIONS: Final = 4_096  # lines typed here; each redaction runs all rules


class SharedChange(msgspec.Struct, frozen=True):
    """The document with events beyond the newest version, the time of the newest one, and the log position."""

    snapshot: Snapshot
    ts: str
    position: int


class SharedProjection:
    """The shared document of one profile. All methods run inside a transaction of the caller."""

    is_shared: Final = True

    def __init__(self, events: EventLog, redactor: Redactor, *, clock: Clock, language: LanguageChoice) -> None:
        del language  # the log has it
        self._log = events
        self._redactor = redactor.for_egress()
        self._redact = lru_cache(maxsize=CACHED_REDACTIONS)(self._redactor.clean)
        self._clock = clock
        self._lock = threading.Lock()
        self._reducer: SharedReducer | None = None
        self._last_rendered: tuple[str | None, Snapshot | None, Snapshot] | None = None
        self._position = 0
        self._order = 0

    def reset(self) -> None:
        """Drop the reducer; the next use builds it from the whole log."""
        with self._lock:
            self._reducer = None

    def is_behind(self, connection: Transaction, current: Version | None) -> bool:
        """Whether the newest version lacks events, has an older order of events, or is not a shared document."""
        newest = log_store.newest_position_of_types(connection, DOCUMENT_EVENT_TYPES)
        if newest == 0:
            return False
        is_shared = current is not None and is_shared_label(current.label)
        if not is_shared or newest > log_store.watermark(connection, SHARED_OFFSET):
            return True
        return log_store.order_version(connection) != log_store.watermark(connection, SHARED_ORDER_VERSION)

    def pending_change(self, connection: Transaction, current: Version | None) -> SharedChange | None:
        """The shared document, if the newest version is behind it."""
        if not self.is_behind(connection, current):
            return None
        with self._lock:
            reducer = self._caught_up_reducer(connection)
            shown = self._render(
                reducer, self._with_logged_ids(connection, reducer, current.snapshot) if current else None
            )
            return SharedChange(shown, reducer.newest_ts or "", self._position)

    def render_and_checkpoint(self, connection: Transaction, local: Snapshot) -> Snapshot | None:
        """Render the shared document and note it as the next version's. None before any event."""
        with self._lock:
            reducer = self._caught_up_reducer(connection)
            if reducer.label is None:
                return None
            log_store.set_watermark(connection, SHARED_OFFSET, self._position, self._clock)
            log_store.set_watermark(connection, SHARED_ORDER_VERSION, self._order, self._clock)
            return self._render(reducer, self._with_logged_ids(connection, reducer, local))

    def _with_logged_ids(self, connection: Transaction, reducer: SharedReducer, local: Snapshot) -> Snapshot:
        if not log_store.watermark(connection, RECOVERY_STARTED):
            return local
        return adopt_logged_ids(
            local, render_shared(reducer, build_overlay(None, reducer, self._redact)), reducer, self._redact
        )

    def unlogged_additions(self, connection: Transaction, local: Snapshot) -> tuple[Operation, ...]:
        """The lines that no event names, as additions of a manual edit."""
        with self._lock:
            return unlogged_additions(local, self._caught_up_reducer(connection))

    def draft_edit_events(
        self, connection: Transaction, plan: MergePlan, base: Version | None, origin: Origin
    ) -> list[EventDraft]:
        """Draft the events of a manual edit."""
        with self._lock:
            reducer = self._caught_up_reducer(connection)
            return draft_edit_events(plan, base.snapshot if base else None, reducer, self._redactor, origin)

    def _render(self, reducer: SharedReducer, local: Snapshot | None) -> Snapshot:
        """Render the document; the last result is cached, because loads and the file need the same."""
        if (
            self._last_rendered is None
            or self._last_rendered[0] != reducer.label
            or self._last_rendered[1] is not local
        ):
            self._last_rendered = (
                reducer.label,
                local,
                render_shared(reducer, build_overlay(local, reducer, self._redact)),
            )
        return self._last_rendered[2]

    def _caught_up_reducer(self, connection: Transaction) -> SharedReducer:
        """The reducer with all events that this transaction sees."""
        order = log_store.order_version(connection)
        if self._reducer is None or order != self._order:
            self._reducer, self._last_rendered, self._position, self._order = SharedReducer(), None, 0, order
        reducer = self._reducer
        for event in log_store.read_by_types(connection, DOCUMENT_EVENT_TYPES, after=self._position):
            reducer.add(event)
            self._position = event.position
        return reducer
