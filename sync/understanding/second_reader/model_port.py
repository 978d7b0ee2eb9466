"""The port of a language model: the app's own, offered by the client, or an API that the user names."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from sync.errors import XiaobaiError


class ModelFailed(XiaobaiError):
    """A model gave no usable answer. Nothing was recorded; the exchanges are sent again, fewer at a time."""

    kind: ClassVar[str] = "model_failed"
    retryable: ClassVar[bool] = True
    default_hint: ClassVar[str] = "Facts are still found by rules; `status` shows the last failure of the model."


class ModelUnavailable(ModelFailed):
    """A model could not be asked. The exchanges wait, however often."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """What `model/complete` asks. `schema`: the JSON Schema of the answer. `max_tokens`: of the answer."""

    purpose: str
    system: str
    messages: tuple[dict[str, str], ...]
    schema: dict[str, Any]
    max_tokens: int


@dataclass(frozen=True, slots=True)
class ModelReply:
    """The answer as text, and what it cost, if the model says so."""

    text: str
    tokens: int = 0


class LanguageModel(Protocol):
    """Completes one request. Raises ModelFailed."""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the answer, within the time that the model allows itself."""


@dataclass(frozen=True, slots=True)
class ModelStatus:
    """What `status` says of the model. Calls and tokens are counted by day."""

    source: str = "off"  # off, client, or api
    max_calls_per_day: int = 0
    calls: int = 0
    tokens: int = 0
    waiting: int = 0
    recorded: int = 0  # facts since the start
    refused: int = 0  # operations since the start
    last_error: str | None = None
