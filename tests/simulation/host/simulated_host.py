"""The simulated host: no threads, seeded names, a disk that can fail, processes that can die.

A process dies at a *point* (each commit, write, rename, fsync and request). Afterwards each touch raises `ProcessDied`,
so no `finally` block takes effect, as after kill -9. A power loss may undo a rename without an fsync of the folder and
cut unsynced bytes; SQLite's own durability is tested elsewhere. Files get the simulated time.
"""

import asyncio
import errno
import gc
import io
import os
import random
import secrets
import sqlite3
import stat
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar, cast
from weakref import WeakKeyDictionary

from sqlalchemy import Engine
from sqlalchemy.pool import StaticPool

import sync.db.engine
import sync.db.write_lock
import sync.document.store
import sync.open_app
import sync.system.atomic_swap
import sync.system.files
from sync.clock import in_zone
from sync.db.engine import BUSY_TIMEOUT_MS, Transaction
from sync.document.store import SnapshotCache
from sync.encryption import emptied_marker
from sync.encryption.driver import PLAIN_ACCESS, DatabaseAccess
from sync.redaction import Redactor
from sync.system.files import PRIVATE_FILE
from tests.simulation.host.quick_sql import QuickConnection
from tests.support import START, InlineExecutor

T = TypeVar("T")

CURRENT: ContextVar["SimulatedProcess | None"] = ContextVar("process", default=None)
TORN: Final = (".tmp", ".part")  # what the program writes before it renames or links
FILE_FAULTS: Final = (errno.EIO, errno.ENOSPC, errno.EACCES)
DATABASE_FAULTS: Final = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_BUSY)


COMPILED: Final[dict[Any, Any]] = {}  # SQL is compiled once, not once a database: all engines have one dialect
REAL_BARE: Final = sync.db.engine.engine_without_pragmas  # replaced during a run
REAL_PREPARE: Final = sync.db.engine._create_and_migrate
TAKEN: Final[WeakKeyDictionary[Engine, QuickConnection]] = WeakKeyDictionary()


class ProcessDied(BaseException):
    """kill -9 reached the process at this point. No `except Exception` may stop it."""


class DeviceClock:
    """A device's clock: the loop's time, and how wrong it is. Its chance is seeded."""

    def __init__(self, seed: str, skew: float = 0.0) -> None:
        self.skew = skew  # seconds
        self._chance = random.Random(seed)

    def now(self) -> datetime:
        return START + timedelta(seconds=asyncio.get_running_loop().time() + self.skew)

    def local(self, moment: datetime) -> datetime:
        return in_zone(moment, START.tzinfo)

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    def random_bytes(self, count: int) -> bytes:
        return self._chance.randbytes(count)


@dataclass
class SimulatedDisk:
    """A device's disk, as far as the program's own files go: what a power loss would undo or cut."""

    _synced: set[int] = field(default_factory=set)  # inodes whose bytes are down
    _renamed: dict[Path, tuple[bytes | None, int]] = field(default_factory=dict)  # the former content, the new inode
    _cut: dict[Path, int] = field(default_factory=dict)  # renamed for good, with bytes that are not down

    def record_sync(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        if not stat.S_ISDIR(found.st_mode):
            self._synced.add(found.st_ino)
            return
        folders = {folder for folder in {path.parent for path in self._renamed} if _inode(folder) == found.st_ino}
        for path in [path for path in self._renamed if path.parent in folders]:
            _, inode = self._renamed.pop(path)
            if inode not in self._synced:
                self._cut[path] = inode

    def record_rename(self, path: Path, before: bytes | None) -> None:
        before = self._renamed[path][0] if path in self._renamed else before
        self._renamed[path] = (before, path.stat().st_ino)
        self._cut.pop(path, None)

    def record_editor_save(self, path: Path) -> None:
        """Editors sync what they save; their losses are not ours."""
        self._renamed.pop(path, None)
        self._cut.pop(path, None)

    def lose_power(self, chance: random.Random, touch: Callable[[Path], None]) -> list[Path]:
        """What was not synced is gone or cut; the files this happened to."""
        lost = []
        for path, (before, inode) in self._renamed.items():
            if not path.exists() or path.stat().st_ino != inode:
                continue
            data = path.read_bytes() if inode in self._synced else _cut(path.read_bytes(), chance)
            outcome = chance.choice([before, data])
            path.unlink()
            if outcome is not None:
                path.write_bytes(outcome)
                touch(path)
            lost.append(path)
        for path, inode in self._cut.items():
            if path.exists() and path.stat().st_ino == inode:
                path.write_bytes(_cut(path.read_bytes(), chance))
                touch(path)
                lost.append(path)
        self._renamed.clear()
        self._cut.clear()
        return lost


def _inode(folder: Path) -> int | None:
    """None for one that is not there, as a profile's may be."""
    try:
        return folder.stat().st_ino
    except FileNotFoundError:
        return None


def _cut(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data))] if data else data


