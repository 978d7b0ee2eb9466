"""What the rules of redaction answer, as JSON: what stands in the place of a value, and counts; never the value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sync.published.redaction import RedactedFileJson, RedactionCheckJson, RescanJson

if TYPE_CHECKING:  # only named here
    from sync.document.rescan import Rescan
    from sync.redaction import Examined


def checked(value: Examined) -> RedactionCheckJson:
    return {"text": str(value.text), "counts": value.counts, "total": sum(value.counts.values())}


def redacted_file(source: str, value: Examined, written: str | None) -> RedactedFileJson:
    return {"source": source, "counts": value.counts, "total": sum(value.counts.values()), "written": written}


def rescanned(value: Rescan) -> RescanJson:
    return {
        "events": value.events,
        "corrected": list(value.corrected),
        "counts": value.counts,
        "applied": value.applied,
        "unreadArchives": list(value.unread),
    }
