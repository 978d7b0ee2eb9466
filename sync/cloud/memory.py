"""The port's twin in memory: the server's rules without a server, for the contract suite, the simulator and trials.

It decides exactly as `sql/migrations` does (numbering, idempotency, reset, fork, conflict, snapshot) and lets a test
take the network away. Its accounts are in `memory_logins.py`.
"""

import asyncio
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Final

from sync.clock import Clock, timestamp
from sync.cloud.contact import contact_of
from sync.cloud.logins import Session
from sync.cloud.memory_devices import DeviceState, check_key, hashed, live, row
from sync.cloud.memory_documents import Document, overwrite, write
from sync.cloud.memory_logins import MemoryAccounts, MemoryLogins
from sync.cloud.port import (
    Channel,
    DeviceFacts,
    DeviceRow,
    EndedSessions,
    Heard,
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
from sync.log.envelope import server_bytes, to_wire
from sync.log.model import Event, forgotten_by

LIVE_SECONDS: Final = 600.0  # another replica that spoke more recently than this holds the device
EVENT_BYTES: Final = 64 * 1024
BATCH_BYTES: Final = 2 * 1024 * 1024
BATCH_EVENTS: Final = 500
DOCUMENT_BYTES: Final = 1024 * 1024

# field: (least, most characters), and what a text must look like; sql/migrations, `event_problem`
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
class _Memory:
    """What one user has on the server."""

    epoch: str = "epoch-1"
    floor: int = 0
    events: list[Event] = field(default_factory=list)
    devices: dict[str, DeviceState] = field(default_factory=dict)
    documents: dict[str, Document] = field(default_factory=dict)
    channels: list["MemoryChannel"] = field(default_factory=list)

    @property
    def head(self) -> int:
        return self.floor + len(self.events)


class MemoryServer:
    """Everybody's memory, and the switches of a test: `down` refuses all calls, `refuses` rejects single events."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.down = False
        self.lose_answers = 0  # so many answers get lost after the work was done
        self.refuses: set[str] = set()
        self.tells_ready = True  # an older Realtime never says from when on it is fed
        self.deaf = False  # channels stay open and nothing comes through: a half-open connection
        self.memories: defaultdict[str, _Memory] = defaultdict(_Memory)
        self.accounts = MemoryAccounts(clock)

    def add_user(self, email: str, password: str) -> str:
        """The id of a person who logs in with e-mail and password."""
        return self.accounts.add(contact_of(email=email), password)

    def restore(self, user_id: str, keep: int, *, epoch: str | None = None) -> None:
        """What an administrator's backup does: only the first `keep` events are left."""
        memory = self.memories[user_id]
        memory.events = memory.events[: keep - memory.floor]
        memory.epoch = epoch or memory.epoch

    def cut_channels(self) -> None:
        for memory in self.memories.values():
            for channel in memory.channels:
                channel.end()
            memory.channels.clear()

    def write_document(self, user_id: str, device_id: str, content: str) -> None:
        """What the original app does with the user's token: the whole text of a device, over whatever stands there."""
        overwrite(self.memories[user_id].documents, device_id, content)

    def check_reachable(self) -> None:
        if self.down:
            raise CloudUnreachable("the server does not answer")

    def memory_of(self, session: Session) -> _Memory:
        """LoginRequired where the token is not good."""
        return self.memories[self.accounts.user_of(session.access_token)]


class MemoryCloud:
    """One device's connection to a `MemoryServer`."""

    def __init__(self, server: MemoryServer) -> None:
        self._server = server
        self.logins = MemoryLogins(server.accounts, server.check_reachable)

    async def register_device(self, session: Session, device_id: str, facts: DeviceFacts) -> None:
        self._server.check_reachable()
        memory = self._server.memory_of(session)
        check_key(memory.devices, device_id, facts.public_key)
        device = memory.devices.setdefault(device_id, DeviceState(facts.replica_id, self._now(), self._now()))
        proven = device.proof is None or device.proof == hashed(facts.proof)
        former = device.replica_id
        takeover, named = facts.takeover if proven else None, proven and device.proof is not None
        self._hold(memory, device_id, facts.replica_id, takeover=takeover, proven=named)
        kept = device.proof if former == facts.replica_id else None
        device.proof = facts.proof_next or hashed(facts.proof) or kept
        device.name = device.name if device.named else facts.name
        device.platform, device.app_version = facts.platform, facts.app_version
        device.public_key = facts.public_key or device.public_key

    async def devices(self, session: Session) -> tuple[DeviceRow, ...]:
        self._server.check_reachable()
        found = self._server.memory_of(session).devices
        newest_first = sorted(found.items(), key=lambda item: (-item[1].seen, item[0]))
        return tuple(row(device_id, device) for device_id, device in newest_first)

    async def rename_device(self, session: Session, device_id: str, name: str) -> None:
        self._server.check_reachable()
        device = live(self._server.memory_of(session).devices, device_id)
        device.name, device.named = name.strip(), True

    async def revoke_device(self, session: Session, device_id: str) -> EndedSessions:
        self._server.check_reachable()
        device = self._server.memory_of(session).devices.get(device_id)
        if device is None:
            raise DeviceUnknown("this device is not registered")
        device.revoked_at = device.revoked_at or self._now()
        return EndedSessions(known=0, ended=0)

    async def report(self, session: Session, device_id: str, refused: Mapping[str, int]) -> None:
        self._server.check_reachable()
        live(self._server.memory_of(session).devices, device_id).refused = dict(refused)

    async def sync(self, session: Session, request: SyncRequest) -> SyncAnswer:
        self._server.check_reachable()
        memory = self._server.memory_of(session)
        self._hold(memory, request.device_id, request.replica_id)
        self._check(request)
        reset = _must_reset(memory, request)
        before = memory.head
        acked = _push(memory, request, timestamp(self._server.clock.now()))
        _forget(memory, request)
        if memory.head > before:
            for channel in memory.channels:
                channel.tell(Heard(poke=True, head=memory.head))
        document = write(memory.documents, request)
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
        )
        if self._server.lose_answers:
            self._server.lose_answers -= 1
            raise CloudUnavailable("the answer was lost")
        return answer

    async def listen(self, session: Session) -> Channel:
        self._server.check_reachable()
        channel = MemoryChannel(self._server, session)
        self._server.memory_of(session).channels.append(channel)
        if self._server.tells_ready:
            channel.tell(Heard(ready=True))
        return channel

    async def read_document(self, session: Session, device_id: str) -> StoredDocument | None:
        self._server.check_reachable()
        held = self._server.memory_of(session).documents.get(device_id)
        return None if held is None else StoredDocument(held.content, held.content_sha256, held.replica_id)

    async def reachable(self) -> bool:
        return not self._server.down

    async def close(self) -> None:
        return None

    def _check(self, request: SyncRequest) -> None:
        for event in request.events:
            problem = _problem(event, request.device_id)
            if problem or event.event_id in self._server.refuses:
                raise Rejected(f"event {event.event_id} is not acceptable: {problem}", code="22023")
        numbered = {(event.replica_id, event.replica_seq): event.event_id for event in request.events}
        if any(numbered[event.replica_id, event.replica_seq] != event.event_id for event in request.events):
            raise Rejected("two events under one number", code="22023")
        wire = [to_wire(event) for event in request.events]
        if len(wire) > BATCH_EVENTS or server_bytes(wire) > BATCH_BYTES:
            raise Rejected("the batch is too large", code="22023")
        if request.snapshot is not None and not _is_document(request.snapshot):
            raise Rejected("the document is not acceptable", code="22023")

    def _hold(
        self, memory: _Memory, device_id: str, replica_id: str, *, takeover: str | None = None, proven: bool = False
    ) -> None:
        device = live(memory.devices, device_id)
        if device.replica_id not in {replica_id, takeover} and self._now() - device.seen < LIVE_SECONDS:
            holder = device.replica_id if proven else None
            raise DeviceConflict("another live replica speaks for this device", holder=holder)
        device.replica_id, device.seen = replica_id, self._now()

    def _now(self) -> float:
        return self._server.clock.now().timestamp()


