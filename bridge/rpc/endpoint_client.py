"""The client of the local endpoint: a Unix socket in the data directory, on which a running sidecar answers JSON-RPC.

Standard library only: a command that a sidecar carries out imports nothing else. Windows has no endpoint yet; a named
pipe is a later step, and until then a command on Windows does its work itself.
"""

import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

SOCKET_NAME: Final = "sidecar.sock"
MAX_SOCKET_PATH_BYTES: Final = 100  # bytes of a socket's path: 108 on Linux and 104 on macOS, with the final NUL
PING_TIMEOUT: Final = 2.0  # seconds in which a sidecar that is not stuck answers a call that does nothing
_PING: Final = "$/cancelRequest"  # answered at once, without the application
_UCRED: Final = struct.Struct("3i")  # pid, uid, gid: struct ucred of Linux


@contextmanager
def connect_to_sidecar(data_dir: Path, *, timeout: float) -> Iterator[socket.socket | None]:
    """A connection to the sidecar of this data directory; None if none listens. `timeout`: seconds for each step."""
    with socket_address(data_dir) as address:
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
            yield connection if is_same_user(connection) else None


@contextmanager
def responsive_sidecar(data_dir: Path) -> Iterator[socket.socket | None]:
    """The same, but None also if the sidecar does not answer: it is stopped, or its loop is busy."""
    with connect_to_sidecar(data_dir, timeout=PING_TIMEOUT) as connection:
        if connection is None:
            yield None
            return
        yield connection if _answers(connection) else None


def is_unresponsive(data_dir: Path) -> bool:
    """Whether a sidecar listens and does not answer."""
    with connect_to_sidecar(data_dir, timeout=PING_TIMEOUT) as connection:
        return connection is not None and not _answers(connection)


def _answers(connection: socket.socket) -> bool:
    try:
        exchange(connection, _PING, {}, timeout=PING_TIMEOUT)
    except (OSError, ValueError):
        return False
    return True


def exchange(connection: socket.socket, method: str, params: dict[str, Any], *, timeout: float) -> dict[str, Any]:
    """Send a request and return the response object. OSError or ValueError if the connection breaks."""
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    connection.settimeout(timeout)
    connection.sendall(json.dumps(request, ensure_ascii=False).encode() + b"\n")
    with connection.makefile("rb") as answers:
        response = json.loads(answers.readline())
    return dict(response)


@contextmanager
def socket_address(data_dir: Path) -> Iterator[str | None]:
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


def is_same_user(connection: socket.socket) -> bool:
    """Whether the process at the other end runs as this user; macOS relies on the modes of socket and folder."""
    if sys.platform != "linux":
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    return bool(_UCRED.unpack(credentials)[1] == os.getuid())
