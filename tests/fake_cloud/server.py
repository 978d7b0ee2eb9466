"""The server in memory, with the rules of `sql/migrations`: for tests, the simulator and trials.

Tests can take the network away, lose answers and refuse events.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from sync.clock import Clock, timestamp
from sync.cloud.auth_port import AuthSession
from sync.cloud.contact import parse_contact
from sync.cloud.port import (
    Channel,
    DeviceFacts,
    DeviceRow,
    EndedSessions,
    RealtimeNotice,
    SnapshotRow,
    StoredDocument,
    SyncAnswer,
    SyncRequest,
)
from sync.errors import (
    CloudUnavailable,
    CloudUnreachable,
    DeviceConflict,
    DeviceForked,
    DeviceUnknown,
    Rejected,
)
from sync.log.envelope import postgres_json_size, to_wire
from sync.log.model import Event, erased_by
from tests.fake_cloud.auth import FakeAccounts, FakeAuth
from tests.fake_cloud.devices import FakeDevice, active_device, check_public_key, device_row, proof_hash
from tests.fake_cloud.documents import FakeDocument, overwrite_document, store_document

LIVE_SECONDS: Final = 600.0  # a replica that was seen within this time keeps the device
EVENT_BYTES: Final = 64 * 1024
BATCH_BYTES: Final = 2 * 1024 * 1024
BATCH_EVENTS: Final = 500
DOCUMENT_BYTES: Final = 1024 * 1024

# the rules of `event_problem` in sql/migrations: fewest and most characters of each field
LENGTHS: Final = {
    "event_id": (1, 128),
    "type": (1, 128),
    "ts": (1, 64),
    "hlc": (1, 17),
    "origin": (1, 32),
    "replica_id": (1, 128),
    "project_id": (0, 256),
    "project_path": (0, 4096),
    "session_id": (0, 256),
}
HLC: Final = re.compile("[0-9a-f]{12}-[0-9a-f]{4}")
DATE: Final = re.compile("[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])")
NUMBERS: Final = {"replica_seq": (1, 10**18 - 1), "schema_version": (0, 10**9 - 1), "utc_offset": (-1440, 1440)}


@dataclass
class _UserLog:
    """The data of one user."""

    epoch: str = "epoch-1"
    floor: int = 0
    events: list[Event] = field(default_factory=list)
    devices: dict[str, FakeDevice] = field(default_factory=dict)
    documents: dict[str, FakeDocument] = field(default_factory=dict)
    erased_ids: set[str] = field(default_factory=set)
    channels: list["FakeChannel"] = field(default_factory=list)

    @property
    def head(self) -> int:
        return self.floor + len(self.events)


class FakeServer:
    """All users' data, and switches for tests."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.down = False
        self.answers_to_lose = 0  # so many answers get lost after their request was carried out
        self.refused_event_ids: set[str] = set()
        self.poll_seconds: float | None = None  # what the owner of the project asks for
        self.announces_ready = True  # an older Realtime does not
        self.is_half_open = False  # channels stay open, but nothing comes through
        self.user_logs: defaultdict[str, _UserLog] = defaultdict(_UserLog)
        self.accounts = FakeAccounts(clock)

    def add_user(self, email: str, password: str) -> str:
        """Add a user who logs in with e-mail and password; their id."""
        return self.accounts.add_user(parse_contact(email=email), password)

    def add_device(self, user_id: str, device_id: str, replica_id: str = "rep_b") -> None:
        """Add a device of the user that was seen now, and is silent."""
        now = self.clock.now().timestamp()
        self.user_logs[user_id].devices.setdefault(device_id, FakeDevice(replica_id, now, now))

    def restore(self, user_id: str, keep: int, *, epoch: str | None = None) -> None:
        """Restore a backup: keep only the first `keep` events."""
        memory = self.user_logs[user_id]
        memory.events = memory.events[: keep - memory.floor]
        memory.epoch = epoch or memory.epoch

    def cut_channels(self) -> None:
        for memory in self.user_logs.values():
            for channel in memory.channels:
                channel.end()
            memory.channels.clear()

    def write_document(self, user_id: str, device_id: str, content: str) -> None:
        """Replace a device's document, as the original app does with the user's token."""
        overwrite_document(self.user_logs[user_id].documents, device_id, content)

    def check_reachable(self) -> None:
        if self.down:
            raise CloudUnreachable("the server does not answer")

    def log_of(self, session: AuthSession) -> _UserLog:
        """The data of the session's user. LoginRequired if the token is invalid."""
        return self.user_logs[self.accounts.user_of(session.access_token)]


