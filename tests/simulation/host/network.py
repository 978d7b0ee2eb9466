"""The simulated server and network: the fake server with transactions that take time, and lines that fail.

A push begins, works for a while under its user's head row, and commits, so commit-order hazards are possible. The
contract suite runs on this server too (`contract/cloud_backends.py`).
"""

import asyncio
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from msgspec.structs import replace

from sync.clock import Clock
from sync.cloud.auth_port import AuthPort, AuthSession
from sync.cloud.contact import Contact
from sync.cloud.port import (
    Channel,
    Cloud,
    DeviceFacts,
    DeviceRow,
    EndedSessions,
    StoredDocument,
    SyncAnswer,
    SyncRequest,
)
from sync.errors import CloudUnavailable, DeviceForked, RateLimited
from tests.fake_cloud.auth import TOKEN_SECONDS
from tests.fake_cloud.server import FakeCloud, FakeServer
from tests.simulation.host.simulated_host import SimulatedProcess

T = TypeVar("T")

DEADLINE: Final = 12.0  # seconds until a client abandons a request
LATE: Final = 90.0  # seconds; a duplicated request may arrive so much later


@dataclass
class NetworkLine:
    """A device's way to the server. Rates are probabilities; `delay` is the most seconds a message takes."""

    chance: random.Random
    loss: float = 0.0
    duplicates: float = 0.0
    delay: float = 0.0
    down: bool = False


class SimulatedServer(FakeServer):
    """Transactions take up to `work` seconds and hold their user's head row. `page`: events in one response."""

    def __init__(self, clock: Clock, chance: random.Random, *, work: float = 0.0, page: int = 1_000) -> None:
        super().__init__(clock)
        self.page = page
        self._chance = chance
        self._work = work
        self._rows: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self.refreshing: dict[str, int] = {}  # refresh tokens under way, and by how many requests
        self.refreshed_at_once: set[str] = set()
        self.forked: set[str] = set()  # devices whose next request is answered with `device_forked`
        self.late: set[asyncio.Task[Any]] = set()

    async def sync(self, inner: FakeCloud, session: AuthSession, request: SyncRequest) -> SyncAnswer:
        """One transaction."""
        self.check_reachable()
        async with self.head_row(self.accounts.user_of(session.access_token)):
            await asyncio.sleep(self._chance.uniform(0.0, self._work))
            self.check_reachable()
            if request.device_id in self.forked:
                self.forked.discard(request.device_id)
                raise DeviceForked("the replica goes on elsewhere, says the simulator")
            return await inner.sync(session, replace(request, limit=min(request.limit, self.page)))

    @asynccontextmanager
    async def head_row(self, user_id: str) -> AsyncIterator[None]:
        """`select … for update` of the row that numbers a user's events."""
        async with self._rows[user_id]:
            yield

    async def settled(self) -> None:
        """Wait until no duplicated request is in transit."""
        while self.late:
            await asyncio.gather(*self.late, return_exceptions=True)


