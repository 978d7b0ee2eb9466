"""What every wire promises: the same suite on the twin in memory and on a real process."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from bridge.rpc.framing import Framing
from tests.contract.rpc_clients import RpcClient, memory_client, process_client


@pytest.fixture(params=["direct", "process"])
async def peer(request: pytest.FixtureRequest) -> AsyncIterator[RpcClient]:
    if request.param == "direct":
        async with memory_client() as made:
            yield made
    else:
        async with process_client() as (made, _):
            yield made


@pytest.fixture(params=["direct", "process"])
async def header_peer(request: pytest.FixtureRequest) -> AsyncIterator[RpcClient]:
    if request.param == "direct":
        async with memory_client(Framing.HEADERS) as made:
            yield made
    else:
        async with process_client(framing=Framing.HEADERS) as (made, _):
            yield made


@pytest.mark.parametrize("value", [None, 1, "记忆😀", [1, {"a": "b"}], {"深": ["处"] * 100}, "x" * 200_000])
async def test_a_call_is_answered(peer: RpcClient, value: object) -> None:
    assert await peer.call("test/echo", value=value) == value


async def test_a_peer_that_writes_headers_is_answered_with_headers(header_peer: RpcClient) -> None:
    assert await header_peer.call("test/echo", value="记忆") == "记忆"
    assert (await header_peer.error("nobody"))["code"] == -32601


async def test_bytes_may_come_one_by_one_and_cut_inside_characters(peer: RpcClient) -> None:
    request = {"jsonrpc": "2.0", "id": "一", "method": "test/echo", "params": {"value": "记忆😀"}}
    for byte in msgspec.json.encode(request) + b"\r\n":
        await peer.send_bytes(bytes([byte]))
    assert await peer.answer("一") == {"jsonrpc": "2.0", "id": "一", "result": "记忆😀"}


async def test_answers_come_when_they_are_ready_not_in_the_order_of_the_questions(peer: RpcClient) -> None:
    waiting = await peer.request("test/held", label="first")
    assert await peer.call("test/echo", value=2) == 2
    await peer.call("test/release")
    assert (await peer.answer(waiting))["result"] == "first"


async def test_more_calls_than_may_run_at_once_are_all_answered(peer: RpcClient) -> None:
    numbers = [await peer.request("test/slow", seconds=0.001, label=str(n)) for n in range(500)]
    assert [(await peer.answer(number))["result"] for number in numbers] == [str(n) for n in range(500)]


async def test_a_running_call_can_be_cancelled(peer: RpcClient) -> None:
    number = await peer.request("test/held")
    await peer.wait_for_notification("test/held")
    await peer.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
    error = (await peer.answer(number))["error"]
    assert (error["code"], error["data"]["kind"]) == (-32800, "cancelled")


async def test_a_call_can_be_cancelled_before_it_has_begun(peer: RpcClient) -> None:
    request = {"jsonrpc": "2.0", "id": "x", "method": "test/held", "params": {}}
    cancel = {"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "x"}}
    await peer.send_bytes(msgspec.json.encode(request) + b"\n" + msgspec.json.encode(cancel) + b"\n")
    assert (await peer.answer("x"))["error"]["code"] == -32800
    assert await peer.call("test/echo", value=1) == 1


async def test_a_call_that_waits_for_a_free_slot_can_be_cancelled(peer: RpcClient) -> None:
    numbers = [await peer.request("test/held", label=str(n)) for n in range(100)]
    for number in reversed(numbers):
        await peer.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": number}})
        assert (await peer.answer(number))["error"]["code"] == -32800
    assert await peer.call("test/echo", value=1) == 1


@pytest.mark.parametrize("params", [None, {}, {"id": 99}, {"id": {"a": 1}}, [1]])
async def test_a_cancellation_of_nothing_means_nothing(peer: RpcClient, params: object) -> None:
    await peer.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": params})
    assert await peer.call("test/echo", value=1) == 1


async def test_a_batch_is_answered_as_one_array_without_its_notifications(peer: RpcClient) -> None:
    await peer.send(
        [
            {"jsonrpc": "2.0", "id": "a", "method": "test/slow", "params": {"seconds": 0.01, "label": "a"}},
            {"jsonrpc": "2.0", "method": "test/echo"},
            {"jsonrpc": "2.0", "id": "b", "method": "nobody"},
            7,
            {"jsonrpc": "2.0", "id": 1, "result": "of somebody else"},
        ]
    )
    answer = await peer.next()
    assert isinstance(answer, list)
    by_id = {part["id"]: part for part in answer}
    assert by_id["a"]["result"] == "a"
    assert by_id["b"]["error"]["code"] == -32601
    assert by_id[None]["error"]["code"] == -32600
    assert len(answer) == 3


async def test_a_large_batch_respects_the_bound_of_what_runs_and_is_answered_whole(peer: RpcClient) -> None:
    batch = [{"jsonrpc": "2.0", "id": n, "method": "test/echo", "params": {"value": n}} for n in range(1000)]
    await peer.send(batch)
    assert sorted(part["result"] for part in await peer.next()) == list(range(1000))


async def test_a_batch_whose_answers_are_too_large_says_so_instead_of_growing(peer: RpcClient) -> None:
    batch = [{"jsonrpc": "2.0", "id": n, "method": "test/large", "params": {"size": 3_000_000}} for n in range(10)]
    await peer.send(batch)
    answers = await peer.next()
    refused = [part for part in answers if "error" in part]
    assert len(answers) == 10
    assert {part["error"]["data"]["kind"] for part in refused} == {"answer_too_large"}
    assert len(refused) == 5


async def test_a_batch_of_notifications_is_not_answered(peer: RpcClient) -> None:
    await peer.send([{"jsonrpc": "2.0", "method": "test/echo"}, {"jsonrpc": "2.0", "method": "nobody"}])
    assert await peer.call("test/echo", value=1) == 1
    assert peer.kept == []


async def test_notifications_are_obeyed_and_not_answered(peer: RpcClient) -> None:
    number = await peer.request("test/held", label="free")
    await peer.send({"jsonrpc": "2.0", "method": "test/release"})
    assert (await peer.answer(number))["result"] == "free"
    await peer.send({"jsonrpc": "2.0", "method": "test/crash"})
    await peer.send({"jsonrpc": "2.0", "method": "$/whatever"})
    assert await peer.call("test/echo", value=1) == 1
    assert [message for message in peer.kept if message.get("method") != "test/held"] == []


async def test_the_sidecar_can_speak_first(peer: RpcClient) -> None:
    await peer.call("test/tell", value="news")
    assert await peer.wait_for_notification("memory/changed") == {"value": "news"}
    assert await peer.wait_for_notification("$/progress") == {"token": "token", "value": {"done": 1}}


async def test_a_response_to_an_unknown_request_is_ignored(peer: RpcClient) -> None:
    await peer.send({"jsonrpc": "2.0", "id": 1, "result": "?"})
    await peer.send({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "?"}})
    assert await peer.call("test/echo", value=1) == 1
    assert peer.kept == []


async def test_failures_carry_code_kind_hint_and_retryable(peer: RpcClient) -> None:
    error = await peer.error("test/fail")
    assert (error["code"], error["message"]) == (-32021, "no space left")
    assert error["data"]["kind"] == "storage_full"
    assert error["data"]["retryable"] is True
    assert error["data"]["hint"]


@pytest.mark.parametrize("method", ["test/crash", "test/unsayable"])
async def test_a_defect_answers_without_its_content(peer: RpcClient, method: str) -> None:
    error = await peer.error(method)
    assert (error["code"], error["data"]["kind"]) == (-32603, "internal")
    assert "138" not in str(error)
    assert await peer.call("test/echo", value=1) == 1


async def test_a_call_that_takes_too_long_is_ended(peer: RpcClient) -> None:
    error = await peer.error("test/overdue")
    assert (error["code"], error["data"]["retryable"]) == (-32013, True)


async def test_bad_parameters_name_the_field(peer: RpcClient) -> None:
    assert (await peer.error("test/slow", seconds="soon"))["data"]["field"] == "seconds"
    assert (await peer.error("test/slow", secnods=1))["code"] == -32602
    await peer.send({"jsonrpc": "2.0", "id": "p", "method": "test/slow", "params": [1]})
    assert (await peer.answer("p"))["error"]["code"] == -32602


async def test_an_unknown_method_is_named(peer: RpcClient) -> None:
    error = await peer.error("test/" + "x" * 1000)
    assert error["code"] == -32601
    assert len(error["message"]) < 200


async def test_shutdown_answers_last_and_leaves(peer: RpcClient) -> None:
    slow = await peer.request("test/slow", seconds=0.05, label="before")
    bye = await peer.request("shutdown")
    late = await peer.request("test/echo", value="late")
    messages = await peer.remaining_messages()
    by_id = {message["id"]: message for message in messages}
    assert by_id[slow]["result"] == "before"
    assert by_id[bye]["result"] is None
    assert messages[-1]["id"] == bye
    if late in by_id:  # the sidecar may have been gone already
        assert by_id[late]["error"]["data"]["kind"] == "shutting_down"
    assert await peer.end.wait_closed() == 0


async def test_after_the_end_of_input_accepted_calls_are_answered(peer: RpcClient) -> None:
    numbers = [await peer.request("test/slow", seconds=0.05, label=str(n)) for n in range(10)]
    last = {"jsonrpc": "2.0", "id": "without newline", "method": "test/echo", "params": {"value": 1}}
    await peer.send_bytes(msgspec.json.encode(last))
    await peer.end.end()
    messages = await peer.remaining_messages()
    assert {message["id"] for message in messages} == {*numbers, "without newline"}
    assert all("result" in message for message in messages)
    assert await peer.end.wait_closed() == 0


async def test_a_call_that_does_not_end_is_cancelled_when_leaving(peer: RpcClient) -> None:
    number = await peer.request("test/held")
    await peer.wait_for_notification("test/held")
    await peer.end.end()
    (message,) = await peer.remaining_messages()
    assert message["id"] == number
    assert message["error"]["data"]["kind"] == "shutting_down"
    assert await peer.end.wait_closed() == 0
