"""The log scanned again with stricter rules: what they find is redacted everywhere, and nothing else is."""

import json
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from sync.db.engine import Transaction
from sync.document.erasure.erasure import request
from sync.document.versions import rescan
from sync.document.versions.rescan import RescanResult
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.ingest import DraftBuilder
from sync.log.model import CLOUD, Event, Query
from sync.redaction import Redactor
from tests.integration.document.harness import DocumentHarness, open_document_harness

CANARY = "蓝猫7391"
STRICTER = Redactor(extra_patterns=["蓝猫[0-9]+"])


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "a") as harness:
        yield harness


async def rescan_with_new_rules(harness: DocumentHarness, *, apply: bool = True) -> RescanResult:
    """Scan with the stricter rules, after a restart."""
    harness.redactor = STRICTER
    harness.restart()
    found = await rescan.rescan(harness.log, STRICTER, harness.clock, local=True, apply=apply)
    await harness.memory.reconcile()
    return found


async def events(harness: DocumentHarness) -> tuple[Event, ...]:
    return (await harness.log.read(Query())).events


async def note(harness: DocumentHarness, kind: str, text: str) -> str:
    draft = DraftBuilder(harness.redactor).build({"type": kind, "payload": {"content": text, "n": 1}})
    return (await harness.log.append([draft]))[0].event.event_id


def bytes_of(harness: DocumentHarness) -> bytes:
    """Everything on the disk, uncompressed."""
    import zlib  # noqa: PLC0415 - only here

    found = b"".join(path.read_bytes() for path in sorted(harness.file.parent.iterdir()) if path.is_file())
    with closing(sqlite3.connect(harness.database.path)) as connection:
        versions = [zlib.decompress(row[0]) for row in connection.execute("select bytes from written")]
    return found + b"".join(versions)


