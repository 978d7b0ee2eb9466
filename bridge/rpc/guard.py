"""Ends the process when nobody needs it any more, even if its event loop is busy or stuck.

A thread looks twice a second: has the parent died (a leaked handle can hide the end of the input), has the client hung
up while the loop does not turn, has a signal come? Once leaving has begun, by whatever cause, the whole process has
`LEAVE_WITHIN` seconds; then the thread ends it. What was acknowledged is durable by then, so nothing is lost by that.
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

from bridge.rpc.descriptors import tell

LOOK: Final = 0.5  # seconds between looks; about 0.01 % of a core
LEAVE_WITHIN: Final = 1.8  # seconds from the first reason to the end; the interpreter itself needs some of the two
STUCK: Final = 1.2  # seconds without a turn of the loop after the client hung up


class Guard:
    """Watches over one process. `code` is what a forced end answers to whoever started us."""

    def __init__(self, hung_up: Callable[[], bool]) -> None:
        self._hung_up = hung_up
        self._leave: Callable[[str], None] = lambda _why: None
        self._told_hung_up: Callable[[], None] = lambda: None
        self._loop = asyncio.get_running_loop()
        self._parents = [Parent(os.getppid())]
        self._began: float | None = None
        self._turned = time.monotonic()
        self._asked = ""
        self._woken = threading.Event()
        self.code = 0

    def start(self, leave: Callable[[str], None], told_hung_up: Callable[[], None]) -> None:
        """Begin to look. Both are called on the loop's thread; the second at every look after the client hung up."""
        self._leave = leave
        self._told_hung_up = told_hung_up
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._signalled)
        threading.Thread(target=self._run, name="guard", daemon=True).start()

    def watch_parent(self, pid: int) -> None:
        """Another process whose death ends us. One that is not visible from here (a sandbox) is not watched."""
        parent = Parent(pid) if pid > 1 else None
        if parent is not None and not parent.gone():
            self._parents[1:] = [parent]

    def leaving(self) -> None:
        """The time runs from now on. Safe from any thread, and to call again."""
        if self._began is None:
            self._began = time.monotonic()
            self._woken.set()

    def _signalled(self, number: int, _frame: FrameType | None) -> None:
        self._asked = signal.Signals(number).name  # the thread looks at it even if the loop no longer turns
        tell(self._loop, self._leave, self._asked)

    def _run(self) -> None:
        hung_up_since: float | None = None
        while self._began is None:
            self._woken.wait(LOOK)
            if reason := self._reason():
                self.leaving()
                tell(self._loop, self._leave, reason)
            elif self._hung_up():
                now = time.monotonic()
                hung_up_since = hung_up_since or now
                if now - max(hung_up_since, self._turned) > STUCK:
                    break
                tell(self._loop, self._turn)
        time.sleep(max(0.0, (self._began or 0.0) + LEAVE_WITHIN - time.monotonic()))
        os._exit(self.code)

    def _turn(self) -> None:
        self._turned = time.monotonic()
        self._told_hung_up()

    def _reason(self) -> str:
        if any(parent.gone() for parent in self._parents):
            return "the parent process is gone"
        return self._asked


class Parent:
    """A process that may die. Our own parent also counts as dead when we have been given to another one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ours = pid == os.getppid()
        self._ended = _end_of(pid)

    def gone(self) -> bool:
        return (self._ours and os.getppid() != self.pid) or self._ended()


if sys.platform == "win32":
    import ctypes

    _SYNCHRONIZE: Final = 0x00100000

    def _end_of(pid: int) -> Callable[[], bool]:
        """Asks a handle: it keeps meaning this very process. `os.kill` would end it here."""
        kernel = ctypes.windll.kernel32
        handle = kernel.OpenProcess(_SYNCHRONIZE, False, pid)
        return lambda: not handle or kernel.WaitForSingleObject(handle, 0) == 0

else:

    def _end_of(pid: int) -> Callable[[], bool]:
        """Asks the system for the pid; one that belongs to somebody else lives."""

        def ended() -> bool:
            try:
                os.kill(pid, 0)
            except (ProcessLookupError, OverflowError):  # the second: a number that no process can have
                return True
            except OSError:
                return False
            return False

        return ended
