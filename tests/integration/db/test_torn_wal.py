"""A power cut leaves any part of the write-ahead log: what was committed before it is there, and nothing by halves."""

import random
import shutil
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import text

from sync.db.engine import Database, Transaction

COMMITS: Final = 40
HEADER: Final = 32  # bytes of the log before its first frame; a frame has 24 more than a page
SECTOR: Final = 512


@pytest.fixture
async def cut_off(tmp_path: Path) -> Path:
    """A database and its log as they lie on the disk while the program is still running: nothing is checkpointed."""
    running, copy = tmp_path / "running", tmp_path / "after"
    running.mkdir()
    copy.mkdir()
    database = await Database.open(running / "memory.db")
    for number in range(COMMITS):
        await database.write(lambda connection, number=number: two_rows(connection, number))  # type: ignore[misc]
    for name in ("memory.db", "memory.db-wal"):
        shutil.copy(running / name, copy / name)
    await database.close()
    return copy


def two_rows(connection: Transaction, number: int) -> None:
    """One commit: two rows that must come and go together."""
    for half in ("a", "b"):
        values = {"name": f"{number:03} {half}", "position": number}
        connection.execute(text("insert into watermarks values (:name, :position, 'now')"), values)


async def commits_in(path: Path) -> list[int]:
    database = await Database.open(path)
    try:
        assert await database.read(lambda to: to.exec_driver_sql("pragma integrity_check").scalar()) == "ok"
        found = await database.read(
            lambda to: list(to.exec_driver_sql("select name from watermarks order by name").scalars())
        )
    finally:
        await database.close()
    whole = [number for number in range(COMMITS) if f"{number:03} a" in found]
    assert found == [f"{number:03} {half}" for number in whole for half in ("a", "b")]
    return whole


@pytest.mark.parametrize("seed", range(12))
async def test_a_log_that_was_cut_keeps_the_commits_before_the_cut(cut_off: Path, seed: int) -> None:
    wal = cut_off / "memory.db-wal"
    content = wal.read_bytes()
    at = random.Random(seed).randrange(HEADER, len(content))
    wal.write_bytes(content[:at])
    found = await commits_in(cut_off / "memory.db")
    assert found == list(range(len(found)))
    assert await commits_in(cut_off / "memory.db") == found  # opening it again takes nothing away


@pytest.mark.parametrize("damage", ["zeros", "noise"])
@pytest.mark.parametrize("seed", range(4))
async def test_a_torn_sector_ends_the_log_there(cut_off: Path, damage: str, seed: int) -> None:
    chance = random.Random(seed)
    wal = cut_off / "memory.db-wal"
    content = bytearray(wal.read_bytes())
    at = chance.randrange(1, len(content) // SECTOR) * SECTOR
    content[at : at + SECTOR] = bytes(SECTOR) if damage == "zeros" else chance.randbytes(SECTOR)
    wal.write_bytes(content)
    found = await commits_in(cut_off / "memory.db")
    assert found == list(range(len(found)))


async def test_a_whole_log_keeps_every_commit(cut_off: Path) -> None:
    assert await commits_in(cut_off / "memory.db") == list(range(COMMITS))
