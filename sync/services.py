"""Services that are loaded at their first use, because an idle sidecar and most commands do not need them."""

import asyncio
import hashlib
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec.structs import replace

from sync.accounts.profiles import Profile, read_installation
from sync.accounts.switching import ActiveProfile
from sync.clock import Clock
from sync.document.surfaces.memory_file import MemoryFile, MemoryFileDeps
from sync.encryption.database_encryption import DatabaseEncryption
from sync.insights.cache import CACHE_FILE
from sync.lazy_recall import vector_export
from sync.lessons.files.projection import WRITE_INTERVAL, LessonFilesProjection
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.projections.external import ExternalProjectionRunner
from sync.redaction import Redactor
from sync.runtime.change_counter import ChangeCounter
from sync.runtime.supervision import supervise
from sync.settings.settings import LESSONS_FOLDER, Settings
from sync.texts.language import environment_locale

if TYPE_CHECKING:
    from sync.archive.service import ArchiveService
    from sync.cloud.auth.device_key import DeviceKey
    from sync.daily.service import DailyService
    from sync.db.engine import Transaction
    from sync.insights.service import InsightsService
    from sync.lessons.files.live_view import LessonFiles
    from sync.lessons.service import LessonService
    from sync.log.model import EventDraft
    from sync.notes.erasure import NoteErasure
    from sync.notes.queries import NoteQueries
    from sync.notes.service import NotesService
    from sync.recall.search import RecallService
    from sync.retention.service import RetentionService

DAILY_FOLDER: Final = "daily"  # of a profile: the checkpoints of its pages
START_DELAY: Final = 0.5  # seconds after a start in which nothing else is loaded
NOTES_BY_MEANING: Final = 5  # notes of a project that governance and retrieval compare by meaning
LATE_START_DELAY: Final = 5.0  # seconds until what can wait begins: followers come level first

_log = logging.getLogger(__name__)


def insights(profile: Profile, events: EventLog, clock: Clock, *, writes: bool) -> "Callable[[], InsightsService]":
    """Insights."""

    @cache
    def opened() -> "InsightsService":
        from sync.insights.service import InsightsService  # noqa: PLC0415 - at its first use

        return InsightsService(events, profile.folder / CACHE_FILE, clock=clock, may_write_cache=writes)

    return opened


def lessons(events: EventLog, redactor: Redactor, clock: Clock) -> "Callable[[], LessonService]":
    """Errors with their cures, and patterns."""

    @cache
    def opened() -> "LessonService":
        from sync.document.erasure import erasure  # noqa: PLC0415 - at its first use
        from sync.lessons.service import LessonService  # noqa: PLC0415

        def draft_erasure(connection: "Transaction", event_ids: Sequence[str]) -> "Sequence[EventDraft]":
            return erasure.request_drafts(erasure.erasable_events(connection, event_ids), redactor)

        return LessonService(events, redactor, clock=clock, draft_erasure=draft_erasure)

    return opened


def lessons_folder(settings: Settings, profile: Profile) -> Path:
    """The folder of the lessons' JSON files."""
    return settings.lessons.dir or settings.data_dir / LESSONS_FOLDER / profile.name


def lesson_files(
    settings: Settings, profile: Profile, lesson_service: "Callable[[], LessonService]"
) -> "Callable[[], LessonFiles]":
    """The JSON files of the lessons."""

    @cache
    def opened() -> "LessonFiles":
        from sync.lessons.files.imports import LessonImports  # noqa: PLC0415 - at its first use
        from sync.lessons.files.live_view import LessonFiles  # noqa: PLC0415

        def is_profile(name: str) -> bool:
            installation = read_installation(settings.data_dir)
            is_removed = installation is not None and name in installation.removed
            return is_removed or (name == Path(name).name and (profile.folder.parent / name).is_dir())

        folder, imports = lessons_folder(settings, profile), LessonImports(lesson_service())
        return LessonFiles(lesson_service(), imports, folder, profile=profile.name, is_other_profile=is_profile)

    return opened


