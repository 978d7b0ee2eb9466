"""Control a fault proxy over HTTP, for tests in other languages.

- POST /cut, /restore, /half_open
- POST /delay?seconds=2
- POST /drop_response_after_request?n=1&matching=rpc
- POST /answer?status=429&Retry-After=5 (each other parameter is a header, the request's body is the body)
"""

from collections.abc import Awaitable
from urllib.parse import parse_qsl, urlsplit

from tests.cloud.http_server import LoopbackPort, Request, Response, SubServer, http_handler
from tests.cloud.proxy.fault_proxy import FaultProxy


class ProxyHttpControl(SubServer):
    def __init__(self, proxy: FaultProxy) -> None:
        self._proxy = proxy
        self._door = LoopbackPort(http_handler(self._handle))

    @property
    def url(self) -> str:
        return self._door.url

    async def _handle(self, request: Request) -> Response:
        said = dict(parse_qsl(urlsplit(request.target).query))
        try:
            wanted = self._command(request.path.removeprefix("/"), said, request.body)
        except (KeyError, ValueError) as error:
            return Response(400, body=f"{request.target}: {error}\n".encode())
        if wanted is None:
            return Response(404, body=b"cut restore half_open delay drop_response_after_request answer\n")
        await wanted
        return Response(204)

    def _command(self, name: str, said: dict[str, str], body: bytes) -> Awaitable[None] | None:
        match name:
            case "cut":
                return self._proxy.disconnect()
            case "restore":
                return self._proxy.reconnect()
            case "half_open":
                return self._proxy.half_open()
            case "delay":
                return self._proxy.delay(float(said["seconds"]))
            case "drop_response_after_request":
                return self._proxy.drop_response_after_request(int(said.get("n", 1)), matching=said.get("matching", ""))
            case "answer":
                return self._proxy.respond_with(int(said.pop("status")), said, body)
        return None
