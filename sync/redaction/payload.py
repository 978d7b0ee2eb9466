"""Redact JSON objects, and refuse what JSON or PostgreSQL cannot store.

A string is redacted under a name: its key; the key of the object around it, if its own says only "value"; the name
beside it in {"name": …, "value": …} and in lists of pairs. The strings of a list are also redacted joined. Objects are
not redacted as JSON text: values side by side would become name and value.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from sync.errors import InvalidInput
from sync.redaction.model import KINDS, placeholder
from sync.redaction.rules.secret_names import is_quantity_or_id, may_name_secret
from sync.redaction.rules.value_tests import has_letter

_MAX_DEPTH: Final = 64  # levels; some JSON parsers stop at 100
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1  # exact in every JSON parser involved
_MIN_SECRET_DIGITS: Final = 4  # of a number whose key names a secret
_MIN_PERSONAL_DIGITS: Final = 11  # of a number under any key: a mobile number

# Keys of a value, and the keys beside it that name it; case-insensitive.
_VALUES: Final = frozenset({"value", "val", "raw", "plain", "plaintext", "current", "new", "old"})
_NAMES: Final = ("name", "key", "header", "variable", "field", "option")
_LONGEST_NAME: Final = 200  # characters


class StringCleaner(Protocol):
    """Cleans the strings of an object."""

    def clean_value(self, name: str, text: str, /) -> str:
        """Clean `text`, the value of `name`. The name is empty if `text` is a key."""
        ...

    def clean_list(self, name: str, texts: Sequence[str], /) -> Sequence[str]:
        """Clean the strings of a list together; each is clean by itself. The list is the value of `name`."""
        ...


def clean_object(value: Mapping[str, Any], cleaner: StringCleaner) -> dict[str, Any]:
    """Copy an object with every key and string cleaned and NUL removed.

    A number becomes a placeholder if its key names a secret, or if it is a personal number. Raises InvalidInput with
    the (cleaned) path for anything that is not JSON: other types, keys that are not strings, NaN, infinities, integers
    beyond 64 bits, lone surrogates, more than 64 levels.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput("a payload is a JSON object", field="payload")
    return _clean_object("", value, cleaner, ())


def _clean_object(
    outer_name: str, value: Mapping[Any, Any], cleaner: StringCleaner, path: tuple[str, ...]
) -> dict[str, Any]:
    _check_depth(path)
    declared = _declared_name(value, cleaner, path) or outer_name
    cleaned: dict[str, Any] = {}
    for key, inner in value.items():
        if not isinstance(key, str):
            raise _invalid(path, f"has a key of type {type(key).__name__}; JSON keys are strings")
        name = _unique_key(_clean_string("", key, cleaner, path), cleaned)
        label = declared if declared and name.lower() in _VALUES else name
        cleaned[name] = _clean_value(label, inner, cleaner, (*path, name))
    return cleaned


def _declared_name(value: Mapping[Any, Any], cleaner: StringCleaner, path: tuple[str, ...]) -> str:
    """The name in {"name": "DB_PASSWORD", "value": …}; empty for other objects."""
    keys = {key.lower(): key for key in value if isinstance(key, str)}
    if _VALUES.isdisjoint(keys):
        return ""
    key = next((keys[name] for name in _NAMES if name in keys and isinstance(value[keys[name]], str)), None)
    if key is None or len(value[key]) > _LONGEST_NAME:
        return ""
    name = _clean_string(key, value[key], cleaner, path)
    hidden = any(placeholder(kind) in name for kind in KINDS)
    return "" if hidden or not has_letter(name) else name  # a secret or a number is not a name


def _clean_array(
    name: str, value: Sequence[Any], cleaner: StringCleaner, path: tuple[str, ...], *, pair: bool = False
) -> list[Any]:
    """Clean a list. `pair`: it is a name and its value, as in lists of headers."""
    _check_depth(path)
    pairs = all(_is_pair(inner) for inner in value)
    cleaned: list[Any] = []
    for index, inner in enumerate(value):
        label = cleaned[0] if pair and index and len(cleaned[0]) <= _LONGEST_NAME else name
        below = (*path, str(index))
        cleaned.append(
            _clean_array(label, inner, cleaner, below, pair=True)
            if pairs
            else _clean_value(label, inner, cleaner, below)
        )
    places = [place for place, inner in enumerate(value) if isinstance(inner, str)]
    if len(places) > 1:
        together = cleaner.clean_list(name, [cleaned[place] for place in places])
        for place, text in zip(places, together, strict=True):
            cleaned[place] = str(text)  # the JSON encoder does not know `Clean`
    return cleaned


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and isinstance(value[0], str)


def _clean_value(name: str, value: Any, cleaner: StringCleaner, path: tuple[str, ...]) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _clean_string(name, value, cleaner, path)
    if isinstance(value, int | float):
        return _clean_number(name, value, cleaner, path)
    if isinstance(value, Mapping):
        return _clean_object(name, value, cleaner, path)
    if isinstance(value, list | tuple):
        return _clean_array(name, value, cleaner, path)
    raise _invalid(path, f"is a {type(value).__name__}, which JSON does not know")


def _clean_string(name: str, text: str, cleaner: StringCleaner, path: tuple[str, ...]) -> str:
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise _invalid(path, "holds half of a surrogate pair, which is no character")
    return str(cleaner.clean_value(name, text.replace("\x00", "")))


def _clean_number(name: str, value: Any, cleaner: StringCleaner, path: tuple[str, ...]) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        raise _invalid(path, "is not a finite number")
    if isinstance(value, int) and not _MIN_INTEGER <= value <= _MAX_INTEGER:
        raise _invalid(path, "does not fit into 64 bits")
    whole = isinstance(value, int) or (value.is_integer() and abs(value) < -_MIN_INTEGER)
    written = str(int(value)) if whole else str(value)
    if not _may_be_secret(name, written):
        return value
    cleaned = str(cleaner.clean_value(name, written))
    return value if cleaned == written else cleaned


def _may_be_secret(name: str, written: str) -> bool:
    """Whether a number under this name may be a secret or a personal number."""
    if is_quantity_or_id(name):
        return False
    if may_name_secret(name):
        return len(written) >= _MIN_SECRET_DIGITS
    return written.isdecimal() and len(written) >= _MIN_PERSONAL_DIGITS


def _unique_key(name: str, existing: Mapping[str, Any]) -> str:
    """`name`, with a number if two keys have become the same placeholder."""
    count, free = 1, name
    while free in existing:
        count += 1
        free = f"{name} ({count})"
    return free


def _check_depth(path: tuple[str, ...]) -> None:
    if len(path) >= _MAX_DEPTH:
        raise _invalid(path[:8], f"is nested deeper than {_MAX_DEPTH} levels")


def _invalid(path: tuple[str, ...], what: str) -> InvalidInput:
    field = ".".join(path) or "payload"
    return InvalidInput(f"{field} {what}", field=field)
