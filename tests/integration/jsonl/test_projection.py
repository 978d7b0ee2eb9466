"""The JSONL files: the content of the log, whole lines only, the same bytes after following and after a rebuild."""

import asyncio
import json
import os
from collections import defaultdict
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from msgspec.structs import replace

from sync.errors import StorageBusy, StorageError
from sync.jsonl import event_file
from sync.jsonl.model import INDEX_BLOCK, SAFE_NAME, FileKey, decode_line, encode_line, file_key_of, safe_file_name
from sync.jsonl.projection import JsonlProjection, RebuiltJson, read_exported_position
from sync.log import store as log_store
from sync.log.event_types import PAYLOAD_REDACTED
from sync.log.model import EventDraft, Origin, Query
from sync.log.projections.external import ExternalProjectionRunner
from tests.support import Device, new_server, open_device

HOSTILE = (
    "..",
    ".",
    "../../etc",
    "a/b",
    "a\\b",
    "C:",
    "con",
    "nul.x",
    "A",
    "a.",
    "字",
    "x" * 256,
    "a~b",
    "-a",
    " a",
    "a:b",
)


@pytest.fixture
async def device(tmp_path: Path) -> AsyncIterator[Device]:
    async with open_device(tmp_path / "device", new_server(), single_threaded=True) as opened:
        yield opened


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "files"


def message_event(
    kind: str, number: int = 0, *, project: str = "proj_a", month: str = "02", **payload: Any
) -> dict[str, Any]:
    return {
        "type": kind,
        "project_id": project,
        "project_path": f"/家/{project}",
        "session_id": f"sess_{number % 3}",
        "ts": f"2026-{month}-0{number % 9 + 1}T10:00:00.000Z",
        "payload": payload,
    }


async def record(device: Device, *given: dict[str, Any]) -> list[str]:
    recorded = await device.log.append(device.intake.build_batch(list(given)))
    return [item.event.event_id for item in recorded]


def sample_events(count: int) -> list[dict[str, Any]]:
    """Return events of two projects in two months, with tags, starts and ends."""
    kinds: tuple[tuple[str, dict[str, Any]], ...] = (
        ("session_started", {}),
        ("memory_fact", {"content": "用 \u2028 FastAPI", "tags": ["api", "字"]}),
    )
    found = []
    for number in range(count):
        kind, payload = kinds[number % 2]
        found.append(
            message_event(kind, number, project=f"proj_{number % 2}", month=f"0{2 + number % 4 // 2}", **payload)
        )
    return found


def everything(root: Path) -> dict[str, bytes]:
    kept = {path for path in root.rglob("*") if path.is_file() and path.suffix != ".lock"}
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(kept)}


async def from_the_log(device: Device) -> dict[str, bytes]:
    """Return what the files of events must hold."""
    found: defaultdict[str, bytes] = defaultdict(bytes)
    for event in (await device.log.read(Query(limit=100_000))).events:
        key = file_key_of(event)
        found[f"events/{key.month}/{key.stem}.jsonl"] += encode_line(event)
    return dict(found)


def runner_of(device: Device, root: Path) -> ExternalProjectionRunner[RebuiltJson]:
    return ExternalProjectionRunner(device.log, JsonlProjection(root, device.log), device.clock)


def lines_of(root: Path) -> dict[str, bytes]:
    return {name: data for name, data in everything(root).items() if name.endswith(".jsonl")}


async def reset_watermark(device: Device, position: int) -> None:
    """Set the offset back, as a process killed between its files and its offset leaves it."""
    await device.database.write(lambda connection: log_store.set_watermark(connection, "jsonl", position, device.clock))


