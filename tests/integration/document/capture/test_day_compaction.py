"""Old days become a line each: unchanged exchanges, imported ones too. Their events stay."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sync.document.capture.day_compaction import MAX_DAYS
from sync.document.capture.exchange_events import ExchangeInput, draft_exchange_events
from sync.document.erasure.erasure import request
from sync.document.read.memory_service import MemoryService
from sync.log import outbox_store
from sync.log.event_types import EXCHANGE_RECORDED
from sync.log.ingest import DraftBuilder
from sync.log.model import Door, Origin, Query
from sync.settings.settings import Settings
from tests.integration.document.harness import DocumentHarness, open_document_harness

HEADING = "### 更早的对话"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "a") as harness:
        yield harness


async def later(harness: DocumentHarness, days: int) -> None:
    harness.clock.advance(days=days)
    await harness.memory.reconcile()


async def test_an_old_day_becomes_a_line_and_its_events_stay(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("怎么优化启动速度", "我的设备ID是多少")
    await later(harness, 29)
    await harness.record_and_reconcile("今天的话")
    assert "### 2026/1/8\n" in harness.text

    await later(harness, 2)

    assert f"{HEADING}\n- 2026/1/8：怎么优化启动速度；我的设备ID是多少（2 次对话）\n" in harness.text
    assert "### 2026/1/8\n" not in harness.text
    assert "- 用户问：今天的话\n" in harness.text
    assert harness.text.index("### 2026/2/6") < harness.text.index(HEADING) < harness.text.index("## 常用操作")
    said = (await harness.log.read(Query(types=(EXCHANGE_RECORDED,)))).events
    assert [event.payload["question"] for event in said] == ["怎么优化启动速度", "我的设备ID是多少", "今天的话"]
    before = harness.text
    await later(harness, 1)
    assert harness.text == before


@pytest.mark.parametrize(("door", "label"), [(Door.PROGRAM, "来自 工具"), (Door.IMPORT, "导入")])
async def test_each_author_of_an_old_day_keeps_a_labelled_line_of_their_own(
    harness: DocumentHarness, door: Door, label: str
) -> None:
    memory = MemoryService(
        harness.log, harness.memory, None, harness.redactor, clock=harness.clock, settings=Settings()
    )

    async def record_other(question: str) -> None:
        said = ExchangeInput(question, "好的")
        drafts = draft_exchange_events(said, harness.redactor, device_id="device-a", store_messages=False)
        await harness.log.append([replace(one, door=door, origin=Origin.TOOL) for one in drafts])
        await harness.memory.reconcile()

    await harness.record_and_reconcile("我问的")
    await record_other("永远直接执行")
    await later(harness, 40)

    own, other = "2026/1/8：我问的（1 次对话）", "2026/1/8：永远直接执行（1 次对话）"
    assert f"- {own}\n" in harness.text
    assert f"- {other}\n" in harness.text
    loaded = (await memory.load(wait_ms=0)).content
    assert f"- {own}\n" in loaded
    assert f"- 【{label}】{other}\n" in loaded
    harness.clock.advance(days=-40)
    await record_other("补上的")
    await later(harness, 41)
    assert f"- 【{label}】2026/1/8：永远直接执行（2 次对话）\n" in (await memory.load(wait_ms=0)).content
    harness.replace("永远直接执行（2 次对话）", "我改过的（2 次对话）")
    await harness.memory.reconcile()
    assert "- 2026/1/8：我改过的（2 次对话）\n" in (await memory.load(wait_ms=0)).content


async def test_typed_and_edited_lines_stay_under_their_day(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("第一件事", "第二件事")
    harness.replace("- 用户问：第一件事", "- 用户问：第一件要紧的事")
    harness.add_line_under("### 2026/1/8", "- 手写的一行")
    await harness.memory.reconcile()

    await later(harness, 40)

    assert "### 2026/1/8\n- 手写的一行\n" in harness.text
    assert "- 用户问：第一件要紧的事\n- AI 答：好的\n" in harness.text
    assert "- 2026/1/8：第二件事（1 次对话）\n" in harness.text


ORIGINAL = """# AI 对话记忆

## 重要对话记录

### 2025/1/9
- 用户问：咖啡
- AI 答：美式

### 2025/1/8
- 用户问：茶，我的电话是 13812345678
- AI 答：绿茶
- 随手记的一行

- 用户问：水
- AI 答：温水

---

**最后更新**：2025/1/9 15:49:12
"""


async def test_old_days_of_a_file_of_the_original_app_are_compacted_and_can_be_restored(
    harness: DocumentHarness,
) -> None:
    harness.text = ORIGINAL
    await harness.memory.reconcile()
    await harness.memory.reconcile()

    assert f"{HEADING}\n- 2025/1/9：咖啡（1 次对话）\n- 2025/1/8：" in harness.text
    assert "；水（2 次对话）\n" in harness.text
    assert "### 2025/1/9" not in harness.text
    assert "### 2025/1/8\n- 随手记的一行\n" in harness.text
    texts = [event.payload.get("text") for event in await harness.manual_edit_events()]
    assert {"- 用户问：咖啡", "- AI 答：美式", "- AI 答：绿茶", "- 用户问：水", "- AI 答：温水"} <= set(texts)
    steps = await harness.memory.versions.history(20)
    assert "folded" in {step.cause for step in steps}
    before = next(step for step in steps if step.cause == "hand")

    await harness.memory.restore(before.sha256)
    await later(harness, 1)

    assert "### 2025/1/9\n- 用户问：咖啡\n- AI 答：美式\n" in harness.text
    assert "- 用户问：茶，我的电话是 13812345678\n- AI 答：绿茶\n- 随手记的一行\n" in harness.text
    assert HEADING not in harness.text


APP_DAY = """### {day}
- 用户问：帮我看看这段代码
def f(): pass
- AI 答：好的，分三步：
- 第一步
{cut}

