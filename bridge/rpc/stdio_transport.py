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

from bridge.api.method_table import MethodTable, Notify
from bridge.rpc.dispatcher import Dispatcher, serve_connection
from bridge.rpc.process_guard import ProcessGuard
from bridge.rpc.stdio_descriptors import claim_stdio, make_reader, make_writer
from bridge.rpc.transport import TransportHandler

App = TypeVar("App")

_log: Final = logging.getLogger("xiaobai.rpc")


class StdioTransport:
    """The `Wire` of two descriptors."""

    def __init__(self, descriptors: tuple[int, int]) -> None:
        incoming, outgoing = descriptors
        self._reader = make_reader(incoming, self._on_chunk)
        self._writer = make_writer(outgoing, self._on_drained, self._on_lost)
        self._handler: TransportHandler | None = None
        self._flushed = asyncio.Event()
        self.hung_up = self._reader.hung_up

    @property
    def unwritten(self) -> int:
        return self._writer.unwritten

    def start(self, handler: TransportHandler) -> None:
        self._handler = handler
        self._reader.start()

    def set_reading(self, *, enabled: bool) -> None:
        self._reader.set_reading(enabled=enabled)

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    async def flush(self) -> None:
        while self._writer.unwritten:
            self._flushed.clear()
            await self._flushed.wait()

    def close(self) -> None:
        self._reader.close()
        self._writer.close()
        self._handler = None

    def _on_chunk(self, chunk: bytes) -> None:
        if self._handler is None:
            return
        if chunk:
            self._handler.data_received(chunk)
        else:
            self._handler.eof_received()

    def _on_drained(self) -> None:
        if not self._writer.unwritten:
            self._flushed.set()
        if self._handler is not None:
            self._handler.resume_writing()

    def _on_lost(self) -> None:
        self._flushed.set()
        if self._handler is not None:
            self._handler.connection_lost()


async def serve_stdio(
    table: MethodTable[App],
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
    wire = StdioTransport(claim_stdio() if descriptors is None else descriptors)
    guard = ProcessGuard(wire.hung_up)
    dispatcher = Dispatcher(table, wire, watch_parent=guard.watch_parent, on_shutdown=guard.start_deadline)
    guard.start(dispatcher.begin_shutdown, dispatcher.client_hung_up)
    try:
        await serve_connection(dispatcher, open_app)
    except BaseException:
        guard.exit_code = 1
        guard.start_deadline()
        raise
    _log.info("left: %s", dispatcher.shutdown_reason)
    return 0
