"""The hooks in the text of a settings file: whether they are there, add them, take them out. Pure.

An entry is recognised by its command. Everything else in the file keeps its characters.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from bridge.hooks import json_text

HOOKS: Final = "hooks"
_COMMAND: Final = re.compile(r"(?:xiaobai-memory|bridge\.cli\.main)\S*(?:\s.*)?\shook\s*\Z", re.DOTALL)


def is_own_command(command: object) -> bool:
    """Whether a hook's command runs `xiaobai-memory hook`, of whatever place and data directory."""
    return isinstance(command, str) and _COMMAND.search(command) is not None


def own_commands(text: str) -> dict[str, list[str]]:
    """The commands of ours in a settings text, by event. ValueError if it cannot be read."""
    hooks = json_text.item_at(text, [HOOKS])
    found: dict[str, list[str]] = {}
    for event, entries in (hooks.value if hooks is not None and isinstance(hooks.value, dict) else {}).items():
        commands = [
            command
            for entry in _list(entries)
            for command in _commands_of(entry)
            if isinstance(command, str) and is_own_command(command)
        ]
        if commands:
            found[event] = commands
    return found


def with_hooks(text: str, entries: Mapping[str, Mapping[str, Any]], settings: Mapping[str, Any]) -> str:
    """The text with one entry for each event. `text` has none of ours. ValueError if they have no place in it."""
    text = text if text.strip() else "{}\n"
    for name, value in settings.items():
        if json_text.item_at(text, [name]) is None:
            text = json_text.insert(text, [], value, key=name)
    hooks = json_text.item_at(text, [HOOKS])
    if hooks is None:
        return json_text.insert(text, [], {event: [entry] for event, entry in entries.items()}, key=HOOKS)
    if not isinstance(hooks.value, dict):
        raise ValueError(f"{HOOKS!r} is no object")  # noqa: TRY004 - as any other text that is not accepted
    for event, entry in entries.items():
        present = json_text.item_at(text, [HOOKS, event])
        if present is None:
            text = json_text.insert(text, [HOOKS], [entry], key=event)
        elif isinstance(present.value, list):
            text = json_text.insert(text, [HOOKS, event], entry)
        else:
            raise ValueError(f"'{HOOKS}.{event}' is no list")
    return text


def without_hooks(text: str) -> str:
    """The text without entries of ours, and without the lists that become empty. ValueError if it cannot be read."""
    removed = False
    while (place := next(_own_places(text), None)) is not None:
        text = json_text.remove(text, *place)
        removed = True
    while removed and (place := next(_empty_places(text), None)) is not None:
        text = json_text.remove(text, *place)
    return text


def _own_places(text: str) -> Iterator[tuple[int, int]]:
    """The container and the position of each entry of ours; of a handler, where an entry also holds another one."""
    for event in _events(text):
        for position, entry in enumerate(json_text.items_of(text, event.value_start) if _is_list(event) else []):
            own = [is_own_command(command) for command in _commands_of(entry.value)]
            if own and all(own):
                yield event.value_start, position
            elif any(own):
                handlers = next(item for item in json_text.items_of(text, entry.value_start) if item.key == HOOKS)
                yield handlers.value_start, own.index(True)


def _empty_places(text: str) -> Iterator[tuple[int, int]]:
    """Lists of events that are empty, and the object of the hooks."""
    hooks = json_text.item_at(text, [HOOKS])
    if hooks is None:
        return
    for position, event in enumerate(_events(text)):
        if event.value == []:
            yield hooks.value_start, position
    if hooks.value == {}:
        start = json_text.root_start(text)
        yield start, next(at for at, item in enumerate(json_text.items_of(text, start)) if item.key == HOOKS)


def _events(text: str) -> list[json_text.JsonItem]:
    hooks = json_text.item_at(text, [HOOKS])
    return json_text.items_of(text, hooks.value_start) if hooks is not None and isinstance(hooks.value, dict) else []


def _is_list(item: json_text.JsonItem) -> bool:
    return isinstance(item.value, list)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _commands_of(entry: object) -> list[object]:
    """The commands of an entry: its own (Cursor) or those of its handlers (Claude Code)."""
    if not isinstance(entry, dict):
        return []
    handlers = _list(entry.get(HOOKS))
    if handlers:
        return [handler.get("command") if isinstance(handler, dict) else None for handler in handlers]
    return [entry["command"]] if "command" in entry else []
