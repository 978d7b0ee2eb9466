"""Export and import: complete, verified, encrypted, repeatable, and redacted again."""

import errno
import gzip
import io
import json
import os
import tarfile
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sync.archive.container import ArchiveReader, ArchiveWriter
from sync.archive.encryption import CHUNK_BYTES, MAGIC, SALT_BYTES, TAG_BYTES
from sync.archive.model import ArchiveImportResult
from sync.archive.service import ArchiveService
from sync.document.versions.importer import DocumentImporter
from sync.document.versions.own_projection import OwnProjection
from sync.document.versions.writer import VersionWriter
from sync.errors import InvalidInput
from sync.jsonl.event_import import EventImport
from sync.jsonl.model import ImportCounts
from sync.log import store as log_store
from sync.log.authorship import ANSWER, Author, author_of
from sync.log.envelope import bounded_hlc
from sync.log.model import DOOR_FIELD, Door, Event, Origin
from sync.texts.language import LanguageChoice
from tests.chat_export_samples import CHATGPT, CLAUDE, claude
from tests.proof import first_in_test
from tests.support import (
    REDACTOR,
    Device,
    FixedClock,
    event,
    introduce,
    new_server,
    open_device,
    signer_of,
    without_signature,
)

PASSPHRASE = "一个很长的口令 correct horse"
CANARY = "sk-ant-" + "api03-" + "Zq9" * 31


@pytest.fixture
async def device(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path / "a", new_server(), single_threaded=True) as opened:
        yield opened


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Device]:
    clock = FixedClock(seed=3)
    async with open_device(
        tmp_path / "b", new_server(), device_id="device-b", clock=clock, single_threaded=True
    ) as opened:
        yield opened


def check_progress(done: int, total: int) -> None:
    assert done <= total


async def store(device: Device, *events: Event) -> None:
    await device.database.write(log_store.insert_events, events)


def archive(device: Device) -> ArchiveService:
    projection = OwnProjection(device.log, REDACTOR, clock=device.clock, language=LanguageChoice())
    writer = VersionWriter(device.log, REDACTOR, device.clock, keep_versions=200, projection=projection)
    return ArchiveService(
        device.log, device.intake, DocumentImporter(writer, Path(__file__)), signer_of(device.log), clock=device.clock
    )


async def export(device: Device, path: Path, passphrase: str | None = None) -> Path:
    told = await archive(device).export(
        path,
        document="# 记忆\n".encode(),
        settings={"log_level": "INFO"},
        passphrase=passphrase,
        on_progress=check_progress,
    )
    assert (told.bytes, told.sealed) == (path.stat().st_size, passphrase is not None)
    return path


async def import_archive(
    device: Device, path: Path, passphrase: str | None = None, *, dry_run: bool = False, is_mine: bool = False
) -> ArchiveImportResult:
    return await archive(device).import_path(
        path, passphrase=passphrase, dry_run=dry_run, on_progress=check_progress, is_mine=is_mine
    )


def comparable_facts(found: list[Event]) -> list[tuple[Any, ...]]:
    return [(e.event_id, e.ts, e.type, e.payload, e.project_id, e.session_id, e.origin, e.local_date) for e in found]


async def fill_log(device: Device, count: int) -> None:
    for start in range(0, count, 500):
        await device.record_notes(*(f"第 {number} 条，爬山" for number in range(start, min(start + 500, count))))
        device.clock.advance(86_400)


@pytest.mark.parametrize("passphrase", first_in_test([PASSPHRASE, None]))
async def test_an_export_is_imported_on_another_machine_event_for_event(
    device: Device, other: Device, tmp_path: Path, passphrase: str | None
) -> None:
    await fill_log(device, 2_300)
    path = await export(device, tmp_path / "all.xbm", passphrase)
    other.intake = replace(other.intake, store_messages=True)

    counted = await import_archive(other, path, passphrase, dry_run=True, is_mine=True)
    assert (counted.recorded, await other.events()) == (2_300, [])
    taken = await import_archive(other, path, passphrase, is_mine=True)

    assert (taken.found, taken.recorded, taken.known, taken.refused) == (2_300, 2_300, 0, 0)
    columns = (
        "select event_id, device_id, replica_id, replica_seq, hlc, ts, type, payload, origin, local_date from events"
    )
    assert await other.rows(columns) == await device.rows(columns)
    assert (await other.log.outbox()).pending == 0
    assert await other.log.find_problems() == []
    again = await import_archive(other, path, passphrase)
    assert (again.recorded, again.known) == (0, 2_300)


