"""This device's document in the cloud: what leaves for it, and what another program has put in its place.

Decisions
    The original app may live on beside this program and write the whole document into the device's row (sql/README.md).
    Its text is an edit of what left for that row last, so it is taken in as events like a hand edit; its lines are
    `imported`, because a program wrote them, and that under the account's name at best.
    What left is noted once the server has it. Sent and not noted, after a crash, does no harm: lines that are here and
    there are the same lines, only removals of the newest go unnoticed. Noted and never sent would read as its removals.
    A text that lost most of its lines is asked about (`memory/resolve`) and an unreadable one is told; both stay on the
    server as they are, ours is not sent, and everything else goes on.
    Only the holder of the sidecar role takes anything in; to any other process it stays foreign.
"""

from dataclasses import replace
from hashlib import sha256
from typing import Final

from sync.cloud.port import SnapshotRow
from sync.document.markdown.model import Snapshot
from sync.document.surfaces.memory_file import MemoryFile
from sync.redaction import Redactor

MAX_SNAPSHOT_BYTES: Final = 1024 * 1024  # the server takes no larger document


class CloudDocument:
    """The document as the exchange with the server sees it."""

    def __init__(self, document: MemoryFile, redactor: Redactor, *, may_import: bool) -> None:
        self._document = document
        document.versions.recovery.has_cloud = True
        self._redactor = redactor.for_egress()
        self._may_import = may_import
        self._last_row: SnapshotRow | None = None
        self._last_sha256 = ""
        self._unconfirmed_snapshot: Snapshot | None = None
        self._erased_through = 0

    async def snapshot(self) -> SnapshotRow | None:
        """As it may leave, redacted anew only when it has changed; None where there is none, or it is too large."""
        leaving = await self._document.cloud_history.outgoing(known_sha256=self._last_sha256)
        if leaving is None:
            return None
        if leaving.snapshot is not None:
            content = self._redactor.clean(leaving.snapshot.document.text.replace("\0", ""))
            data = content.encode()
            row = SnapshotRow(content, sha256(data).hexdigest(), leaving.through_replica_seq)
            self._last_row = row if len(data) <= MAX_SNAPSHOT_BYTES else None
            self._last_sha256, self._unconfirmed_snapshot = leaving.sha256, leaving.snapshot
        elif self._last_row is not None:  # the same text, perhaps under other numbers: a copied home is a new replica
            self._last_row = replace(self._last_row, through_replica_seq=leaving.through_replica_seq)
        self._erased_through = leaving.erased_through
        return self._last_row

    async def mark_stored(self) -> None:
        """The server has what `snapshot` gave last."""
        if self._unconfirmed_snapshot is not None:
            await self._document.cloud_history.mark_sent(self._unconfirmed_snapshot, self._erased_through)

    async def import_foreign(self, content: str) -> bool:
        """Whether the memory file has all of it now, so that ours may go over it."""
        return self._may_import and await self._document.ingest_cloud_document(content)
