"""Answers of recall as JSON."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sync.clock import EPOCH, timestamp
from sync.published.recall import ContextJson, HitJson, SearchJson

if TYPE_CHECKING:  # only named here; importing them would delay the first answer of a starting sidecar
    from sync.recall.context_builder import ContextPack
    from sync.recall.model import Hit, SearchResult

SCORE_DIGITS = 4  # of a score: more would differ between machines


def search_to_json(value: SearchResult) -> SearchJson:
    return {
        "hits": [hit_to_json(found) for found in value.hits],
        "semantic": value.semantic,
        "since": _timestamp_or_none(value.since_ms),
        "until": _timestamp_or_none(value.until_ms),
        "searched": "all" if value.includes_old else "recent",
        "partial": value.partial,
    }


def context_to_json(value: ContextPack) -> ContextJson:
    return {"context": value.text, "hits": [hit_to_json(found) for found in value.hits], "partial": value.partial}


def hit_to_json(value: Hit) -> HitJson:
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
