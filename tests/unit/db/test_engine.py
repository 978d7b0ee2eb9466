"""One SQLite file: durable, private, shared by many writers, and every failure of it an error of ours."""

import asyncio
import multiprocessing
import os
import sqlite3
import stat
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sync.db.engine import MAX_GROUP_COMMIT, Database, Transaction
from sync.db.migrate import APPLICATION_ID, known_migrations
from sync.errors import (
    InvalidInput,
    SchemaTooNew,
    StorageBusy,
    StorageCorrupt,
    StorageError,
    StorageFull,
    StorageReadOnly,
)
from tests.support import run_unprivileged

INSERT = "insert into watermarks (name, position, updated_at) values ('{}', {}, 'now')"


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "memory.db")
    yield opened
    await opened.close()


def insert(name: str, position: int = 0) -> Any:
    return lambda connection: connection.exec_driver_sql(INSERT.format(name, position))


def insert_then(name: str, error: Exception) -> Any:
    def work(connection: Transaction) -> None:
        connection.exec_driver_sql(INSERT.format(name, 0))
        raise error

    return work


async def names(database: Database) -> set[str]:
    def asking(connection: Transaction) -> set[str]:
        return set(connection.exec_driver_sql("select name from watermarks").scalars())

    return await database.read(asking)


async def names_in(path: Path) -> set[str]:
    database = await Database.open(path)
    try:
        return await names(database)
    finally:
        await database.close()


def pragma(name: str) -> Any:
    return lambda connection: connection.exec_driver_sql(f"pragma {name}").scalar_one()


class BlockedWriter:
    """Keeps the writer thread busy inside a transaction until `release`, so that everything after it queues up."""

    def __init__(self, database: Database) -> None:
        self._begun, self._go_on = threading.Event(), threading.Event()
        self._task = asyncio.create_task(database.write(self._work))

    def _work(self, _: Transaction) -> None:
        self._begun.set()
        assert self._go_on.wait(10)

    async def until_begun(self) -> None:
        await asyncio.to_thread(self._begun.wait, 10)

    async def release(self) -> None:
        self._go_on.set()
        await self._task


async def test_both_connections_are_durable_and_in_wal_mode(database: Database) -> None:
    for run in (database.write, database.read):
        assert await run(pragma("synchronous")) == 2
        assert await run(pragma("journal_mode")) == "wal"
        assert await run(pragma("foreign_keys")) == 1
    assert await database.read(pragma("application_id")) == APPLICATION_ID


async def test_a_connection_that_is_not_durable_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sync.db.engine.SYNCHRONOUS_FULL", 3)
    with pytest.raises(StorageError, match="synchronous"):
        await Database.open(tmp_path / "memory.db")


async def test_every_file_is_private_from_birth_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        database = await Database.open(tmp_path / "memory.db")
        await database.write(insert("one"))
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()}
        await database.close()
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("memory.db", "memory.db-wal", "memory.db-shm", "memory.db.begun"), 0o600)


async def test_what_was_written_is_there_after_reopening(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "memory.db")
    await database.write(insert("kept"))
    await database.close()
    reopened = await Database.open(tmp_path / "memory.db")
    assert await names(reopened) == {"kept"}
    assert await reopened.read(pragma("integrity_check")) == "ok"
    await reopened.close()


async def test_writes_that_arrive_during_a_commit_share_the_next_one(database: Database) -> None:
    said: list[str] = []

    def listen(connection: Transaction) -> None:
        driver: Any = connection.connection.driver_connection
        driver.set_trace_callback(said.append)

    await database.write(listen)
    held = BlockedWriter(database)
    await held.until_begun()
    said.clear()
    writes = [asyncio.create_task(database.write(insert(f"w{n}"))) for n in range(MAX_GROUP_COMMIT + 10)]
    await asyncio.sleep(0)
    await held.release()
    await asyncio.gather(*writes)
    assert said.count("COMMIT") == 3, "the one that was under way, a full one, and the rest"
    assert said.count("BEGIN IMMEDIATE") == 2
    assert len(await names(database)) == MAX_GROUP_COMMIT + 10


