"""Old events are archived and then expire, unless the document, a consumer or the cloud still needs them."""

import errno
import gzip
import os
import shutil
import sqlite3
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sync.archive.container import ArchiveReader, ArchiveWriter
from sync.archive.model import ArchiveImportResult
from sync.archive.partial_files import partial_file
from sync.archive.service import ArchiveService
from sync.clock import to_unix_ms
from sync.cloud import replication_store as cloud_store
from sync.db.engine import Transaction
from sync.db.schema import RECOVERY_STARTED
from sync.document.capture.exchange_events import ExchangeInput, draft_exchange_events
from sync.document.erasure import erasure
from sync.document.erasure.selection import ErasureSelection
from sync.document.versions import rescan
from sync.errors import StorageError
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.event_types import PAYLOAD_EXPIRED, PAYLOAD_FORGOTTEN
from sync.log.ingest import DraftBuilder
from sync.log.model import CLOUD, Event, Origin, Query
from sync.recall.model import SearchRequest
from sync.recall.search import RecallService
from sync.redaction import Redactor
from sync.retention.archives import list_archives, move_archives
from sync.retention.policy import HoldReason, RetentionResult
from sync.retention.service import RetentionConfig, RetentionService
from sync.settings.sections import RecallSettings
from sync.settings.values import KeepLimit
from tests.integration.document.harness import DocumentHarness, open_document_harness
from tests.support import introduce, signer_of, without_signature

OLD = "2025-01-02T03:04:05.000Z"


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "a") as harness:
        yield harness


def retention(
    harness: DocumentHarness, *, days: int = 30, megabytes: int = -1, cloud: bool = False
) -> RetentionService:
    archives, lock = harness.file.parent / "archive" / "default", harness.file.parent / "archives.lock"
    household = RetentionConfig(archives, lock, days, megabytes, has_cloud=cloud)
    return RetentionService(
        harness.log, DraftBuilder(harness.redactor), household, signer_of(harness.log), clock=harness.clock
    )


async def apply(harness: DocumentHarness, room: RetentionService | None = None) -> RetentionResult:
    room = room or retention(harness)
    done = await room.apply(room.build_rules(None, None), check_progress)
    await harness.memory.reconcile()
    return done


def check_progress(done: int, total: int) -> None:
    assert done <= total


async def fact(harness: DocumentHarness, text: str, ts: str | None = OLD, **more: Any) -> str:
    value = {"type": "memory_fact", "payload": {"content": text}, "ts": ts, **more}
    (recorded,) = await harness.log.append([DraftBuilder(harness.redactor).build(value)])
    return recorded.event.event_id


def archive_of(harness: DocumentHarness) -> ArchiveService:
    return ArchiveService(
        harness.log,
        DraftBuilder(harness.redactor),
        harness.memory.importer,
        signer_of(harness.log),
        clock=harness.clock,
    )


async def import_archive(harness: DocumentHarness, path: Path, *, dry_run: bool = False) -> ArchiveImportResult:
    return await archive_of(harness).import_path(path, passphrase=None, dry_run=dry_run, on_progress=check_progress)


async def pending_events(harness: DocumentHarness) -> list[Event]:
    """Return the events that are sent next."""
    return (await harness.database.read(lambda connection: cloud_store.pending_batch(connection, 100))).events


async def events(harness: DocumentHarness) -> dict[str, Event]:
    return {event.event_id: event for event in (await harness.log.read(Query())).events}


def archived(done: RetentionResult) -> str:
    """Return all lines of the archive, read as an import reads them."""
    assert done.archive is not None
    parts = ArchiveReader.open_verified(Path(done.archive), None).read_parts()
    return b"".join(data for name, data in parts if name.startswith("events/")).decode()


def versions(harness: DocumentHarness) -> str:
    with closing(sqlite3.connect(harness.database.path)) as connection:
        return b"".join(zlib.decompress(row[0]) for row in connection.execute("select bytes from written")).decode()


