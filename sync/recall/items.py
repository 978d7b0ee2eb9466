"""Which events carry words, and which words. Pure.

One row of `READERS` for each type of event; a type that nobody knows is read for its `content` or `text`, so what
another program records is found as well. An event whose payload was forgotten says nothing.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final

from sync.clock import milliseconds
from sync.log.envelope import event_ms
from sync.log.model import Event, Origin
from sync.recall.recalled import without_recalled

PLACES: Final = 4  # items of one event have the numbers position * PLACES + 0, 1, 2, 3
WHOLE, QUESTION, ANSWER = 0, 1, 2
SENSITIVE: Final = "sensitive"
MINUTE: Final = 60_000  # milliseconds
ORDINARY: Final = 0.5  # the importance of what nobody has judged

_MARK: Final = re.compile(r"^(?:[ \t]*[-*+>]+[ \t]+)*(?:用户问[:：][ \t]*|AI[ \t]*答[:：][ \t]*)?")
_SPEAKER: Final = re.compile(r"^[^\W\d_][\w .'·-]{0,23}[:：]\s*\S")
TURNS: Final = frozenset({"exchange", "message"})
RECORD: Final = "daily"
RECORDED: Final = "session_recorded"  # the first deed of a daily record, and the only one that says when it was
EDITED: Final = "session_edited"
MARKED: Final = "session_marked"
UNDONE: Final = "daily_undone"


@dataclass(frozen=True, slots=True)
class Item:
    """A text to keep. `place`: see PLACES. `entry_id`: the line of the document that it is, and that it replaces."""

    kind: str
    text: str
    place: int = WHOLE
    entry_id: str | None = None
    importance: float = ORDINARY
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Gone:
    """A line of the document that is no more."""

    entry_id: str


Change = Item | Gone


def changes(event: Event) -> list[Change]:
    """What an event puts into the index, or takes out of it."""
    read = READERS.get(event.type, _unknown)
    said = [change if isinstance(change, Gone) else _own_words(change) for change in read(event)]
    return [change for change in said if isinstance(change, Gone) or _is_kept(change)]


def item_id(position: int, place: int) -> int:
    return position * PLACES + place


def origin_of(item_id: int, kind: str, of_event: str) -> str:
    """Who said an item. An exchange is one event and has two sides: its question is the user's."""
    is_question = kind == "exchange" and item_id % PLACES == QUESTION
    return Origin.USER if is_question and of_event == Origin.MODEL else of_event


def record_ms(event: Event) -> int:
    """When the record that an event began was, on the clock of that place; the event's own time where it tells none."""
    day, time = _text(event.payload.get("date")), _text(event.payload.get("time"))
    try:
        return milliseconds(datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=UTC))
    except ValueError:
        return event_ms(event) + event.utc_offset * MINUTE


def is_turn(kind: str, text: str) -> bool:
    """Whether something was said in a conversation: by its kind, or by the speaker's name before it."""
    return kind in TURNS or _SPEAKER.match(text) is not None


def _own_words(item: Item) -> Item:
    text = without_recalled(item.text)
    return item if text is item.text else replace(item, text=text)


def _is_kept(item: Item) -> bool:
    return bool(item.text.strip()) and SENSITIVE not in item.marks


def _exchange(event: Event) -> Iterator[Change]:
    importance = _importance(event.payload)
    for place, name in ((QUESTION, "question"), (ANSWER, "answer")):
        yield Item(
            "exchange", _text(event.payload.get(name)), place, importance=importance, marks=_marks(event.payload)
        )


def _entry(event: Event) -> Iterator[Change]:
    entry_id, text = event.payload.get("entry_id"), event.payload.get("text")
    if isinstance(entry_id, str) and isinstance(text, str):
        yield Item("entry", _MARK.sub("", text, count=1), entry_id=entry_id)


def _removed(event: Event) -> Iterator[Change]:
    entry_id = event.payload.get("entry_id")
    if isinstance(entry_id, str):
        yield Gone(entry_id)


def _daily(event: Event) -> Iterator[Change]:
    """What a daily record says after a deed; each replaces what it said before."""
    payload = event.payload
    record_id = payload.get("record_id")
    if not isinstance(record_id, str):
        return
    if payload.get("gone") is True:
        yield Gone(record_id)
        return
    parts = [_text(payload.get("topic")), *_names(payload.get("facts")), _text(payload.get("code"))]
    tags = " ".join(f"#{tag}" for tag in _names(payload.get("tags")))
    text = "\n".join(part for part in (*parts, tags) if part)
    yield Item(RECORD, text, entry_id=record_id, importance=_importance(payload), marks=_marks(payload))


def _said(kind: str) -> Callable[[Event], Iterator[Change]]:
    def read(event: Event) -> Iterator[Change]:
        payload = event.payload
        words = _text(payload.get("content")) or _text(payload.get("text")) or _text(payload.get("summary"))
        yield Item(kind, words, importance=_importance(payload), marks=_marks(payload))

    return read


def _unknown(event: Event) -> Iterator[Change]:
    return _said(event.type)(event)


def _nothing(event: Event) -> Iterable[Change]:
    del event
    return ()


READERS: Final[Mapping[str, Callable[[Event], Iterable[Change]]]] = {
    "exchange_recorded": _exchange,
    "entry_added": _entry,
    "entry_edited": _entry,
    "entry_removed": _removed,
    "memory_fact": _said("fact"),
    "message": _said("message"),
    "user_feedback": _said("feedback"),
    RECORDED: _daily,
    EDITED: _daily,
    "session_removed": _daily,
    MARKED: _daily,
    UNDONE: _daily,
    # They move or frame what other events have said.
    "entry_moved": _nothing,
    "section_added": _nothing,
    "section_removed": _nothing,
    "document_restored": _nothing,
    "payload_forgotten": _nothing,
    "payload_expired": _nothing,
    "payload_redacted": _nothing,
    "device_hidden": _nothing,
    "session_skipped": _nothing,
    "session_original": _nothing,
}


def _text(value: Any) -> str:
    """A text, or the texts of a message in parts."""
    if isinstance(value, str):
        return value
    parts = value if isinstance(value, list) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def _importance(payload: Mapping[str, Any]) -> float:
    given = payload.get("importance")
    return min(max(float(given), 0.0), 1.0) if isinstance(given, int | float) else ORDINARY


def _marks(payload: Mapping[str, Any]) -> tuple[str, ...]:
    """Marks and tags: single words, in the order given."""
    found = [*_names(payload.get("marks")), *_names(payload.get("tags"))]
    return tuple(dict.fromkeys("_".join(name.split()) for name in found))


def _names(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str) and name.strip()] if isinstance(value, list) else []
