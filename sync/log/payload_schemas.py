"""The payloads of known event types, checked when other programs append events. Pure.

Every known field may be missing or null. A known field of the wrong shape is refused by its name. Unknown fields and
types are kept if the user stores messages, else only what the catalogue lists. Events of the user's other devices are
not checked here.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, Literal

import msgspec

from sync.errors import InvalidInput
from sync.log.event_catalogue import EVENT_TYPES
from sync.log.event_types import (
    FACT_EDITED,
    FACT_VERDICT_TYPES,
    MEMORY_FACT,
    MESSAGE,
    SESSION_END_TYPES,
    SESSION_META,
    SESSION_STARTED,
    TOOL_CALL,
    USER_FEEDBACK,
)


class _MessagePayload(msgspec.Struct):
    role: Literal["user", "assistant"] | None = None
    content: str | list[Any] | dict[str, Any] | None = None  # a list or object: a message in parts


class _ToolCallDetails(msgspec.Struct):
    file_path: str | None = None
    command: str | None = None
    exit_code: int | None = None


class _ToolCallPayload(msgspec.Struct):
    tool: str | None = None
    details: _ToolCallDetails | None = None
    stage: str | None = None  # design, implement, test, document …; an open list


class _FactPayload(msgspec.Struct):
    fact_type: Literal["decision", "preference", "config", "plan", "note"] | None = None
    content: str | None = None
    tags: list[str] | None = None


class _FactAnswerPayload(msgspec.Struct):
    """The payload of an answer about a fact."""

    fact_id: str | None = None
    also_ids: list[str] | None = None
    content: str | None = None


class _FeedbackPayload(msgspec.Struct):
    feedback_type: Literal["correction", "approval", "rejection"] | None = None
    content: str | None = None


class _SessionPayload(msgspec.Struct):
    """The payload of events about a session."""

    title: str | None = None
    summary: str | None = None
    reason: str | None = None
    tags: list[str] | None = None


PAYLOAD_SCHEMAS: Final[Mapping[str, type[msgspec.Struct]]] = {
    SESSION_STARTED: _SessionPayload,
    **dict.fromkeys(SESSION_END_TYPES, _SessionPayload),
    SESSION_META: _SessionPayload,
    MESSAGE: _MessagePayload,
    TOOL_CALL: _ToolCallPayload,
    MEMORY_FACT: _FactPayload,
    **dict.fromkeys((FACT_EDITED, *FACT_VERDICT_TYPES), _FactAnswerPayload),
    USER_FEEDBACK: _FeedbackPayload,
}


def is_known_type(event_type: str) -> bool:
    """Return whether a type is in the catalogue."""
    return event_type in EVENT_TYPES


_LONGEST_NAME: Final = 64  # characters of a string that is metadata: an id, a name, a state
_TEXTS: Final = frozenset(
    ("text", "content", "message", "messages", "body", "question", "answer", "prompt", "response", "input", "output")
)


_PROGRAM: Final = "source"  # the program that an event comes from, of any type: `forget --source` names it


def listed_fields(event_type: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that stay without `privacy.store_messages`: those of the catalogue; all of an unknown type."""
    known = EVENT_TYPES.get(event_type)
    return dict(payload) if known is None else _listed(payload, known.field_names)


def unlisted_metadata(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that no list has and that are no text: numbers, and strings without a blank."""
    return {name: value for name, value in values.items() if name.lower() not in _TEXTS and _is_metadata(value)}


def _is_metadata(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _LONGEST_NAME and all("!" <= char <= "~" for char in value)
    return _holds_no_text(value)


def _holds_no_text(value: Any) -> bool:
    if isinstance(value, list | dict):
        return all(map(_holds_no_text, value.values() if isinstance(value, dict) else value))
    return value is None or isinstance(value, bool | int | float)


def _listed(payload: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the listed fields, `name` whole, `name.inner` of an object; and numbers, which hold no text."""
    kept: dict[str, Any] = {}
    for name, value in payload.items():
        inner = {listed.removeprefix(f"{name}.") for listed in names if listed.startswith(f"{name}.")}
        if inner and isinstance(value, Mapping):
            kept[name] = _listed(value, inner)
        elif name in names or _holds_no_text(value) or (name == _PROGRAM and _is_metadata(value)):
            kept[name] = value
    return kept


def check_payload(event_type: str, payload: Mapping[str, Any]) -> None:
    """Raise InvalidInput naming the field (`payload.role`) if a known field of a known type is wrong."""
    schema = PAYLOAD_SCHEMAS.get(event_type)
    if schema is None:
        return
    try:
        msgspec.convert(dict(payload), schema)
    except msgspec.ValidationError as error:
        reason, _, path = str(error).partition(" - at `$.")
        field = f"payload.{path.rstrip('`')}"
        wrong = "is not one of the known values" if reason.startswith("Invalid enum") else f"is wrong: {reason}"
        raise InvalidInput(
            f"{field} of a {event_type} {wrong}", field=field, hint=_allowed_values_hint(schema, path.rstrip("`"))
        ) from None


def _allowed_values_hint(schema: type[msgspec.Struct], name: str) -> str | None:
    """Return a hint with the accepted values of a field that has a list of them."""
    annotation = next((field.type for field in msgspec.structs.fields(schema) if field.name == name), None)
    inspected = msgspec.inspect.type_info(annotation) if annotation is not None else None
    choices = [part for part in getattr(inspected, "types", ()) if isinstance(part, msgspec.inspect.LiteralType)]
    return f"Give one of: {', '.join(map(str, choices[0].values))}; nothing was stored." if choices else None
