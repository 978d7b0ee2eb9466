"""Results of exports and imports. Pure values."""

from collections import Counter
from collections.abc import Callable
from enum import StrEnum

import msgspec

from sync.jsonl.model import ImportCounts

OnProgress = Callable[[int, int], None]  # done, total


class Skipped(StrEnum):
    """What an import leaves out."""

    SPOKEN = "spoken"  # spoken turns without a text
    IMAGES = "images"
    FILES = "files"  # attached to messages
    TOOLS = "tools"  # calls and output of tools
    THOUGHTS = "thoughts"  # of the model
    HIDDEN = "hidden"  # messages that the program wrote for the model
    BRANCHES = "branches"  # messages of branches that are not shown
    SUBAGENTS = "subagents"  # messages between agents
    HEADINGS = "headings"  # of a pasted list
    UNREADABLE = "unreadable"  # values of an unknown form
    HIDDEN_FILES = "hidden_files"
    OTHER_FILES = "other_files"  # attachments of a folder, and other files of an export


SkippedCounts = Counter[Skipped]


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
    skipped: SkippedCounts = msgspec.field(default_factory=Counter)
