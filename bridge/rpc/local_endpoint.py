"""The local endpoint: a Unix socket in the data directory on which a running sidecar answers the same JSON-RPC.

Its folder is private (0700), the socket has mode 0600, and the peer's user is checked. A socket that a killed sidecar
left is replaced by the next one, which holds the sidecar lock. Windows has no endpoint yet.
"""

import asyncio
import os
import socket
import struct
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Final, TypeVar

from bridge.api.method_table import MethodTable
from bridge.rpc.dispatcher import Dispatcher
from bridge.rpc.stdio_transport import StdioTransport

App = TypeVar("App")

SOCKET_NAME: Final = "sidecar.sock"
MAX_SOCKET_PATH_BYTES: Final = 100  # bytes of a socket's path: 108 on Linux and 104 on macOS, with the final NUL
MAX_CONNECTIONS: Final = 32  # at once; a further one waits in the listen queue
ACCEPT_RETRY_INTERVAL: Final = 0.5  # seconds after a connection could not be accepted
DRAIN_TIMEOUT: Final = 0.2  # seconds for accepted calls when the sidecar leaves: its own client's had theirs before
_UCRED: Final = struct.Struct("3i")  # pid, uid, gid: struct ucred of Linux


@asynccontextmanager
async def serve_endpoint(data_dir: Path, table: MethodTable[App], app: App) -> AsyncIterator[None]:
    """Answer on the endpoint of this data directory for the time of a block; without one where it cannot be made."""
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
def connect_to_sidecar(data_dir: Path, *, timeout: float) -> Iterator[socket.socket | None]:
    """A connection to the sidecar of this data directory; None if none listens. `timeout`: seconds for each step."""
    with _socket_address(data_dir) as address:
        if address is None:
            yield None
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(timeout)
            try:
                connection.connect(address)
            except OSError:
                yield None
                return
            yield connection if _is_same_user(connection) else None


@contextmanager
def _listening_socket(data_dir: Path) -> Iterator[socket.socket | None]:
    with _socket_address(data_dir) as address:
        if address is None:
            yield None
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            listener.setblocking(False)
            mask = os.umask(0o177)
            try:
                with suppress(FileNotFoundError):
                    (data_dir / SOCKET_NAME).unlink()
                listener.bind(address)
            except OSError:
                yield None
                return
            finally:
                os.umask(mask)
            listener.listen()
            try:
                yield listener
            finally:
                with suppress(OSError):
                    (data_dir / SOCKET_NAME).unlink()


@contextmanager
def _socket_address(data_dir: Path) -> Iterator[str | None]:
    """The address to bind or connect to; None if this system has none for it.

    Linux names a long path by a descriptor of its folder.
    """
    path = str(data_dir / SOCKET_NAME)
    if sys.platform == "win32":
        yield None
    elif len(os.fsencode(path)) <= MAX_SOCKET_PATH_BYTES:
        yield path
    elif sys.platform == "linux":
        try:
            folder = os.open(data_dir, os.O_PATH | os.O_DIRECTORY)
        except OSError:
            yield None
            return
        try:
            yield f"/proc/self/fd/{folder}/{SOCKET_NAME}"
        finally:
            os.close(folder)
    else:
        yield None


async def _accept_connections(listener: socket.socket, table: MethodTable[App], app: App) -> None:
    loop = asyncio.get_running_loop()
    room = asyncio.Semaphore(MAX_CONNECTIONS)
    dispatchers: dict[asyncio.Task[None], Dispatcher[App]] = {}

    def finished(task: asyncio.Task[None]) -> None:
        dispatchers.pop(task, None)
        room.release()

    try:
        while True:
            await room.acquire()
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError:  # no descriptor is free: the client waits in the listen queue
                room.release()
                await asyncio.sleep(ACCEPT_RETRY_INTERVAL)
                continue
            if not _is_same_user(connection):
                connection.close()
                room.release()
                continue
            dispatcher = Dispatcher(table, StdioTransport((connection.fileno(), connection.fileno())))
            task = asyncio.create_task(_serve_connection(dispatcher, app, connection))
            dispatchers[task] = dispatcher
            task.add_done_callback(finished)
    finally:
        for dispatcher in dispatchers.values():
            dispatcher.begin_shutdown("the sidecar is leaving", drain=DRAIN_TIMEOUT)
        if dispatchers:
            await asyncio.wait(set(dispatchers))


async def _serve_connection(dispatcher: Dispatcher[App], app: App, connection: socket.socket) -> None:
    with connection:
        dispatcher.app_opened(app)
        await dispatcher.run()


def _is_same_user(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as this user; macOS relies on the modes of socket and folder."""
    if sys.platform != "linux":
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    return bool(_UCRED.unpack(credentials)[1] == os.getuid())
