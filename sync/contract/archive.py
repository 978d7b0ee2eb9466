"""Answers of export and import, and how they become JSON."""

from typing import TYPE_CHECKING, Literal, TypedDict

if TYPE_CHECKING:  # named only in annotations; importing them would delay a starting sidecar
    from sync.archive.model import ArchiveImportResult


class RefusedItemJson(TypedDict):
    """One item of an import that was refused, and why."""

    item: str
    problem: str


class SkippedJson(TypedDict):
    """How much of one kind an import left out."""

    kind: Literal[
        "spoken",
        "images",
        "files",
        "tools",
        "thoughts",
        "hidden",
        "branches",
        "subagents",
        "headings",
        "unreadable",
        "hidden_files",
        "other_files",
    ]
    count: int


class TakenJson(TypedDict):
    """`found`: events the source comes to; `recorded`: those that are new, or would be in a dry run.

    `unproven`: events among those that no known device signed; they became new ones of this device, and state nothing.

    `skipped`: what of the source is not taken, by kind.

    `shortened`: messages among those of which only the beginning is kept, unless whole ones are stored.
    """

    source: str
    conversations: int
    found: int
    recorded: int
    known: int
    refused: int
    shortened: int
    unproven: int
    refusals: list[RefusedItemJson]
    skipped: list[SkippedJson]
    dryRun: bool


def import_to_json(value: "ArchiveImportResult") -> TakenJson:
    return {
        "source": value.source,
        "conversations": value.conversations,
        "found": value.found,
        "recorded": value.recorded,
        "known": value.known,
        "refused": value.refused,
        "shortened": value.shortened,
        "unproven": value.unproven,
        "refusals": [{"item": str(item), "problem": problem} for item, problem in value.refusals],
        "skipped": [{"kind": one.value, "count": count} for one, count in sorted(value.skipped.items()) if count],
        "dryRun": value.dry_run,
    }
