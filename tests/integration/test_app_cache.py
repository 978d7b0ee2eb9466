"""The Electron app's own SQLite cache, a second surface: read by SQLite, held against itself, written if asked."""

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from sync.digests import sha256
from sync.document import store
from sync.document.capture import ADDED, EDITED, REMOVED
from sync.document.remarks import Notice
from tests.integration.document_desk import AppCache, Desk, on_a_desk

HABITS = "### 工作习惯"
CACHED = (
    "# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 喜欢早起\n- 不喝咖啡\n\n---\n\n**最后更新**：2026/1/7 08:00:00\n"
)


@pytest.fixture
def cache(tmp_path: Path) -> AppCache:
    return AppCache(tmp_path / "app.db")


@pytest.fixture
async def desk(tmp_path: Path, cache: AppCache) -> AsyncIterator[Desk]:
    async with on_a_desk(tmp_path / "home", app_cache=cache.path) as found:
        yield found


async def texts(desk: Desk) -> list[tuple[str, object]]:
    return [(event.type, event.payload.get("text")) for event in await desk.hand_events()]


async def test_its_first_content_is_imported_into_the_document(desk: Desk, cache: AppCache) -> None:
    cache.save(CACHED)
    await desk.memory.settle()
    assert await texts(desk) == [(ADDED, "- 喜欢早起"), (ADDED, "- 不喝咖啡")]
    assert {event.origin for event in await desk.hand_events()} == {"imported"}
    assert "### 工作习惯\n- 喜欢早起\n- 不喝咖啡\n" in desk.text


async def test_a_day_that_it_brings_takes_the_placeholder_away(desk: Desk, cache: AppCache) -> None:
    cache.save(CACHED.replace("---\n", "---\n\n## 重要对话记录\n\n### 2026/1/6\n- 用户问：一\n- AI回复：二\n\n---\n"))
    await desk.memory.settle()
    assert "## 重要对话记录\n\n### 2026/1/6\n- 用户问：一\n" in desk.text


async def test_a_changed_content_becomes_events_and_reaches_the_file(desk: Desk, cache: AppCache) -> None:
    cache.save(CACHED)
    await desk.memory.settle()
    cache.save(CACHED.replace("- 喜欢早起", "- 喜欢早起跑步").replace("- 不喝咖啡\n", "") + "\n- 新的一条\n")
    await desk.memory.settle()
    changes = (await texts(desk))[2:]
    assert sorted(kind for kind, _ in changes) == sorted([EDITED, ADDED, REMOVED])
    assert "- 喜欢早起跑步\n" in desk.text
    assert "- 新的一条\n" in desk.text
    assert "- 不喝咖啡" not in desk.text


async def test_seen_again_it_is_no_news(desk: Desk, cache: AppCache) -> None:
    cache.save(CACHED)
    for _ in range(3):
        await desk.memory.settle()
        desk.restart()
    assert len(await desk.hand_events()) == 2


async def test_what_we_write_into_the_file_is_not_taken_for_a_deletion_in_the_cache(
    desk: Desk, cache: AppCache
) -> None:
    cache.save(CACHED)
    await desk.said("一", "二")
    cache.save(CACHED.replace("- 不喝咖啡", "- 不喝咖啡，喝茶"))
    await desk.memory.settle()
    assert "用户问：一" in desk.text
    assert "用户问：二" in desk.text
    assert "- 不喝咖啡，喝茶\n" in desk.text
    assert REMOVED not in [kind for kind, _ in await texts(desk)]


async def test_a_hand_edit_of_the_file_outlives_an_unrelated_change_of_the_cache(desk: Desk, cache: AppCache) -> None:
    cache.save(CACHED)
    await desk.memory.settle()
    desk.replace("- 喜欢早起", "- 喜欢晚起")
    await desk.memory.settle()
    cache.save(CACHED.replace("- 不喝咖啡", "- 只喝茶"))
    await desk.memory.settle()
    assert "- 喜欢晚起\n" in desk.text
    assert "- 只喝茶\n" in desk.text


