"""The two descriptors of the wire: taken away from everybody else, read and written without ever blocking the loop.

Decisions that live here
    * The wire moves to private descriptors before anything else runs. Afterwards descriptor 0 is empty and descriptor 1
      is stderr, for us, for C libraries and for children: nobody can corrupt the wire or steal a request.
    * On POSIX a pipe or socket is watched by the event loop. Everything else (a regular file, which epoll refuses; a
      terminal's output; any handle on Windows, where the loop cannot watch pipes) gets a thread that may block.
    * Output is switched to non-blocking only if stderr is not the same pipe: the switch belongs to the pipe, not to the
      descriptor, and a log line must not fail because the client is slow.
"""

import asyncio
import io
import os
import queue
import select
import stat
import sys
import threading
from collections.abc import Callable
from typing import Final, Protocol

from bridge.rpc.wire import LOW_WATER

CHUNK: Final = 64 * 1024  # bytes per read: what a Linux pipe holds


def claim() -> tuple[int, int]:
    """Take descriptors 0 and 1 for the wire; answers the private pair (in, out). Call once, before heavy imports.

    Python leaves `sys.__stdin__` None where the process was started without descriptor 0. That number may then belong
    to anything opened since, the event loop's own for one, so it is not touched.
    """
    null = os.open(os.devnull, os.O_RDWR)
    incoming = _moved(0, by=null) if sys.__stdin__ is not None else os.dup(null)
    stderr = 2 if sys.__stderr__ is not None else null
    outgoing = _moved(1, by=stderr) if sys.__stdout__ is not None else os.dup(null)
    os.close(null)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # a stray print shows when it happens, not at the end
    return incoming, outgoing


def _moved(descriptor: int, *, by: int) -> int:
    """A private copy that no child inherits; the number itself now means `by`, for us and for children."""
    copy = os.dup(descriptor)
    os.dup2(by, descriptor)
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - exists on Windows only

        msvcrt.setmode(copy, os.O_BINARY)
    return copy


class Reader(Protocol):
    """Delivers chunks while wanted; an empty chunk is the end."""

    def start(self) -> None: ...
    def want(self, *, wanted: bool) -> None: ...
    def hung_up(self) -> bool:
        """From any thread: whether the other end is closed, even if nobody reads or the loop is busy."""
        ...

    def close(self) -> None: ...


class Writer(Protocol):
    """Takes bytes at once and writes them when it can; tells when it got rid of them or never will."""

    @property
    def unwritten(self) -> int: ...
    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...


def reader_for(descriptor: int, deliver: Callable[[bytes], None]) -> Reader:
    if sys.platform != "win32":
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor):
            return PolledReader(descriptor, deliver)
    return ThreadReader(descriptor, deliver)


