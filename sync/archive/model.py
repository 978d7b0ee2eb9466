"""What an export and an import come to. Pure values."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

MAX_REFUSALS: Final = 20  # refusals that are told; the count tells the rest

OnProgress = Callable[[int, int], None]  # done, of in all


@dataclass(frozen=True, slots=True)
class ArchiveExportResult:
    """`sha256`: of all its parts, as the manifest has it."""

    path: str
    events: int
    versions: int
    bytes: int
    sha256: str
    sealed: bool


@dataclass(slots=True)
class ArchiveImportResult:
    """What became of a source. `found`: events it comes to; `recorded` in a dry run: those that would be.

    `shortened`: messages among the recorded of which only the beginning is kept, as the settings have it.
    """

    source: str
    conversations: int = 0
    found: int = 0
    recorded: int = 0
    known: int = 0
    refused: int = 0
    shortened: int = 0
    dry_run: bool = False
    refusals: list[tuple[str, str]] = field(default_factory=list)  # of which event or item, and why

    def refuse(self, which: str, problem: str) -> None:
        self.refused += 1
        if len(self.refusals) < MAX_REFUSALS:
            self.refusals.append((which[:128], problem))