async def test_a_file_that_holds_the_same_lines_already_gets_none_of_them_twice(desk: Desk, cache: AppCache) -> None:
    desk.text = CACHED
    cache.save(CACHED)
    await desk.memory.settle()
    await desk.memory.settle()
    assert desk.text.count("- 喜欢早起") == 1
    assert len(await desk.hand_events()) == 2


async def test_what_is_written_into_one_that_lost_its_lines_is_taken_in_and_deletes_none(
    desk: Desk, cache: AppCache
) -> None:
    cache.save(CACHED + "".join(f"- 第 {number} 条\n" for number in range(10)))
    await desk.memory.settle()
    cache.save("# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 清空之后写的\n")
    await desk.memory.settle()
    assert "- 清空之后写的\n" in desk.text
    cache.save("# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 清空之后写的\n- 又一条\n")
    await desk.memory.settle()
    cache.save("# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 又一条\n")
    await desk.memory.settle()
    assert "- 又一条\n" in desk.text
    assert "- 清空之后写的\n" not in desk.text
    assert "- 喜欢早起\n" in desk.text
    assert desk.text.count("- 第 ") == 10


async def test_what_hands_did_in_the_file_outlives_a_cache_that_lost_its_lines_and_one_that_has_them_again(
    desk: Desk, cache: AppCache
) -> None:
    whole = CACHED + "".join(f"- 第 {number} 条\n" for number in range(10))
    cache.save(whole)
    await desk.memory.settle()
    desk.replace("- 不喝咖啡\n", "")
    desk.replace("- 喜欢早起", "- 喜欢晚起")
    await desk.memory.settle()
    cache.save("# AI 对话记忆\n\n## 用户偏好\n\n### 工作习惯\n- 喜欢早起\n- 不喝咖啡\n- 新的\n")
    await desk.memory.settle()
    assert "- 喜欢晚起\n" in desk.text
    assert "- 新的\n" in desk.text
    assert "- 不喝咖啡" not in desk.text
    assert "- 喜欢早起" not in desk.text
    before = desk.text
    cache.save(whole)
    await desk.memory.settle()
    assert desk.text == before


async def test_one_that_was_cut_off_is_left_until_it_is_whole(desk: Desk, cache: AppCache) -> None:
    cache.save(CACHED)
    await desk.memory.settle()
    before = desk.text
    cache.save(CACHED[: CACHED.index("喝咖啡")])
    await desk.memory.settle()
    assert desk.text == before
    assert len(await desk.hand_events()) == 2


async def test_a_line_moved_in_it_moves_in_the_file(desk: Desk, cache: AppCache) -> None:
    there = CACHED.replace("- 不喝咖啡\n", "- 不喝咖啡\n\n### 沟通风格\n- 说中文\n")
    cache.save(there)
    await desk.memory.settle()
    desk.replace("- 喜欢早起", "- 喜欢早起，六点")
    await desk.memory.settle()
    cache.save(there.replace("- 喜欢早起\n", "").replace("- 说中文\n", "- 说中文\n- 喜欢早起\n"))
    await desk.memory.settle()
    assert "### 工作习惯\n- 不喝咖啡\n" in desk.text
    assert "### 沟通风格\n- 说中文\n- 喜欢早起，六点\n" in desk.text


@pytest.mark.parametrize("content", ["", "  \n", None, "# AI 对话记忆\n"])
async def test_an_emptied_cache_deletes_nothing(desk: Desk, cache: AppCache, content: str | None) -> None:
    cache.save(CACHED + "".join(f"- 第 {number} 条\n" for number in range(10)))
    await desk.memory.settle()
    before = desk.text
    cache.save(content)
    await desk.memory.settle()
    assert desk.text == before
    assert REMOVED not in [kind for kind, _ in await texts(desk)]


@pytest.mark.parametrize("id_type", ["INTEGER PRIMARY KEY", "TEXT PRIMARY KEY"])
async def test_the_row_is_found_whatever_the_type_of_its_id(tmp_path: Path, id_type: str) -> None:
    cache = AppCache(tmp_path / "other.db", id_type=id_type)
    cache.save(CACHED)
    async with on_a_desk(tmp_path / "other", app_cache=cache.path) as desk:
        await desk.memory.settle()
        assert len(await desk.hand_events()) == 2


