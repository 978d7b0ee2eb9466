"""Requests of this program to the client, and the responses that they wait for."""

import asyncio
from collections.abc import Callable
from typing import Final

from bridge.api.method_table import ClientRequestFailed
from bridge.rpc.messages import ClientResponse
from sync.texts.language import EN, Language

MAX_WAITING: Final = 8  # requests that wait for the client at once
ID_PREFIX: Final = "sidecar-"


class ClientRequests:
    """The requests of one connection. `send` writes one; it returns False if the client does not read."""

    def __init__(self, send: Callable[[str, str, object], bool]) -> None:
        self._send = send
        self._futures: dict[str, asyncio.Future[object]] = {}
        self._count = 0
        self._is_closed = False
        self.language = EN  # of errors, for a client that has named no locale
        self.methods = (self.request, self.answer_in)  # of a call's context

    def answer_in(self, language: Language) -> None:
        """Answer with errors in this language from now on."""
        self.language = language

    async def request(self, method: str, params: object, /, *, within: float) -> object:
        """Send a request and return its result. Raises ClientRequestFailed, after `within` seconds at the latest."""
        if self._is_closed or len(self._futures) >= MAX_WAITING:
            raise ClientRequestFailed(f"the client is not asked {method} now")
        self._count += 1
        id_ = f"{ID_PREFIX}{self._count}"
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._futures[id_] = future
        try:
            if not self._send(id_, method, params):
                raise ClientRequestFailed("the client does not read")
            async with asyncio.timeout(within):
                return await future
        except TimeoutError:
            raise ClientRequestFailed(f"the client did not answer {method} within {within:g} s") from None
        finally:
            del self._futures[id_]

    def resolve(self, response: ClientResponse) -> None:
        """End the request that a response belongs to; one that comes too late is ignored."""
        future = self._futures.get(response.id)
        if future is None or future.done():
            return
        if response.is_error:
            future.set_exception(ClientRequestFailed("the client answered with an error"))
        else:
            future.set_result(response.result)

    def close(self) -> None:
        """Fail all requests: the client is gone."""
        self._is_closed = True
        for future in self._futures.values():
            if not future.done():
                future.set_exception(ClientRequestFailed("the client is gone"))
