"""A real sidecar process with a home of its own, and a small JSON-RPC client: for acceptance tests, demo and bench."""

import itertools
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, ClassVar, Final, Self

from tests.forkserver import ForkedProcess

COMMAND: Final = [sys.executable, "-m", "bridge.cli.main"]
ANSWER_WITHIN: Final = 60.0  # seconds; a bound for a broken program on a busy machine, not a time anybody expects
REPOSITORY: Final = Path(__file__).parents[1]


def start_process(command: Sequence[str], **files: Any) -> Any:
    """A process of this program, as subprocess.Popen starts it, without starting an interpreter if possible."""
    may = sys.platform != "win32" and list(command[:2]) == COMMAND[:2]
    return ForkedProcess(command, **files) if may else subprocess.Popen(command, **files)


class CallFailed(Exception):
    """A JSON-RPC error. `kind` is the stable word in its data."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code = int(error["code"])
        self.data = dict(error.get("data") or {})
        self.kind = str(self.data.get("kind", ""))


class Home:
    """A temporary home: its file, its data directory, its environment. Nothing of the real one is seen."""

    def __init__(self, folder: Path, *, device: str = "device-a", **settings: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.file = folder / "xiaobai-ai-memory.md"
        self.data = folder / "data"
        self.settings = {
            "DATA_DIR": str(self.data),
            "MEMORY_FILE": str(self.file),
            "DEVICE_ID": device,
            "DEVICE_NAME": f"name of {device}",
            "TOKEN_STORE": "file",
            "LAN__ENABLED": "off",  # devices of one account meet by the cloud alone, unless a test says so
            "RECALL__EMBEDDINGS": "off",  # hundreds of sidecars need no models; the tests of vectors turn them on
            **settings,
        }

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("XIAOBAI_")}
        ours = {f"XIAOBAI_{name}": value for name, value in self.settings.items()}
        return {**kept, "HOME": str(self.folder), "TZ": "Asia/Shanghai", **ours}

    def run(
        self, *arguments: str, stdin: str = "", check: bool = True, command: Sequence[str] = COMMAND
    ) -> subprocess.CompletedProcess[str]:
        """One command of the command line."""
        with TemporaryFile() as given, TemporaryFile() as told, TemporaryFile() as complained:
            given.write(stdin.encode())
            given.seek(0)
            process = start_process(
                [*command, *arguments],
                env=self.environment,
                cwd=REPOSITORY,
                stdin=given,
                stdout=told,
                stderr=complained,
            )
            done = subprocess.CompletedProcess([*arguments], process.wait(60), _text(told), _text(complained))
        if check:
            done.check_returncode()
        return done

    def json(self, *arguments: str, stdin: str = "") -> Any:
        """The JSON that a command prints."""
        return json.loads(self.run("--json", *arguments, stdin=stdin).stdout)

    @property
    def database(self) -> Path:
        """The active profile's."""
        return self.data / "profiles" / self.installation["profile"] / "memory.db"

    @property
    def installation(self) -> dict[str, str]:
        found: dict[str, str] = json.loads((self.data / "installation.json").read_text())
        return found


class Sidecar:
    """`xiaobai-memory serve` as a child. `with Sidecar(home) as sidecar: sidecar.call("memory/load")`."""

    start: ClassVar[Any] = staticmethod(start_process)

    def __init__(self, home: Home, *, command: Sequence[str] = (*COMMAND, "serve")) -> None:
        self.home = home
        self._ids = itertools.count(1)
        self._answers: dict[int, queue.Queue[dict[str, Any]]] = {}
        self._guard = threading.Lock()
        self.notifications: list[tuple[str, Any]] = []
        self.process = self.start(
            command,
            env=home.environment,
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=(home.folder / "stderr.log").open("ab"),
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def call(self, method: str, **params: Any) -> Any:
        """The result. Raises CallFailed, or TimeoutError without a response."""
        return self.wait_for_response(self.send(method, **params))

    def send(self, method: str, **params: Any) -> int:
        """Send a request without waiting; the number to wait for."""
        number = next(self._ids)
        with self._guard:
            self._answers[number] = queue.Queue()
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")
        self.process.stdin.flush()
        return number

    def wait_for_response(self, number: int, timeout: float = ANSWER_WITHIN) -> Any:
        """The answer to an earlier `send`."""
        try:
            answer = self._answers[number].get(timeout=timeout)
        except queue.Empty:
            raise TimeoutError(f"no answer within {timeout} s; see {self.home.folder / 'stderr.log'}") from None
        if "error" in answer:
            raise CallFailed(answer["error"])
        return answer["result"]

    def update(self, user: str, ai: str = "好的", **more: Any) -> Any:
        return self.call("memory/update", userMessage=user, aiResponse=ai, **more)

    def load(self, **params: Any) -> Any:
        return self.call("memory/load", **params)

    def log_in(self, email: str, password: str) -> Any:
        return self.call("auth/password", email=email, password=password)

    def call_until(self, method: str, condition: Any, timeout: float = ANSWER_WITHIN, **params: Any) -> Any:
        """Ask until the answer is acceptable; AssertionError with the last one after the timeout."""
        deadline = time.monotonic() + timeout
        while True:
            answer = self.call(method, **params)
            if condition(answer):
                return answer
            assert time.monotonic() < deadline, f"{method} never became acceptable: {answer}"
            time.sleep(0.02)  # a pause between questions, not a wait for an effect

    def kill(self) -> None:
        """kill -9: no chance to finish anything."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(10)

    def stop(self) -> int:
        """Close stdin, as a leaving app does; the exit code."""
        if self.process.poll() is None:
            assert self.process.stdin is not None
            self.process.stdin.close()
        try:
            return int(self.process.wait(10))
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message:
                self.notifications.append((message["method"], message.get("params")))
            elif message.get("id") in self._answers:
                self._answers[message["id"]].put(message)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode()


class TimedSidecar(Sidecar):
    """A sidecar with an interpreter of its own: what it takes and holds is its own."""

    start: ClassVar[Any] = subprocess.Popen


class NotificationListener(Sidecar):
    """A sidecar with a queue of its notifications."""

    def __init__(self, home: Home) -> None:
        self.messages: queue.Queue[dict[str, Any]] = queue.Queue()
        super().__init__(home)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message:
                self.messages.put(message)
            else:
                self._answers[message["id"]].put(message)

    def next(self, method: str) -> dict[str, Any]:
        """The params of the next notification of this name."""
        while True:
            message = self.messages.get(timeout=ANSWER_WITHIN)
            if message["method"] == method:
                params: dict[str, Any] = message["params"]
                return params

    def received(self) -> list[str]:
        """The names of the notifications so far."""
        return [self.messages.get()["method"] for _ in range(self.messages.qsize())]


def wait_until(condition: Any, timeout: float = ANSWER_WITHIN) -> Any:
    """The first truthy result of `condition`; AssertionError with the last one after the timeout."""
    deadline = time.monotonic() + timeout
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"it never happened; last seen: {found!r}"
        time.sleep(0.02)  # a pause between looks, not a wait for an effect
