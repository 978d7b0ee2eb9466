"""`make demo` checks what it shows, and says by its exit status whether all of it held."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.demo.scenario import ViewersHome
from tests.sidecar import REPOSITORY


@pytest.mark.proof
@pytest.mark.parametrize("options", [(), ("--lan",)], ids=["with the cloud", "on one network"])
def test_the_demo_ends_by_itself_and_loses_nothing(options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "tests.demo", "--once", *options]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing was lost" in done.stdout


def test_its_dates_are_those_of_the_viewers_zone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TZ", "America/Lima")
    assert ViewersHome(tmp_path).environment["TZ"] == "America/Lima"
    monkeypatch.delenv("TZ")
    assert "TZ" not in ViewersHome(tmp_path).environment
