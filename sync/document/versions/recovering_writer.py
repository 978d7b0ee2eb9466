"""The end of a recovery: when nothing more comes back that could name a held line, it is recorded (`recovery`)."""

from sync.db.engine import Transaction
from sync.db.schema import DOCUMENT_LOG_OFFSET, RECOVERY_STARTED, VERSION_ON_DISK
from sync.document import store
from sync.document.markdown.model import MemoryDocument, MergePlan, Version
from sync.document.merge.three_way import plan_merge
from sync.document.shared.projection import SHARED_OFFSET
from sync.document.shared.unlogged_entries import unlogged_additions
from sync.document.versions.writer import DocumentDeps, EditResult, VersionWriter
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.model import CLOUD, Origin


class RecoveringWriter(VersionWriter):
    """A ledger whose versions may have been lost."""

    def __init__(self, deps: DocumentDeps) -> None:
        super().__init__(deps)
        self.has_cloud = False  # from which events may come back

    def _has_recovered(self, connection: Transaction) -> bool:
        """Whether nothing comes back any more after a loss: the server was read to its end, if there is one."""
        if not log_store.watermark(connection, RECOVERY_STARTED):
            return False
        cursor = outbox_store.read_cursor(connection, CLOUD)
        is_level = cursor.epoch is not None and cursor.seq >= cursor.head
        return is_level or not self.has_cloud or not store.is_owned(connection)

    def _end_recovery(self, connection: Transaction) -> Version | None:
        """Record what is still held."""
        current = self._follow_log(connection)
        log_store.set_watermark(connection, RECOVERY_STARTED, 0, self._clock)
        if current is None:
            return None
        if self._shared_projection is not None:
            operations = self._shared_projection.unlogged_additions(connection, current.snapshot)
        else:
            with self._own_history.caught_up(connection) as fold:
                operations = unlogged_additions(current.snapshot, fold)
        planned = MergePlan(operations, current.snapshot, (), current.snapshot)
        self._record_operations(connection, planned, None, Origin.IMPORTED)
        return self._follow_log(connection) if self._shared_projection is not None else current

    def _adopt_file(self, connection: Transaction, digest: str, document: MemoryDocument) -> EditResult:
        """Hold the lines of the file until the log names them, from its first event on."""
        stripped = self._strip_erased(connection, document, None, digest)
        found = plan_merge(None, None, stripped.document, self._new_id).observed
        seen = self._append_version(connection, found, "hand", digest=digest)
        self._erased_lines.mark_still_shown(connection, stripped, seen)
        self._mark_on_disk(connection, seen)
        for mark in (DOCUMENT_LOG_OFFSET, SHARED_OFFSET):
            log_store.set_watermark(connection, mark, 0, self._clock)
        return EditResult((), (self._follow_log(connection, used_label=document.label) or seen).sha256)

    def _mark_on_disk(self, connection: Transaction, version: Version) -> None:
        if log_store.watermark(connection, VERSION_ON_DISK) != version.number:
            log_store.set_watermark(connection, VERSION_ON_DISK, version.number, self._clock)
