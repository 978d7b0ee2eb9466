"""Answers about the state of the program, the account and synchronisation, and how they become JSON."""

from typing import TYPE_CHECKING, Literal, TypedDict

import msgspec

from sync.cloud.auth_port import RESEND_SECONDS, AccountJson
from sync.log.devices.changes_json import ChangesJson

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from sync.cloud.contact import Contact
    from sync.cloud.replication.pull_progress import PullProgress
    from sync.cloud.status import CloudStatus
    from sync.errors import XiaobaiError
    from sync.log.retractions import ForgetRequest
    from sync.understanding.second_reader.model_port import ModelStatus


class ServerInfoJson(TypedDict):
    name: str
    version: str


class InitializeJson(TypedDict):
    protocolVersion: int
    serverInfo: ServerInfoJson
    capabilities: list[str]
    deviceId: str
    account: AccountJson


class AuthJson(TypedDict):
    account: AccountJson


class CodeSentJson(TypedDict):
    """`contact` masked, for a person to check; a second code is not sent before `resendAfterSeconds` are over."""

    contact: str
    resendAfterSeconds: int


class FailureJson(TypedDict):
    kind: str
    message: str
    hint: str
    retryable: bool


class CloudJson(TypedDict):
    state: Literal["off", "signed_out", "connecting", "synced", "offline", "refused"]
    realtime: Literal["off", "connecting", "joined"]
    lastSyncAt: str | None
    lastError: FailureJson | None
    head: int
    cursor: int


class ThisDeviceJson(TypedDict):
    deviceId: str
    name: str
    replicaId: str


class DocumentJson(TypedDict):
    path: str
    sha256: str
    warnings: list[str]


class LanJson(TypedDict):
    peers: list[str]


class ModelJson(TypedDict):
    """The model that finds facts: `client`'s own, or an `api` of the settings. Calls and tokens since midnight.

    `waiting`: exchanges that it has not read. `recorded`, `refused`: facts and operations since the start.
    """

    source: str
    maxCallsPerDay: int
    calls: int
    tokens: int
    waiting: int
    recorded: int
    refused: int
    lastError: str | None


class WatchersJson(TypedDict):
    file: bool


class WaitingForgetJson(TypedDict):
    """What is hidden and will be erased; `memory/undo` takes the id until then."""

    requestId: str
    willBeErasedAt: str
    events: int


class StatusJson(TypedDict):
    """`sidecar`: whether a running sidecar gave the answer; false from a command that answers by itself.

    `changes`: devices that wait, and what devices changed in facts of others; null with one device. `unprovedFacts`:
    active facts that were recorded before events said where they come from.
    """

    account: AccountJson
    device: ThisDeviceJson
    cloud: CloudJson
    pending: int
    quarantined: int
    document: DocumentJson
    lan: LanJson
    watchers: WatchersJson
    sidecar: bool
    version: str
    model: ModelJson | None
    changes: ChangesJson | None
    unprovedFacts: int
    forgetting: list[WaitingForgetJson]


class ProgressValueJson(TypedDict):
    """`done` of `total` events; both restart at 0 if the server was restored from a backup."""

    kind: Literal["begin", "report", "end"]
    title: Literal["sync"]
    done: int
    total: int


class ProgressJson(TypedDict):
    token: str
    value: ProgressValueJson


class AppStatus(msgspec.Struct, frozen=True):
    """What `sync/status` is made of."""

    account: AccountJson
    device_id: str
    device_name: str
    replica_id: str
    cloud: "CloudStatus"
    pending: int
    quarantined: int
    document_path: str
    document_sha256: str
    warnings: tuple[str, ...]
    watching: bool
    sidecar: bool
    version: str
    lan_peers: tuple[str, ...] = ()  # the ids of connected devices
    model: "ModelStatus | None" = None
    forgetting: "tuple[ForgetRequest, ...]" = ()
    foreign_changes: tuple[ChangesJson | None, int] = (None, 0)  # and how many facts have no proved origin


def status_to_json(value: AppStatus) -> StatusJson:
    changes, unproved_facts = value.foreign_changes
    return {
        "account": value.account,
        "device": {"deviceId": value.device_id, "name": value.device_name, "replicaId": value.replica_id},
        "cloud": cloud_status_to_json(value.cloud),
        "pending": value.pending,
        "quarantined": value.quarantined,
        "document": {
            "path": value.document_path,
            "sha256": value.document_sha256,
            "warnings": [*value.warnings, *(changes.warnings if changes else ())],
        },
        "lan": {"peers": list(value.lan_peers)},
        "watchers": {"file": value.watching},
        "sidecar": value.sidecar,
        "version": value.version,
        "model": None if value.model is None else model_to_json(value.model),
        "changes": changes,
        "unprovedFacts": unproved_facts,
        "forgetting": [
            {"requestId": one.request_id, "willBeErasedAt": one.due, "events": len(one.event_ids)}
            for one in value.forgetting
        ],
    }


def model_to_json(value: "ModelStatus") -> ModelJson:
    return {
        "source": value.source,
        "maxCallsPerDay": value.max_calls_per_day,
        "calls": value.calls,
        "tokens": value.tokens,
        "waiting": value.waiting,
        "recorded": value.recorded,
        "refused": value.refused,
        "lastError": value.last_error,
    }


def cloud_status_to_json(value: "CloudStatus") -> CloudJson:
    return {
        "state": value.state.value,
        "realtime": value.realtime,
        "lastSyncAt": value.last_sync_at,
        "lastError": None if value.last_error is None else error_to_json(value.last_error),
        "head": value.cursor.head,
        "cursor": value.cursor.seq,
    }


def error_to_json(value: "XiaobaiError") -> FailureJson:
    return {"kind": value.kind, "message": value.message, "hint": value.hint, "retryable": value.retryable}


def pull_progress_to_json(value: "PullProgress") -> ProgressJson:
    """The params of `$/progress`, in the shape that LSP clients know; one token for each long pull."""
    return {
        "token": f"sync-{value.pull}",
        "value": {"kind": value.step, "title": "sync", "done": value.done, "total": value.total},
    }


def code_sent_to_json(contact: "Contact") -> CodeSentJson:
    return {"contact": contact.masked, "resendAfterSeconds": int(RESEND_SECONDS)}
