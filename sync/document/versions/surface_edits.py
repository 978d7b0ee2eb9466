"""The edits of this device's surfaces: the memory file, the app's settings page and the app's cache."""

from collections.abc import Sequence
from dataclasses import replace

from sync.db.engine import Transaction
from sync.db.schema import VERSION_ON_DISK
from sync.document import store
from sync.document.erased_lines_store import StrippedDocument
from sync.document.markdown.model import EntryRemoved, MemoryDocument, MergePlan, Version
from sync.document.markdown.parse import with_style_of
from sync.document.markdown.version_labels import label_sort_key
from sync.document.merge.three_way import choose_base, lacks_end, looks_like_data_loss
from sync.document.versions.ingest_edit import SurfaceEdit
from sync.document.versions.operations import adapt_to_layout, apply_operations
from sync.document.versions.own_projection import snapshot_or_template
from sync.document.versions.recovery import mark_on_disk
from sync.document.versions.served_snapshots import ServedSnapshots
from sync.document.versions.writer import BaseChoice, BaseReason, VersionWriter
from sync.log import store as log_store
from sync.log.model import Origin


class FileEdit(SurfaceEdit):
    """What an editor saved into the memory file."""

    def __init__(
        self,
        writer: VersionWriter,
        document: MemoryDocument,
        *,
        digest: str,
        origin: Origin = Origin.USER,
        confirmed: bool = False,
    ) -> None:
        super().__init__(writer, document, digest=digest, origin=origin)
        self._confirmed, self.used_label = confirmed, document.label

    def choose_base(self, connection: Transaction, current: Version | None) -> BaseChoice:
        candidates = _possible_bases(connection, self.digest, self.document)
        ring = _loadable_versions(connection, candidates, self.digest, self.document)
        is_unknown = not ring or _is_older_than_all(self.document, ring)
        loaded = None if is_unknown else choose_base(self.document, ring)
        if self._confirmed:
            return BaseChoice(current, BaseReason.CONFIRMED, loaded, candidates)
        if is_unknown:
            return BaseChoice(None, BaseReason.TOO_OLD if ring else BaseReason.UNKNOWN, None, candidates)
        return BaseChoice(loaded, reason_for(loaded, self.document, self.digest), loaded, candidates)

    def is_known(self, base: BaseChoice) -> bool:
        return base.version is not None and base.version.sha256 == self.digest  # an editor put an older version back

    def looks_lost(self, base: BaseChoice, current: Version | None) -> bool:
        if current is None or base.version is None or self._confirmed:
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
        mark_on_disk(writer, connection, shown)
        if planned.must_write or writer.projection.is_shared or stripped.erased:
            finished = writer.with_footer(connection, planned.merged, current, self.used_label)
            if finished.document != planned.observed.document or stripped.erased:
                newest = writer.append_version(connection, finished, "merged")
        return shown, newest.sha256


