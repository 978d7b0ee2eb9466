"""From bytes to calls and back: one dispatcher serves one connection, whatever the wire.

Decisions that live here
    * Every request is a task of its own; answers leave in the order in which they are ready. At most
    `MAX_RUNNING_CALLS` run, the rest wait in order. `$/cancelRequest` overtakes them, since it is what makes room.
    * What a client makes us hold is one number: bytes of requests not yet answered, of a batch being collected and of
      answers not yet taken. Above `HIGH_WATER` its next request is not read, so it cannot grow us by not reading.
    * Reading starts before the application is open; calls wait for it. If it cannot be opened, they are answered with
      the reason and the dispatcher leaves.
    * Leaving has one way, whatever the cause: take no more, finish what was accepted, cancel what takes too long,
      answer `shutdown` last, write everything out.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, Generic, TypeVar

from bridge.api.errors import RpcError, first_product_error, in_language, rpc_error, rpc_error_of
from bridge.api.method_table import Context, MethodTable, Notify, no_parent_watch
from bridge.rpc import messages
from bridge.rpc.call_state import BatchState, CallState
from bridge.rpc.client_requests import ClientRequests
from bridge.rpc.framing import Frame, FrameDecoder, FramingError
from bridge.rpc.messages import RejectedMessage
from bridge.rpc.response_writer import ResponseWriter
from bridge.rpc.transport import HIGH_WATER, Transport
from sync.errors import location_of

App = TypeVar("App")

MAX_RUNNING_CALLS: Final = 64  # calls that run at once; more would only queue at the same database
MAX_QUEUED_CALLS: Final = 256  # calls read beyond that, so that a cancellation behind them is still seen
DRAIN_TIMEOUT: Final = 1.3  # seconds for accepted calls to finish when leaving: the whole process has two
CANCEL_GRACE: Final = 0.1  # seconds for cancelled calls to clean up
FLUSH_TIMEOUT: Final = 0.15  # seconds for the peer to take the last answers

_log: Final = logging.getLogger("xiaobai.rpc")

_CANCELLED: Final = rpc_error("cancelled", "cancelled on request", "Call again if the result is still wanted.")
_DEADLINE_EXCEEDED: Final = rpc_error(
    "deadline_exceeded", "the call took too long", "Try again; what was acknowledged is kept.", retryable=True
)
_SHUTTING_DOWN: Final = rpc_error(
    "shutting_down", "the sidecar is leaving", "Call again when it has been restarted.", retryable=True
)


class Dispatcher(Generic[App]):
    """Serve one connection. `app_opened` or `app_failed` resolves the application; `run` ends after the last answer."""

    def __init__(
        self,
        table: MethodTable[App],
        transport: Transport,
        *,
        watch_parent: Callable[[int], None] = no_parent_watch,
        on_shutdown: Callable[[], None] = lambda: None,
    ) -> None:
        self._table = table
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._app: asyncio.Future[App] = self._loop.create_future()
        self._frame_decoder = FrameDecoder()
        self._response_writer = ResponseWriter(transport, self._frame_decoder)
        self.notify = self._response_writer.notify
        self._client_requests = ClientRequests(self._response_writer.send_request)
        self._queued: deque[CallState] = deque()
        self._running: set[CallState] = set()
        self._unanswered_bytes = 0  # bytes of requests that are not answered
        self._shutdown_calls: list[CallState] = []
        self._reading = True
        self._answered_count = 0
        self._progress_at_hang_up: tuple[int, int] | None = None
        self._rejecting_calls = False
        self._shutdown_begun = asyncio.Event()
        self._drain_timeout = DRAIN_TIMEOUT
        self._watch_parent = watch_parent
        self._on_shutdown = on_shutdown
        self.shutdown_reason = ""

    def app_opened(self, app: App) -> None:
        if not self._app.done():
            self._app.set_result(app)

    @property
    def app_resolved(self) -> bool:
        """Whether the application has been opened, or is known to stay closed."""
        return self._app.done()

    @property
    def is_idle(self) -> bool:
        """Whether no call is running or waiting."""
        return not self._running and not self._queued

    def app_failed(self, error: BaseException) -> None:
        """Answer every waiting call with the reason why the application could not be opened, then leave."""
        if not self._app.done():
            self._app.set_exception(error)
            self._app.exception()  # retrieved, so that asyncio does not log it when no call waits
        self.begin_shutdown("the application could not be opened")

    def data_received(self, chunk: bytes) -> None:
        for frame in self._frame_decoder.feed(chunk):
            self._handle_frame(frame)
        self._response_writer.flush_notifications()
        self._update_reading()

    def eof_received(self) -> None:
        for frame in self._frame_decoder.finish():
            self._handle_frame(frame)
        self.begin_shutdown("the client closed its end")

    def resume_writing(self) -> None:
        self._response_writer.flush_notifications()
        self._start_queued()

    def connection_lost(self) -> None:
        self._response_writer.connection_lost = True
        self.begin_shutdown("the client no longer reads")

    def client_hung_up(self) -> None:
        """The client has closed its end. Reading notices that by itself, unless it is paused and nothing moves."""
        progress = (self._answered_count, self._transport.unwritten)
        if not self._reading and progress == self._progress_at_hang_up:
            self.begin_shutdown("the client closed its end and nothing moves")
        self._progress_at_hang_up = progress

    def _handle_frame(self, frame: Frame) -> None:
        """Turn one frame into calls; start those for which there is room."""
        if isinstance(frame, FramingError):
            self._reject(messages.reject_framing_error(frame), None)
            return
        incoming = messages.decode_frame(frame)
        for response in incoming.responses:
            self._client_requests.resolve(response)
        batch = BatchState(sum(item.id is not None for item in incoming.items)) if incoming.batch else None
        weight = len(frame) // max(1, len(incoming.items))
        for item in incoming.items:
            if isinstance(item, RejectedMessage):
                self._reject(item, batch)
            else:
                self._accept_call(CallState(item, batch, weight))

    def _accept_call(self, call_state: CallState) -> None:
        self._unanswered_bytes += call_state.request_bytes
        method = call_state.call.method
        if method == "$/cancelRequest":
            self._handle_cancel_request(call_state.call.params)
            self._finish(call_state)
        elif self._rejecting_calls:
            self._fail(call_state, _SHUTTING_DOWN)
        elif method == "shutdown":
            self._rejecting_calls = True
            self._shutdown_calls.append(call_state)
            self.begin_shutdown("shutdown was asked for")
        elif self._queued or not self._may_start():
            self._queued.append(call_state)
        else:
            self._start(call_state)

    def _may_start(self) -> bool:
        return len(self._running) < MAX_RUNNING_CALLS and self._response_writer.can_write()

    def _start_queued(self) -> None:
        """Start waiting calls while there is room, and decide whether to read on."""
        while self._queued and self._may_start():
            self._start(self._queued.popleft())
        self._update_reading()

    def _update_reading(self) -> None:
        crowded = (
            len(self._queued) >= MAX_QUEUED_CALLS
            or self._unanswered_bytes + self._response_writer.held_bytes > HIGH_WATER
        )
        wanted = not crowded and not self._shutdown_begun.is_set()
        if wanted is not self._reading:
            self._reading = wanted
            self._transport.set_reading(enabled=wanted)

    def _start(self, call_state: CallState) -> None:
        if call_state.call.method not in self._table:
            self._fail(call_state, messages.unknown_method_error(call_state.call.method))
            return
        call_state.task = self._loop.create_task(self._run_call(call_state))
        self._running.add(call_state)

    async def _run_call(self, call_state: CallState) -> None:
        """Run one call. It ends in exactly one answer."""
        call_state.started = True
        try:
            result = await self._call_method(call_state)
            message = messages.encode_result(call_state.call.id or messages.NULL_ID, result)
        except asyncio.CancelledError:
            self._fail(call_state, call_state.cancel_error or _SHUTTING_DOWN)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - every call is answered, whatever happens
            if first_product_error(error) is None:
                _log.error("%s failed: %s", call_state.call.method, location_of(error))
            self._fail(call_state, rpc_error_of(error))
        else:
            self._finish(call_state, message)
        finally:
            if call_state.timer is not None:
                call_state.timer.cancel()
            self._running.discard(call_state)
            if self._queued or not self._reading:
                self._start_queued()

    async def _call_method(self, call_state: CallState) -> object:
        method = await self._table.resolve(call_state.call.method)
        params = method.decode_params(call_state.call.params)
        deadline: float | None = None
        if method.timeout is not None:
            call_state.timer = self._loop.call_later(method.timeout, call_state.cancel, _DEADLINE_EXCEEDED)
            deadline = call_state.timer.when()
        app = self._app.result() if self._app.done() else await asyncio.shield(self._app)
        call_state.context = Context(app, self.notify, deadline, self._watch_parent, *self._client_requests.methods)
        return await method.call(call_state.context, params)

    def _handle_cancel_request(self, params: object) -> None:
        """`$/cancelRequest`: end the calls with this id. An unknown id comes too late and is ignored."""
        wanted = params.get("id") if isinstance(params, dict) else None
        for state in [*self._running, *self._queued]:
            if state.call.id is not None and messages.same_id(state.call.id, wanted):
                self._cancel_call(state, _CANCELLED)

    def _cancel_call(self, call_state: CallState, reason: RpcError) -> None:
        """End a call. A task that never began runs none of its code, so it is answered here."""
        if call_state.started:
            call_state.cancel(reason)
            return
        if call_state.task is None:
            self._queued.remove(call_state)
        else:
            self._running.discard(call_state)
            call_state.task.cancel()
        self._fail(call_state, reason)

    def _fail(self, call_state: CallState, error: RpcError) -> None:
        error = in_language(error, self._client_requests.language)
        self._finish(call_state, messages.encode_error(call_state.call.id or messages.NULL_ID, error))

    def _finish(self, call_state: CallState, message: bytes | None = None) -> None:
        """End a call; without a message the answer is null. A notification is not answered."""
        self._unanswered_bytes -= call_state.request_bytes
        self._answered_count += 1
        id_ = call_state.call.id
        if id_ is not None:
            self._response_writer.answer(id_, message or messages.encode_result(id_, None), call_state.batch)

    def _reject(self, rejected: RejectedMessage, batch: BatchState | None) -> None:
        self._response_writer.answer(rejected.id, messages.encode_error(rejected.id, rejected.error), batch)

    def begin_shutdown(self, reason: str, *, drain: float = DRAIN_TIMEOUT) -> None:
        """Begin to leave. The first reason is kept. `drain`: seconds for accepted calls."""
        self._drain_timeout = min(self._drain_timeout, drain)
        if not self._shutdown_begun.is_set():
            self.shutdown_reason = reason
            self._shutdown_begun.set()
            self._on_shutdown()

    async def run(self) -> None:
        """Serve until shutdown begins, then drain: afterwards no call runs and every answer is written."""
        self._transport.start(self)
        try:
            await self._shutdown_begun.wait()
            await self._drain()
        finally:
            self._client_requests.close()
            self._transport.close()

    async def _drain(self) -> None:
        self._start_queued()
        await self._wait_for_calls(self._drain_timeout)
        self._rejecting_calls = True
        for job in [*self._queued, *self._running]:
            self._cancel_call(job, _SHUTTING_DOWN)
        await self._wait_for_calls(CANCEL_GRACE)
        for job in self._shutdown_calls:
            self._finish(job)
        await self._flush_within(FLUSH_TIMEOUT)

    async def _wait_for_calls(self, within: float) -> None:
        """Wait until nothing runs or waits, but not longer than `within` seconds."""
        end = self._loop.time() + within
        while (self._running or self._queued) and (left := end - self._loop.time()) > 0:
            tasks = {job.task for job in self._running if job.task is not None}
            if tasks:
                await asyncio.wait(tasks, timeout=left)
            else:  # what waits may start as soon as the client has taken its answers
                await self._flush_within(left)

    async def _flush_within(self, within: float) -> None:
        try:
            async with asyncio.timeout(within):
                await self._transport.flush()
        except TimeoutError:
            _log.warning("the client did not take the last %d bytes", self._transport.unwritten)


async def serve_connection(
    dispatcher: Dispatcher[App], open_app: Callable[[Notify], AbstractAsyncContextManager[App]]
) -> None:
    """Serve one connection while the application opens beside it, and close the application at the end.

    The application is entered and left in one task, as task groups demand. Raises what its opening, its own work or
    its closing raised; an opening that the client did not wait for is abandoned.
    """
    over = asyncio.Event()

    async def hold() -> None:
        try:
            async with open_app(dispatcher.notify) as app:
                dispatcher.app_opened(app)
                await over.wait()
        except BaseException as error:
            dispatcher.app_failed(error)
            raise

    holder = asyncio.get_running_loop().create_task(hold())
    try:
        await dispatcher.run()
    finally:
        over.set()
        abandoned = not dispatcher.app_resolved
        if abandoned:
            holder.cancel()
        await asyncio.wait({holder})
    if not (abandoned and holder.cancelled()):
        holder.result()
