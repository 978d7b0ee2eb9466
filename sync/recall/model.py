"""What is asked and what is answered. Pure values."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from sync.recall.ranking.fusion import Preset

# Whether meaning was asked: of every item, of those that have a vector by now, or why it was not.
Semantic = Literal["off", "used", "partial", "pending", "failed"]

DEFAULT_LIMIT: Final = 10  # hits of a search that names no limit
MAX_LIMIT: Final = 200


class Scope(StrEnum):
    """How far back a question looks."""

    ALL = "all"
    RECENT = "recent"  # the last `scope_days`; older ones where those say too little


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A question. Times are Unix milliseconds, `until_ms` exclusive; `turns` are what was said before, oldest first."""

    query: str
    limit: int = DEFAULT_LIMIT
    scope: Scope = Scope.ALL
    project_id: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    kinds: tuple[str, ...] = ()
    preset: Preset | None = None  # None for that of the settings
    turns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScoreParts:
    """What a hit's score is made of: 0 to 1 each, but `factor`, by which importance, marks and age multiply."""

    keyword: float
    semantic: float | None
    cover: float
    factor: float


@dataclass(frozen=True, slots=True)
class StoredItem:
    """One item as it lies in the index, with what its event says of it. `date` is the day it was said there."""

    item_id: int
    event_id: str
    entry_id: str | None
    kind: str
    text: str
    date: str
    ts: str
    ts_ms: int
    project_id: str
    project_path: str | None
    session_id: str
    device_id: str
    origin: str
    importance: float
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hit:
    """An item that answers, with its neighbours in the conversation, and near duplicates of it by their event ids."""

    item: StoredItem
    score: float
    parts: ScoreParts
    neighbour_texts: tuple[str, ...] = ()
    duplicate_event_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Hits, best first. `semantic`: why meaning was not asked, if it was not. `partial`: the index is behind."""

    hits: tuple[Hit, ...]
    semantic: Semantic
    since_ms: int | None = None
    until_ms: int | None = None
    includes_old: bool = True  # whether the old part was searched
    partial: bool = False
