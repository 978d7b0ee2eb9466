"""What tests share: clocks, a spied cloud, a whole device, a loop in virtual time.

They replace only what the program takes as arguments: clocks, clouds, token stores and executors.
"""

import asyncio
import itertools
import os
import random
import selectors
import subprocess
import sys
import tempfile
import textwrap
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar, TypeVarTuple, Unpack, cast
from uuid import uuid4

from sqlalchemy import text

from sync.archive.container import ArchiveReader, ArchiveWriter
from sync.clock import in_zone
from sync.cloud.auth import device_key_store
from sync.cloud.auth.account import Account
from sync.cloud.auth.device_key import DeviceKey
from sync.cloud.auth.event_signer import EventSigner
from sync.cloud.auth_port import AuthPort, AuthSession
from sync.cloud.contact import Contact, parse_contact
from sync.cloud.port import (
    Channel,
    Cloud,
    DeviceFacts,
    DeviceRow,
    EndedSessions,
    SnapshotRow,
    StoredDocument,
    SyncAnswer,
    SyncRequest,
)
from sync.cloud.replication.document_upload import DocumentVersion
from sync.cloud.replication.erasure_guard import ErasureGuard, ErasureImpact
from sync.cloud.replication.replicator import Replicator
from sync.cloud.replication.sync_round import SyncRunner
from sync.db.engine import Database
from sync.errors import CloudUnreachable
from sync.log import store as log_store
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import Event, EventDraft, EventScope, Query
from sync.redaction import Redactor
from sync.settings.sections import PrivacySettings, RecallSettings, SyncSettings
from sync.settings.settings import Settings
from sync.system.secret_store import FileSecretStore
from tests.fake_cloud.server import FakeCloud, FakeServer

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

CHINA: Final = timezone(timedelta(hours=8))
REPOSITORY: Final = Path(__file__).parents[1]
START: Final = datetime(2026, 2, 2, 18, 0, tzinfo=CHINA)
REDACTOR: Final = Redactor()
BROKEN_AFTER: Final = 60.0  # seconds; a bound for a broken program
EMAIL, PASSWORD = "person@example.com", "a long password"


class FixedClock:
    """A clock that a test sets, in either direction, with seeded randomness."""

    def __init__(self, start: datetime = START, *, seed: int = 1) -> None:
        self._now = start
        self._chance = random.Random(seed)

    def now(self) -> datetime:
        return self._now

    def local(self, moment: datetime) -> datetime:
        return in_zone(moment, self._now.tzinfo)

    def monotonic(self) -> float:
        return self._now.timestamp()

    def random_bytes(self, count: int) -> bytes:
        return self._chance.randbytes(count)

    def advance(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)


class LoopClock(FixedClock):
    """A clock on the running loop's time; with `run_in_virtual_time` hours pass at once."""

    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time())

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()


def draft(words: str = "记住这件事", *, kind: str = "note_taken", **more: Any) -> EventDraft:
    """A draft as services hand it to the log."""
    return EventDraft(type=kind, payload=REDACTOR.clean_payload({"text": words}), **more)


def event(number: int, *, replica: str = "rep_a", device: str = "device-a", **changes: Any) -> Event:
    """A valid event as a device would push it; `number` is its replica_seq."""
    values: dict[str, Any] = {
        "event_id": f"evt_{uuid4()}",
        "schema_version": 1,
        "project_id": "proj_abcd1234",
        "project_path": "/家/项目",
        "session_id": "sess_20260202_001",
        "ts": "2026-02-02T10:00:00.000Z",
        "type": "note_taken",
        "payload": {"text": f"第 {number} 条"},
        "device_id": device,
        "replica_id": replica,
        "replica_seq": number,
        "hlc": f"0193a5b2c3d4-{number:04x}",
        "origin": "user-typed",
        "reach": EventScope.CLOUD,
        "local_date": "2026-02-02",
        "utc_offset": 480,
    }
    return Event(**{**values, **changes})


class FakeSessionStorage:
    """Session storage in memory."""

    warning: str | None = None

    def __init__(self) -> None:
        self.session: AuthSession | None = None
        self.saved: list[AuthSession] = []

    def load(self) -> AuthSession | None:
        return self.session

    def save(self, session: AuthSession) -> None:
        self.session = session
        self.saved.append(session)

    def delete(self) -> None:
        self.session = None