async def test_the_newest_content_is_read_although_it_is_only_in_the_write_ahead_log(
    desk: Desk, cache: AppCache
) -> None:
    with closing(sqlite3.connect(cache.path)) as app:
        app.execute("PRAGMA wal_autocheckpoint = 0")
        app.execute("INSERT INTO ai_memory VALUES (1, ?, '', '')", (CACHED,))
        app.commit()
        assert CACHED.encode() not in cache.path.read_bytes()
        await desk.memory.settle()
    assert len(await desk.hand_events()) == 2


async def test_nothing_is_written_to_it(desk: Desk, cache: AppCache) -> None:
    cache.save(CACHED)
    before = (cache.rows, sha256(cache.path.read_bytes()))
    await desk.said("一", "二", "三")
    desk.type_under(HABITS, "- 手写")
    await desk.memory.settle()
    assert (cache.rows, sha256(cache.path.read_bytes())) == before


async def test_one_that_is_not_there_yet_is_no_warning(desk: Desk, cache: AppCache) -> None:
    cache.path.unlink()
    await desk.said("一")
    assert desk.memory.notices == set()
    assert not cache.path.exists()


async def test_one_without_table_or_row_is_no_warning(tmp_path: Path) -> None:
    path = tmp_path / "bare.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE settings (name TEXT)")
    async with on_a_desk(tmp_path / "bare", app_cache=path) as desk:
        await desk.said("一")
        assert desk.memory.notices == set()


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b"SQLite format 3\0" + b"\xff" * 4096])
async def test_one_that_is_no_database_is_told_and_left_alone(desk: Desk, cache: AppCache, content: bytes) -> None:
    for path in cache.path.parent.glob("app.db*"):
        path.unlink()
    cache.path.write_bytes(content)
    await desk.said("一")
    assert desk.memory.notices == {Notice.APP_CACHE}
    assert "用户问：一" in desk.text
    assert cache.path.read_bytes() == content


async def test_one_that_becomes_readable_again_clears_the_warning(desk: Desk, cache: AppCache) -> None:
    cache.save(b"# memo\n\0\n")
    await desk.memory.settle()
    assert desk.memory.notices == {Notice.APP_CACHE}
    cache.save(CACHED)
    await desk.memory.settle()
    assert desk.memory.notices == set()
    assert len(await desk.hand_events()) == 2


