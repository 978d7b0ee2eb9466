"""Import a memory file from another installation as events; the document follows them like any other event.

Skipped are lines that the document has in the same section, and everything that an earlier import brought.
"""

from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.clock import timestamp, utc_offset_minutes
from sync.db.engine import Transaction
from sync.document import store
from sync.document.capture.exchange_events import (
    ExchangeInput,
    RedactedExchange,
    draft_exchange_events,
    draft_operation_events,
)
from sync.document.markdown.model import Encoding, MemoryDocument, MergePlan, Snapshot, Version
from sync.document.markdown.parse import parse_text
from sync.document.markdown.positions import normalised_section
from sync.document.markdown.version_labels import parse_time_label
from sync.document.merge.three_way import plan_merge
from sync.document.versions.memory_file_import import SOURCE, ImportedEntry, ImportedExchange, ImportedLine, entries_of
from sync.document.versions.own_projection import DOCUMENT_OFFSET, snapshot_or_template
from sync.document.versions.writer import VersionWriter
from sync.log import store as log_store
from sync.log.model import Door, EventDraft, Origin

NOON: Final = time(12)


class DocumentImportResult(msgspec.Struct, frozen=True):
    """`found` and `recorded` entries; `too_large`: lines that no event can hold."""

    found: int
    recorded: int
    too_large: tuple[str, ...] = ()


class ArchivedVersion(msgspec.Struct, frozen=True):
    """A version of the memory file as an archive holds it; archives of before have no ids."""

    surface: str
    sha256: str
    cause: str
    created_at: str
    text: str
    encoding: Encoding = "utf-8"
    bom: bool = False
    ids: tuple[str, ...] = ()


