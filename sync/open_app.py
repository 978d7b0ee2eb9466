"""Open everything from the settings, in order; own the one task group; close in reverse.

The *sidecar*, one process per data directory by an operating-system lock, watches the file, renders it and talks to the
cloud. Any other process (a command, a hook) records and reads; if no sidecar runs, it does the sidecar's work once.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum

from filelock import FileLock

from sync import lazy_recall, services, wiring
from sync.accounts import switching
from sync.accounts.profiles import (
    create_profile_folder,
    open_installation,
)
from sync.accounts.sidecar_lock import is_sidecar_lock_free, reacquire_if_free, try_sidecar_lock
from sync.app import App
from sync.clock import Clock, SystemClock
from sync.cloud.auth_port import AuthSession
from sync.cloud.port import Cloud
from sync.document.read.memory_service import MemoryService
from sync.document.surfaces.cloud_document import CloudDocument
from sync.encryption.database_encryption import DatabaseEncryption
from sync.log.ingest import DraftBuilder
from sync.redaction import Redactor
from sync.runtime.change_counter import ChangeCounter
from sync.runtime.supervision import background_tasks
from sync.settings.settings import Settings
from sync.startup import cleanup
from sync.startup.open_database import open_database
from sync.system.hardware_id import read_hardware_id


class AppMode(Enum):
    """What a process does."""

    SIDECAR = "sidecar"  # the sidecar's work; raises AlreadyRunning
    HELPER = "helper"  # the sidecar's work if no sidecar runs
    GUEST = "guest"  # record and read only


@asynccontextmanager
async def open_app(
    settings: Settings,
    mode: AppMode,
    *,
    sidecar_lock: FileLock | None = None,
    app_session: AuthSession | None = None,
    clock: Clock | None = None,
    cloud: Cloud | None = None,
) -> AsyncIterator[App]:
    """Open the application. Raises AlreadyRunning, SettingsError, StorageError before anything was started.

    `sidecar_lock`: the lock, if the caller holds it already. `app_session`: the app's session, after a switch from
    another account.
    """
    async with AsyncExitStack() as stack:
        own_lock = None
        if sidecar_lock is None and mode is not AppMode.GUEST:
            sidecar_lock = own_lock = stack.enter_context(try_sidecar_lock(settings, required=mode is AppMode.SIDECAR))
        is_sidecar = sidecar_lock is not None
        app = await _build_app(settings, mode, clock or SystemClock(), cloud, stack, is_sidecar=is_sidecar)
        if app_session is not None:
            await app.account.log_in(app_session)
        if mode is AppMode.SIDECAR:
            stack.push_async_callback(app.stop)
            await app.document.view()  # a cold load's answer may come back as the base of a save
            await app.devices.record_own_name()  # the host may have been renamed since the login
            await stack.enter_async_context(background_tasks(app.background_jobs()))
        elif app.is_sidecar:
            await app.forgetting.carry_out_due()
            await app.reconcile_memory_file()
        yield app
        if mode is AppMode.HELPER and own_lock is not None and not app.login_flow.profile_left.is_set():
            await _finish_helper(app, own_lock)
        elif app.is_sidecar:
            await app.write_files()
    # the lock's former holder may have finished before we recorded
    if mode is AppMode.HELPER and sidecar_lock is None and is_sidecar_lock_free(settings):
        async with open_app(settings, AppMode.HELPER, clock=clock, cloud=cloud):
            pass


async def _finish_helper(app: App, lock: FileLock) -> None:
    """Write the files, record ended sessions, release the lock; again while other processes have recorded something.

    A process that records after the last check finds the lock free. So the position is read before the files are
    written: what is recorded in between makes another round.
    """
    seen = -1
    while (newest := await app.log.newest_position()) > seen and reacquire_if_free(lock):
        await app.write_files()
        await app.record_ended_sessions()
        lock.release()
        seen = newest


async def _build_app(
    settings: Settings, mode: AppMode, clock: Clock, cloud: Cloud | None, stack: AsyncExitStack, *, is_sidecar: bool
) -> App:
    encryption, serving = DatabaseEncryption.of(settings), mode is AppMode.SIDECAR
    installation = open_installation(settings.data_dir, read_hardware_id, encryption, settings.jsonl_root)
    profile, warning = create_profile_folder(settings.data_dir, installation), installation.warning
    opened = await open_database(profile.database, encryption, settings, clock, sidecar=is_sidecar, serving=serving)
    stack.push_async_callback(opened.database.close)
    redactor = Redactor(extra_patterns=settings.redaction.patterns, enabled=settings.redaction.enabled)
    if (cloud := cloud or wiring.cloud(settings, clock)) is not None:
        stack.push_async_callback(cloud.close)
    events = wiring.event_log(opened, settings, installation, clock, cloud)
    document = wiring.memory_file(settings, profile, encryption, events, redactor, clock)
    active = services.active_profile(settings, profile, encryption, events, document, redactor, clock)
    account = wiring.account(opened, cloud, settings, profile, clock)
    if is_sidecar:
        await cleanup.clean_up_after_crash(settings, profile, installation, document, clock, settings.jsonl_root)
        installation = await switching.complete_switch(active, installation, clock)
        await account.restore_owner()
    replicator, key, vectors = None, wiring.device_key(settings, profile), ChangeCounter() if serving else None
    if cloud is not None:
        copy = CloudDocument(document, redactor, may_import=is_sidecar)
        facts = wiring.device_facts(opened, installation, settings)
        replicator = wiring.replicator(facts, events, account, copy, clock=clock, settings=settings, key=key)
    devices = wiring.devices(events, account, profile, encryption, redactor, clock, settings, key)
    drafts = DraftBuilder(redactor.for_egress(), settings.privacy.keeps_messages, local_redactor=redactor, clock=clock)
    return App(
        settings=settings,
        replica_id=opened.replica_id,
        profile=profile,
        log=events,
        draft_builder=drafts,
        document=document,
        memory_service=MemoryService(events, document, replicator, redactor, clock=clock, settings=settings),
        account=account,
        login_flow=wiring.login_flow(settings, active, account, devices, replicator, clock),
        replicator=replicator,
        lan=wiring.lan(settings, profile, events, devices, replicator, clock, key=key, is_sidecar=is_sidecar),
        devices=devices,
        event_files=wiring.event_files(settings, profile, events, drafts, key, redactor, clock),
        insights=services.insights(profile, events, clock, writes=is_sidecar),
        lessons=services.lessons(events, redactor, clock),
        recall=lazy_recall.recall(events, clock, settings, profile, redactor, stack, moves=is_sidecar, vectors=vectors),
        daily=services.daily(settings, profile, events, drafts, redactor, document, moves=is_sidecar, vectors=vectors),
        archive=services.archive(settings, profile, events, drafts, document, key, clock),
        retention=services.retention(settings, profile, events, drafts, key, clock),
        clock=clock,
        is_sidecar=is_sidecar,
        start_warnings=(*filter(None, [warning]), *opened.warnings, *settings.warnings),
    )