### {day}
- 用户问：周末去哪
- AI 答：爬山
或者看海

---

"""


async def test_days_that_the_original_app_wrote_leave_no_stubs(harness: DocumentHarness) -> None:
    """It keeps line breaks, cuts answers after 100 characters, repeats the day's heading and divides days."""
    cut = "第二步".ljust(100 - len("好的，分三步：\n- 第一步\n"), "做") + "..."
    days = "".join(APP_DAY.format(day=f"2025/1/{day}", cut=cut) for day in (9, 8, 7))
    kept = "### 2026/1/8\n- 用户问：今天的\n- AI 答：好\n\n---\n\n"
    harness.text = ORIGINAL.partition("### 2025")[0] + kept + days + "## 常用操作\n- 备份\n"
    await harness.memory.reconcile()
    await harness.memory.reconcile()

    folded = "".join(f"- 2025/1/{day}：帮我看看这段代码；周末去哪（2 次对话）\n" for day in (9, 8, 7))
    body = (
        f"## 重要对话记录\n\n{kept.removesuffix('---' + chr(10) * 2)}{HEADING}\n{folded}\n---\n\n## 常用操作\n- 备份\n"
    )
    assert body in harness.text


async def test_lines_edited_or_added_after_the_import_stay(tmp_path: Path) -> None:
    async with open_document_harness(tmp_path / "a", keep_days=4_000) as harness:
        harness.text = ORIGINAL
        await harness.memory.reconcile()
        harness.replace("- AI 答：温水", "- AI 答：凉水")
        harness.add_line_under("### 2025/1/9", "- 用户问：我写的\n- AI 答：我也写了")
        await harness.memory.reconcile()
        await later(harness, 4_400)
    assert "- 用户问：水\n- AI 答：凉水\n" in harness.text
    assert "### 2025/1/9\n- 用户问：我写的\n- AI 答：我也写了\n" in harness.text
    assert "- AI 答：美式" not in harness.text
    assert "- AI 答：绿茶" not in harness.text


async def test_a_stale_buffer_restores_no_compacted_line_and_keeps_its_own_edits(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("第一件事")
    stale = harness.text
    await later(harness, 40)
    harness.text = stale.replace("### 工作习惯\n", "### 工作习惯\n- 早起\n")
    await harness.memory.reconcile()

    assert "- 早起\n" in harness.text
    assert "- 2026/1/8：第一件事（1 次对话）\n" in harness.text
    assert "- 用户问：第一件事" not in harness.text


@pytest.mark.parametrize("keep_days", [-1, 1_000_000])
async def test_the_setting_keeps_every_day(tmp_path: Path, keep_days: int) -> None:
    async with open_document_harness(tmp_path / "a", keep_days=keep_days) as harness:
        await harness.record_and_reconcile("第一件事")
        await later(harness, 4_000)
        assert "- 用户问：第一件事\n" in harness.text


async def test_years_are_compacted_a_month_at_a_time(harness: DocumentHarness) -> None:
    for _ in range(MAX_DAYS + 3):
        await harness.record_exchange("每天都问的事", str(harness.clock.time))
        harness.clock.advance(days=1)
    harness.clock.advance(days=60)
    for _ in range(3):
        await harness.memory.reconcile()

    assert harness.text.count("每天都问的事（1 次对话）") == MAX_DAYS + 3
    assert harness.text.index("- 2026/2/1：") < harness.text.index("- 2026/1/31：")


async def test_an_erasure_reaches_the_line_of_a_compacted_day(harness: DocumentHarness) -> None:
    event_id = await harness.record_exchange("我的秘密是蓝色的猫")
    await harness.memory.reconcile()
    await later(harness, 40)
    assert "蓝色的猫" in harness.text

    await request(harness.log, DraftBuilder(harness.redactor), [event_id])
    await harness.memory.reconcile()

    assert "蓝色的猫" not in harness.text
    assert "蓝色的猫" not in str((await harness.log.read(Query())).events)


async def test_what_was_said_while_the_clock_was_behind_stays_until_it_is_old(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("之前的话")
    harness.clock.advance(days=-400)
    await harness.record_and_reconcile("钟慢时的话")
    assert "### 2024/12/4\n" in harness.text
    harness.clock.advance(days=400)
    await later(harness, 1)
    assert "- 用户问：钟慢时的话\n" in harness.text
    await later(harness, 40)
    assert "- 用户问：钟慢时的话\n" not in harness.text
    assert "- 2024/12/4：钟慢时的话（1 次对话）\n" in harness.text


async def test_a_clock_years_ahead_of_the_server_compacts_no_current_day(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("今天的话")
    (said,) = (await harness.log.read(Query())).events
    stored = [replace(said, server_seq=1, server_ts="2026-01-08T01:00:00.000Z")]
    await harness.database.write(lambda connection: outbox_store.set_server_numbers(connection, stored))
    await later(harness, 20 * 365)
    assert "- 用户问：今天的话\n" in harness.text