def active_profile(
    settings: Settings,
    profile: Profile,
    encryption: DatabaseEncryption,
    events: EventLog,
    document: MemoryFile,
    redactor: Redactor,
    clock: Clock,
) -> ActiveProfile:
    """The active profile, to complete a switch from another one."""

    def memory_file_of(events: EventLog, former: Profile) -> MemoryFile:
        """The memory file of a profile that is left: its log, without the app's cache and other profiles."""
        deps = MemoryFileDeps(parked_folder=former.parked_folder, locale=environment_locale())
        options = settings.document
        return MemoryFile(settings.memory_file, events, redactor, clock=clock, options=options, deps=deps)

    def lesson_files_of(events: EventLog, former: Profile) -> "LessonFiles":
        """The files of its lessons, in the folder that only it uses."""
        own = replace(settings, lessons=replace(settings.lessons, dir=None))
        return lesson_files(own, former, lessons(events, redactor, clock))()

    return ActiveProfile(
        settings.data_dir,
        profile,
        encryption,
        events,
        document,
        redactor,
        memory_file_of,
        lesson_files_of,
        settings.jsonl_root,
    )


def lesson_file_writer(
    files: "Callable[[], LessonFiles]", folder: Path, events: EventLog, clock: Clock
) -> ExternalProjectionRunner[None]:
    """Keeps the files of the lessons up to date with the log."""
    projection = LessonFilesProjection(files, folder, events)
    return ExternalProjectionRunner(events, projection, clock, batch_delay=WRITE_INTERVAL)


def daily(
    settings: Settings,
    profile: Profile,
    events: EventLog,
    intake: DraftBuilder,
    redactor: Redactor,
    document: MemoryFile,
    *,
    moves: bool,
    vectors: ChangeCounter | None,
) -> "Callable[[], DailyService]":
    """Daily records."""
    clock, language = intake.clock, document.language

    @cache
    def opened() -> "DailyService":
        from sync.daily.open_sessions import OpenSessionTracker  # noqa: PLC0415
        from sync.daily.pages.folder_owner import FolderOwner  # noqa: PLC0415
        from sync.daily.pages.page_checkpoints import PageCheckpoints  # noqa: PLC0415
        from sync.daily.pages.page_files import PageFiles  # noqa: PLC0415
        from sync.daily.pages.page_folders import PageFolders  # noqa: PLC0415
        from sync.daily.record_service import RecordService  # noqa: PLC0415 - at its first use
        from sync.daily.records.records_cache import RecordsCache  # noqa: PLC0415
        from sync.daily.service import DailyService  # noqa: PLC0415
        from sync.daily.worker import DailyWorker  # noqa: PLC0415

        records, folders = RecordsCache(events), PageFolders(settings.daily.home, language)
        changes = RecordService(events, records, folders, intake, redactor, clock)
        installation = hashlib.sha256(os.path.realpath(settings.data_dir).encode()).hexdigest()[:16]
        checkpoints = PageCheckpoints(
            profile.folder / DAILY_FOLDER,
            lambda: [other.folder / DAILY_FOLDER for other in profile.other_profiles()],
        )
        pages = PageFiles(folders, checkpoints, FolderOwner(installation, profile.name))
        open_sessions = OpenSessionTracker(events, clock, settings.sessions.idle_minutes)
        vector_source = vector_export(settings, events, vectors or ChangeCounter())
        worker = DailyWorker(
            events, records, changes, pages, clock=clock, open_sessions=open_sessions, vector_source=vector_source
        )
        return DailyService(records, changes, folders, worker, events, clock, moves)

    return opened


def daily_jobs(daily_service: "Callable[[], DailyService]") -> list[Coroutine[None, None, None]]:
    """A sidecar's work on daily records; it loads them after the first answer."""

    async def sessions() -> None:
        await asyncio.sleep(START_DELAY)
        await daily_service().worker.run_session_recorder()

    async def pages() -> None:
        await asyncio.sleep(START_DELAY)
        await daily_service().worker.run_page_sync()

    return [supervise("daily sessions", sessions), supervise("daily pages", pages)]


class NotesAccess(msgspec.Struct, frozen=True):
    """The notes of a profile's projects: what writes them, what reads them, and what erases them."""

    service: "NotesService"
    queries: "NoteQueries"
    erasure: "NoteErasure"


