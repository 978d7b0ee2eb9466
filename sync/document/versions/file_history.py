"""Every known state of the document, and the transactions that make a new one.

Each method is one transaction: the events of an edit, the versions that contain it and the watermark they stand for
become durable together or not at all. Nothing here touches the file; `memory_file` does, with what it finds here.
A device's own document follows the events of the device. Nothing that was typed into it is ever applied to it again,
since its text in the log is redacted; what was typed before the memory was taken off the device, restored from a backup
or begun anew comes back (`returned`). A shared one (`sharing`) is made anew from all that the log knows.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from sync.db.engine import Transaction
from sync.db.schema import RECOVERY_STARTED, VERSION_ON_DISK
from sync.document import store
from sync.document.erasure import erasure
from sync.document.markdown.model import EntryRemoved, MemoryDocument, Version
from sync.document.markdown.parse import with_style_of
from sync.document.markdown.version_labels import label_sort_key
from sync.document.merge.three_way import choose_base, is_truncated, lacks_end, looks_like_data_loss, plan_merge
from sync.document.versions.recovering_writer import RecoveringWriter
from sync.document.versions.served_snapshots import ServedSnapshots
from sync.document.versions.writer import (
    DocumentDeps,
    DocumentView,
    EditResult,
    adapt_to_layout,
    apply_operations,
    snapshot_or_template,
)
from sync.errors import InvalidInput
from sync.log import store as log_store
from sync.log.event_types import DOCUMENT_RESTORED
from sync.log.model import EventDraft, Origin
from sync.system.digests import sha256

HASH_PREFIX: Final = re.compile(r"[0-9a-f]{7,64}")
SEE_HISTORY: Final = "`xiaobai-memory history` (`memory/history`) lists the versions and their hashes."


@dataclass(frozen=True, slots=True)
class FileState:
    """`newest`; the number of the version that the file had last; whether `follow` would find nothing to do."""

    newest: Version | None
    on_disk: int
    is_caught_up: bool

    @property
    def sha256(self) -> str | None:
        return self.newest.sha256 if self.newest else None


@dataclass(frozen=True, slots=True)
class PendingWork:
    """What `follow` finds to do: somebody wishes something gone, the log is ahead of the newest version.

    `has_recovered`: nothing more comes back that could name a held line.
    """

    has_erasures: bool
    is_behind: bool
    newest: Version | None
    has_recovered: bool


class FileHistory(RecoveringWriter):
    """The versions of one profile's document."""

    def __init__(self, deps: DocumentDeps) -> None:
        super().__init__(deps)
        self.served = ServedSnapshots()
        self._compacted_on: date | None = None  # the day on which nothing was left to fold
        self._unread_file: MemoryDocument | None = None  # the file while it is being taken in
        self.has_content = False  # whether a view shows more than the template beside a file that is still unread

    async def newest(self) -> Version | None:
        return await self._log.database.read(lambda connection: store.newest(connection, store.FILE))

    async def file_state(self, *, keep_days: int = -1) -> FileState:
        """How things stand; one look, for most of the time there is nothing to do."""
        cleaned = keep_days < 0 or self._compacted_on == self._clock.now().date()

        def looking(connection: Transaction) -> FileState:
            current = store.newest(connection, store.FILE)
            on_disk = log_store.watermark(connection, VERSION_ON_DISK)
            if current is None or current.number != on_disk or not cleaned:
                return FileState(current, on_disk, is_caught_up=False)
            busy = erasure.has_pending(connection) or self._is_behind(connection, current)
            return FileState(current, on_disk, is_caught_up=not (busy or self._has_recovered(connection)))

        standing = await self._log.database.read(looking)
        self.has_content = standing.newest is not None
        return standing

    async def view(self) -> DocumentView:
        """The newest version with what the log has besides. What was shown can be the base of a `save`.

        Without a version it is the file that is being taken in, whose lines have no ids yet.
        """
        first = self._unread_file
        view = await self._log.database.read(lambda connection: self._current_view(connection, first))
        if view.version or first is None:
            self.served.add(view.snapshot, view.version)
        return view

    async def history(self, limit: int) -> list[store.HistoryRow]:
        """The newest versions, newest first."""
        return await self._log.database.read(lambda connection: store.history(connection, store.FILE, limit))

    async def looks_lost(self, document: MemoryDocument | None) -> bool:
        """Whether this file (None: there is none) looks lost rather than edited."""

        def looking(connection: Transaction) -> bool:
            current = store.newest(connection, store.FILE)
            if current is None or document is None:
                return current is not None and not current.snapshot.document.is_blank
            written = _possible_bases(connection, document_sha256, document)
            ring = _loadable_versions(connection, written, document_sha256, document)
            unknown = not ring or _is_older_than_all(document, ring)
            return not unknown and _looks_lost(current, document, choose_base(document, ring), written)

        document_sha256 = "" if document is None else sha256(document.data)
        return await self._log.database.read(looking)

    async def mark_on_disk(self, version: Version) -> None:
        await self._log.database.write(lambda connection: self._mark_on_disk(connection, version))

    async def catch_up(self, *, keep_days: int = -1) -> Version | None:
        """Put what the log has since recorded into a new version, and carry out what it asks to forget; the newest.

        Days older than `keep_days` are folded, a few at a time, which is looked for once a day; -1 keeps them all.
        """
        due = await self._log.database.read(self._pending_work)
        if due.has_erasures:
            while await self._log.database.read(erasure.has_pending):
                if (asked := await self._in_transaction(self._apply_next_erasure)) is not None:
                    self.served.apply_erasure(asked.apply_to)
            await self._log.database.purge(wait_for_readers=False)
            due = await self._log.database.read(self._pending_work)
        newest = await self._in_transaction(self._follow_log) if due.is_behind else due.newest
        if due.has_recovered:
            newest = await self._in_transaction(self._end_recovery)
            self._log.changed.increment()
        today = self._clock.now().date()
        if keep_days >= 0 and today != self._compacted_on:
            if await self._in_transaction(lambda connection: self._compact_days(connection, today, keep_days)):
                self._log.changed.increment()
            else:
                self._compacted_on = today
            return await self.newest()
        return newest

    def _pending_work(self, connection: Transaction) -> PendingWork:
        current = store.newest(connection, store.FILE)
        behind, recovered = self._is_behind(connection, current), self._has_recovered(connection)
        return PendingWork(erasure.has_pending(connection), behind, current, recovered)

    async def ingest_file(self, digest: str, document: MemoryDocument, *, confirmed: bool = False) -> EditResult | None:
        """What a hand did to the file. None where a person has to say first what was meant; `meant` says it."""
        self._unread_file, self.has_content = document, True
        try:
            return await self._edit(
                lambda connection: self._record_manual_edit(connection, digest, document, confirmed=confirmed)
            )
        finally:
            self._unread_file = None

    async def ingest_app_cache(self, digest: str, document: MemoryDocument, *, file_first: bool) -> EditResult | None:
        """What the app wrote into its own cache: a hand edit of what the cache held before."""
        return await self._edit(
            lambda connection: self._record_app_cache(connection, digest, document, file_first=file_first)
        )

    async def save(self, document: MemoryDocument, base_sha256: str | None, *, confirmed: bool) -> EditResult:
        """The app's settings page: an edit of what `load` showed under that hash. InvalidInput where it looks lost."""
        edited = await self._edit(lambda connection: self._record_save(connection, document, base_sha256, confirmed))
        if edited is None:
            raise InvalidInput(
                "most of the memory is missing in this document",
                field="document",
                hint="If that is meant, call again with allowLoss: true; the versions before it are kept.",
            )
        return edited

    async def keep_as_version(self, document: MemoryDocument, *, only_for_erasure: bool = False) -> bool:
        """Keep what stands in the file as a version, because the newest one is about to be written over it.

        `to_forget`: only where somebody wishes something gone, which goes from this version too then. Whether it was.
        """
        if only_for_erasure and not await self._log.database.read(erasure.has_pending_request):
            return False
        await self._in_transaction(lambda connection: self._record_kept_copy(connection, document))
        return True

    async def restore(self, digest: str) -> EditResult:
        """Bring an older version back, as new events. `digest`: its hash, or a beginning of it that is its alone.

        Raises InvalidInput if it is no such beginning, or names no version or several.
        """
        wanted = digest.lower()
        if HASH_PREFIX.fullmatch(wanted) is None:
            message = "the hash of a version is 64 hexadecimal digits, of which the first 7 are enough"
            raise InvalidInput(message, field="sha256", hint=SEE_HISTORY)
        edited = await self._edit(lambda connection: self._record_restore(connection, wanted))
        assert edited is not None
        return edited

    # --- transactions ----------------------------------------------------------------------------------------

    def _record_manual_edit(
        self, connection: Transaction, digest: str, document: MemoryDocument, *, confirmed: bool
    ) -> EditResult | None:
        if _version_was_lost(connection, digest, document) and not confirmed:
            return self._adopt_file(connection, digest, document)
        known = store.newest(connection, store.FILE)
        current = self._follow_log(connection, used_label=document.label)
        written = _possible_bases(connection, digest, document)
        ring = _loadable_versions(connection, written, digest, document)
        unknown = not ring or _is_older_than_all(document, ring)
        base = current if confirmed else None if unknown else choose_base(document, ring)
        if base is not None and base.sha256 == digest:
            return EditResult((), digest)  # an older version of ours: nothing was typed
        if current and not unknown and not confirmed and _looks_lost(current, document, base, written):
            return None
        loaded = None if unknown else choose_base(document, ring)
        stripped = self._strip_erased(connection, document, loaded, digest)
        planned = plan_merge(base, current, stripped.document, self._new_id)
        origin = Origin.IMPORTED if known is None else Origin.USER
        self._record_operations(connection, planned, base, origin)
        seen = self._append_version(connection, planned.observed, "hand", digest=digest)
        self._erased_lines.mark_still_shown(connection, stripped, seen)
        self._mark_on_disk(connection, seen)
        if planned.must_write or self._shared_projection is not None or stripped.erased:
            finished = self._with_footer(connection, planned.merged, current, document.label)
            if finished.document != planned.observed.document or stripped.erased:
                seen = self._append_version(connection, finished, "merged")
        return EditResult(planned.operations, seen.sha256)

    def _record_save(
        self, connection: Transaction, document: MemoryDocument, base_sha256: str | None, confirmed: bool
    ) -> EditResult | None:
        current = self._follow_log(connection)
        base = self._base_of_save(connection, document, base_sha256, confirmed=confirmed)
        if current is not None and base is not None and not confirmed and looks_like_data_loss(current, document, base):
            return None
        if (known := base or current) is not None:
            document = with_style_of(document, known.snapshot.document)
        stripped = self._strip_erased(connection, document, base, base_sha256 or "")
        planned = plan_merge(base, current, stripped.document, self._new_id)
        self._record_operations(connection, planned, base, Origin.USER)
        version = self._append_version(connection, self._with_footer(connection, planned.merged, current), "saved")
        self._erased_lines.mark_still_shown(
            connection, stripped, version
        )  # an app that does not load again still shows them
        return EditResult(planned.operations, version.sha256)

    def _record_restore(self, connection: Transaction, prefix: str) -> EditResult:
        digest, *others = store.hashes_with_prefix(connection, store.FILE, prefix) or [""]
        if others:
            raise InvalidInput("several versions have a hash that begins so", field="sha256", hint="Give more digits.")
        wanted = store.find(connection, store.FILE, digest)
        if wanted is None:
            raise InvalidInput("no version has this hash", field="sha256", hint=SEE_HISTORY)
        current = self._follow_log(connection)
        planned = plan_merge(current, current, wanted.snapshot.document, self._new_id)
        told = self._redactor.clean_payload({"sha256": digest, "operations": len(planned.operations)})
        self._log.append_in(connection, [EventDraft(type=DOCUMENT_RESTORED, payload=told, origin=Origin.USER)])
        self._record_operations(connection, planned, current, Origin.USER)
        version = self._append_version(connection, self._with_footer(connection, planned.merged, current), "restored")
        return EditResult(planned.operations, version.sha256)

    def _record_app_cache(
        self, connection: Transaction, digest: str, document: MemoryDocument, *, file_first: bool
    ) -> EditResult | None:
        """A cache that has lost its lines deletes nothing; but what is new in it was said, and is the next base."""
        known = store.newest(connection, store.APP_CACHE)
        if known is not None and known.sha256 == digest:
            return None
        shrunk = known is not None and looks_like_data_loss(known, document)
        if known is not None and is_truncated(known.snapshot.document, document):
            return None  # its last line may be half a line
        if known is None and file_first and store.newest(connection, store.FILE) is None:
            return None  # the file comes first; the cache is compared with it by the next call
        current = self._follow_log(connection)
        ring = store.base_candidates(connection, store.APP_CACHE, digest, document.label)
        base = store.find(connection, store.APP_CACHE, digest) or choose_base(document, ring)
        stripped = self._strip_erased(connection, document, base, digest)
        planned = adapt_to_layout(plan_merge(base, current, stripped.document, self._new_id), base, current)
        if shrunk:
            said = tuple(one for one in planned.operations if not isinstance(one, EntryRemoved))
            planned = replace(planned, operations=said)
        if shrunk and not planned.operations:
            return None
        self._record_operations(connection, planned, None, Origin.IMPORTED if known is None else Origin.USER)
        if planned.operations:
            merged = apply_operations(snapshot_or_template(current, self._clock), planned.operations)
            self._append_version(connection, self._with_footer(connection, merged, current), "app_cache")
        cached = (connection, store.APP_CACHE, planned.observed, "hand", self._clock, self._keep_versions)
        self._erased_lines.mark_still_shown(connection, stripped, store.append(*cached, digest=digest))
        return EditResult(planned.operations, digest)

    # --- parts of them ---------------------------------------------------------------------------------------

    def _base_of_save(
        self, connection: Transaction, document: MemoryDocument, base_sha256: str | None, *, confirmed: bool
    ) -> Version | None:
        """What the app's text was made from. None where its hash names nothing we know: then nothing is a deletion.

        Without a hash, a text that shares no line with its likely base is no edit of that: it was loaded as a template.
        """
        if base_sha256 is not None:
            return self.served.find(base_sha256) or store.find(connection, store.FILE, base_sha256)
        ring = store.base_candidates(connection, store.FILE, "", document.label)
        base = choose_base(document, ring)
        if base is None or confirmed:
            return base
        known = {entry.text for entry in base.snapshot.entries}
        strange = known.isdisjoint(entry.text for entry in document.entries)
        return None if strange or _is_older_than_all(document, ring) else base


