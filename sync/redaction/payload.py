"""JSON objects: every string redacted, what JSON or PostgreSQL cannot hold refused with the path to it."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sync.errors import InvalidInput

_DEEPEST: Final = 64  # levels; some JSON parsers of others stop at 100
Cleaner = Callable[[str], str]


def cleaned_object(value: Mapping[str, Any], clean: Cleaner) -> dict[str, Any]:
    """A new object with every key and string of `value` passed through `clean` and NUL taken out.

    Raises InvalidInput, `field` being the (cleaned) path, for anything that is not JSON: other types, keys that are
    not strings, NaN and infinities, lone surrogates, more than 64 levels.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput("a payload is a JSON object", field="payload")
    return _object(value, clean, ())


def _object(value: Mapping[Any, Any], clean: Cleaner, path: tuple[str, ...]) -> dict[str, Any]:
    if len(path) >= _DEEPEST:
        raise _invalid(path, f"is nested deeper than {_DEEPEST} levels")
    cleaned: dict[str, Any] = {}
    for key, inner in value.items():
        if not isinstance(key, str):
            raise _invalid(path, f"has a key of type {type(key).__name__}; JSON keys are strings")
        name = _free(_string(key, clean, path), cleaned)
        cleaned[name] = _value(inner, clean, (*path, name))
    return cleaned


def _value(value: Any, clean: Cleaner, path: tuple[str, ...]) -> Any:
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return _string(value, clean, path)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise _invalid(path, "is not a finite number")
        return value
    if isinstance(value, Mapping):
        return _object(value, clean, path)
    if isinstance(value, list | tuple):
        return _array(value, clean, path)
    raise _invalid(path, f"is a {type(value).__name__}, which JSON does not know")


def _array(value: Sequence[Any], clean: Cleaner, path: tuple[str, ...]) -> list[Any]:
    if len(path) >= _DEEPEST:
        raise _invalid(path, f"is nested deeper than {_DEEPEST} levels")
    return [_value(inner, clean, (*path, str(index))) for index, inner in enumerate(value)]


def _string(text: str, clean: Cleaner, path: tuple[str, ...]) -> str:
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise _invalid(path, "holds half of a surrogate pair, which is no character")
    return str(clean(text.replace("\x00", "")))


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """`name`, or with a number when two keys have become one placeholder; no value is lost."""
    count, free = 1, name
    while free in taken:
        count += 1
        free = f"{name} ({count})"
    return free


def _invalid(path: tuple[str, ...], what: str) -> InvalidInput:
    field = ".".join(path) or "payload"
    return InvalidInput(f"{field} {what}", field=field)
