"""Export a profile into one archive, and import archives and the files of other programs.

See docs/decisions/014-archive-import.md for what an import changes.
"""

import asyncio
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.archive import source_files
from sync.archive.archive_file import (
    EVENTS_PER_PART,
    build_events_part,
    build_info_part,
    is_signed_by_account,
    write_archive,
)
from sync.archive.container import INFO_PART, ArchiveReader, ArchiveWriter, is_archive
from sync.archive.foreign_imports import ForeignImports
from sync.archive.model import ArchiveImportResult, ExportedJson, OnProgress
from sync.clock import Clock
from sync.cloud.auth.event_signer import EventSigner
from sync.document import store as document_store
from sync.document.erasure.erasure import expired_here
from sync.document.markdown.parse import parse
from sync.document.versions.importer import ArchivedVersion, DocumentImporter
from sync.document.versions.memory_file_import import is_memory_document
from sync.errors import DocumentUntouchable, StorageBusy
from sync.jsonl.event_import import BATCH_EVENTS, EventImport, decode_lines
from sync.log import erased_store
from sync.log.event_catalogue import NOTE_TYPES
from sync.log.event_types import LESSON_TYPES
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import Door, Query
from sync.runtime.supervision import run_cancellable
from sync.system.files import translate_os_errors

DOCUMENT_PART: Final = "documents/current.md"


