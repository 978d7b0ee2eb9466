"""The hooks in the text of a settings file: whether they are there, add them, take them out. Pure.

An entry is recognised by its command. Everything else in the file keeps its characters.
"""

import shlex
from collections.abc import Container, Iterator, Mapping
from typing import Any, Final

from bridge.hooks import json_text

HOOKS: Final = "hooks"
PROGRAMS: Final = frozenset({"xiaobai-memory", "xiaobai-memory.exe"})
MODULE: Final = ["-m", "bridge.cli.main"]


def is_own_command(command: object) -> bool:
    """Whether a hook's command is `xiaobai-memory hook` and nothing else, of whatever place and data directory."""
    try:
        words = shlex.split(command) if isinstance(command, str) else []
    except ValueError:  # a quote that is not closed
        return False
    if not words:
        return False
    if words[1:3] == MODULE:
        arguments = words[3:]
    elif words[0].rsplit("/", 1)[-1] in PROGRAMS:
        arguments = words[1:]
    else:
        return False
    return arguments == ["hook"] or (len(arguments) == 3 and arguments[::2] == ["--data-dir", "hook"])


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
    """The text without entries of ours, and without the lists that this empties. ValueError if it cannot be read."""
    changed = set[str]()
    while (place := next(_own_places(text), None)) is not None:
        event, start, position = place
        text = json_text.remove(text, start, position)
        changed.add(event)
    removed = False
    while (empty := next(_empty_places(text, changed), None)) is not None:
        text = json_text.remove(text, *empty)
        removed = True
    hooks = json_text.item_at(text, [HOOKS])
    if removed and hooks is not None and hooks.value == {}:
        start = json_text.root_start(text)
        keys = [item.key for item in json_text.items_of(text, start)]
        text = json_text.remove(text, start, keys.index(HOOKS))
    return text


def _own_places(text: str) -> Iterator[tuple[str, int, int]]:
    """Event, container and position of each entry of ours; of a handler, if an entry also holds another one."""
    for event in _events(text):
        for position, entry in enumerate(json_text.items_of(text, event.value_start) if _is_list(event) else []):
            own = [is_own_command(command) for command in _commands_of(entry.value)]
            if own and all(own):
                yield event.key, event.value_start, position
            elif any(own):
                handlers = next(item for item in json_text.items_of(text, entry.value_start) if item.key == HOOKS)
                yield event.key, handlers.value_start, own.index(True)


def _empty_places(text: str, events: Container[str]) -> Iterator[tuple[int, int]]:
    """The empty lists of these events."""
    hooks = json_text.item_at(text, [HOOKS])
    for position, event in enumerate(_events(text)):
        if hooks is not None and event.key in events and event.value == []:
            yield hooks.value_start, position


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
