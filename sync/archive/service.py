"""Everything as one file, and back into a log; what other programs kept through the same door.

Decisions
    An event that is known by its id, and says something here, is left as it is, so the same file twice changes nothing
    and a broken import is gone on with by starting it again. Events are taken in batches; one batch is a transaction.
    What the exporting device said itself, also before the app gave it the id that it has, is said by this device from
    now on, under its ids, times, days and origins: it gets a place in this log, is delivered to this account's cloud
    and stands in this document. The device it came from stays in it as `imported_device_id`. What the exporter had
    heard from other devices stays theirs, in its place and with whole messages, as if it had been pulled: it is not
    sent for them, and a pull that brings it again knows it. Where another event has that place here, it is refused.
    What retention took from this device says nothing in the log, and is in its archives: an export leaves it out, or
    its blank rows would stand elsewhere in the way of its words. Where such a row stands here all the same, an archive
    that has the words fills it in again; its lines in the document and the daily records stay as they are. It goes out
    where it was never sent; a cloud that holds it, blank or not, keeps what it has, since it skips the ids it knows.
    What a person wished to be forgotten comes back from no file, and what was corrected comes corrected.
    Everything is checked and redacted anew, whoever wrote the file. Of own messages only the beginning is kept, as of
    what is said here, unless the user has them stored. What was decided about an account's devices
    (`device_…`) stays behind. Document versions and settings are in the archive for people and other programs; the
    document here grows from the events, and no import changes a setting or puts a file in the place of another.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.archive import daily_pages, source_files
from sync.archive.archive_file import EVENTS_PER_PART, build_events_part, build_info_part, write_archive
from sync.archive.chat_events import draft_chat_events, split_recorded_turns
from sync.archive.chat_exports import ImportedChat, read_chats
from sync.archive.container import INFO_PART, ArchiveInfo, ArchiveReader, ArchiveWriter, is_archive
from sync.archive.model import ArchiveExportResult, ArchiveImportResult, OnProgress
from sync.clock import Clock
from sync.daily.records.records_cache import RecordsCache
from sync.db.engine import Transaction
from sync.document import store as document_store
from sync.document.erasure.erasure import expired_here
from sync.document.markdown.parse import parse
from sync.document.surfaces.app_cache import read_content
from sync.document.versions.importer import DocumentImporter
from sync.document.versions.memory_file_import import is_memory_document
from sync.errors import DocumentUntouchable, InvalidInput, RedactionFailed
from sync.log import erased_store, outbox_store, store
from sync.log.envelope import DECODE_ERRORS, from_wire
from sync.log.event_types import ERASING_TYPES, PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED, RETRACTING_TYPES
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import CLOUD, Event, EventDraft, Origin, Query, is_excluded_from_import
from sync.log.projections.registry import JSONL, RECALL
from sync.log.retractions import Retractions, redacted_payload
from sync.redaction import Redactor
from sync.runtime.supervision import run_cancellable
from sync.system.files import translate_os_errors

BATCH_EVENTS: Final = 500  # events in one transaction
SUPPORTED_SOURCES_HINT: Final = (
    "Give an archive of this program, a memory file or the app's database, a folder of daily pages,"
    " or the conversations.json (or its zip) of Claude or ChatGPT."
)
KNOWN_ORIGINS: Final = frozenset(Origin)

ARCHIVE_SOURCE: Final = "archive"  # the source that this program writes itself
SOURCE_DEVICE_FIELD: Final = "imported_device_id"

ImportItem = EventDraft | Event  # to be said by this device, or another's


class ArchiveService:
    """One profile's exports and imports."""

    def __init__(self, events: EventLog, intake: DraftBuilder, imports: DocumentImporter, *, clock: Clock) -> None:
        self._log = events
        self._intake = intake
        self._imports = imports
        self._clock = clock

    async def export(
        self, path: Path, *, document: str, settings: Mapping[str, Any], passphrase: str | None, on_progress: OnProgress
    ) -> ArchiveExportResult:
        """Write everything into a new file. Raises InvalidInput where there is one already, StorageError."""
        head = await self._log.newest_position()
        counts = [0, 0]

        async def fill(writing: ArchiveWriter) -> None:
            await asyncio.to_thread(writing.add, INFO_PART, await build_info_part(self._log, head, self._clock))
            counts[0] = await self._write_events(writing, head, on_progress)
            counts[1] = await self._write_document(writing, document)
            await asyncio.to_thread(writing.add, "settings.json", msgspec.json.encode(settings))

        filed = await write_archive(path, passphrase, fill)
        return ArchiveExportResult(str(path), counts[0], counts[1], filed.bytes, filed.sha256, passphrase is not None)

    async def _write_events(self, writing: ArchiveWriter, head: int, on_progress: OnProgress) -> int:
        archived = await self._log.database.read(expired_here)
        after = number = events = 0
        while after < head:
            page = await self._log.read(Query(after=after, limit=EVENTS_PER_PART))
            found = [event for event in page.events if event.position <= head]
            if not found:
                break
            after = found[-1].position
            if left := [event for event in found if event.payload or event.event_id not in archived]:
                number, events = number + 1, events + len(left)
                await asyncio.to_thread(writing.add, *build_events_part(number, left))
            on_progress(after, head)
        return events

    async def _write_document(self, writing: ArchiveWriter, document: str) -> int:
        await asyncio.to_thread(writing.add, "documents/current.md", document.encode())
        after = number = versions = 0
        while found := await self._log.database.read(partial(document_store.export_page, after=after, limit=10)):
            number, after, versions = number + 1, int(found[-1]["version"]), versions + len(found)
            lines = b"".join(msgspec.json.encode(version) + b"\n" for version in found)
            await asyncio.to_thread(writing.add, f"documents/versions-{number:06}.jsonl", lines)
        return versions

    async def import_path(
        self, path: Path, *, passphrase: str | None, dry_run: bool, on_progress: OnProgress
    ) -> ArchiveImportResult:
        """Bring in what lies there, recognised by what is in it. Raises InvalidInput, StorageError."""
        if await asyncio.to_thread(path.is_dir):
            return await self._import_pages(
                path, await asyncio.to_thread(daily_pages.list_pages, path), dry_run, on_progress
            )
        with translate_os_errors(path):
            beginning = await asyncio.to_thread(source_files.read_signature, path)
        if is_archive(beginning):
            return await self._import_archive(path, passphrase=passphrase, dry_run=dry_run, on_progress=on_progress)
        if beginning.startswith(source_files.SQLITE_SIGNATURE):
            return await self._import_document("app_cache", await read_content(path) or b"", dry_run)
        if not source_files.is_json(beginning):
            data = await asyncio.to_thread(source_files.read_text_file, path)
            if daily_pages.is_page(data.decode(errors="replace")):
                return await self._import_pages(path, [path], dry_run, on_progress)
            return await self._import_document("memory_file", data, dry_run)
        return await self._import_chats(path, dry_run=dry_run, on_progress=on_progress)

    async def _import_document(self, source: str, data: bytes, dry_run: bool) -> ArchiveImportResult:
        """A memory file's, wherever it was kept."""
        try:
            document = parse(data)
        except DocumentUntouchable as error:
            raise InvalidInput(error.message, field="path", hint=SUPPORTED_SOURCES_HINT) from error
        if not is_memory_document(document):
            raise InvalidInput("there is no memory in it", field="path", hint=SUPPORTED_SOURCES_HINT)
        done = await self._imports.import_document(document, dry_run=dry_run)
        taken = ArchiveImportResult(source, found=done.found, recorded=done.recorded, dry_run=dry_run)
        for line in done.too_large:
            taken.refuse(line, "the line is too large for an event")
        taken.known = done.found - done.recorded - taken.refused
        return taken

    async def _import_pages(
        self, path: Path, files: Sequence[Path], dry_run: bool, on_progress: OnProgress
    ) -> ArchiveImportResult:
        """Daily pages, one after the other; one that is not understood is told and stops no other."""
        if not files:
            raise InvalidInput("there is no daily page in this folder", field="path", hint=SUPPORTED_SOURCES_HINT)
        taken, project = (
            ArchiveImportResult("daily_pages", dry_run=dry_run),
            await asyncio.to_thread(daily_pages.project_of, path),
        )
        book = await RecordsCache(self._log).current_records()
        here = {(*record.moment, record.content.topic) for record in (*book.by_id.values(), *book.removed.values())}
        for number, file in enumerate(files, 1):
            with translate_os_errors(file):
                data = await asyncio.to_thread(source_files.read_text_file, file)
            try:
                text = data.decode()
                given = list(daily_pages.draft_page_events(text, project, self._intake, self._clock, taken.refuse))
            except (InvalidInput, UnicodeDecodeError) as error:
                taken.refuse(file.name, error.message if isinstance(error, InvalidInput) else "it is not text in UTF-8")
                continue
            taken.conversations += len(given)
            new = [draft for moment, draft in given if moment not in here]
            taken.found += len(given) - len(new)
            taken.known += len(given) - len(new)
            await self.append_items(new, taken)
            on_progress(number, len(files))
        return taken

    async def _import_chats(self, path: Path, *, dry_run: bool, on_progress: OnProgress) -> ArchiveImportResult:
        """Claude's or ChatGPT's, one conversation after the other."""
        found = await run_cancellable(lambda go_on: list(read_chats(source_files.read_conversations(path, go_on))))
        if not found:
            raise InvalidInput(
                "there is no conversation of Claude or ChatGPT in it", field="path", hint=SUPPORTED_SOURCES_HINT
            )
        taken = ArchiveImportResult(found[0].program, conversations=len(found), dry_run=dry_run)
        for number, talk in enumerate(found, 1):
            divided = await self._log.database.read(partial(_split_recorded_turns, talk=talk))
            await self.append_items(await asyncio.to_thread(self._chat_drafts, divided, taken), taken)
            on_progress(number, len(found))
        return taken

    def _chat_drafts(self, chat: ImportedChat, result: ArchiveImportResult) -> list[EventDraft]:
        try:
            return list(draft_chat_events(chat, self._intake))
        except (InvalidInput, RedactionFailed) as error:
            result.refuse(chat.chat_id, error.message)
            return []

    async def _import_archive(
        self, path: Path, *, passphrase: str | None, dry_run: bool, on_progress: OnProgress
    ) -> ArchiveImportResult:
        """Bring an archive in. Raises InvalidInput, before anything is recorded, where it is not whole."""
        reading = await run_cancellable(partial(ArchiveReader.open_verified, path, passphrase))
        taken, done = ArchiveImportResult(ARCHIVE_SOURCE, dry_run=dry_run), 0
        parts = reading.read_parts()
        while (part := await asyncio.to_thread(next, parts, None)) is not None:
            name, data = part
            if name.startswith("events/"):
                items, cut = await run_cancellable(partial(self._parse_items, data, reading.info, taken))
                done += data.count(b"\n")
                await self.append_items(items, taken, cut)
                on_progress(done, reading.info.head)
        return taken

    async def append_items(
        self, items: Sequence[ImportItem], result: ArchiveImportResult, shortened_ids: Collection[str] = ()
    ) -> None:
        """Take items in, batch after batch; in a dry run count what would be. `cut`: the ids of shortened messages."""
        for start in range(0, len(items), BATCH_EVENTS):
            batch = items[start : start + BATCH_EVENTS]
            taking = partial(
                self._import_batch, items=batch, refill_erased=result.source == ARCHIVE_SOURCE, dry_run=result.dry_run
            )
            new, displaced = await (
                self._log.database.read(taking) if result.dry_run else self._log.database.write(taking)
            )
            result.found += len(batch)
            result.recorded += len(new)
            result.known += len(batch) - len(new) - len(displaced)
            result.shortened += len(new.intersection(shortened_ids))
            for event_id in displaced:
                result.refuse(event_id, "its place is another event's here")
            if new and not result.dry_run:
                self._log.changed.increment()

    def _import_batch(
        self, connection: Transaction, *, items: Sequence[ImportItem], refill_erased: bool, dry_run: bool
    ) -> tuple[set[str | None], list[str]]:
        """The ids of what is new or `fills` a blank row, and of others' events whose numbers other events have here.

        What others said comes first: among their numbers may be some of a replica that this one was, or is.
        """
        ids = [item.event_id for item in items if item.event_id is not None]
        known = store.known_ids(connection, ids)
        again = _refills_from(connection, items, self._log.device_id) if refill_erased else []
        withdrawn = _retractions_of(connection, ids, again)
        back = [event for event in map(withdrawn.effective_event, again) if event.payload]
        unknown = {item.event_id: item for item in items if item.event_id not in known}.values()
        new = [item for one in unknown if (item := _effective_item(one, withdrawn, self._intake.redactor)) is not None]
        theirs = [item for item in new if isinstance(item, Event)]
        free: dict[tuple[str, int], Event] = {}
        for event in theirs:
            if not store.any_number_taken(connection, [event]):
                free.setdefault(event.replica_key, event)
        displaced = [event.event_id for event in theirs if free.get(event.replica_key) is not event]
        if not dry_run:
            store.insert_events(connection, list(free.values()))
            store.observe_remote_events(connection, list(free.values()), self._clock)
            self._log.append_in(connection, [item for item in new if isinstance(item, EventDraft)])
            self._refill(connection, back)
        taken = {item.event_id for item in new} | {event.event_id for event in back}
        return taken.difference(displaced), displaced

    def _refill(self, connection: Transaction, refilled: Sequence[Event]) -> None:
        """Fill blank rows in. Views that have passed their places are built anew: nothing else tells them."""
        if refilled:
            erased_store.refill(connection, refilled)
            outbox_store.requeue_dropped(connection, CLOUD, [event.event_id for event in refilled])
            store.bump_order_version(connection, self._clock)  # what a shared document is made of
            for projection in (RECALL, JSONL):
                store.invalidate_projection(connection, projection.name, self._clock)

    def _parse_items(
        self, lines: bytes, about: ArchiveInfo, result: ArchiveImportResult, check_cancelled: Callable[[], None]
    ) -> tuple[list[ImportItem], set[str]]:
        """What the lines say, and the ids of the messages of which only the beginning is kept here."""
        found: list[ImportItem] = []
        cut: set[str] = set()
        for line in lines.splitlines():
            check_cancelled()
            try:
                value = msgspec.json.decode(line)
            except DECODE_ERRORS:
                result.refuse("an event", "its line is no JSON")
                continue
            if not isinstance(value, dict) or is_excluded_from_import(value.get("type")):
                continue
            try:
                event = from_wire(value)
                item = self._parse_item(value, event, about)
                found.append(item)
                if isinstance(item, EventDraft) and self._intake.is_shortened(event.type, event.payload):
                    cut.add(str(item.event_id))
            except (InvalidInput, RedactionFailed) as error:
                result.refuse(str(value.get("event_id")), error.message)
        return found, cut

    def _parse_item(self, value: dict[str, Any], event: Event, about: ArchiveInfo) -> ImportItem:
        is_ours = event.device_id == self._log.device_id or about.is_from_exporter(event)
        intake = self._intake if is_ours else replace(self._intake, store_messages=True)
        origin = value["origin"] if value["origin"] in KNOWN_ORIGINS else str(Origin.IMPORTED)
        given = {name: item for name, item in value.items() if name != "session_id" or item}
        draft = intake.build({**given, "origin": origin}, ids_are_known=True)
        draft = (
            replace(draft, payload=redacted_payload(event, intake.redactor))
            if event.type in RETRACTING_TYPES
            else draft
        )
        if not is_ours:
            extra = draft.extra.value if draft.extra else {}
            path = None if draft.project_path is None else str(draft.project_path)
            return replace(event, payload=draft.payload.value, project_path=path, extra=extra, server_seq=None)
        if event.device_id != self._log.device_id:
            marked = {**(draft.extra.value if draft.extra else {}), SOURCE_DEVICE_FIELD: event.device_id}
            draft = replace(draft, extra=self._intake.redactor.clean_payload(marked))
        return draft