def _looks_lost(current: Version, document: MemoryDocument, base: Version | None, written: Sequence[Version]) -> bool:
    """Whether a file read from the disk looks lost, or not yet written to its end."""
    cut = lacks_end((base or current).snapshot.document, document)
    return cut or looks_like_data_loss(current, document, base, recently_written=written)


def _possible_bases(connection: Transaction, digest: str, document: MemoryDocument) -> Sequence[Version]:
    """The versions that the file may have been, oldest first.

    One without a label may be the beginning of any that was on disk: somebody may have been asked about it for long.
    """
    found = store.base_candidates(connection, store.FILE, digest, document.label)
    if document.label is not None or any(version.sha256 == digest for version in found):
        return found
    on_disk = log_store.watermark(connection, VERSION_ON_DISK)
    begun = store.with_byte_prefix(connection, store.FILE, document.data, through=on_disk)
    return found if begun is None or begun.number >= found[0].number else [begun, *found]


def _loadable_versions(
    connection: Transaction, written: Sequence[Version], digest: str, document: MemoryDocument
) -> list[Version]:
    """The versions an editor can have loaded: what never was on disk is nobody's base, unless the file names it.

    One that was written as the program died, or as the disk failed, is not known to have been there. No edit is judged
    by it, but a file that is cut off may still be its beginning.
    """
    on_disk = log_store.watermark(connection, VERSION_ON_DISK)
    return [
        version
        for version in written
        if version.number <= on_disk or version.label == document.label or version.sha256 == digest
    ]


def _is_older_than_all(document: MemoryDocument, ring: Sequence[Version]) -> bool:
    """Whether the file was loaded from a version so old that we no longer have it: then nothing in it is a deletion."""
    loaded = label_sort_key(document.label)
    oldest = label_sort_key(ring[0].label) if ring else None
    known = any(version.label == document.label for version in ring)
    return loaded is not None and oldest is not None and not known and loaded < oldest


def _version_was_lost(connection: Transaction, digest: str, document: MemoryDocument) -> bool:
    """Whether damage took the version that a file was made from: then nobody knows its lines."""
    ring = store.base_candidates(connection, store.FILE, digest, document.label)
    named = any(version.sha256 == digest or version.label == document.label for version in ring)
    return not named and log_store.watermark(connection, RECOVERY_STARTED) > 0
