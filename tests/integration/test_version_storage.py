"""Versions are stored as differences: what that costs, and that nothing of a version is lost or left behind by it."""

import sqlite3
import zlib
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, select, update

from sync.db.salvage import open_or_salvage
from sync.db.tables import written
from sync.document import store
from sync.document.differences import IN_A_ROW, whole
from sync.document.forgetting import ask
from sync.log.intake import Intake
from tests.integration.document_desk import MORNING, Desk, on_a_desk

HABITS = "### 工作习惯"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """With a document that is large enough for differences: a small one is often stored whole."""
    async with on_a_desk(tmp_path / "home") as found:
        await fill(found, 600)
        yield found


async def fill(desk: Desk, lines: int) -> None:
    """Two versions, the second with so many lines typed by hand."""
    await desk.said("起")
    desk.type_under(HABITS, "\n".join(f"- 第 {number} 条" + "长" * 60 for number in range(lines)))
    await desk.memory.settle()


def rows(desk: Desk, columns: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(desk.database.path)) as connection:
        return connection.execute(f"select {columns} from written order by version").fetchall()


async def texts(desk: Desk) -> list[str]:
    """What every stored version says, oldest first."""
    store.RECENT.clear()
    kept = await desk.database.read(lambda connection: store.kept(connection, after=0, limit=1000))
    return [row["text"] for row in kept]


async def stored_for_twenty_updates(folder: Path, lines: int) -> int:
    """Bytes of content that twenty updates add to a document of so many lines, besides versions stored whole."""
    async with on_a_desk(folder) as desk:
        await fill(desk, lines)
        await desk.said("一")
        (before,) = rows(desk, "max(version)")[0]
        await desk.said(*(f"问题 {number}" for number in range(20)))
        added = rows(desk, f"sum(length(bytes) + length(entry_ids)) filter (where version > {before} and base > 0)")
        return int(added[0][0])


async def test_an_update_stores_as_much_in_a_large_document_as_in_a_small_one(tmp_path: Path) -> None:
    small = await stored_for_twenty_updates(tmp_path / "small", 700)
    large = await stored_for_twenty_updates(tmp_path / "large", 3500)

    assert large < 1.2 * small


async def test_every_version_is_read_as_it_was_written_and_a_whole_one_comes_at_intervals(desk: Desk) -> None:
    seen = []
    for number in range(3 * IN_A_ROW):
        await desk.say(f"问题 {number}")
        if number % 7 == 0:
            desk.type_under("### 常用命令" if number % 2 else HABITS, f"- 手写 {number}")
        await desk.memory.settle()
        seen.append(desk.text)

    assert set(seen) <= set(await texts(desk))
    bases = [base for (base,) in rows(desk, "base")]
    assert 4 <= bases.count(None) <= 12


async def test_a_version_that_others_differ_from_outlives_the_ring(tmp_path: Path) -> None:
    async with on_a_desk(tmp_path / "home", keep_versions=20) as desk:
        seen = []
        for number in range(20 + IN_A_ROW + 10):
            await desk.said(f"问题 {number}")
            seen.append(desk.text)
        assert (await texts(desk))[-20:] == seen[-20:]
        assert len(rows(desk, "version")) <= 21 + IN_A_ROW


async def test_what_is_forgotten_leaves_the_versions_and_those_that_differ_from_them(desk: Desk) -> None:
    await desk.said("一")
    secret = await desk.say("茶叶的秘密")
    await desk.memory.settle()
    await desk.said(*(f"问题 {number}" for number in range(2 * IN_A_ROW)))
    before = await texts(desk)
    assert sum("茶叶" in one for one in before) > IN_A_ROW

    await ask(desk.log, Intake(desk.redactor), [secret])
    await desk.memory.settle()

    left = await texts(desk)
    assert not any("茶叶" in one for one in left)
    assert [one.count("问题") for one in left[: len(before)]] == [one.count("问题") for one in before]
    assert not any(b"\xe8\x8c\xb6\xe5\x8f\xb6" in zlib.decompress(data) for (data,) in rows(desk, "bytes"))
    assert not any(secret in ids for (ids,) in rows(desk, "entry_ids"))


async def test_versions_of_before_stay_and_new_ones_differ_from_them(desk: Desk) -> None:
    await desk.said("一", "二", "三")
    before = await texts(desk)
    await desk.database.write(store_all_whole)

    await desk.said("四", "五")

    assert (await texts(desk))[:5] == before
    assert rows(desk, "base")[5:] == [(5,), (5,)]
    assert [past.entries for past in await desk.memory.versions.history(10)] == [612, 610, 608, 606, 604, 602, 2]
    await desk.memory.restore((await desk.memory.versions.history(10))[3].sha256)
    assert "三" not in desk.text
    assert "二" in desk.text


def store_all_whole(connection: Connection) -> None:
    """As the schema before differences did."""
    found = connection.execute(select(written)).mappings().all()
    for row, (data, ids) in [(row, whole(store._snapshot(connection, row))) for row in found]:
        values = {"bytes": data, "entry_ids": ids, "base": None, "entries": None}
        connection.execute(update(written).where(written.c.version == row["version"]).values(values))


async def test_with_a_damaged_base_only_the_versions_that_differ_from_it_are_lost(tmp_path: Path) -> None:
    async with on_a_desk(tmp_path) as desk:
        await fill(desk, 600)
        for number in range(2 * IN_A_ROW):
            await desk.said(f"问题 {number}")
        stored = rows(desk, "version, base, bytes")
        ((index,),) = await desk.database.read(
            lambda to: to.exec_driver_sql("select rootpage from sqlite_master where name = 'events_by_type'").all()
        )
    path = desk.database.path
    middle = next(base for _, base, _ in reversed(stored[:-IN_A_ROW]) if base is not None)
    (data,) = (data for version, _, data in stored if version == middle)
    content = path.read_bytes()
    at = content.index(data[:200])  # on its own pages, and damaged there
    content = content[:at] + b"\xa5" * 100 + content[at + 100 :]
    page = (index - 1) * 4096  # SQLite has no checksum: without this it finds nothing wrong
    path.write_bytes(content[:page] + b"\xa5" * 4096 + content[page + 4096 :])

    database, salvage = await open_or_salvage(
        path, sidecar=True, thorough=True, destination="cloud", now=MORNING, succeed=lambda *_: ""
    )
    try:
        kept = await database.read(lambda connection: store.kept(connection, after=0, limit=1000))
    finally:
        await database.close()
    lost = {version for version, base, _ in stored if middle in {version, base}}
    assert salvage is not None
    assert "written" in salvage.lost
    assert {row["version"] for row in kept} == {version for version, _, _ in stored} - lost
