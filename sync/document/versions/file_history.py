"""The versions of the memory file, and the transactions that make new ones.

Each method is one transaction: the events of an edit, the versions that contain it and the log offset become durable
together or not at all. Nothing here touches the file; `sync.document.surfaces.memory_file` does.
"""

import re
from datetime import date
from itertools import groupby
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.db.engine import Transaction
from sync.db.schema import VERSION_ON_DISK
from sync.document import store
from sync.document.capture.day_compaction import has_days_to_compact, source_door
from sync.document.erasure import erasure
from sync.document.markdown.model import MemoryDocument, MergePlan, Snapshot, Version
from sync.document.markdown.template import language_of
from sync.document.merge.three_way import operations_between, plan_merge
from sync.document.read.line_authors import other_authors_then
from sync.document.read.results import VersionJson
from sync.document.versions.compaction import compact_old_days
from sync.document.versions.erasure_step import apply_next_erasure
from sync.document.versions.ingest_edit import ingest_edit
from sync.document.versions.recovery import DocumentRecovery, version_was_lost
from sync.document.versions.served_snapshots import ServedSnapshots
from sync.document.versions.surface_edits import AppPageEdit, FileEdit
from sync.document.versions.use_lines import UseLines
from sync.document.versions.writer import DocumentView, EditResult, VersionWriter
from sync.errors import InvalidInput
from sync.log import store as log_store
from sync.log.authorship import FORMER_ORIGIN, Author, Authorship
from sync.log.event_types import DOCUMENT_RESTORED, ENTRY_ADDED, ENTRY_EDITED, ENTRY_MOVED
from sync.log.model import Door, EventDraft, Origin
from sync.system.digests import sha256

HASH_PREFIX: Final = re.compile(r"[0-9a-f]{7,64}")
SEE_HISTORY: Final = "`xiaobai-memory history` (`memory/history`) lists the versions and their hashes."


class FileState(msgspec.Struct, frozen=True):
    """The newest version, the number of the version that the file had last, and what is left to do.

    `is_behind`: the log has more than the version. `has_recovered`: a recovery can be finished. `has_daily_work`: old
    days may be left to compact, or uses to count.
    """

    newest: Version | None
    on_disk: int
    is_behind: bool
    has_erasures: bool
    has_recovered: bool
    has_daily_work: bool

    @property
    def sha256(self) -> str | None:
        return self.newest.sha256 if self.newest else None

    @property
    def is_caught_up(self) -> bool:
        is_written = self.newest is not None and self.newest.number == self.on_disk
        return is_written and not (self.is_behind or self.has_erasures or self.has_recovered or self.has_daily_work)