class ArchiveService:
    """One profile's exports and imports."""

    def __init__(
        self,
        events: EventLog,
        intake: DraftBuilder,
        imports: DocumentImporter,
        signer: EventSigner,
        *,
        clock: Clock,
        own_folder: Path | None = None,
        keeps_texts: bool = True,
    ) -> None:
        self._log = events
        self._intake = intake
        self._imports = imports
        self._clock = clock
        self._signer, self._own_folder = signer, own_folder
        self._foreign = ForeignImports(events, intake, imports, signer, clock, keeps_texts=keeps_texts)

    async def export(
        self,
        path: Path,
        *,
        document: bytes,
        settings: Mapping[str, Any],
        passphrase: str | None,
        on_progress: OnProgress,
        with_lessons: bool = False,
        with_notes: bool = False,
    ) -> ExportedJson:
        """Write everything, lessons and notes only if asked, into a new file.

        Raises InvalidInput if it exists, StorageError.
        """
        if await self._log.database.read(erased_store.forget_requests):
            raise StorageBusy("something waits to be forgotten", hint="Export again in a few minutes, or undo it.")
        omitted = frozenset((() if with_lessons else LESSON_TYPES) + (() if with_notes else NOTE_TYPES))
        head = await self._log.newest_position()
        counts = [0, 0]

        async def fill(writer: ArchiveWriter) -> None:
            await asyncio.to_thread(writer.add, INFO_PART, build_info_part(self._log, head, self._clock))
            counts[0] = await self._write_events(writer, head, on_progress, omitted)
            counts[1] = await self._write_document(writer, document)
            await asyncio.to_thread(writer.add, "settings.json", msgspec.json.encode(settings))

        written = await write_archive(path, passphrase, fill, signer=self._signer)
        return ExportedJson(str(path), counts[0], counts[1], written.bytes, written.sha256, passphrase is not None)

    async def _write_events(
        self, writer: ArchiveWriter, head: int, on_progress: OnProgress, omitted: Collection[str]
    ) -> int:
        expired_ids = await self._log.database.read(expired_here)
        after = number = events = 0
        while after < head:
            page = await self._log.read(Query(after=after, limit=EVENTS_PER_PART))
            batch = [event for event in page.events if event.position <= head]
            if not batch:
                break
            after = batch[-1].position
            batch = [event for event in batch if event.type not in omitted]
            if exported := [event for event in batch if event.payload or event.event_id not in expired_ids]:
                number, events = number + 1, events + len(exported)
                signed = await self._signer.sign(exported)
                await asyncio.to_thread(writer.add, *build_events_part(number, signed))
            on_progress(after, head)
        return events

    async def _write_document(self, writer: ArchiveWriter, document: bytes) -> int:
        await asyncio.to_thread(writer.add, DOCUMENT_PART, document)
        after = number = versions = 0
        while page := await self._log.database.read(document_store.export_page, after=after, limit=10):
            number, after, versions = number + 1, int(page[-1]["version"]), versions + len(page)
            lines = b"".join(msgspec.json.encode(version) + b"\n" for version in page)
            await asyncio.to_thread(writer.add, f"documents/versions-{number:06}.jsonl", lines)
        return versions

    async def import_path(
        self, path: Path, *, passphrase: str | None, dry_run: bool, on_progress: OnProgress, is_mine: bool = False
    ) -> ArchiveImportResult:
        """Import a file or folder, recognised by its content. Raises InvalidInput, StorageError.

        `is_mine`: the user says that an archive is their own memory, which no key known here proves.
        """
        result, foreign = ArchiveImportResult("", dry_run=dry_run), self._foreign
        if await asyncio.to_thread(path.is_dir):
            await foreign.import_folder(path, result, on_progress)
            result.source = result.source or "folder"
            return result
        with translate_os_errors(path):
            signature = await asyncio.to_thread(source_files.read_signature, path)
        if is_archive(signature):
            reader = await run_cancellable(partial(ArchiveReader.open_verified, path, passphrase))
            is_own = path.parent == self._own_folder
            return await self._import_archive(reader, dry_run, on_progress, is_own=is_own, is_mine=is_mine)
        if signature.startswith(source_files.SQLITE_SIGNATURE):
            await foreign.import_app_cache(path, result)
        elif source_files.is_export(path, signature):
            await foreign.import_export(path, None, result, on_progress)
        else:
            await foreign.import_text(path, result)
        return result

    async def import_transcripts(
        self, program: str, path: Path | None, *, dry_run: bool, on_progress: OnProgress
    ) -> ArchiveImportResult:
        """Import the transcripts of a coding agent. Raises InvalidInput, StorageError."""
        result = ArchiveImportResult(program, dry_run=dry_run)
        await self._foreign.import_transcripts(program, path, result, on_progress)
        return result

    async def import_pasted(self, text: str, *, dry_run: bool) -> ArchiveImportResult:
        """Import pasted text: what another assistant knows. Raises TooLarge, InvalidInput."""
        result = ArchiveImportResult("pasted", dry_run=dry_run)
        await self._foreign.import_pasted(text, result)
        return result

    async def _import_archive(
        self, reader: ArchiveReader, dry_run: bool, on_progress: OnProgress, *, is_own: bool, is_mine: bool
    ) -> ArchiveImportResult:
        """Import an archive that was verified as a whole; `is_own`: this program wrote it where it lies."""
        is_proven = is_mine or is_own or await is_signed_by_account(reader.manifest, self._signer)
        importing = EventImport(self._log, self._intake, self._signer, self._clock, proves_all=is_proven)
        result, done = ArchiveImportResult("archive", dry_run=dry_run), 0
        is_home_empty, documents = not dry_run and await self._imports.is_home_empty(), dict[str, bytes]()
        parts = reader.read_parts()
        while (part := await asyncio.to_thread(next, parts, None)) is not None:
            name, data = part
            if name.startswith("documents/"):
                documents[name] = data
            if not name.startswith("events/"):
                continue
            lines = await asyncio.to_thread(list, decode_lines(enumerate(data.splitlines(), 1), result))
            values = [(str(value.get("event_id")), value) for _, value in lines]
            for start in range(0, len(values), BATCH_EVENTS):
                await importing.take(values[start : start + BATCH_EVENTS], result)
            done += data.count(b"\n")
            on_progress(done, reader.info.head)
        if is_home_empty and documents.get(DOCUMENT_PART):
            await self._take_over(documents, Door.HAND if is_proven else Door.IMPORT)
        elif is_mine and not dry_run:
            await self._import_own_document(documents.get(DOCUMENT_PART, b""))
        return result

    async def _take_over(self, documents: Mapping[str, bytes], door: Door) -> None:
        """Make the document and its versions those of this empty home."""
        lines = [line for name, data in documents.items() if name != DOCUMENT_PART for line in data.splitlines()]
        with suppress(DocumentUntouchable, msgspec.MsgspecError):
            versions = [msgspec.json.decode(line, type=ArchivedVersion) for line in lines]
            history = [version for version in versions if version.surface == document_store.FILE]
            await self._imports.take_over(parse(documents[DOCUMENT_PART]), history, door)

    async def _import_own_document(self, data: bytes) -> None:
        """Take in the lines of the device that wrote the archive, whose events stay that device's."""
        with suppress(DocumentUntouchable):
            if is_memory_document(document := parse(data)):
                await self._imports.import_document(document, dry_run=False)
