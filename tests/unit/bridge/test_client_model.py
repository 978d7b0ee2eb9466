"""The client's model: whatever the client answers is a reply or a ModelFailed, and nothing waits for ever."""

import asyncio
from typing import Any

import pytest

from bridge.api.method_table import ClientRequestFailed
from bridge.client_model import ClientModel
from bridge.rpc.client_requests import MAX_WAITING, ClientRequests
from bridge.rpc.messages import ClientResponse
from sync.understanding.second_reader.model_port import ModelFailed, ModelReply, ModelRequest

REQUEST = ModelRequest("understanding", "s", ({"role": "user", "content": "{}"},), {"type": "object"}, 100)


def answering(answer: object) -> ClientModel:
    async def request(method: str, params: Any, /, *, within: float) -> object:
        assert (method, params["maxTokens"], params["schema"], within > 0) == (
            "model/complete",
            100,
            {"type": "object"},
            True,
        )
        if isinstance(answer, Exception):
            raise answer
        return answer

    return ClientModel(request)


async def test_an_answer_has_a_text_and_may_say_what_it_cost() -> None:
    assert await answering({"text": "{}"}).complete(REQUEST) == ModelReply("{}")
    used = {"text": "{}", "usage": {"inputTokens": 3, "outputTokens": 4, "more": 1}}
    assert await answering(used).complete(REQUEST) == ModelReply("{}", 7)


@pytest.mark.parametrize(
    "answer", [None, "text", {}, {"text": 5}, {"text": "x", "usage": 5}, ClientRequestFailed("gone")]
)
async def test_everything_else_is_a_failure(answer: object) -> None:
    with pytest.raises(ModelFailed):
        await answering(answer).complete(REQUEST)


async def test_a_response_ends_its_own_request_and_a_late_one_is_ignored() -> None:
    sent: list[str] = []

    def send(id_: str, method: str, params: object) -> bool:
        sent.append(f"{id_}")
        return (method, params) == ("m", {})

    requests = ClientRequests(send)
    first, second = (asyncio.create_task(requests.request("m", {}, within=20)) for _ in range(2))
    await asyncio.sleep(0)
    requests.resolve(ClientResponse(sent[1], 2, is_error=False))
    requests.resolve(ClientResponse(sent[1], 3, is_error=False))
    requests.resolve(ClientResponse("sidecar-99", 4, is_error=False))
    assert await second == 2
    requests.resolve(ClientResponse(sent[0], None, is_error=True))
    with pytest.raises(ClientRequestFailed, match="answered with an error"):
        await first
    requests.resolve(ClientResponse(sent[0], 5, is_error=False))


async def test_a_client_that_does_not_answer_read_or_stay_fails_the_request() -> None:
    requests = ClientRequests(lambda *_: True)
    with pytest.raises(ClientRequestFailed, match="did not answer"):
        await requests.request("m", {}, within=0)
    waiting = [asyncio.create_task(requests.request("m", {}, within=20)) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    with pytest.raises(ClientRequestFailed, match="not asked"):
        await requests.request("m", {}, within=20)
    requests.close()
    for one in waiting:
        with pytest.raises(ClientRequestFailed, match="gone"):
            await one
    with pytest.raises(ClientRequestFailed, match="not asked"):
        await requests.request("m", {}, within=20)
    with pytest.raises(ClientRequestFailed, match="does not read"):
        await ClientRequests(lambda *_: False).request("m", {}, within=20)
