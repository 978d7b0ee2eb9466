"""Sidecars without the start of an interpreter, which costs three times what most crash points do.

A worker of the full run has imported the program once; each sidecar is a fork of it, a process of its own on pipes of
its own that runs the same `main` and is killed the same way. The sample in `make test` starts real commands.
"""

import importlib
import logging
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Final, NoReturn

from tests.crash.steps import STEPS, place_of
from tests.sidecar import Sidecar

LATE: Final = ("bridge.cli.main", "bridge.serving", "tests.crash.child", "sync.app", "sync.cloud.supabase", "re2")
LOOK_EVERY: Final = 0.005  # seconds between looks whether the process is still there


class Forked:
    """What the tests use of subprocess.Popen. `command`: the interpreter, -m, a module with a `main`, arguments."""

    def __init__(
        self, command: Sequence[str], *, env: Mapping[str, str], cwd: Path, stderr: IO[bytes], **_pipes: int
    ) -> None:
        its_input, our_output = os.pipe()
        our_input, its_output = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(our_output)
            os.close(our_input)
            for given, number in ((its_input, 0), (its_output, 1), (stderr.fileno(), 2)):
                os.dup2(given, number)
            os.close(its_input)
            os.close(its_output)
            _live(command, env, cwd)
        os.close(its_input)
        os.close(its_output)
        self.stdin: IO[bytes] = os.fdopen(our_output, "wb")
        self.stdout: IO[bytes] = os.fdopen(our_input, "rb")
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it lives."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout: float) -> int:
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("a forked sidecar", timeout)
            time.sleep(LOOK_EVERY)  # a pause between looks, not a wait for an effect
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


def _live(command: Sequence[str], env: Mapping[str, str], cwd: Path) -> NoReturn:
    """Be the command, and never come back to what this process was a copy of."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(env)
        time.tzset()
        os.chdir(cwd)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _, _, module, *arguments = command
        sys.argv = [module, *arguments]
        importlib.import_module(module).main()
        code = 0
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
    finally:
        logging.shutdown()
        os._exit(code)


def preload() -> None:
    """Begin a worker: import the program, and start sidecars by forks from now on."""
    for step in STEPS:
        place_of(step)
    for module in LATE:
        importlib.import_module(module)
    Sidecar.popen = Forked