@dataclass
class SimulatedCloud(Cloud):
    """One process's connection. Requests and responses get lost, duplicated, delayed; a dead process sends nothing."""

    server: SimulatedServer
    line: NetworkLine
    clock: Clock
    process: SimulatedProcess
    on_trace: Callable[[str], None]
    _inner: FakeCloud = field(init=False)

    def __post_init__(self) -> None:
        self._inner = FakeCloud(self.server)

    @property
    def auth(self) -> AuthPort:
        return cast("AuthPort", _SimulatedAuth(self, self._inner.auth))

    async def register_device(self, session: AuthSession, device_id: str, facts: DeviceFacts) -> None:
        await self.transmit("register", lambda: self._inner.register_device(session, device_id, facts))

    async def list_devices(self, session: AuthSession) -> tuple[DeviceRow, ...]:
        return await self.transmit("devices", lambda: self._inner.list_devices(session))

    async def rename_device(self, session: AuthSession, device_id: str, name: str) -> None:
        await self.transmit("rename", lambda: self._inner.rename_device(session, device_id, name))

    async def revoke_device(self, session: AuthSession, device_id: str) -> EndedSessions:
        return await self.transmit("revoke", lambda: self._inner.revoke_device(session, device_id))

    async def report_refusals(self, session: AuthSession, device_id: str, refused: Mapping[str, int]) -> None:
        await self.transmit("report", lambda: self._inner.report_refusals(session, device_id, refused))

    async def open_channel(self, session: AuthSession) -> Channel:
        return await self.transmit("listen", lambda: self._inner.open_channel(session))

    async def read_document(self, session: AuthSession, device_id: str) -> StoredDocument | None:
        return await self.transmit("read document", lambda: self._inner.read_document(session, device_id))

    async def is_reachable(self) -> bool:
        self.process.point("before a connection")
        return not self.line.down and await self._inner.is_reachable()

    async def sync(self, session: AuthSession, request: SyncRequest) -> SyncAnswer:
        what = f"sync {len(request.events)} after {request.after}"
        answer = await self.transmit(what, lambda: self.server.sync(self._inner, session, request))
        self.on_trace(
            f"{self.process.device} answered {len(answer.acked)} acks, {len(answer.events)} events, {answer.head}"
        )
        return answer

    async def close(self) -> None:
        return None

    async def transmit(self, what: str, call: Callable[[], Awaitable[T]]) -> T:
        """One request and its response. Raises CloudUnavailable if one of them is lost."""
        line, chance = self.line, self.line.chance
        self.process.point(f"before {what}")
        await self._travel()
        if line.down or chance.random() < line.loss / 2:
            await self._lose(f"{what}: request lost")
        answer = await call()
        if chance.random() < line.duplicates:
            self._duplicate_later(call)
        self.process.point(f"server has done {what}")
        await self._travel()
        if line.down or chance.random() < line.loss / 2:
            await self._lose(f"{what}: answer lost")
        self.process.point(f"answer of {what}")
        return answer

    async def _travel(self) -> None:
        if self.line.delay:
            await asyncio.sleep(self.line.chance.uniform(0.0, self.line.delay))

    async def _lose(self, what: str) -> None:
        self.on_trace(f"{self.process.device} {what}")
        if self.line.chance.random() < 0.1:
            raise RateLimited("too many requests", retry_after=self.line.chance.uniform(0.0, 20.0))
        if self.line.chance.random() < 0.3:
            await asyncio.sleep(DEADLINE)
        raise CloudUnavailable("the network failed, says the simulator")

    def _duplicate_later(self, call: Callable[[], Awaitable[object]]) -> None:
        """The same request again, later."""

        async def again() -> None:
            await asyncio.sleep(self.line.chance.uniform(0.0, LATE) if self.line.chance.random() < 0.3 else 0.0)
            await call()

        task = asyncio.get_running_loop().create_task(again())
        self.server.late.add(task)
        task.add_done_callback(self.server.late.discard)
        task.add_done_callback(lambda done: None if done.cancelled() else done.exception() and None)


class _SimulatedAuth:
    """The login over the same line; expiry times use the device's own clock."""

    def __init__(self, cloud: SimulatedCloud, inner: AuthPort) -> None:
        self._cloud = cloud
        self._inner = inner

    async def send_code(self, contact: Contact) -> None:
        await self._cloud.transmit("start", lambda: self._inner.send_code(contact))

    async def verify_code(self, contact: Contact, code: str) -> AuthSession:
        return await self._with_local_expiry("verify", lambda: self._inner.verify_code(contact, code))

    async def sign_in_with_password(self, contact: Contact, password: str) -> AuthSession:
        return await self._with_local_expiry("sign in", lambda: self._inner.sign_in_with_password(contact, password))

    async def refresh_session(self, session: AuthSession) -> AuthSession:
        server, token = self._cloud.server, session.refresh_token or ""
        server.refreshing[token] = server.refreshing.get(token, 0) + 1
        if server.refreshing[token] > 1:
            server.refreshed_at_once.add(token)
        try:
            return await self._with_local_expiry("refresh", lambda: self._inner.refresh_session(session))
        finally:
            server.refreshing[token] -= 1

    async def identify_user(self, access_token: str) -> tuple[str, str]:
        return await self._cloud.transmit("identify", lambda: self._inner.identify_user(access_token))

    async def sign_out(self, session: AuthSession) -> None:
        await self._cloud.transmit("sign out", lambda: self._inner.sign_out(session))

    async def _with_local_expiry(self, what: str, call: Callable[[], Awaitable[AuthSession]]) -> AuthSession:
        asked_at = self._cloud.clock.now().timestamp()
        session = await self._cloud.transmit(what, call)
        return replace(session, expires_at=asked_at + TOKEN_SECONDS)
