"""The log read again under stricter rules: what they find goes everywhere, and nothing else does."""

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing
from pathlib import Path

import pytest
from sqlalchemy import Connection

from sync.document import rescan
from sync.document.forgetting import ask
from sync.document.rescan import Rescan
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.intake import Intake
from sync.log.model import CLOUD, Event, Query
from sync.redaction import Redactor
from tests.integration.document_desk import Desk, on_a_desk

CANARY = "蓝猫7391"
STRICTER = Redactor(extra_patterns=["蓝猫[0-9]+"])


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with on_a_desk(tmp_path / "a") as desk:
        yield desk


async def read_again(desk: Desk, *, apply: bool = True) -> Rescan:
    """The rules of today come with a new start."""
    desk.redactor = STRICTER
    desk.restart()
    found = await rescan.rescan(desk.log, STRICTER, desk.clock, local=True, apply=apply)
    await desk.memory.settle()
    return found


async def events(desk: Desk) -> tuple[Event, ...]:
    return (await desk.log.read(Query())).events


async def note(desk: Desk, kind: str, text: str) -> str:
    draft = Intake(desk.redactor).draft({"type": kind, "payload": {"content": text, "n": 1}})
    return (await desk.log.record([draft]))[0].event.event_id


def bytes_of(desk: Desk) -> bytes:
    """All that lies on the disk, with what is compressed in it unpacked."""
    import zlib  # noqa: PLC0415 - only here

    found = b"".join(path.read_bytes() for path in sorted(desk.file.parent.iterdir()) if path.is_file())
    with closing(sqlite3.connect(desk.database.path)) as connection:
        versions = [zlib.decompress(row[0]) for row in connection.execute("select bytes from written")]
    return found + b"".join(versions)


async def test_a_dry_run_counts_and_changes_nothing(desk: Desk) -> None:
    await desk.said(f"我的暗号是{CANARY}")
    before, text = await events(desk), desk.text

    found = await read_again(desk, apply=False)

    assert (found.events, found.counts, found.applied) == (1, {"自定义": 1}, False)
    assert await events(desk) == before
    assert desk.text == text
    assert await rescan.is_behind(desk.log, STRICTER)


async def test_captured_words_go_from_log_file_versions_and_freed_pages(desk: Desk) -> None:
    await desk.said(f"记住{CANARY}这句话", "别的事")
    noted = await note(desk, "memory_fact", f"事实 {CANARY}")
    lesson = await note(desk, "lesson_learned", f"教训 {CANARY}")
    before = {event.event_id: event for event in await events(desk)}
    assert CANARY.encode() in bytes_of(desk)

    found = await read_again(desk)
    await desk.database.purge(whole=True)

    assert set(found.corrected) == {event_id for event_id in before if CANARY in str(before[event_id].payload)}
    assert CANARY.encode() not in bytes_of(desk)
    assert "- 用户问：记住[自定义]这句话\n" in desk.text
    assert "- 用户问：别的事\n" in desk.text
    after = {event.event_id: event for event in await events(desk)}
    assert after[noted].payload == {"content": "事实 [自定义]", "n": 1}
    assert after[lesson].payload == {"content": "教训 [自定义]", "n": 1}
    for event_id, event in before.items():
        for kept in ("ts", "type", "local_date", "origin", "hlc", "replica_seq", "session_id", "position"):
            assert getattr(after[event_id], kept) == getattr(event, kept)
    assert not await rescan.is_behind(desk.log, STRICTER)
    assert (await rescan.rescan(desk.log, STRICTER, desk.clock, local=True, apply=False)).corrected == ()


async def test_what_was_typed_here_stays_in_the_file_and_leaves_the_log(desk: Desk) -> None:
    await desk.said("你好")
    desk.type_under("### 工作习惯", f"- 猫叫{CANARY}")
    await desk.memory.settle()

    await read_again(desk)

    assert f"- 猫叫{CANARY}\n" in desk.text
    assert CANARY not in str(await events(desk))


async def test_a_count_and_a_line_edited_by_hand_are_kept(desk: Desk) -> None:
    await desk.said(f"甲{CANARY}", f"乙{CANARY}")
    desk.replace(f"甲{CANARY}", f"甲{CANARY}（×2）")
    desk.replace(f"乙{CANARY}", f"乙乙{CANARY}")
    await desk.memory.settle()

    await read_again(desk)

    assert "- 用户问：甲[自定义]（×2）\n" in desk.text
    assert f"- 用户问：乙乙{CANARY}\n" in desk.text  # his own words by now


async def test_the_server_is_asked_to_blank_what_is_sent_the_correction_first(desk: Desk) -> None:
    await desk.said(f"记住{CANARY}")

    await read_again(desk)

    def waiting(connection: Connection) -> list[Event]:
        return log_store.at_positions(connection, outbox_store.pending_positions(connection, CLOUD, 100))

    told = await desk.database.read(waiting)
    assert [event.type for event in told] == ["exchange_recorded", "payload_redacted", "payload_forgotten"]
    assert told[1].payload["event_id"] == told[0].event_id
    assert told[2].payload == {"event_ids": [told[0].event_id]}
    assert CANARY not in json.dumps([dict(event.payload) for event in told], ensure_ascii=False)


