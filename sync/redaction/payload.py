"""JSON objects: every string redacted, what JSON or PostgreSQL cannot hold refused with the path to it.

A string is redacted under the name that says what it is: its key; that of the object around it, where its own key
says no more than "value"; the name beside it in {"name": …, "value": …} and in lists of pairs. The strings of a list
are read once more together, because a command and a block of lines say only as a whole what is secret in them. An
object is not written as JSON and read so: what merely stands side by side in it would become name and value.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from sync.errors import InvalidInput
from sync.redaction.model import KINDS, placeholder
from sync.redaction.rules.secret_names import is_quantity_or_id, may_name_secret
from sync.redaction.rules.value_tests import has_letter

_MAX_DEPTH: Final = 64  # levels; some JSON parsers of others stop at 100
_MIN_INTEGER, _MAX_INTEGER = -(2**63), 2**64 - 1  # what every JSON reader on the way keeps exactly
_MIN_SECRET_DIGITS: Final = 4  # digits of a number that may be a secret because its key says so
_MIN_PERSONAL_DIGITS: Final = 11  # digits of a number that is a person's whatever its key says: a mobile number

# Keys that say nothing but that this is it, and those beside them that say what it is; case does not matter.
_VALUES: Final = frozenset({"value", "val", "raw", "plain", "plaintext", "current", "new", "old"})
_NAMES: Final = ("name", "key", "header", "variable", "field", "option")
_LONGEST_NAME: Final = 200  # characters; what is longer is no name


class StringCleaner(Protocol):
    """What makes strings clean."""

    def clean_value(self, name: str, text: str, /) -> str:
        """`text`, the value of `name`, cleaned; the name is empty for a key itself."""
        ...

    def clean_list(self, name: str, texts: Sequence[str], /) -> Sequence[str]:
        """`texts`, the strings of one list that is the value of `name`, each clean by itself, cleaned as a whole."""
        ...


def clean_object(value: Mapping[str, Any], cleaner: StringCleaner) -> dict[str, Any]:
    """A new object with every key and string of `value` passed through `clean` and NUL taken out.

    A number becomes a placeholder when its key names a secret, or when its digits are those of a person's number.
    Raises InvalidInput, `field` being the (cleaned) path, for anything that is not JSON: other types, keys that are
    not strings, NaN, infinities and integers beyond 64 bits, lone surrogates, more than 64 levels.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput("a payload is a JSON object", field="payload")
    return _clean_object("", value, cleaner, ())


def _clean_object(
    outer_name: str, value: Mapping[Any, Any], cleaner: StringCleaner, path: tuple[str, ...]
) -> dict[str, Any]:
    _check_depth(path)
    said = _declared_name(value, cleaner, path) or outer_name
    cleaned: dict[str, Any] = {}
    for key, inner in value.items():
        if not isinstance(key, str):
            raise _invalid(path, f"has a key of type {type(key).__name__}; JSON keys are strings")
        name = _unique_key(_clean_string("", key, cleaner, path), cleaned)
        meant = said if said and name.lower() in _VALUES else name
        cleaned[name] = _clean_value(meant, inner, cleaner, (*path, name))
    return cleaned


def _declared_name(value: Mapping[Any, Any], cleaner: StringCleaner, path: tuple[str, ...]) -> str:
    """What {"name": "DB_PASSWORD", "value": …} says that its value is; nothing where it is no such object."""
    keys = {key.lower(): key for key in value if isinstance(key, str)}
    if _VALUES.isdisjoint(keys):
        return ""
    key = next((keys[name] for name in _NAMES if name in keys and isinstance(value[keys[name]], str)), None)
    if key is None or len(value[key]) > _LONGEST_NAME:
        return ""
    name = _clean_string(key, value[key], cleaner, path)
    hidden = any(placeholder(kind) in name for kind in KINDS)
    return "" if hidden or not has_letter(name) else name  # a secret itself, or a number: no name


def _clean_array(
    name: str, value: Sequence[Any], cleaner: StringCleaner, path: tuple[str, ...], *, pair: bool = False
) -> list[Any]:
    """`pair`: of a name and its value, as programs keep headers."""
    _check_depth(path)
    pairs = all(_is_pair(inner) for inner in value)
    cleaned: list[Any] = []
    for index, inner in enumerate(value):
        meant = cleaned[0] if pair and index and len(cleaned[0]) <= _LONGEST_NAME else name
        below = (*path, str(index))
        cleaned.append(
            _clean_array(meant, inner, cleaner, below, pair=True)
            if pairs
            else _clean_value(meant, inner, cleaner, below)
        )
    places = [place for place, inner in enumerate(value) if isinstance(inner, str)]
    if len(places) > 1:
        together = cleaner.clean_list(name, [cleaned[place] for place in places])
        for place, text in zip(places, together, strict=True):
            cleaned[place] = str(
                text
            )  # `RedactText` proves nothing inside an object, and its encoder knows no such type
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
    """May this number be a secret, or a number of a person, under this name?"""
    if is_quantity_or_id(name):
        return False
    if may_name_secret(name):
        return len(written) >= _MIN_SECRET_DIGITS
    return written.isdecimal() and len(written) >= _MIN_PERSONAL_DIGITS


def _unique_key(name: str, existing: Mapping[str, Any]) -> str:
    """`name`, or with a number when two keys have become one placeholder; no value is lost."""
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
