"""A language model behind an OpenAI-compatible API that the user has configured. It gets redacted text only."""

import asyncio
import importlib
from collections.abc import Callable
from typing import Any, Final

from sync.errors import XiaobaiError
from sync.understanding.second_reader.model_port import ModelFailed, ModelReply, ModelRequest, ModelUnavailable

FIRST_ERROR_STATUS: Final = 400
REFUSED: Final = frozenset({400, 404, 415, 422})  # the request itself, perhaps for a field that the API does not know
ANSWER_TIMEOUT: Final = 100.0  # seconds


class ApiModel:
    """`read_key` is called at each request, in a thread: a keychain is slow, and a key may be entered later."""

    def __init__(self, url: str, model: str, read_key: Callable[[], str | None]) -> None:
        self._url = url.rstrip("/") + "/chat/completions"
        self._model = model
        self._read_key = read_key
        self._dialect = 0  # the number of the options that the API took last

    async def complete(self, request: ModelRequest) -> ModelReply:
        body = {"model": self._model, "messages": [{"role": "system", "content": request.system}, *request.messages]}
        status, dialects = FIRST_ERROR_STATUS, _dialects(request)
        try:
            for number in range(self._dialect, len(dialects)):
                status, answer = await self._post(body | dialects[number])
                if status < FIRST_ERROR_STATUS:
                    self._dialect = number
                    return _reply_in(answer)
                if status not in REFUSED:
                    break
        except XiaobaiError as error:
            raise ModelUnavailable(f"the model's API could not be asked ({error.kind})") from error
        except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
            raise ModelFailed(f"the answer of the model's API has no text ({type(error).__name__})") from error
        raise (ModelFailed if status in REFUSED else ModelUnavailable)(f"the model's API answered {status}")

    async def _post(self, body: dict[str, Any]) -> tuple[int, Any]:
        http: Any = await asyncio.to_thread(importlib.import_module, "sync.cloud.supabase.http_client")  # with httpx
        key = await asyncio.to_thread(self._read_key)
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        wire = http.HttpClient(self._url, ANSWER_TIMEOUT)
        try:
            answer = await wire.await_reply(wire.client.post(self._url, json=body, headers=headers))
            return answer.status_code, answer.json() if answer.status_code < FIRST_ERROR_STATUS else None
        finally:
            await wire.close()


def _dialects(request: ModelRequest) -> tuple[dict[str, Any], ...]:
    """The options of a request as APIs know them, the most exact ones first."""
    schema = {"name": request.purpose, "strict": True, "schema": request.schema}
    return (
        {
            "response_format": {"type": "json_schema", "json_schema": schema},
            "max_completion_tokens": request.max_tokens,
        },
        {"response_format": {"type": "json_object"}, "max_tokens": request.max_tokens},
        {"max_tokens": request.max_tokens},
    )


def _reply_in(answer: Any) -> ModelReply:
    text = answer["choices"][0]["message"]["content"]
    if not isinstance(text, str):
        raise TypeError("a content that is no text")
    tokens = (answer.get("usage") or {}).get("total_tokens", 0)
    return ModelReply(text, tokens if isinstance(tokens, int) else 0)
