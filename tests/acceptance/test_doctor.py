"""`doctor`, with each thing really broken: it names what is wrong, says what to do, and changes nothing."""

import base64
import json
import os
import socket
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from sync.clock import timestamp
from sync.cloud.replication.replicator import Replicator
from sync.cloud.status import CloudState, CloudStatus
from sync.log.model import RemoteCursor
from sync.startup.doctor import MAX_CLOCK_SKEW_SECONDS, _check_clock
from tests.acceptance.environment import cloud_settings
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar
from tests.support import FixedClock

NOWHERE = "http://127.0.0.1:9"  # the discard port: nothing listens there

Break = Callable[[Home], None]


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """One with a memory in it, in a folder whose name a shell does not take as it is."""
    home = Home(tmp_path / "小白 a")
    home.json("update", "旧的", "好的")
    assert home.file.exists()
    return home


def doctor_checks(home: Home) -> dict[str, dict[str, Any]]:
    """What doctor says, by check; exit code and `ok` agree."""
    done = home.run("--json", "doctor", check=False)
    report = json.loads(done.stdout)
    assert done.returncode == (0 if report["ok"] else 1), done.stderr
    assert report["ok"] is all(check["ok"] is not False for check in report["checks"])
    assert all(check["hint"] for check in report["checks"] if check["ok"] is False)
    return {check["name"]: check for check in report["checks"]}


def failed_checks(home: Home) -> set[str]:
    return {name for name, check in doctor_checks(home).items() if check["ok"] is False}


def test_a_sound_memory_says_so_through_every_interface_and_nothing_is_changed(home: Home) -> None:
    def everything() -> dict[str, bytes]:
        return {str(path): path.read_bytes() for path in (home.file, home.database)}

    before = everything()
    checks = doctor_checks(home)
    assert {name for name, check in checks.items() if check["ok"] is True} >= {
        "program",
        "settings",
        "data folder",
        "event files",
        "permissions",
        "database",
        "sidecar",
        "file",
        "watcher",
        "document",
        "log",
        "outbox",
    }
    assert everything() == before
    with Sidecar(home) as sidecar:
        report = sidecar.call("doctor")
        assert report["ok"] is True
        assert [check["name"] for check in report["checks"]] == list(checks)
    assert "FAIL" not in home.run("doctor").stdout


def test_it_creates_nothing_if_nothing_was_ever_started(tmp_path: Path) -> None:
    home = Home(tmp_path / "new")
    assert doctor_checks(home)["database"]["ok"] is None
    assert not home.data.exists()
    assert not home.file.exists()


def readable_database(home: Home) -> None:
    home.database.chmod(0o644)


def open_folder(home: Home) -> None:
    home.data.chmod(0o755)


def readable_session(home: Home) -> None:
    session = home.database.with_name("session.json")
    session.write_text("{}")
    session.chmod(0o640)


def readable_log(home: Home) -> None:
    log = home.data / "logs" / "sidecar.log"
    log.parent.mkdir(mode=0o700, exist_ok=True)
    log.touch(0o644)
    log.chmod(0o644)


def open_events(home: Home) -> None:
    folder = home.folder / "shared events"
    folder.mkdir()
    folder.chmod(0o777)
    home.settings["EVENTS_DIR"] = str(folder)


def newer_schema(home: Home) -> None:
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("pragma user_version = 99")


def torn_pages(home: Home) -> None:
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("pragma wal_checkpoint(truncate)")
    with home.database.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096 * 8)


def no_database(home: Home) -> None:
    path = home.database
    for file in path.parent.glob("memory.db*"):
        file.unlink()
    path.write_bytes(b"no" * 999)
    path.chmod(0o600)


def somebody_else_s_database(home: Home) -> None:
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("pragma application_id = 1")


def unreadable_file(home: Home) -> None:
    home.file.write_bytes(b"# memo\n\0\n")


def a_folder_for_a_file(home: Home) -> None:
    home.file.unlink()
    home.file.mkdir()


def no_folder(home: Home) -> None:
    home.settings["MEMORY_FILE"] = str(home.folder / "gone" / "memory.md")


def no_folder_for_events(home: Home) -> None:
    home.settings["EVENTS_DIR"] = str(home.file / "events")


def unplugged_data(home: Home) -> None:
    link = home.folder / "drive"
    link.symlink_to(home.folder / "unplugged")
    home.settings["DATA_DIR"] = str(link / "data")


def emptied_file(home: Home) -> None:
    home.file.write_bytes(b"")


def vanished_file(home: Home) -> None:
    home.file.unlink()