def _split_recorded_turns(connection: Transaction, *, talk: ImportedChat) -> ImportedChat:
    return split_recorded_turns(talk, partial(store.find_event, connection))


def _refills_from(connection: Transaction, items: Sequence[ImportItem], device_id: str) -> list[Event]:
    """Events that are blank here, with the words that they have in these items."""
    given = {item.event_id: item for item in items if item.event_id is not None and _payload_of(item)}
    found = []
    for held in erased_store.find_erased(connection, list(given)):
        item = given[held.event_id]
        extra = {} if item.extra is None else dict(item.extra.value if isinstance(item, EventDraft) else item.extra)
        if held.device_id != device_id:  # it stands here as what its own device said
            extra.pop(SOURCE_DEVICE_FIELD, None)
        if held.type == item.type:
            found.append(replace(held, payload=_payload_of(item), extra=extra))
    return found


def _retractions_of(connection: Transaction, event_ids: Collection[str], refills: Sequence[Event]) -> Retractions:
    """What the log has taken back of these events. A correction that comes back itself counts, behind the log's own."""
    found = Retractions()
    found.apply(store.read_by_types(connection, [PAYLOAD_FORGOTTEN], after=0))
    if not found.erased_ids.isdisjoint(event_ids):
        found.apply(refills)
        found.apply(store.read_by_types(connection, [PAYLOAD_REDACTED], after=0))
    return found


def _effective_item(item: ImportItem, retractions: Retractions, redactor: Redactor) -> ImportItem | None:
    """What may be recorded of an item that is unknown here; None where a person has wished it to be forgotten."""
    if item.event_id is None or item.event_id not in retractions.erased_ids or item.type in ERASING_TYPES:
        return item
    payload = retractions.corrected_payload(item.event_id)
    if payload is None:
        return None if _payload_of(item) else item
    if isinstance(item, EventDraft):
        return replace(item, payload=redactor.clean_payload(payload))
    return replace(item, payload=payload)


def _payload_of(item: ImportItem) -> Mapping[str, Any]:
    return item.payload.value if isinstance(item, EventDraft) else item.payload
