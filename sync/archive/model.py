"""Results of exports and imports. Pure values."""

from collections.abc import Callable
from typing import Final

import msgspec

MAX_REFUSALS: Final = 20  # refusals that are listed; all are counted

OnProgress = Callable[[int, int], None]  # done, total


class ExportedJson(msgspec.Struct, frozen=True, rename="camel"):
    """`versions`: of the document; `sha256`: of all parts together, as the archive's manifest has it."""

    path: str
    events: int
    versions: int
    bytes: int
    sha256: str
    sealed: bool


class ArchiveImportResult(msgspec.Struct):
    """What an import did. `found` counts the events of the source; a dry run counts what would be `recorded`.

    `shortened` counts recorded messages of which only the beginning is stored, because of the settings.
    """

    source: str
    conversations: int = 0
    found: int = 0
    recorded: int = 0
    known: int = 0
    refused: int = 0
    shortened: int = 0
    dry_run: bool = False
    refusals: list[tuple[str, str]] = msgspec.field(default_factory=list)  # event or item, reason

    def refuse(self, which: str, problem: str) -> None:
        self.refused += 1
        if len(self.refusals) < MAX_REFUSALS:
            self.refusals.append((which[:128], problem))