async def test_what_a_device_of_the_account_signed_is_stored_as_if_it_was_pulled(
    device: Device, other: Device, tmp_path: Path
) -> None:
    await device.record_notes("一", "二")
    await introduce(other.log, device.log)
    whole = await export(device, tmp_path / "all.xbm")
    unsigned = without_signature(whole)
    for path in (whole, unsigned):
        taken = await import_archive(other, path, dry_run=True)
        assert (taken.recorded, taken.unproven) == (2, 0)
    await import_archive(other, unsigned)
    found = [(e.event_id, e.device_id, e.replica_key, e.hlc) for e in await other.events()]
    assert found == [(e.event_id, e.device_id, e.replica_key, e.hlc) for e in await device.events()]
    assert (await other.log.outbox()).pending == 0


async def test_what_nothing_proves_is_a_new_event_of_this_device_that_keeps_its_source_and_its_order(
    device: Device, other: Device, tmp_path: Path
) -> None:
    planted = event(1, replica="rep_x", payload={"content": f"我对 {CANARY} 过敏"}, type="memory_fact")
    await store(device, planted)
    await other.record_notes("之前")
    path = await export(device, tmp_path / "all.xbm")
    taken = await import_archive(other, path)

    assert (taken.recorded, taken.unproven) == (1, 1)
    imported = (await other.events())[-1]
    assert (imported.device_id, imported.replica_id, imported.origin) == ("device-b", other.replica_id, "imported")
    assert (imported.door, imported.ts) == (str(Door.IMPORT), planted.ts)
    source = {"event_id": planted.event_id, "device_id": "device-a", "hlc": planted.hlc, "origin": "user-typed"}
    assert imported.extra["imported_from"] == source
    assert bounded_hlc(imported) == planted.hlc < imported.hlc
    assert CANARY not in str(await other.events())
    assert (await other.log.outbox()).pending == 2
    again = await import_archive(other, path)
    assert (again.recorded, again.known) == (0, 1)
    assert (await import_archive(device, path)).recorded == 0


async def test_a_file_that_nothing_proves_erases_nothing_and_names_only_its_own_lines(
    device: Device, other: Device, tmp_path: Path
) -> None:
    mine = event(1, event_id="evt_mine", device="device-b", replica="rep_b", payload={"text": "我的"})
    await store(other, mine)
    named = {"entry_id": "ent_a", "section": ["s"], "after": "", "text": "- 一"}
    await store(
        device,
        event(1, type="entry_added", payload=named),
        event(2, type="entry_removed", payload={"entry_id": "ent_a", "section": ["s"]}),
        event(3, type="payload_forgotten", payload={"event_ids": ["evt_mine"]}),
        event(4, type="exchange_recorded", event_id="evt_x", payload={"question": "问", "answer": "答"}),
        event(5, type="entry_edited", payload={"entry_id": "evt_x.q", "section": ["s"], "text": "- 二"}),
    )
    await import_archive(other, await export(device, tmp_path / "all.xbm"))

    found = await other.events()
    assert found[0].payload == mine.payload
    added, removed, exchange, edited = found[1:]
    assert added.payload["entry_id"] == removed.payload["entry_id"] != "ent_a"
    assert edited.payload["entry_id"] == f"{exchange.event_id}.q"
    assert exchange.event_id != "evt_x"


async def test_a_copy_that_another_import_made_is_the_same_event_and_the_original_is_known(
    device: Device, other: Device, tmp_path: Path
) -> None:
    entry = {"entry_id": "ent_1", "section": ["用户偏好"], "after": "", "text": "- 一"}
    await device.log.append([device.intake.build({"type": "entry_added", "payload": entry})])
    original = await export(device, tmp_path / "original.xbm")
    await import_archive(other, original)
    copy = await export(other, tmp_path / "copy.xbm")
    assert (await import_archive(device, copy)).recorded == 0
    async with open_device(tmp_path / "c", new_server(), device_id="device-c", single_threaded=True) as third:
        for path in (copy, original):
            await import_archive(third, path)
        (found,) = await third.events()
        assert found.event_id == (await other.events())[0].event_id
        assert found.extra["imported_from"] == (await other.events())[0].extra["imported_from"]


async def test_a_signed_archive_proves_nothing_that_its_exporter_had_no_proof_of(
    device: Device, other: Device, tmp_path: Path
) -> None:
    await store(device, event(1, device="device-c", replica="rep_c", extra={"unproven": True}))
    await introduce(other.log, device.log)
    taken = await import_archive(other, await export(device, tmp_path / "all.xbm"))
    assert (taken.recorded, taken.unproven) == (1, 1)
    assert {found.origin for found in await other.events()} == {"imported"}


