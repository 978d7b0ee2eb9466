"""The Electron app's own SQLite cache as a second surface: read, compared with its last content, written if asked."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from sync.document import store
from sync.document.surfaces.notices import Notice
from sync.log.event_types import ENTRY_ADDED, ENTRY_EDITED, ENTRY_REMOVED
from sync.system.digests import sha256
from tests.integration.document.harness import DocumentHarness, FakeAppCache, open_document_harness

HABITS = "### 工作习惯"
CACHED = (
    "# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 喜欢早起\n- 不喝咖啡\n\n---\n\n**最后更新**：2026/1/7 08:00:00\n"
)


@pytest.fixture
def cache(tmp_path: Path) -> FakeAppCache:
    return FakeAppCache(tmp_path / "app.db")


@pytest.fixture
async def harness(tmp_path: Path, cache: FakeAppCache) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "home", app_cache=cache.path) as found:
        yield found


async def texts(harness: DocumentHarness) -> list[tuple[str, object]]:
    return [(event.type, event.payload.get("text")) for event in await harness.manual_edit_events()]


async def test_its_first_content_is_imported_into_the_document(harness: DocumentHarness, cache: FakeAppCache) -> None:
    cache.save(CACHED)
    await harness.memory.reconcile()
    assert await texts(harness) == [(ENTRY_ADDED, "- 喜欢早起"), (ENTRY_ADDED, "- 不喝咖啡")]
    assert {event.origin for event in await harness.manual_edit_events()} == {"imported"}
    assert "### 工作习惯\n- 喜欢早起\n- 不喝咖啡\n" in harness.text


async def test_a_day_that_it_brings_takes_the_placeholder_away(harness: DocumentHarness, cache: FakeAppCache) -> None:
    cache.save(CACHED.replace("---\n", "---\n\n## 重要对话记录\n\n### 2026/1/6\n- 用户问：一\n- AI回复：二\n\n---\n"))
    await harness.memory.reconcile()
    assert "## 重要对话记录\n\n### 2026/1/6\n- 用户问：一\n" in harness.text


async def test_a_changed_content_becomes_events_and_reaches_the_file(
    harness: DocumentHarness, cache: FakeAppCache
) -> None:
    cache.save(CACHED)
    await harness.memory.reconcile()
    cache.save(CACHED.replace("- 喜欢早起", "- 喜欢早起跑步").replace("- 不喝咖啡\n", "") + "\n- 新的一条\n")
    await harness.memory.reconcile()
    changes = (await texts(harness))[2:]
    assert sorted(kind for kind, _ in changes) == sorted([ENTRY_EDITED, ENTRY_ADDED, ENTRY_REMOVED])
    assert "- 喜欢早起跑步\n" in harness.text
    assert "- 新的一条\n" in harness.text
    assert "- 不喝咖啡" not in harness.text


async def test_seen_again_it_is_no_news(harness: DocumentHarness, cache: FakeAppCache) -> None:
    cache.save(CACHED)
    for _ in range(3):
        await harness.memory.reconcile()
        harness.restart()
    assert len(await harness.manual_edit_events()) == 2


async def test_what_we_write_into_the_file_is_not_taken_for_a_deletion_in_the_cache(
    harness: DocumentHarness, cache: FakeAppCache
) -> None:
    cache.save(CACHED)
    await harness.record_and_reconcile("一", "二")
    cache.save(CACHED.replace("- 不喝咖啡", "- 不喝咖啡，喝茶"))
    await harness.memory.reconcile()
    assert "用户问：一" in harness.text
    assert "用户问：二" in harness.text
    assert "- 不喝咖啡，喝茶\n" in harness.text
    assert ENTRY_REMOVED not in [kind for kind, _ in await texts(harness)]


async def test_an_edit_of_the_file_survives_an_unrelated_change_of_the_cache(
    harness: DocumentHarness, cache: FakeAppCache
) -> None:
    cache.save(CACHED)
    await harness.memory.reconcile()
    harness.replace("- 喜欢早起", "- 喜欢晚起")
    await harness.memory.reconcile()
    cache.save(CACHED.replace("- 不喝咖啡", "- 只喝茶"))
    await harness.memory.reconcile()
    assert "- 喜欢晚起\n" in harness.text
    assert "- 只喝茶\n" in harness.text


async def test_a_file_that_holds_the_same_lines_already_gets_none_of_them_twice(
    harness: DocumentHarness, cache: FakeAppCache
) -> None:
    harness.text = CACHED
    cache.save(CACHED)
    await harness.memory.reconcile()
    await harness.memory.reconcile()
    assert harness.text.count("- 喜欢早起") == 1
    assert len(await harness.manual_edit_events()) == 2


async def test_what_is_written_into_one_that_lost_its_lines_is_taken_in_and_deletes_none(
    harness: DocumentHarness, cache: FakeAppCache
) -> None:
    cache.save(CACHED + "".join(f"- 第 {number} 条\n" for number in range(10)))
    await harness.memory.reconcile()
    cache.save("# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 清空之后写的\n")
    await harness.memory.reconcile()
    assert "- 清空之后写的\n" in harness.text
    cache.save("# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 清空之后写的\n- 又一条\n")
    await harness.memory.reconcile()
    cache.save("# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 又一条\n")
    await harness.memory.reconcile()
    assert "- 又一条\n" in harness.text
    assert "- 清空之后写的\n" not in harness.text
    assert "- 喜欢早起\n" in harness.text
    assert harness.text.count("- 第 ") == 10


async def test_edits_of_the_file_survive_a_cache_that_loses_its_lines_and_gets_them_back(
    harness: DocumentHarness, cache: FakeAppCache
) -> None:
    whole = CACHED + "".join(f"- 第 {number} 条\n" for number in range(10))
    cache.save(whole)
    await harness.memory.reconcile()
    harness.replace("- 不喝咖啡\n", "")
    harness.replace("- 喜欢早起", "- 喜欢晚起")
    await harness.memory.reconcile()
    cache.save("# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 喜欢早起\n- 不喝咖啡\n- 新的\n")
    await harness.memory.reconcile()
    assert "- 喜欢晚起\n" in harness.text
    assert "- 新的\n" in harness.text
    assert "- 不喝咖啡" not in harness.text
    assert "- 喜欢早起" not in harness.text
    before = harness.text
    cache.save(whole)
    await harness.memory.reconcile()
    assert harness.text == before


async def test_one_that_was_cut_off_is_left_until_it_is_whole(harness: DocumentHarness, cache: FakeAppCache) -> None:
    cache.save(CACHED)
    await harness.memory.reconcile()
    before = harness.text
    cache.save(CACHED[: CACHED.index("喝咖啡")])
    await harness.memory.reconcile()
    assert harness.text == before
    assert len(await harness.manual_edit_events()) == 2


async def test_a_line_moved_in_it_moves_in_the_file(harness: DocumentHarness, cache: FakeAppCache) -> None:
    there = CACHED.replace("- 不喝咖啡\n", "- 不喝咖啡\n\n### 沟通风格\n- 说中文\n")
    cache.save(there)
    await harness.memory.reconcile()
    harness.replace("- 喜欢早起", "- 喜欢早起，六点")
    await harness.memory.reconcile()
    cache.save(there.replace("- 喜欢早起\n", "").replace("- 说中文\n", "- 说中文\n- 喜欢早起\n"))
    await harness.memory.reconcile()
    assert "### 工作习惯\n- 不喝咖啡\n" in harness.text
    assert "### 沟通风格\n- 说中文\n- 喜欢早起，六点\n" in harness.text


@pytest.mark.parametrize("content", ["", "  \n", None, "# AI 对话记忆\n"])
async def test_an_emptied_cache_deletes_nothing(
    harness: DocumentHarness, cache: FakeAppCache, content: str | None
) -> None:
    cache.save(CACHED + "".join(f"- 第 {number} 条\n" for number in range(10)))
    await harness.memory.reconcile()
    before = harness.text
    cache.save(content)
    await harness.memory.reconcile()
    assert harness.text == before
    assert ENTRY_REMOVED not in [kind for kind, _ in await texts(harness)]


@pytest.mark.parametrize("id_type", ["INTEGER PRIMARY KEY", "TEXT PRIMARY KEY"])
async def test_the_row_is_found_whatever_the_type_of_its_id(tmp_path: Path, id_type: str) -> None:
    cache = FakeAppCache(tmp_path / "other.db", id_type=id_type)
    cache.save(CACHED)
    async with open_document_harness(tmp_path / "other", app_cache=cache.path) as harness:
        await harness.memory.reconcile()
        assert len(await harness.manual_edit_events()) == 2


async def test_the_newest_content_is_read_although_it_is_only_in_the_write_ahead_log(
    harness: DocumentHarness, cache: FakeAppCache
) -> None:
    with closing(sqlite3.connect(cache.path)) as app:
        app.execute("PRAGMA wal_autocheckpoint = 0")
        app.execute("INSERT INTO ai_memory VALUES (1, ?, '', '')", (CACHED,))
        app.commit()
        assert CACHED.encode() not in cache.path.read_bytes()
        await harness.memory.reconcile()
    assert len(await harness.manual_edit_events()) == 2


async def test_nothing_is_written_to_it(harness: DocumentHarness, cache: FakeAppCache) -> None:
    cache.save(CACHED)
    before = (cache.rows, sha256(cache.path.read_bytes()))
    await harness.record_and_reconcile("一", "二", "三")
    harness.add_line_under(HABITS, "- 手写")
    await harness.memory.reconcile()
    assert (cache.rows, sha256(cache.path.read_bytes())) == before


async def test_one_that_is_not_there_yet_is_no_warning(harness: DocumentHarness, cache: FakeAppCache) -> None:
    cache.path.unlink()
    await harness.record_and_reconcile("一")
    assert harness.memory.notices == set()
    assert not cache.path.exists()


async def test_one_without_table_or_row_is_no_warning(tmp_path: Path) -> None:
    path = tmp_path / "bare.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE settings (name TEXT)")
    async with open_document_harness(tmp_path / "bare", app_cache=path) as harness:
        await harness.record_and_reconcile("一")
        assert harness.memory.notices == set()


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
async def test_a_cache_that_is_no_database_is_reported_and_left_alone(
    harness: DocumentHarness, cache: FakeAppCache, content: bytes
) -> None:
    for path in cache.path.parent.glob("app.db*"):
        path.unlink()
    cache.path.write_bytes(content)
    await harness.record_and_reconcile("一")
    assert harness.memory.notices == {Notice.APP_CACHE}
    assert "用户问：一" in harness.text
    assert cache.path.read_bytes() == content


async def test_one_that_becomes_readable_again_clears_the_warning(
    harness: DocumentHarness, cache: FakeAppCache
) -> None:
    cache.save(b"# memo\n\0\n")
    await harness.memory.reconcile()
    assert harness.memory.notices == {Notice.APP_CACHE}
    cache.save(CACHED)
    await harness.memory.reconcile()
    assert harness.memory.notices == set()
    assert len(await harness.manual_edit_events()) == 2


async def test_while_the_app_holds_it_locked_the_file_is_served(
    harness: DocumentHarness, cache: FakeAppCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sync.document.surfaces.app_cache.BUSY_TIMEOUT", 0.05)
    cache.save(CACHED)
    with closing(sqlite3.connect(cache.path)) as app:
        app.execute("PRAGMA journal_mode = DELETE")
        app.execute("BEGIN EXCLUSIVE")
        await harness.record_and_reconcile("一")
        assert harness.memory.notices == {Notice.APP_CACHE}
        assert "用户问：一" in harness.text
    await harness.memory.reconcile()
    assert len(await harness.manual_edit_events()) == 2


async def test_its_versions_do_not_push_the_file_s_out_of_the_ring(tmp_path: Path, cache: FakeAppCache) -> None:
    async with open_document_harness(tmp_path / "few", app_cache=cache.path, keep_versions=20) as harness:
        await harness.record_and_reconcile("一")
        kept = await harness.newest_version()
        for number in range(30):
            cache.save(CACHED.replace("08:00:00", f"08:00:{number:02}"))
            await harness.memory.reconcile()
        assert len(await harness.versions(store.APP_CACHE)) == 20
        assert kept.label in [label for label, _ in await harness.versions()]


class TestWrittenBack:
    @pytest.fixture
    async def harness(self, tmp_path: Path, cache: FakeAppCache) -> AsyncIterator[DocumentHarness]:
        async with open_document_harness(tmp_path / "back", app_cache=cache.path, write_back=True) as found:
            yield found

    async def test_it_holds_what_the_file_holds_and_that_makes_no_event(
        self, harness: DocumentHarness, cache: FakeAppCache
    ) -> None:
        cache.save(CACHED)
        await harness.record_and_reconcile("一")
        assert content(cache) == harness.text
        assert "- 喜欢早起\n" in harness.text
        before = await texts(harness)
        for _ in range(3):
            await harness.memory.reconcile()
            harness.restart()
        assert await texts(harness) == before
        assert content(cache) == harness.text

    async def test_a_row_that_is_missing_is_made_and_only_that(
        self, harness: DocumentHarness, cache: FakeAppCache
    ) -> None:
        await harness.record_and_reconcile("一", "二")
        assert content(cache) == harness.text
        assert [row[0] for row in cache.rows] == [1]

    @pytest.mark.parametrize("empty", ["", None, "  \n"])
    async def test_an_empty_content_is_filled(
        self, harness: DocumentHarness, cache: FakeAppCache, empty: str | None
    ) -> None:
        cache.save(empty)
        await harness.record_and_reconcile("一")
        assert content(cache) == harness.text

    async def test_an_edit_by_the_app_of_what_we_wrote_is_its_edit_alone(
        self, harness: DocumentHarness, cache: FakeAppCache
    ) -> None:
        cache.save(CACHED)
        await harness.record_and_reconcile("一")
        cache.save(str(content(cache)).replace("- 不喝咖啡\n", "").replace("- 喜欢早起", "- 喜欢早起跑步"))
        await harness.memory.reconcile()
        assert sorted(kind for kind, _ in (await texts(harness))[2:]) == [ENTRY_EDITED, ENTRY_REMOVED]
        assert "- 喜欢早起跑步\n" in harness.text
        assert "用户问：一" in harness.text
        assert content(cache) == harness.text

    async def test_a_hand_edit_of_the_file_reaches_it(self, harness: DocumentHarness, cache: FakeAppCache) -> None:
        await harness.record_and_reconcile("一")
        harness.add_line_under(HABITS, "- 手写")
        await harness.memory.reconcile()
        assert "- 手写\n" in str(content(cache))
        assert [kind for kind, _ in await texts(harness)] == [ENTRY_ADDED]

    async def test_what_the_app_writes_meanwhile_is_not_overwritten(
        self, harness: DocumentHarness, cache: FakeAppCache
    ) -> None:
        cache.save(CACHED)
        await harness.memory.reconcile()
        harness.add_line_under(HABITS, "- 手写")
        newer = str(content(cache)).replace("- 不喝咖啡", "- 不喝咖啡，喝茶")
        harness.external_actions.append(lambda: cache.save(newer))  # between our reading of the cache and our writing
        await harness.memory.reconcile()
        assert content(cache) == newer
        await harness.memory.reconcile()
        assert "- 不喝咖啡，喝茶\n" in harness.text
        assert "- 手写\n" in harness.text
        assert content(cache) == harness.text

    async def test_a_shrunk_one_is_left_alone(self, harness: DocumentHarness, cache: FakeAppCache) -> None:
        cache.save(CACHED + "".join(f"- 第 {number} 条\n" for number in range(10)))
        await harness.memory.reconcile()
        cache.save("# AI 对话记忆\n")
        await harness.record_and_reconcile("一")
        assert content(cache) == "# AI 对话记忆\n"
        assert ENTRY_REMOVED not in [kind for kind, _ in await texts(harness)]

    async def test_neither_database_nor_table_is_ever_made(self, harness: DocumentHarness, cache: FakeAppCache) -> None:
        for path in cache.path.parent.glob("app.db*"):
            path.unlink()
        await harness.record_and_reconcile("一")
        assert not cache.path.exists()
        with closing(sqlite3.connect(cache.path)) as connection, connection:
            connection.execute("CREATE TABLE settings (name TEXT)")
        await harness.record_and_reconcile("二")
        with closing(sqlite3.connect(cache.path)) as connection:
            assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("settings",)]
        assert harness.memory.notices == set()

    async def test_a_table_with_other_columns_is_reported_and_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "odd.db"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE ai_memory (id INTEGER PRIMARY KEY, content TEXT)")
        async with open_document_harness(tmp_path / "odd", app_cache=path, write_back=True) as harness:
            await harness.record_and_reconcile("一")
            assert harness.memory.notices == {Notice.APP_CACHE}
            assert "用户问：一" in harness.text

    async def test_while_the_app_writes_it_waits_for_its_turn(
        self, harness: DocumentHarness, cache: FakeAppCache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sync.document.surfaces.app_cache.BUSY_TIMEOUT", 0.05)
        cache.save(CACHED)
        with closing(sqlite3.connect(cache.path)) as app:
            app.execute("BEGIN IMMEDIATE")
            await harness.record_and_reconcile("一")
            assert harness.memory.notices == {Notice.APP_CACHE}
        await harness.memory.reconcile()
        assert content(cache) == harness.text
        assert harness.memory.notices == set()


def content(cache: FakeAppCache) -> object:
    """What row 1 holds."""
    return next(row[1] for row in cache.rows)
