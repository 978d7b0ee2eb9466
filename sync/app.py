"""What an interface may use while the application is open, and the background jobs of a sidecar."""

import asyncio
import importlib
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from sync import __version__, fact_services, lazy_recall, services
from sync.accounts import switching
from sync.accounts.devices import DeviceService
from sync.accounts.login import LoginFlow
from sync.accounts.profiles import (
    Profile,
    change_installation,
    with_device_id,
)
from sync.clock import Clock
from sync.cloud.auth.account import Account
from sync.cloud.status import CloudState, CloudStatus
from sync.contract.status import AppStatus
from sync.daily.open_sessions import OpenSessionTracker
from sync.document.read.memory_service import MemoryService
from sync.document.surfaces.memory_file import MemoryFile
from sync.document.surfaces.notices import BLOCKING
from sync.erasure_service import ErasureService
from sync.errors import AlreadyRunning, InvalidInput, StorageError
from sync.forget_service import ForgetService
from sync.insights.cache import CACHE_FILE, InsightsCache
from sync.jsonl.service import EventFilesService
from sync.lan.access import LanAccess
from sync.log.ingest import DraftBuilder
from sync.log.integrity.scrubber import LogScrubber
from sync.log.log import EventLog, user_visible_outbox
from sync.log.model import RemoteCursor
from sync.log.projections.external import ExternalProjectionRunner
from sync.other_processes import watch_other_processes
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change
from sync.runtime.log_once import LogOnce
from sync.runtime.supervision import supervise
from sync.settings.settings import Settings
from sync.system.hardware_id import read_hardware_id

if TYPE_CHECKING:
    from sync.archive.service import ArchiveService
    from sync.cloud.replication.replicator import Replicator
    from sync.context.service import ContextService
    from sync.daily.service import DailyService
    from sync.document.surfaces.watcher import Watcher
    from sync.insights.service import InsightsService
    from sync.lessons.files.live_view import LessonFiles
    from sync.lessons.service import LessonService
    from sync.recall.search import RecallService
    from sync.retention.service import RetentionService
    from sync.startup.checks import HealthCheck
    from sync.understanding.service import FactService

MIN_WRITE_INTERVAL: Final = 0.6  # between two renderings of the file caused by new events
FIRST_READ_POLL_SECONDS: Final = 0.05  # how often to check whether a memory's first file has been read
SESSIONS_PER_COMMAND: Final = 20  # the command waits for them
INDEXER_START_DELAY: Final = 1.0  # seconds for the first answers before the word index is opened

log = logging.getLogger(__name__)


