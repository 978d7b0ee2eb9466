"""Years of daily records: what is done to many of them, and to one beside many."""

import asyncio
from contextlib import suppress
from pathlib import Path

from bridge.methods.daily import METHODS
from sync.log.model import Draft
from sync.memory.daily.deed import recording
from sync.memory.daily.deeds import AT_ONCE
from sync.memory.daily.model import Record, content
from sync.memory.daily.shelf import Shelf
from tests.integration.daily_desk import Desk, open_desk
from tests.support import REDACTOR

YEAR_OLD = "2025-02-02"


async def remember(desk: Desk, count: int) -> None:
    """So many records of an old day, as an import brings them."""
    deeds = [
        recording(
            Record(f"rec_{number:03}", "", YEAR_OLD, "10:00:00", number, content(f"第 {number} 次"), "", None, "d")
        )
        for number in range(1, count + 1)
    ]
    await desk.device.log.record([Draft(type=deed.kind, payload=REDACTOR.payload(deed.payload)) for deed in deeds])


async def test_many_records_are_put_away_in_few_transactions_and_each_comes_back_by_itself(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        many = 2 * AT_ONCE + 1
        await remember(desk, many)
        before = desk.device.log.changed.count
        assert len(await desk.room.clean(dry_run=False)) == many
        assert desk.device.log.changed.count - before == 3
        assert await desk.topics() == []
        await desk.room.deeds.undo()
        assert await desk.topics() == [f"第 {many} 次"]


async def test_one_who_gave_up_while_he_read_leaves_nothing_untold(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await remember(desk, AT_ONCE + 1)
        whole = await Shelf(desk.device.log).book()
        patience, gave_up = 0, True
        while gave_up:
            shelf = Shelf(desk.device.log)
            reading = asyncio.create_task(shelf.book())
            for _ in range(patience):
                await asyncio.sleep(0)
            gave_up = reading.cancel()
            with suppress(asyncio.CancelledError):
                await reading
            assert await shelf.book() == whole, f"given up after {patience} steps"
            patience += 1
        assert patience > 3


async def test_a_deed_costs_no_other_record_its_telling(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await remember(desk, 3)
        before = await desk.room.shelf.book()
        await desk.room.deeds.mark("rec_002", "important")
        after = await desk.room.shelf.book()
        assert after.records["rec_002"].marks == ("important",)
        assert after.records["rec_001"] is before.records["rec_001"]
        assert before.records["rec_002"].marks == ()


def test_putting_away_years_has_no_deadline() -> None:
    assert {method.name: method.timeout for method in METHODS}["daily/clean"] is None
