"""Opens everything from the settings, in order, owns the one task group, closes in reverse. The only constructor.

A process takes part in one of two ways. The *sidecar* (one per data directory, by an operating-system lock) watches
the file, renders it and talks to the cloud for as long as it lives. Any other process (the command line, a hook) may
record and read; if no sidecar is running it does the sidecar's work once, for the moment of its command.
"""

import asyncio
import logging
import platform
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cache, partial
from typing import Final

from filelock import FileLock

from sync import __version__, health
from sync.clock import Clock, SystemClock, milliseconds, uuid7
from sync.cloud.account import Account, AccountState
from sync.cloud.contact import Contact
from sync.cloud.device_key import KEY_SERVICE, DeviceKey
from sync.cloud.exchange import Exchange, SnapshotSource
from sync.cloud.late import LateCloud
from sync.cloud.logins import Session
from sync.cloud.port import Cloud, DeviceFacts, SnapshotRow
from sync.cloud.replicator import CloudState, CloudStatus, Replicator
from sync.cloud.secret_store import open_secret_store
from sync.cloud.tokens import TokenStore, open_token_store
from sync.contract import Status
from sync.device import hardware_id
from sync.devices import Devices
from sync.document.conversation import Conversation
from sync.document.memory_file import MemoryFile
from sync.document.watcher import Watcher
from sync.errors import AlreadyRunning, DifferentUser, InvalidInput, StorageError, StorageReadOnly
from sync.files import sha256
from sync.jobs import kept_up, running
from sync.log.intake import Intake
from sync.log.log import Log
from sync.log.model import Cursor
from sync.profiles import (
    Installation,
    Profile,
    note_sidecar_pid,
    open_installation,
    open_profile,
    rename_installation,
    take_sidecar_role,
)
from sync.redaction import Redactor
from sync.replica import Replica, open_replica
from sync.settings import Settings
from sync.signals import Signal, wait_for_any

OTHER_PROCESSES: Final = 0.5  # seconds between looks whether another process has recorded something
BETWEEN_WRITES: Final = 0.6  # seconds at least between two renderings of the file caused by new events
FOR_A_HELPER: Final = 2.0  # seconds a starting sidecar waits for a command that does its work just now
SNAPSHOT_BYTES: Final = 1024 * 1024  # the server takes no larger document

log = logging.getLogger(__name__)


class Role(Enum):
    """How a process takes part."""

    SIDECAR = "sidecar"  # or AlreadyRunning
    HELPER = "helper"  # do the sidecar's work where there is none
    GUEST = "guest"  # record and read only


