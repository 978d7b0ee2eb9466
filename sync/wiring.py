"""How each part of the application is constructed from the settings; `sync.app` puts them together."""

import asyncio
import platform
from collections.abc import Callable
from functools import cache, partial
from typing import TYPE_CHECKING

from sync import __version__
from sync.accounts import switching
from sync.accounts.devices import DeviceService
from sync.accounts.login import LoginFlow, ProfileSecrets
from sync.accounts.paired_devices import PairedDevices
from sync.accounts.profiles import Installation, Profile
from sync.clock import Clock, new_session_id
from sync.cloud.auth.account import Account
from sync.cloud.auth.device_key import KEY_SERVICE, DeviceKey
from sync.cloud.auth.event_signer import EventSigner
from sync.cloud.auth.session_storage import SessionStorage, open_session_storage
from sync.cloud.port import Cloud, DeviceFacts
from sync.cloud.replication.erasure_guard import ErasureGuard
from sync.cloud.supabase.lazy import LazyCloud
from sync.document.surfaces.memory_file import MemoryFile, MemoryFileDeps
from sync.document.surfaces.withheld_erasures import erasure_stake
from sync.encryption.database_encryption import DatabaseEncryption
from sync.jsonl.importer import EventFileImporter
from sync.jsonl.projection import JsonlProjection
from sync.jsonl.service import EventFilesService
from sync.lan.access import LanAccess
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.projections.external import ExternalProjectionRunner
from sync.log.sessions.tracker import SessionTracker
from sync.redaction import Redactor
from sync.settings.settings import EVENTS_FOLDER, Settings
from sync.startup.open_database import OpenedDatabase
from sync.system.secret_store import SecretStore, open_secret_store
from sync.texts.language import environment_locale

if TYPE_CHECKING:
    from sync.cloud.replication.document_upload import DocumentSource
    from sync.cloud.replication.replicator import Replicator
    from sync.lan.service import LanService


def event_log(
    replica: OpenedDatabase, settings: Settings, installation: Installation, clock: Clock, cloud: Cloud | None = None
) -> EventLog:
    device_id, earlier = installation.device_identity(settings.device_id)
    opened = EventLog(
        replica.database, clock, device_id=device_id, session_id=new_session_id(clock), former_device_ids=earlier
    )
    opened.has_cloud = cloud is not None
    return opened


def memory_file(
    settings: Settings,
    profile: Profile,
    encryption: DatabaseEncryption,
    events: EventLog,
    redactor: Redactor,
    clock: Clock,
) -> MemoryFile:
    """The active profile's memory file. Only the active profile uses the app's cache."""
    others = switching.other_profiles_of(profile, encryption)
    return MemoryFile(
        settings.memory_file,
        events,
        redactor,
        clock=clock,
        options=settings.document,
        deps=MemoryFileDeps(
            settings.app_db, settings.app_db_write_back, others, profile.parked_folder, environment_locale()
        ),
    )


def event_files(
    settings: Settings,
    profile: Profile,
    events: EventLog,
    intake: DraftBuilder,
    key: DeviceKey,
    redactor: Redactor,
    clock: Clock,
) -> EventFilesService:
    """The JSONL files, in a folder for each profile, so that accounts never mix."""
    importer = EventFileImporter(events, intake, EventSigner(events, key), clock, data_dir=settings.data_dir)
    base = settings.jsonl_root
    idle, sessions_file = settings.sessions.idle_minutes, profile.folder / "sessions.json"
    projection = JsonlProjection(base / profile.name, events)
    return EventFilesService(
        projection=projection,
        runner=ExternalProjectionRunner(events, projection, clock),
        sessions=SessionTracker(
            events, intake, redactor, open_sessions_file=sessions_file, clock=clock, idle_minutes=idle
        ),
        importer=importer,
        legacy_folders=list(dict.fromkeys((base, settings.data_dir / EVENTS_FOLDER))),
        are_written=settings.writes_event_files,
    )


def device_facts(replica: OpenedDatabase, installation: Installation, settings: Settings) -> DeviceFacts:
    """What the server learns of this device, and which replica it replaces."""
    former = replica.former_replica_id or installation.former
    proof = None if replica.former_replica_id else installation.former_proof
    name, system = settings.device_name, platform.system()
    return DeviceFacts(replica.replica_id, name, system, __version__, takeover=former, proof=proof)


def replicator(
    facts: DeviceFacts,
    events: EventLog,
    account: Account,
    document: "DocumentSource",
    *,
    clock: Clock,
    settings: Settings,
    key: DeviceKey,
) -> "Replicator":
    """Replication with the cloud. Its modules are loaded if there is one."""
    from sync.cloud.replication.replicator import Replicator  # noqa: PLC0415
    from sync.cloud.replication.sync_round import SyncRunner  # noqa: PLC0415

    guard = ErasureGuard(events, key, settings.privacy, erasure_stake, clock)
    exchange = SyncRunner(events, account, facts, document, clock=clock, options=settings.sync, key=key, erasures=guard)
    return Replicator(events, exchange, clock=clock, options=settings.sync)


