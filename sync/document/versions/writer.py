"""Write new versions of the document: their events, their rows and the log offset, in one transaction of the caller.

`FileHistory`, `CloudHistory`, `DocumentImporter` and `WithheldErasures` share one writer. The newest version contains
everything before the offset as it was typed; nothing behind the offset was typed into this document.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import msgspec
from msgspec.structs import replace

from sync.clock import Clock, to_unix_ms, uuid7
from sync.db.engine import Transaction
from sync.db.schema import RECOVERY_STARTED, VERSION_ON_DISK
from sync.document import store
from sync.document.capture.exchange_events import draft_by_form, draft_operation_events
from sync.document.erased_lines_store import ErasedLines, StrippedDocument
from sync.document.erasure import erasure
from sync.document.markdown.edits import set_footer
from sync.document.markdown.entry_ids import entry_id_from_hex
from sync.document.markdown.model import MemoryDocument, MergePlan, Operation, Snapshot, Version
from sync.document.markdown.template import language_of
from sync.document.markdown.version_labels import later_label, next_label
from sync.document.merge.three_way import choose_base, plan_merge
from sync.document.versions.derived_lines import DerivedLines, apply_changes
from sync.document.versions.own_projection import DOCUMENT_OFFSET, OwnProjection, snapshot_or_template
from sync.log import store as log_store
from sync.log.local_state import REDACTION_RULES
from sync.log.log import EventLog
from sync.log.model import Door, EventDraft, Origin
from sync.redaction import Redactor
from sync.texts.language import LanguageChoice

T = TypeVar("T")
P = ParamSpec("P")


class DocumentView(msgspec.Struct, frozen=True):
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
        return self.document.sha256


class BaseChoice(msgspec.Struct, frozen=True):
    """The version that an edit is compared with. If it is None, no missing line is a removal.

    `loaded`: what the editor had loaded, also if the user's confirmation outranks it. `candidates`: oldest first.
    """

    version: Version | None
    loaded: Version | None
    candidates: Sequence[Version] = ()


class EditResult(msgspec.Struct, frozen=True):
    """What an edit amounts to: its operations, and the hash of the result."""

    operations: tuple[Operation, ...]
    sha256: str


class VersionWriter:
    """The newest version, the log that it follows, and the ring that new versions are appended to."""

    def __init__(
        self,
        events: EventLog,
        redactor: Redactor,
        clock: Clock,
        *,
        keep_versions: int,
        projection: OwnProjection,
        parked_folder: Path | None = None,
        language: LanguageChoice | None = None,
    ) -> None:
        """`parked_folder`: the profile's folder for documents that turned up in the wrong place."""
        self.language = language or LanguageChoice()
        self.log, self.clock, self.keep_versions, self.projection = events, clock, keep_versions, projection
        self.redactor, self.parked_folder = redactor.for_egress(), parked_folder
        self.erased_lines = ErasedLines(self.redactor.clean, clock)
        self.derived_lines = DerivedLines(events, self.redactor, clock)

    async def edit(
        self, work: Callable[Concatenate[Transaction, P], EditResult | None], *args: P.args, **kwargs: P.kwargs
    ) -> EditResult | None:
        """Run an edit in a transaction; wake those that wait for events if it recorded any."""
        edited = await self.in_transaction(work, *args, **kwargs)
        if edited is not None and edited.operations:
            self.log.changed.increment()
        return edited

    async def in_transaction(
        self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call `work` in a write transaction. If it fails, the projection forgets events that were not committed."""

        def attempt(connection: Transaction) -> T:
            try:
                return work(connection, *args, **kwargs)
            except BaseException:
                self.projection.history.reset()  # the database may run the work again
                raise

        try:
            return await self.log.database.write(attempt)
        except BaseException:
            self.projection.history.reset()
            raise

    def follow_log(self, connection: Transaction, *, used_label: str | None = None) -> Version | None:
        """The newest version, after new ones were made if the log has more. `used_label`: see `with_footer`."""
        current = self._follow_events(connection, used_label)
        if current is None or not self.derived_lines.is_behind(connection):
            return current
        changes = self.derived_lines.changes(connection, current.snapshot)
        if changes:
            self.record_own_events(connection, self.derived_lines.fact_drafts(connection, changes))
            changed = apply_changes(current.snapshot, changes)
            current = self.append_version(connection, self.with_footer(changed, current, used_label), "facts")
        if not erasure.hides_text(connection):
            self.derived_lines.checkpoint(connection)
        return current

    def _follow_events(self, connection: Transaction, used_label: str | None) -> Version | None:
        current = store.newest(connection, store.FILE)
        change = self.projection.pending_change(connection, current)
        if change is None:
            return current
        log_store.set_watermark(connection, DOCUMENT_OFFSET, change.position, self.clock)
        store.delete_unredacted(connection, change.position)
        is_recovering = log_store.watermark(connection, RECOVERY_STARTED) > 0
        if is_recovering and current is not None and change.snapshot.document == current.snapshot.document:
            return self.append_version(connection, change.snapshot, "log")  # other ids, the same text and label
        return self.append_version(connection, self.with_footer(change.snapshot, current, used_label), "log")

    def current_view(self, connection: Transaction, unread_file: MemoryDocument | None = None) -> DocumentView:
        """The newest version plus what the log has beyond it, minus what pending erasures name.

        `unread_file`: shown if there is no version yet.
        """
        current = store.newest(connection, store.FILE)
        if current is None and unread_file is not None:
            unnamed = tuple(f"line {number}" for number in range(len(unread_file.entries)))
            current = Version.of(0, Snapshot(unread_file, unnamed))
        change = self.projection.pending_change(connection, current)
        template = snapshot_or_template(current, self.clock, self.language)
        snapshot = self.derived_lines.preview(connection, template if change is None else change.snapshot)
        for pending in erasure.all_pending(connection, self.log.device_id):
            snapshot = pending.apply_to(snapshot)
        updated = store.newest_created_at(connection, store.FILE) if change is None else change.ts
        number = 0 if current is None else current.number
        return DocumentView(snapshot, exists=(change or current) is not None, updated_at=updated, version=number)

    def keep_copy(self, connection: Transaction, document: MemoryDocument) -> None:
        """Add `document` to the history, and the current version again after it."""
        current = self.follow_log(connection)
        if current is not None:
            ring = store.base_candidates(connection, store.FILE, document.sha256, document.label)
            stripped = self.strip_erased(connection, document, choose_base(document, ring))
            copy = plan_merge(current, current, stripped.document, self.new_id).observed
            self.append_version(connection, copy, "hand")
            self.append_version(connection, self.with_footer(current.snapshot, current), "restored")

    def strip_erased(
        self, connection: Transaction, document: MemoryDocument, base: Version | None, digest: str = ""
    ) -> StrippedDocument:
        """What an editor saved, without the lines that were erased since it loaded its `base`.

        `digest`: the hash by which the editor names the base. If nothing names it, it may have loaded any version.
        """
        if not self.erased_lines.has_any(connection):
            return StrippedDocument(document)
        shown = base or store.newest(connection, store.FILE)
        ring = store.base_candidates(connection, store.FILE, digest, document.label)
        candidates = [version for version in (base, *ring) if version is not None]
        named = (one for one in candidates if one.sha256 == digest or one.label == document.label is not None)
        number = next((one.number for one in named), None)
        return self.erased_lines.strip(connection, document, shown.snapshot if shown else None, number)

    def record_operations(
        self, connection: Transaction, planned: MergePlan, origin: Origin, door: Door, *, is_found: bool = False
    ) -> None:
        """Record the events of an edit made at `door`. An entry too large for an event stays in the file alone.

        `is_found`: the lines stood there after a loss, and no event names them.
        """
        language = self.language.of(language_of(planned.merged.document))
        drafts, _ = draft_operation_events(planned.operations, self.redactor, origin, language)
        drafts += self.derived_lines.answers(connection, planned.operations)
        if drafts:
            is_found = is_found or origin is Origin.USER  # else the file stood there at the first start
            authored = [draft_by_form(replace(draft, door=door), is_found=is_found) for draft in drafts]
            self.record_own_events(connection, authored)

    def record_own_events(self, connection: Transaction, drafts: Sequence[EventDraft]) -> None:
        """Record what the next version already contains. The caller has followed the log in this transaction."""
        self.log.append_in(connection, drafts)
        log_store.set_watermark(connection, DOCUMENT_OFFSET, log_store.newest_position(connection), self.clock)

    def append_version(
        self,
        connection: Transaction,
        snapshot: Snapshot,
        cause: str,
        *,
        digest: str | None = None,
        surface: str = store.FILE,
        created_at: str | None = None,
    ) -> Version:
        """Add a version to the ring of a surface. `digest`, `created_at`: see `store.append`."""
        is_first = surface == store.FILE and store.newest(connection, store.FILE) is None
        keep = store.RING_SIZE if surface == store.CLOUD else self.keep_versions
        version = store.append(
            connection, surface, snapshot, cause, self.clock, keep, digest=digest, created_at=created_at
        )
        if is_first:
            log_store.set_watermark(connection, REDACTION_RULES, self.redactor.rules_version, self.clock)
        return version

    def mark_on_disk(self, connection: Transaction, version: Version) -> None:
        """Note that the memory file has this version."""
        if log_store.watermark(connection, VERSION_ON_DISK) != version.number:
            log_store.set_watermark(connection, VERSION_ON_DISK, version.number, self.clock)

    def with_footer(self, snapshot: Snapshot, current: Version | None, used_label: str | None = None) -> Snapshot:
        """The next version with these entries, with a footer whose label no other version has.

        `used_label`: a label in the file; the version that had it may be lost, and no other gets its name.
        """
        last_label = later_label(current.label if current else None, used_label)
        return set_footer(snapshot, next_label(last_label, self.clock.now()))

    def new_id(self) -> str:
        """The id of a new entry."""
        return entry_id_from_hex(uuid7(to_unix_ms(self.clock.now()), self.clock.random_bytes).hex)
