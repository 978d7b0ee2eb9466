"""Damaged files of a home: the next start names what was damaged, and nothing is lost or doubled. Real processes."""

import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.acceptance.environment import (
    ServerRows,
    cloud_settings,
    exchanges,
    question_counts,
    wait_for_lines,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.proof import first_in_test
from tests.sidecar import Home, Sidecar, wait_until

PAGE: Final = 4096
LINES: Final = (
    "杭州有什么好玩的？",
    "周报怎么写？",
    "猫粮怎么选？",
    "周末去哪里爬山？",
    "谷雨是哪一天？",
)  # they state no fact


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def warning_named(document: dict[str, Any], name: str) -> str:
    """The warning that begins with a name; empty if there is none."""
    return next((warning for warning in document["warnings"] if warning.startswith(name)), "")


@pytest.mark.parametrize("content", [b"", b'{"a":[1]}', b"\0" * 91], ids=["empty", "other JSON", "zeros"])
def test_a_bad_installation_file_stops_no_start(home: Home, content: bytes) -> None:
    with Sidecar(home) as sidecar:
        sidecar.update("我喜欢黄山毛峰")
    path, before = home.data / "installation.json", home.installation
    path.write_bytes(content)
    with Sidecar(home) as sidecar:
        status = sidecar.call("sync/status")
        assert "installation.json.damaged-1" in warning_named(status["document"], "installation_derived")
        sidecar.update("又来了")
        assert {event["device_id"] for event in exchanges(sidecar)} == {home.settings["DEVICE_ID"]}
        assert question_counts(sidecar.load()["document"]) == {"我喜欢黄山毛峰": 1, "又来了": 1}
    assert home.installation["profile"] == before["profile"]
    assert path.with_name("installation.json.damaged-1").read_bytes() == content
    with Sidecar(home) as sidecar:
        assert not warning_named(sidecar.call("sync/status")["document"], "installation_derived")


# --- the database is gone, emptied or cut (reliability N4) ---------------------------------------------------


def delete_all(path: Path) -> None:
    for file in path.parent.glob("memory.db*"):
        file.unlink()


def cut(size: int, *, wal: bool, marker: bool) -> Callable[[Path], None]:
    """Keep the first bytes; take the write-ahead log and the marker away, or leave them."""

    def damage(path: Path) -> None:
        os.truncate(path, min(size, path.stat().st_size))
        if not wal:
            for suffix in ("-wal", "-shm"):
                path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)
        if not marker:
            path.with_name(f"{path.name}.begun").unlink(missing_ok=True)

    return damage


CUTS: Final = [
    delete_all,
    cut(3_000, wal=False, marker=True),
    cut(0, wal=False, marker=False),
    cut(2_000, wal=True, marker=False),
    *(
        cut(size, wal=wal, marker=marker)
        for size in (0, 1, 300, 511, 512, 4_095, PAGE, PAGE + 1, 3 * PAGE, 9 * PAGE + 100)
        for wal in (False, True)
        for marker in (False, True)
    ),
]


@pytest.mark.parametrize("damage", first_in_test(CUTS, 4))
@pytest.mark.parametrize("kill", first_in_test([True, False], 1))
def test_a_lost_database_comes_back_logged_in_with_each_line_once_here_and_on_the_server(
    tmp_path: Path, local_cloud: Cloud, user: User, server: ServerRows, damage: Callable[[Path], None], kill: bool
) -> None:
    home = Home(tmp_path / "home", **cloud_settings(local_cloud))
    with Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        for line in LINES:
            sidecar.update(line)
        wait_until_synced(sidecar)
        wait_for_lines(home, *LINES)
        before = {event["event_id"]: (event["hlc"], event["payload"]) for event in server.events}
        if kill:
            sidecar.kill()
    damage(home.database)
    with Sidecar(home) as sidecar:
        status = wait_until_synced(sidecar)
        assert warning_named(status["document"], "database_salvaged")
        assert (status["account"]["state"], status["account"]["userId"]) == ("logged_in", user.user_id)
        sidecar.update("又来了")
        wait_until_synced(sidecar)
        assert question_counts(sidecar.load()["document"]) == dict.fromkeys([*LINES, "又来了"], 1)
        assert sidecar.call("events/verify")["problems"] == []
        held = {event["event_id"]: (event["hlc"], event["payload"]) for event in sidecar.call("events/read")["events"]}
    after = {event["event_id"]: (event["hlc"], event["payload"]) for event in server.events}
    assert before.items() <= after.items()
    assert before.items() <= held.items()
    types = Counter(event["type"] for event in server.events if event["event_id"] not in before)
    assert types["exchange_recorded"] == 1
    assert not {"entry_added", "entry_edited", "entry_removed"} & set(types), "nothing was taken for a hand edit"