async def test_a_plan_changes_nothing_and_apply_archives_before_it_expires(harness: DocumentHarness) -> None:
    old, young = await fact(harness, "去年的口味"), await fact(harness, "今天的口味", ts=None)
    before = await events(harness)
    room = retention(harness)

    plan = await room.plan(room.build_rules(None, None))
    assert (len(plan.positions), plan.oldest, await events(harness)) == (1, OLD, before)
    done = await apply(harness, room)

    after = await events(harness)
    assert (after[old].payload, after[young].payload) == ({}, {"content": "今天的口味"})
    assert "去年的口味" in archived(done)
    assert "今天的口味" not in archived(done)
    assert Path(done.archive or "").stat().st_mode & 0o077 == 0
    (asked,) = (event for event in after.values() if event.type == PAYLOAD_EXPIRED)
    assert asked.reach == "local"
    assert "去年的口味".encode() not in b"".join(
        path.read_bytes() for path in harness.file.parent.iterdir() if path.is_file()
    )
    assert (await apply(harness)).archive is None
    assert await harness.log.find_problems() == []


async def test_age_counts_from_ts_and_for_an_import_from_the_import(harness: DocumentHarness) -> None:
    await fact(harness, "三月的事实")
    value = {"type": "memory_fact", "payload": {"content": "导入的事实"}, "ts": OLD}
    imported = replace(DraftBuilder(harness.redactor).build(value), origin=Origin.IMPORTED)
    await harness.log.append([imported])
    room = retention(harness)
    assert len((await room.plan(room.build_rules(None, None))).positions) == 1
    harness.clock.advance(days=29)
    assert len((await room.plan(room.build_rules(None, None))).positions) == 1
    harness.clock.advance(days=2)
    assert len((await room.plan(room.build_rules(None, None))).positions) == 2


async def test_shown_lines_stay_and_others_leave_every_version(
    harness: DocumentHarness,
) -> None:
    await harness.record_and_reconcile("还在的问题", "拿掉的问题")
    harness.add_line_under("# 用户偏好", "- 手写的偏好")
    await harness.memory.reconcile()
    harness.replace("- 手写的偏好", "- 改过的偏好")
    await harness.memory.reconcile()
    harness.text = "".join(line for line in harness.text.splitlines(keepends=True) if "拿掉的问题" not in line)
    await harness.memory.reconcile()
    shown = harness.text
    assert "拿掉的问题" in versions(harness)
    harness.clock.advance(days=29)
    assert (await apply(harness)).forgotten == 0
    harness.clock.advance(days=2)

    harness.options = replace(harness.options, keep_days=KeepLimit(-1))
    harness.restart()
    done = await apply(harness)

    said = {event.payload.get("question", event.payload.get("text")) for event in (await events(harness)).values()}
    assert {"还在的问题", "拿掉的问题"} & said == {"还在的问题", "拿掉的问题"}  # its answer is still shown
    assert done.plan.held == {HoldReason.SHOWN_IN_DOCUMENT: 4}
    assert harness.text == shown


