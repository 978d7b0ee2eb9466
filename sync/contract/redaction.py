"""Answers of redaction checks and rescans, and how they become JSON."""

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from sync.document.versions.rescan import RescanResult
    from sync.redaction import ExaminedText


class RedactionCheckJson(TypedDict):
    """`text`: as it would be kept; `counts`: how often each kind was found, by the name its placeholder bears."""

    text: str
    counts: dict[str, int]
    total: int


class RedactedFileJson(TypedDict):
    """`written`: where the redacted text went; null for a dry run and for standard output."""

    source: str
    counts: dict[str, int]
    total: int
    written: str | None


class RescanJson(TypedDict):
    """`events`: how many the log has; `corrected`: those whose payload changes, or would; `counts` by kind.

    `unreadArchives`: archives of retention that could not be read and are left as they are.
    """

    events: int
    corrected: list[str]
    counts: dict[str, int]
    applied: bool
    unreadArchives: list[str]


def check_to_json(value: "ExaminedText") -> RedactionCheckJson:
    return {"text": str(value.text), "counts": value.counts, "total": sum(value.counts.values())}


def redacted_file_to_json(source: str, value: "ExaminedText", written: str | None) -> RedactedFileJson:
    return {"source": source, "counts": value.counts, "total": sum(value.counts.values()), "written": written}


def rescan_to_json(value: "RescanResult") -> RescanJson:
    return {
        "events": value.events,
        "corrected": list(value.corrected),
        "counts": value.counts,
        "applied": value.applied,
        "unreadArchives": list(value.unread),
    }
