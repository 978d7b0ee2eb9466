"""All that this device has said of its document, folded, while what it said comes back to it (`returned`).

A memory comes back page by page, and each page needs the whole history of the entries it names. The fold is fed what is
new and let go when nothing has come back for a while. The reader's and the writer's thread both use it, under a lock;
the writer sees events of its own transaction, so where that fails the fold is thrown away.
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

IDLE_SECONDS: Final = 60.0  # seconds; between two pages of a pull there may be a minute's wait


class OwnHistory:
    """One profile's."""

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
        """The fold with all that this transaction sees."""
        with self._lock:
            of = (self._log.device_id, log_store.order_version(connection))
            if self._reducer is None or of != self._built_for:
                self._reducer, self._built_for, self._position = SharedReducer(), of, 0
            for event in log_store.read_by_device(connection, of[0], after=self._position, types=DOCUMENT_EVENT_TYPES):
                self._reducer.add(event)
                self._position = event.position
            self._last_used = self._clock.monotonic()
            yield self._reducer

    def reset(self) -> None:
        """Fold from the start at the next question."""
        with self._lock:
            self._reducer = None

    def release_if_idle(self) -> None:
        """Nothing comes back just now: let go of what was folded, after a while."""
        with self._lock:
            if self._reducer is not None and self._clock.monotonic() - self._last_used > IDLE_SECONDS:
                self._reducer = None
