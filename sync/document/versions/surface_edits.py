"""The surfaces where a document is edited: memory file, app's settings page, app's cache, and the row in the cloud.

Each is a `SurfaceEdit`, which `ingest_edit` asks for what differs between them.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.db.engine import Transaction
from sync.db.schema import VERSION_ON_DISK
from sync.document import store
from sync.document.erased_lines_store import StrippedDocument
from sync.document.markdown.edits import edit_entry, insert_entry, remove_entry
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
)
from sync.document.markdown.parse import with_style_of
from sync.document.markdown.version_labels import parse_time_label
from sync.document.merge.three_way import choose_base, infer_base, lacks_end, looks_like_data_loss
from sync.document.versions.own_projection import snapshot_or_template
from sync.document.versions.served_snapshots import ServedSnapshots
from sync.document.versions.writer import BaseChoice, VersionWriter
from sync.log import store as log_store
from sync.log.model import Door, Origin

AT_END: Final = ""  # the entry id behind which a line is inserted at the end of its section


class SurfaceEdit(msgspec.Struct, frozen=True):
    """An edited document, and what differs between the surfaces.

    `digest`: the hash by which the edit may name its base. `confirmed`: the user said that it is meant as it is.
    """

    writer: VersionWriter
    document: MemoryDocument
    digest: str = ""
    origin: Origin = Origin.USER
    confirmed: bool = False
    door: Door = Door.HAND

    @property
    def used_label(self) -> str | None:
        """A label that no version made from this edit may get."""
        return None

    @abstractmethod
    def choose_base(self, connection: Transaction, current: Version | None) -> BaseChoice:
        """The version that the editor had loaded."""

    def is_known(self, base: BaseChoice) -> bool:  # noqa: ARG002 - for the surfaces that can tell
        """Whether the document is a version already, so that there is nothing to ingest."""
        return False

    def looks_lost(self, base: BaseChoice, current: Version | None) -> bool:
        """Whether the document looks lost or cut off rather than edited. A blank one does, whatever its base."""
        if self.confirmed or current is None or (base.version is None and not self.document.is_blank):
            return False
        return looks_like_data_loss(current, self.document, base.version)

    def restyled(self, base: Version | None) -> MemoryDocument:  # noqa: ARG002 - likewise
        """The document with the line endings and the encoding of its base."""
        return self.document

    def adapt(self, planned: MergePlan, base: Version | None, current: Version | None) -> MergePlan | None:  # noqa: ARG002
        """The plan as this surface may change the document; None: not at all."""
        return planned

    @abstractmethod
    def append_versions(
        self, connection: Transaction, planned: MergePlan, current: Version | None, stripped: StrippedDocument
    ) -> tuple[Version, str]:
        """Append what the edit leads to: the version that the editor shows now, and the hash of the result."""


class FileEdit(SurfaceEdit, frozen=True):
    """What an editor saved into the memory file."""

    @property
    def used_label(self) -> str | None:
        return self.document.label

    def choose_base(self, connection: Transaction, current: Version | None) -> BaseChoice:
        candidates = _possible_bases(connection, self.digest, self.document)
        ring = _loadable_versions(connection, candidates, self.digest, self.document)
        is_unknown = not ring or _is_older_than_all(self.document, ring)
        loaded = None if is_unknown else choose_base(self.document, ring)
        return BaseChoice(current if self.confirmed else loaded, loaded, candidates)

    def is_known(self, base: BaseChoice) -> bool:
        return base.version is not None and base.version.sha256 == self.digest  # an editor put an older version back

    def looks_lost(self, base: BaseChoice, current: Version | None) -> bool:
        if self.confirmed or current is None or base.version is None:
            return False
        return lacks_end(base.version.snapshot.document, self.document) or looks_like_data_loss(
            current, self.document, base.version, recently_written=base.candidates
        )

    def append_versions(
        self, connection: Transaction, planned: MergePlan, current: Version | None, stripped: StrippedDocument
    ) -> tuple[Version, str]:
        """The file as it was saved, and the merged document if it differs."""
        writer = self.writer
        shown = newest = writer.append_version(connection, planned.observed, "hand", digest=self.digest)
        writer.mark_on_disk(connection, shown)
        if planned.must_write or stripped.erased:
            finished = writer.with_footer(planned.merged, current, self.used_label)
            if finished.document != planned.observed.document or stripped.erased:
                newest = writer.append_version(connection, finished, "merged")
        return shown, newest.sha256


class AppPageEdit(SurfaceEdit, frozen=True, kw_only=True):
    """A document that the app's settings page saves, as an edit of what `load` showed it under `base_sha256`."""

    base_sha256: str | None
    served: ServedSnapshots
    door: Door = Door.SAVE

    def choose_base(self, connection: Transaction, current: Version | None) -> BaseChoice:  # noqa: ARG002 - the base class's
        """The version with the given hash. If no version has it, no missing line is a removal.

        Without a hash, a text that shares no line with its likely base was loaded as a template, not edited.
        """
        if self.base_sha256 is not None:
            named = self.served.find(self.base_sha256) or store.find(connection, store.FILE, self.base_sha256)
            return BaseChoice(named, named)
        ring = store.base_candidates(connection, store.FILE, "", self.document.label)
        base = choose_base(self.document, ring)
        if base is not None and not self.confirmed:
            known = {entry.text for entry in base.snapshot.entries}
            is_template = known.isdisjoint(entry.text for entry in self.document.entries)
            base = None if is_template or _is_older_than_all(self.document, ring) else base
        return BaseChoice(base, base)

    def restyled(self, base: Version | None) -> MemoryDocument:
        return self.document if base is None else with_style_of(self.document, base.snapshot.document)

    def append_versions(
        self,
        connection: Transaction,
        planned: MergePlan,
        current: Version | None,
        stripped: StrippedDocument,  # noqa: ARG002 - the base class's
    ) -> tuple[Version, str]:
        finished = self.writer.with_footer(planned.merged, current)
        version = self.writer.append_version(connection, finished, "saved")
        return version, version.sha256


