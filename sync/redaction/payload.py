"""JSON objects: every string redacted, what JSON or PostgreSQL cannot hold refused with the path to it."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sync.errors import InvalidInput

_DEEPEST: Final = 64  # levels; some JSON parsers of others stop at 100
_LEAST, _GREATEST = -(2**63), 2**64 - 1  # what every JSON reader on the way keeps exactly
_SHORTEST: Final = 4  # digits of a number that may be a secret
_TELLING: Final = ("phone", "mobile", "tel", "card", "pass", "pwd", "pin", "code", "otp", "secret", "token", "key")

Cleaner = Callable[[str, str], str]
"""(name of the field, its text) -> clean text; the name is empty for a key itself."""


def cleaned_object(value: Mapping[str, Any], clean: Cleaner) -> dict[str, Any]:
    """A new object with every key and string of `value` passed through `clean` and NUL taken out.

    A number becomes a placeholder when its key says that it is somebody's number or a secret. Raises InvalidInput,
    `field` being the (cleaned) path, for anything that is not JSON: other types, keys that are not strings, NaN,
    infinities and integers beyond 64 bits, lone surrogates, more than 64 levels.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput("a payload is a JSON object", field="payload")
    return _object(value, clean, ())


def _object(value: Mapping[Any, Any], clean: Cleaner, path: tuple[str, ...]) -> dict[str, Any]:
    _check_depth(path)
    cleaned: dict[str, Any] = {}
    for key, inner in value.items():
        if not isinstance(key, str):
            raise _invalid(path, f"has a key of type {type(key).__name__}; JSON keys are strings")
        name = _free(_string("", key, clean, path), cleaned)
        cleaned[name] = _value(name, inner, clean, (*path, name))
    return cleaned


def _array(name: str, value: Sequence[Any], clean: Cleaner, path: tuple[str, ...]) -> list[Any]:
    _check_depth(path)
    return [_value(name, inner, clean, (*path, str(index))) for index, inner in enumerate(value)]


def _value(name: str, value: Any, clean: Cleaner, path: tuple[str, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _string(name, value, clean, path)
    if isinstance(value, int | float):
        return _number(name, value, clean, path)
    if isinstance(value, Mapping):
        return _object(value, clean, path)
    if isinstance(value, list | tuple):
        return _array(name, value, clean, path)
    raise _invalid(path, f"is a {type(value).__name__}, which JSON does not know")


def _string(name: str, text: str, clean: Cleaner, path: tuple[str, ...]) -> str:
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise _invalid(path, "holds half of a surrogate pair, which is no character")
    return str(clean(name, text.replace("\x00", "")))


def _number(name: str, value: Any, clean: Cleaner, path: tuple[str, ...]) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise _invalid(path, "is not a finite number")
    if isinstance(value, int) and not _LEAST <= value <= _GREATEST:
        raise _invalid(path, "does not fit into 64 bits")
    written = str(value)
    if len(written) < _SHORTEST or (name.isascii() and not any(word in name.lower() for word in _TELLING)):
        return value
    cleaned = clean(name, written)
    return value if cleaned == written else cleaned


def _free(name: str, taken: Mapping[str, Any]) -> str:
    """`name`, or with a number when two keys have become one placeholder; no value is lost."""
    count, free = 1, name
    while free in taken:
        count += 1
        free = f"{name} ({count})"
    return free


def _check_depth(path: tuple[str, ...]) -> None:
    if len(path) >= _DEEPEST:
        raise _invalid(path[:8], f"is nested deeper than {_DEEPEST} levels")


def _invalid(path: tuple[str, ...], what: str) -> InvalidInput:
    field = ".".join(path) or "payload"
    return InvalidInput(f"{field} {what}", field=field)
