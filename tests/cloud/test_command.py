"""`python -m tests.cloud` as a program in any language uses it: one line when ready, and nothing left behind."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cloud.fixtures import REPOSITORY, wait_until
from tests.cloud.prerequisites import unprivileged_account
from tests.proof import first_in_test

ENDED_WITHIN = 60.0  # seconds; a bound for a broken program
COMMAND = [sys.executable, "-m", "tests.cloud"]


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A temporary folder of the program, to see what is left in it."""
    with tempfile.TemporaryDirectory() as directory:
        if unprivileged_account() is not None:
            Path(directory).chmod(0o777)  # PostgreSQL runs as another account
        yield Path(directory)


@contextlib.contextmanager
def launched(scratch: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], dict[str, Any]]]:
    process = subprocess.Popen(
        [*COMMAND, *options],
        cwd=REPOSITORY,
        env=os.environ | {"TMPDIR": str(scratch)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        assert process.stdout is not None
        try:
            yield process, json.loads(process.stdout.readline())
        finally:
            process.kill()


@pytest.mark.parametrize("engine", first_in_test(["postgres", "pglite"]))
def test_it_ends_with_its_input_and_leaves_nothing(engine: str, scratch: Path) -> None:
    with launched(scratch, "--engine", engine) as (process, told):
        assert all(map(is_running, told["pids"]))
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(ENDED_WITHIN) == 0
        assert list(scratch.iterdir()) == []
        assert not any(map(is_running, told["pids"]))


@pytest.mark.parametrize("number", first_in_test([signal.SIGTERM, signal.SIGINT]))
def test_it_ends_when_asked_to(number: signal.Signals, scratch: Path) -> None:
    with launched(scratch) as (process, told):
        process.send_signal(number)
        assert process.wait(ENDED_WITHIN) == 0
        assert list(scratch.iterdir()) == []
        assert not any(map(is_running, told["pids"]))


@pytest.mark.parametrize("engine", first_in_test(["postgres", "pglite"]))
def test_killed_without_warning_it_leaves_nothing(engine: str, scratch: Path) -> None:
    with launched(scratch, "--engine", engine) as (process, told):
        process.kill()
        process.wait()
        wait_until(lambda: not any(map(is_running, told["pids"])), timeout=ENDED_WITHIN)
        wait_until(lambda: not list(scratch.iterdir()), timeout=ENDED_WITHIN)


@pytest.mark.proof
def test_with_a_proxy_the_url_is_the_proxys(scratch: Path) -> None:
    with launched(scratch, "--proxy") as (_, told):
        headers = {"apikey": told["publishable_key"]}
        assert httpx.get(f"{told['url']}/auth/v1/health", headers=headers).is_success
        httpx.post(f"{told['control']}/cut").raise_for_status()
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{told['url']}/auth/v1/health", headers=headers)


@pytest.mark.proof
def test_a_missing_tool_is_named_with_its_remedy(tmp_path: Path) -> None:
    environment = os.environ | {"PATH": str(tmp_path)}
    ended = subprocess.run(COMMAND, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert "Node.js" in ended.stderr
    assert "make setup" in ended.stderr
    assert "Traceback" not in ended.stderr


def is_running(pid: int) -> bool:
    """A zombie counts as dead."""
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False).stdout
    return not said.strip().startswith("Z") and bool(said.strip())
