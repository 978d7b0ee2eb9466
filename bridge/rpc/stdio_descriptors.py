"""The two descriptors of the wire: taken away from everybody else, read and written without ever blocking the loop.

Decisions that live here
    * The wire moves to private descriptors before anything else runs. Afterwards descriptor 0 is empty and descriptor 1
      is stderr, for us, for C libraries and for children: none of them can corrupt the wire or steal a request.
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

from bridge.rpc.transport import LOW_WATER

CHUNK_BYTES: Final = 64 * 1024  # bytes per read: what a Linux pipe holds


def claim_stdio() -> tuple[int, int]:
    """Take descriptors 0 and 1 for the wire; answers the private pair (in, out). Call once, before heavy imports.

    Python leaves `sys.__stdin__` None if the process was started without descriptor 0. That number may then belong
    to anything opened since, the event loop's own for one, so it is not touched.
    """
    null = os.open(os.devnull, os.O_RDWR)
    incoming = _move_descriptor(0, replacement=null) if sys.__stdin__ is not None else os.dup(null)
    stderr = 2 if sys.__stderr__ is not None else null
    outgoing = _move_descriptor(1, replacement=stderr) if sys.__stdout__ is not None else os.dup(null)
    os.close(null)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # a stray print shows when it happens, not at the end
    return incoming, outgoing


def _move_descriptor(descriptor: int, *, replacement: int) -> int:
    """A private copy that no child inherits; the number itself now means `by`, for us and for children."""
    copy = os.dup(descriptor)
    os.dup2(replacement, descriptor)
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - exists on Windows only

        msvcrt.setmode(copy, os.O_BINARY)
    return copy


class DescriptorReader(Protocol):
    """Delivers chunks while wanted; an empty chunk is the end."""

    def start(self) -> None: ...
    def set_reading(self, *, enabled: bool) -> None: ...
    def hung_up(self) -> bool:
        """From any thread: whether the other end is closed, even if reading is paused or the loop is busy."""
        ...

    def close(self) -> None: ...


class DescriptorWriter(Protocol):
    """Accept bytes at once and write them when the descriptor takes them; report when they are written or lost."""

    @property
    def unwritten(self) -> int: ...
    def write(self, data: bytes) -> None: ...
    def close(self) -> None: ...


def make_reader(descriptor: int, on_chunk: Callable[[bytes], None]) -> DescriptorReader:
    if sys.platform != "win32":
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(descriptor):
            return PolledReader(descriptor, on_chunk)
    return ThreadReader(descriptor, on_chunk)


def make_writer(descriptor: int, on_drained: Callable[[], None], on_lost: Callable[[], None]) -> DescriptorWriter:
    if sys.platform != "win32":
        mode = os.fstat(descriptor).st_mode
        if (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and not _same_as_stderr(descriptor):
            return PolledWriter(descriptor, on_drained, on_lost)
    return ThreadWriter(descriptor, on_drained, on_lost)


def _same_as_stderr(descriptor: int) -> bool:
    try:
        return os.path.sameopenfile(descriptor, 2)
    except OSError:
        return False


# --- watched by the event loop -----------------------------------------------------------------------------


class PolledReader:
    """Reads when the loop says there is something. The descriptor itself stays as it is: others may share it."""

    def __init__(self, descriptor: int, on_chunk: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._on_chunk = on_chunk
        self._loop = asyncio.get_running_loop()
        self._watching = False
        self._closed = False
        self._hang_up_poll = select.poll()
        self._hang_up_poll.register(descriptor, getattr(select, "POLLRDHUP", 0))

    def start(self) -> None:
        self.set_reading(enabled=True)

    def set_reading(self, *, enabled: bool) -> None:
        if enabled is self._watching or self._closed:
            return
        self._watching = enabled
        if enabled:
            self._loop.add_reader(self._descriptor, self._on_readable)
        else:
            self._loop.remove_reader(self._descriptor)

    def hung_up(self) -> bool:
        return bool(self._hang_up_poll.poll(0))

    def close(self) -> None:
        self.set_reading(enabled=False)
        self._closed = True

    def _on_readable(self) -> None:
        try:
            chunk = os.read(self._descriptor, CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
        self._on_chunk(chunk)


class PolledWriter:
    """Writes at once what the pipe takes and the rest when the loop says there is room."""

    def __init__(self, descriptor: int, on_drained: Callable[[], None], on_lost: Callable[[], None]) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._on_drained = on_drained
        self._on_lost = on_lost
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
            self._loop.call_soon(self._write_buffered)  # answers of one turn of the loop leave together
        self._buffer += data

    def close(self) -> None:
        self._set_watching(enabled=False)
        self._closed = True
        self._buffer.clear()

    def _write_buffered(self) -> None:
        if self._closed:
            return
        before = len(self._buffer)
        try:
            del self._buffer[: os.write(self._descriptor, self._buffer)]
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.close()
            self._on_lost()
            return
        self._set_watching(enabled=bool(self._buffer))
        if len(self._buffer) <= LOW_WATER and (before > LOW_WATER or not self._buffer):
            self._on_drained()

    def _set_watching(self, *, enabled: bool) -> None:
        if enabled is self._watching or self._closed:
            return
        self._watching = enabled
        if enabled:
            self._loop.add_writer(self._descriptor, self._write_buffered)
        else:
            self._loop.remove_writer(self._descriptor)


# --- a thread that may block ----------------------------------------------------------------------------------


class ThreadReader:
    """One chunk at a time: the thread reads the next one only when the loop has taken the last."""

    def __init__(self, descriptor: int, on_chunk: Callable[[bytes], None]) -> None:
        self._descriptor = descriptor
        self._on_chunk = on_chunk
        self._loop = asyncio.get_running_loop()
        self._reading = threading.Event()
        self._chunk_delivered = threading.Event()
        self._ended = False
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="wire-in", daemon=True)

    def start(self) -> None:
        self._reading.set()
        self._thread.start()

    def set_reading(self, *, enabled: bool) -> None:
        if enabled:
            self._reading.set()
        else:
            self._reading.clear()

    def hung_up(self) -> bool:
        return self._ended

    def close(self) -> None:
        self._closed = True
        self._reading.set()  # the thread, if it is not inside a read, sees that it is over
        self._chunk_delivered.set()

    def _run(self) -> None:
        while not self._ended and not self._closed:
            self._reading.wait()
            try:
                chunk = os.read(self._descriptor, CHUNK_BYTES)
            except OSError:
                chunk = b""
            self._ended = not chunk
            self._chunk_delivered.clear()
            if not call_on_loop(self._loop, self._deliver_chunk, chunk):
                return
            self._chunk_delivered.wait()

    def _deliver_chunk(self, chunk: bytes) -> None:
        if not self._closed:
            self._on_chunk(chunk)
        self._chunk_delivered.set()


class ThreadWriter:
    """A queue in front of blocking writes; the loop counts what the thread has not reported as written."""

    def __init__(self, descriptor: int, on_drained: Callable[[], None], on_lost: Callable[[], None]) -> None:
        self._descriptor = descriptor
        self._on_drained = on_drained
        self._on_lost = on_lost
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
                call_on_loop(self._loop, self._fail)
                return
            if not call_on_loop(self._loop, self._on_written, len(data)):
                return

    def _on_written(self, count: int) -> None:
        if self._closed:
            return
        before, self._unwritten = self._unwritten, self._unwritten - count
        if self._unwritten <= LOW_WATER and (before > LOW_WATER or not self._unwritten):
            self._on_drained()

    def _fail(self) -> None:
        if not self._closed:
            self.close()
            self._on_lost()


def call_on_loop(loop: asyncio.AbstractEventLoop, callback: Callable[..., None], *args: object) -> bool:
    """Run something on the loop's thread; False if the loop is gone."""
    try:
        loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        return False
    return True
