"""The lines of this device's own document events, while they are pulled again (`restore_own_edits`).

Events come back page by page, and each page needs the whole history of its entries. Reader and writer threads share the
lines under a lock. The writer adds events of its open transaction, so a failed transaction resets them.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.document.own.own_lines import OwnLines
from sync.log import store as log_store
from sync.log.envelope import event_order
from sync.log.event_types import DOCUMENT_EVENT_TYPES
from sync.log.log import EventLog

IDLE_SECONDS: Final = 60.0  # two pages of a pull may be that far apart


class OwnHistory:
    """The own history of one profile."""

    def __init__(self, events: EventLog, clock: Clock) -> None:
        self._log = events
        self._clock = clock
        self._lock = threading.Lock()
        self._lines: OwnLines | None = None
        self._built_for: tuple[str, int] = ("", 0)
        self._position = 0
        self._newest = ("", "", "")  # the place of the last event in the order
        self._last_used = 0.0

    @contextmanager
    def caught_up(self, connection: Transaction) -> Iterator[OwnLines]:
        """The lines with all events that this transaction sees. An event that is late rebuilds them."""
        with self._lock:
            built_for = self._log.device_id, log_store.order_version(connection)
            if self._lines is None or built_for != self._built_for or not self._add_new(connection, self._lines):
                self._lines, self._built_for, self._position = OwnLines(), built_for, 0
                self._newest = ("", "", "")
                self._add_new(connection, self._lines)
            self._last_used = self._clock.monotonic()
            yield self._lines

    def _add_new(self, connection: Transaction, lines: OwnLines) -> bool:
        """Add the events since the last call; return False if one of them is older than those before."""
        events = log_store.read_by_device(
            connection, self._log.device_id, after=self._position, types=DOCUMENT_EVENT_TYPES
        )
        ordered = sorted(events, key=event_order)
        if ordered and event_order(ordered[0]) < self._newest:
            return False
        for event in ordered:
            lines.add(event)
            self._position = max(self._position, event.position)
            self._newest = event_order(event)
        return True

    def reset(self) -> None:
        """Drop the lines; the next use builds them from the whole log."""
        with self._lock:
            self._lines = None

    def release_if_idle(self) -> None:
        """Free the lines after `IDLE_SECONDS` without use."""
        with self._lock:
            if self._lines is not None and self._clock.monotonic() - self._last_used > IDLE_SECONDS:
                self._lines = None
