"""What is old is archived and then forgotten here: never unread, never what somebody still shows, follows or awaits."""

import errno
import gzip
import os
import shutil
import sqlite3
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from sqlalchemy import Connection

from sync.archive.container import Reading, Writing
from sync.archive.model import Taken
from sync.archive.room import Archive
from sync.archive.unfinished import unfinished
from sync.clock import milliseconds
from sync.cloud import store as cloud_store
from sync.document import forgetting, rescan
from sync.document.capture import Exchange, exchange_drafts
from sync.document.choosing import Choice
from sync.errors import StorageError
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.intake import Intake
from sync.log.model import CLOUD, EXPIRED, FORGOTTEN, Event, Origin, Query
from sync.recall.model import Ask
from sync.recall.search import Recall
from sync.redaction import Redactor
from sync.retention.archives import archives, take_along
from sync.retention.model import Applied, Held
from sync.retention.room import Household, Retention
from sync.sections import Bound, RecallSettings
from tests.integration.document_desk import Desk, on_a_desk

OLD = "2025-01-02T03:04:05.000Z"


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with on_a_desk(tmp_path / "a") as desk:
        yield desk


def retention(
    desk: Desk, *, days: int = 30, megabytes: int = -1, shared: bool = False, cloud: bool = False
) -> Retention:
    archives, lock = desk.file.parent / "archive" / "default", desk.file.parent / "archives.lock"
    household = Household(archives, lock, days, megabytes, shared=shared, cloud=cloud)
    return Retention(desk.log, Intake(desk.redactor), household, clock=desk.clock)


async def apply(desk: Desk, room: Retention | None = None) -> Applied:
    room = room or retention(desk)
    done = await room.apply(room.rules(None, None), silent)
    await desk.memory.settle()
    return done


def silent(done: int, total: int) -> None:
    assert done <= total


async def fact(desk: Desk, text: str, ts: str | None = OLD, **more: Any) -> str:
    value = {"type": "memory_fact", "payload": {"content": text}, "ts": ts, **more}
    (recorded,) = await desk.log.record([Intake(desk.redactor).draft(value)])
    return recorded.event.event_id


def archive_of(desk: Desk) -> Archive:
    return Archive(desk.log, Intake(desk.redactor), desk.memory.imports, clock=desk.clock)


async def take(desk: Desk, path: Path, *, dry_run: bool = False) -> Taken:
    return await archive_of(desk).take(path, passphrase=None, dry_run=dry_run, heard=silent)


async def waiting(desk: Desk) -> list[Event]:
    """What goes out next."""
    return (await desk.database.read(lambda connection: cloud_store.waiting(connection, 100))).events


async def events(desk: Desk) -> dict[str, Event]:
    return {event.event_id: event for event in (await desk.log.read(Query())).events}


def archived(done: Applied) -> str:
    """All lines of the archive, read as an import reads it."""
    assert done.archive is not None
    parts = Reading.read_through(Path(done.archive), None).parts()
    return b"".join(data for name, data in parts if name.startswith("events/")).decode()


def versions(desk: Desk) -> str:
    with closing(sqlite3.connect(desk.database.path)) as connection:
        return b"".join(zlib.decompress(row[0]) for row in connection.execute("select bytes from written")).decode()


async def test_a_plan_changes_nothing_and_an_apply_archives_before_it_forgets(desk: Desk) -> None:
    old, young = await fact(desk, "去年的口味"), await fact(desk, "今天的口味", ts=None)
    before = await events(desk)
    room = retention(desk)

    plan = await room.plan(room.rules(None, None))
    assert (len(plan.positions), plan.oldest, await events(desk)) == (1, OLD, before)
    done = await apply(desk, room)

    after = await events(desk)
    assert (after[old].payload, after[young].payload) == ({}, {"content": "今天的口味"})
    assert "去年的口味" in archived(done)
    assert "今天的口味" not in archived(done)
    assert Path(done.archive or "").stat().st_mode & 0o077 == 0
    (asked,) = (event for event in after.values() if event.type == EXPIRED)
    assert asked.reach == "local"
    assert "去年的口味".encode() not in b"".join(
        path.read_bytes() for path in desk.file.parent.iterdir() if path.is_file()
    )
    assert (await apply(desk)).archive is None
    assert await desk.log.verify() == []