async def test_what_was_erased_here_comes_back_from_no_file(device: Device, other: Device, tmp_path: Path) -> None:
    (event_id,) = await device.record_notes("忘掉")
    path = await export(device, tmp_path / "all.xbm")
    await other.log.append([other.intake.build_erasure([event_id])])
    for is_mine in (False, True):
        await import_archive(other, path, is_mine=is_mine)
        assert "忘掉" not in str(await other.events())


async def test_a_repeated_import_changes_nothing_and_an_interrupted_one_continues(
    device: Device, other: Device, tmp_path: Path
) -> None:
    await fill_log(device, 700)
    path = await export(device, tmp_path / "all.xbm")
    (values, *_) = [data for name, data in ArchiveReader.open_verified(path, None).read_parts() if "events/" in name]
    first = [(str(at), json.loads(line)) for at, line in enumerate(values.splitlines()[:500])]
    await EventImport(other.log, other.intake, signer_of(other.log), other.clock).take(first, ImportCounts())

    taken = await import_archive(other, path)
    assert (taken.recorded, taken.known) == (200, 500)
    before = await other.rows("select * from events")
    again = await import_archive(other, path)

    assert (again.recorded, again.known) == (0, 700)
    assert await other.rows("select * from events") == before
    assert (await import_archive(device, path)).recorded == 0


async def test_a_file_never_raises_the_numbers_of_this_replica(device: Device, other: Device, tmp_path: Path) -> None:
    kept = event(7, replica="rep_c", device="device-c")
    displaced = event(7, replica="rep_c", device="device-c")
    beyond = event(10**9, replica=other.replica_id, device="device-b", hlc="0193a5b2c3d4-0009")
    await store(device, displaced, beyond)
    await store(other, kept)

    assert (await import_archive(other, await export(device, tmp_path / "all.xbm"), is_mine=True)).recorded == 2

    found = {e.event_id: e.replica_key for e in await other.events()}
    assert found[displaced.event_id] == (displaced.event_id, 1)
    assert found[beyond.event_id] == (beyond.event_id, 1)
    assert (await other.log.outbox()).pending == 1, "its own one is sent, because the server may lack it"
    await other.record_notes("一")
    assert [e.replica_seq for e in await other.events() if e.replica_id == other.replica_id] == [1]
    assert await other.log.find_problems() == []


async def test_a_wrong_or_missing_passphrase_is_reported(device: Device, other: Device, tmp_path: Path) -> None:
    await device.record_notes("一")
    path = await export(device, tmp_path / "all.xbm", PASSPHRASE)

    assert "爬山".encode() not in path.read_bytes()
    for passphrase, words in (("another one", "does not open"), (None, "takes its passphrase")):
        with pytest.raises(InvalidInput, match=words):
            await import_archive(other, path, passphrase)
    with pytest.raises(InvalidInput, match="at least"):
        await export(device, tmp_path / "short.xbm", "short")