class AppCacheEdit(SurfaceEdit, frozen=True, kw_only=True):
    """What the app wrote into its cache. A cache that lost its lines removes nothing, but what is new in it counts."""

    last_seen: Version | None  # the cache as it was ingested last

    def choose_base(self, connection: Transaction, current: Version | None) -> BaseChoice:  # noqa: ARG002 - the base class's
        ring = store.base_candidates(connection, store.APP_CACHE, self.digest, self.document.label)
        base = store.find(connection, store.APP_CACHE, self.digest) or choose_base(self.document, ring)
        return BaseChoice(base, base)

    def looks_lost(self, base: BaseChoice, current: Version | None) -> bool:  # noqa: ARG002 - the base class's
        return False

    def adapt(self, planned: MergePlan, base: Version | None, current: Version | None) -> MergePlan | None:
        planned = _adapt_to_layout(planned, base, current)
        if self.last_seen is None or not looks_like_data_loss(self.last_seen, self.document):
            return planned
        kept = tuple(operation for operation in planned.operations if not isinstance(operation, EntryRemoved))
        return replace(planned, operations=kept) if kept else None

    def append_versions(
        self,
        connection: Transaction,
        planned: MergePlan,
        current: Version | None,
        stripped: StrippedDocument,  # noqa: ARG002 - the base class's
    ) -> tuple[Version, str]:
        _append_applied(self.writer, connection, planned, current, "app_cache")
        seen = self.writer.append_version(
            connection, planned.observed, "hand", digest=self.digest, surface=store.APP_CACHE
        )
        return seen, self.digest


class CloudEdit(SurfaceEdit, frozen=True):
    """What another program wrote over our document in the cloud."""

    door: Door = Door.CLOUD

    def choose_base(self, connection: Transaction, current: Version | None) -> BaseChoice:  # noqa: ARG002 - the base class's
        base = sent_base(connection, self.document)
        return BaseChoice(base, base)

    def adapt(self, planned: MergePlan, base: Version | None, current: Version | None) -> MergePlan:
        return _adapt_to_layout(planned, base, current)

    def append_versions(
        self,
        connection: Transaction,
        planned: MergePlan,
        current: Version | None,
        stripped: StrippedDocument,  # noqa: ARG002 - the base class's
    ) -> tuple[Version, str]:
        _append_applied(self.writer, connection, planned, current, "cloud")
        sent = self.writer.append_version(connection, planned.observed, "hand", surface=store.CLOUD)
        return sent, self.document.sha256


def sent_base(connection: Transaction, document: MemoryDocument) -> Version | None:
    """The sent version that another program had loaded; None if none was sent.

    If several have its label (a clock set back, a crash before one was noted), the lines decide.
    """
    ring = store.base_candidates(connection, store.CLOUD, "", None)
    named = [version for version in ring if version.label == document.label is not None]
    return infer_base(document, named or ring, only_distinct_lines=True) if ring else None


