"""What a sentence says about an older one, by its verbs of change. The table is data: `verbs.toml`."""

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, Final

from sync.understanding.model import Change, FactKind, FactSection, Level, Statement
from sync.understanding.reading.segments import has_chinese

UNREAD_CONFIDENCE: Final = 0.4  # of a sentence that counts only if it questions a fact
_Patterns = list[tuple[str, re.Pattern[str]]]
_CHANGES: Final = {"once": Change.ADDS, "begins": Change.NOW}  # of the names in the table that are no changes
_FIRST_PERSON: Final = re.compile(r"(?i)[我俺咱]|\b(?:i|we|my|our|me|us)\b")
_NEGATION: Final = re.compile(r"[不没别无]|n't\b|\b(?:not|never|no)\b", re.IGNORECASE)


def find_change(text: str) -> tuple[Change | None, str | None]:
    """The change that a statement names, and the former value."""
    kinds, former, _ = _table(has_chinese(text))
    name = next((name for name, pattern in kinds if pattern.search(text)), None)
    if name is None:
        return None, None
    found = next((match["f"].strip() for pattern in former if (match := pattern.search(text))), None)
    return _CHANGES.get(name) or Change(name), found or None


def unread_change(sentence: str, about: str) -> Statement | None:
    """A sentence of the user that says nothing that can be read, except that something changed; None if it does not."""
    change, former = find_change(sentence)
    if change in {None, Change.ADDS}:
        return None
    slots = _table(has_chinese(sentence))[2] if _FIRST_PERSON.search(sentence) else []
    return Statement(
        sentence,
        FactKind.KNOWLEDGE,
        FactSection.PERSONAL,
        slot=next((slot for slot, pattern in slots if pattern.search(sentence)), None),
        is_negative=_NEGATION.search(sentence) is not None,
        change=change,
        former=former,
        confidence=UNREAD_CONFIDENCE,
        about=about,
        level=Level.LIKELY,
    )


@cache
def _table(is_chinese: bool) -> tuple[_Patterns, list[re.Pattern[str]], _Patterns]:
    """The patterns of the changes in their order, of the former value, and of the slots."""
    table: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))[
        "zh" if is_chinese else "en"
    ]
    former = [re.compile(f"(?i){part}") for part in table.pop("former")]
    slots: dict[str, list[str]] = table.pop("slots")
    border = "" if is_chinese else r"\b"

    def compiled(parts: dict[str, list[str]]) -> _Patterns:
        return [(name, re.compile(rf"(?i){border}(?:{'|'.join(words)})")) for name, words in parts.items()]

    return compiled(table), former, compiled(slots)
