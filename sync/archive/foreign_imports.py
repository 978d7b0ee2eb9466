"""Import files of other programs: exports of conversations, memory files, notes, daily pages, the app's database."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from datetime import date, datetime
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from sync.archive import daily_pages, source_files
from sync.archive.agent_transcripts import read_transcripts
from sync.archive.chat_events import draft_chat_events, split_recorded_turns
from sync.archive.chat_exports import ImportedChat, read_chats
from sync.archive.daily_pages import RecordMoment
from sync.archive.model import ArchiveImportResult, OnProgress, Skipped
from sync.archive.pasted_lines import draft_pasted_line, memory_texts, read_pasted
from sync.archive.source_files import SUPPORTED_SOURCES_HINT, ExportPart
from sync.archive.text_notes import own_day_of, read_note
from sync.clock import Clock
from sync.cloud.auth.event_signer import EventSigner
from sync.daily.pages.page_format import DayPage
from sync.daily.pages.page_format import parse as parse_page
from sync.daily.records.records_cache import RecordsCache
from sync.db.engine import Transaction
from sync.document.markdown.model import MemoryDocument
from sync.document.markdown.parse import parse
from sync.document.markdown.version_labels import leading_day
from sync.document.surfaces.app_cache import read_content
from sync.document.versions.importer import DocumentImporter
from sync.document.versions.memory_file_import import is_memory_document
from sync.errors import DocumentUntouchable, InvalidInput, RedactionFailed
from sync.jsonl.event_import import EventImport
from sync.log import store
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import EventDraft
from sync.runtime.supervision import run_cancellable
from sync.system.files import translate_os_errors

OBSIDIAN_FOLDER: Final = ".obsidian"  # of a vault, whose files are all notes


class _TextFile(NamedTuple):
    """A file of Markdown or text. `written_on`: the day on which it was last written."""

    path: Path
    data: bytes
    written_on: date


class ForeignImports:
    """One profile's imports of files that are not its own."""

    def __init__(
        self,
        events: EventLog,
        intake: DraftBuilder,
        imports: DocumentImporter,
        signer: EventSigner,
        clock: Clock,
        *,
        keeps_texts: bool,
    ) -> None:
        self._log, self._intake, self._imports = events, intake, imports
        self._signer, self._clock, self._keeps_texts = signer, clock, keeps_texts

    async def import_folder(self, path: Path, result: ArchiveImportResult, on_progress: OnProgress) -> None:
        """Import an unpacked export, else every memory file, note and daily page in a folder."""
        files = await asyncio.to_thread(source_files.list_files, path, result.skipped)
        if parts := source_files.list_export_parts(path, files, result.skipped):
            await self.import_export(path, parts, result, on_progress)
            return
        texts, is_vault = await asyncio.to_thread(_texts_of, path, files)
        result.skipped[Skipped.OTHER_FILES] += len(files) - len(texts)
        if not texts:
            raise InvalidInput(
                "there is no daily page, memory or note in this folder", field="path", hint=SUPPORTED_SOURCES_HINT
            )
        known = await self._known_moments()
        for number, file in enumerate(texts, 1):
            topic = file.relative_to(path).with_suffix("").as_posix()
            try:
                text = await asyncio.to_thread(_read_text, file, self._clock)
                await self._import_text(text, topic, result, known, is_note=is_vault or file.parent != path)
            except InvalidInput as error:
                result.refuse(file.name, error.message)
            on_progress(number, len(texts))

    async def import_text(self, path: Path, result: ArchiveImportResult) -> None:
        """Import one file of text. Raises InvalidInput if there is none in it."""
        text = await asyncio.to_thread(_read_text, path, self._clock)
        await self._import_text(text, path.stem, result, await self._known_moments(), is_note=False)

    async def import_app_cache(self, path: Path, result: ArchiveImportResult) -> None:
        """Import the document in the original app's database."""
        document = _parse_text(await read_content(path) or b"")
        if not is_memory_document(document):
            raise InvalidInput("there is no memory in it", field="path", hint=SUPPORTED_SOURCES_HINT)
        result.source = "app_cache"
        await self._import_document(document, None, result)

    async def _import_text(
        self, text: _TextFile, topic: str, result: ArchiveImportResult, known: set[RecordMoment], *, is_note: bool
    ) -> None:
        """Import a daily page, a note of a day or of a folder, or a memory file. `known`: the moments of records."""
        if daily_pages.is_page(decoded := text.data.decode(errors="replace")):
            result.source = "daily_pages"
            if "\N{REPLACEMENT CHARACTER}" in decoded:
                raise InvalidInput("it is not text in UTF-8", field="path")
            project = await asyncio.to_thread(daily_pages.project_of, text.path)
            result.conversations += len((page := parse_page(decoded)).sessions)
            await self._import_page(page, project, known, result)
            return
        document = _parse_text(text.data)
        own_day = own_day_of(text.path.stem, document)
        if not document.entries:
            raise InvalidInput("there is no memory in it", field="path", hint=SUPPORTED_SOURCES_HINT)
        if is_note or leading_day(text.path.stem) is not None:
            result.source = result.source or "notes"
            for page in read_note(topic, document, own_day or text.written_on):
                await self._import_page(page, None, set(), result)
        else:
            result.source = result.source or "memory_file"
            await self._import_document(document, own_day or text.written_on, result)

    async def _import_document(self, document: MemoryDocument, day: date | None, result: ArchiveImportResult) -> None:
        done = await self._imports.import_document(document, dry_run=result.dry_run, day=day)
        for line in done.too_large:
            result.refuse(line, "the line is too large for an event")
        result.found += done.found
        result.recorded += done.recorded
        result.known += done.found - done.recorded - len(done.too_large)

    async def _known_moments(self) -> set[RecordMoment]:
        records = await RecordsCache(self._log).current_records()
        listed = (*records.by_id.values(), *records.removed.values())
        return {(*record.moment, record.content.topic) for record in listed}

    async def _import_page(
        self, page: DayPage, project: str | None, known: set[RecordMoment], result: ArchiveImportResult
    ) -> None:
        drafts = list(daily_pages.draft_page_events(page, project, self._intake, self._clock, result.refuse))
        new = [draft for moment, draft in drafts if moment not in known]
        result.found += len(drafts) - len(new)
        result.known += len(drafts) - len(new)
        await self._new_import().append(new, result)

    async def import_export(
        self, path: Path, parts: Sequence[ExportPart] | None, result: ArchiveImportResult, on_progress: OnProgress
    ) -> None:
        """Import an export of Claude or ChatGPT: its `parts`, those of a zip, or one file."""
        memories = list[str]()

        def read(check_cancelled: Callable[[], None]) -> list[ImportedChat]:
            with source_files.open_export(path, result.skipped) if parts is None else nullcontext(parts) as opened:
                values = source_files.read_values(opened, check_cancelled, result.refuse)
                return list(read_chats(_without_memories(values, memories), result.skipped))

        chats = await run_cancellable(read)
        for text in memories:
            result.source = "claude"
            await self.import_pasted(text, result)
        if not chats and not memories:
            problem = "there is no conversation of Claude or ChatGPT in it"
            problem = result.refusals[0][1] if result.refusals else problem
            raise InvalidInput(problem, field="path", hint=SUPPORTED_SOURCES_HINT)
        await self._import_chats(chats, result, on_progress)

    async def import_transcripts(
        self, program: str, path: Path | None, result: ArchiveImportResult, on_progress: OnProgress
    ) -> None:
        """Import the transcripts of a coding agent, from its own folders or from a path."""
        result.source = program
        chats = await asyncio.to_thread(read_transcripts, program, path, result.skipped)
        await self._import_chats(chats, result, on_progress)

    async def import_pasted(self, text: str, result: ArchiveImportResult) -> None:
        """Import a list of what another assistant knows, as facts that wait. Raises TooLarge, InvalidInput."""
        drafts = await asyncio.to_thread(self._pasted_drafts, text, result)
        if not drafts:
            raise InvalidInput("there is no memory in it", field="text", hint="Paste one thing on each line.")
        await self._new_import().append(drafts, result)

    def _pasted_drafts(self, text: str, result: ArchiveImportResult) -> list[EventDraft]:
        lines = dict.fromkeys(read_pasted(text, result.skipped))
        drafts = (draft_pasted_line(line, self._intake, self._clock) for line in lines)
        return [draft for draft in drafts if draft is not None]

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

    def _new_import(self) -> EventImport:
        return EventImport(self._log, self._intake, self._signer, self._clock)