class FakeCloud:
    """One device's connection to a `FakeServer`."""

    def __init__(self, server: FakeServer) -> None:
        self._server = server
        self.auth = FakeAuth(server.accounts, server.check_reachable)

    async def register_device(self, session: AuthSession, device_id: str, facts: DeviceFacts) -> None:
        self._server.check_reachable()
        memory = self._server.log_of(session)
        check_public_key(memory.devices, device_id, facts.public_key)
        device = memory.devices.setdefault(device_id, FakeDevice(facts.replica_id, self._now(), self._now()))
        proven = device.proof_hash is None or device.proof_hash == proof_hash(facts.proof)
        former = device.replica_id
        takeover, named = facts.takeover if proven else None, proven and device.proof_hash is not None
        self._claim_device(memory, device_id, facts.replica_id, takeover=takeover, proven=named)
        unchanged = device.proof_hash if former == facts.replica_id else None
        device.proof_hash = facts.proof_next or proof_hash(facts.proof) or unchanged
        device.name = device.name if device.is_named_by_user else facts.name
        device.platform, device.app_version = facts.platform, facts.app_version
        device.public_key = facts.public_key or device.public_key

    async def list_devices(self, session: AuthSession) -> tuple[DeviceRow, ...]:
        self._server.check_reachable()
        devices = self._server.log_of(session).devices
        newest_first = sorted(devices.items(), key=lambda item: (-item[1].last_seen, item[0]))
        return tuple(device_row(device_id, device) for device_id, device in newest_first)

    async def rename_device(self, session: AuthSession, device_id: str, name: str) -> None:
        self._server.check_reachable()
        device = active_device(self._server.log_of(session).devices, device_id)
        device.name, device.is_named_by_user = name.strip(), True

    async def revoke_device(self, session: AuthSession, device_id: str) -> EndedSessions:
        self._server.check_reachable()
        device = self._server.log_of(session).devices.get(device_id)
        if device is None:
            raise DeviceUnknown("this device is not registered")
        device.revoked_at = device.revoked_at or self._now()
        return EndedSessions(known=0, ended=0)

    async def report_refusals(self, session: AuthSession, device_id: str, refused: Mapping[str, int]) -> None:
        self._server.check_reachable()
        active_device(self._server.log_of(session).devices, device_id).refused = dict(refused)

    async def sync(self, session: AuthSession, request: SyncRequest) -> SyncAnswer:
        self._server.check_reachable()
        memory = self._server.log_of(session)
        self._claim_device(memory, request.device_id, request.replica_id)
        self._check_request(request)
        reset = _must_reset(memory, request)
        before = memory.head
        acked = _append_events(memory, request, timestamp(self._server.clock.now()))
        _erase_payloads(memory, request)
        if memory.head > before:
            for channel in memory.channels:
                channel.deliver(RealtimeNotice(poke=True, head=memory.head))
        document = store_document(memory.documents, request)
        pulled = [] if reset else [event for event in memory.events if (event.server_seq or 0) > request.after]
        answer = SyncAnswer(
            epoch=memory.epoch,
            head=memory.head,
            floor=memory.floor,
            reset=reset,
            events=tuple(pulled[: request.limit]),
            acked=acked,
            server_time=timestamp(self._server.clock.now()),
            snapshot=document,
            poll_seconds=self._server.poll_seconds,
        )
        if self._server.answers_to_lose:
            self._server.answers_to_lose -= 1
            raise CloudUnavailable("the answer was lost")
        return answer

    async def open_channel(self, session: AuthSession) -> Channel:
        self._server.check_reachable()
        channel = FakeChannel(self._server, session)
        self._server.log_of(session).channels.append(channel)
        if self._server.announces_ready:
            channel.deliver(RealtimeNotice(ready=True))
        return channel

    async def read_document(self, session: AuthSession, device_id: str) -> StoredDocument | None:
        self._server.check_reachable()
        stored = self._server.log_of(session).documents.get(device_id)
        return None if stored is None else StoredDocument(stored.content, stored.content_sha256, stored.replica_id)

    async def is_reachable(self) -> bool:
        return not self._server.down

    async def close(self) -> None:
        return None

    def _check_request(self, request: SyncRequest) -> None:
        for event in request.events:
            problem = _invalid_field(event, request.device_id)
            if problem or event.event_id in self._server.refused_event_ids:
                raise Rejected(f"event {event.event_id} is not acceptable: {problem}", code="22023")
        numbered = {(event.replica_id, event.replica_seq): event.event_id for event in request.events}
        if any(numbered[event.replica_id, event.replica_seq] != event.event_id for event in request.events):
            raise Rejected("two events under one number", code="22023")
        wire = [to_wire(event) for event in request.events]
        if len(wire) > BATCH_EVENTS or postgres_json_size(wire) > BATCH_BYTES:
            raise Rejected("the batch is too large", code="22023")
        if request.snapshot is not None and not _is_valid_document(request.snapshot):
            raise Rejected("the document is not acceptable", code="22023")

    def _claim_device(
        self, memory: _UserLog, device_id: str, replica_id: str, *, takeover: str | None = None, proven: bool = False
    ) -> None:
        device = active_device(memory.devices, device_id)
        if device.replica_id not in {replica_id, takeover} and self._now() - device.last_seen < LIVE_SECONDS:
            holder = device.replica_id if proven else None
            raise DeviceConflict("another live replica speaks for this device", holder=holder)
        device.replica_id, device.last_seen = replica_id, self._now()

    def _now(self) -> float:
        return self._server.clock.now().timestamp()