@pytest.mark.parametrize(
    "bad",
    [
        insert_then("half", InvalidInput("no")),
        insert_then("half", KeyError("a defect")),
        lambda connection: [connection.exec_driver_sql(INSERT.format(name, 0)) for name in ("half", "half")],
        lambda connection: connection.exec_driver_sql("insert into no_such_table values (1)"),
        lambda connection: connection.exec_driver_sql("this is no sql"),
        lambda connection: connection.exec_driver_sql("select zeroblob(2000000000)"),
    ],
    ids=["ours", "defect", "constraint", "no table", "syntax", "too big"],
)
async def test_a_failing_work_does_not_harm_its_neighbours(database: Database, bad: Any) -> None:
    held = BlockedWriter(database)
    await held.until_begun()
    works = [database.write(work) for work in (insert("before"), bad, insert("after"))]
    gathered = asyncio.gather(*works, return_exceptions=True)
    await asyncio.sleep(0)
    await held.release()
    before, failed, after = await gathered
    assert not isinstance(before, BaseException)
    assert isinstance(failed, Exception)
    assert not isinstance(after, BaseException)
    assert await names(database) == {"before", "after"}


async def test_a_cancelled_caller_leaves_no_open_transaction(database: Database, tmp_path: Path) -> None:
    held = BlockedWriter(database)
    await held.until_begun()
    waiting = asyncio.create_task(database.write(insert("cancelled")))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await held.release()
    await database.write(insert("next"))
    with sqlite3.connect(tmp_path / "memory.db", timeout=0) as other:
        other.execute("begin immediate")
        other.execute(INSERT.format("other", 0))
    other.close()
    assert {"next", "other"} <= await names(database)


async def test_a_cancelled_reader_does_not_hold_up_the_next_one(database: Database) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(_: Transaction) -> None:
        begun.set()
        assert go_on.wait(10)

    reading = asyncio.create_task(database.read(slow))
    await asyncio.to_thread(begun.wait, 10)
    reading.cancel()
    go_on.set()
    assert await names(database) == set()


async def test_a_reader_sees_the_last_commit_while_a_writer_is_at_work(database: Database) -> None:
    await database.write(insert("committed"))
    held = BlockedWriter(database)
    await held.until_begun()
    assert await names(database) == {"committed"}
    await held.release()


