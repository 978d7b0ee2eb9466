"""Old days fold into a line each: exchanges that nobody changed, imported ones too; their events stay."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from sync.document.capture import EXCHANGE
from sync.document.clean_up import MOST_DAYS
from sync.document.forgetting import ask
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.intake import Intake
from sync.log.model import Query
from tests.integration.document_desk import Desk, on_a_desk

HEADING = "### 更早的对话"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with on_a_desk(tmp_path / "a") as desk:
        yield desk


async def later(desk: Desk, days: int) -> None:
    desk.clock.move(days=days)
    await desk.memory.settle()


async def test_a_day_folds_into_a_line_when_it_is_old_and_its_events_stay(desk: Desk) -> None:
    await desk.said("怎么优化启动速度", "我的设备ID是多少")
    await later(desk, 29)
    await desk.said("今天的话")
    assert "### 2026/1/8\n" in desk.text

    await later(desk, 2)

    assert f"{HEADING}\n- 2026/1/8：怎么优化启动速度；我的设备ID是多少（2 次对话）\n" in desk.text
    assert "### 2026/1/8\n" not in desk.text
    assert "- 用户问：今天的话\n" in desk.text
    assert desk.text.index("### 2026/2/6") < desk.text.index(HEADING) < desk.text.index("## 常用操作")
    said = (await desk.log.read(Query(types=(EXCHANGE,)))).events
    assert [event.payload["question"] for event in said] == ["怎么优化启动速度", "我的设备ID是多少", "今天的话"]
    before = desk.text
    await later(desk, 1)
    assert desk.text == before


async def test_what_hands_wrote_or_changed_stays_under_its_day(desk: Desk) -> None:
    await desk.said("第一件事", "第二件事")
    desk.replace("- 用户问：第一件事", "- 用户问：第一件要紧的事")
    desk.type_under("### 2026/1/8", "- 手写的一行")
    await desk.memory.settle()

    await later(desk, 40)

    assert "### 2026/1/8\n- 手写的一行\n" in desk.text
    assert "- 用户问：第一件要紧的事\n- AI 答：好的\n" in desk.text
    assert "- 2026/1/8：第二件事（1 次对话）\n" in desk.text


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


async def test_old_days_of_a_file_of_the_original_app_fold_and_can_be_restored(desk: Desk) -> None:
    desk.text = ORIGINAL
    await desk.memory.settle()
    await desk.memory.settle()

    assert f"{HEADING}\n- 2025/1/9：咖啡（1 次对话）\n- 2025/1/8：" in desk.text
    assert "；水（2 次对话）\n" in desk.text
    assert "### 2025/1/9" not in desk.text
    assert "### 2025/1/8\n- 随手记的一行\n" in desk.text
    texts = [event.payload.get("text") for event in await desk.hand_events()]
    assert {"- 用户问：咖啡", "- AI 答：美式", "- AI 答：绿茶", "- 用户问：水", "- AI 答：温水"} <= set(texts)
    steps = await desk.memory.versions.history(20)
    assert "folded" in {step.cause for step in steps}
    before = next(step for step in steps if step.cause == "hand")

    await desk.memory.restore(before.sha256)
    await later(desk, 1)

    assert "### 2025/1/9\n- 用户问：咖啡\n- AI 答：美式\n" in desk.text
    assert "- 用户问：茶，我的电话是 13812345678\n- AI 答：绿茶\n- 随手记的一行\n" in desk.text
    assert HEADING not in desk.text


async def test_what_a_hand_changed_or_added_after_the_import_stays(tmp_path: Path) -> None:
    async with on_a_desk(tmp_path / "a", keep_days=4_000) as desk:
        desk.text = ORIGINAL
        await desk.memory.settle()
        desk.replace("- AI 答：温水", "- AI 答：凉水")
        desk.type_under("### 2025/1/9", "- 用户问：我写的\n- AI 答：我也写了")
        await desk.memory.settle()
        await later(desk, 4_400)
    assert "- 用户问：水\n- AI 答：凉水\n" in desk.text
    assert "### 2025/1/9\n- 用户问：我写的\n- AI 答：我也写了\n" in desk.text
    assert "- AI 答：美式" not in desk.text
    assert "- AI 答：绿茶" not in desk.text


async def test_a_stale_buffer_brings_no_folded_line_back_and_keeps_its_own_words(desk: Desk) -> None:
    await desk.said("第一件事")
    stale = desk.text
    await later(desk, 40)
    desk.text = stale.replace("### 工作习惯\n", "### 工作习惯\n- 早起\n")
    await desk.memory.settle()

    assert "- 早起\n" in desk.text
    assert "- 2026/1/8：第一件事（1 次对话）\n" in desk.text
    assert "- 用户问：第一件事" not in desk.text


@pytest.mark.parametrize("keep_days", [-1, 1_000_000])
async def test_the_setting_keeps_every_day(tmp_path: Path, keep_days: int) -> None:
    async with on_a_desk(tmp_path / "a", keep_days=keep_days) as desk:
        await desk.said("第一件事")
        await later(desk, 4_000)
        assert "- 用户问：第一件事\n" in desk.text


async def test_years_fold_a_month_at_a_time(desk: Desk) -> None:
    for _ in range(MOST_DAYS + 3):
        await desk.say("每天都问的事", str(desk.clock.time))
        desk.clock.move(days=1)
    desk.clock.move(days=60)
    for _ in range(3):
        await desk.memory.settle()

    assert desk.text.count("每天都问的事（1 次对话）") == MOST_DAYS + 3
    assert desk.text.index("- 2026/2/1：") < desk.text.index("- 2026/1/31：")


async def test_forgetting_reaches_the_line_of_a_folded_day(desk: Desk) -> None:
    event_id = await desk.say("我的秘密是蓝色的猫")
    await desk.memory.settle()
    await later(desk, 40)
    assert "蓝色的猫" in desk.text

    await ask(desk.log, Intake(desk.redactor), [event_id])
    await desk.memory.settle()

    assert "蓝色的猫" not in desk.text
    assert "蓝色的猫" not in str((await desk.log.read(Query())).events)


async def taken_by_the_server(*desks: Desk, server_ts: str) -> None:
    """Every event is on the server, which had this time, and every device knows it."""
    known = {event.event_id: event for desk in desks for event in (await desk.log.read(Query(limit=1_000))).events}
    stored = [replace(event, server_seq=seq, server_ts=server_ts) for seq, event in enumerate(known.values(), start=1)]
    for desk in desks:
        await desk.hear(*desks)
        await desk.database.write(lambda connection: outbox_store.number(connection, stored))
        await desk.database.write(partial(log_store.note_reordered, clock=desk.clock))
        await desk.memory.settle()


async def test_a_clock_years_ahead_folds_no_day_of_today_for_anybody(tmp_path: Path) -> None:
    async with (
        on_a_desk(tmp_path / "a", sharing="user") as here,
        on_a_desk(tmp_path / "b", sharing="user", device="device-b") as there,
    ):
        await here.said("今天的话")
        await taken_by_the_server(here, there, server_ts="2026-01-08T01:00:00.000Z")
        await later(there, 20 * 365)
        await here.hear(there)
        assert "- 用户问：今天的话\n" in there.text
        assert "- 用户问：今天的话\n" in here.text


async def test_a_day_that_such_a_clock_has_folded_before_any_answer_of_the_server_comes_back(tmp_path: Path) -> None:
    async with (
        on_a_desk(tmp_path / "a", sharing="user") as here,
        on_a_desk(tmp_path / "b", sharing="user", device="device-b") as there,
    ):
        await here.said("今天的话")
        await there.hear(here)
        await later(there, 20 * 365)
        await here.hear(there)
        assert "- 用户问：今天的话\n" not in here.text
        there.clock.move(days=-20 * 365)
        await taken_by_the_server(here, there, server_ts="2026-01-08T01:00:00.000Z")
        assert "- 用户问：今天的话\n" in here.text
        assert HEADING not in here.text
        assert here.text == there.text
        for desk in (here, there):
            await later(desk, 40)
            await desk.say("后来的")
        await taken_by_the_server(here, there, server_ts="2026-02-17T01:00:00.000Z")
        for desk in (here, there):
            await later(desk, 1)
            assert "- 2026/1/8：今天的话（1 次对话）\n" in desk.text


async def test_devices_that_share_fold_alike_and_take_in_what_comes_late(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        desks = [
            await stack.enter_async_context(on_a_desk(tmp_path / name, device=f"device-{name}", sharing="user"))
            for name in "abc"
        ]
        one, two, late = desks
        await one.say("第一件事")
        await two.say("第二件事")
        await late.say("迟到的事")
        for desk in (one, two):
            await desk.hear(one, two)
        for desk in (one, two):
            await later(desk, 40)
        late.clock.move(days=40)
        for _ in range(2):
            for desk in desks:
                desk.clock.move(days=1)
                await desk.hear(*desks)
        for desk in desks:
            await desk.hear(*desks)

        assert one.text == two.text == late.text
        assert "次对话）" in one.text
        assert "- 用户问：" not in one.text
        assert one.text.count("- 2026/1/8：") == 1
