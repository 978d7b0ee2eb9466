"""Starts at once make one writer; what a start makes is private from its first moment.

`START_ROUNDS=20` is the full proof of the former; a test run makes fewer, since each costs two starts.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Self

import pytest

from tests.acceptance.environment import cloud_settings, exchanges, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import ANSWER_WITHIN, CallFailed, Home, Sidecar

ROUNDS: Final = int(os.environ.get("START_ROUNDS", "8"))
HOMES: Final = 4  # side by side: the one that does not get the role waits two seconds for it before it gives up
OTHERS: Final = 0o077


def test_two_that_start_at_once_are_one_writer(tmp_path: Path) -> None:
    with ThreadPoolExecutor(HOMES) as pool:
        homes = [Home(tmp_path / f"home {number}") for number in range(HOMES)]
        list(pool.map(start_in_pairs, homes, [ROUNDS // HOMES] * HOMES))


def start_in_pairs(home: Home, rounds: int) -> None:
    for number in range(rounds):
        with Sidecar(home) as one, Sidecar(home) as other:
            calls = {
                sidecar: sidecar.send("memory/update", userMessage="一", aiResponse="好") for sidecar in (one, other)
            }
            outcomes = {sidecar: outcome(sidecar, call) for sidecar, call in calls.items()}
            assert sorted(outcomes.values()) == ["already_running", "recorded"], number
            for sidecar, word in outcomes.items():
                if word == "recorded":
                    assert sidecar.call("sync/status")["sidecar"] is True
                    assert sidecar.stop() == 0
                else:
                    assert sidecar.process.wait(ANSWER_WITHIN) == 1
    with Sidecar(home) as last:
        assert [event["replica_seq"] for event in exchanges(last)] == list(range(1, rounds + 1))
        assert last.call("events/verify") == {"ok": True, "events": rounds, "problems": []}


def outcome(sidecar: Sidecar, call: int) -> str:
    try:
        return "recorded" if sidecar.wait_for_response(call)["recorded"] else "not recorded"
    except CallFailed as failed:
        return failed.kind


class Watch:
    """Looks at a folder over and over; remembers everything it ever saw there, and what others could have opened."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: set[str] = set()
        self.open: set[tuple[str, str]] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while True:
            last = self._ended.wait(0.001)
            for folder, _, names in os.walk(self.folder):
                for path in (folder, *(os.path.join(folder, name) for name in names)):  # noqa: PTH118 - speed is the point
                    self._note(path)
            if last:
                return

    def _note(self, path: str) -> None:
        try:
            mode = os.lstat(path).st_mode
        except FileNotFoundError:
            return
        name = os.path.relpath(path, self.folder)
        self.seen.add(name)
        if mode & OTHERS:
            self.open.add((name, oct(mode)))


@pytest.fixture
def everyday_umask() -> Iterator[None]:
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("everyday_umask")
def test_no_other_user_could_ever_open_anything_in_the_data_directory(
    tmp_path: Path, local_cloud: Cloud, new_user: Callable[[], User]
) -> None:
    home = Home(tmp_path / "a", LOG_LEVEL="DEBUG", **cloud_settings(local_cloud))
    user = new_user()
    with Watch(home.data) as watch, Sidecar(home) as sidecar:
        sidecar.log_in(user.email, user.password)
        sidecar.update("一")
        wait_until_synced(sidecar)
        home.run("update", "从命令行", "好的")
    assert watch.open == set()
    names = {Path(name).name for name in watch.seen}
    assert names >= {"memory.db", "memory.db-wal", "memory.db-shm", "session.json"}
    assert any(name.endswith(".lock") for name in names), names
    assert any(name.startswith("logs") for name in watch.seen), names