@dataclass(slots=True)
class App:
    """Everything a door may use. Open it with `open_app`; nothing in it works after that block has ended."""

    settings: Settings
    replica_id: str
    profile: Profile
    log: Log
    intake: Intake
    document: MemoryFile
    conversation: Conversation
    account: Account
    replicator: Replicator | None
    devices: Devices
    clock: Clock
    is_sidecar: bool
    start_warnings: tuple[str, ...] = ()
    _watcher: Watcher | None = None
    _file_touched: Signal = field(default_factory=Signal)

    def document_to_write(self) -> MemoryFile:
        """The memory file, for what only the holder of the sidecar role may do. AlreadyRunning."""
        if not self.is_sidecar:
            raise AlreadyRunning("a running sidecar keeps the memory file", hint="Ask it, over JSON-RPC, or stop it.")
        return self.document

    async def look_at_file(self) -> None:
        """Take in a hand edit that the watcher has not reported yet, so that an answer shows what was just saved."""
        if self.is_sidecar:
            await self._tolerating(self.document.look)

    async def settle(self) -> None:
        """Bring file and log together. A file that cannot be read or written now is noted and tried again."""
        await self._tolerating(self.document.settle)

    async def _tolerating(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        try:
            await work()
        except StorageError as error:
            log.warning("the memory file could not be settled: %s", error.kind)

    async def adopt_device_id(self, device_id: str) -> None:
        """The app knows the hardware better than we do: be that device from now on. A setting outranks it."""
        if device_id == self.log.device_id:
            return
        if self.settings.device_id is not None:
            raise InvalidInput(
                "deviceId differs from XIAOBAI_DEVICE_ID", field="deviceId", hint="Give the same id in both places."
            )
        await self.document.settle()  # what was recorded under the old id goes into the document first
        rename_installation(self.settings.data_dir, Installation(self.profile.folder.name, device_id))
        self.log.device_id = device_id
        await self.devices.introduce()

    async def verify(self, contact: Contact, code: str, *, accept: bool = False) -> AccountState:
        """Log in with the code that `account.logins.start` has sent."""
        return await self._enter(await self.account.logins.verify(contact, code), accept=accept)

    async def log_in(self, contact: Contact, password: str, *, accept: bool = False) -> AccountState:
        """Log in with a password."""
        return await self._enter(await self.account.logins.sign_in(contact, password), accept=accept)

    async def adopt_session(self, access_token: str, expires_at: float) -> AccountState:
        """Work with a session that the app opened."""
        return await self._enter(await self.account.identify(access_token, expires_at))

    async def _enter(self, session: Session, *, accept: bool = False) -> AccountState:
        """Every login ends here: make this profile the user's at the first time, tell the others this device's name.

        The one place that knows what becomes of a session whose user is not this profile's (DifferentUser): it is
        ended on the server, since nobody will use it.
        """
        try:
            state = await self.account.enter(session, accept=accept)
        except DifferentUser:
            await self.account.abandon(session)
            raise
        await self.devices.introduce()
        if self.replicator is not None:
            self.replicator.wake()
        return state

    async def log_out(self) -> AccountState:
        state = await self.account.log_out()
        if self.replicator is not None:
            self.replicator.wake()
        return state

    async def status(self) -> Status:
        view = await self.document.view()
        outbox = await self.log.outbox()
        cloud = await self.replicator.status() if self.replicator else CloudStatus(CloudState.OFF, None, None, Cursor())
        account = await self.account.state()
        warnings = [*self.start_warnings, *sorted(self.document.notices)]
        warnings += [self.account.warning] if self.account.warning else []
        return Status(
            account=account,
            device_id=self.log.device_id,
            device_name=self.settings.device_name,
            replica_id=self.replicator.replica_id if self.replicator else self.replica_id,
            cloud=cloud,
            pending=outbox.pending,
            quarantined=outbox.quarantined,
            document_path=str(self.settings.memory_file),
            document_sha256=view.sha256,
            warnings=tuple(warnings),
            watching=self._watcher is not None and self._watcher.alive,
            sidecar=self.is_sidecar,
            version=__version__,
        )

    async def examine(self) -> list[health.Check]:
        """What only an open program can say about its own health; see `health.around` for the rest."""
        return await health.within(self.document, self.log, self.account, self.replicator, self.clock)

    def jobs(self) -> list[Coroutine[None, None, None]]:
        """What a sidecar does besides answering."""
        self._watcher = Watcher(self.settings.memory_file, self._file_touched)
        jobs = [kept_up("file", partial(self._keep_file, self._watcher))]
        jobs.append(kept_up("other processes", self._notice_other_processes))
        if self.replicator is not None:
            jobs.append(kept_up("cloud", self.replicator.run))
        return jobs

    async def stop(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
        if self.replicator is not None:
            await self.replicator.stop()

    async def _keep_file(self, watcher: Watcher) -> None:
        """Settle whenever the file or the log moved, and every few seconds whatever anybody says."""
        while True:
            touched, recorded = self._file_touched.count, self.log.changed.count
            watcher.renew()
            await self.settle()
            await self._rest(BETWEEN_WRITES, touched)
            await self._rest(self.settings.document.poll_seconds, touched, (self.log.changed, recorded))

    async def _rest(self, seconds: float, touched: int, *others: tuple[Signal, int]) -> None:
        """Until the time is over or something happened. Our own write, which the watcher reports too, is nothing."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + seconds
        while (left := ends - loop.time()) > 0:
            happened = await wait_for_any(left, (self._file_touched, touched), *others)
            if not happened or self._file_touched.count == touched or not self.document.looked_at:
                return
            touched = self._file_touched.count

    async def _notice_other_processes(self) -> None:
        """Another process's commits wake us as our own do."""
        known = await self.log.newest_position()
        seen = await self.log.database.data_version()
        while True:
            await asyncio.sleep(OTHER_PROCESSES)
            now = await self.log.database.data_version()
            if now == seen:
                continue
            seen = now
            newest = await self.log.newest_position()
            if newest > known:
                known = newest
                self.log.changed.set()


@asynccontextmanager
async def open_app(
    settings: Settings, role: Role, *, clock: Clock | None = None, cloud: Cloud | None = None
) -> AsyncIterator[App]:
    """Everything, in order. Raises AlreadyRunning, SettingsError, StorageError before anything was started."""
    async with AsyncExitStack() as stack:
        app = await _construct(settings, role, clock or SystemClock(), cloud, stack)
        if role is Role.SIDECAR:
            stack.push_async_callback(app.stop)
            await app.document.view()  # what a glimpse has answered may come back as the base of a save
            await app.devices.introduce()  # a host may have been renamed since the login
            await stack.enter_async_context(running(app.jobs()))
        elif app.is_sidecar:
            await app.settle()
        yield app
        if app.is_sidecar:
            await app.settle()


async def _construct(settings: Settings, role: Role, clock: Clock, cloud: Cloud | None, stack: AsyncExitStack) -> App:
    installation = open_installation(settings.data_dir, hardware_id)
    profile = open_profile(settings.data_dir, installation)
    lock = _take_role(settings, role)
    if lock is not None:
        stack.callback(lock.release)
    replica = await open_replica(
        profile.database, settings, clock, sidecar=lock is not None, serving=role is Role.SIDECAR
    )
    stack.push_async_callback(replica.database.close)
    redactor = Redactor(extra_patterns=settings.redaction.patterns)
    session_id = f"sess_{clock.now():%Y%m%d}_{uuid7(milliseconds(clock.now()), clock.random_bytes).hex[-8:]}"
    device_id = settings.device_id or installation.device_id
    events = Log(replica.database, clock, device_id=device_id, session_id=session_id)
    document = MemoryFile(
        settings.memory_file,
        events,
        redactor,
        clock=clock,
        options=settings.document,
        app_cache=settings.app_db,
        write_back=settings.app_db_write_back,
    )
    cloud = cloud or _cloud(settings, clock)
    if cloud is not None:
        stack.push_async_callback(cloud.close)
    tokens = _token_store(settings, profile)
    account = Account(replica.database, cloud, tokens, lock=profile.folder / "session.lock", clock=clock)
    if replica.owner_lost:
        await account.recognise_owner()
    replicator = None
    if cloud is not None:
        snapshots, key = _snapshots(document, events, redactor), _device_key(settings, profile)
        replicator = _replicator(replica, events, account, snapshots, key, clock=clock, settings=settings)
    kept_devices = profile.folder / "devices.json"
    return App(
        settings=settings,
        replica_id=replica.replica_id,
        profile=profile,
        log=events,
        intake=Intake(redactor.for_leaving(), store_messages=settings.privacy.store_messages),
        document=document,
        conversation=Conversation(events, document, replicator, redactor, clock=clock, settings=settings),
        account=account,
        replicator=replicator,
        devices=Devices(events, account, redactor, kept=kept_devices, clock=clock, settings=settings),
        clock=clock,
        is_sidecar=lock is not None,
        start_warnings=replica.warnings,
    )


def _replicator(
    replica: Replica,
    events: Log,
    account: Account,
    snapshots: SnapshotSource,
    key: DeviceKey,
    *,
    clock: Clock,
    settings: Settings,
) -> Replicator:
    facts = DeviceFacts(
        replica.replica_id, settings.device_name, platform.system(), __version__, takeover=replica.former
    )
    exchange = Exchange(events, account, facts, snapshots, clock=clock, options=settings.sync, key=key)
    return Replicator(events, exchange, clock=clock, options=settings.sync)


def _cloud(settings: Settings, clock: Clock) -> Cloud | None:
    if settings.supabase_url is None or settings.supabase_key is None:
        return None
    key = settings.supabase_key.get_secret_value()
    return LateCloud(settings.supabase_url, key, timeout=settings.sync.timeout_seconds, clock=clock)


def _take_role(settings: Settings, role: Role) -> FileLock | None:
    if role is Role.GUEST:
        return None
    try:
        lock = take_sidecar_role(settings.data_dir, patience=FOR_A_HELPER if role is Role.SIDECAR else 0.0)
    except (AlreadyRunning, StorageReadOnly):
        if role is Role.SIDECAR:
            raise
        return None
    note_sidecar_pid(settings.data_dir)
    return lock


def _token_store(settings: Settings, profile: Profile) -> Callable[[], TokenStore]:
    """The token store, opened at its first use: a start without login need not load the keychain."""
    prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
    return cache(lambda: open_token_store(profile.tokens, profile.folder.name, prefer_file=prefer_file))


def _device_key(settings: Settings, profile: Profile) -> DeviceKey:
    """The key of this installation and account, kept where the session is."""
    prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
    path = profile.folder / "device-key"
    opened = cache(lambda: open_secret_store(path, KEY_SERVICE, profile.folder.name, prefer_file=prefer_file))
    return DeviceKey(opened, lock=profile.folder / "device-key.lock")


def _snapshots(document: MemoryFile, events: Log, redactor: Redactor) -> SnapshotSource:
    """The document as it may leave, redacted anew only when it has changed."""
    leaving = redactor.for_leaving()
    last: SnapshotRow | None = None
    of = ""

    async def snapshot() -> SnapshotRow | None:
        nonlocal last, of
        view = await document.view()
        if not view.exists:
            return None
        if view.sha256 != of:
            content = leaving.clean(view.text.replace("\0", ""))
            size = len(content.encode())
            through = await events.last_own_seq()
            last = SnapshotRow(content, sha256(content.encode()), through) if size <= SNAPSHOT_BYTES else None
            of = view.sha256
        return last

    return snapshot