async def test_while_the_app_holds_it_locked_the_file_is_served(
    desk: Desk, cache: AppCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sync.document.app_cache.PATIENCE", 0.05)
    cache.save(CACHED)
    with closing(sqlite3.connect(cache.path)) as app:
        app.execute("PRAGMA journal_mode = DELETE")
        app.execute("BEGIN EXCLUSIVE")
        await desk.said("一")
        assert desk.memory.notices == {Notice.APP_CACHE}
        assert "用户问：一" in desk.text
    await desk.memory.settle()
    assert len(await desk.hand_events()) == 2


async def test_its_versions_do_not_push_the_file_s_out_of_the_ring(tmp_path: Path, cache: AppCache) -> None:
    async with on_a_desk(tmp_path / "few", app_cache=cache.path, keep_versions=20) as desk:
        await desk.said("一")
        kept = await desk.newest()
        for number in range(30):
            cache.save(CACHED.replace("08:00:00", f"08:00:{number:02}"))
            await desk.memory.settle()
        assert len(await desk.versions(store.APP_CACHE)) == 20
        assert kept.label in [label for label, _ in await desk.versions()]


class TestWrittenBack:
    @pytest.fixture
    async def desk(self, tmp_path: Path, cache: AppCache) -> AsyncIterator[Desk]:
        async with on_a_desk(tmp_path / "back", app_cache=cache.path, write_back=True) as found:
            yield found

    async def test_it_holds_what_the_file_holds_and_that_makes_no_event(self, desk: Desk, cache: AppCache) -> None:
        cache.save(CACHED)
        await desk.said("一")
        assert content(cache) == desk.text
        assert "- 喜欢早起\n" in desk.text
        before = await texts(desk)
        for _ in range(3):
            await desk.memory.settle()
            desk.restart()
        assert await texts(desk) == before
        assert content(cache) == desk.text

    async def test_a_row_that_is_missing_is_made_and_only_that(self, desk: Desk, cache: AppCache) -> None:
        await desk.said("一", "二")
        assert content(cache) == desk.text
        assert [row[0] for row in cache.rows] == [1]

    @pytest.mark.parametrize("empty", ["", None, "  \n"])
    async def test_an_empty_content_is_filled(self, desk: Desk, cache: AppCache, empty: str | None) -> None:
        cache.save(empty)
        await desk.said("一")
        assert content(cache) == desk.text

    async def test_an_edit_by_the_app_of_what_we_wrote_is_its_edit_alone(self, desk: Desk, cache: AppCache) -> None:
        cache.save(CACHED)
        await desk.said("一")
        cache.save(str(content(cache)).replace("- 不喝咖啡\n", "").replace("- 喜欢早起", "- 喜欢早起跑步"))
        await desk.memory.settle()
        assert sorted(kind for kind, _ in (await texts(desk))[2:]) == [EDITED, REMOVED]
        assert "- 喜欢早起跑步\n" in desk.text
        assert "用户问：一" in desk.text
        assert content(cache) == desk.text

    async def test_a_hand_edit_of_the_file_reaches_it(self, desk: Desk, cache: AppCache) -> None:
        await desk.said("一")
        desk.type_under(HABITS, "- 手写")
        await desk.memory.settle()
        assert "- 手写\n" in str(content(cache))
        assert [kind for kind, _ in await texts(desk)] == [ADDED]

    async def test_what_the_app_writes_meanwhile_is_not_overwritten(self, desk: Desk, cache: AppCache) -> None:
        cache.save(CACHED)
        await desk.memory.settle()
        desk.type_under(HABITS, "- 手写")
        newer = str(content(cache)).replace("- 不喝咖啡", "- 不喝咖啡，喝茶")
        desk.meanwhile.append(lambda: cache.save(newer))  # between our reading of the cache and our writing
        await desk.memory.settle()
        assert content(cache) == newer
        await desk.memory.settle()
        assert "- 不喝咖啡，喝茶\n" in desk.text
        assert "- 手写\n" in desk.text
        assert content(cache) == desk.text

    async def test_a_shrunk_one_is_left_alone(self, desk: Desk, cache: AppCache) -> None:
        cache.save(CACHED + "".join(f"- 第 {number} 条\n" for number in range(10)))
        await desk.memory.settle()
        cache.save("# AI 对话记忆\n")
        await desk.said("一")
        assert content(cache) == "# AI 对话记忆\n"
        assert REMOVED not in [kind for kind, _ in await texts(desk)]

    async def test_neither_database_nor_table_is_ever_made(self, desk: Desk, cache: AppCache) -> None:
        for path in cache.path.parent.glob("app.db*"):
            path.unlink()
        await desk.said("一")
        assert not cache.path.exists()
        with closing(sqlite3.connect(cache.path)) as connection, connection:
            connection.execute("CREATE TABLE settings (name TEXT)")
        await desk.said("二")
        with closing(sqlite3.connect(cache.path)) as connection:
            assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("settings",)]
        assert desk.memory.notices == set()

    async def test_a_table_of_another_shape_is_told_and_left_alone(self, tmp_path: Path) -> None:
        path = tmp_path / "odd.db"
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("CREATE TABLE ai_memory (id INTEGER PRIMARY KEY, content TEXT)")
        async with on_a_desk(tmp_path / "odd", app_cache=path, write_back=True) as desk:
            await desk.said("一")
            assert desk.memory.notices == {Notice.APP_CACHE}
            assert "用户问：一" in desk.text

    async def test_while_the_app_writes_it_waits_for_its_turn(
        self, desk: Desk, cache: AppCache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("sync.document.app_cache.PATIENCE", 0.05)
        cache.save(CACHED)
        with closing(sqlite3.connect(cache.path)) as app:
            app.execute("BEGIN IMMEDIATE")
            await desk.said("一")
            assert desk.memory.notices == {Notice.APP_CACHE}
        await desk.memory.settle()
        assert content(cache) == desk.text
        assert desk.memory.notices == set()


def content(cache: AppCache) -> object:
    """What row 1 holds."""
    return next(row[1] for row in cache.rows)
