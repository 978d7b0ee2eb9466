"""What a process has to do for the memory file, seen in one read: nothing that another process has done."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from sync.log.event_types import TOOL_CALL
from sync.log.model import EventDraft
from tests.integration.document.harness import DocumentHarness, open_document_harness

KEEP_DAYS = 30


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "a") as harness:
        await harness.record_and_reconcile("怎么优化启动速度")
        yield harness


async def is_caught_up(harness: DocumentHarness) -> bool:
    return (await harness.memory.versions.file_state(keep_days=KEEP_DAYS)).is_caught_up


async def test_a_new_process_has_nothing_to_do_after_another_has_caught_up(harness: DocumentHarness) -> None:
    harness.restart()
    assert await is_caught_up(harness)


async def test_a_new_process_counts_a_use_that_no_version_follows(harness: DocumentHarness) -> None:
    call = EventDraft(TOOL_CALL, harness.redactor.clean_payload({"tool": "Bash", "input": {"command": "make test"}}))
    await harness.log.append([call])
    harness.restart()
    assert not await is_caught_up(harness)
    await harness.memory.versions.catch_up(keep_days=KEEP_DAYS)
    assert await is_caught_up(harness)


async def test_a_new_process_has_work_after_a_day_has_become_old(harness: DocumentHarness) -> None:
    harness.clock.advance(days=KEEP_DAYS)
    harness.restart()
    assert await is_caught_up(harness)
    harness.clock.advance(days=1)
    assert not await is_caught_up(harness)
    folded = await harness.memory.versions.catch_up(keep_days=KEEP_DAYS)
    assert folded is not None
    assert "（1 次对话）" in folded.snapshot.document.text
