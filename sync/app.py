"""Opens everything from the settings, in order, owns the one task group, closes in reverse. The only constructor.

A process takes part in one of two ways. The *sidecar* (one per data directory, by an operating-system lock) watches
the file, renders it and talks to the cloud for as long as it lives. Any other process (the command line, a hook) may
record and read; if no sidecar is running it does the sidecar's work once, for the moment of its command, and once more
for whoever recorded something meanwhile and found the role taken.
"""

import asyncio
import importlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from filelock import FileLock

from sync import __version__, health, leftovers, parts, switch
from sync.clock import Clock, SystemClock
from sync.cloud.account import Account
from sync.cloud.listener import Listener
from sync.cloud.logins import Session
from sync.cloud.port import Cloud
from sync.cloud.replicator import CloudState, CloudStatus, Replicator
from sync.contract import Status
from sync.device import hardware_id
from sync.devices import Devices
from sync.document.cloud_copy import CloudCopy
from sync.document.conversation import Conversation
from sync.document.memory_file import MemoryFile
from sync.document.watcher import Watcher
from sync.entrance import Entrance, Owned
from sync.errors import AlreadyRunning, InvalidInput, StorageError
from sync.files import Stamp, stamp
from sync.insights.cache import INSIGHTS, Cache
from sync.jobs import kept_up, running
from sync.log.intake import Intake
from sync.log.log import Log, to_be_sent
from sync.log.model import Cursor
from sync.log.patrol import Patrol
from sync.profiles import (
    INSTALLATION,
    Profile,
    adopted,
    change_installation,
    open_installation,
    open_profile,
)
from sync.redaction import Redactor
from sync.replica import open_replica
from sync.role import is_free, is_ours, role_if_free
from sync.settings import Settings
from sync.signals import Signal, wait_for_any
from sync.tree.room import EventStore
from sync.troubles import Troubles
from sync.vault.vault import Vault

if TYPE_CHECKING:
    from sync.archive.room import Archive
    from sync.insights.room import Insights
    from sync.memory.daily.room import Daily
    from sync.recall.search import Recall
    from sync.retention.room import Retention

