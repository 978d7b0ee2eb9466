"""Versions are stored as deltas: their size, and that they neither lose nor keep text."""

import sqlite3
import zlib
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, update

from sync.db.engine import Transaction
from sync.db.rebuild.salvage import LogCompletion, open_or_salvage
from sync.db.schema import written
from sync.document import store
from sync.document.erasure.erasure import request
from sync.document.version_delta import MAX_DELTAS_PER_BASE, encode_whole
from sync.log.ingest import DraftBuilder
from tests.integration.document.harness import MORNING, DocumentHarness, open_document_harness

HABITS = "### 工作习惯"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    """A harness with a document that is large enough for deltas: a small one is often stored whole."""
    async with open_document_harness(tmp_path / "home") as found:
        await fill(found, 600)
        yield found


async def fill(harness: DocumentHarness, lines: int) -> None:
    """Two versions, the second with this many typed lines."""
    await harness.record_and_reconcile("起")
    harness.add_line_under(HABITS, "\n".join(f"- 第 {number} 条" + "长" * 60 for number in range(lines)))
    await harness.memory.reconcile()


def rows(harness: DocumentHarness, columns: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(harness.database.path)) as connection:
        return connection.execute(f"select {columns} from written order by version").fetchall()


async def texts(harness: DocumentHarness) -> list[str]:
    """The text of every stored version, oldest first."""
    store.RECENT_SNAPSHOTS.clear()
    kept = await harness.database.read(lambda connection: store.export_page(connection, after=0, limit=1000))
    return [row["text"] for row in kept]


async def stored_for_twenty_updates(folder: Path, lines: int) -> int:
    """Bytes that twenty updates add to a document of this many lines, without versions stored whole."""
    async with open_document_harness(folder) as harness:
        await fill(harness, lines)
        await harness.record_and_reconcile("一")
        (before,) = rows(harness, "max(version)")[0]
        await harness.record_and_reconcile(*(f"问题 {number}" for number in range(20)))
        added = rows(harness, f"sum(length(bytes) + length(entry_ids)) filter (where version > {before} and base > 0)")
        return int(added[0][0])


async def test_an_update_stores_as_much_in_a_large_document_as_in_a_small_one(tmp_path: Path) -> None:
    small = await stored_for_twenty_updates(tmp_path / "small", 350)
    large = await stored_for_twenty_updates(tmp_path / "large", 1750)

    assert large < 1.2 * small


async def test_every_version_is_read_as_it_was_written_and_a_whole_one_comes_at_intervals(
    harness: DocumentHarness,
) -> None:
    seen = []
    for number in range(3 * MAX_DELTAS_PER_BASE):
        await harness.record_exchange(f"问题 {number}")
        if number % 7 == 0:
            harness.add_line_under("### 常用命令" if number % 2 else HABITS, f"- 手写 {number}")
        await harness.memory.reconcile()
        seen.append(harness.text)

    assert set(seen) <= set(await texts(harness))
    bases = [base for (base,) in rows(harness, "base")]
    assert 4 <= bases.count(None) <= 12


async def test_the_base_of_a_delta_outlives_the_ring(tmp_path: Path) -> None:
    async with open_document_harness(tmp_path / "home", keep_versions=20) as harness:
        seen = []
        for number in range(20 + MAX_DELTAS_PER_BASE + 10):
            await harness.record_and_reconcile(f"问题 {number}")
            seen.append(harness.text)
        assert (await texts(harness))[-20:] == seen[-20:]
        assert len(rows(harness, "version")) <= 21 + MAX_DELTAS_PER_BASE


async def test_erased_text_leaves_base_versions_and_their_deltas(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("一")
    secret = await harness.record_exchange("茶叶的秘密")
    await harness.memory.reconcile()
    await harness.record_and_reconcile(*(f"问题 {number}" for number in range(2 * MAX_DELTAS_PER_BASE)))
    before = await texts(harness)
    assert sum("茶叶" in one for one in before) > MAX_DELTAS_PER_BASE

    await request(harness.log, DraftBuilder(harness.redactor), [secret])
    await harness.memory.reconcile()

    left = await texts(harness)
    assert not any("茶叶" in one for one in left)
    assert [one.count("问题") for one in left[: len(before)]] == [one.count("问题") for one in before]
    assert not any(b"\xe8\x8c\xb6\xe5\x8f\xb6" in zlib.decompress(data) for (data,) in rows(harness, "bytes"))
    assert not any(secret in ids for (ids,) in rows(harness, "entry_ids"))


async def test_versions_of_the_older_schema_stay_and_new_ones_are_deltas_to_them(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("一", "二", "三")
    before = await texts(harness)
    await harness.database.write(store_all_whole)

    await harness.record_and_reconcile("四", "五")

    assert (await texts(harness))[:5] == before
    assert rows(harness, "base")[5:] == [(5,), (5,)]
    assert [past.entries for past in await harness.memory.versions.history(10)] == [612, 610, 608, 606, 604, 602, 2]
    await harness.memory.restore((await harness.memory.versions.history(10))[3].sha256)
    assert "三" not in harness.text
    assert "二" in harness.text


def store_all_whole(connection: Transaction) -> None:
    """Store a version whole, as the older schema did."""
    found = connection.execute(select(written)).mappings().all()
    for row, (data, ids) in [(row, encode_whole(store._snapshot(connection, row))) for row in found]:
        values = {"bytes": data, "entry_ids": ids, "base": None, "entries": None}
        connection.execute(update(written).where(written.c.version == row["version"]).values(values))


async def test_with_a_damaged_base_only_the_versions_that_differ_from_it_are_lost(tmp_path: Path) -> None:
    async with open_document_harness(tmp_path) as harness:
        await fill(harness, 600)
        for number in range(2 * MAX_DELTAS_PER_BASE):
            await harness.record_and_reconcile(f"问题 {number}")
        stored = rows(harness, "version, base, bytes")
        ((index,),) = await harness.database.read(
            lambda to: to.exec_driver_sql("select rootpage from sqlite_master where name = 'events_by_type'").all()
        )
    path = harness.database.path
    middle = next(base for _, base, _ in reversed(stored[:-MAX_DELTAS_PER_BASE]) if base is not None)
    (data,) = (data for version, _, data in stored if version == middle)
    content = path.read_bytes()
    at = content.index(data[:200])  # on its own pages, and damaged there
    content = content[:at] + b"\xa5" * 100 + content[at + 100 :]
    page = (index - 1) * 4096  # SQLite has no checksum: without this it finds nothing wrong
    path.write_bytes(content[:page] + b"\xa5" * 4096 + content[page + 4096 :])

    database, salvage = await open_or_salvage(
        path,
        sidecar=True,
        thorough=True,
        destination="cloud",
        now=MORNING,
        complete_log=lambda *_: LogCompletion("", 0),
    )
    try:
        kept = await database.read(lambda connection: store.export_page(connection, after=0, limit=1000))
    finally:
        await database.close()
    lost = {version for version, base, _ in stored if middle in {version, base}}
    assert salvage is not None
    assert "written" in salvage.lost
    assert {row["version"] for row in kept} == {version for version, _, _ in stored} - lost


async def test_a_version_whose_lines_an_earlier_program_read_otherwise_is_still_whole(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("一")
    before = await texts(harness)
    with closing(sqlite3.connect(harness.database.path)) as connection, connection:
        connection.execute("""update written set entry_ids = '["ent_x"]' where base is null""")
        connection.execute("""update written set entry_ids = '[[0,1]]' where base is not null""")
    assert await texts(harness) == before
