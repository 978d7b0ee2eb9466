"""This device's document in the cloud: send it, and ingest what another program wrote over it.

The original app may still write the whole document into the device's row. Its text is an edit of what was sent last;
its lines are `imported`. A text that looks lost waits for `memory/resolve`; an unreadable one is reported. Both stay on
the server, and ours is not sent. Why a sent version is noted only once the server has it:
docs/decisions/009-sent-versions.md.
"""

import asyncio
from hashlib import sha256
from typing import Final

from msgspec.structs import replace

from sync.cloud.port import SnapshotRow
from sync.cloud.replication.document_upload import DocumentVersion
from sync.document.markdown.model import Snapshot
from sync.document.surfaces.memory_file import MemoryFile
from sync.redaction import Redactor

MAX_SNAPSHOT_BYTES: Final = 1024 * 1024  # the server takes no larger document


class CloudDocument:
    """The document as the sync with the server sees it."""

    def __init__(self, document: MemoryFile, redactor: Redactor, *, may_import: bool) -> None:
        self._document = document
        document.versions.recovery.has_cloud = True
        self._redactor = redactor.for_egress()
        self._may_import = may_import
        self._last_row: SnapshotRow | None = None
        self._last_sha256 = ""
        self._unconfirmed_snapshot: Snapshot | None = None
        self._erased_through = self._erased_sent = 0  # positions up to which erasures are applied, here and there

    async def version(self) -> DocumentVersion | None:
        """The document as it is now; None if there is none."""
        state = await self._document.cloud_history.state()
        return None if state is None else DocumentVersion(state[0], state[1] != self._erased_sent)

    async def snapshot(self) -> SnapshotRow | None:
        """The document as it is sent, redacted; None if there is none, or if it is too large."""
        leaving = await self._document.cloud_history.outgoing(known_sha256=self._last_sha256)
        if leaving is None:
            return None
        if leaving.snapshot is not None:
            row, size = await asyncio.to_thread(self._redacted_row, leaving.snapshot, leaving.through_replica_seq)
            self._last_row = row if size <= MAX_SNAPSHOT_BYTES else None
            self._last_sha256, self._unconfirmed_snapshot = leaving.sha256, leaving.snapshot
        elif self._last_row is not None:  # the same text; a copied data directory is a new replica with other numbers
            self._last_row = replace(self._last_row, through_replica_seq=leaving.through_replica_seq)
        self._erased_through = leaving.erased_through
        return self._last_row

    def _redacted_row(self, snapshot: Snapshot, through_replica_seq: int) -> tuple[SnapshotRow, int]:
        """The row of a document, and its size in bytes. For a worker thread: redaction takes 50 ms for 400 kB."""
        content = self._redactor.clean(snapshot.document.text.replace("\0", ""))
        data = content.encode()
        return SnapshotRow(content, sha256(data).hexdigest(), through_replica_seq), len(data)

    async def mark_stored(self) -> None:
        """Note that the server has what `snapshot` returned last."""
        self._erased_sent = self._erased_through
        if self._unconfirmed_snapshot is not None:
            await self._document.cloud_history.mark_sent(self._unconfirmed_snapshot, self._erased_through)

    async def import_foreign(self, content: str) -> bool:
        """Ingest another program's text; whether ours may replace it now. Only the sidecar ingests."""
        return self._may_import and await self._document.ingest_cloud_document(content)
