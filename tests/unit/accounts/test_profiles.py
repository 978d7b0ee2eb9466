"""What a data directory is, who serves it, and that nothing read from a file becomes a path unchecked."""

import json
import multiprocessing
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Final, cast

import pytest
from msgspec.structs import replace

from sync.accounts.profiles import (
    Installation,
    acquire_sidecar_lock,
    change_installation,
    create_profile_folder,
    open_installation,
    remove_profile,
    with_active_profile,
    with_device_id,
    with_removed_account,
)
from sync.encryption.database_encryption import DatabaseEncryption
from sync.errors import AlreadyRunning, StorageBusy, StorageCorrupt
from sync.system.hardware_id import derive_device_id, read_hardware_id

HOLDER = """
import sys
from pathlib import Path
from sync.accounts.profiles import acquire_sidecar_lock
lock = acquire_sidecar_lock(Path(sys.argv[1]), timeout=0)
print("held", flush=True)
sys.stdin.read()
"""


def opened_by_a_process(folder: str) -> tuple[str, str]:
    installation = open_installation(Path(folder), lambda: None)
    return installation.profile, installation.device_id


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_first_start_decides_once_and_every_later_one_reads_it(tmp_path: Path) -> None:
    first = open_installation(tmp_path / "data", lambda: "4C4C4544-0042")
    second = open_installation(tmp_path / "data", lambda: "another machine")
    assert first == second
    assert first.device_id == derive_device_id("4C4C4544-0042")


def test_a_profile_whose_first_start_was_killed_in_a_transaction_is_read(tmp_path: Path) -> None:
    profile = create_profile_folder(tmp_path, open_installation(tmp_path, lambda: None))
    killed = tmp_path / "killed.db"
    with closing(sqlite3.connect(killed, isolation_level=None)) as writer:
        writer.execute("create table accounts (user_id text, filler blob)")
        writer.execute("insert into accounts values ('ann', zeroblob(100000))")
        writer.execute("pragma cache_size = 1")  # pages of the open transaction reach the file
        writer.execute("begin immediate")
        writer.execute("update accounts set user_id = 'ben', filler = randomblob(200000)")
        shutil.copy(killed, profile.database)
        shutil.copy(f"{killed}-journal", f"{profile.database}-journal")
    assert profile.read_owner(DatabaseEncryption()) == "ann"


def test_a_machine_without_an_id_gets_one_that_stays(tmp_path: Path) -> None:
    first = open_installation(tmp_path / "one", lambda: None)
    assert open_installation(tmp_path / "one", lambda: None) == first
    assert open_installation(tmp_path / "two", lambda: None).device_id != first.device_id


def test_the_device_id_is_stable_and_not_the_hardware_id() -> None:
    assert derive_device_id(" ABC-123\n") == derive_device_id("abc-123")
    assert derive_device_id("abc-124") != derive_device_id("abc-123")
    assert "abc" not in derive_device_id("abc-123")
    assert read_hardware_id() == read_hardware_id()


def test_processes_that_start_at_once_agree(tmp_path: Path) -> None:
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        assert len(set(pool.map(opened_by_a_process, [str(tmp_path / "data")] * 8, chunksize=1))) == 1


