"""End the process when it is no longer needed, even if its event loop is busy or stuck.

A thread looks twice a second: has the parent died (a leaked handle can hide the end of the input), has the client hung
up while the loop does not turn, has a signal come? Once leaving has begun, by whatever cause, the whole process has
`SHUTDOWN_TIMEOUT` seconds; then the thread ends it. What was acknowledged is durable by then, so nothing is lost by
that.
"""

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Final

from bridge.rpc.stdio_descriptors import call_on_loop

CHECK_INTERVAL: Final = 0.5  # seconds between looks; about 0.01 % of a core
SHUTDOWN_TIMEOUT: Final = 1.8  # seconds from the first reason to the end; the interpreter itself needs some of the two
STUCK_LOOP_TIMEOUT: Final = 1.2  # seconds without a turn of the loop after the client hung up


class ProcessGuard:
    """Watch over one process. `code` is the exit status of a forced end."""

    def __init__(self, hung_up: Callable[[], bool]) -> None:
        self._hung_up = hung_up
        self._on_shutdown: Callable[[str], None] = lambda _why: None
        self._on_hang_up: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()
        self._parents = [WatchedProcess(os.getppid())]
        self._deadline_started: float | None = None
        self._last_loop_turn = time.monotonic()
        self._signal_name = ""
        self._wake = threading.Event()
        self.exit_code = 0

    def start(self, on_shutdown: Callable[[str], None], on_hang_up: Callable[[], None]) -> None:
        """Begin to look. Both are called on the loop's thread; the second at every look after the client hung up."""
        self._on_shutdown = on_shutdown
        self._on_hang_up = on_hang_up
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._on_signal)
        threading.Thread(target=self._run, name="guard", daemon=True).start()

    def watch_parent(self, pid: int) -> None:
        """Another process whose death ends us. One that is not visible from here (a sandbox) is not watched."""
        parent = WatchedProcess(pid) if pid > 1 else None
        if parent is not None and not parent.has_ended():
            self._parents[1:] = [parent]

    def start_deadline(self) -> None:
        """The time runs from now on. Safe from any thread, and to call again."""
        if self._deadline_started is None:
            self._deadline_started = time.monotonic()
            self._wake.set()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self._signal_name = signal.Signals(number).name  # the thread looks at it even if the loop no longer turns
        call_on_loop(self._loop, self._on_shutdown, self._signal_name)

    def _run(self) -> None:
        hung_up_since: float | None = None
        while self._deadline_started is None:
            self._wake.wait(CHECK_INTERVAL)
            if reason := self._reason():
                self.start_deadline()
                call_on_loop(self._loop, self._on_shutdown, reason)
            elif self._hung_up():
                now = time.monotonic()
                hung_up_since = hung_up_since or now
                if now - max(hung_up_since, self._last_loop_turn) > STUCK_LOOP_TIMEOUT:
                    break
                call_on_loop(self._loop, self._on_loop_turn)
        time.sleep(max(0.0, (self._deadline_started or 0.0) + SHUTDOWN_TIMEOUT - time.monotonic()))
        os._exit(self.exit_code)

    def _on_loop_turn(self) -> None:
        self._last_loop_turn = time.monotonic()
        self._on_hang_up()

    def _reason(self) -> str:
        if any(parent.has_ended() for parent in self._parents):
            return "the parent process is gone"
        return self._signal_name


class WatchedProcess:
    """A process that may die. Our own parent also counts as dead when we have been given to another one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._is_own_parent = pid == os.getppid()
        self._end_check = _end_check(pid)

    def has_ended(self) -> bool:
        return (self._is_own_parent and os.getppid() != self.pid) or self._end_check()


if sys.platform == "win32":
    import ctypes

    _SYNCHRONIZE: Final = 0x00100000

    def _end_check(pid: int) -> Callable[[], bool]:
        """Asks a handle: it keeps meaning this very process. `os.kill` would end it here."""
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(_SYNCHRONIZE, False, pid)
        return lambda: not handle or kernel.WaitForSingleObject(handle, 0) == 0

else:

    def _end_check(pid: int) -> Callable[[], bool]:
        """Ask the system for the pid; one of another user counts as running."""

        def ended() -> bool:
            try:
                os.kill(pid, 0)
            except (ProcessLookupError, OverflowError):  # the second: a number that no process can have
                return True
            except OSError:
                return False
            return False

        return ended
