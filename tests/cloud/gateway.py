"""The project's URL: passes requests to lite and bridges what lite lacks.

Bridged here: times of Auth as RFC 3339 with a `Z`; login codes by phone (`one_time_codes.py`); Realtime's websocket
(`realtime.py`), if the database accepts connections. Paths that a hosted project does not serve are refused. Roles,
timeouts and error codes are bridged in `server/connection.mjs`. `/_local/` answers tests: codes, and schema reloads.
"""

import logging
import re

import httpx

from tests.cloud.http_server import HOP_BY_HOP, Headers, LoopbackPort, Request, Response, http_handler
from tests.cloud.one_time_codes import OneTimeCodes
from tests.cloud.realtime import Realtime

log = logging.getLogger("tests.cloud")

SERVED = ("/auth/v1/", "/rest/v1/")
UPSTREAM_WITHIN = 60.0  # seconds; longer than any statement timeout
AUTH_TIME = re.compile(rb'("[a-z_]+_at":")(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d(?:\.\d+)?)\+00(?::00)?"')


class Gateway:
    """One address for the project; the servers behind it may stop and start."""

    def __init__(self, realtime: Realtime | None) -> None:
        self._realtime = realtime
        self._door = LoopbackPort(http_handler(self._answer, None if realtime is None else realtime.serve))
        self._upstream: httpx.AsyncClient | None = None
        self._codes = OneTimeCodes(self._pass_on)

    @property
    def url(self) -> str:
        return self._door.url

    async def open(self, upstream: str) -> None:
        limits = httpx.Limits(max_connections=None)
        self._upstream = httpx.AsyncClient(
            base_url=upstream,
            timeout=UPSTREAM_WITHIN,
            limits=limits,
            trust_env=False,  # loopback needs no proxy
            verify=False,  # plain HTTP
        )
        await self._door.open()

    async def stop_accepting(self) -> None:
        await self._door.stop_accepting()
        if self._realtime is not None:
            await self._realtime.close()
        if self._upstream is not None:
            await self._upstream.aclose()

    async def close(self) -> None:
        await self.stop_accepting()
        await self._door.close()

    async def _answer(self, request: Request) -> Response:
        if request.path.startswith("/_local/"):
            return await self._handle_locally(request)
        if not request.path.startswith(SERVED):
            return Response(404, body=b'{"message":"no Route matched with those values"}')
        if not request.path.startswith("/auth/v1/"):
            return await self._pass_on(request)
        response = await self._codes.answer(request)
        return Response(response.status, response.headers, AUTH_TIME.sub(rb'\1\2T\3Z"', response.body))

    async def _handle_locally(self, request: Request) -> Response:
        if request.path.startswith("/_local/codes/"):
            return await self._codes.handle_locally(request)
        return await self._pass_on(request)

    async def _pass_on(self, request: Request) -> Response:
        assert self._upstream is not None
        headers = _end_to_end(request.headers)
        try:
            async with self._upstream.stream(
                request.method, request.target, headers=headers, content=request.body
            ) as answer:
                body = b"".join([chunk async for chunk in answer.aiter_raw()])
        except httpx.HTTPError as error:
            log.warning("%s %s: %r", request.method, request.path, error)
            return Response(502, body=b'{"message":"An invalid response was received from the upstream server"}')
        return Response(answer.status_code, answer.headers.raw, body)


def _end_to_end(headers: Headers) -> Headers:
    return [(name, value) for name, value in headers if name.lower() not in HOP_BY_HOP | {b"host"}]
