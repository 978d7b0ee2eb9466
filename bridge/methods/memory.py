"""`initialize` and `memory/*`: what an AI asks of its memory."""

import asyncio
from typing import Annotated, Any, Final, Literal

import msgspec

from bridge.methods.door import Door
from bridge.methods.table import Context, Method, Params
from sync import __version__, contract, published
from sync.document.capture import Exchange
from sync.profiles import DEVICE_ID_PATTERN

PROTOCOL_VERSION: Final = 1
DEFAULT_WAIT_MS: Final = 150  # how long a message may wait for news from the cloud
LONGEST_WAIT_MS: Final = 30_000
LOOK: Final = 0.5  # seconds for an edit that was just saved; that of a large file may be in the next answer only


class Initialize(Params, frozen=True):
    protocol_version: int = PROTOCOL_VERSION
    client_info: dict[str, Any] | None = None
    parent_pid: int | None = None
    device_id: Annotated[str, msgspec.Meta(pattern=DEVICE_ID_PATTERN)] | None = None
    locale: str | None = None


class Load(Params, frozen=True):
    wait_ms: Annotated[int, msgspec.Meta(ge=0, le=LONGEST_WAIT_MS)] = DEFAULT_WAIT_MS
    scope: Literal["user", "device"] = "user"
    max_chars: Annotated[int, msgspec.Meta(ge=1)] | None = None


class Update(Params, frozen=True):
    user_message: str
    ai_response: str
    session_id: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None
    project_path: Annotated[str, msgspec.Meta(max_length=4096)] | None = None
    importance: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    idempotency_key: Annotated[str, msgspec.Meta(min_length=1, max_length=256)] | None = None


def capabilities() -> list[str]:
    """What may be asked for: the first parts of the names of all methods."""
    from bridge.methods.registry import TABLE  # noqa: PLC0415 - it is made of this module's rows

    return sorted({room for name in TABLE for room, slash, _ in (name.partition("/"),) if slash})


async def initialize(context: Context[Door], params: Initialize) -> published.InitializeJson:
    if params.parent_pid is not None:
        context.watch_parent(params.parent_pid)
    context.app.listen()
    app = await context.app.opened()
    if params.device_id is not None:
        await app.adopt_device_id(params.device_id)
    return {
        "protocolVersion": PROTOCOL_VERSION,
        "serverInfo": {"name": "xiaobai-memory", "version": __version__},
        "capabilities": capabilities(),
        "deviceId": app.log.device_id,
        "account": contract.account(await app.account.state()),
    }


async def load(context: Context[Door], params: Load) -> published.LoadJson:
    glimpsed = context.app.glimpse(scope=params.scope, max_chars=params.max_chars)
    if glimpsed is not None:
        return contract.loaded(glimpsed)
    app = await context.app.opened()
    await app.look_at_file(within=LOOK)
    found = await app.conversation.load(wait_ms=params.wait_ms, scope=params.scope, max_chars=params.max_chars)
    return contract.loaded(found)


async def system_prompt(context: Context[Door], params: Load) -> published.PromptJson:
    app = await context.app.opened()
    await app.look_at_file(within=LOOK)
    prompt = await app.conversation.prompt(wait_ms=params.wait_ms, scope=params.scope, max_chars=params.max_chars)
    return {"prompt": prompt}


async def update(context: Context[Door], params: Update) -> published.UpdateJson:
    app = await context.app.opened()
    exchange = Exchange(
        user_message=params.user_message,
        ai_response=params.ai_response,
        session_id=app.intake.session(params.session_id),
        project_path=params.project_path,
        importance=params.importance,
        idempotency_key=params.idempotency_key,
    )
    # A cancelled caller gets no answer, but what it asked to remember is remembered.
    return contract.updated(await asyncio.shield(app.conversation.update(exchange)))


METHODS: Final[list[Method[Door, Any]]] = [
    Method("initialize", Initialize, initialize, "Agree on a version; watch the parent process."),
    Method("memory/load", Load, load, "The newest known memory; never fails because of the network."),
    Method("memory/update", Update, update, "Record one exchange; durable when answered."),
    Method(
        "memory/systemPrompt",
        Load,
        system_prompt,
        "The memory as a block to inject into a system prompt.",
    ),
]
