"""A reducer of this device's own document events, while they are pulled again (`restore_own_edits`).

Events come back page by page, and each page needs the whole history of its entries. Reader and writer threads share the
reducer under a lock. The writer adds events of its open transaction, so a failed transaction resets the reducer.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.document.shared.reducer import SharedReducer
from sync.log import store as log_store
from sync.log.event_types import DOCUMENT_EVENT_TYPES
from sync.log.log import EventLog

IDLE_SECONDS: Final = 60.0  # two pages of a pull may be that far apart


class OwnHistory:
    """The own history of one profile."""

    def __init__(self, events: EventLog, clock: Clock) -> None:
        self._log = events
        self._clock = clock
        self._lock = threading.Lock()
        self._reducer: SharedReducer | None = None
        self._built_for: tuple[str, int] = ("", 0)
        self._position = 0
        self._last_used = 0.0

    @contextmanager
    def caught_up(self, connection: Transaction) -> Iterator[SharedReducer]:
        """The reducer with all events that this transaction sees."""
        with self._lock:
            device_id, order_version = self._log.device_id, log_store.order_version(connection)
            if self._reducer is None or (device_id, order_version) != self._built_for:
                self._reducer, self._built_for, self._position = SharedReducer(), (device_id, order_version), 0
            for event in log_store.read_by_device(
                connection, device_id, after=self._position, types=DOCUMENT_EVENT_TYPES
            ):
                self._reducer.add(event)
                self._position = event.position
            self._last_used = self._clock.monotonic()
            yield self._reducer

    def reset(self) -> None:
        """Drop the reducer; the next use builds it from the whole log."""
        with self._lock:
            self._reducer = None

    def release_if_idle(self) -> None:
        """Free the reducer after `IDLE_SECONDS` without use."""
        with self._lock:
            if self._reducer is not None and self._clock.monotonic() - self._last_used > IDLE_SECONDS:
                self._reducer = None
