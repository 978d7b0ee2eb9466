"""Sessions: their metadata, how they end by themselves, and those left by an earlier installation."""

import asyncio
import json
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sync.contract import event_files
from sync.errors import InvalidInput
from sync.jsonl.importer import EventFileImporter
from sync.jsonl.legacy_sessions import LEGACY_REASON
from sync.jsonl.projection import JsonlProjection
from sync.log.envelope import parse_timestamp
from sync.log.ingest import DraftBuilder
from sync.log.model import EventDraft, Query
from sync.log.projections.external import ExternalProjectionRunner
from sync.log.sessions.tracker import IDLE_CHECK_INTERVAL, SessionTracker
from sync.system.files import MAX_READ_BYTES
from tests.support import (
    REDACTOR,
    START,
    Device,
    FixedClock,
    LoopClock,
    background_task,
    new_server,
    open_device,
    run_in_virtual_time,
    signer_of,
)

HALF_AN_HOUR = 30.0


def sessions_of(device: Device, *, idle_minutes: float = HALF_AN_HOUR) -> SessionTracker:
    noted = device.folder / "sessions.json"
    return SessionTracker(
        device.log, device.intake, REDACTOR, open_sessions_file=noted, clock=device.clock, idle_minutes=idle_minutes
    )


async def record(device: Device, *given: dict[str, Any]) -> Any:
    return await device.log.append(device.intake.build_batch(list(given)))


def importer_of(device: Device, data_dir: Path, intake: DraftBuilder | None = None) -> EventFileImporter:
    return EventFileImporter(
        device.log, intake or device.intake, signer_of(device.log), device.clock, data_dir=data_dir
    )


def said(kind: str, session: str = "s1", **more: Any) -> dict[str, Any]:
    return {"type": kind, "session_id": session, "payload": {}, "project_path": "/家/项目", **more}


async def ends(device: Device) -> list[tuple[str, Any]]:
    return [
        (event.session_id, event.payload.get("reason"))
        for event in await device.events()
        if event.type == "session_finalized"
    ]


class TestMeta:
    async def test_metadata_of_a_session_is_merged_and_recorded_once(self, tmp_path: Path) -> None:
        async with open_device(tmp_path, new_server(), single_threaded=True) as device:
            sessions = sessions_of(device)
            await record(device, said("session_started", payload={"title": "重构"}))
            first = await sessions.upsert({"session_id": "s1", "tags": ["api"]})
            assert first.recorded
            assert first.session.meta == {"title": "重构", "tags": ["api"]}
            assert first.session.span.project_path == "/家/项目", "the session's own project, where none is given"
            assert not (await sessions.upsert({"session_id": "s1", "tags": ["api"]})).recorded
            assert (await sessions.upsert({"session_id": "s1", "title": "别的"})).session.meta["title"] == "别的"
            assert len(await device.events()) == 3

    async def test_a_new_device_gives_the_session_of_another_no_title_and_no_end(self, tmp_path: Path) -> None:
        async with open_device(tmp_path, new_server(), single_threaded=True) as device:
            sessions, own = sessions_of(device), device.log.device_id
            register = EventDraft("device_registered", REDACTOR.clean_payload({"name": "家", "public_key": "k"}))
            await device.log.append([register])
            await record(device, said("session_started", payload={"title": "重构"}))
            device.log.device_id = "device-new"
            await record(
                device,
                said("session_meta", payload={"title": "别的"}),
                said("session_finalized", payload={"title": "别的"}),
                said("session_started", "theirs", payload={"title": "自己的"}),
            )
            device.log.device_id = own
            listed = {one.span.session_id: one for one in await sessions.list_sessions({})}
            assert (listed["s1"].meta, listed["s1"].is_open) == ({"title": "重构"}, True)
            assert listed["theirs"].meta == {"title": "自己的"}
            assert await sessions.end({"s1"}, "cut_off") == ["s1"], "it is still open here"
            admission = REDACTOR.clean_payload({"device_ids": ["device-new"]})
            await device.log.append([EventDraft("device_admitted", admission)])
            assert (await sessions.upsert({"session_id": "s1", "title": "别的"})).session.meta["title"] == "别的"

    async def test_secrets_in_it_are_redacted_and_the_same_again_is_known(self, tmp_path: Path) -> None:
        async with open_device(tmp_path, new_server(), single_threaded=True) as device:
            sessions = sessions_of(device)
            told = {"session_id": "s9", "summary": "打给 13812345678"}
            assert (await sessions.upsert(told)).session.meta == {"summary": "打给 [手机号]"}
            assert not (await sessions.upsert(told)).recorded

    @pytest.mark.parametrize(
        ("wrong", "field"),
        [
            ([], "meta"),
            ({}, "session_id"),
            ({"session_id": 1}, "session_id"),
            ({"session_id": "a\nb"}, "session_id"),
            ({"session_id": "s", "tags": "x"}, "payload.tags"),
            ({"session_id": "s", "title": 1}, "payload.title"),
        ],
    )
    async def test_a_wrong_field_is_named(self, tmp_path: Path, wrong: Any, field: str) -> None:
        async with open_device(tmp_path, new_server(), single_threaded=True) as device:
            with pytest.raises(InvalidInput) as caught:
                await sessions_of(device).upsert(wrong)
            assert caught.value.field == field
            assert await device.events() == []

    async def test_the_list_is_newest_first_of_a_project_and_of_so_many_days(self, tmp_path: Path) -> None:
        async with open_device(tmp_path, new_server(), single_threaded=True) as device:
            sessions = sessions_of(device)
            await record(device, said("session_started", "old", ts="2025-10-01T00:00:00.000Z"))
            await record(device, said("session_started", "s1"), said("session_ended", "s1"), said("x", "s1"))
            device.clock.advance(60)
            await record(device, {**said("session_started", "s2"), "project_path": "/别的"})

            async def listed(**asked: Any) -> list[str]:
                return [found.span.session_id for found in await sessions.list_sessions(asked)]

            assert await listed() == ["s2", "s1", "old"]
            assert await listed(days=90) == ["s2", "s1"]
            project = (await sessions.list_sessions({"limit": 1}))[0].span.project_id
            assert await listed(project_id=project) == ["s2"]
            with pytest.raises(InvalidInput, match="days"):
                await listed(days=0)
            await sessions.upsert({"session_id": "old", "title": "三个月前"})
            await sessions.upsert({"session_id": "only said of", "title": "今天"})
            assert await listed(days=90) == ["only said of", "s2", "s1"], "words about a session are not the session"
            assert await listed() == ["only said of", "s2", "s1", "old"]