def devices(
    events: EventLog,
    account: Account,
    profile: Profile,
    encryption: DatabaseEncryption,
    redactor: Redactor,
    clock: Clock,
    settings: Settings,
    key: DeviceKey,
) -> DeviceService:
    """The devices of the account, with those that were paired by code."""

    async def has_other_profile(user_id: str) -> bool:
        owners = [await asyncio.to_thread(other.read_owner, encryption) for other in profile.other_profiles()]
        return user_id in owners

    paired = PairedDevices(events.database, account, has_other_profile, clock)
    listed = profile.folder / "devices.json"
    return DeviceService(events, account, redactor, paired, key, list_file=listed, clock=clock, settings=settings)


def lan(
    settings: Settings,
    profile: Profile,
    events: EventLog,
    devices: DeviceService,
    replicator: "Replicator | None",
    clock: Clock,
    *,
    key: DeviceKey,
    is_sidecar: bool,
) -> LanAccess:
    """The local network; nothing of TLS is imported before it is needed."""

    def build() -> "LanService":
        from sync.lan.local_device import LocalDevice  # noqa: PLC0415 - at its first use
        from sync.lan.service import LanService, make_hello  # noqa: PLC0415
        from sync.lan.transport.trust import TrustList, trust_list  # noqa: PLC0415

        async def trust_of(own_key: str) -> TrustList:
            keys, revoked = await devices.keys_and_revocations()
            return trust_list(own_key, keys, revoked)

        guard = ErasureGuard(events, key, settings.privacy, erasure_stake, clock)
        hello = partial(make_hello, events, settings.device_name)
        local = LocalDevice(key, guard, trust_of, devices.paired, hello, profile.folder, devices.account_changed)
        return LanService(events, local, clock=clock, settings=settings.lan)

    async def count_others() -> int:
        keys, revoked = await devices.keys_and_revocations()
        return len(set(keys.values()) - revoked.keys() - {events.device_id})

    rounds = [] if replicator is None else [replicator.state_changed]  # a round may list other devices
    changes = [events.changed, devices.paired.changed, *rounds]
    return LanAccess(settings.lan, build, count_others, devices.paired, changes, is_sidecar=is_sidecar)


def login_flow(
    settings: Settings,
    active: switching.ActiveProfile,
    account: Account,
    devices: DeviceService,
    replicator: "Replicator | None",
    clock: Clock,
) -> LoginFlow:
    async def account_changed() -> None:
        await devices.record_own_name()
        if replicator is not None:
            replicator.wake(with_document=True)

    async def before_logout() -> None:
        if replicator is not None:
            await replicator.send_document()

    secrets = ProfileSecrets(
        session_store=lambda other: token_store(settings, other)(),
        device_key_store=lambda other: device_key_store(settings, other)(),
    )
    return LoginFlow(
        active,
        account,
        clock=clock,
        secrets=secrets,
        on_account_change=account_changed,
        before_logout=before_logout,
    )


def cloud(settings: Settings, clock: Clock) -> Cloud | None:
    """The Supabase project, if one is set."""
    if settings.supabase_url is None or settings.supabase_key is None:
        return None
    key = settings.supabase_key.get_secret_value()
    return LazyCloud(settings.supabase_url, key, timeout=settings.sync.timeout_seconds, clock=clock)


def account(
    replica: OpenedDatabase, cloud: Cloud | None, settings: Settings, profile: Profile, clock: Clock
) -> Account:
    tokens = token_store(settings, profile)
    return Account(replica.database, cloud, tokens, lock=profile.folder / "session.lock", clock=clock)


def token_store(settings: Settings, profile: Profile) -> Callable[[], SessionStorage]:
    """The token store, opened at its first use: a start without login does not load the keychain."""
    prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
    return cache(lambda: open_session_storage(profile.session_file, profile.name, prefer_file=prefer_file))


def device_key(settings: Settings, profile: Profile) -> DeviceKey:
    """The device's key. There is one instance, because it remembers the public half."""
    return DeviceKey(device_key_store(settings, profile), lock=profile.folder / "device-key.lock")


def device_key_store(settings: Settings, profile: Profile) -> Callable[[], SecretStore]:
    """The store of the device's private key, opened at its first use."""
    prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
    path = profile.folder / "device-key"
    return cache(lambda: open_secret_store(path, KEY_SERVICE, profile.name, prefer_file=prefer_file))
