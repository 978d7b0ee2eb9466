"""What an export and an import answer, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sync.published.archive import ExportedJson, TakenJson

if TYPE_CHECKING:  # only named here
    from sync.archive.model import ArchiveExportResult, ArchiveImportResult


def export_to_json(value: ArchiveExportResult) -> ExportedJson:
    return {
        "path": value.path,
        "events": value.events,
        "versions": value.versions,
        "bytes": value.bytes,
        "sha256": value.sha256,
        "sealed": value.sealed,
    }


def import_to_json(value: ArchiveImportResult) -> TakenJson:
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
