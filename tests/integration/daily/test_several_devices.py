"""Daily records of several devices appear on every device's page."""

from pathlib import Path

from sync.daily.model import normalised_content
from sync.daily.pages.page_format import parse
from sync.daily.records.reducer import CONTENT_PARTS
from tests.integration.daily.harness import DailyHarness, open_daily_harness
from tests.support import FixedClock, new_server, open_device


async def test_records_of_two_devices_with_one_number_are_both_on_the_page(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.record("一")
        payload = {
            "record_id": "rec_other",
            "date": "2026-02-02",
            "time": "09:00:00",
            "session": 1,
            "topic": "别的设备的",
        }
        await harness.device.log.append(
            harness.device.intake.build_batch([{"type": "session_recorded", "payload": payload}])
        )
        await harness.service.reconcile()
        notes = parse(harness.page().read_text("utf-8")).sessions
        assert {note.content.topic: note.number for note in notes} == {"一": 1, "别的设备的": 2}
        assert sorted(await harness.topics()) == ["一", "别的设备的"]


async def test_of_two_devices_that_change_different_parts_of_a_record_each_keeps_its_own(tmp_path: Path) -> None:
    server, clock = new_server(), FixedClock()
    async with (
        open_device(tmp_path / "a", server, device_id="device-a", clock=clock, single_threaded=True) as one,
        open_device(tmp_path / "b", server, device_id="device-b", clock=clock, single_threaded=True) as other,
    ):
        harnesses = DailyHarness(one), DailyHarness(other, installation="other")
        for harness in harnesses:
            await harness.device.log_in()
        record = (await harnesses[0].record("记忆功能", "端口是 8080")).record
        assert record is not None
        for harness in harnesses:
            await harness.device.replicator.sync_now()
        await harnesses[0].service.record_service.edit(
            record.record_id, normalised_content("记忆的设计", ("端口是 8080",)), CONTENT_PARTS
        )
        await harnesses[1].service.record_service.edit(
            record.record_id, normalised_content("记忆功能", ("端口是 9090",)), CONTENT_PARTS
        )
        for harness in (*harnesses, harnesses[0]):
            await harness.device.replicator.sync_now()
        for harness in harnesses:
            await harness.service.reconcile()
            (note,) = parse(harness.page().read_text("utf-8")).sessions
            assert (note.content.topic, note.content.facts) == ("记忆的设计", ("端口是 9090",))
