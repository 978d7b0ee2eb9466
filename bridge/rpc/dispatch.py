"""From bytes to calls and back: one dispatcher serves one connection, whatever the wire.

Decisions that live here
    * Every request is a task of its own; answers leave in the order in which they are ready. At most `IN_FLIGHT` run,
      the rest wait in order. `$/cancelRequest` overtakes them, since it is what makes room.
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
from typing import Any, Final, Generic, TypeVar

from bridge.methods.failures import Failure, failure, failure_of, first_known
from bridge.methods.table import Context, Method, Notify, Table, no_parent
from bridge.rpc import messages
from bridge.rpc.frames import Fault, Frame, Frames
from bridge.rpc.job import Batch, Job
from bridge.rpc.messages import Refusal
from bridge.rpc.outgoing import Outgoing
from bridge.rpc.wire import HIGH_WATER, Wire
from sync.errors import place_of

App = TypeVar("App")

IN_FLIGHT: Final = 64  # calls that run at once; more would only queue at the same database
WAITING: Final = 256  # calls read beyond that, so that a cancellation behind them is still seen
DRAIN: Final = 1.3  # seconds for accepted calls to finish when leaving: the whole process has two
CANCEL_GRACE: Final = 0.1  # seconds for cancelled calls to clean up
FLUSH: Final = 0.15  # seconds for the peer to take the last answers

_log: Final = logging.getLogger("xiaobai.rpc")

_CANCELLED: Final = failure("cancelled", "cancelled on request", "Call again if the result is still wanted.")
_OVERDUE: Final = failure(
    "deadline_exceeded", "the call took too long", "Try again; what was acknowledged is kept.", retryable=True
)
_LEAVING: Final = failure(
    "shutting_down", "the sidecar is leaving", "Call again when it has been restarted.", retryable=True
)


class Dispatcher(Generic[App]):
    """Serves one connection. `opened` or `failed` tells it about the application; `run` ends when all is said."""

    def __init__(
        self,
        table: Table[App],
        wire: Wire,
        *,
        watch_parent: Callable[[int], None] = no_parent,
        on_leave: Callable[[], None] = lambda: None,
    ) -> None:
        self._table = table
        self._wire = wire
        self._loop = asyncio.get_running_loop()
        self._app: asyncio.Future[App] = self._loop.create_future()
        self._frames = Frames()
        self._out = Outgoing(wire, self._frames)
        self.notify = self._out.notify
        self._waiting: deque[Job] = deque()
        self._running: set[Job] = set()
        self._held = 0  # bytes of requests that are not answered
        self._farewells: list[Job] = []
        self._reading = True
        self._answered = 0
        self._progress: tuple[int, int] | None = None
        self._refusing = False
        self._leaving = asyncio.Event()
        self._drain_within = DRAIN
        self._watch_parent = watch_parent
        self._on_leave = on_leave
        self.left_because = ""

    # --- the application ------------------------------------------------------------------------------------

    def opened(self, app: App) -> None:
        if not self._app.done():
            self._app.set_result(app)

    @property
    def ready(self) -> bool:
        """Whether the application has been opened, or is known to stay closed."""
        return self._app.done()

    def failed(self, error: BaseException) -> None:
        """The application could not be opened: everybody who waits learns why, then we leave."""
        if not self._app.done():
            self._app.set_exception(error)
            self._app.exception()  # told to callers if there are any; asyncio need not complain if there are none
        self.leave("the application could not be opened")

    # --- bytes in ----------------------------------------------------------------------------------------------

    def received(self, chunk: bytes) -> None:
        for frame in self._frames.feed(chunk):
            self._take(frame)
        self._out.say_unsaid()
        self._pace()

    def ended(self) -> None:
        for frame in self._frames.finish():
            self._take(frame)
        self.leave("the client closed its end")

    def room(self) -> None:
        self._out.say_unsaid()
        self._pump()

    def lost(self) -> None:
        self._out.lost = True
        self.leave("the client no longer reads")

    def hung_up(self) -> None:
        """The client has closed its end. Reading will find that out by itself, unless it waits and nothing moves."""
        progress = (self._answered, self._wire.unwritten)
        if not self._reading and progress == self._progress:
            self.leave("the client closed its end and nothing moves")
        self._progress = progress

    def _take(self, frame: Frame) -> None:
        """Turn one frame into jobs; those that fit start at once."""
        if isinstance(frame, Fault):
            self._refuse(messages.refuse_fault(frame), None)
            return
        incoming = messages.decode(frame)
        batch = Batch(sum(item.id is not None for item in incoming.items)) if incoming.batch else None
        weight = len(frame) // max(1, len(incoming.items))
        for item in incoming.items:
            if isinstance(item, Refusal):
                self._refuse(item, batch)
            else:
                self._accept(Job(item, batch, weight))

    def _accept(self, job: Job) -> None:
        self._held += job.weight
        method = job.call.method
        if method == "$/cancelRequest":
            self._cancel(job.call.params)
            self._finish(job)
        elif self._refusing:
            self._fail(job, _LEAVING)
        elif method == "shutdown":
            self._refusing = True
            self._farewells.append(job)
            self.leave("shutdown was asked for")
        elif self._waiting or not self._may_start():
            self._waiting.append(job)
        else:
            self._start(job)

    def _may_start(self) -> bool:
        return len(self._running) < IN_FLIGHT and self._out.has_room()

    def _pump(self) -> None:
        """Start what waits, as far as there is room, and decide whether to read on."""
        while self._waiting and self._may_start():
            self._start(self._waiting.popleft())
        self._pace()

    def _pace(self) -> None:
        crowded = len(self._waiting) >= WAITING or self._held + self._out.held > HIGH_WATER
        wanted = not crowded and not self._leaving.is_set()
        if wanted is not self._reading:
            self._reading = wanted
            self._wire.read_on(wanted=wanted)

    # --- calls -------------------------------------------------------------------------------------------------

    def _start(self, job: Job) -> None:
        method = self._table.get(job.call.method)
        if method is None:
            self._fail(job, messages.unknown_method(job.call.method))
            return
        job.task = self._loop.create_task(self._serve(job, method))
        self._running.add(job)

    async def _serve(self, job: Job, method: Method[App, Any]) -> None:
        """The life of one call. Whatever happens in it, it ends in exactly one answer."""
        job.begun = True
        try:
            result = await self._result(job, method)
            message = messages.encode_result(job.call.id or messages.NULL, result)
        except asyncio.CancelledError:
            self._fail(job, job.stopped or _LEAVING)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the door's own last resort: every call is answered
            if first_known(error) is None:
                _log.error("%s failed: %s", method.name, place_of(error))
            self._fail(job, failure_of(error))
        else:
            self._finish(job, message)
        finally:
            if job.timer is not None:
                job.timer.cancel()
            self._running.discard(job)
            if self._waiting or not self._reading:
                self._pump()

    async def _result(self, job: Job, method: Method[App, Any]) -> object:
        params = method.decode(job.call.params)
        deadline: float | None = None
        if method.timeout is not None:
            job.timer = self._loop.call_later(method.timeout, job.stop, _OVERDUE)
            deadline = job.timer.when()
        app = self._app.result() if self._app.done() else await asyncio.shield(self._app)
        job.context = Context(app, self.notify, deadline, self._watch_parent)
        result: object = await method.call(job.context, params)
        return result

    def _cancel(self, params: object) -> None:
        """`$/cancelRequest`: whoever bears this id, running or waiting. Unknown ids are late and mean nothing."""
        wanted = params.get("id") if isinstance(params, dict) else None
        for job in [*self._running, *self._waiting]:
            if job.call.id is not None and messages.same_id(job.call.id, wanted):
                self._stop(job, _CANCELLED)

    def _stop(self, job: Job, why: Failure) -> None:
        """End a call at whatever point it is. A task that never began runs no line of ours, so we answer for it."""
        if job.begun:
            job.stop(why)
            return
        if job.task is None:
            self._waiting.remove(job)
        else:
            self._running.discard(job)
            job.task.cancel()
        self._fail(job, why)

    # --- bytes out ----------------------------------------------------------------------------------------------

    def _fail(self, job: Job, told: Failure) -> None:
        self._finish(job, messages.encode_failure(job.call.id or messages.NULL, told))

    def _finish(self, job: Job, message: bytes | None = None) -> None:
        """The one place where a job ends; without a message the answer is null. A notification is never answered."""
        self._held -= job.weight
        self._answered += 1
        id_ = job.call.id
        if id_ is not None:
            self._out.answer(id_, message or messages.encode_result(id_, None), job.batch)

    def _refuse(self, refusal: Refusal, batch: Batch | None) -> None:
        self._out.answer(refusal.id, messages.encode_failure(refusal.id, refusal.failure), batch)

    # --- leaving ------------------------------------------------------------------------------------------------

    def leave(self, why: str, *, drain: float = DRAIN) -> None:
        """Begin to leave; the first reason is kept. `drain`: seconds for accepted calls. Safe to call again."""
        self._drain_within = min(self._drain_within, drain)
        if not self._leaving.is_set():
            self.left_because = why
            self._leaving.set()
            self._on_leave()

    async def run(self) -> None:
        """Serve until somebody leaves, then drain: afterwards nothing runs, and what could be said is said."""
        self._wire.start(self)
        try:
            await self._leaving.wait()
            await self._drain()
        finally:
            self._wire.close()

    async def _drain(self) -> None:
        self._pump()
        await self._finished(self._drain_within)
        self._refusing = True
        for job in [*self._waiting, *self._running]:
            self._stop(job, _LEAVING)
        await self._finished(CANCEL_GRACE)
        for job in self._farewells:
            self._finish(job)
        await self._flushed(FLUSH)

    async def _finished(self, within: float) -> None:
        """Wait until nothing runs or waits, but not longer than `within` seconds."""
        end = self._loop.time() + within
        while (self._running or self._waiting) and (left := end - self._loop.time()) > 0:
            tasks = {job.task for job in self._running if job.task is not None}
            if tasks:
                await asyncio.wait(tasks, timeout=left)
            else:  # what waits may start as soon as the client has taken its answers
                await self._flushed(left)

    async def _flushed(self, within: float) -> None:
        try:
            async with asyncio.timeout(within):
                await self._wire.flush()
        except TimeoutError:
            _log.warning("the client did not take the last %d bytes", self._wire.unwritten)


async def attend(dispatcher: Dispatcher[App], open_app: Callable[[Notify], AbstractAsyncContextManager[App]]) -> None:
    """Serve one connection while the application opens beside it, and close the application when all is said.

    The application is entered and left in one task, as task groups demand. Raises what its opening, its own work or
    its closing raised; an opening that the client did not wait for is abandoned.
    """
    over = asyncio.Event()

    async def hold() -> None:
        try:
            async with open_app(dispatcher.notify) as app:
                dispatcher.opened(app)
                await over.wait()
        except BaseException as error:
            dispatcher.failed(error)
            raise

    holder = asyncio.get_running_loop().create_task(hold())
    try:
        await dispatcher.run()
    finally:
        over.set()
        abandoned = not dispatcher.ready
        if abandoned:
            holder.cancel()
        await asyncio.wait({holder})
    if not (abandoned and holder.cancelled()):
        holder.result()