class TestFollowing:
    async def test_files_have_the_places_of_the_seed_and_the_content_of_the_log(
        self, device: Device, root: Path
    ) -> None:
        runner = runner_of(device, root)
        first = message_event("session_started", 0, project="proj_abcd1234")
        (event_id,) = await record(device, first)
        await record(device, message_event("memory_fact", 1, project="proj_abcd1234", month="03", tags=["api"]))
        assert await runner.catch_up() == 2
        (text,) = (root / "events/2026-02/project_proj_abcd1234_events.jsonl").read_text("utf-8").splitlines()
        kept = json.loads(text)
        assert {name: kept[name] for name in first} == first
        assert kept["event_id"] == event_id
        assert list(kept)[:8] == [
            *("schema_version", "event_id", "project_id", "project_path", "session_id", "ts", "type", "payload")
        ]
        assert (root / "events/2026-03/project_proj_abcd1234_events.idx").exists()
        assert json.loads((root / "sessions/2026-02/sess_0.meta.json").read_text("utf-8"))["started_at"] == first["ts"]
        index = {path.stem: json.loads(path.read_text("utf-8")) for path in (root / "index").iterdir()}
        assert index["projects"] == {"proj_abcd1234": {"path": "/家/proj_abcd1234", "name": "proj_abcd1234"}}
        assert index["sessions_by_project"] == {"proj_abcd1234": ["sess_0", "sess_1"]}
        assert list(index["tags"]) == ["api"]

    async def test_a_line_has_the_whole_event(self, device: Device, root: Path) -> None:
        await record(device, *sample_events(20))
        await device.database.write(
            lambda connection: connection.exec_driver_sql(
                'update events set extra = \'{"door": "hand", "held": "waits"}\''
            )
        )
        await runner_of(device, root).catch_up()
        lines = [line for data in lines_of(root).values() for line in data.splitlines()]
        events = (await device.log.read(Query())).events
        assert sorted((decode_line(line) for line in lines), key=lambda event: event.position if event else 0) == list(
            events
        )

    def test_a_line_of_format_1_keeps_its_device_and_time_and_gets_a_replica_of_its_own(self) -> None:
        envelope = message_event("memory_fact", 1) | {"device_id": "device-a", "hlc": "01a21e1046a0-0000"}
        line = {**envelope, "event_id": "evt_1", "origin": "user-typed", "schema_version": 1, "position": 7}
        event = decode_line(json.dumps(line).encode())
        assert event is not None
        assert (event.device_id, event.hlc, event.position) == ("device-a", "01a21e1046a0-0000", 7)
        assert event.replica_key == ("evt_1", 1)
        assert decode_line(json.dumps({**line, "hlc": "no time"}).encode()) is None

    async def test_following_and_rebuilding_give_the_same_bytes(
        self, device: Device, root: Path, tmp_path: Path
    ) -> None:
        runner = runner_of(device, root)
        for given in sample_events(12):
            await record(device, given)
            await runner_of(device, root).catch_up()  # each in a new process
        await record(device, *sample_events(40), message_event("session_finalized", 1, reason="done"))
        await runner.catch_up()
        followed = everything(root)
        assert lines_of(root) == await from_the_log(device)
        again = await runner.rebuild()
        assert (again.written, again.removed, again.files) == (0, 0, 5)
        assert everything(root) == followed
        await runner_of(device, tmp_path / "other").rebuild()
        assert everything(tmp_path / "other") == followed

    async def test_a_command_completes_the_files_in_a_folder_set_later(
        self, device: Device, root: Path, tmp_path: Path
    ) -> None:
        await record(device, *sample_events(12))
        await runner_of(device, root).catch_up()
        await record(device, message_event("x", 1))
        elsewhere = runner_of(device, tmp_path / "other")
        assert await elsewhere.catch_up(batches=1) == 13
        assert lines_of(tmp_path / "other") == await from_the_log(device)
        assert await elsewhere.catch_up(batches=1) == 0

    async def test_an_exit_during_a_repair_still_writes_the_last_events(self, device: Device, root: Path) -> None:
        runner = runner_of(device, root)
        await runner.catch_up()
        await record(device, *sample_events(12))
        repairing = asyncio.create_task(runner.repair())
        await asyncio.sleep(0)  # it holds the lock now
        assert await runner.catch_up(batches=1) == 12
        assert lines_of(root) == await from_the_log(device)
        await repairing

    async def test_files_that_are_not_all_written_report_no_position(
        self, device: Device, root: Path, tmp_path: Path
    ) -> None:
        await record(device, *sample_events(12))
        await runner_of(device, root).catch_up()
        other = tmp_path / "other"
        other.mkdir()
        (other / "sessions").write_text("in the way")
        with pytest.raises(StorageError):
            await runner_of(device, other).catch_up()
        assert await read_exported_position(other, device.log) == 0
        (other / "sessions").unlink()
        await runner_of(device, other).catch_up()
        assert await read_exported_position(other, device.log) == await device.log.newest_position()
        assert everything(other) == everything(root)

    async def test_another_program_can_continue_reading_the_same_file(self, device: Device, root: Path) -> None:
        runner = runner_of(device, root)
        await record(device, message_event("x"))
        await runner.catch_up()
        with (root / "events/2026-02/project_proj_a_events.jsonl").open("rb") as reader:
            assert reader.read().count(b"\n") == 1
            await record(device, message_event("x", 1), message_event("x", 2))
            await runner.catch_up()
            await runner.rebuild()
            assert [json.loads(text)["position"] for text in reader.readlines()] == [2, 3]

    async def test_the_index_has_a_line_of_every_block(self, device: Device, root: Path) -> None:
        for number in range(30):
            await record(device, message_event("x", number, text="字" * 5_000))
        await runner_of(device, root).catch_up()
        path = root / "events/2026-02/project_proj_a_events.jsonl"
        marks = [json.loads(text) for text in path.with_suffix(".idx").read_text("utf-8").splitlines()]
        data = path.read_bytes()
        begins = [at + 1 for at, byte in enumerate(b"\n" + data[:-1], -1) if byte == 0x0A]
        assert [mark["offset"] // INDEX_BLOCK for mark in marks] == sorted({at // INDEX_BLOCK for at in begins})
        for mark in marks:
            kept = json.loads(data[mark["offset"] :].split(b"\n")[0])
            assert {name: kept[name] for name in ("position", "ts", "event_id")} == {
                name: mark[name] for name in ("position", "ts", "event_id")
            }


class TestAfterAKill:
    async def test_a_write_cut_at_any_byte_loses_and_doubles_nothing(self, device: Device, root: Path) -> None:
        await record(device, *sample_events(6))
        await runner_of(device, root).catch_up()
        before = {path: path.stat().st_size for path in root.glob("events/*/*")}
        await record(
            device, message_event("x", project="proj_0", text="一"), message_event("x", project="proj_0", text="二")
        )
        await runner_of(device, root).catch_up()
        whole = everything(root)
        grown = next(path for path, size in before.items() if path.suffix == ".jsonl" and path.stat().st_size > size)
        first, end = before[grown], len(whole[str(grown.relative_to(root))])
        ends = [first, *(at + 1 for at, byte in enumerate(grown.read_bytes()) if byte == 0x0A and at >= first)]
        near = {cut for at in ends for cut in range(at - 2, at + 3) if first <= cut <= end}
        for cut in sorted(near | set(range(first, end, 11))):
            os.truncate(grown, cut)
            await reset_watermark(device, 6)
            runner = runner_of(device, root)
            await runner.repair()
            assert grown.read_bytes().endswith(b"\n"), "a reader never meets half a line after a start"
            await runner.catch_up()
            assert everything(root) == whole

    @pytest.mark.parametrize("lost", [1, 10, 10_000])
    async def test_lines_lost_in_a_power_failure_are_written_again(self, device: Device, root: Path, lost: int) -> None:
        await record(device, *sample_events(8))
        await runner_of(device, root).catch_up()
        whole = everything(root)
        for path in root.glob("events/*/*"):
            if path.suffix in {".jsonl", ".idx"}:
                os.truncate(path, max(0, path.stat().st_size - lost))
        runner = runner_of(device, root)
        assert await runner.repair() == 4
        assert everything(root) == whole
        assert await runner.repair() == 0

    async def test_partial_files_of_a_killed_writer_are_removed(self, device: Device, root: Path) -> None:
        """They may hold erased text. Files of other programs stay."""
        await record(device, *sample_events(8))
        await runner_of(device, root).catch_up()
        (meta, *_), (events, *_) = root.glob("sessions/*/*.json"), root.glob("events/*/*.jsonl")
        (root / "index" / "notes.tmp").write_text("somebody's own")
        whole = everything(root)
        for path in (root / "index" / "tags.json", meta):
            path.with_name(f".{path.name}.0123abcd.tmp").write_text("忘掉的话")
        events.with_name(f"{events.name}.new").write_text("忘掉的话")
        events.with_suffix(".idx.new").write_text("")
        await runner_of(device, root).repair()
        assert everything(root) == whole

    @pytest.mark.parametrize("garbage", [b"\0\0garbage\n", b'{"position": 3, "event_id": "\xff"}\n'])
    async def test_a_file_whose_end_differs_from_the_log_is_rebuilt(
        self, device: Device, root: Path, garbage: bytes
    ) -> None:
        await record(device, *sample_events(8))
        await runner_of(device, root).catch_up()
        foreign = json.dumps({"position": 3, "event_id": "evt_of_another_time"}).encode() + b"\n"
        for path in root.glob("events/*/*.jsonl"):
            path.write_bytes(path.read_bytes() + (foreign if path.stat().st_size % 2 else garbage))
        await record(device, *sample_events(8))
        await runner_of(device, root).catch_up()
        assert lines_of(root) == await from_the_log(device)

    async def test_an_incomplete_index_is_rebuilt(self, device: Device, root: Path) -> None:
        for number in range(30):
            await record(device, message_event("x", number, text="字" * 5_000))
        await runner_of(device, root).catch_up()
        (index,) = root.glob("events/*/*.idx")
        os.truncate(index, 100)
        await record(device, message_event("x", text="一"))
        await runner_of(device, root).catch_up()
        kept = everything(root)
        await runner_of(device, root).rebuild()
        assert everything(root) == kept

    async def test_a_full_disk_leaves_no_partial_line(self, tmp_path: Path) -> None:
        path = tmp_path / "file"
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT, 0o600)  # every write fails
        with pytest.raises(OSError, match=r"."):
            event_file._write_at(descriptor, 0, b"line\n")
        os.close(descriptor)
        assert path.read_bytes() == b""


