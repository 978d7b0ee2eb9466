"""Requests of this program to the client, and the responses that they wait for."""

import asyncio
from collections.abc import Callable
from typing import Final

from bridge.api.method_table import ClientRequestFailed
from bridge.rpc.messages import ClientResponse

MAX_WAITING: Final = 8  # requests that wait for the client at once
ID_PREFIX: Final = "sidecar-"


class ClientRequests:
    """The requests of one connection. `send` writes one; it returns False if the client does not read."""

    def __init__(self, send: Callable[[str, str, object], bool]) -> None:
        self._send = send
        self._waiting: dict[str, asyncio.Future[object]] = {}
        self._count = 0
        self._is_closed = False

    async def request(self, method: str, params: object, /, *, within: float) -> object:
        """Send a request and return its result. Raises ClientRequestFailed, after `within` seconds at the latest."""
        if self._is_closed or len(self._waiting) >= MAX_WAITING:
            raise ClientRequestFailed(f"the client is not asked {method} now")
        self._count += 1
        id_ = f"{ID_PREFIX}{self._count}"
        waiting: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting[id_] = waiting
        try:
            if not self._send(id_, method, params):
                raise ClientRequestFailed("the client does not read")
            async with asyncio.timeout(within):
                return await waiting
        except TimeoutError:
            raise ClientRequestFailed(f"the client did not answer {method} within {within:g} s") from None
        finally:
            del self._waiting[id_]

    def resolve(self, response: ClientResponse) -> None:
        """End the request that a response belongs to; one that comes too late is ignored."""
        waiting = self._waiting.get(response.id)
        if waiting is None or waiting.done():
            return
        if response.is_error:
            waiting.set_exception(ClientRequestFailed("the client answered with an error"))
        else:
            waiting.set_result(response.result)

    def close(self) -> None:
        """Fail all requests: the client is gone."""
        self._is_closed = True
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(ClientRequestFailed("the client is gone"))
