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
from sync.document.markdown.model import MemoryDocument, Version
from sync.document.markdown.parse import parse
from sync.document.ownership.fingerprints import NO_MARKS, OwnershipMarks
from sync.document.ownership.other_profiles import OtherProfiles, ProfilePaths, park_copy
from sync.document.shared.projection import SharedProjection
from sync.document.surfaces.app_cache_history import AppCacheHistory
from sync.document.surfaces.notices import FILE_QUESTIONS, RESOLVABLE, Notice, version_notices
from sync.document.surfaces.stable_read import Sleep, stable_read
from sync.document.surfaces.swap_recovery import SwapRecovery
from sync.document.surfaces.withheld_erasures import WithheldErasures
from sync.document.surfaces.write_in_progress import WriteInProgress
from sync.document.versions.cloud_history import CloudHistory
from sync.document.versions.file_history import FileHistory
from sync.document.versions.importer import DocumentImporter
from sync.document.versions.own_projection import OwnProjection
from sync.document.versions.writer import DocumentView, EditResult, VersionWriter
from sync.errors import DocumentChanged, DocumentUntouchable, InvalidInput, StorageError
from sync.log.log import EventLog
from sync.redaction import Redactor
from sync.settings.sections import DocumentSettings
from sync.system.atomic_swap import compare_and_swap, remove_unchanged
from sync.system.digests import sha256
from sync.system.files import FileProbe, FileStamp, stat_stamp

MAX_ATTEMPTS: Final = 5  # rounds against an editor that saves at the same moment; the next event starts over

log = logging.getLogger(__name__)


class _WritePermission(Enum):
    """What may be done to the file after it was read."""

    WRITE = "write"
    REPLACE = "replace"  # it is another account's: even an empty place is better
    WRITE_NEWS = "write news"  # it is empty or gone: fill it again only with something it never had
    NOTHING = "nothing"  # it is not understood, or a person has to say what was meant


@dataclass(frozen=True, slots=True)
class MemoryFileDeps:
    """Where else a document may be: the app's cache, which we may write if asked, and the other profiles.

    `parked`: the profile's own folder for documents of its that turned up where they cannot stay.
    """

    app_cache: Path | None = None
    write_back: bool = False
    other_profiles: OtherProfiles | None = None
    parked_folder: Path | None = None


