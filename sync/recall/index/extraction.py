"""Extract the items to index from an event. Pure.

`EXTRACTORS` has a row for each event type. Of an unknown type, `content` or `text` is indexed, so that other programs'
events are found too. An erased event has no items.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, time
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.clock import to_unix_ms
from sync.log import event_types as types
from sync.log.authorship import ANSWER as ANSWER_PART
from sync.log.envelope import event_ms
from sync.log.model import Event, Origin
from sync.recall.text.echo_filter import strip_recalled_context

ITEMS_PER_EVENT: Final = 4  # an item's id is its event's position * ITEMS_PER_EVENT + slot
WHOLE, QUESTION, ANSWER = 0, 1, 2
SENSITIVE: Final = "sensitive"
MINUTE_MS: Final = 60_000
DEFAULT_IMPORTANCE: Final = 0.5

_SPEAKER: Final = r"(?:用户问[:：]|AI[ \t]*答[:：]|User asked:|AI answered:)[ \t]*"
_DAY_HEADING: Final = re.compile(r"(\d{4})[-/.年] ?(\d{1,2})[-/.月] ?(\d{1,2})日?", re.ASCII)
NOON: Final = time(12)
_LINE_PREFIX: Final = re.compile(rf"^(?:[ \t]*[-*+>]+[ \t]+)*(?:{_SPEAKER})?")
_SPEAKER_PREFIX: Final = re.compile(r"^[^\W\d_][\w .'·-]{0,23}[:：]\s*\S")
TURN_KINDS: Final = frozenset({"exchange", "message"})
DAILY_RECORD: Final = "daily"
EXCHANGE: Final = "exchange"
FACT: Final = "fact"
TOOL_OUTPUT: Final = "tool_output"  # the mark of an answer with words of tools or web pages
LOCAL_KINDS: Final = frozenset(
    {"lesson", "pattern", "note"}
)  # their texts are sent to no server, not even for embeddings
_UNINDEXED_FIELDS: Final = frozenset({"id", "timestamp", "last_occurred", "tags"})
NOTE: Final = "note"


class Item(msgspec.Struct, frozen=True):
    """A text to index. `entry_id`: the document's entry or the daily record whose former item it replaces."""

    kind: str
    text: str
    slot: int = WHOLE
    entry_id: str | None = None
    importance: float = DEFAULT_IMPORTANCE
    marks: tuple[str, ...] = ()


class RemovedItem(msgspec.Struct, frozen=True):
    """A removed entry of the document, or a removed daily record."""

    entry_id: str


IndexChange = Item | RemovedItem


def index_changes(event: Event) -> list[IndexChange]:
    """The items that an event adds, replaces or removes."""
    extract = EXTRACTORS.get(event.type, _unknown_event)
    changes = [change if isinstance(change, RemovedItem) else _strip_recalled(change) for change in extract(event)]
    return [change for change in changes if isinstance(change, RemovedItem) or _is_indexed(change)]


def item_id(position: int, slot: int) -> int:
    return position * ITEMS_PER_EVENT + slot


def item_origin(item_id: int, kind: str, event_origin: str) -> str:
    """The author of an item. An exchange is one event of the model, but its question is the user's."""
    is_question = kind == "exchange" and item_id % ITEMS_PER_EVENT == QUESTION
    return Origin.USER if is_question and event_origin == Origin.MODEL else event_origin


def item_part(item_id: int, kind: str) -> str:
    """The part of its event that an item is: the answer of an exchange, else the whole."""
    return ANSWER_PART if kind == "exchange" and item_id % ITEMS_PER_EVENT == ANSWER else ""


def record_time_ms(event: Event) -> int:
    """The local time of a new record as milliseconds; the event's own time if the payload has none."""
    day, time = _text_of(event.payload.get("date")), _text_of(event.payload.get("time"))
    try:
        return to_unix_ms(datetime.fromisoformat(f"{day}T{time}").replace(tzinfo=UTC))
    except ValueError:
        return event_ms(event) + event.utc_offset * MINUTE_MS


