"""The dispatcher's bounds and the client in memory; tests/contract covers what both wires share."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from bridge.api.method_table import Context, Method, MethodTable, NoParams, Notify
from bridge.rpc.dispatcher import MAX_RUNNING_CALLS, Dispatcher, serve_connection
from bridge.rpc.transport import HIGH_WATER
from sync.errors import StorageFull
from tests.in_memory_transport import InMemoryTransport, RpcCallError, connect_in_memory
from tests.integration.bridge.rpc.echo_server import TABLE, EchoApp, open_echo

LINE = b'{"jsonrpc":"2.0","id":%d,"method":"test/held"}\n'


@asynccontextmanager
async def serving(table: MethodTable[EchoApp] = TABLE) -> AsyncIterator[tuple[InMemoryTransport, Dispatcher[EchoApp]]]:
    wire = InMemoryTransport()
    dispatcher = Dispatcher(table, wire)
    ready = asyncio.Event()

    @asynccontextmanager
    async def open_and_say_so(notify: Notify) -> AsyncIterator[EchoApp]:
        async with open_echo(notify) as app:
            ready.set()
            yield app

    task = asyncio.create_task(serve_connection(dispatcher, open_and_say_so))
    await ready.wait()
    try:
        yield wire, dispatcher
    finally:
        wire.set_stalled(stalled=False)
        dispatcher.begin_shutdown("the test is over")
        await task


def lines(data: bytes) -> list[dict[str, object]]:
    return [msgspec.json.decode(line) for line in data.splitlines()]


async def test_at_most_a_stated_number_of_calls_runs_at_once() -> None:
    running = most = 0

    async def count(_context: Context[EchoApp], _params: NoParams) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    async with connect_in_memory(MethodTable([Method("count", NoParams, count, "Counts.")]), open_echo) as client:
        await asyncio.gather(*(client.call("count") for _ in range(500)))
    assert most == MAX_RUNNING_CALLS


async def test_reading_stops_when_too_many_calls_wait_and_goes_on_when_they_are_done() -> None:
    async with serving() as (wire, _):
        for number in range(2000):
            wire.send(LINE % number)
        assert wire.unread_input > 0
        wire.send(b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}\n')
        assert wire.unread_input > 0
    assert wire.unread_input > 0  # leaving does not read what was never read


async def test_a_connection_that_leaves_with_the_sidecar_waits_for_no_call_and_answers_it() -> None:
    wire = InMemoryTransport()
    dispatcher = Dispatcher(TABLE, wire)
    running = asyncio.create_task(dispatcher.run())  # its application is never opened
    await asyncio.sleep(0)
    wire.send(LINE % 1)
    dispatcher.begin_shutdown("the sidecar is leaving", drain=0.0)
    await running
    assert b"shutting_down" in wire.read_output()


async def test_a_client_that_hung_up_while_nothing_moves_is_left() -> None:
    async with serving() as (wire, dispatcher):
        for number in range(1000):
            wire.send(LINE % number)
        dispatcher.client_hung_up()
        assert dispatcher.shutdown_reason == ""
        dispatcher.client_hung_up()
        assert dispatcher.shutdown_reason == "the client closed its end and nothing moves"


async def test_reading_stops_above_the_high_water_mark_of_requests() -> None:
    async with serving() as (wire, _):
        padding = b" " * 1_000_000
        for number in range(20):
            wire.send((LINE % number).rstrip(b"\n").replace(b"}", b"," + b'"x":"' + padding + b'"}') + b"\n")
        assert wire.unread_input > 10_000_000


async def test_reading_goes_on_after_a_large_notification_although_nothing_is_answered() -> None:
    async with connect_in_memory(TABLE, open_echo) as client:
        client.notify("test/echo", {"value": "x" * (HIGH_WATER + 1)})
        async with asyncio.timeout(20):
            assert await client.call("test/echo", {"value": 1}) == 1


async def test_unread_answers_stop_the_reading_until_they_are_read() -> None:
    async with serving() as (wire, _):
        wire.set_stalled(stalled=True)
        for number in range(600):
            wire.send(
                msgspec.json.encode(
                    {"jsonrpc": "2.0", "id": number, "method": "test/large", "params": {"size": 300_000}}
                )
                + b"\n"
            )
        for _ in range(100):
            await asyncio.sleep(0)
        assert HIGH_WATER < wire.unwritten < HIGH_WATER + (MAX_RUNNING_CALLS + 1) * 300_100
        assert wire.unread_input > 0
        wire.set_stalled(stalled=False)
        taken = 0
        async with asyncio.timeout(20):
            while taken < 600:
                await wire.wait_for_output()
                taken += len(lines(wire.read_output()))


async def test_notifications_before_the_client_has_spoken_wait_and_only_the_newest_is_said() -> None:
    async with serving() as (wire, dispatcher):
        for number in range(3):
            dispatcher.notify("memory/changed", {"n": number})
        dispatcher.notify("auth/changed")
        assert wire.read_output() == b""
        wire.send(b"Content-Length: 2\r\n\r\n[]")
        said = wire.read_output()
        assert said.count(b"Content-Length") == 3
        assert b'{"n":2}' in said
        assert b'{"n":1}' not in said


async def test_unread_notifications_are_folded_into_the_newest_of_their_method() -> None:
    async with serving() as (wire, dispatcher):
        wire.send(b'{"jsonrpc":"2.0","id":1,"method":"test/echo"}\n')
        await wire.wait_for_output()
        wire.read_output()
        wire.set_stalled(stalled=True)
        for number in range(1000):
            dispatcher.notify("memory/changed", [number, "x" * 100_000])
        dispatcher.notify("auth/changed")
        assert wire.unwritten < HIGH_WATER + 200_000
        wire.set_stalled(stalled=False)
        said = lines(wire.read_output())
        assert [message["method"] for message in said[-2:]] == ["memory/changed", "auth/changed"]
        last = said[-2]["params"]
        assert isinstance(last, list)
        assert last[0] == 999


async def test_a_notification_that_is_not_json_does_no_harm() -> None:
    async with serving() as (wire, dispatcher):
        wire.send(b"[]\n")
        wire.read_output()
        dispatcher.notify("memory/changed", object())
        dispatcher.notify("memory/changed", "\ud800")
        assert wire.read_output() == b""


async def test_a_cancelled_call_can_be_seen_from_a_thread_and_knows_its_deadline() -> None:
    begun: asyncio.Future[Context[EchoApp]] = asyncio.get_running_loop().create_future()

    async def wait(context: Context[EchoApp], _params: NoParams) -> None:
        begun.set_result(context)
        await asyncio.Event().wait()

    async with serving(MethodTable([Method("wait", NoParams, wait, "Waits.", timeout=30)])) as (wire, _):
        wire.send(b'{"jsonrpc":"2.0","id":1,"method":"wait"}\n')
        context = await begun
        before = context.cancelled
        assert 29 < (context.remaining() or 0) <= 30
        wire.send(b'{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}\n')
        assert (before, context.cancelled) == (False, True)
        await wire.wait_for_output()
        assert b"-32800" in wire.read_output()


async def test_what_breaks_while_the_application_runs_is_raised_after_leaving() -> None:
    @asynccontextmanager
    async def breaks(notify: Notify) -> AsyncIterator[EchoApp]:
        async def later() -> None:
            raise StorageFull("no space left")

        async with asyncio.TaskGroup() as group:
            group.create_task(later())
            yield EchoApp(notify)

    wire = InMemoryTransport()
    with pytest.raises(ExceptionGroup) as caught:
        await serve_connection(Dispatcher(TABLE, wire), breaks)
    assert caught.value.subgroup(StorageFull) is not None


async def test_the_client_in_memory_calls_and_listens() -> None:
    async with connect_in_memory(TABLE, open_echo) as client:
        assert await client.call("test/echo", {"value": "记忆"}) == "记忆"
        with pytest.raises(RpcCallError) as caught:
            await client.call("test/fail")
        assert caught.value.error["code"] == -32021
        await client.call("test/tell", {"value": 1})
        assert await client.notifications.get() == ("memory/changed", {"value": 1})
