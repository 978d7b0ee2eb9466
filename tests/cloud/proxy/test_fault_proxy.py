"""The fault proxy causes each fault, and ends it."""

import asyncio
import time
from collections.abc import AsyncIterator

import httpx
import pytest

from tests.cloud.http_server import LoopbackPort, Request, Response, http_handler
from tests.cloud.prerequisites import LOOPBACK
from tests.cloud.proxy.fault_proxy import FaultProxy
from tests.cloud.proxy.http_control import ProxyHttpControl


class Server:
    """Counts requests. `/wait` answers when the test allows it."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.waiting = asyncio.Event()
        self.go_on = asyncio.Event()

    async def answer(self, request: Request) -> Response:
        self.reached.append(request.path)
        if request.path == "/wait":
            self.waiting.set()
            await self.go_on.wait()
        return Response(200, body=f"{request.path} {len(request.body)}".encode())


@pytest.fixture
async def server() -> Server:
    return Server()


@pytest.fixture
async def proxy(server: Server) -> AsyncIterator[FaultProxy]:
    door = LoopbackPort(http_handler(server.answer))
    await door.open()
    async with FaultProxy(LOOPBACK, door.port) as proxy:
        yield proxy
    await door.close()


@pytest.fixture
async def client(server: Server, proxy: FaultProxy) -> AsyncIterator[httpx.AsyncClient]:
    """A client with a kept connection through the proxy."""
    async with httpx.AsyncClient(base_url=proxy.url, timeout=5, trust_env=False) as client:
        await client.get("/first")
        server.reached.clear()
        yield client


async def test_a_good_network_changes_nothing(client: httpx.AsyncClient) -> None:
    assert (await client.post("/large", content=b"x" * 3_000_000)).text == "/large 3000000"


async def test_a_body_in_chunks_arrives_whole(client: httpx.AsyncClient) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 100_000

    assert (await client.post("/chunks", content=chunks())).text == "/chunks 300000"


async def test_a_cut_refuses_until_it_is_restored(proxy: FaultProxy, client: httpx.AsyncClient) -> None:
    url = proxy.url
    await proxy.disconnect()
    with pytest.raises(httpx.ConnectError):
        await client.get("/")
    await proxy.reconnect()
    assert proxy.url == url
    assert (await client.get("/")).is_success


async def test_a_cut_resets_what_is_under_way(proxy: FaultProxy, client: httpx.AsyncClient, server: Server) -> None:
    under_way = asyncio.create_task(client.get("/wait"))
    await asyncio.wait_for(server.waiting.wait(), 5)
    await proxy.disconnect()
    with pytest.raises(httpx.ReadError):
        await under_way


async def test_a_slow_network_is_slow_in_both_directions(proxy: FaultProxy, client: httpx.AsyncClient) -> None:
    await proxy.delay(0.1)
    began = time.monotonic()
    assert (await client.get("/")).is_success
    assert time.monotonic() - began >= 0.2


async def test_a_half_open_connection_never_answers(
    proxy: FaultProxy, client: httpx.AsyncClient, server: Server
) -> None:
    await proxy.half_open()
    for _ in ("the connection that was kept", "a new one"):
        with pytest.raises(httpx.ReadTimeout):
            await client.get("/silence", timeout=0.1)
    assert server.reached == []
    await proxy.reconnect()
    assert (await client.get("/")).is_success


async def test_answers_are_lost_for_as_many_requests_as_asked(
    proxy: FaultProxy, client: httpx.AsyncClient, server: Server
) -> None:
    await proxy.drop_response_after_request(2, matching="/push")
    assert (await client.get("/other")).is_success
    for _ in range(2):
        with pytest.raises(httpx.HTTPError):
            await client.post("/push", content=b"x" * 200_000)
    assert (await client.post("/push", content=b"x")).is_success
    assert server.reached == ["/other", "/push", "/push", "/push"]
    assert proxy.answers_dropped == 2


async def test_a_captive_portal_answers_for_everybody(
    proxy: FaultProxy, client: httpx.AsyncClient, server: Server
) -> None:
    await proxy.respond_with(429, {"retry-after": "7"}, b"<html>pay first</html>")
    answers = [await client.post("/push", content=b"x" * 200_000) for _ in range(2)]
    assert [(answer.status_code, answer.headers["retry-after"]) for answer in answers] == [(429, "7")] * 2
    assert answers[0].text == "<html>pay first</html>"
    assert (proxy.requests_answered, server.reached) == (2, [])
    await proxy.reconnect()
    assert (await client.get("/")).text == "/ 0"


async def test_it_is_commanded_over_http(proxy: FaultProxy, client: httpx.AsyncClient) -> None:
    async with (
        ProxyHttpControl(proxy) as control,
        httpx.AsyncClient(base_url=control.url, trust_env=False) as commander,
    ):
        (await commander.post("/answer?status=503&Retry-After=3", content=b"later")).raise_for_status()
        answer = await client.get("/")
        assert (answer.status_code, answer.headers["retry-after"], answer.text) == (503, "3", "later")
        (await commander.post("/restore")).raise_for_status()
        assert (await client.get("/")).is_success
        assert (await commander.post("/answer?status=many")).status_code == 400
        assert (await commander.post("/nonsense")).status_code == 404
