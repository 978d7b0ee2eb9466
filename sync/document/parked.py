"""The documents that are parked beside a profile's database: kept for the person, and forgetting with the memory.

Which of their lines are to go is told by the versions that still hold those: a parked document was one of them, or has
been made from one by hand. One that is not understood stays as it is.
"""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from sync.document.model import Document, Snapshot, Version, encode
from sync.document.parse import parse
from sync.document.plan import plan
from sync.errors import DocumentUntouchable
from sync.files import probe, write_private

log = logging.getLogger(__name__)


def forget(
    folder: Path, holding: Sequence[Version], cleared: Callable[[Snapshot], Snapshot], new_id: Callable[[], str]
) -> None:
    """Take out of every parked document what `cleared` takes out of the versions `holding` it. StorageError."""
    for path in sorted(folder.glob("*.md")) if holding else ():
        if (found := probe(path)) is None:
            continue
        try:
            document = _without(parse(found.data), holding, cleared, new_id)
        except DocumentUntouchable:
            log.warning("a parked document is not understood and was left as it is: %s", path.name)
            continue
        if (left := encode(document)) != found.data:
            write_private(path, left)


def _without(
    document: Document,
    holding: Sequence[Version],
    cleared: Callable[[Snapshot], Snapshot],
    new_id: Callable[[], str],
) -> Document:
    for version in holding:
        document = cleared(plan(version, version, document, new_id).observed).document
    return document
