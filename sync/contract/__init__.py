"""Result values as JSON: one shape for the command line, JSON-RPC and MCP, pinned by golden files in the tests.

Objects of our own have camelCase names; events keep the snake_case envelope of seed 002. The types
are those of `sync.published`; the functions fill them. Nothing here decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from sync.cloud.auth_port import RESEND_SECONDS
from sync.document.markdown.model import EntryAdded, EntryEdited, EntryRemoved
from sync.log.envelope import to_json
from sync.log.event_types import MESSAGE
from sync.log.payload_schemas import is_known_type
from sync.published import (
    AccountJson,
    AppendedJson,
    CheckJson,
    CloudJson,
    CodeSentJson,
    DeviceJson,
    DevicesJson,
    EditedJson,
    EventsJson,
    FailureJson,
    ForgottenJson,
    HealthJson,
    HistoryJson,
    KnownDeviceJson,
    LoadJson,
    OperationJson,
    ProblemJson,
    ProgressJson,
    QuarantineJson,
    RecordedJson,
    RefusalJson,
    RoundJson,
    StatusJson,
    UpdateJson,
    VerifyJson,
    VersionJson,
)

if TYPE_CHECKING:  # only named here; importing them would delay the first answer of a starting sidecar
    from collections.abc import Iterable, Sequence

    from sync.accounts.devices import DeviceList
    from sync.cloud.auth.account import AccountState
    from sync.cloud.contact import Contact
    from sync.cloud.replication.pull_progress import PullProgress
    from sync.cloud.replication.replicator import CloudStatus
    from sync.cloud.replication.sync_round import RoundResult
    from sync.document.read.device_digest import DeviceDigest
    from sync.document.read.results import LoadResult, UpdateResult
    from sync.document.store import HistoryRow
    from sync.document.versions.writer import EditResult
    from sync.errors import XiaobaiError
    from sync.log.integrity_store import Problem
    from sync.log.model import AppendResult, EventPage, RefusedEvent
    from sync.startup.doctor import HealthCheck

CONTRACT_VERSION: Final = 1  # raised when a name here changes its meaning


@dataclass(frozen=True, slots=True)
class AppStatus:
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


def status_to_json(value: AppStatus) -> StatusJson:
    return {
        "account": account_to_json(value.account),
        "device": {"deviceId": value.device_id, "name": value.device_name, "replicaId": value.replica_id},
        "cloud": cloud_status_to_json(value.cloud),
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


def load_to_json(value: LoadResult) -> LoadJson:
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
        "devices": [device_digest_to_json(found) for found in value.devices],
        "omitted": [{"section": item.section, "count": item.count} for item in value.omitted],
    }


def update_to_json(value: UpdateResult) -> UpdateJson:
    answer: UpdateJson = {"eventId": value.event_id, "recorded": value.recorded, "pending": value.pending}
    if value.reason is not None:
        answer["reason"] = value.reason
    return answer


def forgotten_to_json(event_ids: Sequence[str]) -> ForgottenJson:
    return {"forgotten": list(event_ids)}


def edit_to_json(value: EditResult) -> EditedJson:
    kinds: dict[type, Literal["entry_added", "entry_edited", "entry_removed"]] = {
        EntryAdded: "entry_added",
        EntryEdited: "entry_edited",
        EntryRemoved: "entry_removed",
    }
    operations: list[OperationJson] = [
        {"type": kinds[type(done)], "entryId": done.entry_id, "section": list(done.section)}
        for done in value.operations
    ]
    return {"operations": operations, "sha256": value.sha256}


def history_to_json(versions: Iterable[HistoryRow]) -> HistoryJson:
    found: list[VersionJson] = [
        {
            "sha256": version.sha256,
            "label": version.label,
            "cause": version.cause,
            "createdAt": version.created_at,
            "entries": version.entries,
        }
        for version in versions
    ]
    return {"versions": found}


def device_digest_to_json(value: DeviceDigest) -> DeviceJson:
    return {
        "deviceId": value.device_id,
        "name": value.name,
        "entries": [
            {"date": line.date.isoformat(), "text": line.text, "origin": line.origin.value} for line in value.lines
        ],
    }


def devices_to_json(value: DeviceList) -> DevicesJson:
    found: list[KnownDeviceJson] = [
        {
            "deviceId": known.device_id,
            "name": known.name,
            "platform": known.platform,
            "appVersion": known.app_version,
            "publicKey": known.public_key,
            "lastSeenAt": known.last_seen_at,
            "revoked": known.revoked,
            "revokedAt": known.revoked_at,
            "hidden": known.hidden,
            "thisDevice": known.this_device,
        }
        for known in value.devices
    ]
    return {"source": value.source, "asOf": value.as_of, "devices": found, "logins": value.logins}


def account_to_json(value: AccountState) -> AccountJson:
    return {"state": value.state, "userId": value.user_id, "label": value.label}


def code_sent_to_json(contact: Contact) -> CodeSentJson:
    return {"contact": contact.masked, "resendAfterSeconds": int(RESEND_SECONDS)}


def cloud_status_to_json(value: CloudStatus) -> CloudJson:
    return {
        "state": value.state.value,
        "realtime": value.realtime,
        "lastSyncAt": value.last_sync_at,
        "lastError": None if value.last_error is None else error_to_json(value.last_error),
        "head": value.cursor.head,
        "cursor": value.cursor.seq,
    }


def error_to_json(value: XiaobaiError) -> FailureJson:
    return {"kind": value.kind, "message": value.message, "hint": value.hint, "retryable": value.retryable}


def sync_round_to_json(value: RoundResult) -> RoundJson:
    return {"pushed": value.pushed, "pulled": value.pulled, "quarantined": value.quarantined}


def pull_progress_to_json(value: PullProgress) -> ProgressJson:
    """The params of `$/progress`, in the shape that LSP clients know; one token for each long pull."""
    return {
        "token": f"sync-{value.pull}",
        "value": {"kind": value.step, "title": "sync", "done": value.done, "total": value.total},
    }


def events_to_json(page: EventPage) -> EventsJson:
    return {"events": [to_json(event) for event in page.events], "nextOffset": page.next_offset}


def appended_events_to_json(page: EventPage, after: int) -> AppendedJson:
    return {**events_to_json(page), "after": after}


def append_results_to_json(
    values: Sequence[AppendResult], *, left_out: int = 0, stores_messages: bool = True
) -> RecordedJson:
    """`left_out`: how many events were not recorded, because their conversation is not to be saved."""
    answer: RecordedJson = {
        "eventIds": [value.event.event_id for value in values],
        "duplicates": [value.event.event_id for value in values if value.duplicate],
        "events": [to_json(value.event) for value in values],
        "nextOffset": max((value.event.position for value in values), default=0),
    }
    if left_out:
        answer["notSaved"] = left_out
    if not stores_messages and (without := [item.event.event_id for item in values if item.event.type == MESSAGE]):
        answer["withoutText"] = without
    if unknown := sorted({value.event.type for value in values if not is_known_type(value.event.type)}):
        answer["unknownTypes"] = unknown
    return answer


def quarantine_to_json(values: Iterable[RefusedEvent], released: Sequence[str]) -> QuarantineJson:
    events: list[RefusalJson] = [
        {"eventId": value.event_id, "code": value.code, "message": value.message, "noticedAt": value.noticed_at}
        for value in values
    ]
    return {"events": events, "released": list(released)}


def verification_to_json(problems: Sequence[Problem], newest: int) -> VerifyJson:
    """`events`: the position of the newest one. A salvaged log has holes where rows were lost."""
    found: list[ProblemJson] = [
        {"what": problem.what, "count": problem.count, "examples": list(problem.examples)} for problem in problems
    ]
    return {"ok": not found, "events": newest, "problems": found}


def health_to_json(checks: Sequence[HealthCheck]) -> HealthJson:
    found: list[CheckJson] = [
        {"name": check.name, "ok": check.ok, "found": check.found, "hint": check.hint} for check in checks
    ]
    return {"ok": all(check.ok is not False for check in checks), "checks": found}
