"""A note beside the event files of a salvaged database: which trees are kept aside until the new one is whole.

While the note is there, a second damage reads the kept trees too; afterwards no kept tree is a source, because events
may have been erased since. See docs/decisions/037-one-way-back.md.
"""

import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from sync.system.files import translate_os_errors, write_private

KEPT_PREFIX: Final = "events.damaged-"  # of the folders that a salvage keeps aside
_NOTE: Final = "events.unfinished"


def kept_trees(root: Path) -> list[Path]:
    """Return the trees that salvages have kept below a root."""
    return sorted(root.glob(f"{KEPT_PREFIX}*"))


def read_unfinished(root: Path) -> list[str]:
    """Return the names of the kept trees of an unfinished salvage, oldest first. Raises StorageError."""
    note = root / _NOTE
    with translate_os_errors(note):
        return note.read_text("utf-8", "replace").splitlines() if note.is_file() else []


def write_unfinished(root: Path, names: Sequence[str]) -> None:
    """Note the kept trees; durable when this returns. Raises StorageError."""
    write_private(root / _NOTE, "".join(f"{name}\n" for name in names).encode())


def mark_whole(root: Path) -> None:
    """Remove the note: the event files hold the whole log. Raises StorageError."""
    with translate_os_errors(root), contextlib.suppress(NotADirectoryError):
        (root / _NOTE).unlink(missing_ok=True)
