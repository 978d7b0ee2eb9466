"""What every transaction that makes a new version of the document has in common.

`FileHistory` does it for the file, `CloudHistory` for the copy on the server: the events of an edit, the versions that
contain it and the watermark they stand for are recorded in one transaction of the caller's. What is behind the
watermark stands in the newest version, as it was typed; what comes after it was never typed into this document.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final, TypeVar

from sync.clock import Clock, timestamp, to_unix_ms, uuid7
from sync.db.engine import Transaction
from sync.db.schema import RECOVERY_STARTED
from sync.document import store
from sync.document.capture.day_compaction import compact_days, find_compactable_days, imported_text_lookup
from sync.document.capture.exchange_events import (
    apply_exchanges,
    draft_operation_events,
    exchange_lines,
    repeated_exchange_id,
)
from sync.document.erased_lines_store import ErasedLines, StrippedDocument
from sync.document.erasure import erasure, parked_documents
from sync.document.erasure.corrections import apply_rewrites
from sync.document.erasure.erasure import PendingErasure
from sync.document.markdown.edits import edit_entry, insert_entry, remove_entry, set_footer
from sync.document.markdown.model import (
    Entry,
    EntryAdded,
    EntryEdited,
    EntryRemoved,
    MemoryDocument,
    MergePlan,
    Operation,
    Snapshot,
    Version,
    sha256_of,
)
from sync.document.markdown.parse import parse
from sync.document.markdown.template import empty_document
from sync.document.markdown.version_labels import later_label, next_label, time_label
from sync.document.merge.three_way import choose_base, plan_merge
from sync.document.shared.own_history import OwnHistory
from sync.document.shared.projection import SharedChange, SharedProjection
from sync.document.shared.restore_own_edits import restore_own_edits
from sync.document.shared.unlogged_entries import adopt_logged_ids
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.envelope import bounded_time, event_ms
from sync.log.event_types import DAY_FOLDED, DOCUMENT_EVENT_TYPES, ENTRY_ADDED, ENTRY_REMOVED, EXCHANGE_RECORDED
from sync.log.local_state import REDACTION_RULES
from sync.log.log import EventLog
from sync.log.model import Event, EventDraft, Origin
from sync.log.projections.registry import DOCUMENT
from sync.redaction import Redactor

DOCUMENT_OFFSET: Final = DOCUMENT.name

T = TypeVar("T")

AT_END: Final = ""  # behind which no entry stands
_LETTERS: Final = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


@dataclass(frozen=True, slots=True)
class DocumentView:
    """The newest known document. `exists`: there is a file or an event behind it, not only the template."""

    snapshot: Snapshot
    exists: bool
    updated_at: str | None
    version: int  # the number of the newest version

    @property
    def document(self) -> MemoryDocument:
        return self.snapshot.document

    @property
    def text(self) -> str:
        return self.document.text

    @property
    def sha256(self) -> str:
        return sha256_of(self.document)


@dataclass(frozen=True, slots=True)
class EditResult:
    """What an edit came to: its operations, and the hash of the result."""

    operations: tuple[Operation, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class DocumentDeps:
    """What all ledgers of one document stand on. `keep`: versions in a ring; `sharing`: None for a device's own.

    `parked`: the profile's folder for documents of its that turned up where they could not stay.
    """

    log: EventLog
    redactor: Redactor
    clock: Clock
    keep_versions: int
    own_history: OwnHistory
    shared_projection: SharedProjection | None = None
    parked_folder: Path | None = None


class VersionWriter:
    """The newest version, the log it follows, and the ring it is appended to. For subclasses."""

    def __init__(self, deps: DocumentDeps) -> None:
        self._log, self._clock, self._keep_versions = deps.log, deps.clock, deps.keep_versions
        self._redactor = deps.redactor.for_egress()
        self._shared_projection, self._own_history, self._parked_folder = (
            deps.shared_projection,
            deps.own_history,
            deps.parked_folder,
        )
        self._erased_lines = ErasedLines(self._redactor.clean, self._clock)

    async def has_version(self, digest: str) -> bool:
        """Whether bytes with this hash are a version of this document."""
        return await self._log.database.read(lambda connection: store.find(connection, store.FILE, digest) is not None)

    async def _edit(self, transaction: Callable[[Transaction], EditResult | None]) -> EditResult | None:
        edited = await self._in_transaction(transaction)
        if edited is not None and edited.operations:
            self._log.changed.increment()
        return edited

    async def _in_transaction(self, work: Callable[[Transaction], T]) -> T:
        def working(connection: Transaction) -> T:
            try:
                return work(connection)
            except BaseException:
                self._drop_reduced_state()  # the database may run the work again
                raise

        try:
            return await self._log.database.write(working)
        except BaseException:
            self._drop_reduced_state()
            raise

    def _drop_reduced_state(self) -> None:
        """What was folded may have seen events that were not committed."""
        self._own_history.reset()
        if self._shared_projection is not None:
            self._shared_projection.reset()

    def _follow_log(self, connection: Transaction, *, used_label: str | None = None) -> Version | None:
        """The newest version, with all that the log has. `beyond`: a label that the file has; see `_finished_path`."""
        current = store.newest(connection, store.FILE)
        news = self._pending_change(connection, current)
        if news is None:
            return current
        log_store.set_watermark(connection, DOCUMENT_OFFSET, news.position, self._clock)
        store.delete_unredacted(connection, news.position)
        is_named = self._shared_projection is None and log_store.watermark(connection, RECOVERY_STARTED) > 0
        if is_named and current is not None and news.snapshot.document == current.snapshot.document:
            return self._append_version(connection, news.snapshot, "log")
        return self._append_version(
            connection, self._with_footer(connection, news.snapshot, current, used_label), "log"
        )

    def _current_view(self, connection: Transaction, unread_file: MemoryDocument | None = None) -> DocumentView:
        """The newest version with what the log has besides, without what it asks to forget; else `first`."""
        current = store.newest(connection, store.FILE)
        if current is None and unread_file is not None and self._shared_projection is None:
            unnamed = tuple(f"line {number}" for number in range(len(unread_file.entries)))
            current = Version.of(0, Snapshot(unread_file, unnamed))
        news = self._pending_change(connection, current)
        snapshot = snapshot_or_template(current, self._clock) if news is None else news.snapshot
        for asked in erasure.all_pending(connection, self._log.device_id):
            snapshot = asked.apply_to(snapshot)
        updated = store.newest_created_at(connection, store.FILE) if news is None else news.ts
        number = 0 if current is None else current.number
        return DocumentView(snapshot, exists=(news or current) is not None, updated_at=updated, version=number)

    def _pending_events(self, connection: Transaction) -> list[Event]:
        mark = log_store.watermark(connection, DOCUMENT_OFFSET)
        return log_store.read_by_device(connection, self._log.device_id, after=mark, types=DOCUMENT_EVENT_TYPES)

    def _pending_change(self, connection: Transaction, current: Version | None) -> SharedChange | None:
        """What the log makes of the newest version; None where that has it all."""
        if self._shared_projection is not None:
            return self._shared_projection.pending_change(connection, current)
        pending = self._pending_events(connection)
        if not pending:
            return None
        said = store.unredacted(connection, [event for event in pending if event.type == EXCHANGE_RECORDED])
        typed = [event for event in pending if event.type != EXCHANGE_RECORDED]
        local, begun = snapshot_or_template(current, self._clock), log_store.watermark(connection, RECOVERY_STARTED)
        if not typed and not begun:
            return SharedChange(apply_exchanges(local, said), pending[-1].ts, pending[-1].position)
        with self._own_history.caught_up(connection) as fold:
            if begun:
                told = restore_own_edits(
                    apply_exchanges(snapshot_or_template(None, self._clock), said), typed, fold, self._redactor.clean
                )
                local = adopt_logged_ids(local, told, fold, self._redactor.clean)
                said = [
                    event for event in said if repeated_exchange_id(event) is None or event_ms(event) > begun
                ]  # counted there
            snapshot = restore_own_edits(apply_exchanges(local, said), typed, fold, self._redactor.clean)
        return SharedChange(snapshot, pending[-1].ts, pending[-1].position)

    def _is_behind(self, connection: Transaction, current: Version | None) -> bool:
        if self._shared_projection is not None:
            return self._shared_projection.is_behind(connection, current)
        if self._pending_events(connection):
            return True
        self._own_history.release_if_idle()
        return False

    def _apply_next_erasure(self, connection: Transaction) -> PendingErasure | None:
        """Carry out the next of what the log asks to forget; what that was."""
        if (asked := erasure.next_pending(connection, self._log.device_id)) is not None:
            erasure.apply_corrections(connection, asked)
            self._own_history.reset()  # what it has folded said the old words
            if asked.corrected_payloads and self._shared_projection is not None:
                self._shared_projection.reset()  # and so did this
            current = self._apply_rewrites(connection, asked)
            if (planned := erasure.plan_removals(asked, current)) is not None:
                self._record_own_events(connection, self._removal_drafts(planned))
                self._append_version(connection, self._with_footer(connection, planned.merged, current), "forgotten")
            if asked.quoting_event_ids:
                self._log.append_in(connection, erasure.request_drafts(asked.quoting_event_ids, self._redactor))
            if self._parked_folder is not None and self._parked_folder.is_dir():  # where that fails the wish waits
                parked_documents.erase_from_parked(
                    self._parked_folder,
                    store.containing(connection, asked.affected_entry_ids),
                    asked.apply_to,
                    self._new_id,
                )
            lost = erasure.apply(connection, asked, self._clock)
            self._erased_lines.record(connection, lost)
            self._own_history.reset()  # folded again meanwhile, with what has just been blanked
            if asked.entry_ids:
                self._rebuild_shared(connection)
        return asked

    def _removal_drafts(self, planned: MergePlan) -> list[EventDraft]:
        """The removals of erased lines. They name no hash, which would outlast the words."""
        shared = {} if self._shared_projection is None else {"shared": True}
        named = ({"entry_id": one.entry_id, "section": list(one.section), **shared} for one in planned.operations)
        return [
            EventDraft(ENTRY_REMOVED, self._redactor.clean_payload(payload), origin=Origin.USER) for payload in named
        ]

    def _rebuild_shared(self, connection: Transaction) -> None:
        """A shared document is made of what the log says now: where a line stood that was forgotten, nobody knows.

        Otherwise it would differ from that of a device which has heard of the line only after it was blank.
        """
        current = store.newest(connection, store.FILE)
        if self._shared_projection is None or current is None:
            return
        self._shared_projection.reset()
        snapshot = self._with_footer(connection, current.snapshot, current)
        if snapshot != current.snapshot:
            self._append_version(connection, snapshot, "forgotten")

    def _apply_rewrites(self, connection: Transaction, pending: PendingErasure) -> Version | None:
        """The newest version, with corrected words where the old ones stood."""
        current = self._follow_log(connection)
        if current is None or not pending.corrected_payloads:
            return current
        snapshot = apply_rewrites(current.snapshot, pending.rewrites)
        if self._shared_projection is None and snapshot == current.snapshot:
            return current
        return self._append_version(connection, self._with_footer(connection, snapshot, current), "redacted")

    def _compact_days(self, connection: Transaction, today: date, keep_days: int) -> bool:
        """Fold the days that are due, as many as go at a time; whether there were any.

        They are due by a bounded time: other devices fold them too, also if this one's clock is years ahead.
        """
        current = self._follow_log(connection)
        if current is None:
            return False
        now = self._clock.now()
        bounded = bounded_time(now, outbox_store.newest_server_time(connection))

        def said(event_id: str) -> tuple[str, str] | None:
            event = log_store.find_event(connection, event_id)
            return None if event is None else exchange_lines(event)

        today = min(today, bounded.astimezone(now.tzinfo).date())
        imported = imported_text_lookup(
            log_store.read_by_types(connection, [ENTRY_ADDED], after=0), self._redactor.clean
        )
        days = find_compactable_days(current.snapshot, today, keep_days, said, imported)
        if not days:
            return False
        snapshot, payloads = compact_days(current.snapshot, days)
        ts = timestamp(bounded) if bounded < now else None
        drafts = [
            EventDraft(DAY_FOLDED, self._redactor.clean_payload(payload), ts=ts, origin=Origin.TOOL)
            for payload in payloads
        ]
        self._record_own_events(connection, drafts)
        self._append_version(connection, self._with_footer(connection, snapshot, current), "folded")
        return True

    def _record_kept_copy(self, connection: Transaction, document: MemoryDocument) -> None:
        current = self._follow_log(connection)
        if current is not None:
            ring = store.base_candidates(connection, store.FILE, sha256_of(document), document.label)
            stripped = self._strip_erased(connection, document, choose_base(document, ring))
            self._append_version(
                connection, plan_merge(current, current, stripped.document, self._new_id).observed, "hand"
            )
            self._append_version(connection, self._with_footer(connection, current.snapshot, current), "restored")

    def _strip_erased(
        self, connection: Transaction, document: MemoryDocument, base: Version | None, digest: str = ""
    ) -> StrippedDocument:
        """What an editor saved, without the lines that were erased since it loaded its `base`.

        `digest`: the hash by which it names the base, if it does. One that names none may have loaded any version.
        """
        if not self._erased_lines.has_any(connection):
            return StrippedDocument(document)
        seen = base or store.newest(connection, store.FILE)
        ring = store.base_candidates(connection, store.FILE, digest, document.label)
        known = [one for one in (base, *ring) if one is not None]
        named = (one for one in known if one.sha256 == digest or one.label == document.label is not None)
        number = next((one.number for one in named), None)
        return self._erased_lines.strip(connection, document, seen.snapshot if seen else None, number)

    def _record_operations(
        self, connection: Transaction, planned: MergePlan, base: Version | None, origin: Origin
    ) -> None:
        """Record what can be an event; an entry that is too large to be one stays in the file."""
        if self._shared_projection is not None:
            drafts = self._shared_projection.draft_edit_events(connection, planned, base, origin)
        else:
            drafts, _ = draft_operation_events(planned.operations, self._redactor, origin)
        if drafts:
            self._record_own_events(connection, drafts)

    def _record_own_events(self, connection: Transaction, drafts: Sequence[EventDraft]) -> None:
        """Record what the next version says in its own words. The caller has followed the log in this transaction."""
        self._log.append_in(connection, drafts)
        log_store.set_watermark(connection, DOCUMENT_OFFSET, log_store.newest_position(connection), self._clock)

    def _append_version(
        self, connection: Transaction, snapshot: Snapshot, cause: str, *, digest: str | None = None
    ) -> Version:
        first = store.newest(connection, store.FILE) is None  # versions of another surface may have come before
        version = store.append(connection, store.FILE, snapshot, cause, self._clock, self._keep_versions, digest=digest)
        if first:
            log_store.set_watermark(connection, REDACTION_RULES, self._redactor.rules_version, self._clock)
        return version

    def _with_footer(
        self, connection: Transaction, snapshot: Snapshot, current: Version | None, used_label: str | None = None
    ) -> Snapshot:
        """What a version with these entries reads like, with a footer of its own: the label names the version.

        `beyond`: a label that was given already; the version that bore it may be lost, and no other gets its name.
        """
        shared = (
            None
            if self._shared_projection is None
            else self._shared_projection.render_and_checkpoint(connection, snapshot)
        )
        if shared is not None:
            return shared
        return set_footer(
            snapshot, next_label(later_label(current.label if current else None, used_label), self._clock.now())
        )

    def _new_id(self) -> str:
        """`ent_` and 32 letters: no digits, so that no redaction rule can take an id for a number."""
        digits = uuid7(to_unix_ms(self._clock.now()), self._clock.random_bytes).hex
        return "ent_" + digits.translate(_LETTERS)


def snapshot_or_template(current: Version | None, clock: Clock) -> Snapshot:
    return current.snapshot if current else Snapshot(parse(empty_document(time_label(clock.now()))))


def adapt_to_layout(planned: MergePlan, base: Version | None, current: Version | None) -> MergePlan:
    """A plan for another surface, whose layout is not ours: a line moves here only where a hand has moved it there."""
    was = {entry.entry_id: entry.section for entry in base.snapshot.entries} if base else {}
    there = {entry.entry_id: entry.section for entry in planned.observed.entries}
    here = {entry.entry_id: entry for entry in current.snapshot.entries} if current else {}

    def meant(one: Operation) -> Operation | None:
        now, stands = here.get(one.entry_id), there.get(one.entry_id)
        if not isinstance(one, EntryEdited) or now is None:
            return one
        is_moved = stands is not None and was.get(one.entry_id, stands) != stands
        edit = one if is_moved else replace(one, section=now.section)
        return edit if (edit.text, edit.section) != (now.text, now.section) else None

    found = (meant(one) for one in planned.operations)
    return replace(planned, operations=tuple(one for one in found if one is not None))


def _apply_edit(snapshot: Snapshot, edit: EntryEdited) -> Snapshot:
    """The entry with its new text; where it stands in another section now, as the last one there."""
    (entry,) = (entry for entry in snapshot.entries if entry.entry_id == edit.entry_id)
    if entry.section == edit.section:
        return edit_entry(snapshot, edit.entry_id, edit.text)
    there = replace(entry, text=edit.text, section=edit.section)
    return insert_entry(remove_entry(snapshot, edit.entry_id), there, AT_END)


def apply_operations(snapshot: Snapshot, operations: Sequence[Operation]) -> Snapshot:
    """Operations of another surface applied to this one; what is gone here and edited there comes back."""
    for operation in operations:
        here = operation.entry_id in snapshot.ids
        match operation:
            case EntryAdded() if not here:
                entry = Entry(operation.entry_id, operation.text, operation.section)
                snapshot = insert_entry(snapshot, entry, operation.after)
            case EntryEdited() if here:
                snapshot = _apply_edit(snapshot, operation)
            case EntryEdited():
                snapshot = insert_entry(snapshot, Entry(operation.entry_id, operation.text, operation.section), None)
            case EntryRemoved() if here:
                snapshot = remove_entry(snapshot, operation.entry_id)
            case _:
                continue  # added or removed on both sides
    return snapshot
