"""不要保存 without a session id: what goes, what stays, and when the pause is over."""

from pathlib import Path

from sync.daily.model import normalised_content
from sync.daily.record_service import RecordRequest
from sync.document.erasure import erasure
from sync.log.model import EventDraft
from sync.log.sessions.pauses import SavePauses, draft_pause
from tests.integration.daily.harness import IDLE_MINUTES, SAMPLE_TURNS, DailyHarness, open_daily_harness
from tests.support import REDACTOR

A_DAY = 86_400.0
A_YEAR = 365 * A_DAY


def said(harness: DailyHarness, *texts: str) -> list[EventDraft]:
    events = [{"type": "message", "payload": {"role": "user", "content": text}} for text in texts]
    return harness.device.intake.build_batch(events)


async def test_the_record_of_a_former_conversation_of_the_same_process_stays(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.service.worker.record_ended_sessions()
        await harness.device.log.append(said(harness, *(turn.text for turn in SAMPLE_TURNS)))
        harness.device.clock.advance(3 * A_DAY)
        assert await harness.service.worker.record_ended_sessions()
        former = await harness.topics()
        await harness.device.log.append(said(harness, "离职打算"))
        assert "1 条对话" in (await harness.send_command("不要保存")).message
        assert await harness.topics() == former


async def test_the_record_of_the_conversation_itself_goes(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.device.log.append(said(harness, *(turn.text for turn in SAMPLE_TURNS)))
        assert (await harness.send_command("记住这个")).done
        assert await harness.topics()
        await harness.send_command("不要保存")
        assert await harness.topics() == []


async def test_a_pause_that_began_when_the_clock_was_a_year_ahead_ends_after_a_silence(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        device = harness.device
        pauses = SavePauses(device.log, REDACTOR, device.clock, harness.service.worker.open_sessions.idle_ms)
        device.clock.advance(A_YEAR)
        await harness.send_command("不要保存")
        device.clock.advance(-A_YEAR)
        assert await pauses.append_allowed(said(harness, "离职打算")) == [], "the conversation goes on"
        device.clock.advance(IDLE_MINUTES * 60)
        assert len(await pauses.append_allowed(said(harness, "之后"))) == 1


async def test_a_running_pause_is_named_and_refused_calls_extend_it_for_a_day_at_most(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        device = harness.device
        pauses = SavePauses(device.log, REDACTOR, device.clock, harness.service.worker.open_sessions.idle_ms)
        assert await pauses.warning() is None
        await harness.send_command("不要保存")
        begun = await pauses.warning()
        assert begun is not None
        assert "by 不要保存" in begun
        refused = 0
        while not await pauses.append_allowed(said(harness, "离职打算")):
            assert await pauses.warning() == begun
            device.clock.advance(IDLE_MINUTES * 60 - 1)
            refused += 1
        assert refused * (IDLE_MINUTES * 60 - 1) > A_DAY
        assert await pauses.warning() is None
        await harness.send_command("不要保存")
        assert await pauses.append_allowed(said(harness, "又一次")) == []
        await harness.send_command("记住这个")
        assert await pauses.warning() is None


async def test_another_device_neither_pauses_nor_resumes_what_this_one_records(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        device = harness.device
        pauses = SavePauses(device.log, REDACTOR, device.clock, harness.service.worker.open_sessions.idle_ms)
        device.log.device_id = "device-other"
        for other in ("s1", None):
            await device.log.append([draft_pause(other, REDACTOR, on=True)])
        device.log.device_id = "device-a"
        assert await pauses.append_allowed(said(harness, "无名"))
        assert not await device.database.read(pauses.is_paused, "s1")
        await harness.send_command("不要保存", session_id="s1")
        device.log.device_id = "device-other"
        await device.log.append([draft_pause("s1", REDACTOR, on=False)])
        device.log.device_id = "device-a"
        assert await device.database.read(pauses.is_paused, "s1")
        asked = RecordRequest(session_id="s1", summary=normalised_content("离职打算"))
        assert (await harness.service.record_service.record_conversation(asked)).reason == "skip"


async def test_a_daily_record_that_is_not_there_is_not_said_to_be_one_of_several(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        told = await harness.send_command("删除记忆: 2026-02-02 #1")
        assert (told.done, told.message) == (False, "没有找到这条记忆")


async def test_the_correction_of_an_edit_goes_with_the_line(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        log = harness.device.log
        (line,) = await log.append(
            [EventDraft("entry_added", REDACTOR.clean_payload({"entry_id": "l1", "text": "旧"}))]
        )
        edit = {"entry_id": "l1", "text": "新"}
        (edited,) = await log.append([EventDraft("entry_edited", REDACTOR.clean_payload(edit))])
        correction = {"event_id": edited.event.event_id, "payload": edit}
        (corrected,) = await log.append([EventDraft("payload_redacted", REDACTOR.clean_payload(correction))])
        gone = await erasure.request(log, harness.device.intake, [line.event.event_id])
        assert set(gone) == {each.event.event_id for each in (line, edited, corrected)}
