"""A conversation that is sensitive: nothing of it is kept, and nothing else goes with it."""

from pathlib import Path
from typing import Any

from sync.document.rescan import rescan
from sync.log.model import Draft, Event, Query
from sync.memory.daily.deeds import Conversation
from sync.memory.daily.summarise import Turn
from sync.redaction import Redactor
from tests.integration.daily_desk import TALK, Desk, open_desk
from tests.support import REDACTOR


async def events_of(desk: Desk, *types: str) -> list[Event]:
    found: list[Event] = []
    while page := (await desk.device.log.read(Query(types=types, after=found[-1].position if found else 0))).events:
        found += page
    return found


async def forgotten(desk: Desk) -> set[str]:
    wishes = await events_of(desk, "payload_forgotten")
    return {name for event in wishes for name in event.payload["event_ids"]}


async def tell(desk: Desk, session_id: str, kind: str, **payload: Any) -> str:
    given = {"type": kind, "session_id": session_id, "payload": payload}
    (recorded,) = await desk.device.log.record(desk.device.intake.drafts([given]))
    return recorded.event.event_id


async def test_a_sensitive_conversation_is_not_kept_and_what_was_is_forgotten(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.converse("s1")
        done = await desk.room.deeds.keep(Conversation("s1"))
        assert done.record is not None
        await desk.room.deeds.forget(done.record.record_id)
        await desk.room.settle()
        assert await desk.topics() == []
        assert (await desk.room.deeds.keep(Conversation("s1", TALK))).reason == "skip"
        kept = await events_of(desk, "message", "session_recorded")
        assert {event.event_id for event in kept} <= await forgotten(desk)
        assert not desk.page().exists()


async def test_all_of_it_goes_however_long_it_is_and_whatever_was_noted_of_it(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        for _ in range(3):
            await desk.converse("s1", tuple(Turn("user", f"计划 {number}") for number in range(700)))
        about: dict[str, dict[str, Any]] = {
            "session_started": {"title": "秘密计划"},
            "tool_call": {"tool": "Shell", "details": {"command": "秘密计划"}},
            "memory_fact": {"content": "秘密计划"},
            "user_feedback": {"content": "秘密计划"},
            "session_meta": {"summary": "秘密计划"},
            "of_another_program": {"text": "秘密计划"},
            "session_ended": {"title": "秘密计划"},
        }
        of_it = {await tell(desk, "s1", kind, **payload) for kind, payload in about.items()}
        await desk.converse("s2")
        await desk.say("标记为敏感对话", session_id="s1")
        said = await events_of(desk, "message")
        of_it |= {event.event_id for event in said if event.session_id == "s1"}
        assert len(of_it) == 2_107
        assert await forgotten(desk) == of_it


async def test_what_was_typed_or_done_while_it_went_on_stays(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        typed = Draft(type="entry_added", payload=REDACTOR.payload({"entry_id": "e1", "text": "手写的一行"}))
        await desk.device.log.record([typed])
        kept = await desk.keep("另一件事")
        notes: list[dict[str, Any]] = [
            {"type": "memory_fact", "payload": {"content": "另一个程序记下的"}},
            {"type": "memory_fact", "payload": {"content": "老电脑的记忆"}, "origin": "imported"},
            {"type": "message", "payload": {"role": "user", "content": "老电脑上说的"}, "origin": "imported"},
        ]
        await desk.device.log.record(desk.device.intake.drafts(notes))
        (said,) = await desk.device.log.record(
            desk.device.intake.drafts([{"type": "message", "payload": {"role": "user", "content": "秘密"}}])
        )
        (process,) = {event.session_id for event in await events_of(desk)}
        named = {"type": "of_another_program", "payload": {"session_id": process, "title": "秘密"}}
        (about,) = await desk.device.log.record(desk.device.intake.drafts([named]))
        await desk.say("标记为敏感对话")
        assert await forgotten(desk) == {said.event.event_id, about.event.event_id}
        assert await desk.topics() == [kept.record.content.topic if kept.record else None]


async def test_a_conversation_that_was_brought_back_from_another_process_goes_as_well(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        session_id = "sess_20260101_00c0ffee"
        await desk.converse(session_id, origin="imported")
        await desk.say("标记为敏感对话", session_id=session_id)
        assert await forgotten(desk) == {event.event_id for event in await events_of(desk, "message")}


async def test_what_corrected_it_goes_as_well(tmp_path: Path) -> None:
    async with open_desk(tmp_path) as desk:
        await desk.converse("s1", (Turn("user", "内部代号 北斗一号"), *TALK))
        await desk.room.deeds.keep(Conversation("s1"))
        stricter = Redactor(extra_patterns=(r"北斗一号",))
        await rescan(desk.device.log, stricter, desk.device.clock, local=True, apply=True)
        await desk.say("标记为敏感对话", session_id="s1")
        corrections = {event.event_id for event in await events_of(desk, "payload_redacted")}
        assert corrections
        assert corrections <= await forgotten(desk)
