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

from sync.archive.archive_items import ArchiveLineParser
from sync.archive.container import INFO_PART, ArchiveReader, ArchiveWriter
from sync.archive.encryption import CHUNK_BYTES, MAGIC, SALT_BYTES, TAG_BYTES
from sync.archive.item_import import ImportItem
from sync.archive.model import ArchiveImportResult
from sync.archive.service import ArchiveService
from sync.document.markdown.language import LanguageChoice
from sync.document.versions.importer import DocumentImporter
from sync.document.versions.own_projection import OwnProjection
from sync.document.versions.writer import VersionWriter
from sync.errors import InvalidInput
from sync.log import store as log_store
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import Event, Origin
from tests.chat_export_samples import CHATGPT, CLAUDE, claude
from tests.proof import first_in_test
from tests.support import REDACTOR, Device, FixedClock, draft, event, new_server, open_device

PASSPHRASE = "一个很长的口令 correct horse"
CANARY = "sk-ant-" + "api03-" + "Zq9" * 31


@pytest.fixture
async def device(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path / "a", new_server(), single_threaded=True) as opened:
        yield opened


@pytest.fixture
async def other(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path / "b", new_server(), device_id="device-b", single_threaded=True) as opened:
        yield opened


def check_progress(done: int, total: int) -> None:
    assert done <= total


def archive(device: Device) -> ArchiveService:
    projection = OwnProjection(device.log, REDACTOR, clock=device.clock, language=LanguageChoice())
    writer = VersionWriter(device.log, REDACTOR, device.clock, keep_versions=200, projection=projection)
    return ArchiveService(device.log, device.intake, DocumentImporter(writer), clock=device.clock)


async def export(device: Device, path: Path, passphrase: str | None = None) -> Path:
    told = await archive(device).export(
        path, document="# 记忆\n", settings={"log_level": "INFO"}, passphrase=passphrase, on_progress=check_progress
    )
    assert (told.bytes, told.sealed) == (path.stat().st_size, passphrase is not None)
    return path


async def import_archive(
    device: Device, path: Path, passphrase: str | None = None, *, dry_run: bool = False
) -> ArchiveImportResult:
    return await archive(device).import_path(path, passphrase=passphrase, dry_run=dry_run, on_progress=check_progress)


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

    counted = await import_archive(other, path, passphrase, dry_run=True)
    assert (counted.recorded, await other.events()) == (2_300, [])
    taken = await import_archive(other, path, passphrase)

    assert (taken.found, taken.recorded, taken.known, taken.refused) == (2_300, 2_300, 0, 0)
    columns = (
        "select event_id, ts, type, payload, project_id, session_id, origin, local_date from events order by position"
    )
    assert await other.rows(columns) == await device.rows(columns)
    assert (await other.events())[0].extra == {"imported_device_id": "device-a"}
    assert (await other.log.outbox()).pending == 2_300
    assert await other.log.find_problems() == []


async def test_events_with_sensitive_ids_and_events_that_name_them_are_imported(
    device: Device, other: Device, tmp_path: Path
) -> None:
    name = "a4ayc_80_OGda4BO" + "_1o_V0etpOqiLx1JwB5S3beHW0s"
    value = {"type": "memory_fact", "event_id": name, "session_id": "13800138000", "payload": {"content": "爬山"}}
    await device.log.append([device.intake.build(value, ids_are_known=True)])
    await device.log.append([device.intake.build_erasure([name])])

    taken = await import_archive(other, await export(device, tmp_path / "all.xbm"))

    assert (taken.recorded, taken.refused) == (2, 0)
    first, second = await other.events()
    assert (first.event_id, first.session_id) == (name, "13800138000")
    assert second.payload == {"event_ids": [name]}


async def test_a_repeated_import_changes_nothing_and_an_interrupted_one_continues(
    device: Device, other: Device, tmp_path: Path
) -> None:
    await fill_log(device, 700)
    path = await export(device, tmp_path / "all.xbm")
    first = _items(other, path)[:500]
    await archive(other).item_importer.append(first, ArchiveImportResult("archive"))

    taken = await import_archive(other, path)
    assert (taken.recorded, taken.known) == (200, 500)
    before = await other.rows("select * from events")
    again = await import_archive(other, path)

    assert (again.recorded, again.known) == (0, 700)
    assert await other.rows("select * from events") == before
    assert (await import_archive(device, path)).recorded == 0


def _items(device: Device, path: Path) -> list[ImportItem]:
    reader = ArchiveReader.open_verified(path, None)
    parser = ArchiveLineParser(device.log.device_id, device.intake, reader.info)
    return [
        item
        for name, data in reader.read_parts()
        if name.startswith("events/")
        for item in parser.parse(data, ArchiveImportResult("archive"), lambda: None)[0]
    ]


async def test_events_of_other_devices_stay_theirs_and_are_not_sent(
    device: Device, other: Device, tmp_path: Path
) -> None:
    theirs = event(7, replica="rep_c", device="device-c")
    taken = ArchiveImportResult("test")
    await archive(device).item_importer.append([theirs], taken)
    path = await export(device, tmp_path / "all.xbm")

    await import_archive(other, path)

    (found,) = await other.events()
    assert (found.device_id, found.replica_id, found.replica_seq, found.hlc) == ("device-c", "rep_c", 7, theirs.hlc)
    assert (await other.log.outbox()).pending == 0


