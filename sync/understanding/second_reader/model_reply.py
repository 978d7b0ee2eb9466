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
_SECTIONS: Final = {
    "工作习惯": FactSection.WORK_HABITS,
    "沟通风格": FactSection.COMMUNICATION_STYLE,
    "技术偏好": FactSection.TECHNICAL_PREFERENCES,
    "个人情况": FactSection.PERSONAL,
}

M = TypeVar("M", bound=StrEnum)


class OperationKind(StrEnum):
    """What an operation does."""

    ADD = "add"
    REPLACE = "replace"
    END = "end"
    NOT_A_FACT = "not_a_fact"
    NONE = "none"


_OPERATIONS: Final[Mapping[str, OperationKind]] = {
    **{_NO_LETTER.sub("", op): op for op in OperationKind},
    "supersede": OperationKind.REPLACE,  # the words of an earlier version, which a client's own prompt may still use
    "retract": OperationKind.END,
}


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation with clean fields; what a model left out or wrote in another form has its default."""

    op: OperationKind
    event_ids: tuple[str, ...] = ()
    quote: str = ""
    fact_id: str = ""
    kind: FactKind | None = None
    section: FactSection | None = None
    about: str = ""
    is_negative: bool = False
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
    values = list(_json_values(text))
    listed = [(at, found) for at, (_, _, value) in enumerate(values) if (found := _listed_in(value)) is not None]
    said = [one for one in listed if one[1] or isinstance(values[one[0]][2], dict)]  # a bare [] may mean anything
    last = next(reversed(said or listed), None)
    single = [at for at, (_, _, value) in enumerate(values) if _is_operation(value)]
    if single and (last is None or single[-1] > last[0]):
        return _read(*_single_operations(text, values, single[-1]))
    if last is None:
        raise ModelFailed("the model's answer is not the JSON that was asked for")
    return _read(last[1], is_whole=True)


def _read(values: list[Any], is_whole: bool) -> ReadReply:
    read = tuple(one for value in values[:MAX_OPERATIONS] if (one := _operation(value)) is not None)
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


def _single_operations(text: str, values: list[tuple[int, int, Any]], last: int) -> tuple[list[Any], bool]:
    """The operations that stand one by one up to this one; not those before a closing tag, of thoughts."""
    first = last
    while first and _is_operation(values[first - 1][2]) and "</" not in text[values[first - 1][1] : values[first][0]]:
        first -= 1
    is_list = "[" in text[values[first - 1][1] if first else 0 : values[first][0]]
    is_whole = not is_list or _CLOSED.match(text, values[last][1]) is not None
    return [value for _, _, value in values[first : last + 1]], is_whole


def _operation(value: Any) -> Operation | None:
    if not isinstance(value, dict):
        return None
    fields = _plain_names(value)
    op = _OPERATIONS.get(_NO_LETTER.sub("", _text(fields.get("op")).lower()))
    if op is None:
        return None
    named = fields.get("eventids") or fields.get("eventid") or ()
    kind = _member(FactKind, fields.get("kind"))
    section = _member(FactSection, fields.get("section")) or _SECTIONS.get(_text(fields.get("section")))
    return Operation(
        op=op,
        event_ids=tuple(map(_text, named)) if isinstance(named, list) else (_text(named),),
        quote=_text(fields.get("quote")),
        fact_id=_text(fields.get("factid")),
        kind=kind,
        section=section,
        about=_text(fields.get("about")),
        is_negative=_text(fields.get("negative")).lower() == "true",
        valid_until=_day_in(_text(fields.get("validuntil"))),
    )


def _plain_names(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields by their names without case, `_` and `-`: `event_ids`, `eventIds`, `EVENT_IDS`."""
    return {_NO_LETTER.sub("", name.lower()): field for name, field in value.items()}


def _text(value: Any) -> str:
    return "" if value is None or isinstance(value, list | dict) else unicodedata.normalize("NFC", str(value)).strip()


def _member(members: type[M], value: Any) -> M | None:
    name = _text(value).lower().replace(" ", "_")
    return next((one for one in members if one == name), None)


def _day_in(text: str) -> str | None:
    """The day that a model names; None for anything else, which would be words of its own."""
    try:
        return date.fromisoformat(unicodedata.normalize("NFKC", text)[:10].replace("/", "-")).isoformat()
    except ValueError:
        return None