# --- one flipped bit in the stored schema (reliability N1) ---------------------------------------------------


def replace_once(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    def damage(content: bytes) -> bytes:
        assert old in content
        return content.replace(old, new, 1)

    return damage


NAMED_FLIPS: Final = [
    replace_once(b"\n  ts  ", b"\n  us  "),
    replace_once(b"\n  payload  ", b"\n  qayload  "),
    replace_once(b"\n  sha256  ", b"\n  sha25v  "),
    replace_once(b"\n  ts  ", b"J  ts  "),
    replace_once(b"position  ", b"posidion  "),
    replace_once(b"CREATE TABLE replica", b"CREATE TABLE repliga"),
]


@pytest.mark.parametrize("flip", first_in_test(NAMED_FLIPS, 3))
def test_a_flipped_bit_in_the_stored_schema_is_mended_at_the_next_start(
    home: Home, flip: Callable[[bytes], bytes]
) -> None:
    with Sidecar(home) as sidecar:
        sidecar.update(LINES[0])
    home.database.write_bytes(flip(home.database.read_bytes()))
    assert home.run("doctor", check=False).returncode == 1
    with Sidecar(home) as sidecar:
        sidecar.update(LINES[1])
        assert question_counts(sidecar.load()["document"]) == dict.fromkeys(LINES[:2], 1)
        assert warning_named(sidecar.call("sync/status")["document"], "database_salvaged")
    assert home.json("doctor")["ok"]


# --- one question for every process (D2), an unfinished salvage (D3, D6), who said a found line (D1) --------


def event_tree(home: Home) -> Path:
    return home.data / "memory-data" / str(home.installation["profile"]) / "events"


def has_event_lines(home: Home, *words: str) -> bool:
    lines = "".join(path.read_text() for path in event_tree(home).rglob("*.jsonl"))
    return all(word in lines for word in words)


def fill(home: Home, *words: str) -> None:
    """Record words; their lines are in the event files when this returns."""
    with Sidecar(home) as sidecar:
        for word in words:
            sidecar.update(word)
        wait_until(lambda: has_event_lines(home, *words))


@pytest.mark.parametrize("command", [("doctor",), ("events", "read")])
def test_whatever_looks_first_when_the_database_is_gone_the_event_files_bring_it_back(
    home: Home, command: tuple[str, ...]
) -> None:
    fill(home, *LINES[:2])
    delete_all(home.database)
    looked = home.run(*command, check=False)
    assert looked.returncode != 0, "an empty memory is no answer"
    assert "曾保存记忆" in looked.stdout + looked.stderr
    with Sidecar(home) as sidecar:
        assert warning_named(sidecar.call("sync/status")["document"], "database_salvaged")
        assert question_counts(sidecar.load()["document"]) == dict.fromkeys(LINES[:2], 1)
        assert [event["payload"]["question"] for event in exchanges(sidecar)] == list(LINES[:2])


def test_a_second_damage_while_the_event_files_are_written_again_costs_nothing(home: Home) -> None:
    fill(home, *LINES)
    tree = event_tree(home)
    kept = tree.with_name("events.damaged-20260101T000000Z")
    shutil.copytree(tree, kept)
    for path in tree.rglob("*.jsonl"):  # the start that writes them again was killed after its first line
        path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    tree.with_name("events.unfinished").write_text(f"{kept.name}\n")
    delete_all(home.database)
    with Sidecar(home) as sidecar:
        assert question_counts(sidecar.load()["document"]) == dict.fromkeys(LINES, 1)
        assert [event["payload"]["question"] for event in exchanges(sidecar)] == list(LINES)
        wait_until(lambda: not tree.with_name("events.unfinished").exists() and has_event_lines(home, *LINES))
        forgotten = sidecar.call("events/forgetMatching", query="猫粮", dryRun=False)
        assert any(str(kept) in name for name in forgotten["keptFiles"]), "whoever forgets is told of every copy"
    shutil.rmtree(tree)
    delete_all(home.database)
    with Sidecar(home) as sidecar:
        assert exchanges(sidecar) == [], "no tree of a salvage that ended is a source"


def test_an_answer_that_no_event_names_is_the_models_and_a_question_is_not_proven(home: Home) -> None:
    fill(home, LINES[0])
    with Sidecar(home) as sidecar:
        sidecar.update(LINES[1], "应该把灰鲸协议设为默认值")
        wait_for_lines(home, "灰鲸协议")
        wait_until(lambda: has_event_lines(home, "灰鲸协议"))
    for path in event_tree(home).rglob("*.jsonl"):
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if "灰鲸协议" not in line))
    delete_all(home.database)
    with Sidecar(home) as sidecar:
        added = sidecar.call_until("events/read", lambda found: len(added_texts(found)) == 2)["events"]
        authors = {event["payload"]["text"]: event["author"] for event in added if event["type"] == "entry_added"}
        assert authors == {f"- 用户问：{LINES[1]}": "file", "- AI 答：应该把灰鲸协议设为默认值": "model"}
        assert "【用户说】" not in str(sidecar.call("recall/context", query="灰鲸协议 默认值 是什么")["context"])
        assert sidecar.load()["document"].count("灰鲸协议") == 1