class AppPageEdit(SurfaceEdit):
    """A document that the app's settings page saves, as an edit of what `load` showed it."""

    def __init__(
        self,
        writer: VersionWriter,
        document: MemoryDocument,
        *,
        base_sha256: str | None,
        served: ServedSnapshots,
        confirmed: bool,
    ) -> None:
        super().__init__(writer, document, digest=base_sha256 or "")
        self._base_sha256, self._served, self._confirmed = base_sha256, served, confirmed

    def choose_base(self, connection: Transaction, current: Version | None) -> BaseChoice:  # noqa: ARG002 - the base class's
        """The version with the given hash. If no version has it, no missing line is a removal.

        Without a hash, a text that shares no line with its likely base was loaded as a template, not edited.
        """
        if self._base_sha256 is not None:
            named = self._served.find(self._base_sha256) or store.find(connection, store.FILE, self._base_sha256)
            return BaseChoice(named, BaseReason.NAMED if named else BaseReason.UNKNOWN, named)
        ring = store.base_candidates(connection, store.FILE, "", self.document.label)
        base = choose_base(self.document, ring)
        if base is None:
            return BaseChoice(None, BaseReason.UNKNOWN, None)
        if not self._confirmed:
            known = {entry.text for entry in base.snapshot.entries}
            if known.isdisjoint(entry.text for entry in self.document.entries):
                return BaseChoice(None, BaseReason.UNKNOWN, None)
            if _is_older_than_all(self.document, ring):
                return BaseChoice(None, BaseReason.TOO_OLD, None)
        return BaseChoice(base, reason_for(base, self.document, ""), base)

    def looks_lost(self, base: BaseChoice, current: Version | None) -> bool:
        if current is None or base.version is None or self._confirmed:
            return False
        return looks_like_data_loss(current, self.document, base.version)

    def restyled(self, base: Version | None) -> MemoryDocument:
        return self.document if base is None else with_style_of(self.document, base.snapshot.document)

    def append_versions(
        self,
        connection: Transaction,
        planned: MergePlan,
        current: Version | None,
        stripped: StrippedDocument,  # noqa: ARG002 - the base class's
    ) -> tuple[Version, str]:
        finished = self.writer.with_footer(connection, planned.merged, current)
        version = self.writer.append_version(connection, finished, "saved")
        return version, version.sha256


class AppCacheEdit(SurfaceEdit):
    """What the app wrote into its cache. A cache that lost its lines removes nothing, but what is new in it counts."""

    def __init__(
        self, writer: VersionWriter, document: MemoryDocument, *, digest: str, last_seen: Version | None
    ) -> None:
        """`last_seen`: the cache as it was ingested last."""
        origin = Origin.IMPORTED if last_seen is None else Origin.USER
        super().__init__(writer, document, digest=digest, origin=origin)
        self._is_shrunk = last_seen is not None and looks_like_data_loss(last_seen, document)

    def choose_base(self, connection: Transaction, current: Version | None) -> BaseChoice:  # noqa: ARG002 - the base class's
        ring = store.base_candidates(connection, store.APP_CACHE, self.digest, self.document.label)
        base = store.find(connection, store.APP_CACHE, self.digest) or choose_base(self.document, ring)
        return BaseChoice(base, reason_for(base, self.document, self.digest), base)

    def adapt(self, planned: MergePlan, base: Version | None, current: Version | None) -> MergePlan | None:
        planned = adapt_to_layout(planned, base, current)
        if not self._is_shrunk:
            return planned
        kept = tuple(operation for operation in planned.operations if not isinstance(operation, EntryRemoved))
        return replace(planned, operations=kept) if kept else None

    def base_of_events(self, base: BaseChoice) -> None:
        """The cache's layout is not the document's: nothing was moved."""

    def append_versions(
        self,
        connection: Transaction,
        planned: MergePlan,
        current: Version | None,
        stripped: StrippedDocument,  # noqa: ARG002
    ) -> tuple[Version, str]:
        append_applied(self.writer, connection, planned, current, "app_cache")
        ring = (connection, store.APP_CACHE, planned.observed, "hand", self.writer.clock, self.writer.keep_versions)
        return store.append(*ring, digest=self.digest), self.digest


def append_applied(
    writer: VersionWriter, connection: Transaction, planned: MergePlan, current: Version | None, cause: str
) -> None:
    """Append a version of the document with the operations of another surface, if there are any."""
    if planned.operations:
        applied = apply_operations(snapshot_or_template(current, writer.clock), planned.operations)
        writer.append_version(connection, writer.with_footer(connection, applied, current), cause)


def reason_for(base: Version | None, document: MemoryDocument, digest: str) -> BaseReason:
    """Why `choose_base` chose this version."""
    if base is None:
        return BaseReason.UNKNOWN
    is_named = base.sha256 == digest if document.label is None else base.label == document.label
    return BaseReason.NAMED if is_named else BaseReason.INFERRED


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
    loaded = label_sort_key(document.label)
    oldest = label_sort_key(ring[0].label) if ring else None
    is_kept = any(version.label == document.label for version in ring)
    return loaded is not None and oldest is not None and not is_kept and loaded < oldest
