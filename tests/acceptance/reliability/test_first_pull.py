"""A device joins an account with a history and reports its progress, with the real API and server."""

import os
import pty
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.acceptance.environment import cloud_settings
from tests.cloud.database.bulk_history import write_history
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import COMMAND, REPOSITORY, Home, NotificationListener

HISTORY = 2_500  # three answers


@pytest.fixture
def home(tmp_path: Path, local_cloud: Cloud, new_user: Callable[[], User]) -> Home:
    """A device that is logged in to an account into which another one has written since."""
    user = new_user()
    home = Home(tmp_path / "a", **{**cloud_settings(local_cloud), "SYNC__POLL_SECONDS": "300"})
    home.run("login", user.email, "--password-stdin", stdin=user.password + "\n")
    home.run("sync")
    write_history(local_cloud, user.user_id, HISTORY)
    return home


def test_the_app_receives_a_notification_of_each_page_and_of_the_end(home: Home) -> None:
    with NotificationListener(home) as ear:
        ear.call("initialize")
        reports = [ear.next("$/progress")]
        while reports[-1]["value"]["kind"] != "end":
            reports.append(ear.next("$/progress"))
    assert len({message["token"] for message in reports}) == 1
    assert [message["value"]["kind"] for message in reports] == ["begin", "report", "report", "end"]
    assert [message["value"]["done"] for message in reports] == [1_000, 2_000, HISTORY, HISTORY]
    assert {(message["value"]["title"], message["value"]["total"]) for message in reports} == {("sync", HISTORY)}


def test_on_a_terminal_sync_shows_a_bar(home: Home) -> None:
    screen, behind = pty.openpty()
    with subprocess.Popen(
        [*COMMAND, "sync"],
        env={**home.environment, "TERM": "xterm", "COLUMNS": "120"},
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=behind,
        text=True,
    ) as command:
        os.close(behind)
        shown = _all_of(screen)
        assert command.stdout is not None
        assert f"接收 {HISTORY}" in command.stdout.read()
    assert f"2000/{HISTORY}" in shown


def test_a_pipe_gets_no_bar(home: Home) -> None:
    done = home.run("sync")
    assert f"接收 {HISTORY}" in done.stdout
    assert done.stderr == ""


def _all_of(screen: int) -> str:
    """Return what the program printed to its terminal."""
    seen = b""
    with suppress(OSError):  # Linux tells of the end by an input/output error
        while piece := os.read(screen, 1 << 16):
            seen += piece
    os.close(screen)
    return seen.decode(errors="replace")
