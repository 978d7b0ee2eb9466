"""Export a profile into one archive, and import archives and the files of other programs.

See docs/decisions/014-archive-import.md for what an import changes.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.archive import daily_pages, source_files
from sync.archive.archive_file import (
    EVENTS_PER_PART,
    build_events_part,
    build_info_part,
    is_signed_by_account,
    write_archive,
)
from sync.archive.chat_events import draft_chat_events, split_recorded_turns
from sync.archive.chat_exports import ImportedChat, read_chats
from sync.archive.container import INFO_PART, ArchiveReader, ArchiveWriter, is_archive
from sync.archive.model import ArchiveImportResult, ExportedJson, OnProgress
from sync.archive.source_files import SUPPORTED_SOURCES_HINT, ExportPart
from sync.clock import Clock
from sync.cloud.auth.event_signer import EventSigner
from sync.daily.records.records_cache import RecordsCache
from sync.db.engine import Transaction
from sync.document import store as document_store
from sync.document.erasure.erasure import expired_here
from sync.document.markdown.parse import parse
from sync.document.surfaces.app_cache import read_content
from sync.document.versions.importer import DocumentImporter
from sync.document.versions.memory_file_import import is_memory_document
from sync.errors import DocumentUntouchable, InvalidInput, RedactionFailed, StorageBusy
from sync.jsonl.event_import import BATCH_EVENTS, EventImport, decode_lines
from sync.log import erased_store, store
from sync.log.event_catalogue import NOTE_TYPES
from sync.log.event_types import LESSON_TYPES
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import EventDraft, Query
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
        self._keeps_texts = keeps_texts

    async def export(
        self,
        path: Path,
        *,
        document: str,
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

    async def _write_document(self, writer: ArchiveWriter, document: str) -> int:
        await asyncio.to_thread(writer.add, DOCUMENT_PART, document.encode())
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
        if await asyncio.to_thread(path.is_dir):
            return await self._import_folder(path, dry_run, on_progress)
        with translate_os_errors(path):
            signature = await asyncio.to_thread(source_files.read_signature, path)
        if is_archive(signature):
            reader = await run_cancellable(partial(ArchiveReader.open_verified, path, passphrase))
            is_own = path.parent == self._own_folder
            return await self._import_archive(reader, dry_run, on_progress, is_own=is_own, is_mine=is_mine)
        if signature.startswith(source_files.SQLITE_SIGNATURE):
            return await self._import_document("app_cache", await read_content(path) or b"", dry_run)
        if not source_files.is_json(signature):
            data = await asyncio.to_thread(source_files.read_text_file, path)
            if daily_pages.is_page(data.decode(errors="replace")):
                return await self._import_pages(path, [path], dry_run, on_progress)
            return await self._import_document("memory_file", data, dry_run)
        return await self._import_export(path, None, ArchiveImportResult("chats", dry_run=dry_run), on_progress)

    async def _import_folder(self, path: Path, dry_run: bool, on_progress: OnProgress) -> ArchiveImportResult:
        result = ArchiveImportResult("chats", dry_run=dry_run)
        files = await asyncio.to_thread(source_files.list_files, path, result.skipped)
        if parts := source_files.list_export_parts(path, files, result.skipped):
            return await self._import_export(path, parts, result, on_progress)
        return await self._import_pages(
            path, await asyncio.to_thread(daily_pages.list_pages, path), dry_run, on_progress
        )

    async def _import_document(self, source: str, data: bytes, dry_run: bool) -> ArchiveImportResult:
        """Import a memory document, from a file or from the app's database."""
        try:
            document = parse(data)
        except DocumentUntouchable as error:
            raise InvalidInput(error.message, field="path", hint=SUPPORTED_SOURCES_HINT) from error
        if not is_memory_document(document):
            raise InvalidInput("there is no memory in it", field="path", hint=SUPPORTED_SOURCES_HINT)
        done = await self._imports.import_document(document, dry_run=dry_run)
        result = ArchiveImportResult(source, found=done.found, recorded=done.recorded, dry_run=dry_run)
        for line in done.too_large:
            result.refuse(line, "the line is too large for an event")
        result.known = done.found - done.recorded - result.refused
        return result

    async def _import_pages(
        self, path: Path, files: Sequence[Path], dry_run: bool, on_progress: OnProgress
    ) -> ArchiveImportResult:
        """Import daily pages. A page that cannot be parsed is refused alone."""
        if not files:
            raise InvalidInput("there is no daily page in this folder", field="path", hint=SUPPORTED_SOURCES_HINT)
        result = ArchiveImportResult("daily_pages", dry_run=dry_run)
        project = await asyncio.to_thread(daily_pages.project_of, path)
        records = await RecordsCache(self._log).current_records()
        known = {
            (*record.moment, record.content.topic) for record in (*records.by_id.values(), *records.removed.values())
        }
        for number, file in enumerate(files, 1):
            with translate_os_errors(file):
                data = await asyncio.to_thread(source_files.read_text_file, file)
            try:
                text = data.decode()
                drafts = list(daily_pages.draft_page_events(text, project, self._intake, self._clock, result.refuse))
            except (InvalidInput, UnicodeDecodeError) as error:
                result.refuse(
                    file.name, error.message if isinstance(error, InvalidInput) else "it is not text in UTF-8"
                )
                continue
            result.conversations += len(drafts)
            new = [draft for moment, draft in drafts if moment not in known]
            result.found += len(drafts) - len(new)
            result.known += len(drafts) - len(new)
            await self._new_import().append(new, result)
            on_progress(number, len(files))
        return result

    async def _import_export(
        self, path: Path, parts: Sequence[ExportPart] | None, result: ArchiveImportResult, on_progress: OnProgress
    ) -> ArchiveImportResult:
        """Import an export of Claude or ChatGPT: its `parts`, those of a zip, or one file."""

        def read(check_cancelled: Callable[[], None]) -> list[ImportedChat]:
            with source_files.open_export(path, result.skipped) if parts is None else nullcontext(parts) as opened:
                values = source_files.read_values(opened, check_cancelled, result.refuse)
                return list(read_chats(values, result.skipped))

        chats = await run_cancellable(read)
        if not chats:
            hint = SUPPORTED_SOURCES_HINT
            problem = (
                result.refusals[0][1] if result.refusals else "there is no conversation of Claude or ChatGPT in it"
            )
            raise InvalidInput(problem, field="path", hint=hint)
        await self._import_chats(chats, result, on_progress)
        return result

    async def _import_chats(
        self, chats: Sequence[ImportedChat], result: ArchiveImportResult, on_progress: OnProgress
    ) -> None:
        result.conversations = len(chats)
        result.source = chats[0].program if chats else result.source
        for number, chat in enumerate(chats, 1):
            split = await self._log.database.read(_split_recorded_turns, chat=chat)
            await self._new_import().append(await asyncio.to_thread(self._chat_drafts, split, result), result)
            on_progress(number, len(chats))

    def _chat_drafts(self, chat: ImportedChat, result: ArchiveImportResult) -> list[EventDraft]:
        try:
            return list(draft_chat_events(chat, self._intake, keeps_texts=self._keeps_texts))
        except (InvalidInput, RedactionFailed) as error:
            result.refuse(chat.chat_id, error.message)
            return []

    def _new_import(self, *, proves_all: bool = False) -> EventImport:
        return EventImport(self._log, self._intake, self._signer, self._clock, proves_all=proves_all)

    async def _import_archive(
        self, reader: ArchiveReader, dry_run: bool, on_progress: OnProgress, *, is_own: bool, is_mine: bool
    ) -> ArchiveImportResult:
        """Import an archive that was verified as a whole; `is_own`: this program wrote it where it lies."""
        is_proven = is_mine or is_own or await is_signed_by_account(reader.manifest, self._signer)
        importing = self._new_import(proves_all=is_proven)
        result, done = ArchiveImportResult("archive", dry_run=dry_run), 0
        parts = reader.read_parts()
        while (part := await asyncio.to_thread(next, parts, None)) is not None:
            name, data = part
            if name == DOCUMENT_PART and is_mine and not dry_run:
                await self._import_own_document(data)
            if not name.startswith("events/"):
                continue
            lines = await asyncio.to_thread(list, decode_lines(enumerate(data.splitlines(), 1), result))
            values = [(str(value.get("event_id")), value) for _, value in lines]
            for start in range(0, len(values), BATCH_EVENTS):
                await importing.take(values[start : start + BATCH_EVENTS], result)
            done += data.count(b"\n")
            on_progress(done, reader.info.head)
        return result

    async def _import_own_document(self, data: bytes) -> None:
        """Take in the lines of the device that wrote the archive, whose events stay that device's."""
        with suppress(DocumentUntouchable):
            if is_memory_document(document := parse(data)):
                await self._imports.import_document(document, dry_run=False)


def _split_recorded_turns(connection: Transaction, *, chat: ImportedChat) -> ImportedChat:
    return split_recorded_turns(chat, partial(store.find_event, connection))
