"""Upload this device's document, and import what another program has written in its place.

Nothing waits for the upload: it may be a hundred times as large as the exchange that changed it. So it is sent when the
document has not changed for a while and the last upload is some time ago; at once if an erasure is applied to it, if
another text must be replaced, and if the caller asks for it (`at_once`).

A snapshot names the text that it replaces, because a document may change without a new event of its own (an erased
line). Foreign text is imported as events before the snapshot replaces it; text that cannot be
imported stays on the server.
"""

import logging
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from sync.clock import Clock
from sync.cloud.port import FOREIGN_DOCUMENT, STALE_DOCUMENT, SnapshotRow, StoredDocument

QUIET_SECONDS: Final = 180.0  # without a change, before the document is sent
UPLOAD_INTERVAL: Final = 900.0  # seconds between two uploads

log = logging.getLogger(__name__)


class DocumentVersion(NamedTuple):
    """Which text the document has here, and whether an erasure is applied to it that the server has not seen."""

    sha256: str
    has_unsent_erasure: bool


class DocumentSource(Protocol):
    """This device's document, as the upload needs it."""

    async def version(self) -> DocumentVersion | None:
        """The document as it is now; None if there is none. Cheaper than a snapshot."""
        ...

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

    def __init__(self, source: DocumentSource, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._stored_hash: str | None = None  # of the snapshot that the server has stored, or refused for good
        self.base_hash: str | None = None  # of the text on the server that the next snapshot may replace
        self.at_once = False  # send the document in this round if it has changed
        self._must_replace = False  # another text that was imported
        self._settled: str | None = None  # the version that needs no upload
        self._offered = self._seen = ""  # the version of the last snapshot, and the last one that was looked at
        self._changed_at = 0.0  # monotonic seconds; when `_seen` was first seen
        self._not_before = 0.0  # monotonic seconds

    async def is_unsent(self) -> bool:
        """Whether the document has changed since the server got it."""
        version = await self._source.version()
        return version is not None and version.sha256 != self._settled

    async def next_snapshot(self) -> SnapshotRow | None:
        """The document to send; None if the server has it, or if it is not time yet."""
        version = await self._source.version()
        if version is None or (version.sha256 == self._settled and not self._must_replace):
            return None
        is_due = self._note_version(version.sha256)
        if not (is_due or self.at_once or self._must_replace or version.has_unsent_erasure):
            return None
        self._offered = version.sha256
        snapshot = await self._source.snapshot()
        if snapshot is None or snapshot.content_sha256 == self._stored_hash:
            self._settled = self._offered
            return None
        return replace(snapshot, base_sha256=self.base_hash)

    def _note_version(self, sha256: str) -> bool:
        """Whether the document has been quiet for long enough."""
        now = self._clock.monotonic()
        if sha256 != self._seen:
            self._seen, self._changed_at = sha256, now
        return now >= self._not_before and now - self._changed_at >= QUIET_SECONDS

    async def on_answer(self, snapshot: SnapshotRow | None, outcome: str | None) -> None:
        """Note that the server accepted a snapshot, unless `outcome` says that another text is in its place."""
        if snapshot is not None and not is_displaced(outcome):
            self._stored_hash = self.base_hash = snapshot.content_sha256
            self._settled, self._must_replace = self._offered, False
            self._not_before = self._clock.monotonic() + UPLOAD_INTERVAL
            await self._source.mark_stored()

    def on_refusal(self, snapshot: SnapshotRow, code: str) -> None:
        """Do not send this snapshot again: the server refuses it for good."""
        self._stored_hash, self._settled = snapshot.content_sha256, self._offered
        log.warning("the server refuses the document (%s); it is sent again when it has changed", code)

    async def import_stored(self, stored: StoredDocument | None) -> bool:
        """Import the text that is in the place of our document. Return whether the document must be sent again."""
        is_foreign = stored is not None and stored.replica_id is None
        if stored is None or (is_foreign and not await self._source.import_foreign(stored.content)):
            return False
        if stored.content_sha256 == self.base_hash:
            return False
        self.base_hash, self._stored_hash, self._must_replace = stored.content_sha256, None, True
        return True


def is_displaced(outcome: str | None) -> bool:
    """Whether the server keeps another text in the place of our document."""
    return outcome in {FOREIGN_DOCUMENT, STALE_DOCUMENT}