async def test_an_old_event_is_as_old_as_its_ts_and_an_imported_one_as_its_import(desk: Desk) -> None:
    await fact(desk, "三月的事实")
    value = {"type": "memory_fact", "payload": {"content": "导入的事实"}, "ts": OLD}
    imported = replace(Intake(desk.redactor).draft(value), origin=Origin.IMPORTED)
    await desk.log.record([imported])
    room = retention(desk)
    assert len((await room.plan(room.rules(None, None))).positions) == 1
    desk.clock.move(days=29)
    assert len((await room.plan(room.rules(None, None))).positions) == 1
    desk.clock.move(days=2)
    assert len((await room.plan(room.rules(None, None))).positions) == 2


async def test_lines_that_the_document_shows_stay_and_those_it_shows_no_more_leave_every_version(desk: Desk) -> None:
    await desk.said("还在的问题", "拿掉的问题")
    desk.type_under("# 用户偏好", "- 手写的偏好")
    await desk.memory.settle()
    desk.replace("- 手写的偏好", "- 改过的偏好")
    await desk.memory.settle()
    desk.text = "".join(line for line in desk.text.splitlines(keepends=True) if "拿掉的问题" not in line)
    await desk.memory.settle()
    shown = desk.text
    assert "拿掉的问题" in versions(desk)
    desk.clock.move(days=29)
    assert (await apply(desk)).forgotten == 0
    desk.clock.move(days=2)

    desk.options = msgspec.structs.replace(desk.options, keep_days=Bound(-1))
    desk.restart()
    done = await apply(desk)

    said = {event.payload.get("question", event.payload.get("text")) for event in (await events(desk)).values()}
    assert {"还在的问题", "拿掉的问题"} & said == {"还在的问题", "拿掉的问题"}  # its answer is still shown
    assert done.plan.held == {Held.SHOWN: 4}
    assert desk.text == shown


async def test_an_exchange_folded_into_its_days_line_leaves_the_log_and_the_versions(desk: Desk) -> None:
    await desk.said("很久以前的问题")
    desk.clock.move(days=40)
    await desk.said("今天的问题")
    assert "很久以前的问题" in versions(desk)
    assert "AI 答" in versions(desk)
    shown = desk.text

    done = await apply(desk)

    assert done.forgotten == 1
    assert desk.text == shown
    questions = [event.payload.get("question") for event in (await events(desk)).values()]
    assert "很久以前的问题" not in questions
    assert "今天的问题" in questions
    assert "用户问：很久以前的问题" not in versions(desk)
    assert "用户问：今天的问题" in versions(desk)


async def test_what_a_follower_has_not_taken_stays_and_it_is_named(desk: Desk) -> None:
    first, second = await fact(desk, "一"), await fact(desk, "二")
    position = (await events(desk))[first].position
    await desk.log.set_watermark("their.backup", position)

    done = await apply(desk)

    after = await events(desk)
    assert (after[first].payload, after[second].payload) == ({}, {"content": "二"})
    assert (done.plan.held, done.plan.behind) == ({Held.FOLLOWED: 1}, {"their.backup": position})
    await desk.log.set_watermark("their.backup", second)
    assert (await apply(desk)).forgotten == 1


async def test_what_the_index_has_not_taken_stays_and_what_it_has_leaves_it(desk: Desk) -> None:
    recall = Recall(desk.log, desk.clock, RecallSettings(), moves=True)
    await fact(desk, "火锅在巷子里")
    assert [hit.kept.text for hit in (await recall.search(Ask("火锅"))).hits] == ["火锅在巷子里"]
    await fact(desk, "火锅又搬家了")
    assert (await apply(desk)).plan.behind == {"recall": 1}

    assert [hit.kept.text for hit in (await recall.search(Ask("火锅"))).hits] == ["火锅又搬家了"]
    assert (await apply(desk)).forgotten == 1
    assert (await recall.search(Ask("火锅"))).hits == ()


