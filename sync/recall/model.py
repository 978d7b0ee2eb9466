"""Search requests, hits and results. Pure values."""

from enum import StrEnum
from typing import Final, Literal

import msgspec

from sync.log.authorship import Authorship
from sync.log.model import GLOBAL_PROJECT
from sync.recall.ranking.fusion import Preset
from sync.recall.relevance.calibration import NO_EVIDENCE, ItemEvidence

# Whether vectors were searched: of all items, of a part that has vectors, or why not.
Semantic = Literal["off", "used", "partial", "pending", "failed"]

DEFAULT_LIMIT: Final = 10
MAX_LIMIT: Final = 200


class Scope(StrEnum):
    """How far back to search."""

    ALL = "all"
    RECENT = "recent"  # the last `scope_days`; everything if those have too few hits


class SearchRequest(msgspec.Struct, frozen=True):
    """Times are Unix milliseconds, `until_ms` exclusive. `turns`: the conversation so far, oldest first.

    `includes_global`: also items of no project, if one is given. `patience`: seconds to wait for the query's vector.
    """

    query: str
    limit: int = DEFAULT_LIMIT
    scope: Scope = Scope.ALL
    project_id: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    kinds: tuple[str, ...] = ()
    preset: Preset | None = None  # that of the settings by default
    turns: tuple[str, ...] = ()
    hidden_ids: tuple[str, ...] = ()  # entries that are no hits
    includes_global: bool = False
    patience: float | None = None

    @property
    def project_ids(self) -> tuple[str, ...]:
        """The projects to search; () for all."""
        if self.project_id is None:
            return ()
        return (self.project_id, GLOBAL_PROJECT) if self.includes_global else (self.project_id,)


class ScoreParts(msgspec.Struct, frozen=True):
    """The parts of a hit's score, 0 to 1 each. `factor`: the product of importance, marks and age."""

    keyword: float
    semantic: float | None
    cover: float
    factor: float


class StoredItem(msgspec.Struct, frozen=True):
    """An indexed item with fields of its event. `date` is local to its device."""

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
    written: Authorship
    importance: float
    marks: tuple[str, ...]


class TalkPart(msgspec.Struct, frozen=True):
    """The same conversation as another kind of item, such as the daily record of an exchange."""

    event_id: str
    kind: str
    text: str


class Hit(msgspec.Struct, frozen=True):
    """An item with its neighbouring turns and the event ids of its near duplicates.

    `relevance`: the probability that it matters for the query, 0 to 1, whatever else was found. `threshold`: the least
    relevance that is given to a model.
    """

    item: StoredItem
    score: float
    parts: ScoreParts
    neighbour_texts: tuple[str, ...] = ()
    duplicate_event_ids: tuple[str, ...] = ()
    talk_parts: tuple[TalkPart, ...] = ()
    relevance: float = 0.0
    threshold: float = 1.0
    evidence: ItemEvidence = NO_EVIDENCE


class SearchResult(msgspec.Struct, frozen=True):
    """Hits, best first. `partial`: the index does not have all events yet."""

    hits: tuple[Hit, ...]
    semantic: Semantic
    since_ms: int | None = None
    until_ms: int | None = None
    includes_old: bool = True  # whether items older than `scope_days` were searched
    partial: bool = False
