"""The documents on the fake server, with the rules of `write_document` and `tend_document` in `sql/migrations`."""

from dataclasses import dataclass
from hashlib import sha256

from sync.cloud.port import FOREIGN_DOCUMENT, STALE_DOCUMENT, SnapshotRow, SyncRequest


@dataclass
class FakeDocument:
    """A document; `replica_id` is None if another program wrote it."""

    content: str
    content_sha256: str
    replica_id: str | None = None
    through_replica_seq: int = 0


def store_document(documents: dict[str, FakeDocument], request: SyncRequest) -> str | None:
    """Store the document of a request. Return the outcome; without a document, only FOREIGN is reported."""
    stored, sent = documents.get(request.device_id), request.snapshot
    if sent is None:
        return FOREIGN_DOCUMENT if stored is not None and stored.replica_id is None else None
    if stored is not None and (refusal := _refusal(stored, sent, request.replica_id)) is not None:
        return refusal
    documents[request.device_id] = FakeDocument(
        sent.content, sent.content_sha256, request.replica_id, sent.through_replica_seq
    )
    return "written"


def _refusal(stored: FakeDocument, sent: SnapshotRow, replica_id: str) -> str | None:
    """Why the stored text is not replaced; None if it is."""
    if stored.replica_id is None:
        return None if stored.content_sha256 in {sent.content_sha256, sent.base_sha256} else FOREIGN_DOCUMENT
    if stored.replica_id != replica_id or stored.through_replica_seq < sent.through_replica_seq:
        return None
    if stored.through_replica_seq > sent.through_replica_seq:
        return "kept"
    if stored.content_sha256 == sent.base_sha256:
        return None
    return "kept" if stored.content_sha256 == sent.content_sha256 else STALE_DOCUMENT


def overwrite_document(documents: dict[str, FakeDocument], device_id: str, content: str) -> None:
    """Write as another program. The same content changes nothing."""
    stored = documents.get(device_id)
    if stored is None or stored.content != content:
        documents[device_id] = FakeDocument(content, sha256(content.encode()).hexdigest())
