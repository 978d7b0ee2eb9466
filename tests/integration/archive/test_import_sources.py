"""Imports of a memory file, the app's database and a folder of daily pages; a repeated import adds nothing."""

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.archive.model import ArchiveImportResult
from sync.archive.service import ArchiveService
from sync.clock import SystemClock
from sync.daily.records.records_cache import RecordsCache
from sync.errors import InvalidInput, StorageError
from sync.log.ingest import DraftBuilder
from sync.log.model import Event, Query
from tests.integration.document.harness import DocumentHarness, FakeAppCache, open_document_harness
from tests.support import signer_of

CANARY = "sk-ant-" + "api03-" + "Zq9" * 31
MEMORY = f"""\
# AI 对话记忆

## 用户偏好

### 工作习惯
- 喜欢简洁的代码
- 密钥 {CANARY}

---

## 重要对话记录

### 2026/1/7
- 用户问：怎么优化启动速度
- AI 答：可以减少启动屏延迟...

- 用户问：再来一次
- AI 答：好的
- 用户问：再来一次
- AI 答：好的

### 2025-12-30
- AI 答：钥匙 {CANARY} 在这里
- 用户问：没有回答的
- 一句别的话

---

**最后更新**：2026/1/7 15:49:12
"""
PAGE = """\
# 2026-01-29 对话记忆

## Session 1 - 10:30:45

### 主题
缓存策略

### 关键信息
- 用 Redis
- 过期一小时

### 代码/配置
```toml
port = 6379
```

### 标签
#缓存 #redis

---

## Session 2 - 14:20:00

### 主题
火锅
"""


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "a") as harness:
        yield harness


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    path = tmp_path / "theirs.md"
    path.write_text(MEMORY, "utf-8")
    return path


async def import_file(harness: DocumentHarness, path: Path, *, dry_run: bool = False) -> ArchiveImportResult:
    room = ArchiveService(
        harness.log,
        DraftBuilder(harness.redactor),
        harness.memory.importer,
        signer_of(harness.log),
        clock=harness.clock,
    )
    taken = await room.import_path(path, passphrase=None, dry_run=dry_run, on_progress=check_progress)
    await harness.memory.reconcile()
    return taken


def check_progress(done: int, total: int) -> None:
    assert done <= total


async def events(harness: DocumentHarness) -> tuple[Event, ...]:
    return (await harness.log.read(Query())).events


def lines(harness: DocumentHarness) -> list[str]:
    return [line for line in harness.text.splitlines() if line.startswith("-") and line not in {"---", "- （待补充）"}]


async def test_a_memory_file_becomes_exchanges_of_their_days_and_lines_of_their_sections(
    harness: DocumentHarness, memory: Path
) -> None:
    await harness.record_and_reconcile("这里的问题")

    counted = await import_file(harness, memory, dry_run=True)
    assert (counted.source, counted.recorded, len(await events(harness))) == ("memory_file", 8, 1)
    taken = await import_file(harness, memory)

    assert (taken.found, taken.recorded, taken.known, taken.refused) == (8, 8, 0, 0)
    new = (await events(harness))[1:]
    assert {event.origin for event in new} == {"imported"}
    said = {event.payload["question"]: event for event in new if event.type == "exchange_recorded"}
    assert said["怎么优化启动速度"].local_date == "2026-01-07"
    assert said["怎么优化启动速度"].ts == "2026-01-07T04:00:00.000Z"
    assert said["没有回答的"].local_date == "2025-12-30"
    assert next(event for event in new if event.payload.get("text") == "- 喜欢简洁的代码").ts[:10] == "2026-01-07"
    text = harness.text
    assert text.index("### 2026/1/8") < text.index("### 2026/1/7") < text.index("### 2025/12/30")
    assert [lines(harness).count(line) for line in ("- 用户问：再来一次", "- AI 答：可以减少启动屏延迟...")] == [2, 1]
    assert "### 工作习惯\n- 喜欢简洁的代码" in text
    assert "- 一句别的话" in text
    assert CANARY not in str(new) + text
    assert "钥匙 [密钥] 在这里" in [event.payload.get("answer") for event in new]
    assert await harness.log.find_problems() == []


async def test_the_same_file_again_changes_nothing_and_a_later_one_brings_only_what_is_new(
    tmp_path: Path, memory: Path
) -> None:
    async with open_document_harness(tmp_path / "a") as harness:
        await import_file(harness, memory)
        assert "- 喜欢简洁的代码" in lines(harness)
        harness.replace("- 喜欢简洁的代码\n", "")
        await harness.memory.reconcile()
        before, text = await events(harness), harness.text

        again = await import_file(harness, memory)
        assert (again.recorded, again.known) == (0, 8)
        assert (await events(harness), harness.text) == (before, text)

        memory.write_text(MEMORY.replace("### 2025-12-30", "- 用户问：新的\n- AI 答：好\n\n### 2025-12-30"), "utf-8")
        assert (await import_file(harness, memory)).recorded == 1
        assert "- 用户问：新的" in lines(harness)
        assert "- 喜欢简洁的代码" not in lines(harness)


async def test_importing_the_present_document_records_nothing(harness: DocumentHarness, tmp_path: Path) -> None:
    await harness.record_and_reconcile("一", "二")
    harness.add_line_under("### 工作习惯", "- 手写的")
    await harness.memory.reconcile()
    (copy := tmp_path / "copy.md").write_text(harness.text, "utf-8")

    assert (await import_file(harness, copy)).recorded == 0