def no_cache(home: Home) -> None:
    path = home.folder / "app.db"
    path.write_bytes(b"this is no database" * 99)
    home.settings["APP_DB"] = str(path)


def unknown_setting(home: Home) -> None:
    home.settings["SUPABASE_ULR"] = "https://x.supabase.co"


def service_key(home: Home) -> None:
    home.settings |= {"SUPABASE_URL": NOWHERE, "SUPABASE_KEY": "sb_secret_do_not_show_me"}


def unknown_key(home: Home) -> None:
    home.settings |= {"SUPABASE_URL": NOWHERE, "SUPABASE_KEY": "do_not_show_me"}


def nobody_there(home: Home) -> None:
    home.settings |= {"SUPABASE_URL": NOWHERE, "SUPABASE_KEY": "sb_publishable_do_not_show_me"}


def unknown_name(home: Home) -> None:
    home.settings |= {"SUPABASE_URL": "https://nobody.invalid", "SUPABASE_KEY": "sb_publishable_do_not_show_me"}


def test_nothing_that_a_memory_makes_is_open_to_others(home: Home) -> None:
    home.json("remember", "记住这个：我喜欢火锅")
    assert failed_checks(home) == set()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes")
@pytest.mark.parametrize("breaking", [readable_database, open_folder, readable_session, readable_log, open_events])
def test_what_others_may_read_is_named_and_the_hint_repairs_it(home: Home, breaking: Break) -> None:
    breaking(home)
    check = doctor_checks(home)["permissions"]
    assert check["ok"] is False
    if breaking is open_folder:
        return  # opening the memory repaired that one
    os.system(check["hint"])
    assert failed_checks(home) == set()


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX links")
def test_a_folder_of_ours_that_is_a_link_is_named(home: Home) -> None:
    elsewhere = home.folder / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    (home.data / "logs").symlink_to(elsewhere)

    check = doctor_checks(home)["permissions"]
    assert check["ok"] is None
    assert check["found"] == f"{home.data / 'logs'} is a link to {elsewhere}"