async def test_a_dry_run_counts_and_changes_nothing(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile(f"我的代号叫{CANARY}")
    before, text = await events(harness), harness.text

    found = await rescan_with_new_rules(harness, apply=False)

    assert (found.events, found.counts, found.applied) == (1, {"自定义": 1}, False)
    assert await events(harness) == before
    assert harness.text == text
    assert await rescan.needs_rescan(harness.log, STRICTER)


async def test_captured_words_go_from_log_file_versions_and_freed_pages(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile(f"记住{CANARY}这句话", "别的事")
    noted = await note(harness, "memory_fact", f"事实 {CANARY}")
    lesson = await note(harness, "lesson_learned", f"教训 {CANARY}")
    before = {event.event_id: event for event in await events(harness)}
    assert CANARY.encode() in bytes_of(harness)

    found = await rescan_with_new_rules(harness)
    await harness.database.purge(vacuum=True)

    assert set(found.corrected) == {event_id for event_id in before if CANARY in str(before[event_id].payload)}
    assert CANARY.encode() not in bytes_of(harness)
    assert "- 用户问：记住[自定义]这句话\n" in harness.text
    assert "- 用户问：别的事\n" in harness.text
    after = {event.event_id: event for event in await events(harness)}
    assert after[noted].payload == {"content": "事实 [自定义]", "n": 1}
    assert after[lesson].payload == {"content": "教训 [自定义]", "n": 1}
    for event_id, event in before.items():
        for kept in ("ts", "type", "local_date", "origin", "hlc", "replica_seq", "session_id", "position"):
            assert getattr(after[event_id], kept) == getattr(event, kept)
    assert not await rescan.needs_rescan(harness.log, STRICTER)
    assert (await rescan.rescan(harness.log, STRICTER, harness.clock, local=True, apply=False)).corrected == ()


async def test_what_was_typed_here_stays_in_the_file_and_leaves_the_log(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("你好")
    harness.add_line_under("### 工作习惯", f"- 猫叫{CANARY}")
    await harness.memory.reconcile()

    await rescan_with_new_rules(harness)

    assert f"- 猫叫{CANARY}\n" in harness.text
    assert CANARY not in str(await events(harness))


async def test_a_count_and_a_line_edited_by_hand_are_kept(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile(f"甲{CANARY}", f"乙{CANARY}")
    harness.replace(f"甲{CANARY}", f"甲{CANARY}（×2）")
    harness.replace(f"乙{CANARY}", f"乙乙{CANARY}")
    await harness.memory.reconcile()

    await rescan_with_new_rules(harness)

    assert "- 用户问：甲[自定义]（×2）\n" in harness.text
    assert f"- 用户问：乙乙{CANARY}\n" in harness.text  # the user has changed the line


async def test_the_correction_is_sent_before_the_request_to_erase(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile(f"记住{CANARY}")

    await rescan_with_new_rules(harness)

    def waiting(connection: Transaction) -> list[Event]:
        return log_store.read_at_positions(connection, outbox_store.pending_positions(connection, CLOUD, 100))

    told = await harness.database.read(waiting)
    assert [event.type for event in told] == ["exchange_recorded", "payload_redacted", "payload_forgotten"]
    assert told[1].payload["event_id"] == told[0].event_id
    assert told[2].payload == {"event_ids": [told[0].event_id]}
    assert CANARY not in json.dumps([dict(event.payload) for event in told], ensure_ascii=False)


async def test_an_event_whose_id_looks_like_a_secret_is_corrected_under_its_id_once(harness: DocumentHarness) -> None:
    name = "a4ayc_80_OGda4BO" + "_1o_V0etpOqiLx1JwB5S3beHW0s"
    value = {"type": "memory_fact", "event_id": name, "payload": {"content": f"事实 {CANARY}"}}
    await harness.log.append([DraftBuilder(harness.redactor).build(value, ids_are_known=True)])

    found = await rescan_with_new_rules(harness)

    assert found.corrected == (name,)
    said = {event.event_id: event for event in await events(harness)}
    assert said[name].payload == {"content": "事实 [自定义]"}
    told = [event.payload for event in said.values() if event.type != "memory_fact"]
    assert told == [{"event_id": name, "payload": {"content": "事实 [自定义]"}}, {"event_ids": [name]}]
    assert (await rescan_with_new_rules(harness)).corrected == ()


async def test_stricter_rules_twice_correct_the_correction(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile(f"记住{CANARY}和红狗22")
    await rescan_with_new_rules(harness)
    strictest = Redactor(extra_patterns=["蓝猫[0-9]+", "红狗[0-9]+"])
    await rescan.rescan(harness.log, strictest, harness.clock, local=True, apply=True)
    await harness.memory.reconcile()

    assert "- 用户问：记住[自定义]和[自定义]\n" in harness.text
    assert "红狗" not in str(await events(harness))


async def test_what_was_corrected_can_still_be_forgotten(harness: DocumentHarness) -> None:
    event_id = await harness.record_exchange(f"记住{CANARY}和别的")
    await harness.memory.reconcile()
    await rescan_with_new_rules(harness)

    await request(harness.log, DraftBuilder(STRICTER), [event_id])
    await harness.memory.reconcile()

    assert "和别的" not in harness.text
    assert "和别的" not in str(await events(harness))


async def test_an_erased_event_gets_no_correction(harness: DocumentHarness) -> None:
    event_id = await harness.record_exchange(f"记住{CANARY}和别的")
    await harness.memory.reconcile()
    await request(harness.log, DraftBuilder(STRICTER), [event_id])

    await rescan_with_new_rules(harness)

    assert "和别的" not in harness.text
    assert "和别的" not in str(await events(harness))


async def test_a_new_device_that_gets_the_blank_event_and_the_correction_shows_it(tmp_path: Path) -> None:
    async with open_document_harness(tmp_path / "a") as one, open_document_harness(tmp_path / "b") as again:
        await one.record_and_reconcile(f"记住{CANARY}这句话")
        await rescan_with_new_rules(one)
        page = await events(one)

        def taking(connection: Transaction) -> None:
            for event in page:
                log_store.insert_event(connection, event)
            log_store.erase_payloads(connection, [page[0].event_id])

        await again.database.write(taking)
        again.redactor = STRICTER
        again.restart()
        await again.memory.reconcile()

        assert "- 用户问：记住[自定义]这句话\n" in again.text
