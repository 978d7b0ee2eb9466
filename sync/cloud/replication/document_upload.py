"""Upload this device's document, and import what another program has written in its place.

A snapshot names the text that it replaces, because a document may change without a new event of its own (an
erased line). Foreign text is imported as events before the snapshot replaces it; text that cannot be
imported stays on the server.
"""

import logging
from typing import Protocol

from msgspec.structs import replace

from sync.cloud.port import FOREIGN_DOCUMENT, STALE_DOCUMENT, SnapshotRow, StoredDocument

log = logging.getLogger(__name__)


class DocumentSource(Protocol):
    """This device's document, as the upload needs it."""

    async def snapshot(self) -> SnapshotRow | None:
        """The redacted document; None if there is none or it is too large."""
        ...

    async def mark_stored(self) -> None:
        """The server stores the last snapshot: another program's text there is an edit of it."""
        ...

    async def import_foreign(self, content: str) -> bool:
        """Import another program's text. Return whether our document, which now contains it, may replace it."""
        ...


class DocumentUpload:
    """What the server stores of the document, and what the next snapshot may replace."""

    def __init__(self, source: DocumentSource) -> None:
        self._source = source
        self._stored_hash: str | None = None  # of the snapshot that the server has stored, or refused for good
        self.base_hash: str | None = None  # of the text on the server that the next snapshot may replace

    async def next_snapshot(self) -> SnapshotRow | None:
        """The document to send; None if the server has it."""
        snapshot = await self._source.snapshot()
        if snapshot is None or snapshot.content_sha256 == self._stored_hash:
            return None
        return replace(snapshot, base_sha256=self.base_hash)

    async def on_answer(self, snapshot: SnapshotRow | None, outcome: str | None) -> None:
        """Note that the server accepted a snapshot, unless `outcome` says that another text is in its place."""
        if snapshot is not None and not is_displaced(outcome):
            self._stored_hash = self.base_hash = snapshot.content_sha256
            await self._source.mark_stored()

    def on_refusal(self, snapshot: SnapshotRow, code: str) -> None:
        """Do not send this snapshot again: the server refuses it for good."""
        self._stored_hash = snapshot.content_sha256
        log.warning("the server refuses the document (%s); it is sent again when it has changed", code)

    async def import_stored(self, stored: StoredDocument | None) -> bool:
        """Import the text that is in the place of our document. Return whether the document must be sent again."""
        is_foreign = stored is not None and stored.replica_id is None
        if stored is None or (is_foreign and not await self._source.import_foreign(stored.content)):
            return False
        if stored.content_sha256 == self.base_hash:
            return False
        self.base_hash, self._stored_hash = stored.content_sha256, None
        return True


def is_displaced(outcome: str | None) -> bool:
    """Whether the server keeps another text in the place of our document."""
    return outcome in {FOREIGN_DOCUMENT, STALE_DOCUMENT}
