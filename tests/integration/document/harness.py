"""A memory file in a test: real file, real SQLite, a manual clock, and a sleep in which the test acts."""

import random
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sync.clock import in_zone
from sync.db.engine import Database, Transaction
from sync.document import store as document_store
from sync.document.capture.exchange_events import ExchangeInput, draft_exchange_events
from sync.document.markdown.model import Version
from sync.document.ownership.other_profiles import OtherProfiles
from sync.document.surfaces.memory_file import MemoryFile, MemoryFileDeps
from sync.log import store as log_store
from sync.log.event_types import EXCHANGE_RECORDED
from sync.log.log import EventLog
from sync.log.model import Event, EventPage, Query
from sync.redaction import Redactor
from sync.settings.sections import DocumentSettings
from sync.settings.values import KeepLimit

MORNING = datetime(2026, 1, 8, 9, 0, 0, tzinfo=timezone(timedelta(hours=8)))
DEFAULT_KEEP_VERSIONS = 200


@dataclass
class ManualClock:
    """Shows the same time until the test moves it. Its random bytes are seeded."""

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

    def advance(self, **by: float) -> None:
        self.time += timedelta(**by)


@dataclass
class DocumentHarness:
    """One device's document service without a process around it."""

    file: Path
    database: Database
    log: EventLog
    clock: ManualClock
    redactor: Redactor
    memory: MemoryFile
    app_cache: Path | None
    options: DocumentSettings
    write_back: bool = False
    other_profiles: OtherProfiles | None = None
    external_actions: list[Callable[[], object]] = field(default_factory=list)

    @property
    def parked_folder(self) -> Path:
        return self.database.path.parent / "parked"

    async def sleep(self, _: float) -> None:
        """Instead of sleeping, run the next external action on the file."""
        if self.external_actions:
            self.external_actions.pop(0)()

    async def pull_from(self, *others: "DocumentHarness") -> None:
        """Insert what other devices recorded, as a pull does."""
        for other in others:
            page = await other.log.read(Query(limit=100_000))

            def insert(connection: Transaction, page: EventPage = page) -> None:
                new = [event for event in page.events if log_store.find_event(connection, event.event_id) is None]
                for event in new:
                    log_store.insert_event(connection, replace(event, position=0))
                log_store.observe_remote_events(connection, new, self.clock)

            await self.database.write(insert)
        await self.memory.reconcile()

    def restart(self) -> None:
        """A new service on the same database, as after a crash."""
        self.memory = self.new_service(
            MemoryFileDeps(self.app_cache, self.write_back, self.other_profiles, self.parked_folder)
        )

    def new_service(self, deps: MemoryFileDeps) -> MemoryFile:
        clock, options = self.clock, self.options
        return MemoryFile(self.file, self.log, self.redactor, clock=clock, options=options, deps=deps, sleep=self.sleep)

    async def record_exchange(self, question: str, answer: str = "好的") -> str:
        """Record one exchange, as `update` does; its event id."""
        drafts = draft_exchange_events(
            ExchangeInput(question, answer), self.redactor, device_id=self.log.device_id, store_messages=False
        )
        return (await self.log.append(drafts))[0].event.event_id

    async def record_and_reconcile(self, *questions: str) -> None:
        """Record and reconcile each question in a version of its own."""
        for question in questions:
            await self.record_exchange(question)
            await self.memory.reconcile()

    async def manual_edit_events(self) -> list[Event]:
        """The events of manual edits, oldest first."""
        return [event for event in (await self.log.read(Query())).events if event.type != EXCHANGE_RECORDED]

    async def versions(self, surface: str = document_store.FILE) -> list[tuple[str | None, str]]:
        """Label and cause of every stored version, oldest first."""
        with closing(sqlite3.connect(self.database.path)) as connection:
            rows = connection.execute("select label, cause from written where surface = ? order by version", [surface])
            return rows.fetchall()

    async def newest_version(self) -> Version:
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

    def add_line_under(self, heading: str, line: str) -> None:
        """Insert a line below a heading."""
        self.replace(f"{heading}\n", f"{heading}\n{line}\n")


class FakeAppCache:
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
async def open_document_harness(
    folder: Path,
    *,
    file: Path | None = None,
    app_cache: Path | None = None,
    keep_versions: int = DEFAULT_KEEP_VERSIONS,
    write_back: bool = False,
    other_profiles: OtherProfiles | None = None,
    device: str = "device-a",
    keep_days: int = 30,
) -> AsyncIterator[DocumentHarness]:
    """Open everything, and close it at the end. `file`: the memory file, if not in the folder."""
    clock = ManualClock(chance=random.Random(device))
    folder.mkdir(exist_ok=True)
    database = await Database.open(folder / "memory.db")
    try:
        await database.write(lambda connection: log_store.ensure_replica_id(connection, clock))
        log = EventLog(database, clock, device_id=device, session_id="sess_test")
        redactor = Redactor()
        file = file or folder / "xiaobai-ai-memory.md"
        unborn: Any = None
        options = DocumentSettings(keep_versions=keep_versions, keep_days=KeepLimit(keep_days))
        harness = DocumentHarness(
            file, database, log, clock, redactor, unborn, app_cache, options, write_back, other_profiles
        )
        harness.restart()
        yield harness
    finally:
        await database.close()