class MemoryFile:
    """The memory file of one profile. Only the holder of the sidecar role calls `settle`; anybody may `view`."""

    def __init__(
        self,
        path: Path,
        events: EventLog,
        redactor: Redactor,
        *,
        clock: Clock,
        options: DocumentSettings,
        deps: MemoryFileDeps | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.path = path
        self.notices: set[Notice] = set()
        deps = deps or MemoryFileDeps()
        projection = (SharedProjection if options.sharing == "user" else OwnProjection)(events, redactor, clock=clock)
        writer = VersionWriter(
            events,
            redactor,
            clock,
            keep_versions=options.keep_versions,
            projection=projection,
            parked_folder=deps.parked_folder,
        )
        self.versions, self.cloud_history = FileHistory(writer), CloudHistory(writer)
        self.importer, self.withheld_erasures = DocumentImporter(writer), WithheldErasures(writer)
        self._other_profiles = deps.other_profiles
        self.swap_recovery = SwapRecovery(path, deps.parked_folder, self.versions, self._other_owner)
        self._app_cache = AppCacheHistory(
            writer, deps.app_cache, self.notices, self._other_owner, write_back=deps.write_back
        )
        self._keep_days, self._redactor, self._sleep = options.keep_days, redactor.for_egress(), sleep
        self._lock, self._write_in_progress = asyncio.Lock(), WriteInProgress(clock)
        self._read_stamp: FileStamp | None = None
        self._version_notices: tuple[str | None, frozenset[Notice]] = (
            None,
            frozenset(),
        )  # of which version what is to be said

    @property
    def is_unchanged(self) -> bool:
        """Whether the file is, as far as `stat` can tell, as it was when it was last taken in or written."""
        return stat_stamp(self.path) == self._read_stamp

    async def view(self) -> DocumentView:
        """The newest known document, whether or not the file has it yet."""
        return await self.versions.view()

    async def warnings(self) -> set[Notice]:
        """What was noted of the file, and what is to be said of the newest version."""
        current = await self.versions.newest()
        if current is not None and self._version_notices[0] != current.sha256:
            self._version_notices = current.sha256, await asyncio.to_thread(version_notices, current, self._redactor)
        return (
            self.notices
            | (self._version_notices[1] if current else frozenset())
            | await self.withheld_erasures.notices()
        )

    async def preview_notices(self) -> set[Notice]:
        """What a person would be asked about the file as it stands, and the warnings; changes nothing."""
        warnings = await self.warnings()
        disk = await stable_read(self.path, self._sleep, known_sha256=self._version_notices[0])
        if disk is not None and disk.sha256 == self._version_notices[0]:
            return warnings
        try:
            lost = await self.versions.looks_lost(parse(disk.data) if disk else None)
        except DocumentUntouchable:
            return warnings | {Notice.UNTOUCHABLE}
        return warnings | ({Notice.MISSING if disk is None else Notice.MASS_DELETE} if lost else set())

    async def reconcile(self, *, expected_sha256: str | None = None) -> None:
        """Bring file, versions and log together. Raises StorageError, and notes it; an untouchable file is only noted.

        `only`: the hash of the bytes that may be taken in; DocumentChanged where others are there by now.
        """
        async with self._lock:
            await self._reconcile(expected_sha256)

    async def refresh(self) -> None:
        """Settle unless the file is as it was when somebody last looked; waits for a look that is under way."""
        if not self.is_unchanged:
            async with self._lock:
                if not self.is_unchanged:
                    await self._reconcile()

    async def save(self, text: str, base_sha256: str | None, *, confirmed: bool) -> EditResult:
        """Take a whole document from the app as a hand edit of what `load` showed it, and write the file."""
        try:
            document = parse(text.encode())
        except (DocumentUntouchable, UnicodeEncodeError) as error:
            raise InvalidInput("the document is not readable Markdown text", field="document") from error
        if await self._other_owner(document, self.versions.served.marks) is not None:
            raise InvalidInput("this document is another account's memory", field="document", hint="Load again.")
        async with self._lock:
            await self._reconcile()  # what is on disk comes first: the app's text is merged with it
            edited = await self.versions.save(document, base_sha256, confirmed=confirmed)
            await self._reconcile()
        return edited

    async def ingest_cloud_document(self, content: str) -> bool:
        """Take what another program wrote into the cloud as a hand edit; False, and a notice, where it must wait."""
        async with self._lock:
            await self._reconcile()  # what is on disk comes first
            self.notices -= {Notice.CLOUD_MASS_DELETE, Notice.CLOUD_UNREADABLE}
            try:
                edited = await self.cloud_history.ingest(content)
            except DocumentUntouchable:
                self.notices.add(Notice.CLOUD_UNREADABLE)
                return False
            if edited is None:
                self.notices.add(Notice.CLOUD_MASS_DELETE)
                return False
            await self._reconcile()
        return True

    async def restore(self, digest: str) -> EditResult:
        """Bring an older version back, as new events, and write the file."""
        async with self._lock:
            await self._reconcile()
            edited = await self.versions.restore(digest)
            if Notice.MASS_DELETE in self.notices:  # this says what was meant: the older version
                await self._restore_file()
            await self._reconcile()
        return edited

    async def resolve(self, answer: Literal["accept", "restore"]) -> EditResult | None:
        """A person's answer to a warning that asks (`RESOLVABLE`, last `mass_erasure_waits`); None without one.

        `accept`: the lines were meant to go. `restore`: what was there, here or in the cloud's row, is written again.
        """
        async with self._lock:
            await self._reconcile()  # the file may have changed since the question: nothing else is answered
            edited = None
            if not self.notices & RESOLVABLE:
                edited = await self.withheld_erasures.answer(accept=answer == "accept")
            elif Notice.CLOUD_MASS_DELETE in self.notices:
                self.notices.discard(Notice.CLOUD_MASS_DELETE)
                edited = await self.cloud_history.resolve(answer)
            elif answer == "accept":
                data = disk.data if (disk := await stable_read(self.path, self._sleep)) else b""
                edited = await self.versions.ingest_file(sha256(data), parse(data), confirmed=True)
            else:
                await self._restore_file()
            await self._reconcile()
        return edited

    async def _restore_file(self) -> None:
        """Write the newest version over a file that lost its lines; what stands in it is kept as a version."""
        disk = await stable_read(self.path, self._sleep)
        if disk is not None and not (document := parse(disk.data)).is_blank:
            await self.versions.keep_as_version(document)
        if (current := await self.versions.newest()) is not None:
            await self._write(disk, current)

    async def _reconcile(self, expected_sha256: str | None = None) -> None:
        cached = await self._app_cache.ingest(file_first=not self.is_unchanged and self.path.exists())
        with _noting_storage_errors(self.notices, Notice.UNREACHABLE):
            await self._reconcile_file(expected_sha256)
        if cached is not None:
            await self._app_cache.update(cached, await self.versions.newest())

    async def _reconcile_file(self, expected_sha256: str | None) -> None:
        for _ in range(MAX_ATTEMPTS):
            seen = stat_stamp(self.path)
            stands = await self.versions.file_state(keep_days=self._keep_days)
            disk = await stable_read(self.path, self._sleep, known_sha256=stands.sha256)
            if expected_sha256 is not None and (disk is None or disk.sha256 != expected_sha256):
                raise DocumentChanged(f"{self.path.name} was saved again")
            if stands.is_caught_up and disk and disk.sha256 == stands.sha256:
                self._note_read(seen, None)
                return
            if disk is not None and self._write_in_progress.is_running(disk, stands.newest):
                return  # not looked at yet: the next event or poll looks again
            may, question = await self._ingest(disk, stands.newest)
            current = await self.versions.catch_up(keep_days=self._keep_days if may is _WritePermission.WRITE else -1)
            worth = current if current and await self._should_write(disk, current, may) else None
            if (
                may is _WritePermission.WRITE_NEWS
                and current
                and worth is None
                and not current.snapshot.document.is_blank
            ):
                question = Notice.MISSING if disk is None else Notice.MASS_DELETE
            self._note_read(seen, question)
            try:
                if worth is not None:
                    await self._write(disk, worth)
                elif (
                    current is None and disk is not None and may is _WritePermission.REPLACE
                ):  # nothing is known to stand there
                    await asyncio.to_thread(remove_unchanged, self.path, disk.sha256)
            except DocumentChanged:
                continue
            return

    def _note_read(self, file_stamp: FileStamp | None, question: Notice | None) -> None:
        """Only now, with the edit taken in: whoever asks before shall wait. `seen`: the file before it was read."""
        self.notices -= FILE_QUESTIONS  # in place: `_noted` holds the same set
        self.notices |= {question} if question else set()
        self._read_stamp = file_stamp

    async def _ingest(self, disk: FileProbe | None, current: Version | None) -> tuple[_WritePermission, Notice | None]:
        """Make events of what a hand did; says what may be done to the file now, and what a person has to be asked."""
        if disk is None:
            return _WritePermission.WRITE_NEWS, None
        if current is not None and disk.sha256 == current.sha256:
            await self.versions.mark_on_disk(current)
            return _WritePermission.WRITE, None
        try:
            document = parse(disk.data)
        except DocumentUntouchable:
            return _WritePermission.NOTHING, Notice.UNTOUCHABLE
        if document.is_blank:
            return _WritePermission.WRITE_NEWS, None
        if (stranger := await self._other_owner(document)) is not None:
            await asyncio.to_thread(park_copy, stranger.parked_folder, disk.data)
            self.notices.add(Notice.STRANGER)
            return _WritePermission.REPLACE, None
        if await self.versions.ingest_file(disk.sha256, document) is None:
            return await _permission_after_loss(document, self.versions)
        return _WritePermission.WRITE, None

    async def _other_owner(self, document: MemoryDocument, served: OwnershipMarks = NO_MARKS) -> ProfilePaths | None:
        """The other account of this machine that the document belongs to."""
        if self._other_profiles is None:
            return None
        return await asyncio.to_thread(self._other_profiles.owner_of, document, served)

    async def _should_write(self, disk: FileProbe | None, current: Version, permission: _WritePermission) -> bool:
        if permission in {_WritePermission.WRITE, _WritePermission.REPLACE}:
            return disk is None or disk.sha256 != current.sha256
        return (
            permission is not _WritePermission.NOTHING and current.number > (await self.versions.file_state()).on_disk
        )

    async def _write(self, disk: FileProbe | None, current: Version) -> None:
        """Compare-and-swap, then note that the file has it. Raises DocumentChanged, StorageError."""
        data, expected = current.snapshot.document.data, disk.sha256 if disk else None
        self._read_stamp = await self.swap_recovery.recover_on_error(
            asyncio.to_thread(compare_and_swap, self.path, expected, data)
        )
        await self.versions.mark_on_disk(current)


@contextmanager
def _noting_storage_errors(notices: set[Notice], notice: Notice) -> Iterator[None]:
    """Note a StorageError for as long as it comes again."""
    try:
        yield
    except StorageError:
        notices.add(notice)
        raise
    notices.discard(notice)


async def _permission_after_loss(
    document: MemoryDocument, versions: FileHistory
) -> tuple[_WritePermission, Notice | None]:
    """A person is asked what was meant, unless the file may show what is to be forgotten now: it is written again then.

    Later it could no longer be told from an edit, because the versions will not know the lines that it still has.
    """
    if await versions.keep_as_version(document, only_for_erasure=True):
        return _WritePermission.REPLACE, None
    return _WritePermission.NOTHING, Notice.MASS_DELETE
