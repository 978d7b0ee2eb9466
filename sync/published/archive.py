"""What an export and an import answer."""

from typing import TypedDict


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
