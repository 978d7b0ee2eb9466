"""How a pull that takes more than one answer comes on, told to whoever listens: once an answer, never by the clock.

A callback and not a signal: a signal lets a slow listener see only the last of several changes, and here the first
and the last one mean something.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

from sync.cloud.sync_decisions import PageVerdict
from sync.log.model import RemoteCursor


@dataclass(frozen=True, slots=True)
class PullProgress:
    """Events that this pull has brought, of those that it will bring as far as the server has said.

    `pull` counts the long pulls of this process. A pull that fails ends before `done` is `total`; the next one goes
    on where it ended, and counts from there.
    """

    pull: int
    step: Literal["begin", "report", "end"]
    done: int
    total: int


ProgressListener = Callable[[PullProgress], None]


class PullProgressTracker:
    """The long pulls of one exchange, one after another. One that fits into a single answer is not told."""

    def __init__(self) -> None:
        self._listeners: list[ProgressListener] = []
        self._count = 0
        self._start_seq = 0
        self._last: PullProgress | None = None

    @property
    def is_pulling(self) -> bool:
        """Whether a long pull is: what can wait leaves it the database."""
        return self._last is not None

    @contextmanager
    def reporting_to(self, on_progress: ProgressListener) -> Iterator[None]:
        """Tell a listener, for as long as the block lasts. It may hear of a pull that has begun before."""
        self._listeners.append(on_progress)
        try:
            yield
        finally:
            self._listeners.remove(on_progress)

    def advance(self, before: RemoteCursor, verdict: PageVerdict) -> None:
        """An answer has been taken in."""
        if verdict.reset:  # everything comes again, from the server's floor
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
        """The round has ended, well or not."""
        if self._last is not None:
            self._notify(replace(self._last, step="end"))
            self._last = None

    def _notify(self, progress: PullProgress) -> None:
        self._last = progress
        for listener in self._listeners:
            listener(progress)