class DocumentImporter:
    """Records what another installation's document says."""

    def __init__(self, writer: VersionWriter, path: Path) -> None:
        self._writer, self._path = writer, path

    async def is_home_empty(self) -> bool:
        """Whether there is neither a memory file, nor a version of one, nor anything said here that belongs in it."""
        return not self._path.exists() and not await self._writer.log.database.read(self._has_words)

    def _has_words(self, connection: Transaction) -> bool:
        return store.newest(connection, store.FILE) is not None or self._writer.projection.is_behind(connection)

    async def take_over(self, document: MemoryDocument, history: Sequence[ArchivedVersion], door: Door) -> None:
        """Make the document and the versions of an archive, whose events were imported, those of an empty home.

        `door`: whose the lines are that no event names.
        """
        await self._writer.in_transaction(self._take_over, document=document, history=history, door=door)
        self._writer.log.changed.increment()

    def _take_over(
        self, connection: Transaction, *, document: MemoryDocument, history: Sequence[ArchivedVersion], door: Door
    ) -> None:
        writer = self._writer
        log_store.set_watermark(connection, DOCUMENT_OFFSET, 0, writer.clock)
        kept = [self._snapshot_of(version) for version in history[-writer.keep_versions :]]
        base = Version.of(0, kept[-1]) if kept else None
        observed = plan_merge(base, base, document, writer.new_id).observed
        named = writer.projection.with_logged_ids(connection, observed)
        renamed = dict(zip(observed.ids, named.ids, strict=True))
        for version, snapshot in zip(history[-len(kept) :], kept, strict=True):
            ids = tuple([renamed.get(entry_id, entry_id) for entry_id in snapshot.ids])
            writer.append_version(
                connection,
                Snapshot(snapshot.document, ids),
                version.cause,
                digest=version.sha256,
                created_at=version.created_at,
            )
        if base is None or base.snapshot.document != document:
            writer.append_version(connection, named, "log")
        operations = writer.projection.unlogged_additions(connection, named)
        planned = MergePlan(operations, named, (), named)
        writer.record_operations(connection, planned, Origin.IMPORTED, door, is_found=True)
        log_store.set_watermark(connection, DOCUMENT_OFFSET, log_store.newest_position(connection), writer.clock)

    def _snapshot_of(self, version: ArchivedVersion) -> Snapshot:
        document = parse_text(version.text, encoding=version.encoding, bom=version.bom)
        fresh = plan_merge(None, None, document, self._writer.new_id).observed
        return Snapshot(document, version.ids) if len(version.ids) == len(fresh.ids) else fresh

    async def import_document(
        self, document: MemoryDocument, *, dry_run: bool, day: date | None = None
    ) -> DocumentImportResult:
        """Record what is new in it; in a dry run count it. Raises RedactionFailed, StorageError.

        `day`: of lines below no day, if the document has no footer.
        """
        entries, written_at = list(entries_of(document)), parse_time_label(document.label or "")
        if written_at is None and day is not None:
            written_at = datetime.combine(day, NOON)
        work = partial(self._import_entries, entries=entries, written_at=written_at, dry_run=dry_run)
        if dry_run:
            return await self._writer.log.database.read(work)
        result = await self._writer.in_transaction(work)
        self._writer.log.changed.increment()
        return result

    def _import_entries(
        self, connection: Transaction, *, entries: Sequence[ImportedEntry], written_at: datetime | None, dry_run: bool
    ) -> DocumentImportResult:
        current = store.newest(connection, store.FILE)
        change = self._writer.projection.pending_change(connection, current)
        snapshot = (
            snapshot_or_template(current, self._writer.clock, self._writer.language)
            if change is None
            else change.snapshot
        )
        present = {(normalised_section(entry.section), entry.text) for entry in snapshot.entries}
        drafts = {entry: self._draft(entry, written_at) for entry in entries if _line_of(entry) not in present}
        ids = [draft.event_id for draft in drafts.values() if draft is not None and draft.event_id is not None]
        known = log_store.known_ids(connection, ids)
        new = [draft for draft in drafts.values() if draft is not None and draft.event_id not in known]
        too_large = tuple(_line_of(entry)[1][:64] for entry, draft in drafts.items() if draft is None)
        if new and not dry_run:
            self._writer.log.append_in(connection, new)
        return DocumentImportResult(len(entries), len(new), too_large)

    def _draft(self, entry: ImportedEntry, written_at: datetime | None) -> EventDraft | None:
        """The event of an entry; None if it is too large for one."""
        if isinstance(entry, ImportedLine):
            drafts, _ = draft_operation_events([entry.added], self._writer.redactor, Origin.IMPORTED)
            draft = replace(drafts[0], event_id=f"evt_{entry.digest}") if drafts else None
        else:
            draft = self._exchange_draft(entry)
        when = datetime.combine(entry.day, NOON) if entry.day is not None else written_at
        return (
            None
            if draft is None
            else replace(draft, origin=Origin.IMPORTED, door=Door.IMPORT, **self._time_fields(when))
        )

    def _exchange_draft(self, pair: ImportedExchange) -> EventDraft:
        exchange = ExchangeInput(pair.question, pair.answer, idempotency_key=pair.key)
        (draft,) = draft_exchange_events(
            exchange,
            self._writer.redactor,
            device_id=SOURCE,
            store_messages=False,
            redacted=RedactedExchange(pair.question, pair.answer, pair.question, pair.answer, pair.language),
            policy_fields={"source": SOURCE},
        )
        return draft

    def _time_fields(self, when: datetime | None) -> Mapping[str, Any]:
        """A local time as an event has it; nothing if it is in the future or outside the calendar."""
        clock = self._writer.clock
        try:
            moment = None if when is None else clock.local(when)
            if moment is None or moment > clock.now():
                return {}
            day, offset = moment.date().isoformat(), utc_offset_minutes(moment)
            return {"ts": timestamp(moment), "local_date": day, "utc_offset": offset}
        except OverflowError:
            return {}


def _line_of(entry: ImportedEntry) -> tuple[tuple[str, ...], str]:
    return entry.line if isinstance(entry, ImportedExchange) else (entry.section, entry.text)
