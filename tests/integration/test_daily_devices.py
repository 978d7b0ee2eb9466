"""Daily records of several devices: what each says of a day stands on everybody's page."""

from pathlib import Path

from sync.memory.daily.book import PARTS
from sync.memory.daily.model import content
from sync.memory.daily.page import parse
from tests.integration.daily_desk import Desk, open_desk
from tests.support import FixedClock, new_server, open_device


async def test_records_of_two_devices_with_one_number_both_stand_on_the_page(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.keep("一")
        payload = {
            "record_id": "rec_other",
            "date": "2026-02-02",
            "time": "09:00:00",
            "session": 1,
            "topic": "别的设备的",
        }
        await desk.device.log.record(desk.device.intake.drafts([{"type": "session_recorded", "payload": payload}]))
        await desk.room.settle()
        notes = parse(desk.page().read_text("utf-8")).notes
        assert {note.content.topic: note.number for note in notes} == {"一": 1, "别的设备的": 2}
        assert sorted(await desk.topics()) == ["一", "别的设备的"]


async def test_of_two_devices_that_change_different_parts_of_a_record_each_keeps_its_own(tmp_path: Path) -> None:
    server, clock = new_server(), FixedClock()
    async with (
        open_device(tmp_path / "a", server, name="device-a", clock=clock, inline=True) as one,
        open_device(tmp_path / "b", server, name="device-b", clock=clock, inline=True) as other,
    ):
        desks = Desk(one), Desk(other, installation="other")
        for desk in desks:
            await desk.device.log_in()
        record = (await desks[0].keep("记忆功能", "端口是 8080")).record
        assert record is not None
        for desk in desks:
            await desk.device.replicator.sync_now()
        await desks[0].room.deeds.edit(record.record_id, content("记忆的设计", ("端口是 8080",)), PARTS)
        await desks[1].room.deeds.edit(record.record_id, content("记忆功能", ("端口是 9090",)), PARTS)
        for desk in (*desks, desks[0]):
            await desk.device.replicator.sync_now()
        for desk in desks:
            await desk.room.settle()
            (note,) = parse(desk.page().read_text("utf-8")).notes
            assert (note.content.topic, note.content.facts) == ("记忆的设计", ("端口是 9090",))
