"""Reconcile the memory file with the log.

`reconcile()` puts what the log recorded into the newest version, turns manual edits of the file into events, and writes
the file if the two differ. It can be called at any time and any number of times. A version is stored before it is
written to the file: after a crash the next call writes it. Our own writes equal a known version, so they are no edits.
A file that looks lost is no mass delete: docs/decisions/010-lost-files.md.
"""

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Final, Literal

import msgspec

from sync.clock import Clock
from sync.document.markdown.model import MemoryDocument, Version
from sync.document.markdown.parse import parse
from sync.document.markdown.reparse import parse_edited
from sync.document.ownership.fingerprints import NO_MARKS, OwnershipMarks
from sync.document.ownership.other_profiles import OtherProfiles, park_copy
from sync.document.surfaces.app_cache import AppCacheHistory
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
from sync.texts.language import LanguageChoice

MAX_ATTEMPTS: Final = 5  # against an editor that saves at the same moment; the next event starts over

log = logging.getLogger(__name__)


class _WritePermission(Enum):
    """What may be done to the file after it was read."""

    WRITE = "write"
    REPLACE = "replace"  # also by nothing: it is another account's
    WRITE_NEWS = "write news"  # it is empty or missing: write only a version that it never had
    NOTHING = "nothing"  # it cannot be parsed, or the user has to say what was meant


class MemoryFileDeps(msgspec.Struct, frozen=True):
    """Where else a document may be: the app's cache, which is written with `write_back`, and the other profiles.

    `parked_folder`: the profile's own folder for its documents that turned up in the wrong place. `locale`: of the
    environment.
    """

    app_cache: Path | None = None
    write_back: bool = False
    other_profiles: OtherProfiles | None = None
    parked_folder: Path | None = None
    locale: str | None = None