async def test_an_event_whose_id_looks_like_a_secret_is_corrected_under_its_id_once(desk: Desk) -> None:
    name = "a4ayc_80_OGda4BO" + "_1o_V0etpOqiLx1JwB5S3beHW0s"
    value = {"type": "memory_fact", "event_id": name, "payload": {"content": f"事实 {CANARY}"}}
    await desk.log.record([Intake(desk.redactor).draft(value, known=True)])

    found = await read_again(desk)

    assert found.corrected == (name,)
    said = {event.event_id: event for event in await events(desk)}
    assert said[name].payload == {"content": "事实 [自定义]"}
    told = [event.payload for event in said.values() if event.type != "memory_fact"]
    assert told == [{"event_id": name, "payload": {"content": "事实 [自定义]"}}, {"event_ids": [name]}]
    assert (await read_again(desk)).corrected == ()


async def test_stricter_rules_twice_correct_the_correction(desk: Desk) -> None:
    await desk.said(f"记住{CANARY}和红狗22")
    await read_again(desk)
    strictest = Redactor(extra_patterns=["蓝猫[0-9]+", "红狗[0-9]+"])
    await rescan.rescan(desk.log, strictest, desk.clock, local=True, apply=True)
    await desk.memory.settle()

    assert "- 用户问：记住[自定义]和[自定义]\n" in desk.text
    assert "红狗" not in str(await events(desk))


async def test_what_was_corrected_can_still_be_forgotten(desk: Desk) -> None:
    event_id = await desk.say(f"记住{CANARY}和别的")
    await desk.memory.settle()
    await read_again(desk)

    await ask(desk.log, Intake(STRICTER), [event_id])
    await desk.memory.settle()

    assert "和别的" not in desk.text
    assert "和别的" not in str(await events(desk))


async def test_what_is_to_be_forgotten_is_not_corrected_but_goes(desk: Desk) -> None:
    event_id = await desk.say(f"记住{CANARY}和别的")
    await desk.memory.settle()
    await ask(desk.log, Intake(STRICTER), [event_id])

    await read_again(desk)

    assert "和别的" not in desk.text
    assert "和别的" not in str(await events(desk))


async def test_devices_that_share_show_the_correction_and_merge_later_edits(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        desks = [
            await stack.enter_async_context(on_a_desk(tmp_path / name, device=f"device-{name}", sharing="user"))
            for name in "ab"
        ]
        one, two = desks
        await one.said(f"记住{CANARY}")
        one.type_under("### 工作习惯", f"- 猫叫{CANARY}，早起")
        await one.memory.settle()
        one.replace("早起", "晚起")
        await one.memory.settle()
        await two.hear(one)
        assert CANARY in two.text

        two.redactor = STRICTER
        two.restart()
        await read_again(one)
        await two.hear(one)
        await one.hear(two)

        assert CANARY not in two.text
        assert "- 猫叫[自定义]，晚起\n" in two.text
        assert STRICTER.clean(one.text) == two.text
        assert two.text.count("猫叫") == 1
        two.replace("- 猫叫[自定义]，晚起\n", "")
        await two.memory.settle()
        await one.hear(two)
        assert "猫叫" not in one.text


async def test_a_line_that_stands_where_edits_met_is_corrected_on_the_device_that_did_not_type_it(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        one, two, other = [
            await stack.enter_async_context(on_a_desk(tmp_path / name, device=f"device-{name}", sharing="user"))
            for name in ("a", "b", "other")
        ]
        await one.said("早上起来先喝一杯红茶，然后去看书")
        await two.hear(one)
        one.replace("红茶", f"{CANARY}绿茶")
        two.replace("红茶", f"{CANARY}白茶")
        await one.memory.settle()
        await two.memory.settle()
        await one.hear(two)
        await other.hear(one)
        assert other.text.count(CANARY) == 2

        other.redactor = STRICTER
        other.restart()
        await read_again(one)
        await other.hear(one)
        await other.database.purge(whole=True)

        for tea in ("绿茶", "白茶"):
            assert f"- 用户问：早上起来先喝一杯[自定义]{tea}，然后去看书\n" in other.text
        assert CANARY.encode() not in bytes_of(other)


async def test_a_new_device_that_gets_the_blank_event_and_the_correction_shows_it(tmp_path: Path) -> None:
    async with on_a_desk(tmp_path / "a") as one, on_a_desk(tmp_path / "b") as again:
        await one.said(f"记住{CANARY}这句话")
        await read_again(one)
        page = await events(one)

        def taking(connection: Connection) -> None:
            for event in page:
                log_store.add(connection, event)
            log_store.blank(connection, [page[0].event_id])

        await again.database.write(taking)
        again.redactor = STRICTER
        again.restart()
        await again.memory.settle()

        assert "- 用户问：记住[自定义]这句话\n" in again.text
