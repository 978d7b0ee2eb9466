"""A conversation that is sensitive: nothing of it is kept, and nothing else goes with it."""

from pathlib import Path
from typing import Any

from sync.daily.conversation.extractive_summary import SummaryTurn
from sync.daily.record_service import RecordRequest
from sync.document.versions.rescan import rescan
from sync.log.model import Event, EventDraft, Query
from sync.redaction import Redactor
from tests.integration.daily.harness import SAMPLE_TURNS, DailyHarness, open_daily_harness
from tests.support import REDACTOR


async def events_of(harness: DailyHarness, *types: str) -> list[Event]:
    found: list[Event] = []
    while page := (await harness.device.log.read(Query(types=types, after=found[-1].position if found else 0))).events:
        found += page
    return found


async def forgotten(harness: DailyHarness) -> set[str]:
    wishes = await events_of(harness, "payload_forgotten")
    return {name for event in wishes for name in event.payload["event_ids"]}


async def tell(harness: DailyHarness, session_id: str, kind: str, **payload: Any) -> str:
    given = {"type": kind, "session_id": session_id, "payload": payload}
    (recorded,) = await harness.device.log.append(harness.device.intake.build_batch([given]))
    return recorded.event.event_id


async def test_a_sensitive_conversation_is_not_kept_and_what_was_is_forgotten(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.append_messages("s1")
        done = await harness.service.record_service.record_conversation(RecordRequest("s1"))
        assert done.record is not None
        await harness.service.record_service.forget(done.record.record_id)
        await harness.service.reconcile()
        assert await harness.topics() == []
        assert (
            await harness.service.record_service.record_conversation(RecordRequest("s1", SAMPLE_TURNS))
        ).reason == "skip"
        kept = await events_of(harness, "message", "session_recorded")
        assert {event.event_id for event in kept} <= await forgotten(harness)
        assert not harness.page().exists()


async def test_all_of_it_goes_however_long_it_is_and_whatever_was_noted_of_it(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        for _ in range(3):
            await harness.append_messages("s1", tuple(SummaryTurn("user", f"计划 {number}") for number in range(700)))
        about: dict[str, dict[str, Any]] = {
            "session_started": {"title": "秘密计划"},
            "tool_call": {"tool": "Shell", "details": {"command": "秘密计划"}},
            "memory_fact": {"content": "秘密计划"},
            "user_feedback": {"content": "秘密计划"},
            "session_meta": {"summary": "秘密计划"},
            "of_another_program": {"text": "秘密计划", "count": 3},
            "session_ended": {"title": "秘密计划"},
        }
        of_it = {await tell(harness, "s1", kind, **payload) for kind, payload in about.items()}
        await harness.append_messages("s2")
        await harness.send_command("标记为敏感对话", session_id="s1")
        said = await events_of(harness, "message")
        of_it |= {event.event_id for event in said if event.session_id == "s1"}
        assert len(of_it) == 2_107
        assert await forgotten(harness) == of_it


async def test_what_was_typed_or_done_while_it_went_on_stays(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        typed = EventDraft(type="entry_added", payload=REDACTOR.clean_payload({"entry_id": "e1", "text": "手写的一行"}))
        await harness.device.log.append([typed])
        kept = await harness.record("另一件事")
        notes: list[dict[str, Any]] = [
            {"type": "memory_fact", "payload": {"content": "另一个程序记下的"}},
            {"type": "memory_fact", "payload": {"content": "老电脑的记忆"}, "origin": "imported"},
            {"type": "message", "payload": {"role": "user", "content": "老电脑上说的"}, "origin": "imported"},
        ]
        await harness.device.log.append([harness.device.intake.build(note) for note in notes])
        (said,) = await harness.device.log.append(
            harness.device.intake.build_batch([{"type": "message", "payload": {"role": "user", "content": "秘密"}}])
        )
        (process,) = {event.session_id for event in await events_of(harness)}
        named = {"type": "of_another_program", "payload": {"session_id": process, "title": "秘密"}}
        (about,) = await harness.device.log.append(harness.device.intake.build_batch([named]))
        await harness.send_command("标记为敏感对话")
        assert await forgotten(harness) == {said.event.event_id, about.event.event_id}
        assert await harness.topics() == [kept.record.content.topic if kept.record else None]


async def test_a_conversation_that_was_brought_back_from_another_process_goes_as_well(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        session_id = "sess_20260101_00c0ffee"
        await harness.append_messages(session_id, origin="imported")
        await harness.send_command("标记为敏感对话", session_id=session_id)
        assert await forgotten(harness) == {event.event_id for event in await events_of(harness, "message")}


async def test_what_corrected_it_goes_as_well(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.append_messages("s1", (SummaryTurn("user", "内部代号 北斗一号"), *SAMPLE_TURNS))
        await harness.service.record_service.record_conversation(RecordRequest("s1"))
        stricter = Redactor(extra_patterns=(r"北斗一号",))
        await rescan(harness.device.log, stricter, harness.device.clock, local=True, apply=True)
        await harness.send_command("标记为敏感对话", session_id="s1")
        corrections = {event.event_id for event in await events_of(harness, "payload_redacted")}
        assert corrections
        assert corrections <= await forgotten(harness)
