"""Accept connections of peers: at most so many, each with a deadline, refused before anything of it is used."""

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import Any, Final

from sync.errors import location_of
from sync.lan.transport.channel import Deadlines, PeerChannel, accept_tls, readable_address
from sync.lan.transport.trust import RefusalCause

MAX_CONNECTIONS: Final = 16  # open ones and those not admitted together
MAX_PLACES_PER_ADDRESS: Final = 4  # of those not admitted, or refused a moment ago
BACKLOG: Final = 32
REFUSED_PAUSE: Final = 0.02  # seconds, after a connection while many others come
ACCEPT_PAUSE: Final = 1.0  # seconds, when the system has no more descriptors

log = logging.getLogger(__name__)

ContextFactory = Callable[[], Awaitable[ssl.SSLContext]]
ServeChannel = Callable[[PeerChannel, Callable[[], None]], Awaitable[None]]
NoteRefusal = Callable[[RefusalCause, str], None]


def open_listener(address: str, port: int) -> socket.socket:
    """A listening socket; an empty address means all of IPv4, and of IPv6 if the system has both. Raises OSError."""
    if address:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listening = socket.create_server((address, port), family=family, backlog=BACKLOG)
    elif socket.has_dualstack_ipv6():
        listening = socket.create_server(("::", port), family=socket.AF_INET6, backlog=BACKLOG, dualstack_ipv6=True)
    else:
        listening = socket.create_server(("", port), backlog=BACKLOG)
    listening.setblocking(False)
    return listening


async def is_listening_at(listening_at: tuple[str, int] | None, host: str, port: int) -> bool:
    """Whether this device itself would answer at an address of that port."""
    if listening_at is None or port != listening_at[1]:
        return False
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    if not ip_address(listening_at[0]).is_unspecified:
        return any(name[0] == listening_at[0] for *_, name in found)
    return any(_is_of_this_machine(family, name) for family, *_, name in found)


def _is_of_this_machine(family: int, name: tuple[Any, ...]) -> bool:
    try:
        with socket.socket(family, socket.SOCK_STREAM) as trying:
            trying.bind((name[0], 0, *name[2:]))
    except OSError:  # also if the system has no such family
        return False
    return True


class PeerListener:
    """Accepts on one socket until cancelled. `serve` gets each channel after its handshake and closes it.

    The second argument of `serve` is called when the peer is admitted. Until then it takes one of its address's
    places, and `Deadlines.failed` longer if it never is, so that one address cannot try all the time. A connection that
    has ended keeps no other address out. If `MAX_CONNECTIONS` are open, the one that has waited longest to be admitted
    is ended, because a device needs a moment only. Many addresses together are slowed down by `REFUSED_PAUSE`.
    """

    def __init__(
        self, listening: socket.socket, context: ContextFactory, deadlines: Deadlines, serve: ServeChannel,
        on_refusal: NoteRefusal,
    ) -> None:  # fmt: skip
        self._socket = listening
        self._context = context
        self._deadlines = deadlines
        self._serve = serve
        self._on_refusal = on_refusal
        self._open = 0
        self._places = Counter[str]()  # of connections that are not admitted, by address
        self._waiting: dict[asyncio.Task[None], str] = {}  # not admitted yet, with their address; the oldest first

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        async with asyncio.TaskGroup() as group:
            while True:
                try:
                    connection, name = await loop.sock_accept(self._socket)
                except OSError:  # such as too many open files
                    await asyncio.sleep(ACCEPT_PAUSE)
                    continue
                address = readable_address(name)
                is_full = self._open >= MAX_CONNECTIONS
                if self._places[address] >= MAX_PLACES_PER_ADDRESS or (is_full and not self._waiting):
                    connection.close()
                    self._on_refusal(RefusalCause.FULL, address)
                    await asyncio.sleep(REFUSED_PAUSE)
                    continue
                if is_full:
                    self._end_oldest()
                self._open += 1
                self._places[address] += 1
                self._waiting[group.create_task(self._handle(connection, address))] = address
                admitted = self._open - len(self._waiting)
                is_busy = admitted + self._places.total() > MAX_CONNECTIONS  # with those that failed a moment ago
                await asyncio.sleep(REFUSED_PAUSE if is_busy else 0)  # a task that has not begun cannot be ended

    def _end_oldest(self) -> None:
        task = next(iter(self._waiting))
        self._on_refusal(RefusalCause.FULL, self._waiting.pop(task))
        task.cancel()

    async def _handle(self, connection: socket.socket, address: str) -> None:
        task = asyncio.current_task()
        assert task is not None
        is_admitted, channel = False, None

        def admit() -> None:
            nonlocal is_admitted
            is_admitted = True
            self._waiting.pop(task, None)
            self._leave_place(address)

        try:
            channel = await self._shake_hands(connection, address)
            if channel is not None:
                await self._serve(channel, admit)
        except asyncio.CancelledError:
            if channel is not None:
                channel.abort()
            raise
        except Exception as error:  # noqa: BLE001 - a defect in one connection ends that one only
            log.error("a connection on the local network ended: %s", location_of(error))  # noqa: TRY400 - no text
        finally:
            self._waiting.pop(task, None)
            self._open -= 1
            if not is_admitted:
                asyncio.get_running_loop().call_later(self._deadlines.failed, self._leave_place, address)

    def _leave_place(self, address: str) -> None:
        self._places[address] -= 1
        if not self._places[address]:
            del self._places[address]

    async def _shake_hands(self, connection: socket.socket, address: str) -> PeerChannel | None:
        try:
            return await accept_tls(connection, await self._context(), self._deadlines)
        except (OSError, TimeoutError) as error:
            connection.close()
            cause = refusal_of_handshake(error)
            if cause is not None:
                self._on_refusal(cause, address)
            return None


def refusal_of_handshake(error: OSError | TimeoutError) -> RefusalCause | None:
    """What a failed handshake means; None for a connection that only ended, as a port scan's does."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return RefusalCause.STRANGER
    if isinstance(error, ssl.SSLError):
        no_certificate = error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE"
        return RefusalCause.STRANGER if no_certificate else RefusalCause.TLS
    if isinstance(error, TimeoutError | ConnectionAbortedError):  # asyncio raises either
        return RefusalCause.SLOW
    return None