@pytest.mark.parametrize("passphrase", first_in_test([PASSPHRASE, None]))
async def test_a_changed_byte_and_a_cut_off_file_are_refused_before_anything_is_imported(
    device: Device, other: Device, tmp_path: Path, passphrase: str | None
) -> None:
    await device.record_notes(*(f"{device.clock.random_bytes(400).hex()}" for _ in range(200)))
    whole = (await export(device, tmp_path / "all.xbm", passphrase)).read_bytes()
    broken = tmp_path / "broken.xbm"
    middle = bytearray(whole)
    middle[len(whole) // 2] ^= 1
    chunk = len(MAGIC) + SALT_BYTES + CHUNK_BYTES + TAG_BYTES
    for data in (bytes(middle), whole[: len(whole) // 2], whole[:chunk], whole[:-1], whole[:-30]):
        broken.write_bytes(data)
        with pytest.raises(InvalidInput):
            await import_archive(other, broken, passphrase)

    assert await other.events() == []


async def test_an_export_never_replaces_a_file(device: Device, tmp_path: Path) -> None:
    await device.record_notes("一")
    path = await export(device, tmp_path / "all.xbm")
    before = path.read_bytes()

    with pytest.raises(InvalidInput, match="exists"):
        await export(device, path)

    assert path.read_bytes() == before
    assert [found.name for found in tmp_path.iterdir() if found.suffix == ".part"] == []
    assert path.stat().st_mode & 0o077 == 0


async def test_the_next_export_to_the_same_path_removes_partial_files(device: Device, tmp_path: Path) -> None:
    await device.record_notes("一")
    names = [".all.xbm.0a1b2c3d.part", ".other.xbm.0a1b2c3d.part"]
    for name in names:
        (tmp_path / name).write_text("words")
    await export(device, tmp_path / "all.xbm")
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".part"] == names[1:]


@pytest.mark.parametrize("appears_late", [False, True])
async def test_without_hard_links_an_archive_is_written_and_replaces_no_file(
    device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, appears_late: bool
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    await device.record_notes("一")
    path = await export(device, tmp_path / "all.xbm")
    if appears_late:  # while it is being written
        monkeypatch.setattr(Path, "exists", lambda _path: False)
    with pytest.raises(InvalidInput, match="exists"):
        await export(device, path)
    assert [found.name for found in tmp_path.iterdir() if found.suffix == ".part"] == []


async def test_any_tar_reads_an_archive(device: Device, tmp_path: Path) -> None:
    await device.record_notes("一")
    path = await export(device, tmp_path / "all.xbm")

    with tarfile.open(path) as packed:
        names = packed.getnames()
        lines = packed.extractfile("events/000001.jsonl")
        assert lines is not None
        assert json.loads(lines.read())["payload"] == {"text": "一"}
    assert names == ["about.json", "events/000001.jsonl", "documents/current.md", "settings.json", "manifest.json"]


def forged(path: Path, *parts: tuple[str, bytes]) -> Path:
    with gzip.open(path, "wb") as packed, tarfile.open(fileobj=packed, mode="w|") as tar:
        for name, data in parts:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


async def test_an_archive_of_a_newer_version_is_refused_by_its_number(device: Device, tmp_path: Path) -> None:
    about = {
        "format": "xiaobai-memory archive",
        "version": 2,
        "created_at": "",
        "program": "9",
        "device_id": "",
        "head": 0,
    }
    path = forged(tmp_path / "new.xbm", ("about.json", json.dumps(about).encode()))

    with pytest.raises(InvalidInput, match="version 2"):
        await import_archive(device, path)


@pytest.mark.parametrize(("exported", "turns"), [(CLAUDE, 2), (CHATGPT, 1)])
async def test_conversations_of_other_programs_become_sessions_with_their_dates_once(
    device: Device, tmp_path: Path, exported: Any, turns: int
) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(exported), "utf-8")

    assert (await import_archive(device, path, dry_run=True)).recorded == turns + 2
    assert await device.events() == []
    taken = await import_archive(device, path)

    assert (taken.conversations, taken.recorded, taken.refused) == (1, turns + 2, 0)
    found = await device.events()
    assert [event.type for event in found] == ["session_started", *["exchange_recorded"] * turns, "session_ended"]
    assert {event.origin for event in found} == {str(Origin.IMPORTED)}
    former = [replace(event, extra={DOOR_FIELD: str(Door.UPDATE)}) for event in found]  # of earlier versions
    assert {author_of(one, part).author for one in (*found, *former) for part in ("", ANSWER)} == {Author.FILE}
    assert {event.extra[DOOR_FIELD] for event in found} == {str(Door.IMPORT)}
    assert len({event.session_id for event in found}) == 1
    assert all(event.ts.startswith("2024-") and event.local_date.startswith("2024-") for event in found)
    assert {event.payload["in_document"] for event in found if event.type == "exchange_recorded"} == {False}
    assert (await import_archive(device, path)).recorded == 0


async def test_a_later_export_that_holds_more_brings_only_what_is_new(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(CLAUDE), "utf-8")
    await import_archive(device, path)
    grown = [{**CLAUDE[0], "chat_messages": [*CLAUDE[0]["chat_messages"], claude("m-5", "assistant", "不用", 5)]}]
    grown[0]["chat_messages"].append(claude("m-6", "human", f"好，密钥是 {CANARY}", 6))
    path.write_text(json.dumps(grown), "utf-8")

    taken = await import_archive(device, path)

    assert (taken.recorded, taken.known) == (2, 4)
    assert CANARY not in str(await device.events())
    assert (await import_archive(device, path)).recorded == 0


async def test_each_answer_that_a_later_export_holds_is_recorded_whole_and_once(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    said = CLAUDE[0]["chat_messages"]
    more = [
        claude("m-5", "assistant", "不用", 5),
        claude("m-6", "assistant", "带一把也好", 6),
        claude("m-7", "human", "好"),
    ]
    recorded = []
    for count in range(2, len(said) + len(more) + 1):
        path.write_text(json.dumps([{**CLAUDE[0], "chat_messages": [*said, *more][:count]}]), "utf-8")
        counted = (await import_archive(device, path, dry_run=True)).recorded
        recorded.append((await import_archive(device, path)).recorded)
        assert counted == recorded[-1]

    assert recorded == [3, 1, 1, 1, 1, 1]
    exchanges = [e.payload for e in await device.events() if e.type == "exchange_recorded"]
    assert [(said["question"], said["answer"]) for said in exchanges] == [
        ("去哪里爬山", "香山"),
        ("", "或者百望山"),
        ("要带伞吗", ""),
        ("", "不用"),
        ("", "带一把也好"),
        ("好", ""),
    ]


async def test_a_later_export_does_not_bring_back_a_forgotten_turn(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(CLAUDE), "utf-8")
    await import_archive(device, path)
    asked = next(e for e in await device.events() if e.payload.get("question") == "要带伞吗")
    await device.database.write(lambda connection: log_store.erase_payloads(connection, [asked.event_id]))
    grown = [{**CLAUDE[0], "chat_messages": [*CLAUDE[0]["chat_messages"], claude("m-5", "assistant", "不用", 5)]}]
    path.write_text(json.dumps(grown), "utf-8")

    assert (await import_archive(device, path)).recorded == 0


def packed(path: Path, *, how: int = zipfile.ZIP_DEFLATED) -> bytes:
    with zipfile.ZipFile(path, "w", how) as zipped:
        zipped.writestr("conversations.json", json.dumps(CLAUDE))
    return path.read_bytes()


def changed(data: bytes, *places: tuple[int, int, int]) -> bytes:
    """Return a zip with one byte changed in the header of its member and in the directory."""
    found = bytearray(data)
    directory = data.index(b"PK\x01\x02")
    for at, listed, to in places:
        found[at] = found[directory + listed] = to
    return bytes(found)


async def test_a_conversation_out_of_the_calendar_is_imported_without_its_day(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    late = "9999-12-31T23:59:59Z"
    said = [{**claude("m-1", "human", "?"), "created_at": late}]
    path.write_text(json.dumps([{"uuid": "c-2", "created_at": late, "chat_messages": said}, *CLAUDE]), "utf-8")

    assert (await import_archive(device, path)).recorded == 3 + 4
    assert sorted({event.local_date for event in await device.events()}) == ["2024-05-01", "2026-02-02"]


async def test_an_export_with_a_byte_order_mark_is_imported(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(CLAUDE), "utf-8-sig")

    assert (await import_archive(device, path)).recorded == 4


async def test_an_export_that_cannot_be_unpacked_or_decoded_is_refused(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "export.zip"
    whole = packed(path)
    broken = bytearray(whole)
    broken[50:60] = b"\xff" * 10
    compressed_in_another_way = changed(whole, (8, 10, 99))
    for data in (bytes(broken), compressed_in_another_way, b"[" * 200_000 + b"]" * 200_000, b'[{"a": "\xc4\xe3"}]'):
        path.write_bytes(data)
        with pytest.raises(InvalidInput, match=r"no export that is known|no conversation"):
            await import_archive(device, path)
    path.write_bytes(changed(whole, (6, 8, 1)))
    with pytest.raises(InvalidInput, match="locked") as caught:
        await import_archive(device, path)
    assert "conversations.json" in caught.value.hint


async def test_one_event_of_an_archive_that_cannot_be_decoded_stops_no_other(
    device: Device, other: Device, tmp_path: Path
) -> None:
    await device.record_notes("一")
    path, forged_at = await export(device, tmp_path / "all.xbm"), tmp_path / "forged.xbm"
    with forged_at.open("wb") as file:
        writing = ArchiveWriter(file, None, os.urandom)
        for name, data in ArchiveReader.open_verified(path, None).read_parts():
            writing.add(name, b'"\xc4\xe3"\n' + data if name.startswith("events/") else data)
        writing.finish()

    taken = await archive(other).import_path(
        forged_at, passphrase=None, dry_run=False, on_progress=lambda _done, _total: None
    )

    assert (taken.recorded, taken.refused) == (1, 1)


async def test_a_part_that_is_not_utf_8_is_reported_as_damage(device: Device, tmp_path: Path) -> None:
    for about in (b'{"format": "\xff"}', b"[" * 200_000):
        path = forged(tmp_path / "broken.xbm", ("about.json", about))
        with pytest.raises(InvalidInput, match="damaged"):
            await import_archive(device, path)


async def test_an_unknown_file_is_refused(device: Device, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for data in (b"[]", b"{", b"PK", b""):
        path.write_bytes(data)
        with pytest.raises(InvalidInput):
            await import_archive(device, path)
    with pytest.raises(InvalidInput, match="no file"):
        await import_archive(device, tmp_path / "gone.json")
