"""`initialize` and `memory/*`: what an AI asks of its memory."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from bridge.api.app_provider import AppProvider
from bridge.api.method_table import Context, Params
from bridge.methods.registry import METHOD_TABLE
from sync import __version__
from sync.accounts.profiles import DEVICE_ID_PATTERN
from sync.contract.document import LoadJson, PromptJson, UpdateJson, load_to_json, update_to_json
from sync.contract.status import InitializeJson
from sync.document.capture.exchange_events import ExchangeInput
from sync.errors import InvalidInput

if TYPE_CHECKING:  # a starting sidecar has not imported it yet
    from sync.app import App

PROTOCOL_VERSION: Final = 1
DEFAULT_WAIT_MS: Final = 150  # how long a message may wait for news from the cloud
MAX_WAIT_MS: Final = 30_000
# Seconds that a caller who waits at all waits for an edit that was just saved; a large file may be in the next answer.
FILE_CHECK_TIMEOUT: Final = 0.5


class OfferedModel(msgspec.Struct, frozen=True, rename="camel"):
    """The client's language model, for `model/complete`. 0 takes an earlier offer back."""

    max_calls_per_day: Annotated[int, msgspec.Meta(ge=0, le=1_000)]


class ClientCapabilities(msgspec.Struct, frozen=True, rename="camel"):
    """What the client can do for the sidecar. Unknown names are ignored: clients of LSP send many."""

    model: OfferedModel | None = None


class Initialize(Params, frozen=True):
    protocol_version: int = PROTOCOL_VERSION
    client_info: dict[str, Any] | None = None
    parent_pid: int | None = None
    device_id: Annotated[str, msgspec.Meta(pattern=DEVICE_ID_PATTERN)] | None = None
    locale: str | None = None
    capabilities: ClientCapabilities | None = None


class Load(Params, frozen=True):
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=MAX_WAIT_MS)] = DEFAULT_WAIT_MS
    scope: Literal["user", "device"] = "user"
    max_chars: Annotated[int, msgspec.Meta(ge=1)] | None = None


class SystemPrompt(Load, frozen=True):
    """`sessionId`: of the conversation, in which the block stays as it is while it is right."""

    session_id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None


class Update(Params, frozen=True):
    user_message: str
    ai_response: str
    session_id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None
    project_path: Annotated[str, msgspec.Meta(max_length=4096)] | None = None
    importance: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    idempotency_key: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None
    has_tool_output: bool = False


def capabilities() -> list[str]:
    """The first parts of the names of all methods."""
    return sorted({prefix for name in METHOD_TABLE for prefix, slash, _ in (name.partition("/"),) if slash})


async def initialize(context: Context[AppProvider], params: Initialize) -> InitializeJson:
    """Agree on a version and a language; watch the parent process."""
    if params.parent_pid is not None:
        context.watch_parent(params.parent_pid)
    context.app.enable_notifications()
    if params.capabilities is not None and params.capabilities.model is not None:
        context.app.offer_model(context.request_client, params.capabilities.model.max_calls_per_day)
    if params.locale:
        context.app.use_locale(params.locale)
    app = await context.app.wait_until_open()
    if params.locale:
        app.document.language.locale = params.locale
        context.answer_in(await app.memory_service.language())
    if params.device_id is not None:
        await app.adopt_device_id(params.device_id)
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "serverInfo": {"name": "xiaobai-memory", "version": __version__},
        "capabilities": capabilities(),
        "deviceId": app.log.device_id,
        "account": await app.account.state(),
    }


async def load(context: Context[AppProvider], params: Load) -> LoadJson:
    """The newest known memory; never fails because of the network."""
    glimpsed = context.app.cold_load(scope=params.scope, max_chars=params.max_chars)
    if glimpsed is not None:
        return load_to_json(glimpsed)
    app = await context.app.wait_until_open()
    await app.ingest_file_edit(timeout=_file_check_timeout(params))
    found = await app.memory_service.load(wait_ms=params.wait_ms, scope=params.scope, max_chars=params.max_chars)
    return load_to_json(found)


def _file_check_timeout(params: Load) -> float:
    """Seconds to wait for an edit of the file. `waitMs` 0 asks for what is known now; the edit is in a later answer."""
    return FILE_CHECK_TIMEOUT if params.wait_ms else 0.0


async def system_prompt(app: "App", params: SystemPrompt) -> PromptJson:
    """The memory as a block to inject into a system prompt."""
    await app.ingest_file_edit(timeout=_file_check_timeout(params))
    prompt = await app.context().system_prompt(
        wait_ms=params.wait_ms,
        scope=params.scope,
        max_chars=params.max_chars,
        session_id=app.draft_builder.safe_session_id(params.session_id),
    )
    return {"prompt": prompt}


async def update(app: "App", params: Update) -> UpdateJson:
    """Record one exchange; durable when answered."""
    exchange = ExchangeInput(
        user_message=params.user_message,
        ai_response=params.ai_response,
        session_id=app.draft_builder.safe_session_id(params.session_id),
        project_path=params.project_path,
        importance=params.importance,
        idempotency_key=params.idempotency_key,
        has_tool_output=params.has_tool_output,
    )
    # A cancelled caller gets no answer, but what it asked to remember is remembered.
    try:
        return update_to_json(await asyncio.shield(app.memory_service.update(exchange)))
    except InvalidInput as error:
        if params.idempotency_key is None or error.field != "event_id":
            raise
        hint = "Give a new exchange a new key; nothing was recorded."
        raise InvalidInput("another exchange has this key", field="idempotencyKey", hint=hint) from None
