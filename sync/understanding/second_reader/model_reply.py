"""Read the operations in a model's answer, whatever stands around them and however their fields are written. Pure.

The last JSON value that holds operations counts. If none can be read whole, because the answer was cut off or has a
comma too many, its complete operations count one by one.
"""

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any, Final, TypeVar

from sync.understanding.model import FactKind, FactSection
from sync.understanding.second_reader.model_port import ModelFailed

MAX_REPLY_CHARS: Final = 100_000
MAX_OPERATIONS: Final = 64  # of one answer; the others are refused
MAX_STARTS: Final = 2_000  # places in an answer at which a JSON value is tried
MAX_NESTING: Final = 4  # of wrappers around the operations

_DECODER: Final = json.JSONDecoder(strict=False)
_START: Final = re.compile(r"[\[{]")
_CLOSED: Final = re.compile(r"[\s,]*\]")  # after the last operation of a list
_NO_LETTER: Final = re.compile(r"[^a-z]")
_SECTIONS: Final = dict(zip(("工作习惯", "沟通风格", "技术偏好", "个人情况"), FactSection, strict=True))
# The last two are the words of an earlier version, which a client's own prompt may still use.
_OPS: Final = {"add": "add", "replace": "replace", "end": "end", "notafact": "not_a_fact", "none": "none"} | {
    "supersede": "replace",
    "retract": "end",
}

M = TypeVar("M", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation with clean fields; what a model left out or wrote in another form has its default."""

    op: str  # add, replace, end, not_a_fact or none
    event_ids: tuple[str, ...] = ()
    quote: str = ""
    fact_id: str = ""
    kind: FactKind | None = None
    section: FactSection | None = None
    about: str = ""
    valid_until: str | None = None


@dataclass(frozen=True, slots=True)
class ReadReply:
    """The operations of an answer. `refused`: values that are none. `is_whole`: whether nothing was cut off."""

    operations: tuple[Operation, ...]
    refused: int
    is_whole: bool


def read_reply(text: str) -> ReadReply:
    """The operations in an answer. Raises ModelFailed if it holds no JSON of the schema."""
    if len(text) > MAX_REPLY_CHARS:
        raise ModelFailed(f"the model's answer has {len(text)} characters, more than {MAX_REPLY_CHARS}")
    singles, last, is_list, end = list[Any](), None, False, 0
    for start, stop, value in _json_values(text):
        listed = _listed_in(value)
        if listed or (listed is not None and (isinstance(value, dict) or not (last or singles))):
            singles, last = [], listed  # a bare [] behind operations may mean anything
        elif _is_operation(value):
            gap = text[end:start]
            singles = [value] if "</" in gap else [*singles, value]  # what precedes a closing tag was only thought
            is_list, last, end = is_list or "[" in gap, None, stop
            continue
        end = stop
    if last is None and not singles:
        raise ModelFailed("the model's answer is not the JSON that was asked for")
    values = singles or last or []
    read = tuple(one for value in values[:MAX_OPERATIONS] if (one := _operation(value)) is not None)
    is_whole = not singles or not is_list or _CLOSED.match(text, end) is not None
    return ReadReply(read, len(values) - len(read), is_whole)


def _json_values(text: str) -> Iterator[tuple[int, int, Any]]:
    """The objects and lists in a text that are not inside another one, with their places."""
    end = 0
    for number, match in enumerate(_START.finditer(text)):
        if number == MAX_STARTS:
            return
        if match.start() >= end:
            try:
                value, end = _DECODER.raw_decode(text, match.start())
            except (ValueError, RecursionError):
                continue
            yield match.start(), end, value


def _listed_in(value: Any, depth: int = MAX_NESTING) -> list[Any] | None:
    """The list of operations that a value is or wraps; an empty list says that there is nothing."""
    if isinstance(value, list):
        return value if not value or any(map(_is_operation, value)) else None
    if not isinstance(value, dict) or _is_operation(value) or not depth:
        return None
    return next((found for one in value.values() if (found := _listed_in(one, depth - 1)) is not None), None)


def _is_operation(value: Any) -> bool:
    return isinstance(value, dict) and "op" in _plain_names(value)


def _operation(value: Any) -> Operation | None:
    fields = _plain_names(value) if isinstance(value, dict) else {}
    op = _OPS.get(_NO_LETTER.sub("", _text(fields.get("op")).lower()))
    if op is None:
        return None
    ids = fields.get("eventids") or fields.get("eventid")
    return Operation(
        op=op,
        event_ids=tuple(map(_text, ids if isinstance(ids, list) else [ids])),
        quote=_text(fields.get("quote")),
        fact_id=_text(fields.get("factid")),
        kind=_member(FactKind, fields.get("kind")),
        section=_member(FactSection, fields.get("section")) or _SECTIONS.get(_text(fields.get("section"))),
        about=_text(fields.get("about")),
        valid_until=_day_in(_text(fields.get("validuntil"))),
    )


def _plain_names(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields by their names without case, `_` and `-`: `event_ids`, `eventIds`, `EVENT_IDS`."""
    return {_NO_LETTER.sub("", name.lower()): field for name, field in value.items()}


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, list | dict) else str(value).strip()


def _member(members: type[M], value: Any) -> M | None:
    name = _text(value).lower().replace(" ", "_")
    return next((one for one in members if one == name), None)


def _day_in(text: str) -> str | None:
    """The day that a model names; None for anything else, which would be words of its own."""
    try:
        return date.fromisoformat(unicodedata.normalize("NFKC", text)[:10].replace("/", "-")).isoformat()
    except ValueError:
        return None
