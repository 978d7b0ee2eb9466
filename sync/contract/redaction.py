"""What the rules of redaction answer, as JSON: what stands in the place of a value, and counts; never the value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sync.published.redaction import RedactedFileJson, RedactionCheckJson, RescanJson

if TYPE_CHECKING:  # only named here
    from sync.document.versions.rescan import RescanResult
    from sync.redaction import ExaminedText


def check_to_json(value: ExaminedText) -> RedactionCheckJson:
    return {"text": str(value.text), "counts": value.counts, "total": sum(value.counts.values())}


def redacted_file_to_json(source: str, value: ExaminedText, written: str | None) -> RedactedFileJson:
    return {"source": source, "counts": value.counts, "total": sum(value.counts.values()), "written": written}


def rescan_to_json(value: RescanResult) -> RescanJson:
    return {
        "events": value.events,
        "corrected": list(value.corrected),
        "counts": value.counts,
        "applied": value.applied,
        "unreadArchives": list(value.unread),
    }