class FakeChannel:
    """A channel. It ends with the token or by `FakeServer.cut_channels`."""

    def __init__(self, server: FakeServer, session: AuthSession) -> None:
        self._server = server
        self._session = session
        self._notices: asyncio.Queue[RealtimeNotice | None] = asyncio.Queue()

    def deliver(self, notice: RealtimeNotice) -> None:
        if not self._server.is_half_open:
            self._notices.put_nowait(notice)

    def end(self) -> None:
        self._notices.put_nowait(None)

    async def receive(self) -> RealtimeNotice:
        notice = await self._notices.get()
        if notice is None:
            self.end()  # for the next call
            raise CloudUnavailable("the channel was cut")
        self._server.log_of(self._session)
        return notice

    async def send_heartbeat(self) -> None:
        self._server.check_reachable()
        self.deliver(RealtimeNotice())

    async def update_token(self, session: AuthSession) -> None:
        self._server.check_reachable()
        self._server.log_of(session)
        self._session = session

    async def close(self) -> None:
        self.end()


def _invalid_field(event: Event, device_id: str) -> str | None:
    """The first field that breaks a rule of the server."""
    wire = to_wire(event)
    if event.device_id != device_id:
        return "device_id"
    for name, (least, most) in LENGTHS.items():
        if wire[name] is not None and not least <= len(wire[name]) <= most:
            return name
    for name, (lowest, highest) in NUMBERS.items():
        if wire[name] is not None and not lowest <= wire[name] <= highest:
            return name
    if not HLC.fullmatch(event.hlc):
        return "hlc"
    if wire["local_date"] is not None and not DATE.fullmatch(event.local_date):
        return "local_date"
    if _contains_nul(wire):
        return "nul"
    return "size" if postgres_json_size(wire) > EVENT_BYTES else None


def _contains_nul(value: Any) -> bool:
    """PostgreSQL's jsonb refuses a NUL."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_contains_nul(key) or _contains_nul(inner) for key, inner in value.items())
    return isinstance(value, list | tuple) and any(_contains_nul(inner) for inner in value)


def _is_valid_document(snapshot: SnapshotRow) -> bool:
    content = snapshot.content.encode()
    return (
        len(content) <= DOCUMENT_BYTES
        and sha256(content).hexdigest() == snapshot.content_sha256
        and snapshot.through_replica_seq >= 0
    )


def _must_reset(memory: _UserLog, request: SyncRequest) -> bool:
    if request.after > 0 and request.epoch is None:
        return True
    if request.epoch is not None and request.epoch != memory.epoch:
        return True
    if not memory.floor <= request.after <= memory.head:
        return True
    if request.after == memory.floor:
        return False
    there = memory.events[request.after - memory.floor - 1]
    return there.event_id != request.after_event or request.after_ts not in {None, there.server_ts}


def _append_events(memory: _UserLog, request: SyncRequest, server_ts: str) -> tuple[tuple[str, int], ...]:
    stored_ids = {event.event_id for event in memory.events}
    used_numbers = {(event.replica_id, event.replica_seq) for event in memory.events}
    once = {event.event_id: event for event in reversed(request.events)}  # the first of equal ids wins
    batch = [once.pop(event.event_id) for event in request.events if event.event_id in once]
    _check_taken_ids(memory, request.events)
    fresh = [event for event in batch if event.event_id not in stored_ids]
    if any((event.replica_id, event.replica_seq) in used_numbers for event in fresh):
        raise DeviceForked("this replica's numbers are known under other event ids")
    for event in fresh:
        memory.events.append(replace(event, server_seq=memory.head + 1, server_ts=server_ts, position=0))
    numbers = {event.event_id: event.server_seq or 0 for event in memory.events}
    return tuple((event.event_id, numbers[event.event_id]) for event in batch)


def _check_taken_ids(memory: _UserLog, events: Sequence[Event]) -> None:
    """Raise Rejected if the log, or the batch itself, holds another event under one of these ids."""
    held = {event.event_id: event for event in (*reversed(events), *memory.events)}
    for event in events:
        other = held[event.event_id]
        same = (other.device_id, other.hlc, other.type) == (event.device_id, event.hlc, event.type)
        is_blank = other.event_id in memory.erased_ids or not event.payload
        if not (same and (is_blank or other.payload == event.payload)):
            raise Rejected(f"event {event.event_id} is not acceptable: event_id_taken", code="22023")


def _erase_payloads(memory: _UserLog, request: SyncRequest) -> None:
    """Erase the payloads that the `payload_forgotten` events of a batch name."""
    named = {name for event in request.events for name in erased_by(event)}
    memory.erased_ids |= named & {event.event_id for event in memory.events}
    memory.events = [
        replace(event, payload={}, extra={}) if event.event_id in named else event for event in memory.events
    ]