def _without_memories(values: Iterable[object], memories: list[str]) -> Iterator[object]:
    for value in chain.from_iterable(one if isinstance(one, list) else (one,) for one in values):
        if texts := memory_texts(value):
            memories += texts
        else:
            yield value


def _split_recorded_turns(connection: Transaction, *, chat: ImportedChat) -> ImportedChat:
    return split_recorded_turns(chat, partial(store.find_event, connection))


def _texts_of(folder: Path, files: Sequence[Path]) -> tuple[list[Path], bool]:
    """Return the files of text, and whether all are notes.

    Beside daily pages only those of days are taken: the other files there are made of the pages.
    """
    texts = [file for file in files if file.suffix.lower() in source_files.TEXT_SUFFIXES]
    of_days = [file for file in texts if leading_day(file.stem) is not None]
    with translate_os_errors(folder):
        has_pages = any(
            daily_pages.is_page(source_files.read_signature(file).decode(errors="replace")) for file in of_days
        )
        return of_days if has_pages else texts, (folder / OBSIDIAN_FOLDER).is_dir()


def _read_text(path: Path, clock: Clock) -> _TextFile:
    data = source_files.read_text_file(path)
    with translate_os_errors(path):
        written_at = datetime.fromtimestamp(path.stat().st_mtime, clock.now().tzinfo)
    return _TextFile(path, data, written_at.date())


def _parse_text(data: bytes) -> MemoryDocument:
    try:
        return parse(data)
    except DocumentUntouchable as error:
        raise InvalidInput(error.message, field="path", hint=SUPPORTED_SOURCES_HINT) from error
