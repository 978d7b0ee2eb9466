"""The wordings of spoken commands, Chinese and English, as regular expressions; they are data (`.toml`)."""

import re
import tomllib
from enum import StrEnum
from importlib.resources import files
from typing import Any, Final


class CommandKind(StrEnum):
    """What the user asks for."""

    SAVE = "save"
    SKIP = "skip"
    SENSITIVE = "sensitive"
    SEARCH = "search"
    SHOW = "show"
    DELETE = "delete"
    CLEAN = "clean"
    SETTINGS = "settings"
    UNDO = "undo"
    REMEMBER = "remember"  # the words after the wish, as a fact
    FORGET_LAST = "forget_last"  # what was said a moment ago
    PAUSE = "pause"
    FACTS = "facts"  # what is known about the user


_DATA: Final[dict[str, Any]] = tomllib.loads(files(__package__).joinpath("command_phrases.toml").read_text("utf-8"))
_PART: Final = re.compile(r"\{([a-z_]+)\}")


def _expanded(phrase: str) -> str:
    """A phrase with its parts, which may have parts themselves."""
    while (found := _PART.search(phrase)) is not None:
        phrase = phrase.replace(found[0], _DATA["parts"][found[1]])
    return phrase


def _compile(phrases: list[str], flags: int = 0) -> re.Pattern[str]:
    return re.compile(_expanded(f"{{prefix}}(?:{'|'.join(phrases)}){{suffix}}"), flags)


# Recognised as the text before a colon; those about saving also as a clause of a longer message.
PATTERNS: Final = {CommandKind(kind): _compile(phrases) for kind, phrases in _DATA["clauses"].items()}
# Only as the whole message, because as a clause they may be about something else: 公式很长，不用记.
WHOLE_PATTERNS: Final = {CommandKind(kind): _compile(phrases) for kind, phrases in _DATA["messages"].items()}


def _framed(table: str) -> tuple[tuple[CommandKind, re.Pattern[str]], ...]:
    return tuple(
        (CommandKind(kind), _compile([phrase], re.IGNORECASE))
        for kind, phrases in _DATA[table].items()
        for phrase in phrases
    )


# The whole message, with an argument inside the sentence; in the second table it has to name a known fact.
FRAMED_PATTERNS: Final = _framed("framed")
KNOWN_PATTERNS: Final = _framed("known")
