"""What `load` has shown to an app and is no version: an app may base its next save on it."""

from collections.abc import Callable
from typing import Final

from sync.document.model import Snapshot
from sync.document.strangers import Marks

MOST: Final = 32  # answers; an app saves a page that it loaded a moment ago


class HandedOut:
    """The newest answers of one process by their hash, in memory alone."""

    def __init__(self) -> None:
        self._shown: dict[str, Snapshot] = {}

    def add(self, snapshot: Snapshot) -> None:
        """Shown again, it is the newest of them again."""
        digest = snapshot.document.sha256
        self._shown.pop(digest, None)
        self._shown[digest] = snapshot.slim()
        while len(self._shown) > MOST:
            del self._shown[next(iter(self._shown))]

    def find(self, digest: str) -> Snapshot | None:
        return self._shown.get(digest)

    def clear(self, cleared: Callable[[Snapshot], Snapshot]) -> None:
        """Take out what was forgotten; the hashes go on naming what an app was shown."""
        self._shown = {digest: cleared(snapshot) for digest, snapshot in self._shown.items()}

    @property
    def marks(self) -> Marks:
        """What bears out that a page came from here, also where nothing of this profile has been written yet."""
        labels = (snapshot.document.label for snapshot in self._shown.values())
        return Marks(frozenset(label for label in labels if label), frozenset(self._shown))
