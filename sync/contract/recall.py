"""Answers of recall as JSON."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from sync.clock import EPOCH, timestamp
from sync.published.recall import ContextJson, HitJson, SearchJson

if TYPE_CHECKING:  # only named here; importing them would delay the first answer of a starting sidecar
    from sync.recall.model import Answer, Hit
    from sync.recall.pack import Packed

DIGITS = 4  # of a score: more would differ between machines


def search(value: Answer) -> SearchJson:
    return {
        "hits": [hit(found) for found in value.hits],
        "semantic": value.semantic,
        "since": _time(value.since_ms),
        "until": _time(value.until_ms),
        "searched": "all" if value.cold else "recent",
        "partial": value.partial,
    }


def context(value: Packed) -> ContextJson:
    return {"context": value.text, "hits": [hit(found) for found in value.hits], "partial": value.partial}


def hit(value: Hit) -> HitJson:
    kept, parts = value.kept, value.parts
    return {
        "eventId": kept.event_id,
        "kind": kept.kind,
        "text": kept.text,
        "date": kept.date,
        "ts": kept.ts,
        "score": round(value.score, DIGITS),
        "parts": {
            "keyword": round(parts.keyword, DIGITS),
            "semantic": None if parts.semantic is None else round(parts.semantic, DIGITS),
            "cover": round(parts.cover, DIGITS),
            "factor": round(parts.factor, DIGITS),
        },
        "origin": kept.origin,
        "deviceId": kept.device_id,
        "projectId": kept.project_id,
        "projectPath": kept.project_path,
        "importance": kept.importance,
        "marks": list(kept.marks),
        "pointer": {"eventId": kept.event_id, "entryId": kept.entry_id, "sessionId": kept.session_id},
        "around": list(value.around),
        "also": list(value.also),
    }


def _time(ms: int | None) -> str | None:
    try:
        return None if ms is None else timestamp(EPOCH + timedelta(milliseconds=ms))
    except OverflowError:  # a span that ends with the calendar
        return None
