"""The devices' documents on the twin server, by the rules of `sql/migrations` (`write_document`, `tend_document`)."""

from dataclasses import dataclass
from hashlib import sha256

from sync.cloud.port import FOREIGN, STALE, SnapshotRow, SyncRequest


@dataclass
class Document:
    """`replica_id` is None where another program wrote it."""

    content: str
    content_sha256: str
    replica_id: str | None = None
    through: int = 0


def write(documents: dict[str, Document], request: SyncRequest) -> str | None:
    """What became of the document; without one, only that another program's text stands there."""
    held, sent = documents.get(request.device_id), request.snapshot
    if sent is None:
        return FOREIGN if held is not None and held.replica_id is None else None
    if held is not None and (refusal := _refusal(held, sent, request.replica_id)) is not None:
        return refusal
    documents[request.device_id] = Document(
        sent.content, sent.content_sha256, request.replica_id, sent.through_replica_seq
    )
    return "written"


def _refusal(held: Document, sent: SnapshotRow, replica_id: str) -> str | None:
    """Why the text that stands there stays."""
    if held.replica_id is None:
        return None if held.content_sha256 in {sent.content_sha256, sent.base_sha256} else FOREIGN
    if held.replica_id != replica_id or held.through < sent.through_replica_seq:
        return None
    if held.through > sent.through_replica_seq:
        return "kept"
    if held.content_sha256 == sent.base_sha256:
        return None
    return "kept" if held.content_sha256 == sent.content_sha256 else STALE


def overwrite(documents: dict[str, Document], device_id: str, content: str) -> None:
    """Another program's write of the same content changes nothing."""
    held = documents.get(device_id)
    if held is None or held.content != content:
        documents[device_id] = Document(content, sha256(content.encode()).hexdigest())
