"""Brings a memory file from somewhere else into the log; the document follows it, as it follows what is said here.

What the document says already, in the same place, is known; so is what came by an earlier import, whether or not it
still stands there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from functools import partial
from typing import Any, Final

from sync.clock import timestamp, utc_offset_minutes
from sync.db.engine import Transaction
from sync.document import store
from sync.document.capture.exchange_events import (
    ExchangeInput,
    RedactedExchange,
    draft_exchange_events,
    draft_operation_events,
)
from sync.document.markdown.model import MemoryDocument
from sync.document.markdown.version_labels import parse_time_label
from sync.document.shared.entry_ops import normalised_section
from sync.document.versions.memory_file_import import SOURCE, ImportedEntry, ImportedExchange, ImportedLine, entries_of
from sync.document.versions.writer import VersionWriter, snapshot_or_template
from sync.log import store as log_store
from sync.log.model import EventDraft, Origin

NOON: Final = time(12)


@dataclass(frozen=True, slots=True)
class DocumentImportResult:
    """`too_large`: lines that no event can hold; they are left out."""

    found: int
    recorded: int
    too_large: tuple[str, ...] = ()


class DocumentImporter(VersionWriter):
    """The write door for what another installation's document says."""

    async def import_document(self, document: MemoryDocument, *, dry_run: bool) -> DocumentImportResult:
        """Take in what is new in it; in a dry run count it. Raises RedactionFailed, StorageError."""
        given = list(entries_of(document))
        taking = partial(self._import_entries, entries=given, label=document.label, dry_run=dry_run)
        if dry_run:
            return await self._log.database.read(taking)
        done = await self._in_transaction(taking)
        self._log.changed.increment()
        return done

    def _import_entries(
        self, connection: Transaction, *, entries: Sequence[ImportedEntry], label: str | None, dry_run: bool
    ) -> DocumentImportResult:
        current = store.newest(connection, store.FILE)
        news = self._pending_change(connection, current)
        snapshot = snapshot_or_template(current, self._clock) if news is None else news.snapshot
        said = {(normalised_section(entry.section), entry.text) for entry in snapshot.entries}
        drafts = {piece: self._draft(piece, label) for piece in entries if _line_of(piece) not in said}
        ids = [draft.event_id for draft in drafts.values() if draft is not None and draft.event_id is not None]
        known = log_store.known_ids(connection, ids)
        new = {piece: draft for piece, draft in drafts.items() if draft is not None and draft.event_id not in known}
        large = tuple(_line_of(piece)[1][:64] for piece, draft in drafts.items() if draft is None)
        if new and not dry_run:
            self._log.append_in(connection, list(new.values()))
        return DocumentImportResult(len(entries), len(new), large)

    def _draft(self, piece: ImportedEntry, label: str | None) -> EventDraft | None:
        """The event of a piece; None where it is too large for one."""
        if isinstance(piece, ImportedLine):
            found, _ = draft_operation_events([piece.added], self._redactor, Origin.IMPORTED)
            draft = replace(found[0], event_id=f"evt_{piece.digest}") if found else None
        else:
            draft = self._exchange_draft(piece)
        when = datetime.combine(piece.day, NOON) if piece.day is not None else parse_time_label(label or "")
        return None if draft is None else replace(draft, origin=Origin.IMPORTED, **self._time_fields(when))

    def _exchange_draft(self, pair: ImportedExchange) -> EventDraft:
        exchange = ExchangeInput(pair.question, pair.answer, idempotency_key=pair.key)
        (draft,) = draft_exchange_events(
            exchange,
            self._redactor,
            device_id=SOURCE,
            store_messages=False,
            redacted=RedactedExchange(pair.question, pair.answer, pair.question, pair.answer),
            policy_fields={"source": SOURCE},
        )
        return draft

    def _time_fields(self, when: datetime | None) -> Mapping[str, Any]:
        """A local time as an event has it; nothing where there is none that is past and in the calendar."""
        try:
            moment = None if when is None else self._clock.local(when)
            if moment is None or moment > self._clock.now():
                return {}
            day, offset = moment.date().isoformat(), utc_offset_minutes(moment)
            return {"ts": timestamp(moment), "local_date": day, "utc_offset": offset}
        except OverflowError:
            return {}


def _line_of(piece: ImportedEntry) -> tuple[tuple[str, ...], str]:
    return piece.line if isinstance(piece, ImportedExchange) else (piece.section, piece.text)