OTHER_PROCESSES: Final = 0.5  # seconds between looks whether another process has recorded something
BETWEEN_WRITES: Final = 0.6  # seconds at least between two renderings of the file caused by new events
UNREAD_FILE: Final = 0.05  # seconds between looks whether the first file of a memory has been read
KEPT_BY_A_COMMAND: Final = 20  # sessions; whoever gave it waits for them
AFTER_THE_START: Final = 1.0  # seconds that the first answers have before the word index is looked at

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
    entrance: Entrance
    replicator: Replicator | None
    devices: Devices
    events: EventStore
    insights: "Callable[[], Insights]"
    recall: "Callable[[], Recall]"
    daily: "Callable[[], Daily]"
    archive: "Callable[[], Archive]"
    retention: "Callable[[], Retention]"
    clock: Clock
    is_sidecar: bool
    insights_cache: Cache
    start_warnings: tuple[str, ...] = ()
    _watcher: Watcher | None = None
    _looks: set[asyncio.Task[None]] = field(default_factory=set)
    _file_touched: Signal = field(default_factory=Signal)
    _troubles: Troubles = field(default_factory=lambda: Troubles(log))

    patrol: Patrol = field(init=False)

    def __post_init__(self) -> None:
        self.patrol = Patrol(self.log)

    def document_to_write(self) -> MemoryFile:
        """The memory file, for what only the holder of the sidecar role may do. AlreadyRunning."""
        if not self.is_sidecar:
            raise AlreadyRunning("a running sidecar keeps the memory file", hint="Ask it, over JSON-RPC, or stop it.")
        return self.document

    async def look_at_file(self, *, within: float | None = None) -> None:
        """Take in a hand edit that the watcher has not reported yet, so that an answer shows what was just saved.

        `within`: seconds after which an answer is given with what is known before that edit, if there is anything. The
        edit goes on being taken in.
        """
        if not self.is_sidecar or self.document.looked_at:
            return
        look = asyncio.create_task(self._tolerating("file", self.document.look))
        self._looks.add(look)  # a loop keeps no task alive; the last settling of a process waits for it
        look.add_done_callback(self._looks.discard)
        await asyncio.wait([look], timeout=within)
        while not look.done() and not self.document.versions.can_answer:
            await asyncio.wait([look], timeout=UNREAD_FILE)
        if look.done():
            await look

    async def settle(self) -> None:
        """Bring file and log together. A file that cannot be read or written now is noted and tried again."""
        await self._tolerating("file", self.document.settle)
        if self.log.database.owes_purge:
            await self._tolerating("purge", partial(self.log.database.purge, patient=False))
        await self._tolerating("insights", self.insights_cache.let_go)  # it may hold what was just forgotten

    async def let_go(self, *, whole: bool = False) -> None:
        """Carry out now what was just asked to be forgotten or corrected, wherever it stands; a sidecar does it else.

        `whole`: nothing of it is left in freed pages of the database either. Raises StorageError.
        """
        if self.is_sidecar:
            await self.settle()
            await self._tolerating("daily", self.daily().settle)
            await self._tolerating("recall", self.recall().let_go)
        await self.log.database.purge(whole=whole and self.is_sidecar)
        if self.is_sidecar:
            await self.retention().withdraw()  # last: where an archive cannot be written, it alone is left

    async def keep_ended(self) -> None:
        """Keep the sessions that are over, where no sidecar is there to do it."""

        async def keep() -> None:
            daily = self.daily()
            if await daily.keeper.keep_ended(most=KEPT_BY_A_COMMAND):
                await daily.settle()

        await self._tolerating("sessions", keep)

    async def _tolerating(self, what: str, work: Callable[[], Coroutine[None, None, object]]) -> None:
        """What goes on failing, at each look at the file, is told once, until it has gone well."""
        try:
            await work()
        except StorageError as error:
            told = f"files and log could not be brought together: {error.message}. {error.hint or ''}"
            self._troubles.met(what, told)
        else:
            self._troubles.over(what)

    async def adopt_device_id(self, device_id: str) -> None:
        """The app knows the hardware better than we do: be that device from now on. A setting outranks it."""
        if device_id == self.log.device_id:
            return
        if self.settings.device_id is not None:
            raise InvalidInput(
                "deviceId differs from XIAOBAI_DEVICE_ID", field="deviceId", hint="Give the same id in both places."
            )
        await self.document.settle()  # what was recorded under the old id goes into the document first
        hardware = await asyncio.to_thread(hardware_id)
        now = change_installation(self.settings.data_dir, lambda now: adopted(now, device_id, hardware))
        self.log.device_id, self.log.earlier_ids = now.speaks_as(None)
        await self.devices.introduce()

    async def status(self) -> Status:
        view = await self.document.view()
        outbox = await to_be_sent(self.log)
        cloud = await self.replicator.status() if self.replicator else CloudStatus(CloudState.OFF, None, None, Cursor())
        warnings = [*self.start_warnings, *switch.parked(self.profile), *sorted(await self.document.warnings())]
        warnings += [one for one in (self.account.warning, self.patrol.warning) if one]
        return Status(
            account=await self.account.state(),
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
        return await health.within(
            self.document, self.log, self.account, self.replicator, self.clock, self.intake.redactor
        )

    def jobs(self) -> list[Coroutine[None, None, None]]:
        """What a sidecar does besides answering."""
        self._watcher = Watcher(self.settings.memory_file, self._file_touched)
        jobs = [kept_up("file", partial(self._keep_file, self._watcher))]
        jobs += [kept_up("other processes", self._notice_other_processes), *self.events.jobs()]
        jobs += [kept_up("recall", self._keep_index), kept_up("patrol", self.patrol.run)]
        jobs += parts.daily_jobs(self.daily)
        archives, changed = self.profile.archives, self.log.changed
        jobs += parts.retention_jobs(self.retention, self.settings, archives, changed, self.settle)
        if self.replicator is not None:
            jobs.append(kept_up("cloud", self.replicator.run))
            if self.settings.sync.realtime:
                timeout = self.settings.sync.timeout_seconds
                listener = Listener(self.account, self.replicator, clock=self.clock, timeout=timeout)
                jobs.append(kept_up("realtime", listener.run))
        return jobs

    async def stop(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
        if self.replicator is not None:
            await self.replicator.stop()

    async def _keep_index(self) -> None:
        """Follow the log with the word index, once a start has had its moment."""
        await asyncio.sleep(AFTER_THE_START)
        await asyncio.to_thread(importlib.import_module, "sync.recall.search")
        await self.recall().keep_up(lambda: self.replicator is not None and self.replicator.pulls.under_way)

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
        database = self.log.database
        seen = database.token()
        known = await self.log.newest_position()
        installed: Stamp | None = None
        while True:
            await asyncio.sleep(OTHER_PROCESSES)
            if (now := stamp(self.settings.data_dir / INSTALLATION)) != installed:
                installed = now
                if open_installation(self.settings.data_dir, hardware_id).profile != self.profile.name:
                    self.entrance.left.set()  # a login by the command line
            token = database.token()
            if token == seen:
                continue
            newest = await self.log.newest_position()
            if newest > known:
                known = newest
                self.log.changed.set()
            if database.is_steady(token):
                seen = token


@asynccontextmanager
async def open_app(
    settings: Settings,
    role: Role,
    *,
    held: FileLock | None = None,
    handed: Session | None = None,
    clock: Clock | None = None,
    cloud: Cloud | None = None,
) -> AsyncIterator[App]:
    """Everything, in order. Raises AlreadyRunning, SettingsError, StorageError before anything was started.

    `held`: the sidecar's role, where the caller has it already. `handed`: the app's session to go on with, after
    another account was left.
    """
    async with AsyncExitStack() as stack:
        taken = None
        if held is None and role is not Role.GUEST:
            held = taken = stack.enter_context(role_if_free(settings, needed=role is Role.SIDECAR))
        app = await _construct(settings, role, clock or SystemClock(), cloud, stack, is_sidecar=held is not None)
        if handed is not None:
            await app.account.enter(handed)
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
            await app.events.settle()
        if role is Role.HELPER and taken is not None and not app.entrance.left.is_set():
            await _leave_level(app, taken)
    if role is Role.HELPER and held is None and is_free(settings):  # whoever had it may have left before we spoke
        async with open_app(settings, Role.HELPER, clock=clock, cloud=cloud):
            pass


async def _leave_level(app: App, role: FileLock) -> None:
    """Keep sessions, give the role back, and take it again where something was said that nobody has taken in.

    Whoever says something after the last look finds the role free.
    """
    seen = -1
    while (newest := await app.log.newest_position()) > seen and is_ours(role):
        if seen >= 0:
            await app.settle()
            await app.events.settle()
        seen = newest
        await app.keep_ended()
        role.release()


async def _construct(
    settings: Settings, role: Role, clock: Clock, cloud: Cloud | None, stack: AsyncExitStack, *, is_sidecar: bool
) -> App:
    installation = open_installation(settings.data_dir, hardware_id)
    profile = open_profile(settings.data_dir, installation)
    vault, serving = Vault.of(settings), role is Role.SIDECAR
    replica = await open_replica(profile.database, vault, settings, clock, sidecar=is_sidecar, serving=serving)
    stack.push_async_callback(replica.database.close)
    redactor = Redactor(extra_patterns=settings.redaction.patterns, enabled=settings.redaction.enabled)
    if (cloud := cloud or parts.cloud(settings, clock)) is not None:
        stack.push_async_callback(cloud.close)
    vectors, events = Signal() if serving else None, parts.log(replica, settings, installation, clock, cloud)
    document = parts.memory_file(settings, profile, vault, events, redactor, clock)
    if is_sidecar:
        await leftovers.tidy(settings, profile, installation, document, clock, settings.tree_base)
        rooms = parts.rooms(settings, profile, vault, events, document, redactor, clock)
        installation = await switch.complete(rooms, installation, clock)
    account = parts.account(replica, cloud, settings, profile, clock)
    replicator = None
    if is_sidecar:
        await account.recognise_owner()
    if cloud is not None:
        copy = CloudCopy(document, redactor, may_take_in=is_sidecar)
        facts = parts.device_facts(replica, installation, settings)
        replicator = parts.replicator(facts, profile, events, account, copy, clock=clock, settings=settings)
    devices = Devices(events, account, redactor, kept=profile.folder / "devices.json", clock=clock, settings=settings)
    intake = Intake(redactor.for_leaving(), settings.privacy.store_messages, local=redactor, clock=clock)
    return App(
        settings=settings,
        replica_id=replica.replica_id,
        profile=profile,
        log=events,
        intake=intake,
        document=document,
        conversation=Conversation(events, document, replicator, redactor, clock=clock, settings=settings),
        account=account,
        entrance=parts.entrance(settings, Owned(profile, events, document), vault, account, devices, replicator, clock),
        replicator=replicator,
        devices=devices,
        events=await parts.event_store(settings, profile, replica, events, intake, redactor, clock),
        insights=parts.insights(profile, events, clock, writes=is_sidecar),
        recall=parts.recall(events, clock, settings, profile, redactor, stack, moves=is_sidecar, vectors=vectors),
        daily=parts.daily(settings, profile, events, intake, redactor, clock, moves=is_sidecar, vectors=vectors),
        archive=parts.archive(events, intake, document, clock),
        retention=parts.retention(settings, profile, events, intake, clock),
        clock=clock,
        is_sidecar=is_sidecar,
        insights_cache=Cache(events, profile.folder / INSIGHTS),
        start_warnings=(*replica.warnings, *settings.warnings),
    )
