"""Commands without the start of an interpreter, which costs most of what a short command does.

For each test worker one process imports the program, once. Each command is a fork of it: a process of its own, with the
files, environment and folder it was given, that runs the same `main`, dies of the same signals and leaves the same exit
code. Tests of the start itself use subprocess.Popen, as all tests do on Windows.

    worker -- a request and its files, on a socket --> the prepared process
                                                         +-- fork: a keeper, which tells pid and exit code
                                                               +-- fork: the command
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Final

import bridge
import sync
from sync.chinese_words import content_words
from sync.cloud.supabase.http_client import tls_context
from sync.redaction import Redactor
from sync.settings.reader import settings_model

PACKAGES: Final = (sync, bridge)
LOADED_LATE: Final = (  # by other packages, at the first request or command
    "anyio._backends._asyncio",
    "httpcore",
    "importlib.readers",
    "pydantic_settings",
    "rich.progress",
    "sqlalchemy.dialects.sqlite",
    "typer.rich_utils",
    "tests.crash.crash_process",
)
NUMPY: Final = "sync.recall.semantic.vector_index"  # has threads, which a fork would lose
NUMBER: Final = struct.Struct("!q")
FILES: Final = 4  # of a request: the command's three, and the socket on which its keeper tells
CUT_OFF: Final = "the prepared process is gone"


class ForkedProcess:
    """What tests use of subprocess.Popen. `command`: the interpreter, -m, a module with a `main`, arguments."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        stdin: int | IO[Any],
        stdout: int | IO[Any],
        stderr: IO[Any],
    ) -> None:
        self.args = command
        self.returncode: int | None = None
        self.stdin: IO[bytes] | None = None
        self.stdout: IO[bytes] | None = None
        self._keeper, told = socket.socketpair()
        files = [one if isinstance(one, int) else one.fileno() for one in (stdin, stdout, stderr)]
        theirs: list[int] = []
        if stdin == subprocess.PIPE:
            files[0], ours = os.pipe()
            theirs.append(files[0])
            self.stdin = os.fdopen(ours, "wb")
        if stdout == subprocess.PIPE:
            ours, files[1] = os.pipe()
            theirs.append(files[1])
            self.stdout = os.fdopen(ours, "rb")
        with told:
            start_forkserver().start({"argv": command[2:], "env": dict(env), "cwd": str(cwd)}, [*files, told.fileno()])
        for end in theirs:
            os.close(end)
        self.pid = self._hear(None)

    def poll(self) -> int | None:
        """The exit code, negative for a signal; None while it lives."""
        try:
            return self.wait(0.0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None:
            try:
                self.returncode = self._hear(timeout)
            except (TimeoutError, BlockingIOError):
                raise subprocess.TimeoutExpired(self.args, timeout or 0.0) from None
            self._keeper.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it ended meanwhile, as subprocess.Popen allows for too
                os.kill(self.pid, number)

    def _hear(self, timeout: float | None) -> int:
        self._keeper.settimeout(timeout)
        report = self._keeper.recv(NUMBER.size)
        if len(report) < NUMBER.size:
            raise RuntimeError(CUT_OFF)
        return int(NUMBER.unpack(report)[0])


class ForkServerClient:
    """This process's side of the prepared one, which ends with it."""

    def __init__(self) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs:
            subprocess.Popen(
                [sys.executable, "-m", "tests.forkserver", str(theirs.fileno())],
                cwd=Path(__file__).parents[1],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._alone = threading.Lock()

    def start(self, request: Mapping[str, Any], files: Sequence[int]) -> None:
        data = json.dumps(request).encode()
        with self._alone:
            socket.send_fds(self._socket, [NUMBER.pack(len(data))], files)
            self._socket.sendall(data)


@cache
def start_forkserver() -> ForkServerClient:
    return ForkServerClient()


# --- in the prepared process ------------------------------------------------------------------------------------------


def serve_forks(asked: socket.socket) -> dict[str, Any] | None:
    """Fork for each request. In the command's process: the request. In the prepared one None, at the end."""
    with closing(asked):
        while True:
            size, files, _, _ = socket.recv_fds(asked, NUMBER.size, FILES)
            if not size:
                return None
            data = b""
            while len(data) < NUMBER.unpack(size)[0]:
                data += asked.recv(NUMBER.unpack(size)[0] - len(data))
            if os.fork() == 0:
                break
            for file in files:
                os.close(file)
    request: dict[str, Any] = json.loads(data)
    *standard, told = files
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with socket.socket(fileno=told) as keeper:
        pid = os.fork()
        if pid == 0:
            keeper.close()
            for number, file in enumerate(standard):
                os.dup2(file, number)
                os.close(file)
            return request
        for file in standard:
            os.close(file)
        keeper.sendall(NUMBER.pack(pid))
        _, status = os.waitpid(pid, 0)
        keeper.sendall(NUMBER.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


def modules_below(packages: Iterable[ModuleType]) -> list[str]:
    return [
        module.name
        for package in packages
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
        if module.name != NUMPY
    ]


def main() -> None:
    requests = socket.socket(fileno=int(sys.argv[1]))
    for name in (*modules_below(PACKAGES), *LOADED_LATE):
        importlib.import_module(name)
    Redactor().clean("一句话 a sentence")  # compiles its rules
    content_words("一句话")  # loads the segmenter
    settings_model()
    tls_context()  # reads the certificates
    gc.collect()
    gc.freeze()  # what is shared stays shared: no collection of a fork writes into it
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # keepers leave nothing behind
    request = serve_forks(requests)
    if request is None:
        return
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    os.chdir(request["cwd"])
    # New streams, as at a start: the old ones have probed files that are closed now.
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115 - descriptors
    sys.stderr = open(2, "w", 1, errors="backslashreplace", closefd=False)  # noqa: SIM115 - as above
    name, *arguments = request["argv"]
    module: Any = importlib.import_module(name)
    sys.argv = [module.__file__, *arguments]
    sys.modules["__main__"].__package__ = module.__package__  # by which a command tells its name
    try:
        module.main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            exit_without_teardown(end.code or 0)
        raise
    exit_without_teardown(0)


def exit_without_teardown(code: int) -> None:
    """End as an interpreter does, but without freeing each object, which would copy all that is shared.

    Returns if a stream cannot be flushed: the interpreter reports that in its own way.
    """
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
