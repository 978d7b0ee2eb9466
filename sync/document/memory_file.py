"""Keeps the log and the memory file telling the same story.

`settle()` is the whole of it: what the log says is put into the newest version, what a hand did to the file becomes
events, and if the two differ the file is written. It can be called at any time, from any cause, as often as one likes.

Decisions
    A version is stored before it is written to the file, together with the events or the watermark it stands for. A
    crash between the two leaves a file that equals an older version: the next call writes the newer one.
    Our own write equals a known version, so it is no news: no timer suppresses echoes.
    An empty, vanished or mostly-shrunk file is no mass delete. An empty or missing one is filled again when there is
    something new to write; a mostly-shrunk one is left alone until it is explained, or until something is to be
    forgotten that it may show: then what stood in it is kept as a version, without that, and the newest is written.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Final, Literal

from sync.clock import Clock
from sync.digests import sha256
from sync.document.app_cache import read_content
from sync.document.aside import Aside
from sync.document.cache_ring import CacheRing
from sync.document.cloud_versions import CloudVersions
from sync.document.imports import Imports
from sync.document.ledger import DocumentView, Edited, Footing
from sync.document.model import Document, Version, encode
from sync.document.neighbours import Neighbour, Neighbours, park
from sync.document.parse import parse
from sync.document.past import Past
from sync.document.remarks import ANSWERED, QUESTIONS, Notice, remarks
from sync.document.sharing import Sharing
from sync.document.slow_write import SlowWrite
from sync.document.strangers import NO_MARKS, Marks
from sync.document.surface import Sleep, stable_read
from sync.document.versions import Versions
from sync.document.withheld import Erasures
from sync.errors import DocumentChanged, DocumentUntouchable, InvalidInput, StorageError, XiaobaiError
from sync.files import Probe, Stamp, compare_and_swap, remove_unchanged, stamp
from sync.log.log import Log
from sync.redaction import Redactor
from sync.sections import DocumentSettings

ATTEMPTS: Final = 5  # rounds against an editor that saves at the same moment; the next event starts over

log = logging.getLogger(__name__)


class _May(Enum):
    """What may be done to the file after it was read."""

    WRITE = "write"
    REPLACE = "replace"  # it is another account's: even an empty place is better
    WRITE_NEWS = "write news"  # it is empty or gone: fill it again only with something it never had
    NOTHING = "nothing"  # it is not understood, or a person has to say what was meant


@dataclass(frozen=True, slots=True)
class Beside:
    """Where else a document may be: the app's cache, which we may write if asked, and the other profiles.

    `parked`: the profile's own folder for documents of its that turned up where they cannot stay.
    """

    app_cache: Path | None = None
    write_back: bool = False
    neighbours: Neighbours | None = None
    parked: Path | None = None


class MemoryFile:
    """The memory file of one profile. Only the holder of the sidecar role calls `settle`; anybody may `view`."""

    def __init__(
        self,
        path: Path,
        events: Log,
        redactor: Redactor,
        *,
        clock: Clock,
        options: DocumentSettings,
        beside: Beside | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.path = path
        self.notices: set[Notice] = set()
        sharing = Sharing(events, redactor, clock=clock) if options.sharing == "user" else None
        beside = beside or Beside()
        footing = Footing(events, redactor, clock, options.keep_versions, Past(events, clock), sharing, beside.parked)
        self.versions, self.cloud, self.imports = Versions(footing), CloudVersions(footing), Imports(footing)
        self.erasures = Erasures(footing)
        self._app_cache, self._write_back, self._neighbours = beside.app_cache, beside.write_back, beside.neighbours
        self.aside = Aside(path, beside.parked, self.versions, self._stranger)
        self._cached = CacheRing(events, clock=clock, keep=options.keep_versions)
        self._keep_days, self._redactor, self._sleep = options.keep_days, redactor.for_leaving(), sleep
        self._turn, self._writing = asyncio.Lock(), SlowWrite(clock)
        self._looked: Stamp | None = None
        self._remarked: tuple[str | None, frozenset[Notice]] = None, frozenset()  # of which version what is to be said

    @property
    def looked_at(self) -> bool:
        """Whether the file is, as far as `stat` can tell, as it was when it was last taken in or written."""
        return stamp(self.path) == self._looked

    async def view(self) -> DocumentView:
        """The newest known document, whether or not the file has it yet."""
        return await self.versions.view()

    async def warnings(self) -> set[Notice]:
        """What was noted of the file, and what is to be said of the newest version."""
        current = await self.versions.newest()
        if current is not None and self._remarked[0] != current.sha256:
            self._remarked = current.sha256, await asyncio.to_thread(remarks, current, self._redactor)
        return self.notices | (self._remarked[1] if current else frozenset()) | await self.erasures.notices()

    async def doubts(self) -> set[Notice]:
        """What a person would be asked about the file as it stands, and the warnings; changes nothing."""
        warnings = await self.warnings()
        disk = await stable_read(self.path, self._sleep, known=self._remarked[0])
        if disk is not None and disk.sha256 == self._remarked[0]:
            return warnings
        try:
            lost = await self.versions.is_lost(parse(disk.data) if disk else None)
        except DocumentUntouchable:
            return warnings | {Notice.UNTOUCHABLE}
        return warnings | ({Notice.MISSING if disk is None else Notice.MASS_DELETE} if lost else set())

    async def settle(self, *, only: str | None = None) -> None:
        """Bring file, versions and log together. Raises StorageError, and notes it; an untouchable file is only noted.

        `only`: the hash of the bytes that may be taken in; DocumentChanged where others are there by now.
        """
        async with self._turn:
            await self._settle(only)

    async def look(self) -> None:
        """Settle unless the file is as it was when somebody last looked; waits for a look that is under way."""
        if not self.looked_at:
            async with self._turn:
                if not self.looked_at:
                    await self._settle()

    async def save(self, text: str, base_sha256: str | None, *, meant: bool) -> Edited:
        """Take a whole document from the app as a hand edit of what `load` showed it, and write the file."""
        try:
            document = parse(text.encode())
        except (DocumentUntouchable, UnicodeEncodeError) as error:
            raise InvalidInput("the document is not readable Markdown text", field="document") from error
        if await self._stranger(document, self.versions.handed_out.marks) is not None:
            raise InvalidInput("this document is another account's memory", field="document", hint="Load again.")
        async with self._turn:
            await self._settle()  # what is on disk comes first: the app's text is merged with it
            edited = await self.versions.save(document, base_sha256, meant=meant)
            await self._settle()
        return edited

    async def take_in_cloud(self, content: str) -> bool:
        """Take what another program wrote into the cloud as a hand edit; False, and a notice, where it must wait."""
        async with self._turn:
            await self._settle()  # what is on disk comes first
            self.notices -= {Notice.CLOUD_MASS_DELETE, Notice.CLOUD_UNREADABLE}
            try:
                edited = await self.cloud.take_in(content)
            except DocumentUntouchable:
                self.notices.add(Notice.CLOUD_UNREADABLE)
                return False
            if edited is None:
                self.notices.add(Notice.CLOUD_MASS_DELETE)
                return False
            await self._settle()
        return True

    async def restore(self, digest: str) -> Edited:
        """Bring an older version back, as new events, and write the file."""
        async with self._turn:
            await self._settle()
            edited = await self.versions.restore(digest)
            if Notice.MASS_DELETE in self.notices:  # this says what was meant: the older version
                await self._put_back()
            await self._settle()
        return edited

    async def resolve(self, answer: Literal["accept", "restore"]) -> Edited | None:
        """A person's answer to a warning that asks (`ANSWERED`, last `mass_erasure_waits`); None without one.

        `accept`: the lines were meant to go. `restore`: what was there, here or in the cloud's row, is written again.
        """
        async with self._turn:
            await self._settle()  # the file may have changed since the question: nothing else is answered
            edited = None
            if not self.notices & ANSWERED:
                edited = await self.erasures.answer(accept=answer == "accept")
            elif Notice.CLOUD_MASS_DELETE in self.notices:
                self.notices.discard(Notice.CLOUD_MASS_DELETE)
                edited = await self.cloud.resolve(answer)
            elif answer == "accept":
                data = disk.data if (disk := await stable_read(self.path, self._sleep)) else b""
                edited = await self.versions.take_in(sha256(data), parse(data), meant=True)
            else:
                await self._put_back()
            await self._settle()
        return edited

    async def _put_back(self) -> None:
        """Write the newest version over a file that lost its lines; what stands in it is kept as a version."""
        disk = await stable_read(self.path, self._sleep)
        if disk is not None and not (document := parse(disk.data)).is_blank:
            await self.versions.set_aside(document)
        if (current := await self.versions.newest()) is not None:
            await self._write(disk, current)

    async def _settle(self, only: str | None = None) -> None:
        cached = await self._take_in_app_cache()
        with _noted(self.notices, Notice.UNREACHABLE):
            await self._settle_file(only)
        if cached is not None and self._write_back:
            await self._fill_app_cache(cached)

    async def _settle_file(self, only: str | None) -> None:
        for _ in range(ATTEMPTS):
            seen = stamp(self.path)
            stands = await self.versions.standing(keep_days=self._keep_days)
            disk = await stable_read(self.path, self._sleep, known=stands.sha256)
            if only is not None and (disk is None or disk.sha256 != only):
                raise DocumentChanged(f"{self.path.name} was saved again")
            if stands.at_rest and disk and disk.sha256 == stands.sha256:
                self._has_looked(seen, None)
                return
            if disk is not None and self._writing.is_under_way(disk, stands.newest):
                return  # not looked at yet: the next event or poll looks again
            may, question = await self._take_in(disk, stands.newest)
            current = await self.versions.follow(keep_days=self._keep_days if may is _May.WRITE else -1)
            worth = current if current and await self._worth_writing(disk, current, may) else None
            if may is _May.WRITE_NEWS and current and worth is None and not current.snapshot.document.is_blank:
                question = Notice.MISSING if disk is None else Notice.MASS_DELETE
            self._has_looked(seen, question)
            try:
                if worth is not None:
                    await self._write(disk, worth)
                elif current is None and disk is not None and may is _May.REPLACE:  # nothing is known to stand there
                    await asyncio.to_thread(remove_unchanged, self.path, disk.sha256)
            except DocumentChanged:
                continue
            return

    def _has_looked(self, seen: Stamp | None, question: Notice | None) -> None:
        """Only now, with the edit taken in: whoever asks before shall wait. `seen`: the file before it was read."""
        self.notices -= QUESTIONS  # in place: `_noted` holds the same set
        self.notices |= {question} if question else set()
        self._looked = seen

    async def _take_in(self, disk: Probe | None, current: Version | None) -> tuple[_May, Notice | None]:
        """Make events of what a hand did; says what may be done to the file now, and what a person has to be asked."""
        if disk is None:
            return _May.WRITE_NEWS, None
        if current is not None and disk.sha256 == current.sha256:
            await self.versions.seen_on_disk(current)
            return _May.WRITE, None
        try:
            document = parse(disk.data)
        except DocumentUntouchable:
            return _May.NOTHING, Notice.UNTOUCHABLE
        if document.is_blank:
            return _May.WRITE_NEWS, None
        if (stranger := await self._stranger(document)) is not None:
            await asyncio.to_thread(park, stranger.parked, disk.data)
            self.notices.add(Notice.STRANGER)
            return _May.REPLACE, None
        if await self.versions.take_in(disk.sha256, document) is None:
            return await _may_with_a_loss(document, self.versions)
        return _May.WRITE, None

    async def _stranger(self, document: Document, shown: Marks = NO_MARKS) -> Neighbour | None:
        """The other account of this machine that the document belongs to."""
        if self._neighbours is None:
            return None
        return await asyncio.to_thread(self._neighbours.owner_of, document, shown)

    async def _worth_writing(self, disk: Probe | None, current: Version, may: _May) -> bool:
        if may in {_May.WRITE, _May.REPLACE}:
            return disk is None or disk.sha256 != current.sha256
        return may is not _May.NOTHING and current.number > (await self.versions.standing()).on_disk

    async def _take_in_app_cache(self) -> bytes | None:
        """Make events of what the app wrote into its cache; what it holds, empty for nothing, None where unreadable."""
        if self._app_cache is None:
            return None
        try:
            content = await read_content(self._app_cache)
            document = None if content is None else parse(content)
        except (StorageError, DocumentUntouchable) as error:
            _note_app_cache(self.notices, error)
            return None
        self.notices.discard(Notice.APP_CACHE)
        if content is None or document is None or document.is_blank:
            return content or b""
        if await self._stranger(document) is not None:
            self.notices.add(Notice.STRANGER)
            return None
        file_first = not self.looked_at and self.path.exists()
        await self.versions.take_in_app_cache(sha256(content), document, file_first=file_first)
        return content

    async def _fill_app_cache(self, cached: bytes) -> None:
        current = await self.versions.newest()
        if self._app_cache is None or current is None:
            return
        try:
            await self._cached.fill(self._app_cache, cached, current)
        except StorageError as error:
            _note_app_cache(self.notices, error)

    async def _write(self, disk: Probe | None, current: Version) -> None:
        """Compare-and-swap, then note that the file has it. Raises DocumentChanged, StorageError."""
        data, expected = encode(current.snapshot.document), disk.sha256 if disk else None
        self._looked = await self.aside.after(asyncio.to_thread(compare_and_swap, self.path, expected, data))
        await self.versions.seen_on_disk(current)


def _note_app_cache(notices: set[Notice], error: XiaobaiError) -> None:
    notices.add(Notice.APP_CACHE)
    log.warning("the app's cache was left alone: %s", error.kind)


@contextmanager
def _noted(notices: set[Notice], notice: Notice) -> Iterator[None]:
    """Note a StorageError for as long as it comes again."""
    try:
        yield
    except StorageError:
        notices.add(notice)
        raise
    notices.discard(notice)


async def _may_with_a_loss(document: Document, versions: Versions) -> tuple[_May, Notice | None]:
    """A person is asked what was meant, unless the file may show what is to be forgotten now: it is written again then.

    Later it could no longer be told from an edit, because the versions will not know the lines that it still has.
    """
    if await versions.set_aside(document, to_forget=True):
        return _May.REPLACE, None
    return _May.NOTHING, Notice.MASS_DELETE