class FileHistory:
    """The versions of one profile's document."""

    def __init__(self, writer: VersionWriter) -> None:
        self._writer, self._log = writer, writer.log
        self.recovery = DocumentRecovery(writer)
        self.served = ServedSnapshots()
        self._uses = UseLines(writer)
        self._checked_on: date | None = None  # the day on which nothing was left to compact or to count
        self._unread_file: MemoryDocument | None = None  # the file while it is being ingested
        self.has_content = False  # whether a view shows more than the template, though the file is still unread

    async def newest(self) -> Version | None:
        return await self._log.database.read(store.newest, store.FILE)

    async def has_version(self, digest: str) -> bool:
        """Whether bytes with this hash are a version of this document."""
        return await self._log.database.read(store.find, store.FILE, digest) is not None

    async def file_state(self, *, keep_days: int = -1) -> FileState:
        """One cheap read, because most of the time there is nothing to do."""
        today = self._writer.clock.now().date()
        state = await self._log.database.read(self._read_state, keep_days, today)
        if keep_days >= 0 and state.is_caught_up:
            self._checked_on = today
        self.has_content = state.newest is not None
        if state.newest is not None:
            self._writer.language.note(state.newest.number, language_of(state.newest.snapshot.document))
        return state

    def _read_state(self, connection: Transaction, keep_days: int = -1, today: date = date.max) -> FileState:
        current = store.newest(connection, store.FILE)
        return FileState(
            current,
            log_store.watermark(connection, VERSION_ON_DISK),
            is_behind=self._writer.projection.is_behind(connection)
            or (current is not None and self._writer.derived_lines.is_behind(connection)),
            has_erasures=erasure.has_unread(connection),
            has_recovered=self.recovery.is_complete(connection),
            has_daily_work=self._is_due(keep_days, today)
            and (self._has_old_days(current, keep_days, today) or self._uses.is_behind(connection)),
        )

    def _is_due(self, keep_days: int, today: date) -> bool:
        """Whether the work of the day is not known to be done; `keep_days` -1: not asked for."""
        return keep_days >= 0 and self._checked_on != today

    def _has_old_days(self, current: Version | None, keep_days: int, today: date) -> bool:
        return current is not None and has_days_to_compact(current.snapshot, today, keep_days)

    async def view(self) -> DocumentView:
        """The newest version plus what the log has beyond it. `save` accepts what was shown as its base.

        Without a version it is the file that is being ingested, whose lines have no ids yet.
        """
        unread = self._unread_file
        view = await self._log.database.read(self._writer.current_view, unread)
        if view.version or unread is None:
            self.served.add(view.snapshot, view.version)
        return view

    async def history(self, limit: int) -> list[VersionJson]:
        """The newest versions, newest first."""
        return await self._log.database.read(store.history, store.FILE, limit)

    async def looks_lost(self, document: MemoryDocument | None) -> bool:
        """Whether this file (None: there is none) looks lost rather than edited."""

        def check(connection: Transaction) -> bool:
            current = store.newest(connection, store.FILE)
            if current is None or document is None:
                return current is not None and not current.snapshot.document.is_blank
            edit = FileEdit(self._writer, document, sha256(document.data))
            return edit.looks_lost(edit.choose_base(connection, current), current)

        return await self._log.database.read(check)

    async def mark_on_disk(self, version: Version) -> None:
        await self._log.database.write(self._writer.mark_on_disk, version)

    async def catch_up(self, *, keep_days: int = -1) -> Version | None:
        """Apply pending erasures, put what the log has recorded since into a new version, and return the newest.

        Once a day, days older than `keep_days` are compacted, a few at a time; -1 keeps them all.
        """
        writer = self._writer
        state = await self._log.database.read(self._read_state)
        if state.has_erasures:
            while await self._log.database.read(erasure.has_unread):
                if (applied := await writer.in_transaction(apply_next_erasure, writer)) is not None:
                    self.served.apply_erasure(applied.apply_to)
            await self._log.database.purge(wait_for_readers=False)
            state = await self._log.database.read(self._read_state)
        newest = await writer.in_transaction(writer.follow_log) if state.is_behind else state.newest
        if state.has_recovered:
            newest = await writer.in_transaction(self.recovery.finish)
            self._log.changed.increment()
        if await self._log.database.read(self._uses.changes):
            newest = await writer.in_transaction(self._uses.record)
            self._log.changed.increment()
        today = writer.clock.now().date()
        if self._is_due(keep_days, today):
            if not self._has_old_days(newest, keep_days, today):
                self._checked_on = today
                return newest
            if await writer.in_transaction(compact_old_days, writer, today, keep_days):
                self._log.changed.increment()
            else:
                self._checked_on = today
            return await self.newest()
        return newest

    async def ingest_file(self, digest: str, document: MemoryDocument, *, confirmed: bool = False) -> EditResult | None:
        """Ingest what an editor saved. None if it looks lost and the user has not `confirmed` it."""

        def ingest(connection: Transaction) -> EditResult | None:
            if not confirmed and version_was_lost(connection, digest, document):
                return self.recovery.adopt_file(connection, digest, document)
            origin = Origin.IMPORTED if store.newest(connection, store.FILE) is None else Origin.USER
            edit = FileEdit(self._writer, document, digest, origin, confirmed)
            return ingest_edit(connection, edit)

        self._unread_file, self.has_content = document, True
        try:
            return await self._writer.edit(ingest)
        finally:
            self._unread_file = None

    async def save(self, document: MemoryDocument, base_sha256: str | None, *, confirmed: bool) -> EditResult:
        """Save the app's settings page, as an edit of what `load` showed under that hash.

        Raises InvalidInput if the document looks lost.
        """
        edit = AppPageEdit(
            self._writer, document, base_sha256 or "", confirmed=confirmed, base_sha256=base_sha256, served=self.served
        )
        edited = await self._writer.edit(ingest_edit, edit)
        if edited is None:
            raise InvalidInput(
                "most of the memory is missing in this document",
                field="document",
                hint="If that is meant, call again with allowLoss: true; the versions before it are kept.",
            )
        return edited

    async def keep_as_version(self, document: MemoryDocument, *, only_for_erasure: bool = False) -> bool:
        """Keep the content of the file as a version before the newest one overwrites it; whether it was kept.

        `only_for_erasure`: only if an erasure request is pending, which then applies to this version too.
        """
        if only_for_erasure and not await self._log.database.read(erasure.has_pending_request):
            return False
        await self._writer.in_transaction(self._writer.keep_copy, document)
        return True

    async def restore(self, digest: str) -> EditResult:
        """Restore an older version, as new events. `digest`: its hash, or the beginning of its hash.

        Raises InvalidInput if that names no version, or several.
        """
        prefix = digest.lower()
        if HASH_PREFIX.fullmatch(prefix) is None:
            message = "the hash of a version is 64 hexadecimal digits, of which the first 7 are enough"
            raise InvalidInput(message, field="sha256", hint=SEE_HISTORY)
        edited = await self._writer.edit(self._record_restore, prefix)
        assert edited is not None
        return edited

    def _record_restore(self, connection: Transaction, prefix: str) -> EditResult:
        writer = self._writer
        digest, *others = store.hashes_with_prefix(connection, store.FILE, prefix) or [""]
        if others:
            raise InvalidInput("several versions have a hash that begins so", field="sha256", hint="Give more digits.")
        restored = store.find(connection, store.FILE, digest)
        if restored is None:
            raise InvalidInput("no version has this hash", field="sha256", hint=SEE_HISTORY)
        current = writer.follow_log(connection)
        planned = plan_merge(current, current, restored.snapshot.document, writer.new_id)
        payload = writer.redactor.clean_payload({"sha256": digest, "operations": len(planned.operations)})
        self._log.append_in(connection, [EventDraft(type=DOCUMENT_RESTORED, payload=payload)])
        known = current.snapshot if current else Snapshot(MemoryDocument())
        planned, authors = self._with_former_authors(connection, planned, restored.snapshot, known)
        for author, operations in groupby(planned.operations, lambda one: authors.get(one.entry_id)):
            origin, door = (Origin.USER, Door.COMMAND) if author is None else _recorded_as(author)
            writer.record_operations(connection, replace(planned, operations=tuple(operations)), origin, door)
        version = writer.append_version(connection, writer.with_footer(planned.merged, current), "restored")
        return EditResult(planned.operations, version.sha256)

    def _with_former_authors(
        self, connection: Transaction, planned: MergePlan, restored: Snapshot, known: Snapshot
    ) -> tuple[MergePlan, dict[str, Authorship]]:
        """Restore what others wrote as new lines of theirs. Returns the plan, and the author of each such line."""
        writer = self._writer
        changed = {one.entry_id for one in planned.operations}
        former = [pair for pair in zip(planned.merged.ids, restored.ids, strict=True) if pair[0] in changed]
        exchanges = {old_id[:-2] for _, old_id in former if old_id.endswith((".q", ".a"))}
        types = (ENTRY_ADDED, ENTRY_EDITED, ENTRY_MOVED) if former else ()
        events = [*log_store.read_by_types(connection, types, after=0)]
        events += [event for name in exchanges if (event := log_store.find_event(connection, name)) is not None]
        then = other_authors_then(events, restored, self._log.own_device_ids, writer.redactor.clean)
        new_ids = {entry_id: writer.new_id() for entry_id, old_id in former if old_id in then}
        ids = tuple(new_ids.get(entry_id, entry_id) for entry_id in planned.merged.ids)
        merged = Snapshot(planned.merged.document, ids)
        planned = replace(planned, operations=operations_between(known, known, merged), merged=merged)
        return planned, {new_ids[entry_id]: then[old_id] for entry_id, old_id in former if old_id in then}


def _recorded_as(author: Authorship) -> tuple[Origin, Door]:
    """Return the origin and door of a restored line that the user did not write here."""
    door = Door.COMMAND if author.author is Author.MODEL else source_door(author) or Door.IMPORT
    return FORMER_ORIGIN[author.author], door