async def test_what_has_not_reached_the_cloud_stays_where_there_is_one(desk: Desk) -> None:
    waiting, sent = await fact(desk, "还没送到"), await fact(desk, "送到了")
    private = await fact(desk, "只在这里", type="lesson_learned")
    await desk.database.write(lambda connection: outbox_store.acknowledge(connection, CLOUD, [(sent, 1)]))

    done = await apply(desk, retention(desk, cloud=True))

    after = await events(desk)
    assert {waiting: bool(after[waiting].payload), sent: bool(after[sent].payload)} == {waiting: True, sent: False}
    assert after[private].payload == {}
    assert done.plan.held == {Held.UNDELIVERED: 1}
    assert (await apply(desk, retention(desk, cloud=False))).forgotten == 1


async def test_a_corrected_event_goes_with_its_correction(desk: Desk) -> None:
    told = await fact(desk, "暗号是蓝猫7391，别忘了")
    desk.redactor = Redactor(extra_patterns=["蓝猫[0-9]+"])
    desk.restart()
    await rescan.rescan(desk.log, desk.redactor, desk.clock, local=True, apply=True)
    await desk.memory.settle()
    assert (await events(desk))[told].payload == {"content": "暗号是[自定义]，别忘了"}

    done = await apply(desk)

    assert done.forgotten == 2
    assert "别忘了" not in str([event.payload for event in (await events(desk)).values()])
    assert "别忘了" in archived(done)


async def test_a_correction_that_came_in_between_brings_nothing_back(desk: Desk) -> None:
    told = await fact(desk, "暗号是蓝猫7391，别忘了")
    desk.redactor = Redactor(extra_patterns=["蓝猫[0-9]+"])
    await rescan.rescan(desk.log, desk.redactor, desk.clock, local=True, apply=True)
    await desk.log.record([Intake(desk.redactor).expired([told])])

    await desk.memory.settle()

    assert (await events(desk))[told].payload == {}


async def test_what_other_devices_said_goes_where_no_follower_here_waits_for_it(desk: Desk, tmp_path: Path) -> None:
    await desk.said("这里的问题")
    await desk.database.write(lambda connection: log_store.set_watermark(connection, "daily.begun", 1, desk.clock))
    async with on_a_desk(tmp_path / "b", device="device-b") as there:
        theirs = await there.say("那边的问题")
        await there.memory.settle()
        there.type_under("# 用户偏好", "- 那边的偏好")
        await there.memory.settle()
        await desk.hear(there)
    desk.clock.move(days=40)

    done = await apply(desk)

    after = (await events(desk)).values()
    assert (done.forgotten, [event.payload for event in after if event.event_id == theirs]) == (1, [{}])
    assert "- 那边的偏好" in [event.payload.get("text") for event in after]


async def test_beyond_a_size_the_oldest_go_first(desk: Desk) -> None:
    told = [await fact(desk, f"{number} " + "长" * 10_000, ts=None) for number in range(60)]

    done = await apply(desk, retention(desk, days=-1, megabytes=1))

    left = [event_id for event_id in told if (await events(desk))[event_id].payload]
    assert left == told[-len(left) :]
    assert done.plan.total_bytes - done.plan.bytes <= 1024 * 1024
    assert 30 < len(left) < 36


async def test_a_shared_document_keeps_all_that_it_is_made_of(tmp_path: Path) -> None:
    async with on_a_desk(tmp_path / "a", sharing="user") as desk:
        await desk.said("一", "二")
        desk.type_under("# 用户偏好", "- 手写的")
        await desk.memory.settle()
        desk.replace("- 手写的\n", "")
        await desk.memory.settle()
        await fact(desk, "旧事")
        desk.clock.move(days=40)
        await desk.memory.settle()
        shown = desk.text

        done = await apply(desk, retention(desk, shared=True))
        desk.restart()
        await desk.say("三")
        await desk.memory.settle()

        assert done.forgotten == 1
        assert "二" in shown
        assert [line for line in shown.splitlines()[:-1] if line not in desk.text.splitlines()] == []
        assert "手写的" not in desk.text


