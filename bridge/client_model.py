"""The language model that the client offers: `model/complete`, a request of the sidecar to the client."""

from typing import Any, Final

import msgspec

from bridge.api.method_table import ClientRequestFailed, RequestClient
from sync.understanding.second_reader.model_port import ModelFailed, ModelReply, ModelRequest, ModelUnavailable

METHOD: Final = "model/complete"
ANSWER_TIMEOUT: Final = 100.0  # seconds


class _Usage(msgspec.Struct, rename="camel"):
    input_tokens: int = 0
    output_tokens: int = 0


class _Completion(msgspec.Struct):
    text: str
    usage: _Usage | None = None


class ClientModel:
    """Asks the client. Whatever it answers is a reply or a ModelFailed."""

    def __init__(self, request: RequestClient) -> None:
        self._request = request

    async def complete(self, request: ModelRequest) -> ModelReply:
        params: dict[str, Any] = {
            "purpose": request.purpose,
            "system": request.system,
            "messages": list(request.messages),
            "schema": request.schema,
            "maxTokens": request.max_tokens,
        }
        try:
            answer = await self._request(METHOD, params, within=ANSWER_TIMEOUT)
            completion = msgspec.convert(answer, _Completion)
        except ClientRequestFailed as error:
            raise ModelUnavailable(str(error)) from error
        except msgspec.ValidationError as error:
            raise ModelFailed("the client's answer to model/complete has no text") from error
        used = completion.usage
        return ModelReply(completion.text, 0 if used is None else used.input_tokens + used.output_tokens)