class SpyCloud:
    """A cloud that records every call. Tests can fail calls, pause them, or change answers."""

    def __init__(self, inner: Cloud) -> None:
        self.inner = inner
        self.calls: list[str] = []
        self.times: list[float] = []
        self.requests: list[SyncRequest] = []
        self.failures: defaultdict[str, deque[Exception]] = defaultdict(deque)
        self.permanent_failure: Exception | None = None
        self.edit_answer: Callable[[SyncAnswer], SyncAnswer] = lambda answer: answer
        self.gate = asyncio.Event()
        self.gate.set()
        self.call_arrived = asyncio.Event()
        self.auth = _SpyAuth(inner.auth, self.forward)

    def count(self, name: str) -> int:
        return self.calls.count(name)

    def fail_next(self, name: str, *errors: Exception) -> None:
        self.failures[name].extend(errors)

    def pause_calls(self) -> None:
        """Hold back answers until `gate.set()`."""
        self.gate.clear()
        self.call_arrived.clear()

    async def wait_for_call(self) -> None:
        """Wait until a call has arrived since `pause_calls`."""
        async with asyncio.timeout(BROKEN_AFTER):
            await self.call_arrived.wait()

    async def register_device(self, session: AuthSession, device_id: str, facts: DeviceFacts) -> None:
        await self.forward("register_device", lambda: self.inner.register_device(session, device_id, facts))

    async def list_devices(self, session: AuthSession) -> tuple[DeviceRow, ...]:
        return await self.forward("devices", lambda: self.inner.list_devices(session))

    async def rename_device(self, session: AuthSession, device_id: str, name: str) -> None:
        await self.forward("rename_device", lambda: self.inner.rename_device(session, device_id, name))

    async def revoke_device(self, session: AuthSession, device_id: str) -> EndedSessions:
        return await self.forward("revoke_device", lambda: self.inner.revoke_device(session, device_id))

    async def report_refusals(self, session: AuthSession, device_id: str, refused: Mapping[str, int]) -> None:
        await self.forward("report", lambda: self.inner.report_refusals(session, device_id, refused))

    async def sync(self, session: AuthSession, request: SyncRequest) -> SyncAnswer:
        self.requests.append(request)
        return self.edit_answer(await self.forward("sync", lambda: self.inner.sync(session, request)))

    async def open_channel(self, session: AuthSession) -> Channel:
        return await self.forward("listen", lambda: self.inner.open_channel(session))

    async def read_document(self, session: AuthSession, device_id: str) -> StoredDocument | None:
        return await self.forward("read_document", lambda: self.inner.read_document(session, device_id))

    async def is_reachable(self) -> bool:
        return not isinstance(self.permanent_failure, CloudUnreachable) and await self.inner.is_reachable()

    async def close(self) -> None:
        await self.inner.close()

    async def forward(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        """Make one call, recorded, paused or failed as the test has set."""
        self.calls.append(name)
        self.times.append(asyncio.get_running_loop().time())
        self.call_arrived.set()
        await self.gate.wait()
        if self.permanent_failure is not None:
            raise self.permanent_failure
        if self.failures[name]:
            raise self.failures[name].popleft()
        return await call()


class _SpyAuth:
    """The login server of a `SpyCloud`."""

    def __init__(self, inner: AuthPort, forward: Callable[[str, Callable[[], Awaitable[Any]]], Awaitable[Any]]) -> None:
        self._inner = inner
        self._forward = forward

    async def send_code(self, contact: Contact) -> None:
        await self._forward("start", lambda: self._inner.send_code(contact))

    async def verify_code(self, contact: Contact, code: str) -> AuthSession:
        return cast("AuthSession", await self._forward("verify", lambda: self._inner.verify_code(contact, code)))

    async def sign_in_with_password(self, contact: Contact, password: str) -> AuthSession:
        return cast(
            "AuthSession", await self._forward("sign_in", lambda: self._inner.sign_in_with_password(contact, password))
        )

    async def refresh_session(self, session: AuthSession) -> AuthSession:
        return cast("AuthSession", await self._forward("refresh", lambda: self._inner.refresh_session(session)))

    async def identify_user(self, access_token: str) -> tuple[str, str]:
        return cast("tuple[str, str]", await self._forward("identify", lambda: self._inner.identify_user(access_token)))

    async def sign_out(self, session: AuthSession) -> None:
        await self._forward("sign_out", lambda: self._inner.sign_out(session))


@dataclass
class Device:
    """One installation, with all its parts."""

    folder: Path
    clock: FixedClock
    database: Database
    log: EventLog
    intake: DraftBuilder
    tokens: FakeSessionStorage
    cloud: SpyCloud
    account: Account
    replicator: Replicator
    replica_id: str
    stored_documents: list[SnapshotRow]
    foreign_documents: list[str]

    async def record_notes(self, *words: str) -> list[str]:
        """Record one event per text; their ids."""
        recorded = await self.log.append([draft(word) for word in words])
        return [item.event.event_id for item in recorded]

    async def events(self) -> list[Event]:
        return list((await self.log.read(Query())).events)

    async def event_ids(self) -> set[str]:
        return {event.event_id for event in await self.events()}

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        found = await self.database.read(lambda connection: connection.execute(text(query)).all())
        return [tuple(row) for row in found]

    async def log_in(self, email: str = EMAIL, password: str = PASSWORD) -> None:
        session = await self.account.auth.sign_in_with_password(parse_contact(email=email), password)
        await self.account.log_in(session)


@asynccontextmanager
async def open_device(
    folder: Path,
    server: FakeServer,
    *,
    device_id: str = "device-a",
    clock: FixedClock | None = None,
    tokens: FakeSessionStorage | None = None,
    single_threaded: bool = False,
    options: SyncSettings | None = None,
    with_device_key: bool = False,
    erasure_settings: PrivacySettings | None = None,
) -> AsyncIterator[Device]:
    """A device with a real database and a fake server. With `erasure_settings` it reviews erasure requests."""
    clock = clock or FixedClock()
    folder.mkdir(parents=True, exist_ok=True)
    executors = (InlineExecutor(), InlineExecutor()) if single_threaded else (None, None)
    database = await Database.open(folder / "memory.db", writer=executors[0], reader=executors[1])
    replica_id = await database.write(lambda connection: log_store.ensure_replica_id(connection, clock))
    log = EventLog(database, clock, device_id=device_id, session_id="sess_20260202_0a1b2c3d")
    tokens = tokens or FakeSessionStorage()
    cloud = SpyCloud(FakeCloud(server))
    account = Account(database, cloud, lambda: tokens, lock=folder / "session.lock", clock=clock)
    document = _FakeCloudDocument()
    facts = DeviceFacts(replica_id, f"name of {device_id}", "Linux", "1")
    settings = options or SyncSettings(timeout_seconds=60.0)
    key = device_key_in(folder)
    guard = ErasureGuard(log, key, erasure_settings, lambda *_: ErasureImpact(), clock) if erasure_settings else None
    key_if_wanted = key if with_device_key else None
    runner = SyncRunner(log, account, facts, document, clock=clock, options=settings, key=key_if_wanted, erasures=guard)
    replicator = Replicator(log, runner, clock=clock, options=settings)
    try:
        yield Device(
            folder=folder,
            clock=clock,
            database=database,
            log=log,
            intake=DraftBuilder(REDACTOR, clock=clock),
            tokens=tokens,
            cloud=cloud,
            account=account,
            replicator=replicator,
            replica_id=replica_id,
            stored_documents=document.stored_documents,
            foreign_documents=document.foreign_documents,
        )
    finally:
        await replicator.stop()
        await database.close()


def app_settings(folder: Path, **more: Any) -> Settings:
    """The settings of an app in this folder. Its recall is without models, which take longer to load than a test."""
    values = {"device_id": "device-a", "token_store": "file", "recall": RecallSettings(embeddings="off"), **more}
    return Settings(data_dir=folder / "data", memory_file=folder / "memory.md", **values)


def device_key_in(folder: Path) -> DeviceKey:
    """A device's key, kept in a file."""
    return DeviceKey(lambda: FileSecretStore(folder / "device-key"), lock=folder / "device-key.lock")


def signer_of(events: EventLog) -> EventSigner:
    """The signer of a device whose key is beside its database."""
    return EventSigner(events, device_key_in(events.database.path.parent))


async def introduce(events: EventLog, *others: EventLog) -> None:
    """Let a device know the keys of others of its account."""
    now = START.isoformat()
    keys = [(one.device_id, await device_key_in(one.database.path.parent).public_key()) for one in others]
    rows = [DeviceRow(device_id, None, None, None, key, now, now, None) for device_id, key in keys]
    await events.database.write(device_key_store.replace_device_keys, rows, now)


def without_signature(archive: Path) -> Path:
    """Return the archive as an older version wrote it."""
    to = archive.with_name(f"unsigned-{archive.name}")
    with to.open("wb") as file:
        writing = ArchiveWriter(file, None, os.urandom)
        for name, data in ArchiveReader.open_verified(archive, None).read_parts():
            writing.add(name, data)
        writing.finish()
    return to


class _FakeCloudDocument:
    """A device's documents without a file."""

    def __init__(self) -> None:
        self.stored_documents: list[SnapshotRow] = []
        self.foreign_documents: list[str] = []

    async def version(self) -> DocumentVersion | None:
        row = await self.snapshot()
        return None if row is None else DocumentVersion(row.content_sha256, has_unsent_erasure=False)

    async def snapshot(self) -> SnapshotRow | None:
        return self.stored_documents[-1] if self.stored_documents else None

    async def mark_stored(self) -> None:
        return None

    async def import_foreign(self, content: str) -> bool:
        self.foreign_documents.append(content)
        return True


def new_server(clock: FixedClock | None = None) -> FakeServer:
    """A fake server with one user."""
    server = FakeServer(clock or FixedClock(seed=2))
    server.add_user(EMAIL, PASSWORD)
    return server


@contextmanager
def background_task(coroutine: Coroutine[Any, Any, None]) -> Iterator[asyncio.Task[None]]:
    """Run a task beside the block, and cancel it at its end."""
    task = asyncio.get_running_loop().create_task(coroutine)
    try:
        yield task
    finally:
        task.cancel()


class InlineExecutor(ThreadPoolExecutor):
    """Runs everything at once, in the caller's thread."""

    def call(self, fn: Callable[..., T], /, *args: Any) -> T:
        """Run a function; subclasses wrap it."""
        return fn(*args)

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future: Future[T] = Future()
        try:
            future.set_result(self.call(partial(fn, **kwargs), *args))
        except BaseException as error:  # noqa: BLE001 - as an executor does
            future.set_exception(error)
        return future


class _JumpingSelector(selectors.DefaultSelector):
    """A selector that jumps to the next timer instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if len(self.get_map()) > 1 and (ready := super().select(0)):  # the first is the loop's own
            return ready
        if timeout is None:
            raise RuntimeError("nothing is ready and no timer runs: this would wait for ever")
        self.now += max(0.0, timeout)
        return []


class _NumberedTask(asyncio.Task[T]):
    """A task that hashes by its number, so that the order of a set of tasks is the same in each process.

    `TaskGroup` cancels its tasks in the order of such a set.
    """

    def __init__(self, number: int, work: Coroutine[Any, Any, T], **more: Any) -> None:
        self._number = number
        super().__init__(work, **more)

    def __hash__(self) -> int:
        return self._number


class VirtualTimeLoop(asyncio.SelectorEventLoop):
    """A loop in which waiting takes no time. Its tasks must not use threads.

    Without threads it needs no wake-up socket, which saves a third of its time.
    """

    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        self._made = itertools.count()
        super().__init__(self._jumping)
        self.set_task_factory(lambda loop, work, **more: _NumberedTask(next(self._made), work, loop=loop, **more))
        self._inline = InlineExecutor()
        self.set_default_executor(self._inline)

    def time(self) -> float:
        return self._jumping.now

    call_soon_threadsafe = asyncio.SelectorEventLoop.call_soon

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run at once, but set the result in the next turn of the loop, as with a thread."""
        inline = executor or self._inline
        if not isinstance(inline, InlineExecutor):
            return super().run_in_executor(executor, func, *args)
        outcome: asyncio.Future[T] = self.create_future()
        try:
            done = inline.call(func, *args)
        except BaseException as error:  # noqa: BLE001 - as an executor does
            self.call_soon(_set_unless_cancelled, outcome, outcome.set_exception, error)
        else:
            self.call_soon(_set_unless_cancelled, outcome, outcome.set_result, done)
        return outcome

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:
        """Do nothing: there are no threads."""


def _set_unless_cancelled(outcome: asyncio.Future[T], settle: Callable[[Any], None], value: object) -> None:
    if not outcome.done():
        settle(value)


def run_in_virtual_time(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(main)


def intervals(times: Sequence[float]) -> list[float]:
    """The pauses between calls."""
    return [later - earlier for earlier, later in itertools.pairwise(times)]


_DROP_RIGHTS: Final = """
import asyncio, os, pwd, sys
from pathlib import Path
{code}
if os.geteuid() == 0:
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)
asyncio.run(main(Path(sys.argv[1])))
"""


def run_unprivileged(code: str, *, argument: Sequence[str] = ()) -> str:
    """The output of `async def main(folder)` with read-only access to `folder` and its databases `argument`.

    Tests may run as root, so a child process drops its rights first.
    """
    with tempfile.TemporaryDirectory() as created:
        folder = Path(created)
        for name in argument:
            asyncio.run(_create_database(folder / name))
            (folder / name).chmod(0o644)
        folder.chmod(0o555)
        script = _DROP_RIGHTS.format(code=textwrap.dedent(code))
        done = subprocess.run(
            [sys.executable, "-c", script, str(folder)],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def _create_database(path: Path) -> None:
    await (await Database.open(path)).close()
