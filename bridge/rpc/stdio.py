"""JSON-RPC on standard input and output: the real wire, and `serve`, the whole life of a sidecar process.

Decisions that live here
    * The end of the input, a signal, the parent's death and `shutdown` leave the same way: finish, answer, close, 0.
      A client that stops reading (broken pipe) is a normal end, not an error.
    * While reading is paused the end of the input cannot be read; the guard sees the hang-up from outside, and the
      dispatcher leaves if nothing moves between two of its looks.
    * The guard is never released: if closing the application or the interpreter hangs, it still ends the process.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, TypeVar

from bridge.methods.table import Notify, Table
from bridge.rpc.descriptors import claim, reader_for, writer_for
from bridge.rpc.dispatch import Dispatcher, attend
from bridge.rpc.guard import Guard
from bridge.rpc.wire import Receiver

App = TypeVar("App")

_log: Final = logging.getLogger("xiaobai.rpc")


class StdioWire:
    """The `Wire` of two descriptors."""

    def __init__(self, descriptors: tuple[int, int]) -> None:
        incoming, outgoing = descriptors
        self._reader = reader_for(incoming, self._delivered)
        self._writer = writer_for(outgoing, self._has_room, self._broken)
        self._receiver: Receiver | None = None
        self._empty = asyncio.Event()
        self.hung_up = self._reader.hung_up

    @property
    def unwritten(self) -> int:
        return self._writer.unwritten

    def start(self, receiver: Receiver) -> None:
        self._receiver = receiver
        self._reader.start()

    def read_on(self, *, wanted: bool) -> None:
        self._reader.want(wanted=wanted)

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def flush(self) -> None:
        while self._writer.unwritten:
            self._empty.clear()
            await self._empty.wait()

    def close(self) -> None:
        self._reader.close()
        self._writer.close()
        self._receiver = None

    def _delivered(self, chunk: bytes) -> None:
        if self._receiver is None:
            return
        if chunk:
            self._receiver.received(chunk)
        else:
            self._receiver.ended()

    def _has_room(self) -> None:
        if not self._writer.unwritten:
            self._empty.set()
        if self._receiver is not None:
            self._receiver.room()

    def _broken(self) -> None:
        self._empty.set()
        if self._receiver is not None:
            self._receiver.lost()


async def serve(
    table: Table[App],
    open_app: Callable[[Notify], AbstractAsyncContextManager[App]],
    *,
    descriptors: tuple[int, int] | None = None,
) -> int:
    """Serve standard input and output until the client, the parent or the system wants us gone; answers 0.

    Reading and answering begin at once; calls wait until `open_app(notify)` has been entered. `notify` may be kept by
    the application; it never blocks. `descriptors` are those of an earlier `claim()`, for a caller that wants the wire
    safe before its heavy imports. Raises what opening, running or closing the application raised. From its first line
    on this owns the process: signals, descriptors 0 and 1, and the time it has for leaving.
    """
    wire = StdioWire(claim() if descriptors is None else descriptors)
    guard = Guard(wire.hung_up)
    dispatcher = Dispatcher(table, wire, watch_parent=guard.watch_parent, on_leave=guard.leaving)
    guard.start(dispatcher.leave, dispatcher.hung_up)
    try:
        await attend(dispatcher, open_app)
    except BaseException:
        guard.code = 1
        guard.leaving()
        raise
    _log.info("left: %s", dispatcher.left_because)
    return 0
