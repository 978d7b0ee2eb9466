"""The end of a recovery: when nothing more comes back that could name a held line, it is recorded (`recovery`)."""

from sqlalchemy import Connection

from sync.db.tables import FOLLOWED, ON_DISK, RECOVERY
from sync.document import store
from sync.document.ledger import Edited, Footing, Ledger
from sync.document.model import Document, Plan, Version
from sync.document.plan import plan
from sync.document.recovery import additions
from sync.document.sharing import SHARED
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.model import CLOUD, Origin


class RecoveringLedger(Ledger):
    """A ledger whose versions may have been lost."""

    def __init__(self, footing: Footing) -> None:
        super().__init__(footing)
        self.has_cloud = False  # from which events may come back

    def _has_recovered(self, connection: Connection) -> bool:
        """Whether nothing comes back any more after a loss: the server was read to its end, if there is one."""
        if not log_store.watermark(connection, RECOVERY):
            return False
        cursor = outbox_store.cursor(connection, CLOUD)
        is_level = cursor.epoch is not None and cursor.seq >= cursor.head
        return is_level or not self.has_cloud or not store.is_owned(connection)

    def _end_recovery(self, connection: Connection) -> Version | None:
        """Record what is still held."""
        current = self._followed(connection)
        log_store.set_watermark(connection, RECOVERY, 0, self._clock)
        if current is None:
            return None
        if self._sharing is not None:
            operations = self._sharing.additions(connection, current.snapshot)
        else:
            with self._past.folded(connection) as fold:
                operations = additions(current.snapshot, fold)
        planned = Plan(operations, current.snapshot, (), current.snapshot)
        self._record(connection, planned, None, Origin.IMPORTED)
        return self._followed(connection) if self._sharing is not None else current

    def _record_found(self, connection: Connection, digest: str, document: Document) -> Edited:
        """Hold the lines of the file until the log names them, from its first event on."""
        stripped = self._stripped(connection, document, None, digest)
        found = plan(None, None, stripped.document, self._new_id).observed
        seen = self._append(connection, found, "hand", digest=digest)
        self._erased.mark(connection, stripped, seen)
        self._seen_on_disk(connection, seen)
        for mark in (FOLLOWED, SHARED):
            log_store.set_watermark(connection, mark, 0, self._clock)
        return Edited((), (self._followed(connection, beyond=document.label) or seen).sha256)

    def _seen_on_disk(self, connection: Connection, version: Version) -> None:
        if log_store.watermark(connection, ON_DISK) != version.number:
            log_store.set_watermark(connection, ON_DISK, version.number, self._clock)
