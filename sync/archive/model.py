"""Results of exports and imports. Pure values."""

from collections.abc import Callable

import msgspec

from sync.jsonl.model import ImportCounts

OnProgress = Callable[[int, int], None]  # done, total


class ExportedJson(msgspec.Struct, frozen=True, rename="camel"):
    """`versions`: of the document; `sha256`: of all parts together, as the archive's manifest has it."""

    path: str
    events: int
    versions: int
    bytes: int
    sha256: str
    sealed: bool


class ArchiveImportResult(ImportCounts):
    """What an import did. `found` counts the events of the source."""

    source: str
    conversations: int = 0