@pytest.mark.parametrize("of_before", [False, True])
async def test_events_under_a_former_device_id_are_imported_as_own_ones(
    device: Device, other: Device, tmp_path: Path, of_before: bool
) -> None:
    unnamed = EventLog(device.database, device.clock, device_id="before-the-app", session_id="sess_1")
    await unnamed.append([draft("第一天的火锅")])
    await device.record_notes("第二天的爬山")
    await archive(device).item_importer.append(
        [event(7, replica="rep_c", device="device-c", server_seq=7)], ArchiveImportResult("test")
    )
    path = await export(device, tmp_path / "all.xbm")
    if of_before:
        path = without_ids(path, tmp_path / "before.xbm")

    assert (await import_archive(other, path)).recorded == 3

    found = await other.events()
    assert {found.device_id for found in found if found.replica_id != "rep_c"} == {"device-b"}
    assert sorted(found.extra.get("imported_device_id", "") for found in found) == ["", "before-the-app", "device-a"]
    assert (await other.log.outbox()).pending == 2


def without_ids(path: Path, to: Path) -> Path:
    """Return the archive as an older version wrote it, with one device id."""
    reading = ArchiveReader.open_verified(path, None)
    with to.open("wb") as file:
        writing = ArchiveWriter(file, None, os.urandom)
        for name, data in reading.read_parts():
            about = json.loads(data) if name == INFO_PART else {}
            about.pop("device_ids", None)
            writing.add(name, json.dumps(about).encode() if about else data)
        writing.finish()
    return to


async def test_a_long_message_of_another_device_is_whole_and_an_own_one_is_shortened(
    device: Device, other: Device, tmp_path: Path
) -> None:
    own, theirs = ({"role": "user", "content": who * 300} for who in "我他")
    (recorded,) = DraftBuilder(REDACTOR, store_messages=True).build_batch([{"type": "message", "payload": own}])
    await device.log.append([recorded])
    await archive(device).item_importer.append(
        [event(7, replica="rep_c", device="device-c", type="message", payload=theirs)], ArchiveImportResult("test")
    )
    path = await export(device, tmp_path / "all.xbm")

    counted = await import_archive(other, path, dry_run=True)
    taken = await import_archive(other, path)

    assert (taken.recorded, taken.shortened, counted.shortened) == (2, 1, 1)
    found = {found.device_id: found.payload for found in await other.events()}
    assert found["device-c"] == theirs
    assert found["device-b"]["content_length"] == 300
    again = await import_archive(other, path)
    assert (again.known, again.shortened) == (2, 0)
    assert (await import_archive(device, await export(other, tmp_path / "back.xbm"))).refused == 0


async def test_an_event_whose_number_is_taken_is_refused_and_not_counted_as_known(
    device: Device, other: Device, tmp_path: Path
) -> None:
    await device.record_notes("一")
    kept = event(7, replica="rep_c", device="device-c")
    displaced = event(7, replica="rep_c", device="device-c")
    await archive(device).item_importer.append([displaced], ArchiveImportResult("test"))
    await archive(other).item_importer.append([kept], ArchiveImportResult("test"))
    path = await export(device, tmp_path / "all.xbm")

    counted = await import_archive(other, path, dry_run=True)
    taken = await import_archive(other, path)

    for told in (counted, taken):
        assert (told.found, told.recorded, told.known, told.refused) == (2, 1, 0, 1)
        assert told.refusals == [(displaced.event_id, "its place is another event's here")]
    assert await other.log.find_problems() == []


async def test_imported_numbers_of_this_replica_are_used_up(other: Device, tmp_path: Path) -> None:
    async with open_device(
        tmp_path / "c", new_server(), device_id="device-c", clock=FixedClock(seed=5), single_threaded=True
    ) as one:
        await one.record_notes("一")
        ours = event(3, replica=other.replica_id, device="before-it-was-restored")
        await archive(one).item_importer.append([ours], ArchiveImportResult("test"))
        path = await export(one, tmp_path / "all.xbm")

    assert (await import_archive(other, path)).recorded == 2

    found = {found.event_id: found.replica_seq for found in await other.events()}
    assert (found[ours.event_id], sorted(found.values())) == (3, [3, 4])
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


async def test_secrets_in_an_archive_are_redacted(device: Device, other: Device, tmp_path: Path) -> None:
    planted = event(1, replica="rep_c", device="device-c", payload={"text": f"钥匙 {CANARY}"})
    own = event(2, replica="rep_x", device="device-a", payload={"text": f"钥匙 {CANARY}"})
    await archive(device).item_importer.append([planted, own], ArchiveImportResult("test"))
    assert CANARY in str(await device.events())

    await import_archive(other, await export(device, tmp_path / "all.xbm"))

    assert len(await other.events()) == 2
    assert CANARY not in str(await other.events())


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
        with pytest.raises(InvalidInput, match="no export that is known"):
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