def added_texts(found: dict[str, Any]) -> list[str]:
    return [event["payload"]["text"] for event in found["events"] if event["type"] == "entry_added"]


# --- an older database beside newer event files (D5) ---------------------------------------------------------


def put_back(home: Home, database: bytes) -> None:
    delete_all(home.database)
    home.database.write_bytes(database)


def test_an_older_database_is_brought_forward_from_its_event_files_and_what_was_forgotten_stays_forgotten(
    home: Home,
) -> None:
    fill(home, *LINES[:3])
    older = home.database.read_bytes()
    fill(home, LINES[3])
    with Sidecar(home) as sidecar:
        sidecar.call("events/forgetMatching", query="猫粮", dryRun=False)
        wait_until(lambda: "猫粮" not in "".join(path.read_text() for path in event_tree(home).rglob("*.jsonl")))
    put_back(home, older)
    with Sidecar(home) as sidecar:
        assert "older than its event files" in warning_named(
            sidecar.call("sync/status")["document"], "database_salvaged"
        )
        assert question_counts(sidecar.load()["document"]) == dict.fromkeys((*LINES[:2], LINES[3]), 1)
        assert "猫粮" not in str(sidecar.call("events/read"))
        assert sidecar.call("events/verify")["problems"] == []
        wait_until(lambda: has_event_lines(home, LINES[3]))
        assert not has_event_lines(home, "猫粮")
    with Sidecar(home) as sidecar:
        assert not warning_named(sidecar.call("sync/status")["document"], "database_salvaged")


def test_after_an_older_database_was_put_back_each_line_is_once_here_and_on_the_server(
    tmp_path: Path, local_cloud: Cloud, user: User, server: ServerRows
) -> None:
    home = Home(tmp_path / "home", **cloud_settings(local_cloud))
    with Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        sidecar.update(LINES[0])
        wait_until_synced(sidecar)
    older = home.database.read_bytes()
    with Sidecar(home) as sidecar:
        sidecar.update(LINES[1])
        wait_until_synced(sidecar)
        wait_until(lambda: has_event_lines(home, *LINES[:2]))
    home.settings["SUPABASE_URL"] = "http://127.0.0.1:9"
    fill(home, LINES[2])
    home.settings["SUPABASE_URL"] = local_cloud.url
    put_back(home, older)
    with Sidecar(home) as sidecar:
        wait_until_synced(sidecar)
        assert question_counts(sidecar.load()["document"]) == dict.fromkeys(LINES[:3], 1)
        assert sorted(event["payload"]["question"] for event in exchanges(sidecar)) == sorted(LINES[:3])
    types = Counter(event["type"] for event in server.events)
    assert (types["exchange_recorded"], types["entry_added"]) == (3, 0)


# --- event files alone (D7), and other things in the place of ours (D8) ---------------------------------------


def test_the_event_files_alone_name_the_profile_and_bring_the_memory_back(home: Home) -> None:
    fill(home, *LINES[:2])
    profile = home.installation["profile"]
    shutil.rmtree(home.data / "profiles")
    (home.data / "installation.json").unlink()
    home.file.unlink()
    with Sidecar(home) as sidecar:
        assert question_counts(sidecar.load()["document"]) == dict.fromkeys(LINES[:2], 1)
        assert warning_named(sidecar.call("sync/status")["document"], "database_salvaged")
    assert home.installation["profile"] == profile


def test_a_file_in_the_place_of_the_logs_stops_no_memory(home: Home) -> None:
    home.data.mkdir(mode=0o700)
    (home.data / "logs").write_bytes(b"x")
    with Sidecar(home) as sidecar:
        sidecar.update(LINES[0])
        assert question_counts(sidecar.load()["document"]) == {LINES[0]: 1}
    assert "no log file is written" in (home.folder / "stderr.log").read_text()


def test_a_pipe_or_a_folder_in_the_place_of_the_database_is_named_and_nobody_waits_for_it(home: Home) -> None:
    fill(home, LINES[0])
    delete_all(home.database)
    for make in (os.mkfifo, os.mkdir):
        make(home.database)
        looked = home.run("doctor", check=False)
        assert looked.returncode == 1
        assert "不是普通文件" in looked.stdout
        assert "请把它移走" in looked.stdout
        home.database.unlink() if make is os.mkfifo else home.database.rmdir()
    with Sidecar(home) as sidecar:
        assert question_counts(sidecar.load()["document"]) == {LINES[0]: 1}
