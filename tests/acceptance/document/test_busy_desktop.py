"""A desktop without free inotify instances or watches: the file is still read and written, and the cause is named."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.sidecar import COMMAND, Home, Sidecar, wait_until

LIMITS = {
    "max_inotify_instances": "inotify instance limit reached",
    "max_inotify_watches": "inotify watch limit reached",
}


def without(limit: str, *command: str) -> list[str]:
    """A command in a user namespace of its own, in which this limit is used up."""
    script = f'echo 0 > /proc/sys/user/{limit} && exec "$@"'
    return ["unshare", "-Ur", "sh", "-c", script, "sh", *command]


@pytest.fixture(autouse=True)
def _needs_user_namespaces() -> None:
    works = shutil.which("unshare") and subprocess.run(without("max_inotify_watches", "true"), check=False)
    if not works or works.returncode != 0:
        pytest.skip("no user namespaces here")


@pytest.mark.parametrize("limit", LIMITS)
def test_the_file_is_polled_and_the_cause_is_named(tmp_path: Path, limit: str) -> None:
    home = Home(tmp_path / "home", DOCUMENT__POLL_SECONDS="0.2")
    with Sidecar(home, command=without(limit, *COMMAND, "serve")) as sidecar:
        sidecar.update("今天几号")
        wait_until(lambda: home.file.exists() and "今天几号" in home.file.read_text("utf-8"))
        home.file.write_text(
            home.file.read_text("utf-8").replace("### 技术偏好\n", "### 技术偏好\n- 四个空格\n"), "utf-8"
        )
        sidecar.call_until("events/read", lambda page: "四个空格" in str(page["events"]))
        status = sidecar.call("sync/status")
        assert status["watchers"]["file"] is False
        (warning,) = status["document"]["warnings"]
        assert warning.startswith(f"file_not_watched: {LIMITS[limit]}")
        (check,) = (one for one in sidecar.call("doctor")["checks"] if one["name"] == "watcher")
        assert check["ok"] is False
        assert LIMITS[limit] in check["found"]
        assert "max_user_instances" in check["hint"]
    done = home.run("doctor", check=False, command=without(limit, *COMMAND))
    assert LIMITS[limit] in done.stdout
    assert done.returncode == 1
