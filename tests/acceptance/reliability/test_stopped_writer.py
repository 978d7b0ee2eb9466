"""Commands that only read, beside a sidecar that was stopped while it held the write lock."""

import json
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.acceptance.environment import unreachable_cloud_settings, wait_for_lines
from tests.sidecar import Home, Sidecar, wait_until

LESSON = {
    "language": "python",
    "error": {"type": "ImportError", "message": "cannot import name 'Depends'"},
    "solution": {"description": "pip install fastapi"},
}
READS = {  # a command, and what its answer has
    ("load",): "爬山",
    ("status",): "writer_busy: ",
    ("search", "爬山"): "我喜欢爬山",
    ("search", "爬山", "--context"): "爬山",
    ("events", "verify"): "",
    ("facts", "list"): "爬山",
    ("lessons", "list"): "ImportError",
    ("daily", "list"): "",
    ("insights", "profile"): "",
}


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A home whose sidecar is stopped while it holds the write lock."""
    home = Home(tmp_path / "a", **unreachable_cloud_settings())
    with Sidecar(home) as sidecar:
        sidecar.update("我喜欢爬山")
        sidecar.call("lessons/learn", kind="error", record=LESSON)
        wait_for_lines(home, "爬山")
        sidecar.call_until("recall/search", lambda found: found["hits"], query="爬山")
        wait_until(lambda: _stop_while_writing(home, sidecar))
        yield home
        sidecar.process.send_signal(signal.SIGCONT)


def _stop_while_writing(home: Home, sidecar: Sidecar) -> bool:
    """Stop the sidecar while it records; let it go on if it does not hold the lock."""
    for number in range(20):
        sidecar.send("memory/update", userMessage=f"爬山要带什么 {number}", aiResponse="水")
    for _ in range(200):
        sidecar.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: _is_stopped(sidecar))  # before that it could still let the lock go
        if _is_locked(home):
            return True
        sidecar.process.send_signal(signal.SIGCONT)
    return False


def _is_stopped(sidecar: Sidecar) -> bool:
    status = Path("/proc", str(sidecar.process.pid), "stat").read_text()  # Linux
    return status.rpartition(")")[2].split()[0] in {"T", "t"}


def _is_locked(home: Home) -> bool:
    with closing(sqlite3.connect(home.database, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("begin immediate")
        except sqlite3.OperationalError:
            return True
        connection.execute("rollback")
    return False


def test_what_only_reads_answers_from_the_last_commit_and_says_so(home: Home) -> None:
    for command, expected in READS.items():
        done = home.run(*command, check=False)
        assert done.returncode == 0, (command, done.stderr)
        assert "文件可能还没跟上" in done.stderr, command
        assert expected in done.stdout, command


def test_doctor_names_the_process_that_does_not_answer(home: Home) -> None:
    checks = {check["name"]: check for check in json.loads(home.run("--json", "doctor", check=False).stdout)["checks"]}
    assert checks["sidecar"]["ok"] is False
    assert "does not answer" in checks["sidecar"]["found"]
    assert checks["database"]["ok"]
    assert "start" not in checks
