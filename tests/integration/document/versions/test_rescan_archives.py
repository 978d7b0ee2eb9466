"""Archived events are scanned with stricter rules too: corrected in the archive and everywhere else."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from sync.archive.container import ArchiveReader
from sync.db.engine import Transaction
from sync.document.erasure.corrections import changed_hashes
from sync.document.erasure.erasure import request
from sync.document.versions import rescan
from sync.document.versions.rescan import RescanResult
from sync.errors import StorageError
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.ingest import DraftBuilder
from sync.log.model import CLOUD, Event, Query
from sync.redaction import Redactor
from sync.retention.service import RetentionConfig, RetentionService
from tests.integration.document.harness import DocumentHarness, open_document_harness
from tests.support import signer_of

OLD = "2025-01-02T03:04:05.000Z"
CANARY = "蓝猫7391"
STRICTER = Redactor(extra_patterns=["蓝猫[0-9]+"])
STRICTEST = Redactor(extra_patterns=["蓝猫[0-9]+", "红狗[0-9]+"])


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[DocumentHarness]:
    async with open_document_harness(tmp_path / "a") as harness:
        yield harness


def retention_of(harness: DocumentHarness) -> RetentionService:
    folder = harness.file.parent
    household = RetentionConfig(folder / "archive", folder / "archives.lock", 30, -1, has_cloud=False)
    return RetentionService(
        harness.log, DraftBuilder(harness.redactor), household, signer_of(harness.log), clock=harness.clock
    )


async def archive(harness: DocumentHarness) -> Path:
    """Move old events from the log into an archive."""
    room = retention_of(harness)
    done = await room.apply(room.build_rules(None, None), lambda _done, _total: None)
    await harness.memory.reconcile()
    assert done.archive is not None
    return Path(done.archive)


async def fact(harness: DocumentHarness, text: str, kind: str = "memory_fact") -> str:
    draft = DraftBuilder(harness.redactor, store_messages=True).build(
        {"type": kind, "payload": {"content": text}, "ts": OLD, "more": 1}
    )
    return (await harness.log.append([draft]))[0].event.event_id


async def rescan_with_new_rules(
    harness: DocumentHarness,
    rules: Redactor = STRICTER,
    *,
    apply: bool = True,
    local: bool = True,
    archives: Any = None,
) -> RescanResult:
    """Scan with the stricter rules, after a restart."""
    harness.redactor = rules
    harness.restart()
    archives = archives or retention_of(harness)
    found = await rescan.rescan(harness.log, rules, harness.clock, local=local, apply=apply, archives=archives)
    await harness.memory.reconcile()
    return found


def lines(path: Path) -> list[dict[str, Any]]:
    parts = ArchiveReader.open_verified(path, None).read_parts()
    return [json.loads(line) for name, data in parts if name.startswith("events/") for line in data.splitlines()]


def said(path: Path) -> dict[str, str]:
    """The payload of each archived event, by its id."""
    return {line["event_id"]: json.dumps(line["payload"], ensure_ascii=False) for line in lines(path)}


async def events(harness: DocumentHarness) -> dict[str, Event]:
    return {event.event_id: event for event in (await harness.log.read(Query())).events}


async def waiting(harness: DocumentHarness) -> list[Event]:
    """What is still to be sent to the cloud."""

    def looking(connection: Transaction) -> list[Event]:
        return log_store.read_at_positions(connection, outbox_store.pending_positions(connection, CLOUD, 100))

    return await harness.database.read(looking)


class Killed:
    """The archives of a process that is killed after it recorded the corrections."""

    def __init__(self, harness: DocumentHarness) -> None:
        self._room = retention_of(harness)

    async def visit_archived(self, visitor: Callable[[Event], None]) -> tuple[str, ...]:
        return await self._room.visit_archived(visitor)

    async def apply_retractions(self, corrected_payloads: Mapping[str, Mapping[str, Any]]) -> int:
        raise asyncio.CancelledError(str(len(corrected_payloads)))


async def test_a_dry_run_counts_what_is_archived_and_changes_nothing(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile("你好")
    told = await fact(harness, f"代号叫{CANARY}")
    lesson = await fact(harness, f"教训{CANARY}", kind="lesson_observed")
    path = await archive(harness)
    before, data = await events(harness), path.read_bytes()

    found = await rescan_with_new_rules(harness, apply=False)

    assert (found.corrected, found.counts, found.applied, found.unread) == ((told, lesson), {"自定义": 2}, False, ())
    assert (await events(harness), path.read_bytes()) == (before, data)
    assert await rescan.needs_rescan(harness.log, STRICTER)


async def test_what_is_archived_is_corrected_there_and_asked_of_everybody(harness: DocumentHarness) -> None:
    told, other = await fact(harness, f"代号叫{CANARY}，别忘了"), await fact(harness, "去年的口味")
    path = await archive(harness)
    former = {line["event_id"]: line for line in lines(path)}

    found = await rescan_with_new_rules(harness)

    assert found.corrected == (told,)
    after = {line["event_id"]: line for line in lines(path)}
    assert after == {**former, told: {**former[told], "payload": {"content": "代号叫[自定义]，别忘了"}}}
    assert list(after) == [told, other]
    fact_sent, correction, wish = await waiting(harness)
    assert (fact_sent.event_id, fact_sent.payload) == (told, correction.payload["payload"])
    assert correction.payload == {"event_id": told, "payload": {"content": "代号叫[自定义]，别忘了"}}
    assert wish.payload == {"event_ids": [told]}
    assert CANARY not in str(await events(harness))
    data = path.read_bytes()
    assert (await retention_of(harness).apply_retractions(), path.read_bytes()) == (0, data)
    assert (await rescan_with_new_rules(harness)).corrected == ()
    assert (len(await waiting(harness)), path.read_bytes()) == (3, data)


async def test_what_never_leaves_this_device_changes_in_the_archive_alone(harness: DocumentHarness) -> None:
    told = await fact(harness, f"教训{CANARY}", kind="lesson_observed")
    path = await archive(harness)
    assert (await rescan_with_new_rules(harness, local=False)).corrected == ()
    assert CANARY in said(path)[told]
    before = await events(harness)

    assert (await rescan_with_new_rules(harness)).corrected == (told,)

    assert said(path) == {told: '{"content": "教训[自定义]"}'}
    assert (await events(harness), await waiting(harness)) == (before, [])


async def test_killed_before_the_archives_changed_they_do_at_the_next_start_or_are_found_again(
    harness: DocumentHarness,
) -> None:
    await harness.record_and_reconcile("你好")
    told = await fact(harness, f"代号叫{CANARY}")
    lesson = await fact(harness, f"教训{CANARY}", kind="lesson_observed")
    path = await archive(harness)
    with pytest.raises(asyncio.CancelledError):
        await rescan_with_new_rules(harness, archives=Killed(harness))
    assert CANARY in said(path)[told]
    assert (await rescan_with_new_rules(harness, apply=False)).corrected == (lesson,), (
        "the other is as good as corrected"
    )

    assert await retention_of(harness).apply_retractions() == 1
    assert said(path)[told] == '{"content": "代号叫[自定义]"}'
    assert await rescan.needs_rescan(harness.log, STRICTER)
    assert (await rescan_with_new_rules(harness)).corrected == (lesson,)
    assert said(path)[lesson] == '{"content": "教训[自定义]"}'
    assert not await rescan.needs_rescan(harness.log, STRICTER)


async def test_killed_at_the_swap_the_old_archive_is_whole(
    harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = await fact(harness, f"代号叫{CANARY}")
    path = await archive(harness)

    def dying(source: Path, target: Path) -> None:
        assert CANARY not in str(lines(Path(source))), "what is put in its place"
        raise KeyboardInterrupt(target)

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", dying)
        with pytest.raises(KeyboardInterrupt):
            await rescan_with_new_rules(harness)
    assert CANARY in said(path)[told]

    harness.restart()
    assert await retention_of(harness).apply_retractions() == 1
    assert said(path) == {told: '{"content": "代号叫[自定义]"}'}
    assert [found.name for found in path.parent.iterdir()] == [path.name]


async def test_another_device_is_corrected_and_its_archive_keeps_the_event(
    harness: DocumentHarness, tmp_path: Path
) -> None:
    told = await fact(harness, f"代号叫{CANARY}")
    path = await archive(harness)
    async with (
        open_document_harness(tmp_path / "b", device="device-b") as there,
        open_document_harness(tmp_path / "c", device="c") as third,
    ):
        for one in (there, third):
            await one.pull_from(harness)
            full = {**(await events(one))}[told]
            assert full.payload == {}, "the harness hands out what its log holds"
            await one.database.write(lambda connection: log_store.replace_payload(connection, told, said_in(path)))
        theirs = await archive(third)
        assert CANARY in said(theirs)[told]

        await rescan_with_new_rules(harness)
        for one in (there, third):
            await one.pull_from(harness)

        assert (await events(there))[told].payload == {"content": "代号叫[自定义]"}
        assert await retention_of(third).apply_retractions() == 1
        assert said(theirs) == {told: '{"content": "代号叫[自定义]"}'}


def said_in(path: Path) -> dict[str, Any]:
    (line,) = lines(path)
    return dict(line["payload"])


async def test_what_was_corrected_before_it_was_archived_stays_in_its_archive(harness: DocumentHarness) -> None:
    told = await fact(harness, f"代号叫{CANARY}，别忘了")
    await rescan_with_new_rules(harness)
    path = await archive(harness)

    assert await retention_of(harness).apply_retractions() == 0
    assert said(path)[told] == '{"content": "代号叫[自定义]，别忘了"}'


async def test_stricter_rules_twice_leave_no_archive_with_what_they_found(harness: DocumentHarness) -> None:
    told = await fact(harness, f"{CANARY}和红狗22")
    first = await archive(harness)
    await rescan_with_new_rules(harness)
    assert (await events(harness))[told].payload == {"content": "[自定义]和红狗22"}
    harness.clock.advance(days=40)
    second = await archive(harness)
    assert {told: said(second)[told]} == said(first)
    assert (await events(harness))[told].payload == {}

    await rescan_with_new_rules(harness, STRICTEST)

    for path in (first, second):
        assert said(path)[told] == '{"content": "[自定义]和[自定义]"}'
        assert "红狗" not in str(lines(path))
    assert "红狗" not in str(await events(harness))
    assert (await rescan_with_new_rules(harness, STRICTEST)).corrected == ()


async def test_what_no_document_has_carried_out_yet_can_be_corrected_again_and_forgotten(
    harness: DocumentHarness,
) -> None:
    told = await fact(harness, f"{CANARY}和红狗22")
    path = await archive(harness)
    for rules in (STRICTER, STRICTEST):
        found = await rescan.rescan(
            harness.log, rules, harness.clock, local=True, apply=True, archives=retention_of(harness)
        )
        assert told in found.corrected
    assert said(path) == {told: '{"content": "[自定义]和[自定义]"}'}

    assert told in await request(harness.log, DraftBuilder(STRICTEST), [told])
    await harness.memory.reconcile()
    await retention_of(harness).apply_retractions()

    assert said(path) == {}
    assert [event.payload for event in (await events(harness)).values() if "和" in str(event.payload)] == []


async def test_what_was_corrected_and_archived_can_still_be_forgotten(harness: DocumentHarness) -> None:
    told = await fact(harness, f"代号叫{CANARY}，别忘了")
    first = await archive(harness)
    await rescan_with_new_rules(harness)
    harness.clock.advance(days=40)
    second = await archive(harness)

    again = await retention_of(harness).archived_corrections_of([told])
    assert await request(harness.log, DraftBuilder(STRICTER), [told, *again]) == [told, *again]
    await retention_of(harness).apply_retractions()

    assert (len(again), said(first), said(second)) == (1, {}, {})


async def test_what_was_forgotten_is_not_brought_back_by_an_archive_that_could_not_be_read_then(
    harness: DocumentHarness,
) -> None:
    told = await fact(harness, f"代号叫{CANARY}")
    path = await archive(harness)
    data = path.read_bytes()
    path.write_bytes(b"no archive")
    await request(harness.log, DraftBuilder(harness.redactor), [told])
    await harness.memory.reconcile()
    assert await retention_of(harness).apply_retractions() == 0
    path.write_bytes(data)

    assert (await rescan_with_new_rules(harness)).corrected == ()


async def test_archives_that_cannot_be_read_are_told_left_alone_and_stop_no_other(harness: DocumentHarness) -> None:
    told = await fact(harness, f"代号叫{CANARY}")
    path = await archive(harness)
    damaged = path.with_name("0000.xbm")
    damaged.write_bytes(b"no archive")
    path.with_name("0001.xbm").symlink_to("nowhere")

    found = await rescan_with_new_rules(harness)

    assert (found.corrected, found.unread) == ((told,), ("0000.xbm", "0001.xbm"))
    assert damaged.read_bytes() == b"no archive"
    assert said(path) == {told: '{"content": "代号叫[自定义]"}'}


async def test_a_pending_erasure_reaches_events_that_are_archived_now(
    harness: DocumentHarness,
) -> None:
    await fact(harness, "更早的")
    await archive(harness)
    told, left = await fact(harness, "不要了的"), await fact(harness, "留下的")
    await request(harness.log, DraftBuilder(harness.redactor), [told])
    assert await retention_of(harness).apply_retractions() == 0, "no archive holds it, and the log still does"
    harness.clock.advance(seconds=1)

    path = await archive(harness)

    assert list(said(path)) == [left]


async def test_if_an_archive_cannot_be_rewritten_no_new_one_is_begun(harness: DocumentHarness) -> None:
    path = await archive_of(harness, "更早的")
    going = await fact(harness, "不要了的")
    await request(harness.log, DraftBuilder(harness.redactor), [going])
    await harness.memory.reconcile()
    await fact(harness, "留下的")
    path.unlink()
    path.mkdir()  # which cannot be opened

    with pytest.raises(StorageError):
        await archive(harness)

    assert [found.name for found in path.parent.iterdir()] == [path.name]


async def test_one_process_at_a_time_is_at_work_on_the_archives(
    harness: DocumentHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sync.retention.service.LOCK_TIMEOUT", 0.0)
    told = await fact(harness, f"教训{CANARY}", kind="lesson_observed")
    path = await archive(harness)
    data, room = path.read_bytes(), retention_of(harness)
    with FileLock(harness.file.parent / "archives.lock"):
        for work in (room.visit_archived(print), room.apply_retractions({told: {"content": "别的"}})):
            with pytest.raises(StorageError):
                await work
    assert path.read_bytes() == data
    assert await room.apply_retractions({told: {"content": "别的"}}) == 1


async def archive_of(harness: DocumentHarness, text: str) -> Path:
    await fact(harness, text)
    return await archive(harness)


async def test_a_lines_new_hash_reaches_what_names_it_in_an_archive(harness: DocumentHarness) -> None:
    await harness.record_and_reconcile(f"记住{CANARY}")
    (line,) = (event for event in (await events(harness)).values() if event.type == "exchange_recorded")
    assert line.payload["question"] == f"记住{CANARY}"
    before, now = next(changed_hashes(line, {**line.payload, "question": "记住[自定义]"}))
    draft = DraftBuilder(harness.redactor, store_messages=True).build(
        {"type": "memory_fact", "payload": {"base_hash": before, "content": "它"}, "ts": OLD}
    )
    naming = (await harness.log.append([draft]))[0].event.event_id
    path = await archive(harness)

    await rescan_with_new_rules(harness)

    assert json.loads(said(path)[naming])["base_hash"] == now