class TestEnding:
    def test_an_idle_session_ends_and_ends_again_after_it_continued(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with open_device(tmp_path, new_server(), clock=LoopClock(), single_threaded=True) as device:
                sessions = sessions_of(device)
                with background_task(sessions.run()):
                    await record(device, said("session_started"), said("x", "nobody began me"))
                    await asyncio.sleep(HALF_AN_HOUR * 60 - 2 * IDLE_CHECK_INTERVAL)
                    assert await ends(device) == []
                    await asyncio.sleep(4 * IDLE_CHECK_INTERVAL)
                    assert await ends(device) == [("s1", "idle")]
                    await record(device, said("message", ts=None))
                    await asyncio.sleep(HALF_AN_HOUR * 60 + 4 * IDLE_CHECK_INTERVAL)
                    assert await ends(device) == [("s1", "idle")] * 2
                    await asyncio.sleep(24 * 3600)
                    assert len(await ends(device)) == 2

        run_in_virtual_time(main())

    async def test_a_late_event_keeps_the_end_and_a_newer_one_reopens_the_session(self, tmp_path: Path) -> None:
        async with open_device(tmp_path, new_server(), single_threaded=True) as device:
            sessions = sessions_of(device)
            end = "2026-01-05T10:00:00.000Z"
            await record(device, said("session_started", ts="2026-01-05T09:00:00.000Z"), said("session_ended", ts=end))
            await record(device, said("message", ts="2026-01-05T09:30:00.000Z"))
            (found,) = await sessions.list_sessions({})
            assert (found.ended_at, found.is_open) == (end, False)
            await record(device, said("message", ts="2026-01-05T10:00:01.000Z"))
            (found,) = await sessions.list_sessions({})
            assert found.is_open

    async def test_a_past_session_that_is_appended_in_batches_does_not_end_between_them(self, tmp_path: Path) -> None:
        async with open_device(tmp_path, new_server(), single_threaded=True) as device:
            sessions = sessions_of(device)
            await record(device, said("session_started", ts="2026-01-05T09:00:00.000Z"))
            assert await sessions.end_idle() == [], "it is still being recorded"
            await record(device, said("message", ts="2026-01-05T11:00:00.000Z"))
            device.clock.advance(HALF_AN_HOUR * 60)
            assert await sessions.end_idle() == ["s1"]
            (found,) = await sessions.list_sessions({})
            assert found.ended_at == "2026-01-05T11:00:00.000Z"

    def test_a_session_of_a_killed_sidecar_ends_at_the_next_start(self, tmp_path: Path) -> None:
        async def main() -> None:
            async with open_device(tmp_path, new_server(), clock=LoopClock(), single_threaded=True) as device:
                killed = sessions_of(device)
                begun = [said("session_started", name) for name in ("cut", "done")]
                await killed.track(await record(device, *begun))
                await killed.track(await record(device, said("session_ended", "done")))
                await record(device, said("session_started", "of a hook"))  # not through the sidecar
                for _ in range(2):  # and killed again before anything
                    with background_task(sessions_of(device).run()):
                        await asyncio.sleep(2)
                assert await ends(device) == [("cut", "cut_off")]

        run_in_virtual_time(main())

    @pytest.mark.parametrize("ts", ["0001-01-01T00:00:00+08:00", "9999-12-31T23:59:59-08:00"])
    async def test_a_session_out_of_the_calendar_ends_and_is_listed(self, tmp_path: Path, ts: str) -> None:
        async with open_device(tmp_path, new_server(), single_threaded=True) as device:
            sessions = sessions_of(device)
            await device.log.append([replace(device.intake.build(said("session_started")), ts=ts)])
            assert await sessions.end({"s1"}, "cut_off") == ["s1"]
            (listed,) = event_files.sessions_to_json(await sessions.list_sessions({}))["sessions"]
            assert listed["ended_at"] == listed["last_at"] == (await device.events())[-1].ts

    async def test_a_session_of_another_device_is_not_ended_here(self, tmp_path: Path) -> None:
        async with open_device(tmp_path, new_server(), single_threaded=True) as device:
            await record(device, said("session_started"))
            device.log.device_id = "device-b"
            device.clock.advance(365 * 24 * 3600)
            assert await sessions_of(device).end_idle() == []

    async def test_the_file_of_open_sessions_is_not_trusted(self, tmp_path: Path) -> None:
        async with open_device(tmp_path, new_server(), single_threaded=True) as device:
            await record(device, said("session_started"))
            for junk in (b"", b"{", b"{}", b'["unknown", 5]', b"\xff"):
                (device.folder / "sessions.json").write_bytes(junk)
                assert await sessions_of(device).end(sessions_of(device)._load_open_ids(), "cut_off") == []


def write(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=False), "utf-8")
    os.utime(path, (START.timestamp(), START.timestamp()))
    return path


