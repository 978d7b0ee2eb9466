"""Disks that fail in the middle: SQLite's calls and the kernel's answer EIO and ENOSPC; nothing of ours is replaced."""

import errno
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from sync.clock import SystemClock
from sync.db.engine import Database
from sync.errors import StorageError, StorageFull
from sync.log import store
from sync.log.log import EventLog
from sync.log.model import Query
from tests.acceptance.environment import exchanges, integrity, question_counts
from tests.crash.environment import CrashEnvironment
from tests.crash.faults.failing_disk import sqlite_cannot_write
from tests.sidecar import REPOSITORY, CallFailed, Home, Sidecar, wait_until
from tests.support import draft

IN_A_NAMESPACE: Final = ("unshare", "--map-root-user", "--mount")
SMALL: Final = "8m"


async def opened(path: Path) -> tuple[Database, EventLog]:
    database = await Database.open(path)
    await database.write(lambda connection: store.ensure_replica_id(connection, SystemClock()))
    return database, EventLog(database, SystemClock(), device_id="device-a", session_id="sess_20260202_001")


async def words(log: EventLog) -> list[str]:
    return [str(event.payload["text"]) for event in (await log.read(Query())).events]


@pytest.mark.parametrize(("number", "kind"), [(errno.EIO, StorageError), (errno.ENOSPC, StorageFull)])
async def test_a_failed_write_is_not_acknowledged_and_writing_goes_on_when_the_disk_works(
    tmp_path: Path, number: int, kind: type[StorageError]
) -> None:
    database, log = await opened(tmp_path / "memory.db")
    await log.append([draft("before")])
    assert await words(log) == ["before"]
    with sqlite_cannot_write(number):
        for _ in range(2):
            with pytest.raises(StorageError) as caught:
                await log.append([draft("refused")])
            assert type(caught.value) is kind
        assert await words(log) == ["before"]
    await log.append([draft("after")])
    assert await words(log) == ["before", "after"]
    assert await log.find_problems() == []
    await database.close()


async def test_after_an_error_nothing_is_acknowledged_before_all_earlier_commits_are_in_the_database(
    tmp_path: Path,
) -> None:
    """Commits in the log alone may be lost with a failed flush: the kernel forgets the dirty pages."""
    database, log = await opened(tmp_path / "memory.db")
    await log.append([draft("before")])
    assert b"before" not in (tmp_path / "memory.db").read_bytes()
    with sqlite_cannot_write(errno.EIO), pytest.raises(StorageError):
        await log.append([draft("refused")])
    await log.append([draft("after")])
    assert b"before" in (tmp_path / "memory.db").read_bytes()
    await database.close()


def test_a_sidecar_whose_flushes_fail_acknowledges_nothing_more_and_loses_no_acknowledged_event(tmp_path: Path) -> None:
    world = CrashEnvironment(tmp_path, None, None)
    with world.sidecar() as sidecar:
        world.send_updates(sidecar, "早先的话")
    sidecar = world.crashing_sidecar("--at", "redact:before:2", "--fail")
    world.send_updates(sidecar, "还好的时候")
    for word in ("坏了以后", "又说一次"):
        with pytest.raises(CallFailed) as refused:
            sidecar.update(word, "好", idempotencyKey=word)
        assert refused.value.kind == "storage_error"
        assert "disk" in refused.value.data["hint"]
    assert {"早先的话", "还好的时候"} <= set(question_counts(sidecar.load(waitMs=0)["document"]))
    text = world.text
    sidecar.kill()
    assert world.text == text
    world.age_temporary_files()
    with world.sidecar() as again:
        kept = {event["event_id"] for event in exchanges(again)}
        assert set(world.acknowledged_ids.values()) <= kept
        world.send_updates(
            again, "坏了以后", "又说一次"
        )  # the same keys: an update that reached the disk is there once
        world.check(again)
    assert integrity(world.home) == "ok"


def test_on_a_full_disk_nothing_is_acknowledged_until_there_is_room(tmp_path: Path) -> None:
    """On a file system of a few megabytes, if this machine allows mounting one without privileges."""
    try:
        subprocess.run([*IN_A_NAMESPACE, "mount", "-t", "tmpfs", "none", tmp_path], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no file system may be mounted here; the test above fills the disk by its answers")
    mount = f"mount -t tmpfs -o size={SMALL} none {tmp_path} && exec {sys.executable} -m {__spec__.name}"
    done = subprocess.run(
        [*IN_A_NAMESPACE, "sh", "-c", f"{mount} {tmp_path}"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def fill_and_empty(folder: Path) -> None:
    home = Home(folder / "home")
    with Sidecar(home) as sidecar:
        acknowledged = [sidecar.update("有地方", "好")["eventId"]]
        wait_until(home.file.exists)
        before = home.file.read_bytes()
        ballast = fill(folder / "ballast")
        for turn in range(3):
            try:
                acknowledged.append(sidecar.update(f"满了 {turn}" + "很长" * 4000, "好")["eventId"])
            except CallFailed as error:
                assert error.kind == "storage_full", error.kind  # noqa: PT017 - what was acknowledged counts
                break
        else:
            raise AssertionError("a full disk took everything")
        assert home.file.read_bytes().startswith(before[:40]), "the file is whole"
        assert "有地方" in sidecar.load(waitMs=0)["document"]
        ballast.unlink()
        acknowledged.append(sidecar.update("又有地方", "好")["eventId"])
        wait_until(lambda: "又有地方" in home.file.read_text("utf-8"))
        assert [event["event_id"] for event in exchanges(sidecar)] == acknowledged
    assert integrity(home) == "ok"


def fill(ballast: Path) -> Path:
    """Create a file that fills the disk."""
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    file.write(bytes(size))
            except OSError as error:
                assert error.errno == errno.ENOSPC  # noqa: PT017
    assert shutil.disk_usage(ballast.parent).free < 1 << 12
    os.sync()
    return ballast


if __name__ == "__main__":
    fill_and_empty(Path(sys.argv[1]))
