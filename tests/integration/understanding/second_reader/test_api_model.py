"""A model behind an OpenAI-compatible API: what is sent, and every answer that is no completion."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

import pytest

from sync.understanding.second_reader.api_model import ApiModel
from sync.understanding.second_reader.model_port import ModelFailed, ModelReply, ModelRequest

REQUEST: Final = ModelRequest("understanding", "find", ({"role": "user", "content": "{}"},), {"type": "object"}, 100)
COMPLETION: Final = {"choices": [{"message": {"content": "{}"}}], "usage": {"total_tokens": 7}}


class FakeApi(ThreadingHTTPServer):
    """Answers every request with `answer`, and keeps what it got."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = 200
        self.answer: Any = COMPLETION
        self.requests: list[tuple[str, str | None, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1/"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        api = self.server
        assert isinstance(api, FakeApi)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        api.requests.append((self.path, self.headers["Authorization"], body))
        answer = api.answer if isinstance(api.answer, bytes) else json.dumps(api.answer).encode()
        self.send_response(api.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@pytest.fixture
def api() -> Iterator[FakeApi]:
    with FakeApi() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


async def test_it_asks_for_json_with_its_key(api: FakeApi) -> None:
    assert await ApiModel(api.url, "small", lambda: "key-1").complete(REQUEST) == ModelReply("{}", 7)
    ((path, authorization, body),) = api.requests
    assert (path, authorization, body["model"]) == ("/v1/chat/completions", "Bearer key-1", "small")
    assert [message["role"] for message in body["messages"]] == ["system", "user"]
    assert (body["max_tokens"], body["response_format"]) == (100, {"type": "json_object"})


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
