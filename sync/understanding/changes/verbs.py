"""What a sentence says about an older one, by its verbs of change. The table is data: `verbs.toml`."""

import re
import tomllib
from functools import cache
from importlib import resources
from typing import Final

from sync.understanding.model import Change, FactKind, FactSection, Level, Statement

UNREAD_CONFIDENCE: Final = 0.4  # of a sentence that counts only if it questions a fact
_ONCE: Final = "once"
_CJK: Final = re.compile(r"[\u3400-\u9fff]")
_NEGATION: Final = re.compile(r"[不没别无]|n't\b|\b(?:not|never|no)\b", re.IGNORECASE)


def find_change(text: str, *, context: str = "") -> tuple[Change | None, str | None]:
    """The change that a statement names, and the former value; `context` is the sentence around it."""
    whole = context or text
    kinds, former = _table("zh" if _CJK.search(whole) else "en")
    name = next((name for name, pattern in kinds if pattern.search(whole if name == "corrects" else text)), _ONCE)
    if name == _ONCE:
        return None, None
    found = next((match["f"].strip() for pattern in former if (match := pattern.search(text))), None)
    return Change(name), found or None


def is_change(text: str) -> bool:
    """Whether a text names a change at all."""
    return find_change(text)[0] is not None


def unread_change(sentence: str, about: str) -> Statement | None:
    """A sentence of the user that says nothing that can be read, except that something changed; None if it does not."""
    change, former = find_change(sentence)
    if change in {None, Change.ADDS}:
        return None
    return Statement(
        sentence,
        FactKind.KNOWLEDGE,
        FactSection.PERSONAL,
        is_negative=_NEGATION.search(sentence) is not None,
        change=change,
        former=former,
        confidence=UNREAD_CONFIDENCE,
        about=about,
        level=Level.LIKELY,
    )


@cache
def _table(language: str) -> tuple[list[tuple[str, re.Pattern[str]]], list[re.Pattern[str]]]:
    text = resources.files(__package__).joinpath("verbs.toml").read_text("utf-8")
    table: dict[str, list[str]] = tomllib.loads(text)[language]
    former = [re.compile(f"(?i){part}") for part in table.pop("former")]
    border = r"" if language == "zh" else r"\b"
    return [(name, re.compile(rf"(?i){border}(?:{'|'.join(parts)})")) for name, parts in table.items()], former