@dataclass
class SimulatedProcess:
    """One run of a device's program. `fuse`: after how many points it dies."""

    device: str
    chance: random.Random
    disk: SimulatedDisk
    on_trace: Callable[[str], None]
    file_errors: float = 0.0
    database_errors: float = 0.0
    slowest: float = 0.0  # seconds until a commit begins, at most
    alive: bool = True
    fuse: int | None = None
    ended: Callable[[], None] = lambda: None
    engines: dict[Path, Engine] = field(default_factory=dict)  # one for a database
    held: list[Callable[[], None]] = field(default_factory=list)  # gives back what the system takes from a dead process

    def point(self, label: str) -> None:
        """A place where the process can die. Raises ProcessDied."""
        if not self.alive:
            raise ProcessDied(label)
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse <= 0:
                self.die(label)
                raise ProcessDied(label)

    def die(self, label: str) -> None:
        if self.alive:
            self.alive = False
            self.on_trace(f"{self.device} died at {label}")
            self.ended()

    def release(self) -> None:
        """Locks and connections, also those of a coroutine that never came to its end."""
        while self.held:
            self.held.pop()()

    def file_fault(self, what: str, path: Path) -> None:
        """Raises OSError where this touch of the disk fails."""
        if self.file_errors and self.chance.random() < self.file_errors:
            code = self.chance.choice(FILE_FAULTS)
            self.on_trace(f"{self.device} {what} fails: {errno.errorcode[code]}")
            raise OSError(code, os.strerror(code), str(path))

    def database_fault(self) -> None:
        """Raises SQLite's error where this commit fails."""
        if self.database_errors and self.chance.random() < self.database_errors:
            code = self.chance.choice(DATABASE_FAULTS)
            self.on_trace(f"{self.device} commit fails: {code}")
            error = sqlite3.OperationalError("the disk failed, says the simulator")
            error.sqlite_errorcode = code
            error.sqlite_errorname = "SIMULATED"
            raise error


class _Executor(InlineExecutor):
    """The process's thread for SQLite, in the process's own thread. What is handed in may have to wait for the disk."""

    def __init__(self, _workers: int, name: str) -> None:
        super().__init__(1)
        self._process = CURRENT.get()
        self._writes = name.endswith("write")
        self._handed_in: deque[Callable[[], object]] = deque()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """The future is unused: the function reports its own result."""
        self._handed_in.append(partial(fn, *args, **kwargs))
        if self._process is not None and self._process.slowest:
            wait = self._process.chance.uniform(0.0, self._process.slowest)
            asyncio.get_running_loop().call_later(wait, self._work_off)
        else:
            self._work_off()
        return Future()

    def call(self, fn: Callable[..., T], /, *args: Any) -> T:
        self._work_off()
        return self._run(partial(fn, *args))

    def _work_off(self) -> None:
        while self._handed_in:
            with suppress(ProcessDied):  # the waiting task is cancelled with the process
                self._run(self._handed_in.popleft())

    def _run(self, work: Callable[[], T]) -> T:
        process = self._process
        if process is None:
            return work()
        if not self._writes:
            if not process.alive:
                raise ProcessDied("read")
            return work()
        process.point("before the transaction")
        done = work()
        process.point("after the commit")
        return done


@contextmanager
def _transaction(engine: Engine, begin: str) -> Iterator[Transaction]:
    """As `sync.db.engine.transaction`, on a connection that is taken from the pool once.

    And in a transaction that SQLAlchemy began once, so that it has nothing to do when SQLite begins one and ends it.
    """
    process = CURRENT.get()
    connection = TAKEN.get(engine)
    if connection is None:
        connection = TAKEN[engine] = cast("QuickConnection", engine.connect())
        connection.begin()
    try:
        connection.driver.execute(begin)
        yield connection
        if process is not None and begin == sync.db.write_lock.BEGIN_IMMEDIATE:
            process.point("before the commit")
            process.database_fault()
        connection.driver.execute("commit")
    except BaseException:
        _give_back(engine)  # the next transaction does not inherit its state
        raise


def _give_back(engine: Engine) -> None:
    if (connection := TAKEN.pop(engine, None)) is not None:
        connection.close()


