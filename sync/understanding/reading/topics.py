"""Say what a statement is about by the things that it names: its slot and its section. The names are data. Pure."""

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from sync.understanding.model import FactKind, FactSection

_PERSONAL: Final = frozenset({FactKind.IDENTITY, FactKind.POSSESSION, FactKind.RELATIONSHIP})
_TOOL_KINDS: Final = frozenset({FactKind.PREFERENCE, FactKind.HABIT, FactKind.POSSESSION, FactKind.DECISION})
_NEGATED: Final = re.compile(r"(?i)不|没|别|\b(?:not|never|no|don't|doesn't|dont|without)\b")


def topic_slot(text: str, kind: FactKind) -> str | None:
    """The slot of a wish about answers, or of the one tool that a statement names; None if it names several."""
    if kind is FactKind.PREFERENCE and (reply := _first(text, "replies")) not in {None, "reply"}:
        return reply
    roles = {role for role, pattern in _patterns("roles").items() if pattern.search(text)}
    is_exclusive = len(roles) == 1 and roles <= set(str(_data()["exclusive"]).split())
    return roles.pop() if is_exclusive and kind in _TOOL_KINDS and not _NEGATED.search(text) else None


def section_of(text: str, kind: FactKind, about: str) -> FactSection:
    """The section of the document."""
    if about not in {"user", "project", "unknown"} or kind in _PERSONAL:
        return FactSection.PERSONAL
    if kind is FactKind.PREFERENCE and _first(text, "replies") is not None:
        return FactSection.COMMUNICATION_STYLE
    areas = _patterns("areas")
    if areas["technical"].search(text) or _first(text, "roles") is not None:
        return FactSection.TECHNICAL_PREFERENCES
    if areas["work"].search(text):
        return FactSection.WORK_HABITS
    return FactSection.TECHNICAL_PREFERENCES if about == "project" else FactSection.PERSONAL


def _first(text: str, table: str) -> str | None:
    return next((name for name, pattern in _patterns(table).items() if pattern.search(text)), None)


@cache
def _data() -> dict[str, Any]:
    return tomllib.loads(resources.files(__package__).joinpath("topics.toml").read_text("utf-8"))


@cache
def _patterns(table: str) -> Mapping[str, re.Pattern[str]]:
    border = ("(?<![a-z0-9])", "(?![a-z])") if table == "roles" else ("", "")
    return {name: re.compile(f"(?i){border[0]}(?:{text}){border[1]}") for name, text in _data()[table].items()}