async def test_nothing_is_forgotten_where_the_archive_cannot_be_written(desk: Desk) -> None:
    told = await fact(desk, "旧事")
    (desk.file.parent / "archive").write_text("in the way")

    with pytest.raises(StorageError):
        await apply(desk)

    assert (await events(desk))[told].payload == {"content": "旧事"}
    assert EXPIRED not in {event.type for event in (await events(desk)).values()}


async def test_what_the_log_says_goes_is_carried_out_by_the_next_start(desk: Desk) -> None:
    told = await fact(desk, "旧事")
    room = retention(desk)
    await room.apply(room.rules(None, None), silent)
    assert (await events(desk))[told].payload == {"content": "旧事"}

    desk.restart()
    await desk.memory.settle()

    assert (await events(desk))[told].payload == {}


async def test_the_same_event_again_is_known_and_does_not_come_back(desk: Desk) -> None:
    told = await fact(desk, "旧事", event_id="evt_theirs")
    await apply(desk)

    assert await fact(desk, "旧事", event_id="evt_theirs") == told
    assert (await events(desk))[told].payload == {}


async def test_a_line_that_came_back_meanwhile_stays(desk: Desk) -> None:
    await desk.said("会回来的问题")
    event_id = next(iter(await events(desk)))
    await desk.log.record([Intake(desk.redactor).expired([event_id])])
    shown = desk.text

    await desk.memory.settle()

    assert desk.text == shown
    assert [event.type for event in (await events(desk)).values()] == ["exchange_recorded", EXPIRED]


async def test_what_one_device_archived_is_no_wish_of_another(desk: Desk, tmp_path: Path) -> None:
    told = await fact(desk, "旧事")

    async with on_a_desk(tmp_path / "b", device="device-b") as there:
        await there.hear(desk)
        await apply(desk)
        path = tmp_path / "all.xbm"
        here, taking = (
            Archive(one.log, Intake(one.redactor), one.memory.imports, clock=one.clock) for one in (desk, there)
        )
        await here.export(path, document="", settings={}, passphrase=None, heard=silent)
        await taking.take(path, passphrase=None, dry_run=False, heard=silent)
        await there.memory.settle()

        assert (await events(there))[told].payload == {"content": "旧事"}
        assert EXPIRED not in {event.type for event in (await events(there)).values()}


async def test_an_archive_brings_everything_back_elsewhere(desk: Desk, tmp_path: Path) -> None:
    told = await fact(desk, "旧事")
    done = await apply(desk)

    async with on_a_desk(tmp_path / "b", device="device-b") as there:
        taking = Archive(there.log, Intake(there.redactor), there.memory.imports, clock=there.clock)
        taken = await taking.take(Path(done.archive or ""), passphrase=None, dry_run=False, heard=silent)

        assert (taken.recorded, isinstance(taken, Taken)) == (1, True)
        assert (await events(there))[told].payload == {"content": "旧事"}
        assert (await events(there))[told].ts == OLD


async def test_what_was_archived_is_left_out_of_an_export_and_comes_in_from_its_archive_in_either_order(
    desk: Desk, tmp_path: Path
) -> None:
    told, kept = await fact(desk, "旧事"), await fact(desk, "新事", ts=None)
    gone = await fact(desk, "要忘的", ts=None)
    archive = Path((await apply(desk)).archive or "")
    await forgetting.ask(desk.log, Intake(desk.redactor), [gone])
    await desk.memory.settle()
    everything = tmp_path / "all.xbm"
    await archive_of(desk).export(everything, document="", settings={}, passphrase=None, heard=silent)
    lines = b"".join(
        data for name, data in Reading.read_through(everything, None).parts() if name.startswith("events/")
    )
    assert [f'"event_id":"{event_id}"'.encode() in lines for event_id in (told, kept, gone)] == [False, True, True]

    for name, order in (("b", (everything, archive)), ("c", (archive, everything))):
        async with on_a_desk(tmp_path / name, device=f"device-{name}") as there:
            assert (await take(there, order[0])).known == 0
            assert (await take(there, order[1])).known == 0
            payloads = {event_id: event.payload for event_id, event in (await events(there)).items()}
            assert (payloads[told], payloads[kept], payloads[gone]) == ({"content": "旧事"}, {"content": "新事"}, {})


