"""Erasure by words, source and time: exactly the selected events, with those that repeat them."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sync.document.capture.exchange_events import ExchangeInput, draft_exchange_events
from sync.document.erasure.erasure import request, select_events
from sync.document.erasure.selection import ErasureSelection
from sync.document.read.cold_load import ColdLoad
from sync.document.read.memory_service import MemoryService
from sync.document.read.results import LoadResult
from sync.log.envelope import parse_timestamp_ms
from sync.log.ingest import DraftBuilder
from sync.log.model import Event, Query
from sync.settings.settings import Settings
from tests.integration.document.harness import DocumentHarness, open_document_harness

OLD = "2025-01-02T03:04:05.000Z"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "a") as harness:
        yield harness


async def fact(harness: DocumentHarness, text: str, **more: Any) -> str:
    value = {"type": "memory_fact", "payload": {"content": text}, **more}
    (recorded,) = await harness.log.append([DraftBuilder(harness.redactor).build(value)])
    return recorded.event.event_id


async def selected_ids(harness: DocumentHarness, **choice: Any) -> set[str]:
    return {event.event_id for event in await select_events(harness.log, ErasureSelection(**choice))}


async def forget(harness: DocumentHarness, **choice: Any) -> list[str]:
    found = await select_events(harness.log, ErasureSelection(**choice))
    held = await request(harness.log, DraftBuilder(harness.redactor), [event.event_id for event in found])
    await harness.memory.reconcile()
    return held


async def events(harness: DocumentHarness) -> dict[str, Event]:
    return {event.event_id: event for event in (await harness.log.read(Query())).events}


async def test_every_word_must_match_regardless_of_width_and_case(harness: DocumentHarness) -> None:
    both = await fact(harness, "周末去 ＸＩＡＮＧ山 爬山")
    one = await fact(harness, "周末吃火锅")

    assert await selected_ids(harness, query="周末") == {both, one}
    assert await selected_ids(harness, query="爬山 xiang") == {both}
    assert await selected_ids(harness, query="爬山 火锅") == set()
    assert await selected_ids(harness, query="memory_fact") == set()
    assert ErasureSelection(query="  ").is_empty


async def test_an_event_whose_id_looks_like_a_secret_is_forgotten_with_the_others(harness: DocumentHarness) -> None:
    name = "a4ayc_80_OGda4BO" + "_1o_V0etpOqiLx1JwB5S3beHW0s"
    value = {"type": "memory_fact", "event_id": name, "payload": {"content": "周末去香山"}}
    await harness.log.append([DraftBuilder(harness.redactor).build(value, ids_are_known=True)])
    other = await fact(harness, "周末吃火锅")

    assert set(await forget(harness, query="周末")) == {name, other}

    left = await events(harness)
    assert (left[name].payload, left[other].payload) == ({}, {})


async def test_ids_are_not_searched_for_words(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("一")
    harness.add_line_under("# 用户偏好", "- 手写的")
    await harness.memory.reconcile()
    harness.add_line_under("- 手写的", "- 后面的")
    await harness.memory.reconcile()

    assert await selected_ids(harness, query="ent") == set()
    assert len(await selected_ids(harness, query="手写")) == 1


async def test_a_source_is_a_device_a_session_a_project_an_origin_or_a_program(harness: DocumentHarness) -> None:
    here = await fact(harness, "一", session_id="sess_a", project_path="/家/项目")
    there = await fact(harness, "二", session_id="sess_b", origin="imported")
    program = await fact(harness, "三", payload={"content": "三", "source": "claude"})

    project = (await events(harness))[here].project_id
    for source, found in (
        ("sess_a", {here}),
        ("/家/项目", {here}),
        (project, {here}),
        ("imported", {there}),
        ("claude", {program}),
        ("device-a", {here, there, program}),
        ("sess", set()),
    ):
        assert await selected_ids(harness, source=source) == found


async def test_where_an_event_was_recorded_is_no_text_of_it(harness: DocumentHarness) -> None:
    await harness.record_exchange("去哪里吃火锅")
    for word in ("update", "program", "火锅"):
        assert bool(await selected_ids(harness, query=word)) == (word == "火锅"), word


async def test_a_period_includes_its_start_and_excludes_its_end(harness: DocumentHarness) -> None:
    old, new = await fact(harness, "一", ts=OLD), await fact(harness, "二")

    assert await selected_ids(harness, since_ms=parse_timestamp_ms(OLD)) == {old, new}
    assert await selected_ids(harness, until_ms=parse_timestamp_ms(OLD)) == set()
    assert await selected_ids(harness, since_ms=0, until_ms=parse_timestamp_ms(OLD) + 1) == {old}
    assert await selected_ids(harness, query="二", until_ms=parse_timestamp_ms(OLD) + 1) == set()


async def test_selected_events_leave_the_document_and_removed_lines_stay_removed(
    harness: DocumentHarness,
) -> None:
    harness.clock.advance(days=-3)
    await harness.record_and_reconcile("拿掉的秘密", "别的秘密", "留下的")
    harness.text = "".join(line for line in harness.text.splitlines(keepends=True) if "拿掉的秘密" not in line)
    await harness.memory.reconcile()

    held = await forget(harness, query="秘密")

    assert len(held) == 2
    assert "秘密" not in harness.text
    assert "留下的" in harness.text
    assert "entry_removed" in {event.type for event in (await events(harness)).values() if event.payload}
    assert await selected_ids(harness, query="秘密") == set()
    assert await selected_ids(harness, source="device-a") == {
        event.event_id for event in (await events(harness)).values() if event.payload.get("question") == "留下的"
    }


@pytest.mark.parametrize("key", [None, "their-key"])
@pytest.mark.parametrize("kind", ["message", "memory_fact"])
async def test_the_stored_messages_of_an_exchange_are_erased_with_it_and_no_others(
    harness: DocumentHarness, key: str | None, kind: str
) -> None:
    exchange = ExchangeInput("问" * 13_000, "答案", "sess_a", idempotency_key=key)
    drafts = draft_exchange_events(exchange, harness.redactor, device_id="device-a", store_messages=True)
    recorded = await harness.log.append(drafts)
    said = {"content": "四", **({"part": 1} if kind == "memory_fact" else {"role": "user"})}
    theirs = await fact(harness, "四", type=kind, session_id="sess_a", payload=said)
    next_one = await harness.log.append(
        draft_exchange_events(
            ExchangeInput("下一个", "好", "sess_a"), harness.redactor, device_id="device-a", store_messages=True
        )
    )
    assert len(recorded) == 4

    held = await request(harness.log, DraftBuilder(harness.redactor), [recorded[0].event.event_id])
    await harness.memory.reconcile()

    assert set(held) == {item.event.event_id for item in recorded}
    left = {event_id for event_id, event in (await events(harness)).items() if event.payload}
    assert {theirs, *(item.event.event_id for item in next_one)} <= left
    assert left.isdisjoint(held)


async def test_many_events_are_erased_by_several_requests(harness: DocumentHarness) -> None:
    drafts = [
        DraftBuilder(harness.redactor).build({"type": "memory_fact", "payload": {"content": f"第 {n} 条"}})
        for n in range(900)
    ]
    await harness.log.append(drafts)

    assert len(await forget(harness, query="第")) == 900

    found = (await events(harness)).values()
    assert [len(event.payload["event_ids"]) for event in found if event.payload] == [400, 400, 100]


async def test_events_archived_on_this_device_can_still_be_erased_everywhere(harness: DocumentHarness) -> None:
    told = await fact(harness, "旧事", session_id="sess_a")
    await harness.log.append([DraftBuilder(harness.redactor).build_expiry([told])])
    await harness.memory.reconcile()
    assert (await events(harness))[told].payload == {}

    assert await forget(harness, source="sess_a") == [told]
    assert await forget(harness, source="sess_a") == []


async def test_changes_that_repeat_a_daily_record_are_erased_with_it(harness: DocumentHarness) -> None:
    says = {"record_id": "rec_a", "topic": "秘密", "facts": [], "code": [], "tags": []}
    told = await fact(harness, "", type="session_recorded", payload=says)
    marked = await fact(harness, "", type="session_marked", payload={**says, "mark": "important", "on": True})
    other = {**says, "record_id": "rec_b", "mark": "important", "on": True}
    await fact(harness, "", type="session_marked", payload=other)

    assert await selected_ids(harness, source="device-a") == {told}, "a mark alone says nothing"
    assert await request(harness.log, DraftBuilder(harness.redactor), [told]) == [told, marked]
    await harness.memory.reconcile()
    assert len(await forget(harness, query="秘密")) == 1, "of the other record's mark the words go too"
    assert "秘密" not in str((await events(harness)).values())


async def test_a_requested_erasure_is_shown_nowhere_even_before_it_is_applied(
    harness: DocumentHarness, tmp_path: Path
) -> None:
    """Also if it cannot be applied yet: a busy database, a full disk, a killed process."""
    async with open_document_harness(tmp_path / "b", device="device-b") as other:
        secrets = [
            await harness.record_exchange(f"秘密{number}") for number in range(12)
        ]  # more than are applied in one transaction
        await harness.record_and_reconcile("早饭吃什么")
        await other.pull_from(harness)
        for at in (harness, other):
            for secret in secrets:
                assert await request(at.log, DraftBuilder(at.redactor), [secret])

        shown = (await loaded_content(harness)).content
        digest = (await loaded_content(other)).content
        assert "早饭吃什么" in shown
        assert "早饭吃什么" in digest
        assert "秘密" not in shown + digest
        leaving = await harness.memory.cloud_history.outgoing(known_sha256="")
        assert leaving is not None
        assert leaving.snapshot is not None
        assert "秘密" not in leaving.snapshot.document.text
        assert cold_loaded_content(harness) is None, "the program that carries it out answers"
        await harness.memory.reconcile()
        carried_out = (await loaded_content(harness)).content
        assert carried_out.splitlines()[:-1] == shown.splitlines()[:-1], "but for the footer"
        assert cold_loaded_content(harness) == carried_out


async def loaded_content(harness: DocumentHarness) -> LoadResult:
    conversation = MemoryService(
        harness.log, harness.memory, None, harness.redactor, clock=harness.clock, settings=Settings()
    )
    return await conversation.load(wait_ms=0)


def cold_loaded_content(harness: DocumentHarness) -> str | None:
    look = ColdLoad(
        harness.database.path, harness.file, harness.log.device_id, includes_other_devices=True, has_cloud=False
    )
    found = look.load(scope="user", max_chars=None)
    return None if found is None else found.content