def notes(
    events: EventLog,
    intake: DraftBuilder,
    clock: Clock,
    settings: Settings,
    recall_service: "Callable[[], RecallService]",
    erase_texts: Callable[[Sequence[str]], Awaitable[object]],
) -> Callable[[], NotesAccess]:
    """Curated notes of projects. `erase_texts` takes the payloads of events away."""

    async def cosines(project: str, text: str) -> Mapping[str, Mapping[str, float]] | None:
        """How near the notes of a project are by meaning, by id; None without models."""
        recall = recall_service()
        if not recall.semantic_index.is_enabled:
            return None
        from sync.log.model import project_id_for  # noqa: PLC0415 - at its first use
        from sync.recall.index.extraction import NOTE  # noqa: PLC0415
        from sync.recall.index.item_filter import ItemFilter  # noqa: PLC0415

        await recall.ensure_caught_up()
        found = await recall.semantic_index.cosines_of(text, ItemFilter((project_id_for(project),), kinds=(NOTE,)))
        return {entry_id.rpartition("/")[2]: of for entry_id, of in found.items()} or None

    async def nearest_ids(project: str, text: str) -> list[str]:
        found = await cosines(project, text) or {}
        return sorted(found, key=lambda note_id: -sum(found[note_id].values()))[:NOTES_BY_MEANING]

    async def vectors(texts: Sequence[str]) -> list[Sequence[float]]:
        return await recall_service().semantic_index.text_vectors(texts, "usem3")

    @cache
    def opened() -> NotesAccess:
        from sync.notes.erasure import NoteErasure  # noqa: PLC0415
        from sync.notes.queries import NoteQueries  # noqa: PLC0415
        from sync.notes.service import NotesService  # noqa: PLC0415 - at its first use
        from sync.notes.workspace import NoteWorkspace  # noqa: PLC0415

        workspace = NoteWorkspace(events, intake, clock, settings.data_dir)
        service = NotesService(workspace, nearest_ids, erase_texts, vectors)
        return NotesAccess(service, NoteQueries(workspace, cosines), NoteErasure(workspace))

    return opened


def archive(
    settings: Settings,
    profile: Profile,
    events: EventLog,
    intake: DraftBuilder,
    document: MemoryFile,
    key: "DeviceKey",
    clock: Clock,
) -> "Callable[[], ArchiveService]":
    """Exports and imports."""

    @cache
    def opened() -> "ArchiveService":
        from sync.archive.service import ArchiveService  # noqa: PLC0415 - at its first use
        from sync.cloud.auth.event_signer import EventSigner  # noqa: PLC0415 - at its first use

        signer, folder = EventSigner(events, key), profile.archives_folder
        return ArchiveService(
            events,
            intake,
            document.importer,
            signer,
            clock=clock,
            own_folder=folder,
            keeps_texts=settings.privacy.keeps_exchange_texts,
        )

    return opened


def retention(
    settings: Settings, profile: Profile, events: EventLog, intake: DraftBuilder, key: "DeviceKey", clock: Clock
) -> "Callable[[], RetentionService]":
    """Archiving and erasing old events."""

    @cache
    def opened() -> "RetentionService":
        from sync.cloud.auth.event_signer import EventSigner  # noqa: PLC0415 - at its first use
        from sync.retention.service import RetentionConfig, RetentionService  # noqa: PLC0415 - at its first use

        cloud = settings.supabase_url is not None
        days, megabytes = settings.privacy.retention_days, settings.privacy.retention_megabytes
        places = profile.archives_folder, profile.folder / "archives.lock"
        config = RetentionConfig(*places, days, megabytes, has_cloud=cloud)
        return RetentionService(events, intake, config, EventSigner(events, key), clock=clock)

    return opened


def retention_jobs(
    retention_service: "Callable[[], RetentionService]",
    settings: Settings,
    archives: Path,
    changed: ChangeCounter,
    apply_erasures: Callable[[], Coroutine[None, None, None]],
) -> list[Coroutine[None, None, None]]:
    """A sidecar's work on old events. Without limits in the settings and without archives nothing is loaded."""

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