@pytest.mark.parametrize("of", ["this device", "another device"])
async def test_a_row_that_only_retention_left_blank_is_filled_in_from_an_archive_and_found(
    desk: Desk, tmp_path: Path, of: str
) -> None:
    told = await fact(desk, "火锅在巷子里")
    archive = Path((await apply(desk)).archive or "")
    async with on_a_desk(tmp_path / "b", device="device-b") as there:
        await there.hear(desk)
        at = desk if of == "this device" else there
        recall = Recall(at.log, at.clock, RecallSettings(), moves=True)
        assert (await recall.search(Ask("火锅"))).hits == ()

        before = (await events(at))[told]
        assert (await take(at, archive, dry_run=True)).recorded == 1
        assert (await events(at))[told] == before
        taken = await take(at, archive)
        await at.memory.settle()

        assert (taken.recorded, taken.known, (await take(at, archive)).known) == (1, 0, 1)
        assert (await events(at))[told] == replace(before, payload={"content": "火锅在巷子里"})
        assert [hit.kept.text for hit in (await recall.search(Ask("火锅"))).hits] == ["火锅在巷子里"]
        assert await at.log.verify() == []


async def test_what_was_forgotten_after_it_was_archived_comes_back_from_no_copy_of_the_archive(
    desk: Desk, tmp_path: Path
) -> None:
    told = await fact(desk, "去年的秘密")
    copy = shutil.copy((await apply(desk)).archive or "", tmp_path / "copy.xbm")
    await forgetting.ask(desk.log, Intake(desk.redactor), [told])
    await desk.memory.settle()
    async with on_a_desk(tmp_path / "b", device="device-b") as there:
        wishes = (await desk.log.read(Query(types=(FORGOTTEN,)))).events
        await there.database.write(lambda connection: log_store.add_all(connection, wishes))
        for at in (desk, there):
            assert (await take(at, Path(copy))).known == 1
            assert "秘密" not in str(await events(at))


async def test_a_corrected_event_comes_back_from_its_archive_corrected(desk: Desk, tmp_path: Path) -> None:
    told = await fact(desk, "暗号是蓝猫7391，别忘了")
    former = tmp_path / "former.xbm"
    await archive_of(desk).export(former, document="", settings={}, passphrase=None, heard=silent)
    await rescan.rescan(desk.log, Redactor(extra_patterns=["蓝猫[0-9]+"]), desk.clock, local=True, apply=True)
    await desk.memory.settle()
    archive = Path((await apply(desk)).archive or "")

    assert (await take(desk, former)).recorded == 0
    assert (await take(desk, archive)).recorded == 2
    assert (await events(desk))[told].payload == {"content": "暗号是[自定义]，别忘了"}


async def test_what_no_cloud_had_when_it_was_archived_goes_out_with_its_words_or_not_at_all(desk: Desk) -> None:
    told, kept = await fact(desk, "旧事"), await fact(desk, "新事", ts=None)
    archive = Path((await apply(desk)).archive or "")
    assert [event.event_id for event in await waiting(desk)] == [kept]

    await take(desk, archive)

    assert {event.event_id: event.payload for event in await waiting(desk)}[told] == {"content": "旧事"}
    assert await desk.log.verify() == []


async def test_of_many_only_a_few_wishes_are_carried_out_in_one_transaction(desk: Desk) -> None:
    drafts = [
        Intake(desk.redactor).draft({"type": "memory_fact", "payload": {"content": f"旧事 {number}"}, "ts": OLD})
        for number in range(2_400)
    ]
    await desk.log.record(drafts)
    done = await retention(desk).apply(retention(desk).rules(None, None), silent)
    assert done.forgotten == 2_400
    await desk.memory.versions.follow()

    def left(connection: Connection) -> int:
        return sum(bool(event.payload) for event in log_store.of_types(connection, ["memory_fact"], after=0))

    assert await desk.database.read(left) == 0
    assert archived(done).count("\n") == 2_400