@dataclass(slots=True)
class App:
    """Everything that an interface may use. Open it with `open_app`; nothing in it works after that block."""

    settings: Settings
    replica_id: str
    profile: Profile
    log: EventLog
    draft_builder: DraftBuilder
    document: MemoryFile
    memory_service: MemoryService
    account: Account
    login_flow: LoginFlow
    replicator: "Replicator | None"
    lan: LanAccess
    devices: DeviceService
    event_files: EventFilesService
    insights: "Callable[[], InsightsService]"
    lessons: "Callable[[], LessonService]"
    recall: "Callable[[], RecallService]"
    daily: "Callable[[], DailyService]"
    archive: "Callable[[], ArchiveService]"
    retention: "Callable[[], RetentionService]"
    clock: Clock
    is_sidecar: bool
    start_warnings: tuple[str, ...] = ()
    _watcher: "Watcher | None" = None
    _ingest_tasks: set[asyncio.Task[None]] = field(default_factory=set)
    _file_changes: ChangeCounter = field(default_factory=ChangeCounter)
    _failure_log: LogOnce = field(default_factory=lambda: LogOnce(log))
    log_scrubber: LogScrubber = field(init=False)
    erasure: ErasureService = field(init=False)
    forgetting: ForgetService = field(init=False)
    lesson_files: "Callable[[], LessonFiles]" = field(init=False)
    lesson_file_writer: ExternalProjectionRunner[None] = field(init=False)
    notes: Callable[[], services.NotesAccess] = field(init=False)
    facts: "Callable[[], FactService]" = field(init=False)
    context: "Callable[[], ContextService]" = field(init=False)
    _open_sessions: OpenSessionTracker = field(init=False)
    model: fact_services.ModelAccess = field(init=False)
    _insights_cache: InsightsCache = field(init=False)

    def __post_init__(self) -> None:
        self.log_scrubber = LogScrubber(self.log)
        self._open_sessions = OpenSessionTracker(self.log, self.clock, self.settings.sessions.idle_minutes)
        self.facts = fact_services.facts(self.log, self.draft_builder.redactor, self.clock)
        extraction = fact_services.model_extraction(self.log, self.draft_builder.redactor, self.facts, self.clock)
        self.model = fact_services.ModelAccess(extraction, self.memory_service, self.settings, self.profile)
        self._insights_cache = InsightsCache(self.log, self.profile.folder / CACHE_FILE)
        self.lesson_files = services.lesson_files(self.settings, self.profile, self.lessons)
        folder = services.lessons_folder(self.settings, self.profile)
        self.lesson_file_writer = services.lesson_file_writer(self.lesson_files, folder, self.log, self.clock)
        parts = (self.log, self.draft_builder, self.account, self.replicator, self.event_files, self.daily, self.recall)
        self.erasure = ErasureService(
            *parts,
            lesson_files=self.lesson_files,
            notes=lambda: self.notes().erasure,
            facts=self.facts,
            retention=self.retention,
            reconcile_document=self.reconcile_memory_file,
            blocked_document=lambda: [str(self.settings.memory_file)] if self.document.notices & BLOCKING else [],
            log_storage_errors=self._log_storage_errors,
            is_sidecar=self.is_sidecar,
        )
        seconds, serves = self.settings.privacy.undo_seconds, lambda: self._watcher is not None
        self.forgetting = ForgetService(self.erasure, self.facts, self.daily, seconds, self.clock, serves)
        recall, facts, erase = self.recall, self.facts, self.erasure.request_texts
        self.context = lazy_recall.context(self.log, self.memory_service, recall, facts, self.clock, self.settings)
        self.notes = services.notes(self.log, self.draft_builder, self.clock, self.settings, self.recall, erase)

    def writable_document(self) -> MemoryFile:
        """The memory file, for what only the holder of the sidecar lock may do. Raises AlreadyRunning."""
        if not self.is_sidecar:
            raise AlreadyRunning("a running sidecar keeps the memory file", hint="Ask it, over JSON-RPC, or stop it.")
        return self.document

    async def ingest_file_edit(self, *, timeout: float | None = None) -> None:
        """Ingest a manual edit that the watcher has not reported yet, so that an answer shows what was just saved.

        After `timeout` seconds the answer is given without the edit, if there is content. The edit is still ingested.
        """
        if not self.is_sidecar or self.document.is_unchanged:
            return
        refresh = asyncio.create_task(self._log_storage_errors("file", self.document.refresh))
        self._ingest_tasks.add(refresh)  # an event loop keeps only weak references to tasks
        refresh.add_done_callback(self._ingest_tasks.discard)
        await asyncio.wait([refresh], timeout=timeout)
        while not refresh.done() and not self.document.versions.has_content:
            await asyncio.wait([refresh], timeout=FIRST_READ_POLL_SECONDS)
        if refresh.done():
            await refresh

    async def reconcile_memory_file(self) -> None:
        """Reconcile file and log. If the file cannot be read or written now, log that and try again later."""
        await self._log_storage_errors("file", self.document.reconcile)
        if self.log.database.purge_pending:
            await self._log_storage_errors("purge", partial(self.log.database.purge, wait_for_readers=False))
        await self._log_storage_errors("insights", self._insights_cache.remove_if_stale)  # it may hold erased text

    async def write_files(self) -> None:
        """Reconcile the memory file and append to the event files, for a process that exits."""
        await self.reconcile_memory_file()
        await self.event_files.write_pending()
        await self._log_storage_errors("lessons", partial(self.lesson_file_writer.catch_up, batches=1))

    async def record_ended_sessions(self) -> None:
        """Record the sessions that have ended, if no sidecar does."""

        async def record() -> None:
            if not await self._open_sessions.ended_sessions():
                await self._open_sessions.store_offset()
                return
            await self.daily().worker.record_ended_sessions(limit=SESSIONS_PER_COMMAND)
            await self.daily().reconcile()

        await self._log_storage_errors("sessions", record)

    async def _log_storage_errors(self, key: str, work: Callable[[], Coroutine[None, None, object]]) -> None:
        """Log a lasting failure once, until the work succeeds."""
        try:
            await work()
        except StorageError as error:
            message = f"files and log could not be brought together: {error.message}. {error.hint or ''}"
            self._failure_log.report(key, message)
        else:
            self._failure_log.clear(key)

    async def adopt_device_id(self, device_id: str) -> None:
        """Use the device id that the app knows. A setting takes precedence over it."""
        if device_id == self.log.device_id:
            return
        if self.settings.device_id is not None:
            raise InvalidInput(
                "deviceId differs from XIAOBAI_DEVICE_ID", field="deviceId", hint="Give the same id in both places."
            )
        await self.document.reconcile()  # the document first takes what was recorded under the old id
        hardware = await asyncio.to_thread(read_hardware_id)
        await self.devices.admit_successor(device_id)
        now = change_installation(self.settings.data_dir, lambda now: with_device_id(now, device_id, hardware))
        self.log.device_id, self.log.former_device_ids = now.device_identity(None)
        await self.devices.record_own_name()

    async def status(self) -> AppStatus:
        view = await self.document.view()
        outbox = await user_visible_outbox(self.log)
        cloud = (
            await self.replicator.status()
            if self.replicator
            else CloudStatus(CloudState.OFF, None, None, RemoteCursor())
        )
        account = await self.account.state()
        if account.state in {"guest", "logged_out"} and cloud.state is CloudState.CONNECTING:
            cloud = replace(cloud, state=CloudState.SIGNED_OUT)  # a command has not asked
        parked, shown = switching.parked_warnings(self.profile), sorted(await self.document.warnings())
        named = self.account.warning, self.log_scrubber.warning, *await self.memory_service.warnings(self._watcher)
        warnings = [*self.start_warnings, *parked, *shown, *filter(None, named)]
        return AppStatus(
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
            sidecar=self._watcher is not None,  # a command that holds the sidecar lock for a moment has none
            version=__version__,
            lan_peers=tuple(self.lan.peer_ids()),
            model=await self.model.status(),
            forgetting=tuple(await self.forgetting.waiting()),
            foreign_changes=await fact_services.foreign_changes(self.log, self.facts),
        )

    async def check_health(self) -> "list[HealthCheck]":
        """The checks that need an open application; `doctor.check_environment` does the rest."""
        from sync.startup import checks, doctor, fact_check, lan_check, lesson_check, notes_check  # noqa: PLC0415

        ours: dict[str, Callable[[], object]] = {
            "lessons": lambda: lesson_check.check_lessons(self.lesson_files()),
            "facts": lambda: fact_check.check_facts(self.facts()),
            lan_check.NAME: lambda: lan_check.check_lan(self.lan),
            "notes": lambda: notes_check.check_notes(self.notes().queries.known_drift),
        }
        parts = (self.document, self.log, self.account, self.replicator, self.clock, self.draft_builder.redactor)
        return [*await doctor.check_open_app(*parts), *await checks.run_checks(ours)]

    def background_jobs(self) -> list[Coroutine[None, None, None]]:
        """A sidecar's work besides answering."""
        from sync.document.surfaces.watcher import Watcher  # noqa: PLC0415 - no command watches

        self._watcher = Watcher(self.settings.memory_file, self._file_changes)
        jobs = [supervise("file", partial(self._run_file_sync, self._watcher))]
        jobs.append(supervise("forgetting", self.forgetting.run))
        watch = partial(
            watch_other_processes, self.log, self.settings.data_dir, self.profile, self.login_flow.profile_left
        )
        jobs += [supervise("other processes", watch), *self.event_files.jobs()]
        jobs += [supervise("recall", self._run_indexer), supervise("patrol", self.log_scrubber.run)]
        jobs += [*services.daily_jobs(self.daily), supervise("model", self.model.run)]
        jobs.append(supervise("lessons", self.lesson_file_writer.run))
        archives, changed = self.profile.archives_folder, self.log.changed
        jobs += services.retention_jobs(self.retention, self.settings, archives, changed, self.reconcile_memory_file)
        if self.settings.lan.enabled != "off":
            jobs.append(supervise("local network", self.lan.run))
        if self.replicator is not None:
            jobs.append(supervise("cloud", self.replicator.run))
            if self.settings.sync.realtime:
                from sync.cloud.replication.realtime_supervisor import RealtimeSupervisor  # noqa: PLC0415

                timeout = self.settings.sync.timeout_seconds
                listener = RealtimeSupervisor(self.account, self.replicator, clock=self.clock, timeout=timeout)
                jobs.append(supervise("realtime", listener.run))
        return jobs

    async def stop(self) -> None:
        if self._watcher is not None:
            self._watcher.stop()
        if self.replicator is not None:
            if self.is_sidecar:
                await self.replicator.send_document()
            await self.replicator.stop()

    async def _run_indexer(self) -> None:
        """Keep the word index up to date, some time after the start."""
        await asyncio.sleep(INDEXER_START_DELAY)
        await asyncio.to_thread(importlib.import_module, "sync.recall.search")
        await self.recall().run_indexer(
            lambda: self.replicator is not None and self.replicator.pull_progress.is_pulling
        )

    async def _run_file_sync(self, watcher: "Watcher") -> None:
        """Reconcile whenever the file or the log changed, and every few seconds."""
        while True:
            file_count, log_count = self._file_changes.count, self.log.changed.count
            watcher.renew()
            await self.reconcile_memory_file()
            await self._wait_for_changes(MIN_WRITE_INTERVAL, file_count)
            await self._wait_for_changes(self.settings.document.poll_seconds, file_count, (self.log.changed, log_count))

    async def _wait_for_changes(self, seconds: float, file_count: int, *changes: tuple[ChangeCounter, int]) -> None:
        """Wait until the time is over or something changed. The watcher also reports our own writes; ignore those."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + seconds
        while (left := ends - loop.time()) > 0:
            happened = await wait_for_any_change(left, (self._file_changes, file_count), *changes)
            if not happened or self._file_changes.count == file_count or not self.document.is_unchanged:
                return
            file_count = self._file_changes.count
