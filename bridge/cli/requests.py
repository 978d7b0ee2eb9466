"""The requests of the commands that a running sidecar can carry out, made of their arguments. Imports no typer."""

from functools import partial
from typing import Any, Final

from bridge.cli import display
from bridge.cli.arguments import folder_option, json_argument, project_option, text_argument
from bridge.cli.sidecar_runner import Request
from sync.errors import InvalidInput

LOAD_WAIT_MS: Final = 1500
SEARCH_LIMIT: Final = 10
# The presets, and their names in settings and JSON-RPC.
PRESETS: Final = {"default": "default", "fading": "seed000", "meaning": "seed004"}


def load(
    *, wait_ms: int = LOAD_WAIT_MS, scope: str = "user", max_chars: int | None = None, prompt: bool = False
) -> Request:
    params = _without_none(waitMs=wait_ms, scope=scope, maxChars=max_chars)
    if prompt:
        return Request("memory/systemPrompt", params, display.show_prompt)
    return Request("memory/load", params, display.show_memory)


def update(
    user_message: str,
    ai_response: str,
    *,
    importance: float | None = None,
    key: str | None = None,
    project: str | None = None,
    session_id: str | None = None,
) -> Request:
    params = _without_none(
        userMessage=text_argument(user_message),
        aiResponse=ai_response,
        importance=importance,
        idempotencyKey=key,
        projectPath=folder_option(project),
        sessionId=session_id,
    )
    return Request("memory/update", params, display.show_update)


def remember(text: str, *, session_id: str | None = None, project: str | None = None) -> Request:
    text = text_argument(text)
    params = _without_none(text=text, sessionId=session_id, projectPath=folder_option(project))
    return Request("memory/command", params, display.show_reply, repeatable=False)


def search(
    query: str,
    *,
    limit: int = SEARCH_LIMIT,
    scope: str = "all",
    project: str | None = None,
    since: str | None = None,
    until: str | None = None,
    kind: list[str] | None = None,
    preset: str | None = None,
    context: bool = False,
) -> Request:
    params = _without_none(
        query=text_argument(query),
        limit=limit,
        scope=scope,
        project=project_option(project),
        since=since,
        until=until,
        kinds=kind,
        weights=None if preset is None else PRESETS.get(preset, preset),
    )
    if context:
        return Request("recall/context", params, display.show_context)
    return Request("recall/search", params, display.show_hits)


def status() -> Request:
    return Request("sync/status", {}, display.show_status)


def append_event(event: str) -> Request:
    return Request("events/append", {"event": json_argument(event, name="event")}, display.show_recorded)


def append_events(events: str) -> Request:
    return Request("events/appendBatch", {"events": json_argument(events, name="events")}, display.show_recorded)


def read_events(query: str = "{}") -> Request:
    return Request("events/read", parse_event_filter(query), display.show_events, role="guest")


def upsert_session(meta: str) -> Request:
    return Request("sessionMeta/upsert", {"meta": json_argument(meta, name="meta")}, display.show_session)


def list_sessions(query: str = "{}") -> Request:
    return Request("sessionMeta/list", parse_event_filter(query), display.show_sessions, role="guest")


def restore(sha256: str) -> Request:
    return Request("memory/restore", {"sha256": sha256}, display.show_edited, repeatable=False)


def resolve(answer: str) -> Request:
    return Request("memory/resolve", {"answer": answer}, partial(display.show_resolved, answer), repeatable=False)


def parse_event_filter(text: str) -> dict[str, Any]:
    value = json_argument(text, name="filter")
    if not isinstance(value, dict):
        raise InvalidInput("a filter is a JSON object", field="filter")
    return value


def _without_none(**params: Any) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
