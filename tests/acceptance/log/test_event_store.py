"""The event store for other programs: files to follow, sessions that end, many programs at once."""

import json
import os
import random
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest

from sync.accounts.sidecar_lock import hold_sidecar_lock
from sync.open_app import AppMode, open_app
from sync.settings.settings import Settings
from tests.acceptance.environment import cloud_settings, files_containing, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar, wait_until

# 20 × 500 and 30 kills in `make crash`; enough here to have every process meet every other
PROCESSES = int(os.environ.get("STORE_PROCESSES", "4"))
EACH = int(os.environ.get("STORE_EVENTS", "25"))
KILLS = int(os.environ.get("STORE_KILLS", "3"))
AT_ONCE = int(os.environ.get("STORE_AT_ONCE", "5"))  # events in one call
PATIENCE = 60.0 + PROCESSES * EACH / 4  # seconds


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def tree(home: Home) -> Path:
    return home.data / "memory-data" / home.installation["profile"]


def events_in_files(home: Home) -> list[dict[str, Any]]:
    """Return every event in the files, in log order; AssertionError if a line is not complete."""
    lines = []
    for path in sorted(tree(home).glob("events/*/*.jsonl")):
        text = path.read_bytes()
        assert text.endswith(b"\n"), path
        lines += [json.loads(line) for line in text.split(b"\n")[:-1]]
    return sorted(lines, key=lambda event: int(event["position"]))


def events_in_log(sidecar: Sidecar) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    while page := sidecar.call("events/read", after=events[-1]["position"] if events else 0)["events"]:
        events += page
    return events


def wait_for_files(sidecar: Sidecar) -> None:
    """Wait until the files have caught up with the log."""
    sidecar.call_until("events/files", lambda told: told["position"] == told["head"], timeout=PATIENCE)


def assert_files_match_log(home: Home, sidecar: Sidecar) -> list[dict[str, Any]]:
    """Check that each line equals its event once the files have caught up with the log."""
    wait_for_files(sidecar)
    lines, events = events_in_files(home), events_in_log(sidecar)
    assert [line["event_id"] for line in lines] == [event["event_id"] for event in events]
    for line, event in zip(lines, events, strict=True):
        assert line == {name: event[name] for name in line}
    return lines


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def append_at_once(home: Home) -> set[str]:
    """Append from several programs through the command line; store the acknowledged ids."""

    def batch(writer: int, start: int) -> str:
        numbers = range(start, min(start + AT_ONCE, EACH))
        place = {"type": "tool_call", "project_path": f"/家/{writer % 3}", "session_id": f"sess_{writer}"}
        return json.dumps([{**place, "event_id": f"evt_{writer}_{n}", "payload": {"tool": "Read"}} for n in numbers])

    def append(writer: int) -> None:
        for start in range(0, EACH, AT_ONCE):
            home.run("events", "append-batch", "-", stdin=batch(writer, start))

    with ThreadPoolExecutor(PROCESSES) as programs:
        list(programs.map(append, range(PROCESSES)))
    return {f"evt_{w}_{n}" for w in range(PROCESSES) for n in range(EACH)}


def test_programs_that_append_at_once_lose_nothing_and_leave_no_half_line(home: Home) -> None:
    with Sidecar(home) as sidecar:
        sidecar.call("sync/status")
        appended = append_at_once(home)
        assert {line["client_id"] for line in assert_files_match_log(home, sidecar)} == appended
        rebuilt = sidecar.call("events/rebuildFiles")
        assert (rebuilt["written"], rebuilt["removed"]) == (0, 0)


def test_without_a_sidecar_appending_commands_update_the_files(home: Home) -> None:
    home.json("events", "append", json.dumps({"type": "tool_call", "event_id": "evt_first", "payload": {}}))
    assert [line["client_id"] for line in events_in_files(home)] == ["evt_first"]
    appended = append_at_once(home)
    lines = events_in_files(home)  # before any other command, which would write the missing lines
    assert {line["client_id"] for line in lines} == {"evt_first", *appended}
    assert len(lines) == len(appended) + 1
    assert home.json("events", "rebuild-files")["written"] == 0


@pytest.mark.parametrize("last_step", ["event_files.runner.catch_up", "_open_sessions.ended_sessions"])
async def test_events_just_before_a_command_releases_its_lock_are_in_the_files(home: Home, last_step: str) -> None:
    settings = Settings(data_dir=home.data, memory_file=home.file, device_id="device-a", token_store="file")
    async with open_app(settings, AppMode.HELPER) as app:
        owner, name = attrgetter(last_step.rpartition(".")[0])(app), last_step.rpartition(".")[2]
        step = getattr(owner, name)

        async def and_meanwhile(**options: Any) -> Any:
            """Another command records just after this step, and finds the lock held."""
            setattr(owner, name, step)
            result = await step(**options)
            home.run("events", "append", json.dumps({"type": "tool_call", "event_id": "evt_late", "payload": {}}))
            assert events_in_files(home) == []
            return result

        setattr(owner, name, and_meanwhile)
    assert [line["client_id"] for line in events_in_files(home)] == ["evt_late"]


