"""The server of the local endpoint: a running sidecar answers the same JSON-RPC on a socket in its data directory.

The folder is private (0700), the socket has mode 0600, and the peer's user is checked. The next sidecar, which holds
the sidecar lock, replaces the socket of one that was killed.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from bridge.api.method_table import MethodTable
from bridge.rpc.dispatcher import Dispatcher
from bridge.rpc.endpoint_client import SOCKET_NAME, is_same_user, socket_address
from bridge.rpc.stdio_transport import StdioTransport

App = TypeVar("App")

MAX_CONNECTIONS: Final = 32  # at once; a further one takes the place of the oldest silent one
ACCEPT_RETRY_INTERVAL: Final = 0.5  # seconds after a connection could not be accepted
DRAIN_TIMEOUT: Final = 0.2  # seconds for accepted calls when the sidecar leaves: its own client's had theirs before


@asynccontextmanager
async def serve_endpoint(data_dir: Path, table: MethodTable[App], app: App) -> AsyncIterator[None]:
    """Answer on the endpoint of this data directory during a block; without an endpoint if none can be created."""
    with _listening_socket(data_dir) as listener:
        if listener is None:
            yield
            return
        accepting = asyncio.create_task(_accept_connections(listener, table, app))
        try:
            yield
        finally:
            accepting.cancel()
            await asyncio.wait({accepting})


@contextmanager
def _listening_socket(data_dir: Path) -> Iterator[socket.socket | None]:
    with socket_address(data_dir) as address:
        if address is None:
            yield None
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.setblocking(False)
            path = data_dir / SOCKET_NAME
            try:
                path.unlink(missing_ok=True)
                listener.bind(address)
                path.chmod(0o600)  # before it listens; a umask would also apply to the other threads
                bound = path.stat().st_ino
            except OSError:
                yield None
                return
            listener.listen()
            try:
                yield listener
            finally:
                with suppress(OSError):
                    if path.stat().st_ino == bound:  # otherwise the folder was replaced, and another sidecar listens
                        path.unlink()


async def _accept_connections(listener: socket.socket, table: MethodTable[App], app: App) -> None:
    loop = asyncio.get_running_loop()
    dispatchers: dict[asyncio.Task[None], Dispatcher[App]] = {}
    try:
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError:  # no descriptor is free: the client waits in the listen queue
                await asyncio.sleep(ACCEPT_RETRY_INTERVAL)
                continue
            if not is_same_user(connection):
                connection.close()
                continue
            try:
                await _make_room(dispatchers)
            except asyncio.CancelledError:
                connection.close()
                raise
            dispatcher = Dispatcher(table, StdioTransport((connection.fileno(), connection.fileno())))
            task = asyncio.create_task(_serve_connection(dispatcher, app, connection))
            dispatchers[task] = dispatcher
            task.add_done_callback(dispatchers.pop)
    finally:
        for dispatcher in dispatchers.values():
            dispatcher.begin_shutdown("the sidecar is leaving", drain=DRAIN_TIMEOUT)
        if dispatchers:
            await asyncio.wait(set(dispatchers))


async def _make_room(dispatchers: dict[asyncio.Task[None], Dispatcher[App]]) -> None:
    """Wait until there is room for one more connection; end the oldest one that has no call under way."""
    while len(dispatchers) >= MAX_CONNECTIONS:
        if (silent := next((one for one in dispatchers.values() if one.is_idle), None)) is not None:
            silent.begin_shutdown("another client needs the place", drain=0)
        await asyncio.wait(set(dispatchers), return_when=asyncio.FIRST_COMPLETED)


async def _serve_connection(dispatcher: Dispatcher[App], app: App, connection: socket.socket) -> None:
    with connection:
        dispatcher.app_opened(app)
        await dispatcher.run()
