"""常用操作: tasks and commands of three days as lines, with real files and databases."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.document.erasure.erasure import request
from sync.log.event_types import TOOL_CALL
from sync.log.ingest import DraftBuilder
from sync.log.model import EventDraft, Origin, Query
from tests.integration.document.harness import DocumentHarness, open_document_harness
from tests.integration.document.versions.test_derived_lines import line_under
from tests.support import REDACTOR


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "a") as harness:
        yield harness


async def run(harness: DocumentHarness, command: str, times: int = 1) -> None:
    payload = REDACTOR.clean_payload({"tool": "Shell", "details": {"command": command}})
    for _ in range(times):
        await harness.log.append([EventDraft(TOOL_CALL, payload, origin=Origin.TOOL)])


async def use_for_days(harness: DocumentHarness, days: int = 3, command: str = "pnpm vitest") -> list[str]:
    """A command and a task on several days; the ids of the exchanges."""
    exchanges = []
    for _ in range(days):
        harness.clock.advance(days=1)
        await run(harness, command)
        exchanges.append(await harness.record_exchange("写今天的日报"))
        await harness.memory.reconcile()
    return exchanges


async def test_the_third_day_brings_the_lines(harness: DocumentHarness) -> None:
    await use_for_days(harness, 2)
    assert line_under(harness.text, "常用命令") == ["- （待补充）"]
    await use_for_days(harness, 1)
    assert line_under(harness.text, "日常任务") == ["- 写今天的日报"]
    assert line_under(harness.text, "常用命令") == ["- `pnpm vitest`（×3）"]
    assert [cause for _, cause in await harness.versions()][-1] == "operations"


async def test_a_count_grows_in_steps_and_a_new_process_counts_the_same(harness: DocumentHarness) -> None:
    await use_for_days(harness)
    await run(harness, "pnpm vitest", 7)
    await harness.record_and_reconcile("之后")
    assert line_under(harness.text, "常用命令") == ["- `pnpm vitest`（×10）"]
    harness.restart()
    await run(harness, "pnpm vitest")
    await harness.record_and_reconcile("再之后")
    assert line_under(harness.text, "常用命令") == ["- `pnpm vitest`（×10）"]
    await run(harness, "pnpm vitest")
    await harness.record_and_reconcile("最后")
    assert line_under(harness.text, "常用命令") == ["- `pnpm vitest`（×12）"]


async def test_a_line_removed_by_hand_stays_away(harness: DocumentHarness) -> None:
    await use_for_days(harness)
    harness.replace("- `pnpm vitest`（×3）\n", "")
    harness.replace("- 写今天的日报\n", "")
    await harness.memory.reconcile()
    harness.restart()
    await use_for_days(harness, 4)
    assert line_under(harness.text, "常用命令") == []
    assert line_under(harness.text, "日常任务") == []


async def test_a_line_changed_by_hand_stays_as_it_is(harness: DocumentHarness) -> None:
    await use_for_days(harness)
    harness.replace("- `pnpm vitest`（×3）", "- 跑测试：`pnpm vitest`")
    harness.add_line_under("### 常用命令", "- `git pull`")
    await harness.memory.reconcile()
    await use_for_days(harness, 4, command="git pull")
    await run(harness, "pnpm vitest", 9)
    await harness.memory.reconcile()
    assert line_under(harness.text, "常用命令") == ["- `git pull`", "- 跑测试：`pnpm vitest`"]


async def test_erased_exchanges_take_their_task_away_unless_enough_are_left(harness: DocumentHarness) -> None:
    exchanges = await use_for_days(harness, 4)
    intake = DraftBuilder(REDACTOR, clock=harness.clock)
    await request(harness.log, intake, exchanges[:1])
    await harness.record_and_reconcile("之后")
    assert line_under(harness.text, "日常任务") == ["- 写今天的日报"]
    await request(harness.log, intake, exchanges[1:])
    await harness.record_and_reconcile("再之后")
    assert "日报" not in harness.text
    assert "日报" not in str([event.payload for event in (await harness.log.read(Query(limit=10_000))).events])
    assert line_under(harness.text, "常用命令") == ["- `pnpm vitest`（×4）"]