async def test_events_just_after_another_command_released_its_lock_are_in_the_files(home: Home) -> None:
    settings = Settings(data_dir=home.data, memory_file=home.file, device_id="device-a", token_store="file")
    with ExitStack() as other:
        other.enter_context(hold_sidecar_lock(settings))
        async with open_app(settings, AppMode.HELPER) as app:
            assert not app.is_sidecar
            other.close()
            await app.log.append([app.draft_builder.build({"type": "tool_call", "event_id": "evt_late"})])
    assert [line["event_id"] for line in events_in_files(home)] == ["evt_late"]


def test_after_a_kill_at_any_moment_the_next_start_completes_the_files(home: Home) -> None:
    for round_ in range(KILLS):
        with Sidecar(home) as sidecar:
            head = sidecar.call("events/files")["head"]
            lines = head + random.Random(round_).randrange(1, 20)
            for number in range(20):
                sidecar.send("events/append", event={"type": "x", "payload": {"text": f"{round_}-{number}" * 200}})
            wait_until(lambda lines=lines: sum(map(_lines, tree(home).glob("events/*/*.jsonl"))) >= lines)
            sidecar.kill()
    with Sidecar(home) as sidecar:
        assert_files_match_log(home, sidecar)
        assert sidecar.call("events/rebuildFiles")["written"] == 0


def test_another_programs_tail_shows_new_events(home: Home) -> None:
    with Sidecar(home) as sidecar:
        sidecar.update("第一句")
        (path,) = wait_until(lambda: list(tree(home).glob("events/*/*.jsonl")))
        with path.open(encoding="utf-8") as reader:
            wait_until(lambda: "第一句" in reader.read())
            sidecar.update("第二句")
            wait_until(lambda: "第二句" in reader.read())


def test_a_session_whose_sidecar_was_killed_is_ended_by_the_next(home: Home) -> None:
    with Sidecar(home) as sidecar:
        started = {"type": "session_started", "session_id": "sess_of_the_app", "project_path": "/家/项目"}
        sidecar.call("events/append", event=started)
        sidecar.kill()
    with Sidecar(home) as sidecar:
        listed = sidecar.call_until(
            "sessionMeta/list", lambda told: told["sessions"] and told["sessions"][0]["ended_at"] is not None
        )
        assert listed["sessions"][0]["end_reason"] == "cut_off"
        (path,) = wait_until(lambda: list(tree(home).glob("sessions/*/sess_of_the_app.meta.json")))
        wait_until(lambda: json.loads(path.read_text("utf-8"))["end_reason"] == "cut_off")


def test_an_erased_event_leaves_the_files(home: Home) -> None:
    with Sidecar(home) as sidecar:
        event_id = sidecar.update("忘掉这一句")["eventId"]
        wait_until(lambda: any("忘掉" in path.read_text("utf-8") for path in tree(home).glob("events/*/*.jsonl")))
        sidecar.call("events/forget", eventIds=[event_id])
        wait_until(lambda: not files_containing(tree(home), "忘掉"))
        assert_files_match_log(home, sidecar)


def test_the_files_are_in_the_set_folder_and_older_ones_there_are_imported(tmp_path: Path) -> None:
    (tmp_path / "memory-data" / "temp").mkdir(parents=True)
    (tmp_path / "memory-data" / "pending_session.json").write_text('{"session_id": "sess_left"}')
    home = Home(tmp_path / "home", EVENTS_DIR=str(tmp_path / "memory-data"))
    with Sidecar(home) as sidecar:
        sidecar.call_until("events/read", lambda told: len(told["events"]) == 2)
        root = Path(sidecar.call("events/files")["root"])
        assert root == tmp_path / "memory-data" / home.installation["profile"]
        wait_until(lambda: list(root.glob("sessions/*/sess_left.meta.json")))
    assert not (home.data / "memory-data").exists()


def test_if_no_files_can_be_written_none_are_reported_until_they_can(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    with Sidecar(home) as sidecar:
        sidecar.update("第一句")
        wait_for_files(sidecar)
    in_the_way = tmp_path / "memory-data"
    in_the_way.write_text("no folder")
    home.settings["EVENTS_DIR"] = str(in_the_way)
    assert home.json("events", "files")["position"] == 0
    with Sidecar(home) as sidecar:
        wait_until(lambda: "the job 'event files' failed" in (home.folder / "stderr.log").read_text("utf-8"))
        files = sidecar.call("events/files")
        assert files["position"] == 0 < files["head"]
        in_the_way.unlink()
        wait_for_files(sidecar)
        assert files_containing(in_the_way, "第一句")


def test_removing_a_memory_removes_its_files(tmp_path: Path, local_cloud: Cloud, user: User) -> None:
    home = Home(tmp_path, **cloud_settings(local_cloud))
    with Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        sidecar.update("第一句")
        wait_until(lambda: list(tree(home).glob("events/*/*.jsonl")))
        former = tree(home)
        wait_until_synced(sidecar)
        sidecar.call("auth/logout", localCopy="remove")
        wait_until(lambda: not former.exists())


def test_the_flags_of_the_seed_are_the_commands(home: Home) -> None:
    event = {"type": "memory_fact", "session_id": "s", "payload": {"fact_type": "note", "content": "甲"}}
    home.run("events", "--append", json.dumps(event))
    home.run("events", "--append-batch", json.dumps([event]))
    home.run("session-meta", "--upsert", json.dumps({"session_id": "s", "title": "题"}))
    contents = [one["payload"].get("content") for one in home.json("events", "--tail", "{}")["events"]]
    assert contents.count("甲") == 2
    assert "题" in home.run("session-meta", "--list", "{}").stdout