class TestForgetting:
    async def test_an_erased_event_leaves_every_file_and_the_rest_stays(self, device: Device, root: Path) -> None:
        runner = runner_of(device, root)
        secret, kept = await record(
            device,
            message_event("memory_fact", 0, content="忘掉这句", tags=["忘掉标签"], more="忘掉"),
            message_event("memory_fact", 1, content="留下", tags=["留下标签"]),
        )
        (meta,) = await record(device, message_event("session_meta", 0, title="忘掉题目"))
        await runner.catch_up()
        assert "忘掉题目".encode() in everything(root)["sessions/2026-02/sess_0.meta.json"]
        await device.log.append([device.intake.build_erasure([secret, meta])])
        await runner.catch_up()  # the log still has the payload: the erasure is applied later
        left = everything(root)
        assert not [name for name, data in left.items() if "忘掉".encode() in data]
        assert "留下标签".encode() in left["index/tags.json"]
        assert kept.encode() in left["events/2026-02/project_proj_a_events.jsonl"]
        await device.database.write(lambda connection: log_store.erase_payloads(connection, [secret, meta]))
        await runner.rebuild()
        assert everything(root) == left

    async def test_a_correction_shows_before_and_after_the_log_applies_it(self, device: Device, root: Path) -> None:
        runner = runner_of(device, root)
        (secret,) = await record(device, message_event("memory_fact", 0, content="忘掉这句", tags=["旧"], more=1))
        await runner.catch_up()
        corrected = {"content": "[自定义]", "tags": ["新"]}
        values = {"event_id": secret, "payload": corrected}
        payload = device.intake.redactor.clean_payload_with_ids("event_id", secret, values)
        await device.log.append([EventDraft(PAYLOAD_REDACTED, payload, origin=Origin.TOOL)])
        await device.log.append([device.intake.build_erasure([secret])])
        await runner.catch_up()
        left = everything(root)
        assert not [name for name, data in left.items() if "忘掉".encode() in data]
        assert list(json.loads(left["index/tags.json"])) == ["新"]
        await device.database.write(lambda connection: log_store.replace_payload(connection, secret, corrected))
        await runner.rebuild()
        assert everything(root) == left
        assert lines_of(root) == await from_the_log(device)

    async def test_an_erasure_request_and_its_event_in_one_batch(self, device: Device, root: Path) -> None:
        (secret,) = await record(device, message_event("memory_fact", 0, content="忘掉这句"))
        await device.log.append([device.intake.build_erasure([secret])])
        await runner_of(device, root).catch_up()
        assert not [name for name, data in everything(root).items() if "忘掉".encode() in data]