async def test_a_lock_held_too_long_by_another_process_raises_and_passes(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sync.db.engine.BUSY_TIMEOUT_MS", 0)
    other = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
    other.execute("begin immediate")
    with pytest.raises(StorageBusy):
        await database.write(insert("refused"))
    assert await names(database) == set(), "reading goes on"
    other.execute("rollback")
    other.close()
    await database.write(insert("accepted"))
    assert await names(database) == {"accepted"}


async def test_a_full_disk_refuses_writes_and_recovers_by_itself(database: Database) -> None:
    await database.write(insert("before"))
    pages = await database.write(pragma("page_count"))
    await database.write(pragma(f"max_page_count = {pages}"))

    def much(connection: Transaction) -> None:
        connection.exec_driver_sql(INSERT.format("much", 0))
        for number in range(200):
            connection.exec_driver_sql(INSERT.format(f"{number}-" + "x" * 1000, 0))

    with pytest.raises(StorageFull) as caught:
        await database.write(much)
    assert caught.value.retryable
    assert await names(database) == {"before"}
    await database.write(pragma("max_page_count = 1000000"))
    await database.write(insert("after"))
    assert await names(database) == {"before", "after"}
    assert await database.read(pragma("integrity_check")) == "ok"


async def test_on_a_full_disk_all_callers_of_a_shared_commit_fail(database: Database) -> None:
    pages = await database.write(pragma("page_count"))
    await database.write(pragma(f"max_page_count = {pages}"))
    held = BlockedWriter(database)
    await held.until_begun()
    works = [database.write(insert(f"{number}-" + "x" * 3000)) for number in range(50)]
    gathered = asyncio.gather(*works, return_exceptions=True)
    await asyncio.sleep(0)
    await held.release()
    outcomes = await gathered
    stored = await names(database)
    assert any(isinstance(outcome, StorageFull) for outcome in outcomes)
    for number, outcome in enumerate(outcomes):
        there = any(name.startswith(f"{number}-") for name in stored)
        assert there == (not isinstance(outcome, BaseException))


@pytest.mark.parametrize("content", [b"this is no database, but it is long enough to look like one" * 20, b"x" * 4096])
async def test_a_file_that_is_no_database_raises_and_stays_unchanged(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(content)
    with pytest.raises(StorageCorrupt):
        await Database.open(path)
    assert path.read_bytes() == content
    assert not open_descriptors(path)


async def test_torn_pages_raise_corruption(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    database = await Database.open(path)
    for number in range(200):
        await database.write(insert(f"{number}-" + "x" * 500))
    await database.close()
    content = bytearray(path.read_bytes())
    content[4096:] = os.urandom(len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(StorageCorrupt):
        await names_in(path)


async def test_a_database_of_a_newer_program_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    await (await Database.open(path)).close()
    newest = known_migrations()[-1].version
    with sqlite3.connect(path) as other:
        other.execute(f"pragma user_version = {newest + 1}")
    other.close()
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match=str(newest + 1)):
        await Database.open(path)
    assert path.read_bytes() == before
    assert not open_descriptors(path)


async def test_a_database_of_another_program_is_not_taken_over(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with sqlite3.connect(path) as other:
        other.execute("create table theirs (x)")
        other.execute("pragma application_id = 12345")
    other.close()
    with pytest.raises(StorageCorrupt, match="another program"):
        await Database.open(path)
    with sqlite3.connect(path) as other:
        assert other.execute("select name from sqlite_master").fetchall() == [("theirs",)]
    other.close()


async def test_an_empty_file_becomes_a_database(tmp_path: Path) -> None:
    (tmp_path / "memory.db").touch(mode=0o600)
    database = await Database.open(tmp_path / "memory.db")
    await database.write(insert("one"))
    await database.close()


async def test_a_write_after_close_fails_at_once(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "memory.db")
    await database.close()
    for _ in range(2):
        with pytest.raises(StorageError, match="closed"):
            await asyncio.wait_for(database.write(insert("late")), 10)


def test_without_permission_the_kind_says_so() -> None:
    said = run_unprivileged(
        """
        from sync.db.engine import Database
        async def main(folder):
            try:
                await Database.open(folder / "new.db")
            except Exception as error:
                print(type(error).__name__)
            try:
                await Database.open(folder / "memory.db")
            except Exception as error:
                print(type(error).__name__)
        """,
        argument=("memory.db",),
    )
    assert said.split() == [StorageReadOnly.__name__] * 2


def test_a_data_directory_without_permission_raises_read_only() -> None:
    said = run_unprivileged(
        """
        from sync.accounts.profiles import open_installation, acquire_sidecar_lock
        from sync.errors import StorageReadOnly
        async def main(folder):
            for call in (
                lambda: open_installation(folder, lambda: None),
                lambda: open_installation(folder / "below", lambda: None),
                lambda: acquire_sidecar_lock(folder, timeout=0),
            ):
                try:
                    call()
                except Exception as error:
                    print(type(error).__name__)
        """,
        argument=(),
    )
    assert said.split() == [StorageReadOnly.__name__] * 3


def open_and_write(path: str) -> str:
    async def run() -> None:
        database = await Database.open(Path(path))
        await database.write(insert(f"process-{os.getpid()}"))
        await database.close()

    asyncio.run(run())
    return f"process-{os.getpid()}"


async def test_processes_that_open_a_new_database_at_once_all_write(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        wrote = await asyncio.to_thread(pool.map, open_and_write, [str(path)] * 3, 1)
    database = await Database.open(path)
    assert await names(database) == set(wrote)
    assert await database.read(pragma("integrity_check")) == "ok"
    await database.close()


def open_descriptors(path: Path) -> list[str]:
    """Descriptors of this process that point at the file; only Linux can say."""
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        return []
    held = []
    for entry in folder.iterdir():
        try:
            held.append(str(entry.readlink()))
        except OSError:
            continue
    return [name for name in held if name.startswith(str(path))]
