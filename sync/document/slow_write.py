"""Whether a program that empties the memory file and fills it again still writes its rest."""

from typing import Final

from sync.clock import Clock
from sync.document.model import Version
from sync.document.parse import parse
from sync.document.plan import is_unfinished
from sync.document.template import footer
from sync.errors import DocumentUntouchable
from sync.files import Probe

WRITER_PATIENCE: Final = 4.0  # seconds that a writer may pause between two pieces of the file
LONGEST_WRITE: Final = 60.0  # seconds after which a file without its end is taken as it is, however often it changes
FOOTER_MARK: Final = footer("").encode()
FOOTER_WITHIN: Final = 256  # bytes of the end in which the footer of a whole file nearly always is: saves a parse


class SlowWrite:
    """The write of one memory file, as far as it can be known. A rename would take the path from the writer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: float | None = None  # when the file was first seen without its end

    def is_under_way(self, disk: Probe, current: Version | None) -> bool:
        """Whether the end of the file is missing and it was just written."""
        if current is None or FOOTER_MARK in disk.data[-FOOTER_WITHIN:] or not _lacks_footer(disk, current):
            self._since = None
            return False
        now = self._clock.monotonic()
        self._since = now if self._since is None else self._since
        age = self._clock.now().timestamp() - disk.mtime_ns / 1e9
        return 0 <= age < WRITER_PATIENCE and now - self._since < LONGEST_WRITE


def _lacks_footer(disk: Probe, current: Version) -> bool:
    try:
        return is_unfinished(current.snapshot.document, parse(disk.data))
    except DocumentUntouchable:  # also if the file ends within a character
        return True
