"""Result values as JSON: one shape for the command line, JSON-RPC and MCP, pinned by golden files in the tests.

Objects of our own have camelCase names; events keep the snake_case envelope of seed 002. Nothing here decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sync.log.envelope import to_json

if TYPE_CHECKING:  # only named here; importing them would delay the first answer of a starting sidecar
    from collections.abc import Iterable, Sequence

    from sync.cloud.account import AccountState
    from sync.cloud.replicator import CloudStatus, Round
    from sync.document.answers import Loaded, Updated
    from sync.document.digest import DeviceDigest
    from sync.errors import XiaobaiError
    from sync.log.model import Event, Page, Recorded, Refusal

CONTRACT_VERSION: Final = 1  # raised when a name here changes its meaning

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Status:
    """What `sync/status` is made of."""

    account: AccountState
    device_id: str
    device_name: str
    replica_id: str
    cloud: CloudStatus
    pending: int
    quarantined: int
    document_path: str
    document_sha256: str
    warnings: tuple[str, ...]
    watching: bool
    sidecar: bool
    version: str


def status(value: Status) -> Json:
    return {
        "account": account(value.account),
        "device": {"deviceId": value.device_id, "name": value.device_name, "replicaId": value.replica_id},
        "cloud": cloud(value.cloud),
        "pending": value.pending,
        "quarantined": value.quarantined,
        "document": {
            "path": value.document_path,
            "sha256": value.document_sha256,
            "warnings": list(value.warnings),
        },
        "lan": {"peers": []},
        "watchers": {"file": value.watching},
        "sidecar": value.sidecar,
        "version": value.version,
    }


def loaded(value: Loaded) -> Json:
    return {
        "content": value.content,
        "document": value.document,
        "documentSha256": value.document_sha256,
        "digest": value.digest,
        "source": value.source,
        "stale": value.stale,
        "pending": value.pending,
        "throughSeq": value.through_seq,
        "updatedAt": value.updated_at,
        "devices": [device(found) for found in value.devices],
        "omitted": [{"section": item.section, "count": item.count} for item in value.omitted],
    }


def updated(value: Updated) -> Json:
    answer: Json = {"eventId": value.event_id, "recorded": value.recorded, "pending": value.pending}
    return answer if value.reason is None else {**answer, "reason": value.reason}


def device(value: DeviceDigest) -> Json:
    return {
        "deviceId": value.device_id,
        "name": value.name,
        "entries": [{"date": line.date.isoformat(), "text": line.text} for line in value.lines],
    }


def account(value: AccountState) -> Json:
    return {"state": value.state, "userId": value.user_id, "label": value.label}


def cloud(value: CloudStatus) -> Json:
    return {
        "state": str(value.state),
        "lastSyncAt": value.last_sync_at,
        "lastError": None if value.last_error is None else failure(value.last_error),
        "head": value.cursor.head,
        "cursor": value.cursor.seq,
    }


def failure(value: XiaobaiError) -> Json:
    return {"kind": value.kind, "message": value.message, "hint": value.hint, "retryable": value.retryable}


def round_done(value: Round) -> Json:
    return {"pushed": value.pushed, "pulled": value.pulled, "quarantined": value.quarantined}


def events(page: Page) -> Json:
    return {"events": [to_json(event) for event in page.events], "nextOffset": page.next_offset}


def recorded(values: Sequence[Recorded]) -> Json:
    """`eventIds` in the order given; `duplicates` are the ids that were known before."""
    return {
        "eventIds": [value.event.event_id for value in values],
        "duplicates": [value.event.event_id for value in values if value.duplicate],
        "events": [event(value.event) for value in values],
        "nextOffset": max((value.event.position for value in values), default=0),
    }


def event(value: Event) -> Json:
    return to_json(value)


def refusals(values: Iterable[Refusal]) -> list[Json]:
    return [
        {"eventId": value.event_id, "code": value.code, "message": value.message, "noticedAt": value.noticed_at}
        for value in values
    ]
