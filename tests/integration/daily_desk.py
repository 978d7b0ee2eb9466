"""The room of the daily records on a real database and real folders."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from sync.document import forgetting
from sync.document.choosing import Choice
from sync.log.model import Event
from sync.memory.daily.command import parse
from sync.memory.daily.commander import Commander, Here, Reply, Wanted
from sync.memory.daily.config import Provider
from sync.memory.daily.deeds import Conversation, Deeds, Outcome
from sync.memory.daily.erasure import Erased, Eraser
from sync.memory.daily.files import Pages
from sync.memory.daily.keeper import Keeper
from sync.memory.daily.model import content
from sync.memory.daily.places import FOLDER, Places
from sync.memory.daily.room import Daily
from sync.memory.daily.shelf import Shelf
from sync.memory.daily.summarise import Turn
from sync.memory.daily.vectors import Vectors
from tests.support import REDACTOR, Device, FixedClock, new_server, open_device

HALF_AN_HOUR = 30.0
TALK = (
    Turn("user", "我们来设计记忆功能"),
    Turn("assistant", "好的，采用关键词检索。"),
    Turn("user", "我决定端口用 8080"),
    Turn("assistant", "已记下：\n```json\n{}\n```"),
    Turn("user", "就这样"),
)


class Desk:
    """A device with its room, a home and a project."""

    def __init__(
        self, device: Device, *, profile: str = "prof_a", installation: str = "inst", vectors: Vectors | None = None
    ) -> None:
        self.device = device
        self.home = device.folder / "home"
        self.project = device.folder / "项目"
        for folder in (self.home, self.project):
            folder.mkdir(exist_ok=True)
        shelf, self.places = Shelf(device.log), Places(self.home)
        deeds = Deeds(device.log, shelf, self.places, device.intake, REDACTOR, device.clock)
        kept = device.folder / "profiles" / profile / "daily"
        self.pages = Pages(self.places, kept=kept, installation=installation, profile=profile)
        keeper = Keeper(
            device.log, shelf, deeds, self.pages, clock=device.clock, idle_minutes=HALF_AN_HOUR, vectors=vectors
        )
        self.room = Daily(shelf, deeds, self.places, keeper, device.log, device.clock, moves=True)
        self.provider: Provider = "local"
        self.asked: list[Wanted] = []
        self.answers: Callable[[Wanted], list[Any]] = lambda wanted: [wanted.query]

    @property
    def root(self) -> Path:
        return self.home / FOLDER

    @property
    def embeddings(self) -> Path:
        return self.root / "index" / "embeddings.json"

    @property
    def own_root(self) -> Path:
        return self.project / FOLDER

    def page(self, root: Path | None = None, name: str = "2026-02-02.md") -> Path:
        return (root or self.root) / "daily" / name

    async def keep(self, topic: str, *facts: str, project: bool = False, **more: Any) -> Outcome:
        """A record by a caller's summary."""
        path = str(self.project) if project else None
        said = more.pop("summary", None) or content(topic, facts)
        done = await self.room.deeds.keep(Conversation(summary=said, project_path=path, **more))
        await self.room.settle()
        return done

    async def topics(self) -> list[str]:
        return [record.content.topic for record in (await self.room.book()).shown()]

    async def option(self, name: str, value: Any) -> None:
        await self.room.set_option(None, name, value, for_project=False)

    async def say(self, text: str, **here: Any) -> Reply:
        async def search(wanted: Wanted) -> list[Any]:
            self.asked.append(wanted)
            return self.answers(wanted)

        command = parse(text)
        assert command is not None
        commander = Commander(self.room, search, Eraser(self.find, self.erase), self.provider)
        return await commander.carry_out(command, Here(**here))

    async def find(self, words: str) -> list[Event]:
        return await forgetting.chosen(self.device.log, Choice(words))

    async def erase(self, event_ids: Sequence[str]) -> Erased:
        return Erased(len(await forgetting.ask(self.device.log, self.device.intake, event_ids)))

    async def converse(self, session_id: str, turns: tuple[Turn, ...] = TALK, **more: Any) -> None:
        """What a host would append, message by message."""
        said = [{"role": turn.role, "content": turn.text} for turn in turns]
        events = [{"type": "message", "session_id": session_id, **more, "payload": payload} for payload in said]
        await self.device.log.record(self.device.intake.drafts(events))


@asynccontextmanager
async def open_desk(folder: Path, *, clock: FixedClock | None = None, **more: Any) -> AsyncIterator[Desk]:
    async with open_device(folder, new_server(), clock=clock, inline=True) as device:
        yield Desk(device, **more)
