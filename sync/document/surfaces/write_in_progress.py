"""Detect a program that empties the memory file and is still writing it again."""

import asyncio
from typing import Final

from sync.clock import Clock
from sync.document.markdown.model import Version
from sync.document.markdown.parse import parse
from sync.document.markdown.template import footer_line
from sync.document.merge.three_way import may_be_incomplete
from sync.document.ownership.other_profiles import OtherProfiles
from sync.errors import DocumentUntouchable
from sync.system.files import FileProbe
from sync.texts.language import Language

MAX_WRITE_PAUSE: Final = 4.0  # seconds that a writer may pause between two pieces of the file
MAX_WRITE_DURATION: Final = 60.0  # seconds after which a file without its end is read as it is
FOOTER_MARKS: Final = tuple(footer_line("", language).strip().encode() for language in Language)
FOOTER_SEARCH_BYTES: Final = 256  # bytes at the end that nearly always hold the footer: saves a parse


class WriteInProgress:
    """The write of one memory file. While it runs, our own rename would take the path from the writer."""

    def __init__(self, clock: Clock, other_profiles: OtherProfiles | None) -> None:
        self._clock, self._other_profiles = clock, other_profiles
        self._incomplete_since: float | None = None  # when the file was first seen without its end

    async def is_running(self, disk: FileProbe, current: Version | None) -> bool:
        """Whether the end of the file is missing and it was just written."""
        if _has_footer_mark(disk) or not _lacks_footer(disk, current) or not await self._expects_footer(current):
            self._incomplete_since = None
            return False
        now = self._clock.monotonic()
        self._incomplete_since = now if self._incomplete_since is None else self._incomplete_since
        age = self._clock.now().timestamp() - disk.mtime_ns / 1e9
        return 0 <= age < MAX_WRITE_PAUSE and now - self._incomplete_since < MAX_WRITE_DURATION

    async def _expects_footer(self, current: Version | None) -> bool:
        """A first document may never have had one, but an editor may be saving that of another profile."""
        if current is not None or self._other_profiles is None:
            return current is not None
        return await asyncio.to_thread(self._other_profiles.exist)


def _has_footer_mark(disk: FileProbe) -> bool:
    return any(mark in disk.data[-FOOTER_SEARCH_BYTES:] for mark in FOOTER_MARKS)


def _lacks_footer(disk: FileProbe, current: Version | None) -> bool:
    try:
        document = parse(disk.data)
        return document.label is None if current is None else may_be_incomplete(current.snapshot.document, document)
    except DocumentUntouchable:  # also if the file ends within a character
        return True