class SimulatedHost:
    """Everything that devices share: the passing of file times, and the patches."""

    def __init__(self, seed: int) -> None:
        self._names = random.Random(f"names {seed}")
        self._tick = 0
        self._real: dict[str, Callable[..., Any]] = {
            "fsync": os.fsync,
            "replace": os.replace,
            "link": os.link,
            "open": os.open,
            "io": io.open,
        }
        self.overwriting: Callable[[str, Path], None] = lambda _device, _path: None  # before a rename onto a file

    def touch(self, path: Path | int, skew: float = 0.0) -> None:
        """Give a file the simulated time of a clock, one of its own."""
        self._tick += 1
        at = int(START.timestamp() + asyncio.get_running_loop().time() + skew) * 10**9 + self._tick
        os.utime(path, ns=(at, at))

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run simulated processes in this block.

        Garbage collection is off: a finalizer may create a task, at a time that depends on the process's memory.
        """
        collects = gc.isenabled()
        gc.disable()
        patches: list[tuple[Any, str, Any]] = [
            (os, "fsync", self._fsync),
            (os, "replace", self._replace),
            (os, "link", self._link),
            (os, "open", self._open),
            (io, "open", self._open_file),
            (secrets, "token_hex", lambda count: self._names.randbytes(count).hex()),
            (sync.db.engine, "ThreadPoolExecutor", _Executor),
            (sync.db.engine, "engine_without_pragmas", _bare_engine),
            (sync.db.engine, "_engine_with_pragmas", _shared(sync.db.engine._engine_with_pragmas)),
            (sync.db.engine, "transaction", _transaction),
            (sync.db.engine, "_create_and_migrate", _prepare),
            (sync.open_app, "Redactor", _redactor),
            (sync.document.store, "RECENT_SNAPSHOTS", SnapshotCache(64)),  # room for the documents of all devices
            (
                sync.system.atomic_swap,
                "_system_rename",
                lambda *_, **__: False,
            ),  # the modelled disk knows plain renames
        ]
        before = [(place, name, getattr(place, name)) for place, name, _ in patches]
        try:
            for place, name, value in patches:
                setattr(place, name, value)
            yield
        finally:
            for place, name, value in before:
                setattr(place, name, value)
            if collects:
                gc.enable()

    def _fsync(self, descriptor: int) -> None:
        process = CURRENT.get()
        if process is not None:
            process.point("before fsync")
            process.disk.record_sync(descriptor)
        if process is not None and not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            self.touch(descriptor)

    def _replace(self, source: Any, target: Any, **more: Any) -> None:
        process = CURRENT.get()
        path = Path(target)
        if process is None:
            self._real["replace"](source, target, **more)
            return
        process.point("before the rename")
        process.file_fault("rename", path)
        before = path.read_bytes() if path.exists() else None
        self.overwriting(process.device, path)
        self._real["replace"](source, target, **more)
        process.disk.record_rename(path, before)
        process.point("after the rename")

    def _link(self, source: Any, target: Any, **more: Any) -> None:
        process = CURRENT.get()
        path = Path(target)
        if process is not None:
            process.point("before the link")
            process.file_fault("link", path)
        self._real["link"](source, target, **more)
        if process is not None:
            process.disk.record_rename(path, None)
            process.point("after the link")

    def _open(self, path: Any, flags: int, *args: Any, **more: Any) -> int:
        process = CURRENT.get()
        if process is not None and str(path).endswith(TORN):
            process.point("before the write")
            process.file_fault("write", Path(path))
        return int(self._real["open"](path, flags, *args, **more))

    def _open_file(self, path: Any, *args: Any, **more: Any) -> Any:
        process = CURRENT.get()
        if process is not None and str(path).endswith(".md"):
            process.file_fault("read", Path(path))
        return self._real["io"](path, *args, **more)


def _shared(make: Callable[..., Engine]) -> Callable[..., Engine]:
    """Engines that share what they compile; and a process has one for a file, as nothing in it is done at once."""

    def made(path: Path, access: DatabaseAccess) -> Engine:
        process = CURRENT.get()
        if process is not None and (known := process.engines.get(path)) is not None:
            return known
        engine = make(path, access)
        engine._compiled_cache = COMPILED
        engine._connection_cls = QuickConnection
        disposed = engine.dispose

        def dispose(*, close: bool = True) -> None:
            _give_back(engine)
            disposed(close=close)

        engine.dispose = dispose  # type: ignore[method-assign, assignment]
        if process is not None:
            process.engines[path] = engine
            process.held.append(engine.dispose)
        return engine

    return made


def _bare_engine(path: Path, access: DatabaseAccess) -> Engine:
    """As `sync.db.engine.engine_without_pragmas`; SQLAlchemy's first queries are answered once.

    That saves a twenty-fifth of a run.
    """
    model = _model(access)
    creator: Callable[[], Any] = partial(access.connect, path, timeout=BUSY_TIMEOUT_MS / 1000)
    return Engine(StaticPool(creator, dialect=model.dialect), model.dialect, model.url, hide_parameters=True)


@cache
def _model(access: DatabaseAccess) -> Engine:
    """An engine that has been connected, as its dialect then knows all it wants to."""
    engine = REAL_BARE(Path(":memory:"), access)
    engine.connect().close()
    return engine


def _prepare(path: Path, engine: Engine, **options: Any) -> bool:
    """A new database is a copy of an empty one, unless its process could die or fail while creating it.

    That saves a twentieth of a run.
    """
    process = CURRENT.get()
    if process is not None and process.fuse is None and not process.database_errors and not path.exists():
        emptied_marker.refuse_emptied(path)
        path.touch(PRIVATE_FILE, exist_ok=False)
        path.write_bytes(Context().run(_empty))
    return REAL_PREPARE(path, engine, **options)


@cache
def _empty() -> bytes:
    """Created by no simulated process."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "empty.db"
        engine = sync.db.engine._engine_with_pragmas(path, PLAIN_ACCESS)
        REAL_PREPARE(path, engine)
        engine.dispose()
        return path.read_bytes()


@cache
def _redactor(**rules: Any) -> Redactor:
    """What a redactor keeps changes no answer, so all devices share one; making it takes longer than a history."""
    return Redactor(**rules)
