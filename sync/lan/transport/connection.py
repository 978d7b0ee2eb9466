"""One connection to a trusted peer: greetings, then the exchange of events for as long as it lasts."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from sync.errors import DeviceForked
from sync.lan.exchange import PeerExchange
from sync.lan.protocol import frames
from sync.lan.protocol.frames import Have, Hello, Message, ProtocolError, Want
from sync.lan.transport.channel import PeerChannel
from sync.lan.transport.trust import RefusalCause
from sync.runtime.change_counter import ChangeCounter

MAX_WAITING_MESSAGES: Final = 256  # to a peer that does not read; an honest one is never owed as many
CHANGE_PAUSE: Final = 0.2  # seconds in which changes of the log are announced together
REST_FACTOR: Final = 4.0  # a long log takes long to look through: rest so many times as long before the next look


class ConnectionRefused(Exception):
    """The connection ends, and `cause` is shown in `lan/status`."""

    def __init__(self, cause: RefusalCause) -> None:
        super().__init__(str(cause))
        self.cause = cause


@dataclass(frozen=True, slots=True)
class LogFollower:
    """What a connection watches: changes of the log, and whether the peer is still trusted after each."""

    changed: ChangeCounter
    refusal_now: Callable[[], Awaitable[RefusalCause | None]]


async def greet(channel: PeerChannel, own: Hello) -> Hello:
    """Exchange the first messages. Raises ConnectionRefused and what a channel raises."""
    await channel.send(own)
    try:
        answer = await channel.receive(within=channel.deadlines.hello)
    except (EOFError, ConnectionError) as error:  # in TLS 1.3 the other side judges after our handshake is complete
        raise ConnectionRefused(RefusalCause.REFUSED_THERE) from error
    if isinstance(answer, frames.Bye):
        raise ConnectionRefused(cause_of(answer))
    if not isinstance(answer, Hello):
        raise ProtocolError("the first message is no greeting")
    if answer.version != frames.PROTOCOL_VERSION:
        raise ConnectionRefused(RefusalCause.VERSION)
    return answer


def cause_of(bye: frames.Bye) -> RefusalCause:
    """The cause that a peer gives."""
    return next((cause for cause in RefusalCause if cause == bye.cause), RefusalCause.REFUSED_THERE)


class PeerConnection:
    """Runs an exchange over a channel until either side ends it."""

    def __init__(self, channel: PeerChannel, exchange: PeerExchange, follower: LogFollower) -> None:
        self._channel = channel
        self._exchange = exchange
        self._follower = follower
        self._outgoing = asyncio.Queue[Message]()
        self._room = asyncio.Event()
        self._room.set()
        self._turn = asyncio.Lock()  # one step of the conversation at a time
        self._deferred_want: Want | None = None  # a request that came before the last answer had left

    async def run(self) -> None:
        """Exchange events. Raises ConnectionRefused, ProtocolError, TimeoutError, EOFError, OSError, StorageError."""
        try:
            async with asyncio.TaskGroup() as group:
                seen = self._follower.changed.count
                await self._queue(self._exchange.start())
                group.create_task(self._send_queued())
                group.create_task(self._follow_log(seen))
                group.create_task(self._read())
        except* Exception as errors:  # noqa: BLE001 - the first of them is raised
            raise _first(errors) from None

    async def _read(self) -> None:
        while True:
            message = await self._channel.receive()
            if isinstance(message, frames.Bye):
                raise ConnectionRefused(cause_of(message))
            if isinstance(message, Want) and not self._outgoing.empty():
                self._deferred_want = message  # an honest peer waits for the answer, so this one takes no other's place
                continue
            try:
                await self._queue(self._exchange.on_message(message))
            except DeviceForked as error:
                raise ConnectionRefused(RefusalCause.FORKED) from error
            await self._room.wait()

    async def _follow_log(self, seen: int) -> None:
        time, busy = asyncio.get_running_loop().time, 0.0
        while True:
            seen = await self._follower.changed.wait_for_change(seen)
            await asyncio.sleep(max(CHANGE_PAUSE, REST_FACTOR * busy))
            seen = self._follower.changed.count
            began = time()
            await self._check_trust()
            await self._queue(self._exchange.on_log_change())
            busy = time() - began

    async def _check_trust(self) -> None:
        if (cause := await self._follower.refusal_now()) is not None:
            raise ConnectionRefused(cause)

    async def _queue(self, messages: AsyncIterator[Message]) -> None:
        """Queue messages. A peer that is no longer trusted gets no list of events that were recorded since.

        It may have been revoked while it took its time to greet, or this device may have got another owner.
        """
        async with self._turn:
            async for message in messages:
                if isinstance(message, Have):
                    await self._check_trust()
                self._outgoing.put_nowait(message)
        if self._outgoing.qsize() > MAX_WAITING_MESSAGES:
            self._room.clear()

    async def _send_queued(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._channel.deadlines.ping):
                    message = await self._outgoing.get()
            except TimeoutError:
                message = frames.Ping()
            await self._channel.send(message)
            if self._outgoing.qsize() <= MAX_WAITING_MESSAGES:
                self._room.set()
            if self._deferred_want is not None and self._outgoing.empty():
                want, self._deferred_want = self._deferred_want, None
                await self._queue(self._exchange.on_message(want))


def _first(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
