"""What retention has archived is read again under stricter rules too: corrected there, and everywhere else with it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from sqlalchemy import Connection

from sync.archive.container import Reading
from sync.document import rescan
from sync.document.corrections import hashes
from sync.document.forgetting import ask
from sync.document.rescan import Rescan
from sync.errors import StorageError
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.intake import Intake
from sync.log.model import CLOUD, Event, Query
from sync.redaction import Redactor
from sync.retention.room import Household, Retention
from tests.integration.document_desk import Desk, on_a_desk

OLD = "2025-01-02T03:04:05.000Z"
CANARY = "蓝猫7391"
STRICTER = Redactor(extra_patterns=["蓝猫[0-9]+"])
STRICTEST = Redactor(extra_patterns=["蓝猫[0-9]+", "红狗[0-9]+"])


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with on_a_desk(tmp_path / "a") as desk:
        yield desk


def room_of(desk: Desk) -> Retention:
    folder = desk.file.parent
    household = Household(folder / "archive", folder / "archives.lock", 30, -1, shared=False, cloud=False)
    return Retention(desk.log, Intake(desk.redactor), household, clock=desk.clock)


async def archive(desk: Desk) -> Path:
    """What is old goes into an archive, and from the log."""
    room = room_of(desk)
    done = await room.apply(room.rules(None, None), lambda _done, _total: None)
    await desk.memory.settle()
    assert done.archive is not None
    return Path(done.archive)


async def fact(desk: Desk, text: str, kind: str = "memory_fact") -> str:
    draft = Intake(desk.redactor).draft({"type": kind, "payload": {"content": text}, "ts": OLD, "more": 1})
    return (await desk.log.record([draft]))[0].event.event_id


async def read_again(
    desk: Desk, rules: Redactor = STRICTER, *, apply: bool = True, local: bool = True, archives: Any = None
) -> Rescan:
    """The rules of today come with a new start."""
    desk.redactor = rules
    desk.restart()
    archives = archives or room_of(desk)
    found = await rescan.rescan(desk.log, rules, desk.clock, local=local, apply=apply, archives=archives)
    await desk.memory.settle()
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    parts = Reading.read_through(path, None).parts()
    return [json.loads(line) for name, data in parts if name.startswith("events/") for line in data.splitlines()]


def said(path: Path) -> dict[str, str]:
    """What each event in an archive says, by its id."""
    return {line["event_id"]: json.dumps(line["payload"], ensure_ascii=False) for line in lines(path)}


async def events(desk: Desk) -> dict[str, Event]:
    return {event.event_id: event for event in (await desk.log.read(Query())).events}


async def waiting(desk: Desk) -> list[Event]:
    """What is still to be sent to the cloud."""

    def looking(connection: Connection) -> list[Event]:
        return log_store.at_positions(connection, outbox_store.pending_positions(connection, CLOUD, 100))

    return await desk.database.read(looking)


class Killed:
    """The archives of a program that is killed when it has recorded what it wishes."""

    def __init__(self, desk: Desk) -> None:
        self._room = room_of(desk)

    async def visit(self, take: Callable[[Event], None]) -> tuple[str, ...]:
        return await self._room.visit(take)

    async def withdraw(self, corrected: Mapping[str, Mapping[str, Any]]) -> int:
        raise asyncio.CancelledError(str(len(corrected)))


async def test_a_dry_run_counts_what_is_archived_and_changes_nothing(desk: Desk) -> None:
    await desk.said("你好")
    told = await fact(desk, f"暗号是{CANARY}")
    lesson = await fact(desk, f"教训{CANARY}", kind="lesson_learned")
    path = await archive(desk)
    before, data = await events(desk), path.read_bytes()

    found = await read_again(desk, apply=False)

    assert (found.corrected, found.counts, found.applied, found.unread) == ((told, lesson), {"自定义": 2}, False, ())
    assert (await events(desk), path.read_bytes()) == (before, data)
    assert await rescan.is_behind(desk.log, STRICTER)


async def test_what_is_archived_is_corrected_there_and_asked_of_everybody(desk: Desk) -> None:
    told, other = await fact(desk, f"暗号是{CANARY}，别忘了"), await fact(desk, "去年的口味")
    path = await archive(desk)
    former = {line["event_id"]: line for line in lines(path)}

    found = await read_again(desk)

    assert found.corrected == (told,)
    after = {line["event_id"]: line for line in lines(path)}
    assert after == {**former, told: {**former[told], "payload": {"content": "暗号是[自定义]，别忘了"}}}
    assert list(after) == [told, other]
    fact_sent, _, correction, wish = await waiting(desk)
    assert fact_sent.event_id == told
    assert correction.payload == {"event_id": told, "payload": {"content": "暗号是[自定义]，别忘了"}}
    assert wish.payload == {"event_ids": [told]}
    assert CANARY not in str(await events(desk))
    data = path.read_bytes()
    assert (await room_of(desk).withdraw(), path.read_bytes()) == (0, data)
    assert (await read_again(desk)).corrected == ()
    assert (len(await waiting(desk)), path.read_bytes()) == (4, data)


async def test_what_never_leaves_this_device_changes_in_the_archive_alone(desk: Desk) -> None:
    told = await fact(desk, f"教训{CANARY}", kind="lesson_learned")
    path = await archive(desk)
    assert (await read_again(desk, local=False)).corrected == ()
    assert CANARY in said(path)[told]
    before = await events(desk)

    assert (await read_again(desk)).corrected == (told,)

    assert said(path) == {told: '{"content": "教训[自定义]"}'}
    assert (await events(desk), await waiting(desk)) == (before, [])


async def test_killed_before_the_archives_changed_they_do_at_the_next_start_or_are_found_again(desk: Desk) -> None:
    await desk.said("你好")
    told = await fact(desk, f"暗号是{CANARY}")
    lesson = await fact(desk, f"教训{CANARY}", kind="lesson_learned")
    path = await archive(desk)
    with pytest.raises(asyncio.CancelledError):
        await read_again(desk, archives=Killed(desk))
    assert CANARY in said(path)[told]
    assert (await read_again(desk, apply=False)).corrected == (lesson,), "the other is as good as corrected"

    assert await room_of(desk).withdraw() == 1
    assert said(path)[told] == '{"content": "暗号是[自定义]"}'
    assert await rescan.is_behind(desk.log, STRICTER)
    assert (await read_again(desk)).corrected == (lesson,)
    assert said(path)[lesson] == '{"content": "教训[自定义]"}'
    assert not await rescan.is_behind(desk.log, STRICTER)


async def test_killed_at_the_swap_the_old_archive_stands_whole(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    told = await fact(desk, f"暗号是{CANARY}")
    path = await archive(desk)

    def dying(source: Path, target: Path) -> None:
        assert CANARY not in str(lines(Path(source))), "what is put in its place"
        raise KeyboardInterrupt(target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            await read_again(desk)
    assert CANARY in said(path)[told]

    desk.restart()
    assert await room_of(desk).withdraw() == 1
    assert said(path) == {told: '{"content": "暗号是[自定义]"}'}
    assert [found.name for found in path.parent.iterdir()] == [path.name]


async def test_another_device_is_corrected_and_its_archive_keeps_the_event(desk: Desk, tmp_path: Path) -> None:
    told = await fact(desk, f"暗号是{CANARY}")
    path = await archive(desk)
    async with on_a_desk(tmp_path / "b", device="device-b") as there, on_a_desk(tmp_path / "c", device="c") as third:
        for one in (there, third):
            await one.hear(desk)
            full = {**(await events(one))}[told]
            assert full.payload == {}, "the desk hands out what its log holds"
            await one.database.write(lambda connection: log_store.replace_payload(connection, told, said_in(path)))
        theirs = await archive(third)
        assert CANARY in said(theirs)[told]

        await read_again(desk)
        for one in (there, third):
            await one.hear(desk)

        assert (await events(there))[told].payload == {"content": "暗号是[自定义]"}
        assert await room_of(third).withdraw() == 1
        assert said(theirs) == {told: '{"content": "暗号是[自定义]"}'}


def said_in(path: Path) -> dict[str, Any]:
    (line,) = lines(path)
    return dict(line["payload"])


async def test_what_was_corrected_before_it_was_archived_stays_in_its_archive(desk: Desk) -> None:
    told = await fact(desk, f"暗号是{CANARY}，别忘了")
    await read_again(desk)
    path = await archive(desk)

    assert await room_of(desk).withdraw() == 0
    assert said(path)[told] == '{"content": "暗号是[自定义]，别忘了"}'


async def test_stricter_rules_twice_leave_no_archive_with_what_they_found(desk: Desk) -> None:
    told = await fact(desk, f"{CANARY}和红狗22")
    first = await archive(desk)
    await read_again(desk)
    assert (await events(desk))[told].payload == {"content": "[自定义]和红狗22"}
    desk.clock.move(days=40)
    second = await archive(desk)
    assert {told: said(second)[told]} == said(first)
    assert (await events(desk))[told].payload == {}

    await read_again(desk, STRICTEST)

    for path in (first, second):
        assert said(path)[told] == '{"content": "[自定义]和[自定义]"}'
        assert "红狗" not in str(lines(path))
    assert "红狗" not in str(await events(desk))
    assert (await read_again(desk, STRICTEST)).corrected == ()


async def test_what_no_document_has_carried_out_yet_can_be_corrected_again_and_forgotten(desk: Desk) -> None:
    told = await fact(desk, f"{CANARY}和红狗22")
    path = await archive(desk)
    for rules in (STRICTER, STRICTEST):
        found = await rescan.rescan(desk.log, rules, desk.clock, local=True, apply=True, archives=room_of(desk))
        assert told in found.corrected
    assert said(path) == {told: '{"content": "[自定义]和[自定义]"}'}

    assert told in await ask(desk.log, Intake(STRICTEST), [told])
    await desk.memory.settle()
    await room_of(desk).withdraw()

    assert said(path) == {}
    assert [event.payload for event in (await events(desk)).values() if "和" in str(event.payload)] == []


async def test_what_was_corrected_and_archived_can_still_be_forgotten(desk: Desk) -> None:
    told = await fact(desk, f"暗号是{CANARY}，别忘了")
    first = await archive(desk)
    await read_again(desk)
    desk.clock.move(days=40)
    second = await archive(desk)

    again = await room_of(desk).repeating([told])
    assert await ask(desk.log, Intake(STRICTER), [told, *again]) == [told, *again]
    await room_of(desk).withdraw()

    assert (len(again), said(first), said(second)) == (1, {}, {})


async def test_what_was_forgotten_is_not_brought_back_by_an_archive_that_could_not_be_read_then(desk: Desk) -> None:
    told = await fact(desk, f"暗号是{CANARY}")
    path = await archive(desk)
    data = path.read_bytes()
    path.write_bytes(b"no archive")
    await ask(desk.log, Intake(desk.redactor), [told])
    await desk.memory.settle()
    assert await room_of(desk).withdraw() == 0
    path.write_bytes(data)

    assert (await read_again(desk)).corrected == ()


async def test_archives_that_cannot_be_read_are_told_left_alone_and_stop_no_other(desk: Desk) -> None:
    told = await fact(desk, f"暗号是{CANARY}")
    path = await archive(desk)
    damaged = path.with_name("0000.xbm")
    damaged.write_bytes(b"no archive")
    path.with_name("0001.xbm").symlink_to("nowhere")

    found = await read_again(desk)

    assert (found.corrected, found.unread) == ((told,), ("0000.xbm", "0001.xbm"))
    assert damaged.read_bytes() == b"no archive"
    assert said(path) == {told: '{"content": "暗号是[自定义]"}'}


async def test_a_wish_that_the_log_has_not_carried_out_yet_reaches_what_is_archived_now(desk: Desk) -> None:
    await fact(desk, "更早的")
    await archive(desk)
    told, left = await fact(desk, "不要了的"), await fact(desk, "留下的")
    await ask(desk.log, Intake(desk.redactor), [told])
    assert await room_of(desk).withdraw() == 0, "no archive holds it, and the log still does"
    desk.clock.move(seconds=1)

    path = await archive(desk)

    assert list(said(path)) == [left]


async def test_where_an_archive_cannot_follow_a_wish_no_other_is_begun(desk: Desk) -> None:
    path = await archive_of(desk, "更早的")
    going = await fact(desk, "不要了的")
    await ask(desk.log, Intake(desk.redactor), [going])
    await desk.memory.settle()
    await fact(desk, "留下的")
    path.unlink()
    path.mkdir()  # which nobody can open

    with pytest.raises(StorageError):
        await archive(desk)

    assert [found.name for found in path.parent.iterdir()] == [path.name]


async def test_one_process_at_a_time_is_at_work_on_the_archives(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sync.retention.room.PATIENCE", 0.0)
    told = await fact(desk, f"教训{CANARY}", kind="lesson_learned")
    path = await archive(desk)
    data, room = path.read_bytes(), room_of(desk)
    with FileLock(desk.file.parent / "archives.lock"):
        for work in (room.visit(print), room.withdraw({told: {"content": "别的"}})):
            with pytest.raises(StorageError):
                await work
    assert path.read_bytes() == data
    assert await room.withdraw({told: {"content": "别的"}}) == 1


async def archive_of(desk: Desk, text: str) -> Path:
    await fact(desk, text)
    return await archive(desk)


async def test_a_lines_new_hash_reaches_what_names_it_in_an_archive(desk: Desk) -> None:
    await desk.said(f"记住{CANARY}")
    (line,) = (event for event in (await events(desk)).values() if event.type == "exchange_recorded")
    assert line.payload["question"] == f"记住{CANARY}"
    before, now = next(hashes(line, {**line.payload, "question": "记住[自定义]"}))
    draft = Intake(desk.redactor).draft(
        {"type": "memory_fact", "payload": {"base_hash": before, "content": "它"}, "ts": OLD}
    )
    naming = (await desk.log.record([draft]))[0].event.event_id
    path = await archive(desk)

    await read_again(desk)

    assert json.loads(said(path)[naming])["base_hash"] == now