class TestAnEarlierInstallation:
    async def test_an_unfinished_session_becomes_a_start_and_an_end_once(self, tmp_path: Path) -> None:
        async with open_device(tmp_path / "device", new_server(), single_threaded=True) as device:
            left, whole = tmp_path / "memory-data", replace(device.intake, store_messages=True)
            pending = {
                "session_id": "sess_20260101_001",
                "project_path": "/家/项目",
                "start_time": "2026-01-01T10:00:00",
                "topics": ["API 重构"],
                "note": "打给 13812345678",
            }
            write(left / "pending_session.json", pending)
            write(left / "temp" / "a.json", [{"id": "t1", "started_at": 1767261600}, {"id": "t2", "summary": ["x"]}])
            write(left / "temp" / "junk.json", "no session")
            (left / "temp" / "half.json").write_text('{"id": "t3"')
            importer = importer_of(device, tmp_path, whole)
            assert await importer.import_legacy([left]) == 6
            events = await device.events()
            assert [event.type for event in events] == ["session_started", "session_finalized"] * 3
            begun, end = events[:2]
            assert (begun.session_id, begun.ts) == ("sess_20260101_001", "2026-01-01T10:00:00.000Z")
            assert end.ts == "2026-02-02T10:00:00.000Z", "when the file was last written"
            assert end.payload["topics"] == ["API 重构"]
            assert end.payload["note"] == "打给 [手机号]"
            assert events[2].ts == "2026-01-01T10:00:00.000Z"
            again = importer_of(device, tmp_path, whole)
            assert await again.import_legacy([left]) == 0
            (tmp_path / "taken-in.json").unlink()  # killed before the hash was stored
            assert await again.import_legacy([left]) == 0
            assert len(await device.events()) == 6
            assert (left / "pending_session.json").exists(), "it is not ours to take away"

    async def test_an_unreadable_file_does_not_stop_the_others(self, tmp_path: Path) -> None:
        async with open_device(tmp_path / "device", new_server(), single_threaded=True) as device:
            left = tmp_path / "memory-data"
            write(left / "temp" / "b.json", {"session_id": "s1"})
            (left / "pending_session.json").write_text("[" * 100_000 + "]" * 100_000)
            (left / "temp" / "a.json").write_bytes(b" " * (MAX_READ_BYTES + 1))
            importer = importer_of(device, tmp_path)
            assert await importer.import_legacy([left]) == 2
            assert {event.session_id for event in await device.events()} == {"s1"}

    @pytest.mark.parametrize("zone", ["", "Z", "+08:00", "-05:00", "+0530"])
    async def test_its_times_are_in_the_zone_they_name_or_in_utc(self, tmp_path: Path, zone: str) -> None:
        async with open_device(tmp_path / "device", new_server(), single_threaded=True) as device:
            write(tmp_path / "left" / "pending_session.json", {"id": "s1", "start_time": f"2026-02-02T10:00:00{zone}"})
            await importer_of(device, tmp_path).import_legacy([tmp_path / "left"])
            begun = (await device.events())[0].ts
            assert parse_timestamp(begun) == parse_timestamp(f"2026-02-02T10:00:00{zone or 'Z'}")

    async def test_a_second_account_does_not_import_what_the_first_imported(self, tmp_path: Path) -> None:
        write(tmp_path / "memory-data" / "pending_session.json", {"session_id": "s1"})
        taken = []
        for name in ("a", "b"):
            async with open_device(tmp_path / name, new_server(), single_threaded=True) as device:
                importer = importer_of(device, tmp_path)
                taken.append(await importer.import_legacy([tmp_path / "memory-data"]))
        assert taken == [2, 0]

    async def test_the_end_does_not_hold_a_whole_conversation(self, tmp_path: Path) -> None:
        async with open_device(tmp_path / "device", new_server(), single_threaded=True) as device:
            long = {"session_id": "s1", "messages": ["很长的话" * 10_000], "title": "题目"}
            write(tmp_path / "memory-data" / "pending_session.json", long)
            await importer_of(device, tmp_path).import_legacy([tmp_path / "memory-data"])
            (end,) = (await device.events())[1:]
            assert end.payload == {"title": "题目", "reason": LEGACY_REASON}


