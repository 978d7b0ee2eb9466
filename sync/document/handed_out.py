"""What `load` has shown to an app and is no version: an app may base its next save on it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from sync.document.model import Snapshot, Version
from sync.document.strangers import Marks

MOST: Final = 32  # answers; an app saves a page that it loaded a moment ago


class HandedOut:
    """The newest answers of one process by their hash, in memory alone."""

    def __init__(self) -> None:
        self._shown: dict[str, Version] = {}

    def add(self, snapshot: Snapshot, number: int) -> None:
        """Shown again, it is the newest of them again. `number`: of the newest version at that time."""
        shown = replace(Version.of(number, snapshot), snapshot=snapshot.slim())
        self._shown.pop(shown.sha256, None)
        self._shown[shown.sha256] = shown
        while len(self._shown) > MOST:
            del self._shown[next(iter(self._shown))]

    def find(self, digest: str) -> Version | None:
        return self._shown.get(digest)

    def clear(self, cleared: Callable[[Snapshot], Snapshot]) -> None:
        """Take out what was forgotten; the hashes go on naming what an app was shown."""
        self._shown = {
            digest: replace(shown, snapshot=cleared(shown.snapshot)) for digest, shown in self._shown.items()
        }

    @property
    def marks(self) -> Marks:
        """What bears out that a page came from here, also where nothing of this profile has been written yet."""
        labels = (shown.label for shown in self._shown.values())
        return Marks(frozenset(label for label in labels if label), frozenset(self._shown))