def _append_applied(
    writer: VersionWriter, connection: Transaction, planned: MergePlan, current: Version | None, cause: str
) -> None:
    """Append a version of the document with the operations of another surface, if there are any."""
    if planned.operations:
        applied = _apply_operations(snapshot_or_template(current, writer.clock, writer.language), planned.operations)
        writer.append_version(connection, writer.with_footer(applied, current), cause)


def _possible_bases(connection: Transaction, digest: str, document: MemoryDocument) -> Sequence[Version]:
    """The versions that the file may have been, oldest first.

    A file without a label may be the beginning of any version that was on disk, however long ago: the user may not
    have answered yet what was meant.
    """
    candidates = store.base_candidates(connection, store.FILE, digest, document.label)
    if document.label is not None or any(version.sha256 == digest for version in candidates):
        return candidates
    on_disk = log_store.watermark(connection, VERSION_ON_DISK)
    begun = store.with_byte_prefix(connection, store.FILE, document.data, through=on_disk)
    return candidates if begun is None or begun.number >= candidates[0].number else [begun, *candidates]


def _loadable_versions(
    connection: Transaction, candidates: Sequence[Version], digest: str, document: MemoryDocument
) -> list[Version]:
    """The versions that an editor can have loaded: those that were on disk, and the one that the file names.

    A version that was being written when the process or the disk failed may not have been on disk: it is no base, but a
    file that is cut off may still be its beginning.
    """
    on_disk = log_store.watermark(connection, VERSION_ON_DISK)
    return [
        version
        for version in candidates
        if version.number <= on_disk or version.label == document.label or version.sha256 == digest
    ]


def _is_older_than_all(document: MemoryDocument, ring: Sequence[Version]) -> bool:
    """Whether the file was loaded from a version that is no longer kept."""
    loaded = parse_time_label(document.label)
    oldest = parse_time_label(ring[0].label) if ring else None
    is_kept = any(version.label == document.label for version in ring)
    return loaded is not None and oldest is not None and not is_kept and loaded < oldest


def _adapt_to_layout(planned: MergePlan, base: Version | None, current: Version | None) -> MergePlan:
    """A plan for another surface: a line moves here only if the edit moved it there."""
    base_sections = {entry.entry_id: entry.section for entry in base.snapshot.entries} if base else {}
    observed_sections = {entry.entry_id: entry.section for entry in planned.observed.entries}
    current_entries = {entry.entry_id: entry for entry in current.snapshot.entries} if current else {}

    def adapt(operation: Operation) -> Operation | None:
        entry = current_entries.get(operation.entry_id)
        if not isinstance(operation, EntryEdited) or entry is None:
            return operation
        section = observed_sections.get(operation.entry_id)
        is_moved = section is not None and base_sections.get(operation.entry_id, section) != section
        edit = operation if is_moved else replace(operation, section=entry.section)
        return edit if (edit.text, edit.section) != (entry.text, entry.section) else None

    adapted = (adapt(operation) for operation in planned.operations)
    return replace(planned, operations=tuple(operation for operation in adapted if operation is not None))


def _apply_operations(snapshot: Snapshot, operations: Sequence[Operation]) -> Snapshot:
    """The snapshot with these operations. An entry that was removed here and edited there comes back."""
    for operation in operations:
        exists = operation.entry_id in snapshot.ids
        match operation:
            case EntryAdded() if not exists:
                entry = Entry(operation.entry_id, operation.text, operation.section)
                snapshot = insert_entry(snapshot, entry, operation.after)
            case EntryEdited() if exists:
                snapshot = _apply_edit(snapshot, operation)
            case EntryEdited():
                snapshot = insert_entry(snapshot, Entry(operation.entry_id, operation.text, operation.section), None)
            case EntryRemoved() if exists:
                snapshot = remove_entry(snapshot, operation.entry_id)
            case _:
                continue  # added or removed on both sides
    return snapshot


def _apply_edit(snapshot: Snapshot, edit: EntryEdited) -> Snapshot:
    """The entry with its new text; if its section changed, as the last entry there."""
    (entry,) = (entry for entry in snapshot.entries if entry.entry_id == edit.entry_id)
    if entry.section == edit.section:
        return edit_entry(snapshot, edit.entry_id, edit.text)
    return insert_entry(
        remove_entry(snapshot, edit.entry_id), replace(entry, text=edit.text, section=edit.section), AT_END
    )
