"""Edit a JSON text in place: insert or remove a value, and keep every other character. Pure.

A value is inserted with the indentation and the line ends of the text around it. JSON with comments is no JSON here.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

_BLANKS: Final = re.compile(r"[ \t\n\r]*")
_DECODER: Final = json.JSONDecoder()


class JsonItem(NamedTuple):
    """A member of an object (`start` is that of its key) or an element of an array, with its place in the text."""

    key: str
    value: Any
    start: int
    value_start: int
    end: int


class _Layout(NamedTuple):
    """How a container writes its items: the line end, the indentation of an item, and one step of it ("": one line)."""

    newline: str
    indentation: str
    step: str


def items_of(text: str, start: int) -> list[JsonItem]:
    """The items of the object or array at `start`. ValueError if there is none."""
    return list(_scan_items(text, start))


def root_start(text: str) -> int:
    """The place of the outermost value. ValueError if the text is not exactly one object."""
    start = _after_blanks(text, 0)
    value, end = _DECODER.raw_decode(text, start)
    if not isinstance(value, dict):
        raise ValueError("it holds no object")  # noqa: TRY004 - as any other text that is not accepted
    if _after_blanks(text, end) != len(text):
        raise ValueError("something follows the object")
    return start


def item_at(text: str, path: Sequence[str]) -> JsonItem | None:
    """The member that a path of keys leads to from the outermost object. ValueError for a key that occurs twice."""
    start, item = root_start(text), None
    for key in path:
        if text[start] != "{":
            return None
        named = [item for item in items_of(text, start) if item.key == key]
        if len(named) > 1:
            raise ValueError(f"the key {key!r} occurs twice")
        if not named:
            return None
        item = named[0]
        start = item.value_start
    return item


def insert(text: str, path: Sequence[str], value: Any, *, key: str | None = None) -> str:
    """The text with a value as the last item of the container at `path`; `key` if that is an object."""
    found = item_at(text, path)
    start = root_start(text) if found is None else found.value_start
    items = items_of(text, start)
    layout = _layout_of(text, start, items, depth=len(path))
    written = _written(value, layout)
    if key is not None:
        written = f"{json.dumps(key, ensure_ascii=False)}: {written}"
    if items:
        separator = layout.newline + layout.indentation if layout.step else " "
        at = items[-1].end
        return f"{text[:at]},{separator}{written}{text[at:]}"
    if not layout.step:
        return f"{text[: start + 1]}{written}{text[start + 1 :]}"
    outer = layout.indentation[: len(layout.indentation) - len(layout.step)]
    end = _after_blanks(text, start + 1)
    inside = f"{layout.newline}{layout.indentation}{written}{layout.newline}{outer}"
    return f"{text[: start + 1]}{inside}{text[end:]}"


def remove(text: str, start: int, position: int) -> str:
    """The text without one item of the container at `start`."""
    items = items_of(text, start)
    item = items[position]
    if position > 0:
        return text[: items[position - 1].end] + text[item.end :]
    if len(items) > 1:
        return text[: item.start] + text[items[1].start :]
    return text[: start + 1] + text[_after_blanks(text, item.end) :]


def _scan_items(text: str, start: int) -> Iterator[JsonItem]:
    is_object = text[start] == "{"
    at = _after_blanks(text, start + 1)
    while text[at] not in "}]":
        item_start, key = at, ""
        if is_object:
            key, at = _DECODER.raw_decode(text, at)
            at = _after_blanks(text, _after_blanks(text, at) + 1)
        value, end = _DECODER.raw_decode(text, at)
        yield JsonItem(key, value, item_start, at, end)
        at = _after_blanks(text, end)
        if text[at] == ",":
            at = _after_blanks(text, at + 1)


def _layout_of(text: str, start: int, items: Sequence[JsonItem], *, depth: int) -> _Layout:
    """The layout of a container's items; that of the text if the container is empty or on one line."""
    newline = "\r\n" if "\r\n" in text else "\n"
    step = _step_of(text)
    if items:
        lead = re.search(r"\n([ \t]*)\Z", text[: items[0].start])
        if lead is None or text.rfind("\n", 0, items[0].start) < start:
            return _Layout(newline, "", "")
        return _Layout(newline, lead[1], step)
    if "\n" not in text.strip() and text.strip() != "{}":
        return _Layout(newline, "", "")
    line = text[text.rfind("\n", 0, start) + 1 : start]
    outer = line[: len(line) - len(line.lstrip(" \t"))] if depth else ""
    return _Layout(newline, outer + step, step)


def _step_of(text: str) -> str:
    """One step of the text's indentation: that of the first member of the outermost object."""
    lead = re.match(r"[ \t\n\r]*\{[ \t]*\r?\n(?:[ \t]*\r?\n)*([ \t]+)", text)
    return lead[1] if lead else "  "


def _written(value: Any, layout: _Layout) -> str:
    if not layout.step:
        return json.dumps(value, ensure_ascii=False)
    lines = json.dumps(value, ensure_ascii=False, indent=layout.step).split("\n")
    return (layout.newline + layout.indentation).join(lines)


def _after_blanks(text: str, at: int) -> int:
    found = _BLANKS.match(text, at)
    return found.end() if found else at
