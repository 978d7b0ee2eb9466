"""A memory file on a desk: real file, real SQLite, a clock that a test moves, a sleep in which a test may do things."""

import random
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, Literal

from sqlalchemy import Connection

from sync.clock import in_zone
from sync.db.engine import Database
from sync.document import store as document_store
from sync.document.capture import EXCHANGE, Exchange, exchange_drafts
from sync.document.memory_file import Beside, MemoryFile
from sync.document.model import Version
from sync.document.neighbours import Neighbours
from sync.log import store as log_store
from sync.log.log import Log
from sync.log.model import Event, Page, Query
from sync.redaction import Redactor
from sync.sections import Bound, DocumentSettings

MORNING = datetime(2026, 1, 8, 9, 0, 0, tzinfo=timezone(timedelta(hours=8)))
KEPT_VERSIONS = 200


@dataclass
class HandClock:
    """Shows the same time until it is moved. Its chance is seeded."""

    time: datetime = MORNING
    chance: random.Random = field(default_factory=lambda: random.Random(8))

    def now(self) -> datetime:
        return self.time

    def local(self, moment: datetime) -> datetime:
        return in_zone(moment, self.time.tzinfo)

    def monotonic(self) -> float:
        return self.time.timestamp()

    def random_bytes(self, count: int) -> bytes:
        return self.chance.randbytes(count)

    def move(self, **by: float) -> None:
        self.time += timedelta(**by)


@dataclass
class Desk:
    """One device's document service without a process around it."""

    file: Path
    database: Database
    log: Log
    clock: HandClock
    redactor: Redactor
    memory: MemoryFile
    app_cache: Path | None
    options: DocumentSettings
    write_back: bool = False
    neighbours: Neighbours | None = None
    meanwhile: list[Callable[[], object]] = field(default_factory=list)

    @property
    def parked(self) -> Path:
        return self.database.path.parent / "parked"

    async def sleep(self, _: float) -> None:
        """What the service sleeps through: the next thing that somebody else does to the file."""
        if self.meanwhile:
            self.meanwhile.pop(0)()

    async def hear(self, *others: "Desk") -> None:
        """Take in what other devices recorded, as a pull does."""
        for other in others:
            page = await other.log.read(Query(limit=100_000))

            def taking(connection: Connection, page: Page = page) -> None:
                new = [event for event in page.events if log_store.find(connection, event.event_id) is None]
                for event in new:
                    log_store.add(connection, event)
                log_store.witness(connection, new, self.clock)

            await self.database.write(taking)
        await self.memory.settle()

    def restart(self) -> None:
        """A new service on the same database, as after a crash."""
        self.memory = self.service(Beside(self.app_cache, self.write_back, self.neighbours, self.parked))

    def service(self, beside: Beside) -> MemoryFile:
        clock, options = self.clock, self.options
        return MemoryFile(
            self.file, self.log, self.redactor, clock=clock, options=options, beside=beside, sleep=self.sleep
        )

    async def say(self, question: str, answer: str = "好的") -> str:
        """Record one exchange, as `update` does; its event id."""
        drafts = exchange_drafts(
            Exchange(question, answer), self.redactor, device_id=self.log.device_id, store_messages=False
        )
        return (await self.log.record(drafts))[0].event.event_id

    async def said(self, *questions: str) -> None:
        """Each question recorded and settled in a version of its own."""
        for question in questions:
            await self.say(question)
            await self.memory.settle()

    async def hand_events(self) -> list[Event]:
        """What hands did, oldest first."""
        return [event for event in (await self.log.read(Query())).events if event.type != EXCHANGE]

    async def versions(self, surface: str = document_store.FILE) -> list[tuple[str | None, str]]:
        """Label and cause of every stored version, oldest first."""
        with closing(sqlite3.connect(self.database.path)) as connection:
            rows = connection.execute("select label, cause from written where surface = ? order by version", [surface])
            return rows.fetchall()

    async def newest(self) -> Version:
        found = await self.database.read(lambda connection: document_store.newest(connection, document_store.FILE))
        assert found is not None
        return found

    @property
    def text(self) -> str:
        return self.file.read_text("utf-8")

    @text.setter
    def text(self, value: str) -> None:
        self.file.write_text(value, "utf-8")

    def replace(self, old: str, new: str) -> None:
        """Edit the file by hand."""
        text = self.text
        assert old in text
        self.text = text.replace(old, new, 1)

    def type_under(self, heading: str, line: str) -> None:
        """Put a line of one's own below a heading."""
        self.replace(f"{heading}\n", f"{heading}\n{line}\n")


class AppCache:
    """What the app does with its cache: one row, rewritten as a whole."""

    def __init__(self, path: Path, *, id_type: str = "INTEGER PRIMARY KEY") -> None:
        self.path = path
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(f"CREATE TABLE ai_memory (id {id_type}, content TEXT, created_at TEXT, updated_at TEXT)")

    def save(self, content: str | bytes | None) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(
                "INSERT OR REPLACE INTO ai_memory (id, content, created_at, updated_at) VALUES (1, ?, ?, ?)",
                (content, "2026-01-08 01:00:00", "2026-01-08 01:00:00"),
            )

    @property
    def rows(self) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.path)) as connection:
            return connection.execute("SELECT * FROM ai_memory").fetchall()


@asynccontextmanager
async def on_a_desk(
    folder: Path,
    *,
    file: Path | None = None,
    app_cache: Path | None = None,
    keep_versions: int = KEPT_VERSIONS,
    write_back: bool = False,
    neighbours: Neighbours | None = None,
    device: str = "device-a",
    sharing: Literal["device", "user"] = "device",
    keep_days: int = 30,
) -> AsyncIterator[Desk]:
    """Everything opened, and closed at the end. `file`: where the memory file is, if not in the folder."""
    clock = HandClock(chance=random.Random(device))
    folder.mkdir(exist_ok=True)
    database = await Database.open(folder / "memory.db")
    try:
        await database.write(lambda connection: log_store.open_replica(connection, clock))
        log = Log(database, clock, device_id=device, session_id="sess_test")
        redactor = Redactor()
        file = file or folder / "xiaobai-ai-memory.md"
        unborn: Any = None
        options = DocumentSettings(keep_versions=keep_versions, sharing=sharing, keep_days=Bound(keep_days))
        desk = Desk(file, database, log, clock, redactor, unborn, app_cache, options, write_back, neighbours)
        desk.restart()
        yield desk
    finally:
        await database.close()
