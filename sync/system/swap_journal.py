"""The swap that is under way, so that a killed one leaves no text beside the file.

A swap exchanges two files, and a process that dies around the exchange leaves the former or the new content under a
hidden name. Only the hashes tell it from another program's save. The caller has a lock: one swap at a time.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sync.errors import StorageError
from sync.system.atomic_swap import displaced_files
from sync.system.files import read_once, remove_private, write_private


class SwapJournal:
    """The path of the target and the hashes of both contents, in a file of ours while the target is written."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @contextmanager
    def record(self, target: Path, *hashes: str) -> Iterator[None]:
        """Keep the hashes of the former and the new content while `target` is written. Raises StorageError."""
        write_private(self._path, json.dumps({"target": str(target), "sha256": hashes}).encode())
        try:
            yield
        finally:
            remove_private(self._path)

    def recover(self) -> None:
        """Remove what a killed write left beside its file. Other content is another program's save, and stays."""
        try:
            kept = read_once(self._path)
            if kept is None:
                return
            written = json.loads(kept.data)
            for displaced in displaced_files(Path(written["target"])):
                found = read_once(displaced)
                if found is not None and found.sha256 in written["sha256"]:
                    remove_private(displaced)
            remove_private(self._path)
        except (StorageError, ValueError, KeyError, TypeError):  # the next write replaces it
            return
