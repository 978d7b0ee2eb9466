"""Decide what a hook asks and keeps. Pure.

A tool call is kept for the lessons with its texts cut to what an error or its cure needs; a file's content is not sent
whole. Before a tool only an exact match is of use: a hint about something else would be noise.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from bridge.hooks.event import HookEvent

MAX_NAME: Final = 256  # characters of a tool's name and a session's id, as the sidecar accepts them
MAX_PATH: Final = 4_096  # likewise, of a project's folder
MAX_EXIT_CODE: Final = 2**31
MAX_ARGUMENT: Final = 2_000  # characters of one argument of a tool
MAX_ARGUMENTS: Final = 20
MAX_TEXT: Final = 8_000  # characters of an output or error: its beginning and its end
HEAD: Final = 2_000  # of which the beginning
EXACT_REASONS: Final = frozenset({"exact", "command"})


class HookRequests(NamedTuple):
    """Parameters of `lessons/match`, `lessons/capture` and `notes/session`; None for what is not asked."""

    match: dict[str, Any] | None = None
    capture: dict[str, Any] | None = None
    session: dict[str, Any] | None = None


def requests_for(event: HookEvent) -> HookRequests:
    """What to ask for an event. An interrupt by the user is no error, and nothing is learned from it."""
    if event.kind == "session_start":
        project = _name(event.project, MAX_PATH)
        return HookRequests(session={"projectPath": project} if project else None)
    if event.interrupted or not event.tool:
        return HookRequests()
    call = _without_none(
        tool=clean(event.tool, MAX_NAME),
        input=_arguments(event.input),
        project=_name(event.project, MAX_PATH),
        sessionId=_name(event.session_id, MAX_NAME),
    )
    if event.kind == "before_tool":
        return HookRequests(match=call)
    failed = event.kind == "tool_failed"
    call |= _without_none(
        output=clean(event.output, MAX_TEXT) or None,
        error=clean(event.error, MAX_TEXT) or ("failed" if failed else None),
    )
    exit_code = event.exit_code if event.exit_code is not None or failed else 0
    call |= _without_none(exitCode=None if exit_code is None or abs(exit_code) >= MAX_EXIT_CODE else exit_code)
    return HookRequests(match=call, capture=call)


def accepted_lesson(event: HookEvent, answer: Mapping[str, Any]) -> tuple[str, str] | None:
    """Id and text of the lesson to show; None for none."""
    lesson = answer.get("lesson")
    if not isinstance(lesson, dict) or not lesson.get("text"):
        return None
    if event.kind == "before_tool" and answer.get("reason") not in EXACT_REASONS:
        return None
    return str(lesson.get("id", "")), str(lesson["text"])


def event_key(event: HookEvent) -> str:
    """Equal for two calls that report the same: two settings files may name the same hook."""
    content = json.dumps([event.session_id, event.name.lower(), event.tool, event.input, event.output, event.error])
    return hashlib.sha256(content.encode()).hexdigest()[:24]


def clean(text: str, limit: int) -> str:
    """Text that can be stored, at most `limit` characters of it: the beginning and the end, both of whole words.

    The sidecar redacts what is left; half a token would no longer look like one. A cut at the end of a line also keeps
    a name beside its value.
    """
    text = text.replace("\0", "").encode("utf-8", "replace").decode()
    if len(text) <= limit:
        return text
    head = min(HEAD, limit // 2)
    return f"{_beginning(text, head)}\n…\n{_end(text, limit - head - 3)}"


def _beginning(text: str, size: int) -> str:
    part = text[: size + 1]
    line_end = part.rfind("\n")
    return part[: line_end if line_end >= size // 2 else max(_blanks(part), default=0)]


def _end(text: str, size: int) -> str:
    part = text[len(text) - size - 1 :]
    line_end = part.find("\n")
    return part[1 + (line_end if 0 <= line_end <= size // 2 else min(_blanks(part), default=size)) :]


def _blanks(text: str) -> Iterator[int]:
    return (place for place, char in enumerate(text) if char.isspace())


def _arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    kept = list(given.items())[:MAX_ARGUMENTS]
    return {clean(str(name), 100): _argument(value) for name, value in kept}


def _argument(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    return clean(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), MAX_ARGUMENT)


def _name(text: str | None, limit: int) -> str | None:
    """A name or path that can be stored; None if it is longer, because a part of it would name something else."""
    found = clean(text or "", MAX_TEXT)
    return found if 0 < len(found) <= limit else None


def _without_none(**params: Any) -> dict[str, Any]:
    return {name: value for name, value in params.items() if value is not None}
