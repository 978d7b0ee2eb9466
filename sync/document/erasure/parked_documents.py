"""Parked documents: copies of a memory file kept when the profile changed. Erasure applies to them too.

The versions that hold the erased lines tell which lines of a parked document to erase: the document was one of those
versions, or was made from one by hand. A document that cannot be parsed stays as it is.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from sync.document.markdown.model import MemoryDocument, Snapshot, Version
from sync.document.markdown.parse import parse
from sync.document.merge.three_way import plan_merge
from sync.errors import DocumentUntouchable
from sync.system.files import read_once, write_private

log = logging.getLogger(__name__)


def erase_from_parked(
    folder: Path, versions: Sequence[Version], without_erased: Callable[[Snapshot], Snapshot], new_id: Callable[[], str]
) -> None:
    """Erase from every parked document what `without_erased` erases from these versions. Raises StorageError."""
    for path in sorted(folder.glob("*.md")) if versions else ():
        if (content := read_once(path)) is None:
            continue
        try:
            document = _erased_copy(parse(content.data), versions, without_erased, new_id)
        except DocumentUntouchable:
            log.warning("a parked document is not understood and was left as it is: %s", path.name)
            continue
        if (left := document.data) != content.data:
            write_private(path, left)


def _erased_copy(
    document: MemoryDocument,
    versions: Sequence[Version],
    without_erased: Callable[[Snapshot], Snapshot],
    new_id: Callable[[], str],
) -> MemoryDocument:
    for version in versions:
        document = without_erased(plan_merge(version, version, document, new_id).observed).document
    return document