async def test_what_is_forgotten_leaves_the_archives_and_the_rest_stays_byte_for_byte(desk: Desk) -> None:
    room = retention(desk)
    going, _ = await fact(desk, "去年的秘密"), await fact(desk, "去年的口味")
    one = await apply(desk, room)
    await fact(desk, "去年的天气")
    other = Path((await apply(desk, room)).archive or "").read_bytes()
    assert await room.withdraw() == 0

    held = await forgetting.ask(desk.log, Intake(desk.redactor), [going])
    await desk.memory.settle()
    assert (held, await room.withdraw()) == ([going], 1)

    assert "秘密" not in archived(one)
    assert "口味" in archived(one)
    assert Path(one.archive or "").stat().st_mode & 0o077 == 0
    files = list(Path(one.archive or "").parent.iterdir())
    assert len(files) == 2, "nothing half written is left beside them"
    assert other in [path.read_bytes() for path in files]
    assert await room.withdraw() == 0
    taken = await Archive(desk.log, Intake(desk.redactor), desk.memory.imports, clock=desk.clock).take(
        Path(one.archive or ""), passphrase=None, dry_run=False, heard=silent
    )
    assert (taken.source, taken.recorded) == ("archive", 1)


async def test_the_words_of_what_was_archived_are_looked_for_in_the_archives(desk: Desk) -> None:
    room = retention(desk)
    going, _ = await fact(desk, "去年的秘密"), await fact(desk, "去年的口味")
    await apply(desk, room)
    assert await forgetting.chosen(desk.log, Choice("秘密")) == []
    assert [event.event_id for event in await room.archived(Choice("秘密"))] == [going]
    year = [milliseconds(datetime(year, 1, 1, tzinfo=UTC)) for year in (2025, 2026)]
    assert len(await room.archived(Choice(since_ms=year[0], until_ms=year[1]))) == 2
    assert await room.archived(Choice("秘密", since_ms=year[1])) == []


async def test_the_messages_of_a_forgotten_exchange_leave_the_archive_with_it(desk: Desk) -> None:
    said = Exchange("很久以前问过什么" * 20, "很久以前答过什么" * 20, "sess_a")
    drafts = exchange_drafts(said, desk.redactor, device_id="device-a", store_messages=True)
    exchange, *messages = await desk.log.record(drafts)
    await desk.memory.settle()
    desk.clock.move(days=29)  # the document shows the exchange, nothing shows the messages
    room = retention(desk, days=20)
    done = await apply(desk, room)
    assert archived(done).count('"part"') == len(messages) > 0
    assert exchange.event.event_id not in archived(done)
    wished = await forgetting.ask(desk.log, Intake(desk.redactor), [exchange.event.event_id])
    assert wished[1:] == [message.event.event_id for message in messages], "the cloud is to forget them too"
    await desk.memory.settle()
    assert await room.withdraw() == len(messages)
    assert archived(done) == ""


def one_byte_is_another(archive: Path, path: Path) -> None:
    path.write_bytes(gzip.compress(gzip.decompress(archive.read_bytes()).replace(b"xiaobai", b"xiao\xffai", 1)))


def one_line_is_no_json(archive: Path, path: Path) -> None:
    """All hashes agree, so somebody wrote it so."""
    with path.open("wb") as file:
        writing = Writing(file, None, os.urandom)
        for name, data in Reading.read_through(archive, None).parts():
            writing.add(name, b"{not json\n" + data if name.startswith("events/") else data)
        writing.finish()


UNREADABLE: list[Callable[[Path, Path], object]] = [
    lambda _archive, path: path.write_bytes(b"no archive"),
    one_byte_is_another,
    one_line_is_no_json,
    lambda _archive, path: path.mkdir(),
    lambda _archive, path: path.symlink_to("nowhere"),
]
HOW = ["no archive", "one byte of its first part is another", "one line is no JSON", "a folder", "a link to nowhere"]


