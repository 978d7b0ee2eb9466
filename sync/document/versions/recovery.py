"""Recovery of a document whose versions were lost.

The lines of the file are held until the log names them. When nothing more can come back that names them, they are
recorded as imported; those in the form of an exchange by the author that their form names.
"""

from sync.db.engine import Transaction
from sync.db.schema import RECOVERY_STARTED
from sync.document import store
from sync.document.markdown.model import MemoryDocument, MergePlan, Version
from sync.document.merge.three_way import plan_merge
from sync.document.versions.own_projection import DOCUMENT_OFFSET
from sync.document.versions.writer import EditResult, VersionWriter
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.model import CLOUD, Door, Origin


class DocumentRecovery:
    """The recovery of one document. Everything runs inside a transaction of the caller."""

    def __init__(self, writer: VersionWriter) -> None:
        self._writer = writer
        self.has_cloud = False  # from which events may come back

    def is_complete(self, connection: Transaction) -> bool:
        """Whether a recovery is under way and nothing more comes back: the server, if any, was read to its end."""
        if not log_store.watermark(connection, RECOVERY_STARTED):
            return False
        cursor = outbox_store.read_cursor(connection, CLOUD)
        is_caught_up = cursor.epoch is not None and cursor.seq >= cursor.head
        return is_caught_up or not self.has_cloud or not store.is_owned(connection)

    def finish(self, connection: Transaction) -> Version | None:
        """Record the lines that no event names."""
        current = self._writer.follow_log(connection)
        log_store.set_watermark(connection, RECOVERY_STARTED, 0, self._writer.clock)
        if current is None:
            return None
        operations = self._writer.projection.unlogged_additions(connection, current.snapshot)
        planned = MergePlan(operations, current.snapshot, (), current.snapshot)
        self._writer.record_operations(connection, planned, Origin.IMPORTED, Door.HAND, is_found=True)
        return current

    def adopt_file(self, connection: Transaction, digest: str, document: MemoryDocument) -> EditResult:
        """Hold the lines of the file, and follow the log from its first event."""
        stripped = self._writer.strip_erased(connection, document, None, digest)
        observed = plan_merge(None, None, stripped.document, self._writer.new_id).observed
        version = self._writer.append_version(connection, observed, "hand", digest=digest)
        self._writer.erased_lines.mark_still_shown(connection, stripped, version)
        self._writer.mark_on_disk(connection, version)
        log_store.set_watermark(connection, DOCUMENT_OFFSET, 0, self._writer.clock)
        newest = self._writer.follow_log(connection, used_label=document.label)
        return EditResult((), (newest or version).sha256)


def version_was_lost(connection: Transaction, digest: str, document: MemoryDocument) -> bool:
    """Whether damage took the version that the file was made from, so that its lines have no known ids."""
    ring = store.base_candidates(connection, store.FILE, digest, document.label)
    named = any(version.sha256 == digest or version.label == document.label for version in ring)
    return not named and log_store.watermark(connection, RECOVERY_STARTED) > 0