async def test_an_exchange_folded_into_its_days_line_leaves_the_log_and_the_versions(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("很久以前的问题")
    harness.clock.advance(days=40)
    await harness.record_and_reconcile("今天的问题")
    assert "很久以前的问题" in versions(harness)
    assert "AI 答" in versions(harness)
    shown = harness.text

    done = await apply(harness)

    assert done.forgotten == 1
    assert harness.text == shown
    questions = [event.payload.get("question") for event in (await events(harness)).values()]
    assert "很久以前的问题" not in questions
    assert "今天的问题" in questions
    assert "用户问：很久以前的问题" not in versions(harness)
    assert "用户问：今天的问题" in versions(harness)


async def test_an_event_that_a_consumer_has_not_read_stays_and_the_consumer_is_named(harness: DocumentHarness) -> None:
    first, second = await fact(harness, "一"), await fact(harness, "二")
    position = (await events(harness))[first].position
    await harness.log.set_watermark("their.backup", position)

    done = await apply(harness)

    after = await events(harness)
    assert (after[first].payload, after[second].payload) == ({}, {"content": "二"})
    assert (done.plan.held, done.plan.behind) == ({HoldReason.NOT_YET_CONSUMED: 1}, {"their.backup": position})
    await harness.log.set_watermark("their.backup", second)
    assert (await apply(harness)).forgotten == 1


async def test_a_finished_recovery_of_versions_holds_no_event_back(harness: DocumentHarness) -> None:
    await fact(harness, "一")
    await harness.database.write(
        lambda connection: log_store.set_watermark(connection, RECOVERY_STARTED, 0, harness.clock)
    )
    assert (await apply(harness)).forgotten == 1


async def test_an_unindexed_event_stays_and_an_expired_one_leaves_the_index(harness: DocumentHarness) -> None:
    recall = RecallService(harness.log, harness.clock, RecallSettings(), may_index=True)
    await fact(harness, "火锅在巷子里")
    assert [hit.item.text for hit in (await recall.search(SearchRequest("火锅"))).hits] == ["火锅在巷子里"]
    await fact(harness, "火锅又搬家了")
    assert (await apply(harness)).plan.behind == {"recall": 1}

    assert [hit.item.text for hit in (await recall.search(SearchRequest("火锅"))).hits] == ["火锅又搬家了"]
    assert (await apply(harness)).forgotten == 1
    assert (await recall.search(SearchRequest("火锅"))).hits == ()


async def test_an_undelivered_event_stays_if_there_is_a_cloud(harness: DocumentHarness) -> None:
    waiting, sent = await fact(harness, "还没送到"), await fact(harness, "送到了")
    private = await fact(harness, "只在这里", type="lesson_observed")
    await harness.database.write(lambda connection: outbox_store.acknowledge(connection, CLOUD, [(sent, 1)]))

    done = await apply(harness, retention(harness, cloud=True))

    after = await events(harness)
    assert {waiting: bool(after[waiting].payload), sent: bool(after[sent].payload)} == {waiting: True, sent: False}
    assert after[private].payload == {}
    assert done.plan.held == {HoldReason.UNDELIVERED: 1}
    assert (await apply(harness, retention(harness, cloud=False))).forgotten == 1


async def test_a_corrected_event_expires_with_its_correction(harness: DocumentHarness) -> None:
    told = await fact(harness, "路过蓝猫7391，别忘了")
    harness.redactor = Redactor(extra_patterns=["蓝猫[0-9]+"])
    harness.restart()
    await rescan.rescan(harness.log, harness.redactor, harness.clock, local=True, apply=True)
    await harness.memory.reconcile()
    assert (await events(harness))[told].payload == {"content": "路过[自定义]，别忘了"}

    done = await apply(harness)

    assert done.forgotten == 2
    assert "别忘了" not in str([event.payload for event in (await events(harness)).values()])
    assert "别忘了" in archived(done)


async def test_a_correction_during_the_run_restores_nothing(harness: DocumentHarness) -> None:
    told = await fact(harness, "路过蓝猫7391，别忘了")
    harness.redactor = Redactor(extra_patterns=["蓝猫[0-9]+"])
    await rescan.rescan(harness.log, harness.redactor, harness.clock, local=True, apply=True)
    await harness.log.append([DraftBuilder(harness.redactor).build_expiry([told])])

    await harness.memory.reconcile()

    assert (await events(harness))[told].payload == {}


async def test_events_of_other_devices_expire_unless_a_consumer_waits_for_them(
    harness: DocumentHarness, tmp_path: Path
) -> None:
    await harness.record_and_reconcile("这里的问题")
    await harness.database.write(
        lambda connection: log_store.set_watermark(connection, "daily.begun", 1, harness.clock)
    )
    async with open_document_harness(tmp_path / "b", device="device-b") as there:
        theirs = await there.record_exchange("那边的问题")
        await there.memory.reconcile()
        there.add_line_under("# 用户偏好", "- 那边的偏好")
        await there.memory.reconcile()
        await harness.pull_from(there)
    harness.clock.advance(days=40)

    done = await apply(harness)

    after = (await events(harness)).values()
    assert (done.forgotten, [event.payload for event in after if event.event_id == theirs]) == (1, [{}])
    assert "- 那边的偏好" in [event.payload.get("text") for event in after]


async def test_beyond_a_size_the_oldest_expire_first(harness: DocumentHarness) -> None:
    told = [await fact(harness, f"{number} " + "长" * 10_000, ts=None) for number in range(60)]

    done = await apply(harness, retention(harness, days=-1, megabytes=1))

    left = [event_id for event_id in told if (await events(harness))[event_id].payload]
    assert left == told[-len(left) :]
    assert done.plan.total_bytes - done.plan.bytes <= 1024 * 1024
    assert 30 < len(left) < 36


async def test_nothing_expires_if_the_archive_cannot_be_written(harness: DocumentHarness) -> None:
    told = await fact(harness, "旧事")
    (harness.file.parent / "archive").write_text("in the way")

    with pytest.raises(StorageError):
        await apply(harness)

    assert (await events(harness))[told].payload == {"content": "旧事"}
    assert PAYLOAD_EXPIRED not in {event.type for event in (await events(harness)).values()}


async def test_an_expiry_is_applied_by_the_next_start(harness: DocumentHarness) -> None:
    told = await fact(harness, "旧事")
    room = retention(harness)
    await room.apply(room.build_rules(None, None), check_progress)
    assert (await events(harness))[told].payload == {"content": "旧事"}

    harness.restart()
    await harness.memory.reconcile()

    assert (await events(harness))[told].payload == {}


async def test_the_same_event_again_is_known_and_does_not_come_back(harness: DocumentHarness) -> None:
    told = await fact(harness, "旧事", event_id="evt_theirs")
    await apply(harness)

    assert await fact(harness, "旧事", event_id="evt_theirs") == told
    assert (await events(harness))[told].payload == {}


async def test_a_line_restored_meanwhile_stays(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("会回来的问题")
    event_id = next(iter(await events(harness)))
    await harness.log.append([DraftBuilder(harness.redactor).build_expiry([event_id])])
    shown = harness.text

    await harness.memory.reconcile()

    assert harness.text == shown
    assert [event.type for event in (await events(harness)).values()] == ["exchange_recorded", PAYLOAD_EXPIRED]


async def test_an_expiry_on_one_device_erases_nothing_on_another(harness: DocumentHarness, tmp_path: Path) -> None:
    told = await fact(harness, "旧事")

    async with open_document_harness(tmp_path / "b", device="device-b") as there:
        await there.pull_from(harness)
        await apply(harness)
        path = tmp_path / "all.xbm"
        here, taking = (archive_of(one) for one in (harness, there))
        await here.export(path, document=b"", settings={}, passphrase=None, on_progress=check_progress)
        await taking.import_path(path, passphrase=None, dry_run=False, on_progress=check_progress)
        await there.memory.reconcile()

        assert (await events(there))[told].payload == {"content": "旧事"}
        assert PAYLOAD_EXPIRED not in {event.type for event in (await events(there)).values()}


async def test_importing_the_archive_elsewhere_restores_everything(harness: DocumentHarness, tmp_path: Path) -> None:
    told = await fact(harness, "旧事")
    done = await apply(harness)

    async with open_document_harness(tmp_path / "b", device="device-b") as there:
        await introduce(there.log, harness.log)
        taken = await import_archive(there, Path(done.archive or ""))

        assert (taken.recorded, isinstance(taken, ArchiveImportResult)) == (1, True)
        assert (await events(there))[told].payload == {"content": "旧事"}
        assert (await events(there))[told].ts == OLD


async def test_expired_events_are_not_exported_and_are_imported_from_their_archive_in_either_order(
    harness: DocumentHarness, tmp_path: Path
) -> None:
    told, kept = await fact(harness, "旧事"), await fact(harness, "新事", ts=None)
    gone = await fact(harness, "要忘的", ts=None)
    archive = Path((await apply(harness)).archive or "")
    await erasure.request(harness.log, DraftBuilder(harness.redactor), [gone])
    await harness.memory.reconcile()
    everything = tmp_path / "all.xbm"
    await archive_of(harness).export(everything, document=b"", settings={}, passphrase=None, on_progress=check_progress)
    lines = b"".join(
        data for name, data in ArchiveReader.open_verified(everything, None).read_parts() if name.startswith("events/")
    )
    assert [f'"event_id":"{event_id}"'.encode() in lines for event_id in (told, kept, gone)] == [False, True, True]

    for name, order in (("b", (everything, archive)), ("c", (archive, everything))):
        async with open_document_harness(tmp_path / name, device=f"device-{name}") as there:
            await introduce(there.log, harness.log)
            assert (await import_archive(there, order[0])).known == 0
            assert (await import_archive(there, order[1])).known == 0
            payloads = {event_id: event.payload for event_id, event in (await events(there)).items()}
            assert (payloads[told], payloads[kept], payloads[gone]) == ({"content": "旧事"}, {"content": "新事"}, {})


@pytest.mark.parametrize("of", ["this device", "another device"])
async def test_an_expired_row_is_refilled_from_an_archive_and_found(
    harness: DocumentHarness, tmp_path: Path, of: str
) -> None:
    told = await fact(harness, "火锅在巷子里")
    archive = Path((await apply(harness)).archive or "")
    async with open_document_harness(tmp_path / "b", device="device-b") as there:
        await there.pull_from(harness)
        await introduce(there.log, harness.log)
        at = harness if of == "this device" else there
        recall = RecallService(at.log, at.clock, RecallSettings(), may_index=True)
        assert (await recall.search(SearchRequest("火锅"))).hits == ()

        before = (await events(at))[told]
        assert (await import_archive(at, archive, dry_run=True)).recorded == 1
        assert (await events(at))[told] == before
        taken = await import_archive(at, archive)
        await at.memory.reconcile()

        assert (taken.recorded, taken.known, (await import_archive(at, archive)).known) == (1, 0, 1)
        assert (await events(at))[told] == replace(before, payload={"content": "火锅在巷子里"})
        assert [hit.item.text for hit in (await recall.search(SearchRequest("火锅"))).hits] == ["火锅在巷子里"]
        assert await at.log.find_problems() == []


async def test_an_event_erased_after_archiving_is_restored_from_no_copy(
    harness: DocumentHarness, tmp_path: Path
) -> None:
    told = await fact(harness, "去年的秘密")
    copy = shutil.copy((await apply(harness)).archive or "", tmp_path / "copy.xbm")
    await erasure.request(harness.log, DraftBuilder(harness.redactor), [told])
    await harness.memory.reconcile()
    async with open_document_harness(tmp_path / "b", device="device-b") as there:
        wishes = (await harness.log.read(Query(types=(PAYLOAD_FORGOTTEN,)))).events
        await there.database.write(lambda connection: log_store.insert_events(connection, wishes))
        for at in (harness, there):
            assert (await import_archive(at, Path(copy))).known == 1
            assert "秘密" not in str(await events(at))


async def test_a_corrected_event_comes_back_corrected_from_its_archive_and_from_no_unsigned_copy(
    harness: DocumentHarness, tmp_path: Path
) -> None:
    told = await fact(harness, "路过蓝猫7391，别忘了")
    former = tmp_path / "former.xbm"
    await archive_of(harness).export(former, document=b"", settings={}, passphrase=None, on_progress=check_progress)
    await rescan.rescan(harness.log, Redactor(extra_patterns=["蓝猫[0-9]+"]), harness.clock, local=True, apply=True)
    await harness.memory.reconcile()
    archive = Path((await apply(harness)).archive or "")

    assert (await import_archive(harness, former)).recorded == 0
    unsigned = without_signature(Path(shutil.copy(archive, tmp_path / "unsigned.xbm")))
    assert (await import_archive(harness, unsigned)).recorded == 0
    assert (await events(harness))[told].payload == {}
    assert (await import_archive(harness, archive)).recorded == 2
    refilled = (await events(harness))[told]
    assert (refilled.payload, "unproven" in refilled.extra) == ({"content": "路过[自定义]，别忘了"}, False)


async def test_an_unsent_expired_event_is_sent_with_its_payload_or_not_at_all(
    harness: DocumentHarness,
) -> None:
    told, kept = await fact(harness, "旧事"), await fact(harness, "新事", ts=None)
    archive = Path((await apply(harness)).archive or "")
    assert [event.event_id for event in await pending_events(harness)] == [kept]

    await import_archive(harness, archive)

    assert {event.event_id: event.payload for event in await pending_events(harness)}[told] == {"content": "旧事"}
    assert await harness.log.find_problems() == []


async def test_requests_are_applied_a_few_per_transaction(harness: DocumentHarness) -> None:
    drafts = [
        DraftBuilder(harness.redactor).build(
            {"type": "memory_fact", "payload": {"content": f"旧事 {number}"}, "ts": OLD}
        )
        for number in range(2_400)
    ]
    await harness.log.append(drafts)
    done = await retention(harness).apply(retention(harness).build_rules(None, None), check_progress)
    assert done.forgotten == 2_400
    await harness.memory.versions.catch_up()

    def left(connection: Transaction) -> int:
        return sum(bool(event.payload) for event in log_store.read_by_types(connection, ["memory_fact"], after=0))

    assert await harness.database.read(left) == 0
    assert archived(done).count("\n") == 2_400


async def test_an_erased_event_leaves_the_archives_and_the_rest_stays_byte_for_byte(harness: DocumentHarness) -> None:
    room = retention(harness)
    going, _ = await fact(harness, "去年的秘密"), await fact(harness, "去年的口味")
    one = await apply(harness, room)
    await fact(harness, "去年的天气")
    other = Path((await apply(harness, room)).archive or "").read_bytes()
    assert await room.apply_retractions() == 0

    held = await erasure.request(harness.log, DraftBuilder(harness.redactor), [going])
    await harness.memory.reconcile()
    assert (held, await room.apply_retractions()) == ([going], 1)

    assert "秘密" not in archived(one)
    assert "口味" in archived(one)
    assert Path(one.archive or "").stat().st_mode & 0o077 == 0
    files = list(Path(one.archive or "").parent.iterdir())
    assert len(files) == 2, "nothing half written is left beside them"
    assert other in [path.read_bytes() for path in files]
    assert await room.apply_retractions() == 0
    taken = await archive_of(harness).import_path(
        Path(one.archive or ""), passphrase=None, dry_run=False, on_progress=check_progress
    )
    assert (taken.source, taken.recorded) == ("archive", 1)


async def test_erasure_by_text_searches_the_archives(harness: DocumentHarness) -> None:
    room = retention(harness)
    going, _ = await fact(harness, "去年的秘密"), await fact(harness, "去年的口味")
    await apply(harness, room)
    assert await erasure.select_events(harness.log, ErasureSelection("秘密")) == []
    assert [event.event_id for event in await room.find_archived(ErasureSelection("秘密"))] == [going]
    year = [to_unix_ms(datetime(year, 1, 1, tzinfo=UTC)) for year in (2025, 2026)]
    assert len(await room.find_archived(ErasureSelection(since_ms=year[0], until_ms=year[1]))) == 2
    assert await room.find_archived(ErasureSelection("秘密", since_ms=year[1])) == []


async def test_the_messages_of_an_erased_exchange_leave_the_archive_with_it(harness: DocumentHarness) -> None:
    said = ExchangeInput("很久以前问过什么" * 20, "很久以前答过什么" * 20, "sess_a")
    drafts = draft_exchange_events(said, harness.redactor, device_id="device-a", store_messages=True)
    exchange, *messages = await harness.log.append(drafts)
    await harness.memory.reconcile()
    harness.clock.advance(days=29)  # the document shows the exchange, nothing shows the messages
    room = retention(harness, days=20)
    done = await apply(harness, room)
    assert archived(done).count('"part"') == len(messages) > 0
    assert exchange.event.event_id not in archived(done)
    wished = await erasure.request(harness.log, DraftBuilder(harness.redactor), [exchange.event.event_id])
    assert wished[1:] == [message.event.event_id for message in messages], "the cloud is to forget them too"
    await harness.memory.reconcile()
    assert await room.apply_retractions() == len(messages)
    assert archived(done) == ""


def one_byte_is_another(archive: Path, path: Path) -> None:
    path.write_bytes(gzip.compress(gzip.decompress(archive.read_bytes()).replace(b"xiaobai", b"xiao\xffai", 1)))


def one_line_is_no_json(archive: Path, path: Path) -> None:
    """Write an archive whose hashes agree but whose content is wrong."""
    with path.open("wb") as file:
        writing = ArchiveWriter(file, None, os.urandom)
        for name, data in ArchiveReader.open_verified(archive, None).read_parts():
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


def content_of(path: Path) -> object:
    """The bytes of a file; of anything else what it is. Reading it changes the time of the last access."""
    found = path.lstat()
    return path.read_bytes() if path.is_file() else (found.st_mode, found.st_ino, found.st_mtime_ns)


@pytest.mark.parametrize("damage", UNREADABLE, ids=HOW)
async def test_an_archive_that_cannot_be_read_is_left_alone_and_stops_no_other(
    harness: DocumentHarness, damage: Callable[[Path, Path], object]
) -> None:
    room = retention(harness)
    going = await fact(harness, "去年的秘密")
    done = await apply(harness, room)
    damaged = Path(done.archive or "").with_name("0000.xbm")
    damage(Path(done.archive or ""), damaged)
    before = content_of(damaged)
    seen: list[Event] = []

    assert await room.visit_archived(seen.append) == ("0000.xbm",)
    assert [event.event_id for event in seen] == [going]
    assert [event.event_id for event in await room.find_archived(ErasureSelection("秘密"))] == [going]
    assert await room.archived_corrections_of([going]) == []
    await erasure.request(harness.log, DraftBuilder(harness.redactor), [going])
    assert await room.apply_retractions() == 1

    assert "秘密" not in archived(done)
    assert content_of(damaged) == before


async def test_an_archive_that_could_not_be_opened_is_rewritten_as_soon_as_it_can_be(
    harness: DocumentHarness,
) -> None:
    room = retention(harness)
    going = await fact(harness, "去年的秘密")
    done = await apply(harness, room)
    path = Path(done.archive or "")
    aside = path.rename(harness.file.with_name("aside"))
    path.symlink_to("nowhere")
    await erasure.request(harness.log, DraftBuilder(harness.redactor), [going])
    await harness.memory.reconcile()
    assert await room.apply_retractions() == 0

    aside.replace(path)
    assert await room.apply_retractions() == 1
    assert archived(done) == ""


async def test_an_archive_that_cannot_be_rewritten_is_reported_and_rewritten_later(
    harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = retention(harness)
    going = []
    archives = []
    for number in range(2):
        going.append(await fact(harness, f"去年的秘密 {number}"))
        archives.append(await apply(harness, room))
        harness.clock.advance(seconds=1)
    first = str(archives[0].archive)
    await erasure.request(harness.log, DraftBuilder(harness.redactor), going)
    await harness.memory.reconcile()
    replace = os.replace

    def failing(source: Path, target: Path) -> None:
        if str(target) == first:
            raise OSError(errno.EIO, "Input/output error")
        replace(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", failing)
        with pytest.raises(StorageError):
            await room.apply_retractions()
    assert ["秘密" in archived(done) for done in archives] == [True, False]

    assert await room.apply_retractions() == 1
    assert [archived(done) for done in archives] == ["", ""]


async def test_partial_files_are_removed_even_if_there_is_no_archive(
    harness: DocumentHarness,
) -> None:
    room = retention(harness)
    folder = harness.file.parent / "archive" / "default"
    folder.mkdir(parents=True)
    left = folder / ".2025-01-02T030405-0a1b2c3d.xbm.0a1b2c3d.part"
    left.write_text("去年的秘密")
    assert await room.apply_retractions() == 0
    assert list(folder.iterdir()) == []

    await fact(harness, "去年的口味")
    left.write_text("去年的秘密")
    done = await apply(harness, room)
    assert list(folder.iterdir()) == [Path(done.archive or "")]


async def test_an_archive_that_another_process_writes_is_left_alone(harness: DocumentHarness) -> None:
    folder = harness.file.parent / "archive" / "default"
    folder.mkdir(parents=True)
    with partial_file(folder / "theirs.xbm") as (temporary, file):
        file.write(b"theirs")
        await retention(harness).apply_retractions()
        assert list(folder.iterdir()) == [temporary]


def test_moved_archives_replace_none_and_are_not_doubled_after_a_kill(tmp_path: Path) -> None:
    former, heir = tmp_path / "former", tmp_path / "heir"
    for folder, files in (
        (former, {"a.xbm": b"one", "b.xbm": b"two", "c.xbm": b"three"}),
        (heir, {"b.xbm": b"two", "c.xbm": b"of the heir"}),
    ):
        folder.mkdir()
        for name, data in files.items():
            (folder / name).write_bytes(data)

    for _ in range(2):
        move_archives(former, heir)
        assert list_archives(former) == []
        assert (heir / "c.xbm").read_bytes() == b"of the heir"
        assert sorted(path.read_bytes() for path in list_archives(heir)) == [b"of the heir", b"one", b"three", b"two"]