@pytest.mark.parametrize("damage", UNREADABLE, ids=HOW)
async def test_an_archive_that_cannot_be_read_is_left_alone_and_stops_no_other(
    desk: Desk, damage: Callable[[Path, Path], object]
) -> None:
    room = retention(desk)
    going = await fact(desk, "去年的秘密")
    done = await apply(desk, room)
    damaged = Path(done.archive or "").with_name("0000.xbm")
    damage(Path(done.archive or ""), damaged)
    before = damaged.read_bytes() if damaged.is_file() else damaged.lstat()
    seen: list[Event] = []

    assert await room.visit(seen.append) == ("0000.xbm",)
    assert [event.event_id for event in seen] == [going]
    assert [event.event_id for event in await room.archived(Choice("秘密"))] == [going]
    assert await room.repeating([going]) == []
    await forgetting.ask(desk.log, Intake(desk.redactor), [going])
    assert await room.withdraw() == 1

    assert "秘密" not in archived(done)
    assert (damaged.read_bytes() if damaged.is_file() else damaged.lstat()) == before


async def test_an_archive_that_could_not_be_opened_follows_a_wish_as_soon_as_it_can_be(desk: Desk) -> None:
    room = retention(desk)
    going = await fact(desk, "去年的秘密")
    done = await apply(desk, room)
    path = Path(done.archive or "")
    aside = path.rename(desk.file.with_name("aside"))
    path.symlink_to("nowhere")
    await forgetting.ask(desk.log, Intake(desk.redactor), [going])
    await desk.memory.settle()
    assert await room.withdraw() == 0

    aside.replace(path)
    assert await room.withdraw() == 1
    assert archived(done) == ""


async def test_an_archive_that_could_not_be_written_anew_is_told_stops_no_other_and_follows_later(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = retention(desk)
    going = []
    archives = []
    for number in range(2):
        going.append(await fact(desk, f"去年的秘密 {number}"))
        archives.append(await apply(desk, room))
        desk.clock.move(seconds=1)
    first = str(archives[0].archive)
    await forgetting.ask(desk.log, Intake(desk.redactor), going)
    await desk.memory.settle()
    replace = os.replace

    def failing(source: Path, target: Path) -> None:
        if str(target) == first:
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", failing)
        with pytest.raises(StorageError):
            await room.withdraw()
    assert ["秘密" in archived(done) for done in archives] == [True, False]

    assert await room.withdraw() == 1
    assert [archived(done) for done in archives] == ["", ""]


async def test_what_killed_writers_of_archives_left_goes_also_where_there_is_no_archive_yet(desk: Desk) -> None:
    room = retention(desk)
    folder = desk.file.parent / "archive" / "default"
    folder.mkdir(parents=True)
    left = folder / ".2025-01-02T030405-0a1b2c3d.xbm.0a1b2c3d.part"
    left.write_text("去年的秘密")
    assert await room.withdraw() == 0
    assert list(folder.iterdir()) == []

    await fact(desk, "去年的口味")
    left.write_text("去年的秘密")
    done = await apply(desk, room)
    assert list(folder.iterdir()) == [Path(done.archive or "")]


async def test_an_archive_that_another_process_is_writing_stays_with_it(desk: Desk) -> None:
    folder = desk.file.parent / "archive" / "default"
    folder.mkdir(parents=True)
    with unfinished(folder / "theirs.xbm") as (temporary, file):
        file.write(b"theirs")
        await retention(desk).withdraw()
        assert list(folder.iterdir()) == [temporary]


def test_archives_move_in_nobody_s_place_and_what_a_kill_left_in_both_folders_is_not_doubled(tmp_path: Path) -> None:
    former, heir = tmp_path / "former", tmp_path / "heir"
    for folder, files in (
        (former, {"a.xbm": b"one", "b.xbm": b"two", "c.xbm": b"three"}),
        (heir, {"b.xbm": b"two", "c.xbm": b"of the heir"}),
    ):
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)

    for _ in range(2):
        take_along(former, heir)
        assert archives(former) == []
        assert (heir / "c.xbm").read_bytes() == b"of the heir"
        assert sorted(path.read_bytes() for path in archives(heir)) == [b"of the heir", b"one", b"three", b"two"]
