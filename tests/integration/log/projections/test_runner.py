"""A projection and its offset move together; killed, changed or cleared, it reaches the same state again."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from sync.db.engine import Transaction
from sync.log.model import Event
from sync.log.projections.registry import ProjectionEntry
from sync.log.projections.runner import BATCH_EVENTS, ProjectionRunner
from tests.support import BROKEN_AFTER, background_task, new_server, open_device


class Titles:
    """A projection that stores the ids of events in a table of its own."""

    def __init__(self, rules: int = 1, *, fails_at: str = "") -> None:
        self.entry = ProjectionEntry("recall.titles")
        self.rules_version = rules
        self._fails_at = fails_at

    def is_consistent(self, _: Transaction) -> bool:
        return True

    def clear(self, connection: Transaction) -> None:
        connection.exec_driver_sql("drop table if exists titles")
        connection.exec_driver_sql("create table titles (event_id text)")

    def must_restart(self, connection: Transaction, events: Sequence[Event]) -> bool:
        del connection, events
        return False

    def apply(self, connection: Transaction, events: Sequence[Event]) -> None:
        for event in events:
            connection.exec_driver_sql("insert into titles values (?)", (event.event_id,))
            if event.event_id == self._fails_at:
                raise RuntimeError("killed here")


def kept(connection: Transaction) -> list[str]:
    return [row[0] for row in connection.exec_driver_sql("select event_id from titles order by rowid")]


async def test_a_projection_applies_every_event_once_over_several_batches(tmp_path: Path) -> None:
    async with open_device(tmp_path, new_server()) as device:
        ids = await device.record_notes(*(f"第 {number} 件" for number in range(2 * BATCH_EVENTS + 1)))
        told: list[tuple[int, int]] = []
        follower = ProjectionRunner(device.log, Titles(), device.clock)
        assert await follower.catch_up(lambda position, head: told.append((position, head))) == len(ids)
        assert await follower.catch_up() == 0
        assert await device.database.read(kept) == ids
        assert told == [(BATCH_EVENTS, len(ids)), (2 * BATCH_EVENTS, len(ids))]


async def test_an_interrupted_batch_leaves_neither_rows_nor_an_offset(tmp_path: Path) -> None:
    async with open_device(tmp_path, new_server()) as device:
        ids = await device.record_notes("一", "二", "三")
        with pytest.raises(RuntimeError, match="killed here"):
            await ProjectionRunner(device.log, Titles(fails_at=ids[1]), device.clock).catch_up()
        assert await device.log.watermark("recall.titles") == 0
        assert await ProjectionRunner(device.log, Titles(), device.clock).catch_up() == len(ids)
        assert await device.database.read(kept) == ids


async def test_another_rules_version_rebuilds_the_projection(tmp_path: Path) -> None:
    async with open_device(tmp_path, new_server()) as device:
        ids = await device.record_notes("一", "二")
        await ProjectionRunner(device.log, Titles(), device.clock).catch_up()
        assert await ProjectionRunner(device.log, Titles(rules=2), device.clock).catch_up() == len(ids)
        assert await device.database.read(kept) == ids


async def test_a_rebuilt_projection_is_the_same(tmp_path: Path) -> None:
    async with open_device(tmp_path, new_server()) as device:
        ids = await device.record_notes("一", "二")
        follower = ProjectionRunner(device.log, Titles(), device.clock)
        await follower.catch_up()
        assert await follower.rebuild() == len(ids)
        assert await device.database.read(kept) == ids


async def test_a_running_projection_applies_the_next_event(tmp_path: Path) -> None:
    async with open_device(tmp_path, new_server()) as device:
        follower = ProjectionRunner(device.log, Titles(), device.clock)
        with background_task(follower.run()):
            (said,) = await device.record_notes("刚刚说的")
            async with asyncio.timeout(BROKEN_AFTER):
                while await device.log.watermark("recall.titles") == 0:  # noqa: ASYNC110 - in another thread
                    await asyncio.sleep(0)
        assert await device.database.read(kept) == [said]