@pytest.mark.parametrize(
    ("breaking", "named", "words"),
    [
        (newer_schema, {"database"}, "表结构版本是 99"),
        (torn_pages, {"database"}, "memory.db"),
        (no_database, {"database"}, "memory.db"),
        (somebody_else_s_database, {"database"}, "另一个程序"),
        (unreadable_file, {"file", "document"}, "xiaobai-ai-memory.md"),
        (a_folder_for_a_file, {"file", "document"}, "是文件夹"),
        (no_folder, {"file", "watcher", "document"}, "gone"),
        (no_folder_for_events, {"event files"}, "XIAOBAI_EVENTS_DIR"),
        (unplugged_data, {"data folder", "event files"}, "XIAOBAI_DATA_DIR"),
        (emptied_file, {"document"}, ""),
        (vanished_file, {"document"}, ""),
        (no_cache, {"app cache"}, "app.db"),
        (unknown_setting, {"settings"}, "XIAOBAI_SUPABASE_ULR"),
        (service_key, {"settings"}, "XIAOBAI_SUPABASE_KEY"),
        (unknown_key, {"key", "address"}, ""),
        (nobody_there, {"address"}, ""),
        (unknown_name, {"address"}, ""),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_what_is_broken_is_named(home: Home, breaking: Break, named: set[str], words: str) -> None:
    breaking(home)
    done = home.run("doctor", check=False)
    assert failed_checks(home) == named
    assert done.returncode == 1
    assert words in done.stdout
    assert "do_not_show_me" not in done.stdout + done.stderr


def test_a_file_in_its_own_encoding_is_worth_a_word_and_no_fault(home: Home) -> None:
    home.file.write_bytes(home.file.read_text("utf-8").encode("gb18030"))
    home.json("status")
    check = doctor_checks(home)["document"]
    assert check["ok"] is None
    assert check["found"] == "document_not_utf8"


def test_a_file_that_tls_cannot_use_is_not_taken_for_a_server_that_refuses(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SSLKEYLOGFILE", str(home.folder / "nowhere" / "keys"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"
        home.settings |= {"SUPABASE_URL": url, "SUPABASE_KEY": "sb_publishable_x"}
        check = doctor_checks(home)["address"]
    assert (check["ok"], "refuses" in check["found"], "SSLKEYLOGFILE" in check["hint"]) == (False, False, True)


def test_a_legacy_anon_key_is_accepted_with_a_hint(home: Home) -> None:
    claims = base64.urlsafe_b64encode(b'{"role": "anon"}').decode().rstrip("=")
    home.settings |= {"SUPABASE_URL": NOWHERE, "SUPABASE_KEY": f"h.{claims}.s"}
    check = doctor_checks(home)["key"]
    assert check["ok"] is True
    assert "anon" in check["found"]
    assert "publishable" in check["hint"]


def test_a_running_sidecar_is_named_with_its_process(home: Home) -> None:
    with Sidecar(home) as sidecar:
        sidecar.call("initialize")
        assert f"process {sidecar.process.pid} " in doctor_checks(home)["sidecar"]["found"]
        own = {check["name"]: check for check in sidecar.call("doctor")["checks"]}
        assert own["sidecar"]["found"] == f"this process ({sidecar.process.pid})"
    assert doctor_checks(home)["sidecar"]["found"] == "none is running"


def test_quarantined_events_are_reported(home: Home) -> None:
    with closing(sqlite3.connect(home.database)) as connection, connection:
        connection.execute("update deliveries set state = 'quarantined'")
        connection.execute("insert into quarantine select destination, position, 'bad_event', '', '' from deliveries")
    check = doctor_checks(home)["outbox"]
    assert check["ok"] is False
    assert "quarantine list" in check["hint"]


class TestWithACloud:
    @pytest.fixture
    def signed_in(self, tmp_path: Path, local_cloud: Cloud, new_user: Callable[[], User]) -> tuple[Home, User]:
        home, user = Home(tmp_path / "c", **cloud_settings(local_cloud)), new_user()
        home.json("login", user.email, "--password-stdin", stdin=f"{user.password}\n")
        home.json("update", "云", "好的")
        home.json("status")
        return home, user

    def test_it_is_in_sync_and_the_clock_agrees(self, signed_in: tuple[Home, User]) -> None:
        home, user = signed_in
        checks = doctor_checks(home)
        assert {name for name, check in checks.items() if check["ok"] is False} == set()
        assert checks["cloud"]["ok"] is checks["clock"]["ok"] is checks["address"]["ok"] is True
        assert checks["login"]["found"] == user.email
        assert "file" in checks["session store"]["found"]

    def test_a_proxy_that_cannot_be_used_is_named_and_what_is_here_is_served(
        self, signed_in: tuple[Home, User], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        home, _ = signed_in
        for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("ALL_PROXY", "socks4://127.0.0.1:1")
        checks = doctor_checks(home)
        assert {name for name, check in checks.items() if check["ok"] is False} == {"cloud"}
        assert "ALL_PROXY" in checks["cloud"]["hint"]
        assert checks["address"]["ok"] is None
        with Sidecar(home) as sidecar:
            loaded = sidecar.call("memory/load", waitMs=5000)
            assert (loaded["source"], loaded["stale"]) == ("local", True)
            assert "云" in loaded["document"]
            status = sidecar.call_until("sync/status", lambda status: status["cloud"]["state"] == "offline")
            assert "ALL_PROXY" in status["cloud"]["lastError"]["hint"]

    def test_logged_out_is_no_fault_and_says_how_to_log_in(self, signed_in: tuple[Home, User]) -> None:
        home, _ = signed_in
        home.json("logout")
        check = doctor_checks(home)["login"]
        assert (check["ok"], check["hint"]) == (None, "xiaobai-memory login")


class _ReplicatorStub:
    """As much of a replicator as the clock is held against."""

    def __init__(self, server_time: str) -> None:
        self._cursor = RemoteCursor(synced_at=server_time)

    async def status(self) -> CloudStatus:
        return CloudStatus(CloudState.SYNCED, self._cursor.synced_at, None, self._cursor)


@pytest.mark.parametrize(
    ("ahead", "asked_now", "ok"),
    [
        (0, True, True),
        (MAX_CLOCK_SKEW_SECONDS + 60, True, False),
        (-MAX_CLOCK_SKEW_SECONDS - 60, True, False),
        (MAX_CLOCK_SKEW_SECONDS + 60, False, True),  # the last sync may be that long ago
        (-MAX_CLOCK_SKEW_SECONDS - 60, False, False),  # but it cannot be in the future
    ],
)
async def test_a_clock_that_differs_from_the_server_s_is_reported(ahead: float, asked_now: bool, ok: bool) -> None:
    clock = FixedClock()
    replicator = cast("Replicator", _ReplicatorStub(timestamp(clock.now() - timedelta(seconds=ahead))))
    check = await _check_clock(replicator, clock, synced_now=asked_now)
    assert check.ok is ok
    assert ok or "6 minutes" in check.found