class MemoryChannel:
    """A channel of the twin. It ends with the server, with the token, or by `MemoryServer.cut_channels`."""

    def __init__(self, server: MemoryServer, session: Session) -> None:
        self._server = server
        self._session = session
        self._heard: asyncio.Queue[Heard | None] = asyncio.Queue()

    def tell(self, heard: Heard) -> None:
        if not self._server.deaf:
            self._heard.put_nowait(heard)

    def end(self) -> None:
        self._heard.put_nowait(None)

    async def hear(self) -> Heard:
        heard = await self._heard.get()
        if heard is None:
            self.end()  # it stays over
            raise CloudUnavailable("the channel was cut")
        self._server.memory_of(self._session)
        return heard

    async def beat(self) -> None:
        self._server.check_reachable()
        self.tell(Heard())

    async def renew(self, session: Session) -> None:
        self._server.check_reachable()
        self._server.memory_of(session)
        self._session = session

    async def close(self) -> None:
        self.end()


def _problem(event: Event, device_id: str) -> str | None:
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
    if _holds_nul(wire):
        return "nul"
    return "size" if server_bytes(wire) > EVENT_BYTES else None


def _holds_nul(value: Any) -> bool:
    """PostgreSQL's text cannot hold a NUL, so its jsonb refuses one."""
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, Mapping):
        return any(_holds_nul(key) or _holds_nul(inner) for key, inner in value.items())
    return isinstance(value, list | tuple) and any(_holds_nul(inner) for inner in value)


def _is_document(snapshot: SnapshotRow) -> bool:
    content = snapshot.content.encode()
    return (
        len(content) <= DOCUMENT_BYTES
        and sha256(content).hexdigest() == snapshot.content_sha256
        and snapshot.through_replica_seq >= 0
    )


def _must_reset(memory: _Memory, request: SyncRequest) -> bool:
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


def _push(memory: _Memory, request: SyncRequest, server_ts: str) -> tuple[tuple[str, int], ...]:
    known = {event.event_id: event for event in memory.events}
    taken = {(event.replica_id, event.replica_seq) for event in memory.events}
    once = {event.event_id: event for event in reversed(request.events)}  # the first of equal ids counts
    batch = [once.pop(event.event_id) for event in request.events if event.event_id in once]
    fresh = [event for event in batch if event.event_id not in known]
    if any((event.replica_id, event.replica_seq) in taken for event in fresh):
        raise DeviceForked("this replica's numbers are known under other event ids")
    for event in fresh:
        memory.events.append(replace(event, server_seq=memory.head + 1, server_ts=server_ts, position=0))
    numbers = {event.event_id: event.server_seq or 0 for event in memory.events}
    return tuple((event.event_id, numbers[event.event_id]) for event in batch)


def _forget(memory: _Memory, request: SyncRequest) -> None:
    """Blank what the `payload_forgotten` events of a batch name."""
    named = {name for event in request.events for name in forgotten_by(event)}
    memory.events = [
        replace(event, payload={}, extra={}) if event.event_id in named else event for event in memory.events
    ]
