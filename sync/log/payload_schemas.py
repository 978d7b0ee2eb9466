"""What the event types of seed 002 §4.2 hold, checked where other programs hand them in. Pure.

Decisions
    Every known field may be missing or null: a fact that is known in part is still a fact, and the seed marks most
    fields as optional. A known field of the wrong shape is refused by its name, before anything is recorded.
    Fields that are not named here, and types that are not, are kept value for value: readers of tomorrow know them.
    Only the door checks. Events that come from the user's other devices were checked there, perhaps by newer rules.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

import msgspec

from sync.errors import InvalidInput
from sync.log.event_types import (
    EVENT_TYPES,
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
    content: str | list[Any] | dict[str, Any] | None = None  # in parts, as some programs keep it


class _ToolCallDetails(msgspec.Struct):
    file_path: str | None = None
    command: str | None = None
    exit_code: int | None = None


class _ToolCallPayload(msgspec.Struct):
    tool: str | None = None
    details: _ToolCallDetails | None = None
    stage: str | None = None  # design, implement, test, document … the seed leaves the list open


class _FactPayload(msgspec.Struct):
    fact_type: Literal["decision", "preference", "config", "plan", "note"] | None = None
    content: str | None = None
    tags: list[str] | None = None


class _FeedbackPayload(msgspec.Struct):
    feedback_type: Literal["correction", "approval", "rejection"] | None = None
    content: str | None = None


class _SessionPayload(msgspec.Struct):
    """What `session_started`, `session_finalized` and `session_meta` say of a session."""

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
    USER_FEEDBACK: _FeedbackPayload,
}


def is_known_type(event_type: str) -> bool:
    """Whether this program gives events of a type a meaning of their own."""
    return event_type in EVENT_TYPES


def check_payload(event_type: str, payload: Mapping[str, Any]) -> None:
    """Raise InvalidInput naming the field (`payload.role`) where a known field of a known type is wrong."""
    shape = PAYLOAD_SCHEMAS.get(event_type)
    if shape is None:
        return
    try:
        msgspec.convert(dict(payload), shape)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$.")
        field = f"payload.{place.rstrip('`')}"
        wrong = "is not one of the known values" if said.startswith("Invalid enum") else f"is wrong: {said}"
        raise InvalidInput(
            f"{field} of a {event_type} {wrong}", field=field, hint=_allowed_values_hint(shape, place.rstrip("`"))
        ) from None


def _allowed_values_hint(shape: type[msgspec.Struct], name: str) -> str | None:
    """The values that would be taken, where there are few."""
    annotation = next((field.type for field in msgspec.structs.fields(shape) if field.name == name), None)
    known = msgspec.inspect.type_info(annotation) if annotation is not None else None
    choices = [part for part in getattr(known, "types", ()) if isinstance(part, msgspec.inspect.LiteralType)]
    return f"Give one of: {', '.join(map(str, choices[0].values))}; nothing was stored." if choices else None