class MemoryFile:
    """The memory file of one profile. Only the sidecar calls `reconcile`; every process may call `view`."""

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
        self.language = LanguageChoice(options.language, deps.locale)
        projection = OwnProjection(events, redactor, clock=clock, language=self.language)
        writer = VersionWriter(
            events,
            redactor,
            clock,
            keep_versions=options.keep_versions,
            projection=projection,
            parked_folder=deps.parked_folder,
            language=self.language,
        )
        self.versions, self.cloud_history = FileHistory(writer), CloudHistory(writer)
        self.importer, self.withheld_erasures = DocumentImporter(writer, path), WithheldErasures(writer)
        self._other_profiles = deps.other_profiles
        self.swap_recovery = SwapRecovery(path, deps.parked_folder, self.versions, self._other_parked_folder)
        self._app_cache = AppCacheHistory(
            writer, deps.app_cache, self.notices, self._other_parked_folder, write_back=deps.write_back
        )
        self._keep_days, self._redactor, self._sleep = options.keep_days, redactor.for_egress(), sleep
        self._lock, self.write_in_progress = asyncio.Lock(), WriteInProgress(clock, deps.other_profiles)
        self._read_stamp: FileStamp | None = None
        self._version_notices: tuple[str | None, frozenset[Notice]] = (
            None,
            frozenset(),
        )  # a version's hash, its notices

    @property
    def is_unchanged(self) -> bool:
        """Whether the file is, as far as `stat` can tell, as it was when it was last ingested or written."""
        return stat_stamp(self.path) == self._read_stamp

    async def view(self) -> DocumentView:
        """The newest known document, whether or not the file has it yet."""
        return await self.versions.view()

    async def warnings(self) -> set[Notice]:
        """The notices of the file, of the newest version and of withheld erasures."""
        current = await self.versions.newest()
        if current is not None and self._version_notices[0] != current.sha256:
            self._version_notices = current.sha256, await asyncio.to_thread(version_notices, current, self._redactor)
        return (
            self.notices
            | (self._version_notices[1] if current else frozenset())
            | await self.withheld_erasures.notices()
        )

    async def preview_notices(self) -> set[Notice]:
        """The warnings, and the questions that ingesting the file would raise; changes nothing."""
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

        `expected_sha256`: the only bytes that may be ingested; DocumentChanged if the file has others.
        """
        async with self._lock:
            await self._reconcile(expected_sha256)

    async def refresh(self) -> None:
        """Reconcile if the file has changed since it was last read; wait for a reconcile that is under way."""
        if not self.is_unchanged:
            async with self._lock:
                if not self.is_unchanged:
                    await self._reconcile()

    async def save(self, text: str, base_sha256: str | None, *, confirmed: bool) -> EditResult:
        """Ingest a whole document from the app as an edit of what `load` showed it, and write the file."""
        try:
            document = parse(text.encode())
        except (DocumentUntouchable, UnicodeEncodeError) as error:
            raise InvalidInput("the document is not readable Markdown text", field="document") from error
        if await self._other_parked_folder(document, self.versions.served.marks) is not None:
            raise InvalidInput("this document is another account's memory", field="document", hint="Load again.")
        async with self._lock:
            await self._reconcile()  # the file comes first: the app's text is merged with it
            edited = await self.versions.save(document, base_sha256, confirmed=confirmed)
            await self._reconcile()
        return edited

    async def ingest_cloud_document(self, content: str) -> bool:
        """Ingest or park what another program wrote into the cloud; False, with a notice, if the user has to answer."""
        async with self._lock:
            await self._reconcile()  # the file comes first
            self.notices -= {Notice.CLOUD_MASS_DELETE, Notice.CLOUD_UNREADABLE}
            try:
                if await self._park_for_other_account(parse(content.encode())):
                    return True  # ours may replace it there
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
        """Restore an older version, as new events, and write the file."""
        async with self._lock:
            await self._reconcile()
            edited = await self.versions.restore(digest)
            if Notice.MASS_DELETE in self.notices:  # the user has answered: the older version
                await self._restore_file()
            await self._reconcile()
        return edited

    async def resolve(self, answer: Literal["accept", "restore"]) -> EditResult | None:
        """Apply the user's answer to the notice that asks (`RESOLVABLE`, last `mass_erasure_waits`); None without one.

        `accept`: the removal was meant. `restore`: the newest version is written again, here or to the cloud.
        """
        async with self._lock:
            await self._reconcile()  # the file may have changed since the question
            if not self.notices & RESOLVABLE:
                edited = await self.withheld_erasures.answer(accept=answer == "accept")
            elif Notice.CLOUD_MASS_DELETE in self.notices:
                self.notices.discard(Notice.CLOUD_MASS_DELETE)
                edited = await self.cloud_history.resolve(answer)
            elif answer == "accept":
                data = disk.data if (disk := await stable_read(self.path, self._sleep)) else b""
                edited = await self.versions.ingest_file(sha256(data), parse(data), confirmed=True)
            else:
                edited = await self._restore_file()
            await self._reconcile()
        return edited

    async def _restore_file(self) -> EditResult:
        """Write the newest version over a file that lost its lines; its content is kept as a version."""
        disk = await stable_read(self.path, self._sleep)
        if disk is not None and not (document := parse(disk.data)).is_blank:
            await self.versions.keep_as_version(document)
        if (current := await self.versions.newest()) is not None:
            await self._write(disk, current)
        return EditResult((), "")

    async def _reconcile(self, expected_sha256: str | None = None) -> None:
        cached = await self._app_cache.ingest(file_first=not self.is_unchanged and self.path.exists())
        with _noting_storage_errors(self.notices, Notice.UNREACHABLE):
            await self._reconcile_file(expected_sha256)
        if cached is not None:
            await self._app_cache.update(cached, await self.versions.newest())

    async def _reconcile_file(self, expected_sha256: str | None) -> None:
        for _ in range(MAX_ATTEMPTS):
            seen = stat_stamp(self.path)
            state = await self.versions.file_state(keep_days=self._keep_days)
            disk = await stable_read(self.path, self._sleep, known_sha256=state.sha256)
            if expected_sha256 is not None and (disk is None or disk.sha256 != expected_sha256):
                raise DocumentChanged(f"{self.path.name} was saved again")
            if state.is_caught_up and disk and disk.sha256 == state.sha256:
                self._note_read(seen, None)
                return
            if disk is not None and await self.write_in_progress.is_running(disk, state.newest):
                return  # the next event or poll reads it again
            may, question = await self._ingest(disk, state.newest)
            current = await self.versions.catch_up(keep_days=self._keep_days if may is _WritePermission.WRITE else -1)
            worth = current if current and await _should_write(disk, current, may, self.versions) else None
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
                ):  # there is nothing to replace it with
                    await asyncio.to_thread(remove_unchanged, self.path, disk.sha256)
            except DocumentChanged:
                continue
            return

    def _note_read(self, file_stamp: FileStamp | None, question: Notice | None) -> None:
        """Note what was read, after the edit was ingested. `file_stamp`: the file before it was read."""
        self.notices -= FILE_QUESTIONS  # in place: others hold the same set
        self.notices |= {question} if question else set()
        self._read_stamp = file_stamp

    async def _ingest(self, disk: FileProbe | None, current: Version | None) -> tuple[_WritePermission, Notice | None]:
        """Ingest an edit of the file; what may be written to the file now, and the question for the user."""
        if disk is None:
            return _WritePermission.WRITE_NEWS, None
        if current is not None and disk.sha256 == current.sha256:
            await self.versions.mark_on_disk(current)
            return _WritePermission.WRITE, None
        try:
            document = parse_edited(disk.data, current.snapshot.document if current else None)
        except DocumentUntouchable:
            return _WritePermission.NOTHING, Notice.UNTOUCHABLE
        if document.is_blank:
            return _WritePermission.WRITE_NEWS, None
        if await self._park_for_other_account(document):
            return _WritePermission.REPLACE, None
        if await self.versions.ingest_file(disk.sha256, document) is None:
            return await _permission_after_loss(document, self.versions)
        return _WritePermission.WRITE, None

    async def _park_for_other_account(self, document: MemoryDocument) -> bool:
        """Park the document if it is another account's; whether it is."""
        if (folder := await self._other_parked_folder(document)) is not None:
            await asyncio.to_thread(park_copy, folder, document.data)
            self.notices.add(Notice.STRANGER)
        return folder is not None

    async def _other_parked_folder(self, document: MemoryDocument, served: OwnershipMarks = NO_MARKS) -> Path | None:
        """The folder for documents of the other account that this one belongs to; None if it is not another's."""
        if self._other_profiles is None:
            return None
        return await asyncio.to_thread(self._other_profiles.parked_folder_of, document, served)

    async def _write(self, disk: FileProbe | None, current: Version) -> None:
        """Write a version by compare-and-swap, and note that the file has it. Raises DocumentChanged, StorageError."""
        data, expected = current.snapshot.document.data, disk.sha256 if disk else None
        self._read_stamp = await self.swap_recovery.recover_on_error(
            asyncio.to_thread(compare_and_swap, self.path, expected, data)
        )
        await self.versions.mark_on_disk(current)


@contextmanager
def _noting_storage_errors(notices: set[Notice], notice: Notice) -> Iterator[None]:
    """Keep a notice as long as a StorageError recurs."""
    try:
        yield
    except StorageError:
        notices.add(notice)
        raise
    notices.discard(notice)


async def _should_write(
    disk: FileProbe | None, current: Version, permission: _WritePermission, versions: FileHistory
) -> bool:
    if permission in {_WritePermission.WRITE, _WritePermission.REPLACE}:
        return disk is None or disk.sha256 != current.sha256
    return permission is not _WritePermission.NOTHING and current.number > (await versions.file_state()).on_disk


async def _permission_after_loss(
    document: MemoryDocument, versions: FileHistory
) -> tuple[_WritePermission, Notice | None]:
    """Ask the user what was meant, unless an erasure is pending: then keep the content as a version and write the file.

    After the erasure the versions do not have the erased lines, so a file that still shows them would look edited.
    """
    if await versions.keep_as_version(document, only_for_erasure=True):
        return _WritePermission.REPLACE, None
    return _WritePermission.NOTHING, Notice.MASS_DELETE
