"""Answers of search and context, and how they become JSON."""

from datetime import timedelta
from typing import TYPE_CHECKING, Literal, TypedDict

from sync.clock import EPOCH, timestamp

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from sync.recall.context_builder import ContextPack
    from sync.recall.model import Hit, SearchResult


RecallOriginJson = Literal["user-typed", "model-written", "imported", "tool", "peer"]


class PointerJson(TypedDict):
    """Where a hit comes from: its event and, for a line of the document, the entry."""

    eventId: str
    entryId: str | None
    sessionId: str


class PartsJson(TypedDict):
    """`keyword` and `semantic` are 0 to 1 among what was found; `semantic` is null if no vectors were compared.

    `cover`: the share of the question's weight that the words hold; `factor`: importance, marks and age.
    """

    keyword: float
    semantic: float | None
    cover: float
    factor: float


class HitJson(TypedDict):
    """`around`: the messages before and after it; `also`: events that say the same, folded into this hit."""

    eventId: str
    kind: str
    text: str
    date: str
    ts: str
    score: float
    parts: PartsJson
    origin: str
    deviceId: str
    projectId: str
    projectPath: str | None
    importance: float
    marks: list[str]
    pointer: PointerJson
    around: list[str]
    also: list[str]


class SearchJson(TypedDict):
    """`semantic`: whether vectors were compared: all, those that exist so far (partial), or why none.

    `since`, `until`: the time that words of the question named, if any.
    `searched`: all, or recent if the recent part alone was enough.
    `partial`: the index is still being built (after a large pull or import), so some memories are missing.
    """

    hits: list[HitJson]
    semantic: Literal["off", "used", "partial", "pending", "failed"]
    since: str | None
    until: str | None
    searched: Literal["all", "recent"]
    partial: bool


class ContextJson(TypedDict):
    """`context` is ready to be put before the message; empty if nothing is relevant."""

    context: str
    hits: list[HitJson]
    partial: bool


SCORE_DIGITS = 4  # of a score: more would differ between machines


def search_to_json(value: "SearchResult") -> SearchJson:
    return {
        "hits": [hit_to_json(found) for found in value.hits],
        "semantic": value.semantic,
        "since": _timestamp_or_none(value.since_ms),
        "until": _timestamp_or_none(value.until_ms),
        "searched": "all" if value.includes_old else "recent",
        "partial": value.partial,
    }


def context_to_json(value: "ContextPack") -> ContextJson:
    return {"context": value.text, "hits": [hit_to_json(found) for found in value.hits], "partial": value.partial}


def hit_to_json(value: "Hit") -> HitJson:
    kept, parts = value.item, value.parts
    return {
        "eventId": kept.event_id,
        "kind": kept.kind,
        "text": kept.text,
        "date": kept.date,
        "ts": kept.ts,
        "score": round(value.score, SCORE_DIGITS),
        "parts": {
            "keyword": round(parts.keyword, SCORE_DIGITS),
            "semantic": None if parts.semantic is None else round(parts.semantic, SCORE_DIGITS),
            "cover": round(parts.cover, SCORE_DIGITS),
            "factor": round(parts.factor, SCORE_DIGITS),
        },
        "origin": kept.origin,
        "deviceId": kept.device_id,
        "projectId": kept.project_id,
        "projectPath": kept.project_path,
        "importance": kept.importance,
        "marks": list(kept.marks),
        "pointer": {"eventId": kept.event_id, "entryId": kept.entry_id, "sessionId": kept.session_id},
        "around": list(value.neighbour_texts),
        "also": list(value.duplicate_event_ids),
    }


def _timestamp_or_none(ms: int | None) -> str | None:
    try:
        return None if ms is None else timestamp(EPOCH + timedelta(milliseconds=ms))
    except OverflowError:  # a span that ends with the calendar
        return None
