"""The progress of a pull that takes more than one answer: one callback per answer.

Callbacks instead of a `ChangeCounter`, because a slow listener must not miss the first and the last report.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Literal

import msgspec
from msgspec.structs import replace

from sync.cloud.sync_decisions import PageVerdict
from sync.log.model import RemoteCursor


class PullProgress(msgspec.Struct, frozen=True):
    """How many events a pull has brought, of the total that the server has announced.

    `pull` numbers the long pulls of this process. A pull that fails ends before `done` reaches `total`; the next one
    continues there and counts from zero.
    """

    pull: int
    step: Literal["begin", "report", "end"]
    done: int
    total: int


ProgressListener = Callable[[PullProgress], None]


class PullProgressTracker:
    """Reports the long pulls of one `SyncRunner`. A pull that fits into one answer is not reported."""

    def __init__(self) -> None:
        self._listeners: list[ProgressListener] = []
        self._count = 0
        self._start_seq = 0
        self._last: PullProgress | None = None

    @property
    def is_pulling(self) -> bool:
        """Whether a long pull is running: work that can wait should leave the database to it."""
        return self._last is not None

    @contextmanager
    def reporting_to(self, on_progress: ProgressListener) -> Iterator[None]:
        """Report to a listener within the block. A pull may already be running."""
        self._listeners.append(on_progress)
        try:
            yield
        finally:
            self._listeners.remove(on_progress)

    def advance(self, before: RemoteCursor, verdict: PageVerdict) -> None:
        """An answer was applied."""
        if verdict.reset:  # the pull starts over at the server's floor
            self._start_seq = verdict.cursor.seq
            return
        if self._last is None:
            if verdict.caught_up:
                return
            self._start_seq = before.seq
            self._count += 1
        step: Literal["begin", "report"] = "report" if self._last else "begin"
        here = verdict.cursor
        self._notify(PullProgress(self._count, step, here.seq - self._start_seq, here.head - self._start_seq))
        if verdict.caught_up:
            self.end()

    def end(self) -> None:
        """The round has ended or failed."""
        if self._last is not None:
            self._notify(replace(self._last, step="end"))
            self._last = None

    def _notify(self, progress: PullProgress) -> None:
        self._last = progress
        for listener in self._listeners:
            listener(progress)
