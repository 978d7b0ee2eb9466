"""The values that redaction replaced in one text of an event, to be removed from its other texts.

A bare value matches no rule: the tag `hunter2xyz` beside 密码是 hunter2xyz. A value goes from every text in which it is
distinctive: it has four characters with a digit, a symbol or mixed case, six letters, or four Chinese characters. A
shorter one goes only as a whole item of a list. The time is linear in the text, however many values there are.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from sync.redaction.model import KEY, SecretSpan, placeholder
from sync.redaction.normalised_text import BARRIER, NormalisedText, normalise
from sync.redaction.pattern import Pattern, escape_literal
from sync.redaction.rules.boundaries import is_word_character
from sync.redaction.rules.secret_names import is_quantity_or_id, word_set
from sync.redaction.rules.value_tests import is_not_a_word

_SHORTEST_ITEM: Final = 3  # characters
_SHORTEST: Final = 4  # characters with a digit, a symbol or mixed case, or Chinese ones
_SHORTEST_WORD: Final = 6  # letters of a word in one case, and digits of a number
# Fields whose values are words of a fixed list, which a password may be too.
_ENUMERATIONS: Final = word_set(
    "role type kind status source author by origin language fact_type feedback_type stage action counter mark marks"
    " changed platform extractor option section change"
)


class ReplacedValues:
    """Collects values with their kinds, and finds them in other texts."""

    def __init__(self) -> None:
        self._kinds: dict[str, str] = {}  # by the value's normalised text in small letters
        self._distinctive: set[str] = set()
        self._compiled: Pattern | None = None

    def __bool__(self) -> bool:
        return bool(self._kinds)

    def note(self, text: str, spans: Iterable[SecretSpan]) -> None:
        """Note the values at `spans` of a text that is not redacted yet."""
        for span in spans:
            value = normalise(text[span.start : span.end]).text.strip()
            if len(value) < _SHORTEST_ITEM or BARRIER in value:
                continue
            self._kinds.setdefault(value.lower(), span.kind)
            if value.lower() not in self._distinctive and _is_distinctive(value):
                self._distinctive.add(value.lower())
                self._compiled = None

    def find_in(self, view: NormalisedText) -> Iterator[SecretSpan]:
        """The distinctive values in a text, in characters of its view."""
        if not self._distinctive:
            return
        if self._compiled is None:
            longest_first = sorted(self._distinctive, key=len, reverse=True)
            self._compiled = Pattern("(?i)" + "|".join(map(escape_literal, longest_first)), is_cached=False)
        text = view.text
        for (start, end), *_ in self._compiled.find_all(text):
            if not _joins(text[start - 1 : start], text[start]) and not _joins(text[end - 1], text[end : end + 1]):
                yield SecretSpan(start, end, self._kinds.get(text[start:end].lower(), KEY))

    def remove_from(self, value: Any, name: str = "", *, is_item: bool = False) -> Any:
        """Copy clean JSON without the values."""
        if isinstance(value, dict):
            return {self._remove_from_text(key): self.remove_from(inner, key) for key, inner in value.items()}
        if isinstance(value, list):
            return [self.remove_from(inner, name, is_item=True) for inner in value]
        if isinstance(value, str):
            stays = name in _ENUMERATIONS and not is_not_a_word(value)
            return value if stays else self._remove_from_text(value, is_item=is_item)
        is_number = str(value) in self._distinctive and not is_quantity_or_id(name)
        return self._remove_from_text(str(value)) if is_number else value

    def _remove_from_text(self, text: str, *, is_item: bool = False) -> str:
        view = normalise(text)
        kind = self._kinds.get(view.text.strip().lower()) if is_item else None
        if kind is not None:
            return placeholder(kind)
        pieces: list[str] = []
        done = 0
        for span in map(view.to_original, self.find_in(view)):
            pieces += (text[done : span.start], placeholder(span.kind))
            done = span.end
        return "".join((*pieces, text[done:]))


def _is_distinctive(value: str) -> bool:
    if value.isdecimal() or (value.isascii() and not is_not_a_word(value)):
        return len(value) >= _SHORTEST_WORD
    return len(value) >= _SHORTEST


def _joins(left: str, right: str) -> bool:
    """Whether two neighbours belong to one word."""
    return bool(left) and bool(right) and is_word_character(left) and is_word_character(right)
