"""Answers of export and import, and how they become JSON."""

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from sync.archive.model import ArchiveExportResult, ArchiveImportResult


class ExportedJson(TypedDict):
    """`versions`: of the document; `sha256`: of all parts together, as the archive's manifest has it."""

    path: str
    events: int
    versions: int
    bytes: int
    sha256: str
    sealed: bool


class RefusedItemJson(TypedDict):
    """One item of an import that was refused, and why."""

    item: str
    problem: str


class TakenJson(TypedDict):
    """`found`: events the source comes to; `recorded`: those that are new, or would be in a dry run.

    `shortened`: messages among those of which only the beginning is kept, unless whole ones are stored.
    """

    source: str
    conversations: int
    found: int
    recorded: int
    known: int
    refused: int
    shortened: int
    refusals: list[RefusedItemJson]
    dryRun: bool


def export_to_json(value: "ArchiveExportResult") -> ExportedJson:
    return {
        "path": value.path,
        "events": value.events,
        "versions": value.versions,
        "bytes": value.bytes,
        "sha256": value.sha256,
        "sealed": value.sealed,
    }


def import_to_json(value: "ArchiveImportResult") -> TakenJson:
    return {
        "source": value.source,
        "conversations": value.conversations,
        "found": value.found,
        "recorded": value.recorded,
        "known": value.known,
        "refused": value.refused,
        "shortened": value.shortened,
        "refusals": [{"item": item, "problem": problem} for item, problem in value.refusals],
        "dryRun": value.dry_run,
    }