async def test_two_devices_that_import_the_same_file_record_the_same_events(
    harness: DocumentHarness, tmp_path: Path, memory: Path
) -> None:
    await import_file(harness, memory)
    async with open_document_harness(tmp_path / "b", device="device-b") as there:
        await import_file(there, memory)
        assert [event.event_id for event in await events(there)] == [event.event_id for event in await events(harness)]


async def test_the_apps_own_database_is_read_and_not_changed(harness: DocumentHarness, tmp_path: Path) -> None:
    path = tmp_path / "app.sqlite"
    app = FakeAppCache(path)
    app.save(MEMORY)
    rows = app.rows

    assert (await import_file(harness, path, dry_run=True)).recorded == 8
    taken = await import_file(harness, path)

    assert (taken.source, taken.recorded, (await import_file(harness, path)).recorded) == ("app_cache", 8, 0)
    assert app.rows == rows
    app.save("")
    with pytest.raises(InvalidInput, match="no memory"):
        await import_file(harness, path)


async def test_a_folder_of_daily_pages_becomes_records_once(harness: DocumentHarness, tmp_path: Path) -> None:
    folder = tmp_path / "项目" / ".cursor" / "skills" / "memories"
    (folder / "daily").mkdir(parents=True)
    (folder / "daily" / "2026-01-29.md").write_text(PAGE, "utf-8")
    (folder / "daily" / "2026-01-30.md").write_text("# 别的\n", "utf-8")
    (folder / "daily" / "notes.md").write_text("x", "utf-8")

    counted = await import_file(harness, folder, dry_run=True)
    assert (counted.recorded, counted.refused, await events(harness)) == (2, 1, ())
    taken = await import_file(harness, folder)

    assert (taken.source, taken.conversations, taken.recorded) == ("daily_pages", 2, 2)
    assert [which for which, _ in taken.refusals] == ["2026-01-30.md"]
    first, second = (await RecordsCache(harness.log).current_records()).by_id.values()
    assert (first.date, first.time, first.number, first.content.topic) == ("2026-01-29", "10:30:45", 1, "缓存策略")
    assert first.content.facts == ("用 Redis", "过期一小时")
    assert first.content.code[0].text == "port = 6379"
    assert (second.content.topic, second.project_path) == ("火锅", str(tmp_path / "项目"))
    (event, _) = await events(harness)
    assert (event.origin, event.ts, event.local_date) == ("imported", "2026-01-29T02:30:45.000Z", "2026-01-29")
    again = await import_file(harness, folder / "daily")
    assert (again.recorded, again.known) == (0, 2)
    marked = PAGE.replace("### 关键信息", "### 标记\n重要\n\n### 关键信息")
    (folder / "daily" / "2026-01-29.md").write_text(marked, "utf-8")
    elsewhere = tmp_path / "elsewhere"
    (folder / "daily").rename(elsewhere)
    assert (await import_file(harness, elsewhere)).recorded == 0


async def test_a_time_on_a_page_is_of_the_zone_as_it_was_on_that_day(
    harness: DocumentHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for day in ("2025-01-29", "2025-07-29"):
        (tmp_path / f"{day}.md").write_text(PAGE.replace("2026-01-29", day), "utf-8")
    with monkeypatch.context() as there:
        there.setenv("TZ", "Europe/Berlin")
        time.tzset()
        room = ArchiveService(
            harness.log,
            DraftBuilder(harness.redactor),
            harness.memory.importer,
            signer_of(harness.log),
            clock=SystemClock(),
        )
        await room.import_path(tmp_path, passphrase=None, dry_run=False, on_progress=check_progress)
    time.tzset()

    found = [(event.ts, event.utc_offset) for event in await events(harness) if "10:30" in str(event.payload)]
    assert found == [("2025-01-29T09:30:45.000Z", 60), ("2025-07-29T08:30:45.000Z", 120)]


async def test_a_page_out_of_the_calendar_is_refused_and_stops_no_other(
    harness: DocumentHarness, tmp_path: Path
) -> None:
    for day in ("0001-01-01", "2026-01-29"):
        (tmp_path / f"{day}.md").write_text(PAGE.replace("2026-01-29", day).replace("14:20", "07:20"), "utf-8")

    taken = await import_file(harness, tmp_path)

    assert (taken.recorded, taken.refused) == (3, 1)
    assert taken.refusals == [("0001-01-01 Session 2", "its time is out of the calendar")]


async def test_a_line_out_of_the_calendar_is_imported_without_its_day(harness: DocumentHarness, tmp_path: Path) -> None:
    (path := tmp_path / "theirs.md").write_text(MEMORY.replace("2026/1/7 15:49:12", "9999/12/31 23:59:59"), "utf-8")

    assert (await import_file(harness, path)).recorded == 8


async def test_a_single_page_is_imported(harness: DocumentHarness, tmp_path: Path) -> None:
    (path := tmp_path / "2026-01-29.md").write_text(PAGE, "utf-8")

    assert (await import_file(harness, path)).source == "daily_pages"


async def test_what_is_no_memory_is_refused(harness: DocumentHarness, tmp_path: Path) -> None:
    path = tmp_path / "x"
    for data in (b"# README\n", b"\x89PNG\r\n\x1a\n\0\0", b"", b"x\0y"):
        path.write_bytes(data)
        with pytest.raises(InvalidInput):
            await import_file(harness, path)
    path.write_bytes(b"SQLite format 3\0")
    with pytest.raises((InvalidInput, StorageError)):
        await import_file(harness, path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InvalidInput, match="no daily page"):
        await import_file(harness, tmp_path / "empty")
    assert await events(harness) == ()