class TestPaths:
    @pytest.mark.parametrize("name", HOSTILE)
    async def test_no_id_leads_out_of_the_root_folder(self, device: Device, root: Path, name: str) -> None:
        await record(device, {**message_event("session_started", project=name), "session_id": name})
        await runner_of(device, root).catch_up()
        (file,) = root.glob("events/*/*.jsonl")
        (meta,) = root.glob("sessions/*/*.meta.json")
        assert file.parent == root / "events" / "2026-02"
        assert meta.parent == root / "sessions" / "2026-02"
        assert json.loads(file.read_text("utf-8"))["project_id"] == name

    def test_no_two_ids_share_a_file_on_a_case_insensitive_file_system(self) -> None:
        names = {safe_file_name(name).lower() for name in (*HOSTILE, "a", "con~", "a~", "proj_abcd1234")}
        assert len(names) == len(HOSTILE) + 4
        assert safe_file_name("proj_abcd1234") == "proj_abcd1234"
        assert all(name.rpartition("~")[1] == "~" for name in map(safe_file_name, HOSTILE))
        assert not SAFE_NAME.fullmatch("a~b")

    async def test_a_month_s_folder_that_is_a_link_is_not_followed(
        self, device: Device, root: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        (root / "events").mkdir(parents=True)
        (root / "events" / "2026-02").symlink_to(tmp_path / "elsewhere")
        await record(device, message_event("x"))
        with pytest.raises(StorageError, match="link"):
            await runner_of(device, root).catch_up()
        assert not list((tmp_path / "elsewhere").iterdir())

    async def test_files_are_private(self, device: Device, root: Path) -> None:
        await record(device, *sample_events(4))
        await runner_of(device, root).catch_up()
        assert {path.stat().st_mode & 0o777 for path in root.rglob("*") if path.is_file()} == {0o600}
        assert {path.stat().st_mode & 0o077 for path in root.rglob("*") if path.is_dir()} == {0}

    async def test_a_project_s_lock_is_respected_under_the_name_of_the_seed(
        self, device: Device, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(event_file, "LOCK_TIMEOUT", 0.0)
        runner = runner_of(device, root)
        (root / "events/2026-02").mkdir(parents=True)
        await record(device, message_event("x"))
        with (
            FileLock(root / "events/2026-02/project_proj_a_events.lock"),
            pytest.raises(StorageBusy, match="project_proj_a_events"),
        ):
            await runner.catch_up()
        await runner.catch_up()
        assert lines_of(root) == await from_the_log(device)


@pytest.mark.parametrize(
    ("ts", "month"),
    [
        ("2026-02-01T00:00:00.000Z", "2026-02"),
        ("2026-02-01T00:00:00.000+08:00", "2026-01"),
        ("0001-01-01T00:00:00.000Z", "0001-01"),
        ("1969-12-31T23:59:59.999Z", "1969-12"),
        ("9999-12-31T23:59:59.999Z", "9999-12"),
    ],
)
async def test_a_month_is_that_of_the_event_s_own_time_in_utc(device: Device, root: Path, ts: str, month: str) -> None:
    await record(device, {**message_event("x"), "ts": ts})
    runner = runner_of(device, root)
    await runner.catch_up()
    name = f"events/{month}/{FileKey(month, 'proj_a').stem}.jsonl"
    assert list(lines_of(root)) == [name]
    assert (await runner.rebuild()).written == 0
    assert list(lines_of(root)) == [name]


@pytest.mark.parametrize(
    ("ts", "month"), [("0001-01-01T00:00:00+08:00", "0001-01"), ("9999-12-31T23:59:59-08:00", "9999-12")]
)
async def test_a_time_out_of_the_calendar_is_filed_at_its_end(device: Device, root: Path, ts: str, month: str) -> None:
    await device.log.append([replace(device.intake.build(message_event("x")), ts=ts)])
    runner = runner_of(device, root)
    await runner.catch_up()
    name = f"events/{month}/{FileKey(month, 'proj_a').stem}.jsonl"
    followed = lines_of(root)
    assert (list(followed), followed[name].count(b"\n")) == ([name], 1)
    assert (await runner.rebuild()).written == 0
    assert lines_of(root) == followed
