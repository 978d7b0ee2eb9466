"""不要保存 without a session id: what goes, what stays, and when the pause is over."""

from pathlib import Path

from sync.document import forgetting
from sync.log.model import Draft
from sync.log.pauses import SavePauses
from tests.integration.daily_desk import HALF_AN_HOUR, TALK, Desk, open_desk
from tests.support import REDACTOR

A_DAY = 86_400.0
A_YEAR = 365 * A_DAY


def said(desk: Desk, *texts: str) -> list[Draft]:
    events = [{"type": "message", "payload": {"role": "user", "content": text}} for text in texts]
    return desk.device.intake.drafts(events)


async def test_the_record_of_a_former_conversation_of_the_same_process_stays(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.room.keeper.keep_ended()
        await desk.device.log.record(said(desk, *(turn.text for turn in TALK)))
        desk.device.clock.advance(3 * A_DAY)
        assert await desk.room.keeper.keep_ended()
        former = await desk.topics()
        await desk.device.log.record(said(desk, "离职打算"))
        assert "1 条对话" in (await desk.say("不要保存")).message
        assert await desk.topics() == former


async def test_the_record_of_the_conversation_itself_goes(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.device.log.record(said(desk, *(turn.text for turn in TALK)))
        assert (await desk.say("记住这个")).done
        assert await desk.topics()
        await desk.say("不要保存")
        assert await desk.topics() == []


async def test_a_pause_that_began_when_the_clock_was_a_year_ahead_ends_after_a_silence(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        device = desk.device
        pauses = SavePauses(device.log, REDACTOR, device.clock, desk.room.keeper.idle_ms)
        device.clock.advance(A_YEAR)
        await desk.say("不要保存")
        device.clock.advance(-A_YEAR)
        assert await pauses.record(said(desk, "离职打算")) == [], "the conversation goes on"
        device.clock.advance(HALF_AN_HOUR * 60)
        assert len(await pauses.record(said(desk, "之后"))) == 1


async def test_a_daily_record_that_is_not_there_is_not_said_to_be_one_of_several(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        told = await desk.say("删除记忆: 2026-02-02 #1")
        assert (told.done, told.message) == (False, "没有找到这条记忆")


async def test_the_correction_of_an_edit_goes_with_the_line(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        log = desk.device.log
        (line,) = await log.record([Draft("entry_added", REDACTOR.payload({"entry_id": "l1", "text": "旧"}))])
        edit = {"entry_id": "l1", "text": "新"}
        (edited,) = await log.record([Draft("entry_edited", REDACTOR.payload(edit))])
        correction = {"event_id": edited.event.event_id, "payload": edit}
        (corrected,) = await log.record([Draft("payload_redacted", REDACTOR.payload(correction))])
        gone = await forgetting.ask(log, desk.device.intake, [line.event.event_id])
        assert set(gone) == {each.event.event_id for each in (line, edited, corrected)}
