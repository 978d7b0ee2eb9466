"""The documents that are parked beside a profile's database: kept for the person, and forgetting with the memory.

Which of their lines are to go is told by the versions that still hold those: a parked document was one of them, or has
been made from one by hand. One that is not understood stays as it is.
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
    """Take out of every parked document what `cleared` takes out of the versions `holding` it. StorageError."""
    for path in sorted(folder.glob("*.md")) if versions else ():
        if (found := read_once(path)) is None:
            continue
        try:
            document = _erased_copy(parse(found.data), versions, without_erased, new_id)
        except DocumentUntouchable:
            log.warning("a parked document is not understood and was left as it is: %s", path.name)
            continue
        if (left := document.data) != found.data:
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
