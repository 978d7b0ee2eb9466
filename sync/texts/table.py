"""Sentences for people and models in two languages. Pure.

A sentence is written in English in the code, and the English sentence is its key in the JSON tables beside this module,
where the Chinese one stands next to it. Values go in by name (`str.format`); `{count:line|lines}` is a number with its
noun.
"""

import os
import re
from collections.abc import Mapping
from functools import cache
from typing import Final

import msgspec

from sync.texts.language import EN, Language

FINISHED: Final = ("errors", "health")  # the tables of sentences that are written before a language is known
TABLES: Final = (*FINISHED, "commands", "memory")
MIN_FIXED_CHARS: Final = 8  # of a sentence with values, so that it is recognised by its own words
_PLACE: Final = re.compile(r"\{[^{}]*\}")


class _Number(int):
    """A number that writes its noun: in Chinese there is none."""

    def __format__(self, form: str) -> str:
        one, bar, many = form.partition("|")
        return f"{int(self)} {one if self == 1 else many}" if bar else int.__format__(self, form)


def text(english: str, language: Language, **values: object) -> str:
    """The sentence in a language, with its values."""
    template = english if language is EN else chinese_texts().get(english, english)
    if not values:
        return template
    return template.format(**{name: _Number(one) if type(one) is int else one for name, one in values.items()})


def translated(sentence: str, language: Language) -> str:
    """A finished English sentence, such as the message of an error, in a language; itself if no table has it."""
    if language is EN or not sentence:
        return sentence
    known = chinese_texts()
    if sentence in known:
        return known[sentence]
    fitting = (one for one in _patterns() if all(part in sentence for part in one.parts))
    for pattern in sorted(fitting, key=lambda one: -sum(map(len, one.parts))):
        if (found := re.fullmatch(pattern.regex, sentence, re.DOTALL)) is not None:
            values = {
                name: translated(value, language) if " " in value else value
                for name, value in found.groupdict().items()
            }
            return known[pattern.english].format(**values)
    return sentence


@cache
def chinese_texts() -> Mapping[str, str]:
    """The Chinese sentences by the English ones, of all tables."""
    return {english: chinese for name in TABLES for english, chinese in _table(name).items()}


@cache
def _table(name: str) -> dict[str, str]:
    with open(f"{os.path.dirname(__file__)}/{name}.json", "rb") as file:  # noqa: PTH120, PTH123 - each command pays imports
        return msgspec.json.decode(file.read(), type=dict[str, str])


class _Pattern(msgspec.Struct, frozen=True):
    """A sentence with values: its fixed parts, and the expression that finds the values."""

    english: str
    parts: tuple[str, ...]
    regex: str


@cache
def _patterns() -> tuple[_Pattern, ...]:
    found = []
    for english in (english for name in FINISHED for english in _table(name)):
        names = [place[1:-1].partition(":")[0] for place in _PLACE.findall(english)]
        parts = _PLACE.split(english)
        if names and all(map(str.isidentifier, names)) and sum(map(len, parts)) >= MIN_FIXED_CHARS:
            regex = re.escape(parts[0])
            for name, part in zip(names, parts[1:], strict=True):
                regex += f"(?P<{name}>.*?)" + re.escape(part)
            found.append(_Pattern(english, tuple(filter(None, parts)), regex))
    return tuple(found)
