"""`make demo` checks what it shows, and says by its exit status whether all of it held."""

import subprocess
import sys

import pytest

from tests.sidecar import REPOSITORY


@pytest.mark.proof
@pytest.mark.parametrize("options", [(), ("--lan",)], ids=["with the cloud", "on one network"])
def test_the_demo_ends_by_itself_and_loses_nothing(options: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "tests.demo", "--once", *options]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing was lost" in done.stdout
