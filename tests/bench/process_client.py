"""A program at the other end of two pipes, asked by a client that does nothing else."""

import json
import os
import statistics
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from tests.sidecar import REPOSITORY

CALLS: Final = 600
IN_FLIGHT: Final = 64
WARM: Final = 20  # calls that are not counted


@dataclass(frozen=True)
class Program:
    """How to start and call a program. `opening`: frames before the first request; those with an id get a response.

    `headers`: whether its frames begin with `Content-Length`, as in LSP, or end with a line.
    """

    command: Sequence[str]
    request: Mapping[str, Any]
    opening: Sequence[Mapping[str, Any]] = ()
    headers: bool = False
    environment: Mapping[str, str] | None = None


class ProgramClient:
    """A running program; `ask` sends its one request and waits for the answer."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.process = subprocess.Popen(
            program.command,
            env=program.environment,
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._request = self._framed(program.request)
        for frame in program.opening:
            self.send(self._framed(frame))
            if "id" in frame:
                self.read()

    @property
    def pid(self) -> int:
        return self.process.pid

    def ask(self, request: Mapping[str, Any] | None = None) -> bytes:
        """The answer to a request, by default the program's own."""
        self.send(self._request if request is None else self._framed(request))
        return self.read()

    def send(self, frame: bytes) -> None:
        stdin = _pipe(self.process.stdin)
        stdin.write(frame)
        stdin.flush()

    def read(self) -> bytes:
        """The next answer; what the program tells unasked is passed over."""
        answer = self._frame()
        while b'"method"' in answer[:40]:
            answer = self._frame()
        assert answer, f"{self.program.command} ended"
        assert b'"error":{' not in answer[:200], answer[:500]
        return answer

    def _frame(self) -> bytes:
        stdout = _pipe(self.process.stdout)
        if not self.program.headers:
            return stdout.readline()
        lines = iter(stdout.readline, b"\r\n")
        length = next(int(line.partition(b":")[2]) for line in lines if line.lower().startswith(b"content-length"))
        deque(lines, 0)  # to the empty line
        return stdout.read(length)

    def calls_per_second(self) -> float:
        """One call after another."""
        for _ in range(WARM):
            self.ask()
        began = time.perf_counter()
        for _ in range(CALLS):
            self.ask()
        return CALLS / (time.perf_counter() - began)

    def calls_per_second_in_flight(self) -> float:
        """So many calls at once that a new one is sent with each answer."""
        self.send(self._request * IN_FLIGHT)
        began = time.perf_counter()
        for _ in range(CALLS):
            self.read()
            self.send(self._request)
        seconds = time.perf_counter() - began
        for _ in range(IN_FLIGHT):
            self.read()
        return CALLS / seconds

    def close(self) -> None:
        _pipe(self.process.stdin).close()
        self.process.wait(10)
        _pipe(self.process.stdout).close()

    def _framed(self, message: Mapping[str, Any]) -> bytes:
        text = json.dumps(message).encode()
        return b"Content-Length: %d\r\n\r\n%s" % (len(text), text) if self.program.headers else text + b"\n"


@contextmanager
def run_program(program: Program) -> Iterator[ProgramClient]:
    child = ProgramClient(program)
    try:
        yield child
    finally:
        child.close()


def request(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def first_answer_ms(program: Program, starts: int) -> float:
    """Median from the spawn to the first answer; the child's leaving is not counted."""
    times = []
    for _ in range(starts):
        began = time.perf_counter()
        with run_program(program) as child:
            child.ask()
            times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def measure_ms(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return (time.perf_counter() - began) * 1000


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_mb(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the process has no VmRSS")


def _pipe(pipe: IO[bytes] | None) -> IO[bytes]:
    assert pipe is not None
    return pipe
