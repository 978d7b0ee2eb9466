"""A model behind an OpenAI-compatible API: what is sent, and every answer that is no completion."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from sync.understanding.second_reader.api_model import ApiModel
from sync.understanding.second_reader.model_port import ModelFailed, ModelReply, ModelRequest, ModelUnavailable
from tests.integration.understanding.second_reader.careless_model import FakeApi, serving

REQUEST: Final = ModelRequest("understanding", "find", ({"role": "user", "content": "{}"},), {"type": "object"}, 100)


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with serving() as server:
        yield server


async def test_it_asks_for_json_with_its_key(api: FakeApi) -> None:
    assert await ApiModel(api.url, "small", lambda: "key-1").complete(REQUEST) == ModelReply("{}", 7)
    ((path, authorization, body),) = api.requests
    assert (path, authorization, body["model"]) == ("/v1/chat/completions", "Bearer key-1", "small")
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert (body["max_completion_tokens"], body["response_format"]["type"]) == (100, "json_schema")
    assert body["response_format"]["json_schema"]["schema"] == REQUEST.schema


async def test_an_api_that_refuses_a_field_is_asked_without_it_and_the_next_time_at_once(api: FakeApi) -> None:
    api.refused_fields = ("json_schema", "max_completion_tokens")
    model = ApiModel(api.url, "small", lambda: None)
    for _ in range(2):
        assert await model.complete(REQUEST) == ModelReply("{}", 7)
    assert [body.get("response_format", {}).get("type") for _, _, body in api.requests] == [
        "json_schema",
        "json_object",
        "json_object",
    ]
    api.refused_fields = ("response_format",)
    assert await model.complete(REQUEST) == ModelReply("{}", 7)
    assert (api.requests[-1][2]["max_tokens"], "response_format" in api.requests[-1][2]) == (100, False)


@pytest.mark.parametrize(("status", "is_refused"), [(400, True), (422, True), (401, False), (429, False), (503, False)])
async def test_a_refused_request_is_a_failed_answer_and_an_api_that_cannot_be_asked_is_not(
    api: FakeApi, status: int, is_refused: bool
) -> None:
    api.status = status
    with pytest.raises(ModelFailed) as caught:
        await ApiModel(api.url, "small", lambda: None).complete(REQUEST)
    assert isinstance(caught.value, ModelUnavailable) is not is_refused


async def test_a_local_model_needs_no_key_and_may_not_count_tokens(api: FakeApi) -> None:
    api.answer = {"choices": [{"message": {"content": "{}"}}], "usage": {"total_tokens": "many"}}
    assert await ApiModel(api.url, "small", lambda: None).complete(REQUEST) == ModelReply("{}")
    assert api.requests[0][1] is None


@pytest.mark.parametrize(
    ("status", "answer"),
    [
        (401, {"error": "no"}),
        (500, {}),
        (429, {}),
        (200, b"<html>"),
        (200, b"[" * 100_000),
        (200, {}),
        (200, []),
        (200, {"choices": []}),
        (200, {"choices": [{"message": None}]}),
        (200, {"choices": [{"message": {"content": None}}]}),
        (200, {"choices": "x"}),
    ],
)
async def test_everything_else_is_a_failure_without_words_of_the_api(api: FakeApi, status: int, answer: Any) -> None:
    api.status, api.answer = status, answer
    with pytest.raises(ModelFailed) as caught:
        await ApiModel(api.url, "small", lambda: "key-1").complete(REQUEST)
    assert "key-1" not in caught.value.message


async def test_a_server_that_is_not_there_is_a_failure() -> None:
    with pytest.raises(ModelFailed, match="could not be asked"):
        await ApiModel("http://127.0.0.1:9/v1", "small", lambda: None).complete(REQUEST)