def writer_for(descriptor: int, room: Callable[[], None], lost: Callable[[], None]) -> Writer:
    if sys.platform != "win32":
        mode = os.fstat(descriptor).st_mode
        if (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and not _same_as_stderr(descriptor):
            return PolledWriter(descriptor, room, lost)
    return ThreadWriter(descriptor, room, lost)


def _same_as_stderr(descriptor: int) -> bool:
    try:
        return os.path.sameopenfile(descriptor, 2)
    except OSError:
        return False


# --- watched by the event loop -----------------------------------------------------------------------------


class PolledReader:
    """Reads when the loop says there is something. The descriptor itself stays as it is: others may share it."""

    def __init__(self, descriptor: int, deliver: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._watching = False
        self._closed = False
        self._hang_ups = select.poll()
        self._hang_ups.register(descriptor, getattr(select, "POLLRDHUP", 0))

    def start(self) -> None:
        self.want(wanted=True)

    def want(self, *, wanted: bool) -> None:
        if wanted is self._watching or self._closed:
            return
        self._watching = wanted
        if wanted:
            self._loop.add_reader(self._descriptor, self._ready)
        else:
            self._loop.remove_reader(self._descriptor)

    def hung_up(self) -> bool:
        return bool(self._hang_ups.poll(0))

    def close(self) -> None:
        self.want(wanted=False)
        self._closed = True

    def _ready(self) -> None:
        try:
            chunk = os.read(self._descriptor, CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
        self._deliver(chunk)


class PolledWriter:
    """Writes at once what the pipe takes and the rest when the loop says there is room."""

    def __init__(self, descriptor: int, room: Callable[[], None], lost: Callable[[], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._room = room
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._buffer = bytearray()
        self._watching = False
        self._closed = False

    @property
    def unwritten(self) -> int:
        return len(self._buffer)

    def write(self, data: bytes) -> None:
        if self._closed:
            return
        if not self._buffer:
            self._loop.call_soon(self._push)  # answers of one turn of the loop leave together
        self._buffer += data

    def close(self) -> None:
        self._watch(wanted=False)
        self._closed = True
        self._buffer.clear()

    def _push(self) -> None:
        if self._closed:
            return
        before = len(self._buffer)
        try:
            del self._buffer[: os.write(self._descriptor, self._buffer)]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.close()
            self._lost()
            return
        self._watch(wanted=bool(self._buffer))
        if len(self._buffer) <= LOW_WATER and (before > LOW_WATER or not self._buffer):
            self._room()

    def _watch(self, *, wanted: bool) -> None:
        if wanted is self._watching or self._closed:
            return
        self._watching = wanted
        if wanted:
            self._loop.add_writer(self._descriptor, self._push)
        else:
            self._loop.remove_writer(self._descriptor)


# --- a thread that may block ----------------------------------------------------------------------------------


class ThreadReader:
    """One chunk at a time: the thread reads the next one only when the loop has taken the last."""

    def __init__(self, descriptor: int, deliver: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._wanted = threading.Event()
        self._taken = threading.Event()
        self._ended = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="wire-in", daemon=True)

    def start(self) -> None:
        self._wanted.set()
        self._thread.start()

    def want(self, *, wanted: bool) -> None:
        if wanted:
            self._wanted.set()
        else:
            self._wanted.clear()

    def hung_up(self) -> bool:
        return self._ended

    def close(self) -> None:
        self._closed = True
        self._wanted.set()  # the thread, if it is not inside a read, sees that it is over
        self._taken.set()

    def _run(self) -> None:
        while not self._ended and not self._closed:
            self._wanted.wait()
            try:
                chunk = os.read(self._descriptor, CHUNK)
            except OSError:
                chunk = b""
            self._ended = not chunk
            self._taken.clear()
            if not tell(self._loop, self._take, chunk):
                return
            self._taken.wait()

    def _take(self, chunk: bytes) -> None:
        if not self._closed:
            self._deliver(chunk)
        self._taken.set()


class ThreadWriter:
    """A queue in front of blocking writes; the loop counts what the thread has not reported as written."""

    def __init__(self, descriptor: int, room: Callable[[], None], lost: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._room = room
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._closed = False
        self._unwritten = 0
        threading.Thread(target=self._run, name="wire-out", daemon=True).start()

    @property
    def unwritten(self) -> int:
        return self._unwritten

    def write(self, data: bytes) -> None:
        if self._closed:
            return
        self._unwritten += len(data)
        self._queue.put(data)

    def close(self) -> None:
        self._closed = True
        self._unwritten = 0
        self._queue.put(b"")

    def _run(self) -> None:
        while data := self._queue.get():
            rest = memoryview(data)
            try:
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                tell(self._loop, self._fail)
                return
            if not tell(self._loop, self._written, len(data)):
                return

    def _written(self, count: int) -> None:
        if self._closed:
            return
        before, self._unwritten = self._unwritten, self._unwritten - count
        if self._unwritten <= LOW_WATER and (before > LOW_WATER or not self._unwritten):
            self._room()

    def _fail(self) -> None:
        if not self._closed:
            self.close()
            self._lost()


def tell(loop: asyncio.AbstractEventLoop, what: Callable[..., None], *details: object) -> bool:
    """Run something on the loop's thread; False if the loop is gone."""
    try:
        loop.call_soon_threadsafe(what, *details)
    except RuntimeError:
        return False
    return True
