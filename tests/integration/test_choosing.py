"""Forgetting by words, source and time: exactly what is meant, with all that says the same."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sync.document.answers import Loaded
from sync.document.capture import Exchange, exchange_drafts
from sync.document.choosing import Choice
from sync.document.conversation import Conversation
from sync.document.forgetting import ask, chosen
from sync.document.glimpse import Glimpse
from sync.log.envelope import instant_ms
from sync.log.intake import Intake
from sync.log.model import Event, Query
from sync.settings import Settings
from tests.integration.document_desk import Desk, on_a_desk

OLD = "2025-01-02T03:04:05.000Z"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with on_a_desk(tmp_path / "a") as desk:
        yield desk


async def fact(desk: Desk, text: str, **more: Any) -> str:
    value = {"type": "memory_fact", "payload": {"content": text}, **more}
    (recorded,) = await desk.log.record([Intake(desk.redactor).draft(value)])
    return recorded.event.event_id


async def meant(desk: Desk, **choice: Any) -> set[str]:
    return {event.event_id for event in await chosen(desk.log, Choice(**choice))}


async def forget(desk: Desk, **choice: Any) -> list[str]:
    found = await chosen(desk.log, Choice(**choice))
    held = await ask(desk.log, Intake(desk.redactor), [event.event_id for event in found])
    await desk.memory.settle()
    return held


async def events(desk: Desk) -> dict[str, Event]:
    return {event.event_id: event for event in (await desk.log.read(Query())).events}


async def test_all_words_have_to_be_there_however_wide_or_large_they_are_written(desk: Desk) -> None:
    both = await fact(desk, "周末去 ＸＩＡＮＧ山 爬山")
    one = await fact(desk, "周末吃火锅")

    assert await meant(desk, query="周末") == {both, one}
    assert await meant(desk, query="爬山 xiang") == {both}
    assert await meant(desk, query="爬山 火锅") == set()
    assert await meant(desk, query="memory_fact") == set()
    assert Choice(query="  ").is_empty


async def test_an_event_whose_id_looks_like_a_secret_is_forgotten_with_the_others(desk: Desk) -> None:
    name = "a4ayc_80_OGda4BO" + "_1o_V0etpOqiLx1JwB5S3beHW0s"
    value = {"type": "memory_fact", "event_id": name, "payload": {"content": "周末去香山"}}
    await desk.log.record([Intake(desk.redactor).draft(value, known=True)])
    other = await fact(desk, "周末吃火锅")

    assert set(await forget(desk, query="周末")) == {name, other}

    left = await events(desk)
    assert (left[name].payload, left[other].payload) == ({}, {})


async def test_ids_are_no_words(desk: Desk) -> None:
    await desk.said("一")
    desk.type_under("# 用户偏好", "- 手写的")
    await desk.memory.settle()
    desk.type_under("- 手写的", "- 后面的")
    await desk.memory.settle()

    assert await meant(desk, query="ent") == set()
    assert len(await meant(desk, query="手写")) == 1


async def test_a_source_is_a_device_a_session_a_project_an_origin_or_a_program(desk: Desk) -> None:
    here = await fact(desk, "一", session_id="sess_a", project_path="/家/项目")
    there = await fact(desk, "二", session_id="sess_b", origin="imported")
    program = await fact(desk, "三", payload={"content": "三", "source": "claude"})

    project = (await events(desk))[here].project_id
    for source, found in (
        ("sess_a", {here}),
        ("/家/项目", {here}),
        (project, {here}),
        ("imported", {there}),
        ("claude", {program}),
        ("device-a", {here, there, program}),
        ("sess", set()),
    ):
        assert await meant(desk, source=source) == found


async def test_a_time_has_a_beginning_and_an_end_and_the_end_is_not_in_it(desk: Desk) -> None:
    old, new = await fact(desk, "一", ts=OLD), await fact(desk, "二")

    assert await meant(desk, since_ms=instant_ms(OLD)) == {old, new}
    assert await meant(desk, until_ms=instant_ms(OLD)) == set()
    assert await meant(desk, since_ms=0, until_ms=instant_ms(OLD) + 1) == {old}
    assert await meant(desk, query="二", until_ms=instant_ms(OLD) + 1) == set()


async def test_what_is_meant_leaves_the_document_and_nothing_that_was_taken_away_comes_back(desk: Desk) -> None:
    desk.clock.move(days=-3)
    await desk.said("拿掉的秘密", "别的秘密", "留下的")
    desk.text = "".join(line for line in desk.text.splitlines(keepends=True) if "拿掉的秘密" not in line)
    await desk.memory.settle()

    held = await forget(desk, query="秘密")

    assert len(held) == 2
    assert "秘密" not in desk.text
    assert "留下的" in desk.text
    assert "entry_removed" in {event.type for event in (await events(desk)).values() if event.payload}
    assert await meant(desk, query="秘密") == set()
    assert await meant(desk, source="device-a") == {
        event.event_id for event in (await events(desk)).values() if event.payload.get("question") == "留下的"
    }


@pytest.mark.parametrize("key", [None, "their-key"])
@pytest.mark.parametrize("kind", ["message", "memory_fact"])
async def test_the_stored_messages_of_an_exchange_go_with_it_and_no_others(
    desk: Desk, key: str | None, kind: str
) -> None:
    exchange = Exchange("问" * 13_000, "答案", "sess_a", idempotency_key=key)
    drafts = exchange_drafts(exchange, desk.redactor, device_id="device-a", store_messages=True)
    recorded = await desk.log.record(drafts)
    said = {"content": "四", **({"part": 1} if kind == "memory_fact" else {"role": "user"})}
    theirs = await fact(desk, "四", type=kind, session_id="sess_a", payload=said)
    next_one = await desk.log.record(
        exchange_drafts(Exchange("下一个", "好", "sess_a"), desk.redactor, device_id="device-a", store_messages=True)
    )
    assert len(recorded) == 4

    held = await ask(desk.log, Intake(desk.redactor), [recorded[0].event.event_id])
    await desk.memory.settle()

    assert set(held) == {item.event.event_id for item in recorded}
    left = {event_id for event_id, event in (await events(desk)).items() if event.payload}
    assert {theirs, *(item.event.event_id for item in next_one)} <= left
    assert left.isdisjoint(held)


async def test_more_events_than_one_wish_can_name_go_in_several(desk: Desk) -> None:
    drafts = [
        Intake(desk.redactor).draft({"type": "memory_fact", "payload": {"content": f"第 {n} 条"}}) for n in range(900)
    ]
    await desk.log.record(drafts)

    assert len(await forget(desk, query="第")) == 900

    found = (await events(desk)).values()
    assert [len(event.payload["event_ids"]) for event in found if event.payload] == [400, 400, 100]


async def test_what_retention_took_from_this_device_can_still_be_forgotten_everywhere(desk: Desk) -> None:
    told = await fact(desk, "旧事", session_id="sess_a")
    await desk.log.record([Intake(desk.redactor).expired([told])])
    await desk.memory.settle()
    assert (await events(desk))[told].payload == {}

    assert await forget(desk, source="sess_a") == [told]
    assert await forget(desk, source="sess_a") == []


async def test_what_repeats_a_daily_record_goes_with_it(desk: Desk) -> None:
    says = {"record_id": "rec_a", "topic": "秘密", "facts": [], "code": [], "tags": []}
    told = await fact(desk, "", type="session_recorded", payload=says)
    marked = await fact(desk, "", type="session_marked", payload={**says, "mark": "important", "on": True})
    other = {**says, "record_id": "rec_b", "mark": "important", "on": True}
    await fact(desk, "", type="session_marked", payload=other)

    assert await meant(desk, source="device-a") == {told}, "a mark alone says nothing"
    assert await ask(desk.log, Intake(desk.redactor), [told]) == [told, marked]
    await desk.memory.settle()
    assert len(await forget(desk, query="秘密")) == 1, "of the other record's mark the words go too"
    assert "秘密" not in str((await events(desk)).values())


async def test_what_is_to_be_forgotten_is_shown_nowhere_from_that_moment_on(desk: Desk, tmp_path: Path) -> None:
    """Also where it cannot be carried out yet: a busy database, a full disk, a kill in between."""
    async with on_a_desk(tmp_path / "b", device="device-b") as other:
        secrets = [await desk.say(f"秘密{number}") for number in range(12)]  # more than are carried out at a time
        await desk.said("早饭吃什么")
        await other.hear(desk)
        for at in (desk, other):
            for secret in secrets:
                assert await ask(at.log, Intake(at.redactor), [secret])

        shown = (await told(desk)).content
        digest = (await told(other)).content
        assert "早饭吃什么" in shown
        assert "早饭吃什么" in digest
        assert "秘密" not in shown + digest
        leaving = await desk.memory.cloud.leaving(known="")
        assert leaving is not None
        assert leaving.snapshot is not None
        assert "秘密" not in leaving.snapshot.document.text
        assert glimpsed(desk) is None, "the program that carries it out answers"
        await desk.memory.settle()
        carried_out = (await told(desk)).content
        assert carried_out.splitlines()[:-1] == shown.splitlines()[:-1], "but for the footer"
        assert glimpsed(desk) == carried_out


async def told(desk: Desk) -> Loaded:
    conversation = Conversation(desk.log, desk.memory, None, desk.redactor, clock=desk.clock, settings=Settings())
    return await conversation.load(wait_ms=0)


def glimpsed(desk: Desk) -> str | None:
    look = Glimpse(desk.database.path, desk.file, desk.log.device_id, other_devices=True, cloud=False)
    found = look.load(scope="user", max_chars=None)
    return None if found is None else found.content
