"""Years of daily records: what is done to many of them, and to one beside many."""

import asyncio
from contextlib import suppress
from pathlib import Path

from bridge.methods.registry import METHOD_TABLE
from sync.daily.model import Record, normalised_content
from sync.daily.record_service import CHANGES_PER_TRANSACTION
from sync.daily.records.changes import create_record
from sync.daily.records.records_cache import RecordsCache
from sync.log.model import EventDraft
from tests.integration.daily.harness import DailyHarness, open_daily_harness
from tests.support import REDACTOR

YEAR_OLD = "2025-02-02"


async def remember(harness: DailyHarness, count: int) -> None:
    """So many records of an old day, as an import brings them."""
    deeds = [
        create_record(
            Record(
                f"rec_{number:03}",
                "",
                YEAR_OLD,
                "10:00:00",
                number,
                normalised_content(f"第 {number} 次"),
                "",
                None,
                "d",
            )
        )
        for number in range(1, count + 1)
    ]
    await harness.device.log.append(
        [EventDraft(type=deed.event_type, payload=REDACTOR.clean_payload(deed.payload)) for deed in deeds]
    )


async def test_many_records_are_put_away_in_few_transactions_and_each_comes_back_by_itself(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        many = 2 * CHANGES_PER_TRANSACTION + 1
        await remember(harness, many)
        before = harness.device.log.changed.count
        assert len(await harness.service.expire_old_records(dry_run=False)) == many
        assert harness.device.log.changed.count - before == 3
        assert await harness.topics() == []
        await harness.service.record_service.undo()
        assert await harness.topics() == [f"第 {many} 次"]


async def test_one_who_gave_up_while_he_read_leaves_nothing_untold(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await remember(harness, CHANGES_PER_TRANSACTION + 1)
        whole = await RecordsCache(harness.device.log).current_records()
        patience, gave_up = 0, True
        while gave_up:
            shelf = RecordsCache(harness.device.log)
            reading = asyncio.create_task(shelf.current_records())
            for _ in range(patience):
                await asyncio.sleep(0)
            gave_up = reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
            assert await shelf.current_records() == whole, f"given up after {patience} steps"
            patience += 1
        assert patience > 3


async def test_a_change_does_not_reduce_other_records_again(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await remember(harness, 3)
        before = await harness.service.records_cache.current_records()
        await harness.service.record_service.mark("rec_002", "important")
        after = await harness.service.records_cache.current_records()
        assert after.by_id["rec_002"].marks == ("important",)
        assert after.by_id["rec_001"] is before.by_id["rec_001"]
        assert before.by_id["rec_002"].marks == ()


def test_putting_away_years_has_no_deadline() -> None:
    assert METHOD_TABLE["daily/clean"].timeout is None