def entry_time_ms(event: Event) -> int:
    """The time of a line of the document: noon of the day of its heading if that is another day than the event's."""
    section = event.payload.get("section")
    found = _DAY_HEADING.fullmatch(str(section[-1]).strip()) if isinstance(section, list) and section else None
    try:
        day = date(*map(int, found.groups())) if found is not None else None
        if day is None or day.isoformat() == event.local_date:
            return event_ms(event)
        return to_unix_ms(datetime.combine(day, NOON, UTC)) - event.utc_offset * MINUTE_MS
    except ValueError:
        return event_ms(event)


def is_turn(kind: str, text: str) -> bool:
    """Whether an item is a turn of a conversation: by its kind, or by a speaker's name in front."""
    return kind in TURN_KINDS or _SPEAKER_PREFIX.match(text) is not None


def _strip_recalled(item: Item) -> Item:
    text = strip_recalled_context(item.text)
    return item if text is item.text else replace(item, text=text)


def _is_indexed(item: Item) -> bool:
    return bool(item.text.strip()) and SENSITIVE not in item.marks


def _exchange(event: Event) -> Iterator[IndexChange]:
    importance = _importance(event.payload)
    for slot, name in ((QUESTION, "question"), (ANSWER, "answer")):
        yield Item(
            "exchange", _text_of(event.payload.get(name)), slot, importance=importance, marks=_marks(event.payload)
        )


def _exchange_text(event: Event) -> Iterator[IndexChange]:
    """Both sides of an exchange in place of their summaries; of the answer what does not repeat the memory."""
    payload, exchange_id = event.payload, event.event_id.removesuffix(types.TEXT_SUFFIX)
    answer = _text_of(payload.get("answer"))
    for start, end in reversed(_spans(payload.get("echoes"))):
        answer = answer[:start] + answer[end:]
    marks = (TOOL_OUTPUT,) if payload.get("tools") is True else ()
    if payload:
        importance = _importance(payload)
        yield Item(EXCHANGE, _text_of(payload.get("question")), QUESTION, f"{exchange_id}.q", importance)
        yield Item(EXCHANGE, answer, ANSWER, f"{exchange_id}.a", importance, marks)


def _spans(value: Any) -> list[tuple[int, int]]:
    pairs = (one for one in (value if isinstance(value, list) else ()) if isinstance(one, list) and len(one) == 2)
    return sorted((start, end) for start, end in pairs if isinstance(start, int) and isinstance(end, int))


def _document_entry(event: Event) -> Iterator[IndexChange]:
    entry_id, text = event.payload.get("entry_id"), event.payload.get("text")
    if event.payload.get("derived"):
        return  # its text is that of other events
    if isinstance(entry_id, str) and isinstance(text, str):
        yield Item("entry", _LINE_PREFIX.sub("", text, count=1), entry_id=entry_id)


def _removed_entry(event: Event) -> Iterator[IndexChange]:
    entry_id = event.payload.get("entry_id")
    if isinstance(entry_id, str):
        yield RemovedItem(entry_id)


def _daily_record(event: Event) -> Iterator[IndexChange]:
    """A daily record after a change; it replaces the former item."""
    payload = event.payload
    record_id = payload.get("record_id")
    if not isinstance(record_id, str):
        return
    if payload.get("gone") is True:
        yield RemovedItem(record_id)
        return
    parts = [_text_of(payload.get("topic")), *_strings(payload.get("facts")), _text_of(payload.get("code"))]
    tags = " ".join(f"#{tag}" for tag in _strings(payload.get("tags")))
    text = "\n".join(part for part in (*parts, tags) if part)
    yield Item(DAILY_RECORD, text, entry_id=record_id, importance=_importance(payload), marks=_marks(payload))


def _lesson(event: Event) -> Iterator[IndexChange]:
    """A lesson after a change: the texts of its record; it replaces the former item.

    One that another program appended has no id here: it is its own item.
    """
    lesson_id, content = event.payload.get("lesson_id"), event.payload.get("content")
    if not isinstance(lesson_id, str):
        yield from _content_of("lesson")(event)
    elif event.type == types.LESSON_REMOVED:
        yield RemovedItem(lesson_id)
    elif isinstance(content, Mapping):
        kind = "pattern" if event.payload.get("kind") == "pattern" else "lesson"
        shown = {name: value for name, value in content.items() if name not in _UNINDEXED_FIELDS}
        yield Item(kind, "\n".join(_texts_in(shown)), entry_id=lesson_id, marks=_marks(content))


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _texts_in(inner)