# an event whose ids are phone numbers
TELLING: dict[str, Any] = {
    "type": "x",
    "event_id": "chat:13800138000",
    "session_id": "13800138000",
    "payload": {"a": 1},
}


class TestImport:
    async def test_files_of_another_installation_are_imported_once(self, tmp_path: Path) -> None:
        made: list[dict[str, Any]] = []
        before = FixedClock(START - timedelta(days=40))
        async with open_device(
            tmp_path / "there", new_server(), device_id="there", clock=before, single_threaded=True
        ) as there:
            await record(there, *(said("memory_fact", payload={"content": f"第 {n} 件"}) for n in range(900)))
            await ExternalProjectionRunner(
                there.log, JsonlProjection(tmp_path / "tree", there.log), there.clock
            ).catch_up()
            made = [dict(event.payload) for event in await all_events(there)]
        async with open_device(tmp_path / "here", new_server(), device_id="here", single_threaded=True) as here:
            importer = importer_of(here, tmp_path)
            told: list[tuple[int, int]] = []
            (file,) = await importer.import_paths([tmp_path / "tree"], lambda done, total: told.append((done, total)))
            assert (file.recorded, file.known, file.refused) == (900, 0, 0)
            found = await all_events(here)
            assert [dict(event.payload) for event in found] == made
            assert {event.device_id for event in found} == {"here"}
            assert {(event.local_date, event.utc_offset) for event in found} == {("2025-12-24", 480)}
            assert [done for done, _ in told] == sorted({done for done, _ in told})
            assert told[-1][0] == told[-1][1]
            (file,) = await importer.import_paths([tmp_path / "tree"])
            assert (file.recorded, file.known) == (0, 900)

    async def test_a_line_with_sensitive_ids_is_imported_once_under_their_digests(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        path.write_text(json.dumps(TELLING) + "\n", "utf-8")
        async with open_device(tmp_path / "device", new_server(), single_threaded=True) as device:
            importer = importer_of(device, tmp_path)
            (file,) = await importer.import_paths([path])
            assert (file.recorded, file.refused) == (1, 0)
            (found,) = await device.events()
            assert (found.event_id[:4], found.session_id[:5], found.payload) == ("evt_", "sess_", {"a": 1})
            (file,) = await importer.import_paths([path])
            assert (file.recorded, file.known) == (0, 1)

    async def test_an_event_with_a_sensitive_id_in_the_log_is_known(self, tmp_path: Path) -> None:
        path = tmp_path / "events.jsonl"
        path.write_text(json.dumps(TELLING) + "\n", "utf-8")
        async with open_device(tmp_path / "device", new_server(), single_threaded=True) as device:
            await device.log.append([device.intake.build(TELLING, ids_are_known=True)])
            (file,) = await importer_of(device, tmp_path).import_paths([path])
            assert (file.recorded, file.known) == (0, 1)
            assert [event.session_id for event in await device.events()] == ["13800138000"]

    async def test_only_ordinary_files_are_imported(self, tmp_path: Path) -> None:
        (tmp_path / "tree").mkdir()
        pipe, endless = tmp_path / "pipe.jsonl", tmp_path / "tree" / "a.jsonl"
        os.mkfifo(pipe)
        endless.symlink_to("/dev/zero")
        (tmp_path / "tree" / "b.jsonl").write_text(json.dumps({"type": "x", "payload": {"a": 1}}), "utf-8")
        async with open_device(tmp_path / "device", new_server(), single_threaded=True) as device:
            importer = importer_of(device, tmp_path)
            (file,) = await importer.import_paths([tmp_path / "tree"])
            assert (file.path.name, file.recorded) == ("b.jsonl", 1)
            for path in (pipe, endless):
                with pytest.raises(InvalidInput, match="no ordinary file"):
                    await importer.import_paths([path])

    async def test_a_byte_order_mark_belongs_to_no_line(self, tmp_path: Path) -> None:
        path, line = tmp_path / "events.jsonl", json.dumps({"type": "x", "payload": {"a": 1}})
        async with open_device(tmp_path / "device", new_server(), single_threaded=True) as device:
            importer = importer_of(device, tmp_path)
            counts = []
            for encoding in ("utf-8-sig", "utf-8"):
                path.write_text(line, encoding)
                (file,) = await importer.import_paths([path])
                counts.append((file.recorded, file.known, file.refused))
            assert counts == [(1, 0, 0), (0, 1, 0)]

    @pytest.mark.parametrize("cut", [1, 30])
    async def test_a_refused_line_is_reported_and_stops_no_other(self, tmp_path: Path, cut: int) -> None:
        lines: list[Callable[[], str]] = [
            lambda: json.dumps({"type": "x", "payload": {"text": "打给 13812345678"}}),
            lambda: "[]",
            lambda: "",
            lambda: json.dumps({"type": "message", "payload": {"role": "robot"}}),
            lambda: json.dumps({"type": "device_hidden", "payload": {"device_id": "x"}}),
            lambda: json.dumps({"type": "x", "event_id": "evt_1", "payload": {"a": 1}}),
            lambda: json.dumps({"type": "x", "event_id": "evt_1", "payload": {"a": 2}}),
            lambda: json.dumps({"type": "x", "origin": "a liar", "payload": {"b": 1}}),
            lambda: "[" * 100_000 + "]" * 100_000,
            lambda: json.dumps({"type": "x", "ts": "0001-01-01T00:00:00+08:00", "payload": {}}),
            lambda: json.dumps({"type": "x", "payload": {"c": 1}})[:-cut],
        ]
        path = tmp_path / "events.jsonl"
        path.write_text("\n".join(line() for line in lines), "utf-8")
        async with open_device(tmp_path / "device", new_server(), single_threaded=True) as device:
            importer = importer_of(device, tmp_path, replace(device.intake, store_messages=True))
            (file,) = await importer.import_paths([path])
            assert (file.recorded, file.known, file.refused) == (4, 0, 5)
            assert [line for line, _ in file.refusals] == [2, 4, 9, 10, 11]
            events = await device.events()
            assert [event.payload for event in events] == [{"text": "打给 [手机号]"}, {"a": 1}, {"a": 2}, {"b": 1}]
            assert {event.origin for event in events} == {"imported"}
            (file,) = await importer.import_paths([path])
            assert (file.recorded, file.known) == (0, 4)

    @pytest.mark.parametrize(
        "line", ['{"type": "x", "payload": {"text": "你好"}}'.encode("gbk"), b'{"a":' * 200_000 + b"1" + b"}" * 200_000]
    )
    async def test_a_line_in_another_encoding_or_nested_too_deep_stops_no_other(
        self, tmp_path: Path, line: bytes
    ) -> None:
        path = tmp_path / "events.jsonl"
        path.write_bytes(line + b'\n{"type": "x", "payload": {"line": "behind"}}\n')
        async with open_device(tmp_path / "device", new_server(), single_threaded=True) as device:
            (file,) = await importer_of(device, tmp_path).import_paths([path])
            assert [line for line, _ in file.refusals] == [1]
            assert [event.payload for event in await device.events()] == [{"line": "behind"}]


async def all_events(device: Device) -> list[Any]:
    return list((await device.log.read(Query(limit=100_000))).events)
