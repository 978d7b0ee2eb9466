"""A harness for daily records with a real database and real folders."""

import errno
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sync.daily.commands.command_handler import CommandContext, CommandHandler, CommandReply, CommandSearch
from sync.daily.commands.erasure_replies import ErasurePort, ErasureStatus
from sync.daily.commands.fact_commands import FactCommands, read_wish
from sync.daily.config import Provider
from sync.daily.conversation.command_parser import parse_command
from sync.daily.conversation.extractive_summary import SummaryTurn
from sync.daily.model import normalised_content
from sync.daily.open_sessions import OpenSessionTracker
from sync.daily.pages import page_files as daily_files
from sync.daily.pages.embeddings_export import VectorSource
from sync.daily.pages.folder_owner import FolderOwner
from sync.daily.pages.page_checkpoints import PageCheckpoints
from sync.daily.pages.page_files import PageFiles
from sync.daily.pages.page_folders import PAGES_PATH, PageFolders
from sync.daily.record_service import ChangeResult, RecordRequest, RecordService
from sync.daily.records.records_cache import RecordsCache
from sync.daily.service import DailyService
from sync.daily.worker import DailyWorker
from sync.document.erasure import erasure
from sync.document.erasure.selection import ErasureSelection
from sync.log.model import Event
from sync.system import atomic_swap
from sync.texts.language import LanguageChoice
from sync.understanding.service import FactService
from tests.support import REDACTOR, Device, FixedClock, new_server, open_device

IDLE_MINUTES = 30.0
SAMPLE_TURNS = (
    SummaryTurn("user", "我们来设计记忆功能"),
    SummaryTurn("assistant", "好的，采用关键词检索。"),
    SummaryTurn("user", "我决定端口用 8080"),
    SummaryTurn("assistant", "已记下：\n```json\n{}\n```"),
    SummaryTurn("user", "就这样"),
)


class DailyHarness:
    """A device with daily records, a home and a project."""

    def __init__(
        self,
        device: Device,
        *,
        profile: str = "prof_a",
        installation: str = "inst",
        vectors: VectorSource | None = None,
    ) -> None:
        self.device = device
        self.home = device.folder / "home"
        self.project = device.folder / "项目"
        for folder in (self.home, self.project):
            folder.mkdir(exist_ok=True)
        self.language = LanguageChoice()
        shelf, self.places = RecordsCache(device.log), PageFolders(self.home, self.language)
        deeds = RecordService(device.log, shelf, self.places, device.intake, REDACTOR, device.clock)
        kept = device.folder / "profiles" / profile / "daily"
        self.checkpoints, self.other_checkpoints = kept, list[Path]()
        checkpoints = PageCheckpoints(kept, lambda: self.other_checkpoints)
        self.pages = PageFiles(self.places, checkpoints, FolderOwner(installation, profile))
        open_sessions = OpenSessionTracker(device.log, device.clock, IDLE_MINUTES)
        keeper = DailyWorker(
            device.log, shelf, deeds, self.pages, clock=device.clock, open_sessions=open_sessions, vector_source=vectors
        )
        self.service = DailyService(shelf, deeds, self.places, keeper, device.log, device.clock, may_write_pages=True)
        self.provider: Provider = "local"
        self.searches: list[CommandSearch] = []
        self.search_results: Callable[[CommandSearch], list[Any]] = lambda wanted: [wanted.query]

    @property
    def root(self) -> Path:
        return self.home / PAGES_PATH

    @property
    def embeddings(self) -> Path:
        return self.root / "index" / "embeddings.json"

    @property
    def project_root(self) -> Path:
        return self.project / PAGES_PATH

    def page(self, root: Path | None = None, name: str = "2026-02-02.md") -> Path:
        return (root or self.root) / "daily" / name

    async def record(self, topic: str, *facts: str, project: bool = False, **more: Any) -> ChangeResult:
        """A record by a caller's summary."""
        path = str(self.project) if project else None
        said = more.pop("summary", None) or normalised_content(topic, facts)
        done = await self.service.record_service.record_conversation(
            RecordRequest(summary=said, project_path=path, **more)
        )
        await self.service.reconcile()
        return done

    async def topics(self) -> list[str]:
        return [record.content.topic for record in (await self.service.current_records()).visible()]

    async def set_option(self, name: str, value: Any) -> None:
        await self.service.set_option(None, name, value, for_project=False)

    async def send_command(self, text: str, **here: Any) -> CommandReply:
        async def search(wanted: CommandSearch) -> list[Any]:
            self.searches.append(wanted)
            return self.search_results(wanted)

        command = parse_command(text) or read_wish(text)
        assert command is not None
        eraser = ErasurePort(self.find, self.erase)
        facts = FactCommands(FactService(self.device.log, REDACTOR, self.device.clock), REDACTOR)
        commander = CommandHandler(self.service, search, eraser, self.provider, facts)
        return await commander.handle(command, CommandContext(**here))

    async def find(self, words: str) -> list[Event]:
        return await erasure.select_events(self.device.log, ErasureSelection(words))

    async def erase(self, event_ids: Sequence[str]) -> ErasureStatus:
        return ErasureStatus(len(await erasure.request(self.device.log, self.device.intake, event_ids)))

    async def append_messages(
        self, session_id: str, turns: tuple[SummaryTurn, ...] = SAMPLE_TURNS, **more: Any
    ) -> None:
        """What a host would append, message by message."""
        said = [{"role": turn.role, "content": turn.text} for turn in turns]
        events = [{"type": "message", "session_id": session_id, **more, "payload": payload} for payload in said]
        await self.device.log.append(self.device.intake.build_batch(events))


@asynccontextmanager
async def open_daily_harness(
    folder: Path, *, clock: FixedClock | None = None, **more: Any
) -> AsyncIterator[DailyHarness]:
    async with open_device(folder, new_server(), clock=clock, single_threaded=True) as device:
        yield DailyHarness(device, **more)


@contextmanager
def refusing_pages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A disk on which no page comes to its place."""

    def refuses(source: Path, target: Path, *, new: bool) -> bool:
        raise OSError(errno.EIO, "Input/output error", str(target))

    with monkeypatch.context() as disk:
        disk.setattr(daily_files, "compare_and_swap", partial(atomic_swap.compare_and_swap, rename=refuses))
        yield