def test_threads_that_start_at_once_agree(tmp_path: Path) -> None:
    found: list[Installation] = []
    threads = [
        threading.Thread(target=lambda: found.append(open_installation(tmp_path / "data", lambda: None)))
        for _ in range(20)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 20


def test_folders_and_files_are_private(tmp_path: Path) -> None:
    data = tmp_path / "data"
    profile = create_profile_folder(data, open_installation(data, lambda: None))
    acquire_sidecar_lock(data, timeout=0).release()
    assert {mode(folder) for folder in (data, data / "profiles", profile.folder)} == {0o700}
    assert {mode(path) for path in data.rglob("*") if path.is_file()} == {0o600}
    assert profile.database.parent == profile.session_file.parent == profile.folder


def test_another_device_id_is_remembered(tmp_path: Path) -> None:
    installation = open_installation(tmp_path, lambda: None)
    change_installation(tmp_path, lambda now: replace(now, device_id="named-by-the-app"))
    assert open_installation(tmp_path, lambda: None) == Installation(installation.profile, "named-by-the-app")


def test_what_a_device_was_called_before_stays_its_own(tmp_path: Path) -> None:
    first = open_installation(tmp_path, lambda: "4C4C4544-0042")
    for name in ("electron-1", "electron-2", "electron-1"):
        change_installation(tmp_path, lambda now, name=name: with_device_id(now, name, "4C4C4544-0042"))  # type: ignore[misc]
    found = open_installation(tmp_path, lambda: None)
    assert found.device_identity(None) == ("electron-1", (first.device_id, "electron-2"))
    assert found.device_identity("by-a-setting") == ("by-a-setting", ())


def test_what_came_with_a_copied_home_stays_the_other_machines() -> None:
    original = with_device_id(Installation("a" * 16, derive_device_id("machine A")), "electron-a", "machine A")
    assert original.earlier_ids == (derive_device_id("machine A"),)
    assert with_device_id(original, "electron-b", "machine B").earlier_ids == ()
    assert with_device_id(original, "electron-b", None).earlier_ids == (derive_device_id("machine A"), "electron-a")


def test_a_removed_account_is_noted_once_and_the_oldest_is_dropped(tmp_path: Path) -> None:
    open_installation(tmp_path, lambda: None)
    for name, digests in (("b" * 16, ["one"]), ("b" * 16, []), *((f"{number:016x}", []) for number in range(8))):
        change_installation(tmp_path, lambda now, name=name, found=digests: with_removed_account(now, name, found))  # type: ignore[misc]
        if name == "b" * 16:
            assert open_installation(tmp_path, lambda: None).removed == {name: ("one",)}
    assert list(open_installation(tmp_path, lambda: None).removed) == [f"{number:016x}" for number in range(8)]


GOOD: Final = "0123456789abcdef"
IMPOSSIBLE: Final[list[object]] = [
    *(b"", b"{", b"[]", b"null", b"7", b"{}", b"\xff\xfe", b'{"profile": "a"}', b'{"a":[1]}', b"[" * 200_000),
    b'{"profile": "\\ud800", "device_id": "a"}',
    *({"device_id": name} for name in ("", None, 7, "has a space", "x" * 129, "device\n", "../device")),
    *({"earlier_ids": names} for names in (["has a space"], [None], [["x"]])),
    *({"profile": name} for name in ("../../../etc", "", ".", GOOD[1:], f"{GOOD}0", GOOD.upper(), f"{GOOD}\n", "CON")),
    *({"profile": name} for name in (f"{GOOD[1:]}/", f"{GOOD[1:]}\\", f"٠{GOOD[1:]}", None, 5, [GOOD], {"a": 1})),
    {"removing": GOOD},
]


@pytest.mark.parametrize("said", IMPOSSIBLE)
def test_a_bad_installation_file_is_kept_and_written_again_for_the_memory_that_is_there(
    tmp_path: Path, said: object
) -> None:
    """No part of it becomes a path or a device id."""
    before = open_installation(tmp_path, lambda: "4C4C4544-0042")
    create_profile_folder(tmp_path, before)
    path = tmp_path / "installation.json"
    told = {"profile": GOOD, "device_id": "device-a"}
    content = said if isinstance(said, bytes) else json.dumps({**told, **cast("dict[str, object]", said)}).encode()
    path.write_bytes(content)
    found = open_installation(tmp_path, lambda: "4C4C4544-0042")
    assert replace(found, warning="") == before == open_installation(tmp_path, lambda: None)
    assert "installation_derived" in found.warning
    assert (tmp_path / "installation.json.damaged-1").read_bytes() == content
    assert [folder.name for folder in (tmp_path / "profiles").iterdir()] == [before.profile]


def test_without_its_installation_file_a_device_keeps_the_ids_of_its_events(tmp_path: Path) -> None:
    profile = create_profile_folder(tmp_path, open_installation(tmp_path, lambda: None))
    with closing(sqlite3.connect(profile.database)) as connection, connection:
        connection.execute("create table replica (replica_id text)")
        connection.execute("create table events (position integer primary key, device_id text, replica_id text)")
        connection.execute("insert into replica values ('rep_own')")
        rows = [("by-hardware", "rep_own"), ("by-the-app", "rep_own"), ("another", "rep_other")]
        connection.executemany("insert into events (device_id, replica_id) values (?, ?)", rows)
    (tmp_path / "installation.json").unlink()
    found = open_installation(tmp_path, lambda: "4C4C4544-0042")
    assert (found.profile, found.device_id, found.earlier_ids) == (profile.name, "by-the-app", ("by-hardware",))
    assert not found.warning, "nothing was lost"


def test_without_its_installation_file_the_profile_that_was_written_last_is_active(tmp_path: Path) -> None:
    first, second = (create_profile_folder(tmp_path, Installation(name * 16, "device-a")) for name in "ab")
    for profile, used_at in ((first, 2_000), (second, 1_000)):
        profile.database.touch()
        os.utime(profile.database, (used_at, used_at))
    found = open_installation(tmp_path, lambda: None)
    assert found.profile == first.name
    assert "the last used of 2" in found.warning


def test_whose_document_the_file_holds_is_remembered_over_any_number_of_switches(tmp_path: Path) -> None:
    ann = open_installation(tmp_path, lambda: None)
    ben, guest = "b" * 16, "c" * 16
    change_installation(tmp_path, lambda now: with_active_profile(now, ben, removing=ann.profile))
    change_installation(tmp_path, lambda now: with_active_profile(now, guest))
    found = open_installation(tmp_path, lambda: None)
    assert (found.profile, found.document_of, found.removing) == (guest, ann.profile, ann.profile)
    change_installation(tmp_path, lambda now: with_active_profile(now, ann.profile))
    assert open_installation(tmp_path, lambda: None) == ann  # a profile that becomes active again is not removed


def test_the_owner_of_a_profile_is_read_without_opening_it(tmp_path: Path) -> None:
    profile = create_profile_folder(tmp_path, open_installation(tmp_path, lambda: None))
    assert profile.read_owner(DatabaseEncryption()) is None
    profile.database.write_bytes(b"this is no database, and longer than a header" * 10)
    assert profile.read_owner(DatabaseEncryption()) is None
    profile.database.unlink()
    with closing(sqlite3.connect(profile.database)) as connection, connection:
        connection.execute("create table accounts (user_id text)")
        assert profile.read_owner(DatabaseEncryption()) is None
        connection.execute("insert into accounts values ('user-a')")
    assert profile.read_owner(DatabaseEncryption()) == "user-a"


def test_a_profile_that_cannot_be_read_now_is_not_taken_for_a_guest_s(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sync.accounts.profiles.OWNER_READ_TIMEOUT", 0.05)
    profile = create_profile_folder(tmp_path, open_installation(tmp_path, lambda: None))
    with closing(sqlite3.connect(profile.database, isolation_level=None)) as connection:
        connection.execute("create table accounts (user_id text)")
        connection.execute("begin exclusive")
        with pytest.raises(StorageBusy, match=profile.name):
            profile.read_owner(DatabaseEncryption())
        assert profile.read_replica_id(DatabaseEncryption()) is None


def test_a_profile_is_removed_with_all_that_is_in_it_and_never_anything_else(tmp_path: Path) -> None:
    profile = create_profile_folder(tmp_path, open_installation(tmp_path, lambda: None))
    profile.session_file.write_bytes(b"{}")
    remove_profile(tmp_path, profile.name)
    remove_profile(tmp_path, profile.name)
    assert not profile.folder.exists()
    for bad in ("..", "", "../../etc", "A" * 16):
        with pytest.raises(StorageCorrupt):
            remove_profile(tmp_path, bad)
    assert (tmp_path / "profiles").exists()


def test_only_one_takes_the_sidecar_role_and_a_killed_one_frees_it(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(AlreadyRunning):
            acquire_sidecar_lock(tmp_path, timeout=0)
    finally:
        holder.kill()
        holder.communicate(timeout=60)
    acquire_sidecar_lock(tmp_path, timeout=0).release()
