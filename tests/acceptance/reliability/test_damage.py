"""Damaged files of a home: the next start names what was damaged, and nothing is lost or doubled. Real processes."""

import os
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
from tests.sidecar import Home, Sidecar

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
