"""Any JSON value, anywhere in an export, costs at most what it replaces."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from sync.archive.chat_exports import read_chats
from sync.archive.json_objects import scan_objects
from sync.archive.source_files import _decode_value
from tests.chat_export_samples import CLAUDE, chatgpt, spoken

Path = tuple[str | int, ...]

EXPORT: Final[list[Any]] = [
    chatgpt("c1", ("user", "a1"), ("assistant", "a2"), ("user", spoken("a3")), ("assistant", "a4")),
    {**CLAUDE[0], "chat_messages": [{"uuid": f"b{n}", "sender": "human", "text": f"b{n}"} for n in range(1, 5)]},
    chatgpt("c3", ("user", "c1"), ("assistant", "c2"), ("user", "c3")),
]
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def paths(value: Any, at: Path = ()) -> Iterator[Path]:
    """The paths of all values in a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, inner in items:
        yield (*at, name)
        yield from paths(inner, (*at, name))


def replaced(value: Any, path: Path, by: Any) -> Any:
    if not path:
        return by
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(value[path[0]], path[1:], by)
    return copy


def texts_in(value: Any) -> set[str]:
    """The texts of messages in a value."""
    if isinstance(value, str):
        return {value} if value in TEXTS else set()
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return set().union(*map(texts_in, inner)) if inner else set()


def read_texts(export: Any) -> set[str]:
    data = json.dumps(export).encode()
    chats = read_chats(map(_decode_value, scan_objects([data])), Counter())
    return {message.text for chat in chats for turn in chat.turns for message in turn.messages}


def message_of(path: Path) -> Path:
    """The path of the message that a value belongs to, else of the value itself."""
    if "mapping" in path and "message" in path:
        return path[: path.index("message") + 1]
    return path[: path.index("chat_messages") + 2] if "chat_messages" in path else path


def value_at(path: Path) -> Any:
    value: Any = EXPORT
    for name in path:
        value = value[name]
    return value


TEXTS: Final = {f"{letter}{number}" for letter in "abc" for number in range(1, 5)} - {"c4"}


def test_all_texts_of_the_export_are_read() -> None:
    assert read_texts(EXPORT) == TEXTS


@given(st.sampled_from(list(paths(EXPORT))), JSON)
def test_any_value_anywhere_costs_at_most_the_message_or_the_container_that_it_replaces(path: Path, value: Any) -> None:
    lost = TEXTS - read_texts(replaced(EXPORT, path, value))

    assert lost <= texts_in(value_at(message_of(path)))
