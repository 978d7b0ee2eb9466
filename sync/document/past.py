"""All that this device has said of its document, folded, while what it said comes back to it (`returned`).

A memory comes back page by page, and each page needs the whole history of the entries it names. The fold is fed what is
new and let go when nothing has come back for a while. The reader's and the writer's thread both use it, under a lock;
the writer sees events of its own transaction, so where that fails the fold is thrown away.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy import Connection

from sync.clock import Clock
from sync.document.deeds import FOLDED
from sync.document.shared import SharedFold
from sync.log import store as log_store
from sync.log.log import Log

KEPT: Final = 60.0  # seconds; between two pages of a pull there may be a minute's wait


class Past:
    """One profile's."""

    def __init__(self, events: Log, clock: Clock) -> None:
        self._log = events
        self._clock = clock
        self._guard = threading.Lock()
        self._fold: SharedFold | None = None
        self._of: tuple[str, int] = ("", 0)
        self._position = 0
        self._used = 0.0

    @contextmanager
    def folded(self, connection: Connection) -> Iterator[SharedFold]:
        """The fold with all that this transaction sees."""
        with self._guard:
            of = (self._log.device_id, log_store.order(connection))
            if self._fold is None or of != self._of:
                self._fold, self._of, self._position = SharedFold(), of, 0
            for event in log_store.of_device(connection, of[0], after=self._position, types=FOLDED):
                self._fold.add(event)
                self._position = event.position
            self._used = self._clock.monotonic()
            yield self._fold

    def forget(self) -> None:
        """Fold from the start at the next question."""
        with self._guard:
            self._fold = None

    def rest(self) -> None:
        """Nothing comes back just now: let go of what was folded, after a while."""
        with self._guard:
            if self._fold is not None and self._clock.monotonic() - self._used > KEPT:
                self._fold = None
