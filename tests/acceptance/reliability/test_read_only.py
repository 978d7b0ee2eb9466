"""A memory that may not be written any more (a mounted backup, a folder of an administrator's) can still be read."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.environment import files_below, question_counts, unreachable_cloud_settings, wait_for_lines
from tests.sidecar import COMMAND, Home, Sidecar

IN_GOOD_ORDER = "left in good order"
BOUND_BY_PERMISSIONS = (*COMMAND[:2], "tests.acceptance.reliability.bound_by_permissions")


@pytest.fixture(params=[IN_GOOD_ORDER, "killed, with a write-ahead log"])
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Home]:
    with _only_to_read(
        Home(tmp_path / "a", **unreachable_cloud_settings()), killed=request.param != IN_GOOD_ORDER
    ) as home:
        yield home


@contextmanager
def _only_to_read(home: Home, *, killed: bool) -> Iterator[Home]:
    """A home whose data directory and file may only be read."""
    with Sidecar(home) as sidecar:
        sidecar.update("记住这个")
        wait_for_lines(home, "记住这个")
        if killed:
            sidecar.kill()
    assert any(path.name == "memory.db-wal" for path in files_below(home.data)) == killed
    _set_modes(home, folder_mode=0o500, file_mode=0o400)
    yield home
    _set_modes(home, folder_mode=0o700, file_mode=0o600)


def ask(home: Home, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """A command of the owner, whom permissions bind."""
    return home.run("--json", *arguments, check=False, command=BOUND_BY_PERMISSIONS)


def answer(home: Home, *arguments: str) -> Any:
    done = ask(home, *arguments)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("killed", [False, True])
def test_an_encrypted_one_answers_as_well(tmp_path: Path, killed: bool) -> None:
    settings = {**unreachable_cloud_settings(), "PRIVACY__ENCRYPT_AT_REST": "true"}
    with _only_to_read(Home(tmp_path / "a", **settings), killed=killed) as home:
        test_what_only_reads_answers_and_says_so(home)


def test_what_only_reads_answers_and_says_so(home: Home) -> None:
    assert question_counts(answer(home, "load")["document"]) == {"记住这个": 1}
    assert [event["type"] for event in answer(home, "events", "read", "{}")["events"]] == ["exchange_recorded"]
    status = answer(home, "status")
    assert status["pending"] == 1
    assert any(warning.startswith("storage_read_only: ") for warning in status["document"]["warnings"])


def test_what_writes_is_refused_with_its_kind_and_a_hint(home: Home) -> None:
    before = {path: path.read_bytes() for path in files_below(home.folder)}
    event = '{"type": "note_taken", "payload": {}}'
    for command in (("update", "问", "答"), ("events", "append", event), ("sync",), ("serve",)):
        done = ask(home, *command)
        assert done.returncode == 1, command
        assert "Give this user write permission" in done.stderr
        if command != ("serve",):
            assert json.loads(done.stderr)["error"]["data"]["kind"] == "storage_read_only"
    after = {path: path.read_bytes() for path in files_below(home.folder)}
    assert after == before


def _set_modes(home: Home, *, folder_mode: int, file_mode: int) -> None:
    for path in [*home.folder.rglob("*"), home.folder]:
        path.chmod(0o700 if path.is_dir() else file_mode)
    for path in [path for path in home.folder.rglob("*") if path.is_dir()]:
        path.chmod(folder_mode)
    home.folder.chmod(folder_mode)