def _note(event: Event) -> Iterator[IndexChange]:
    """A note after a change; it replaces the former item. An archived or deleted note has none."""
    payload, note_id = event.payload, event.payload.get("note_id")
    if not isinstance(note_id, str):
        return
    entry_id = f"{event.project_id}/{note_id}"  # an id is unique in its project only
    if event.type == types.MEMORY_NOTE_DELETED or payload.get("status") == "archive":
        yield RemovedItem(entry_id)
        return
    yield Item(NOTE, _text_of(payload.get("text")), entry_id=entry_id)


def _content_of(kind: str) -> Callable[[Event], Iterator[IndexChange]]:
    def read(event: Event) -> Iterator[IndexChange]:
        payload = event.payload
        words = _text_of(payload.get("content")) or _text_of(payload.get("text")) or _text_of(payload.get("summary"))
        yield Item(kind, words, importance=_importance(payload), marks=_marks(payload))

    return read


def _unknown_event(event: Event) -> Iterator[IndexChange]:
    return _content_of(event.type)(event)


def _no_items(event: Event) -> Iterable[IndexChange]:
    del event
    return ()


_WITHOUT_TEXT: Final = (
    *(
        types.MEMORY_INDEX_UPDATED,
        types.MEMORY_RETRIEVE_PERFORMED,
        types.MEMORY_QUESTION_ASKED,
        types.MEMORY_QUESTION_ANSWERED,
    ),
    *(types.MEMORY_QUESTION_EXPIRED, types.ENTRY_MOVED, types.SECTION_ADDED, types.SECTION_REMOVED),
    *(types.DOCUMENT_RESTORED, types.DAY_FOLDED, types.PAYLOAD_FORGOTTEN, types.PAYLOAD_EXPIRED),
    *(types.PAYLOAD_REDACTED, types.DEVICE_HIDDEN, types.SESSION_SKIPPED, types.FACT_CONFIRMED),
    *(types.FACT_REJECTED, types.FACT_RETRACTED, types.FACT_SUPERSEDED, types.FACT_DOUBTED),
    *(types.FACT_QUESTIONED, types.SESSION_ORIGINAL, types.LESSON_COUNTED, types.LESSON_OBSERVED),
)
EXTRACTORS: Final[Mapping[str, Callable[[Event], Iterable[IndexChange]]]] = {
    types.EXCHANGE_RECORDED: _exchange,
    types.EXCHANGE_TEXT: _exchange_text,
    **dict.fromkeys((types.ENTRY_ADDED, types.ENTRY_EDITED), _document_entry),
    types.ENTRY_REMOVED: _removed_entry,
    **dict.fromkeys((types.MEMORY_FACT, types.FACT_EDITED), _content_of(FACT)),
    types.MESSAGE: _content_of("message"),
    types.USER_FEEDBACK: _content_of("feedback"),
    **dict.fromkeys(
        (types.SESSION_RECORDED, types.SESSION_EDITED, types.SESSION_REMOVED, types.SESSION_MARKED, types.DAILY_UNDONE),
        _daily_record,
    ),
    **dict.fromkeys((types.LESSON_LEARNED, types.LESSON_EDITED, types.LESSON_REMOVED), _lesson),
    **dict.fromkeys((types.MEMORY_NOTE_CREATED, types.MEMORY_NOTE_UPDATED, types.MEMORY_NOTE_DELETED), _note),
    # These have no text of their own, or their text is that of other events.
    **dict.fromkeys(_WITHOUT_TEXT, _no_items),
}


def _text_of(value: Any) -> str:
    """A text, or the texts of a message in parts."""
    if isinstance(value, str):
        return value
    parts = value if isinstance(value, list) else ()
    return "\n".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def _importance(payload: Mapping[str, Any]) -> float:
    value = payload.get("importance")
    return min(max(float(value), 0.0), 1.0) if isinstance(value, int | float) else DEFAULT_IMPORTANCE


def _marks(payload: Mapping[str, Any]) -> tuple[str, ...]:
    """Marks and tags as single words."""
    names = [*_strings(payload.get("marks")), *_strings(payload.get("tags"))]
    return tuple(dict.fromkeys("_".join(name.split()) for name in names))


def _strings(value: Any) -> list[str]:
    return [name for name in value if isinstance(name, str) and name.strip()] if isinstance(value, list) else []
