"""What `load` has shown to an app and is no version: an app may base its next save on it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from sync.document.markdown.model import Snapshot, Version
from sync.document.ownership.fingerprints import OwnershipMarks

MAX_SNAPSHOTS: Final = 32  # answers; an app saves a page that it loaded a moment ago


class ServedSnapshots:
    """The newest answers of one process by their hash, in memory alone."""

    def __init__(self) -> None:
        self._served: dict[str, Version] = {}

    def add(self, snapshot: Snapshot, number: int) -> None:
        """Shown again, it is the newest of them again. `number`: of the newest version at that time."""
        shown = replace(Version.of(number, snapshot), snapshot=snapshot.without_caches())
        self._served.pop(shown.sha256, None)
        self._served[shown.sha256] = shown
        while len(self._served) > MAX_SNAPSHOTS:
            del self._served[next(iter(self._served))]

    def find(self, digest: str) -> Version | None:
        return self._served.get(digest)

    def apply_erasure(self, without_erased: Callable[[Snapshot], Snapshot]) -> None:
        """Take out what was forgotten; the hashes go on naming what an app was shown."""
        self._served = {
            digest: replace(shown, snapshot=without_erased(shown.snapshot)) for digest, shown in self._served.items()
        }

    @property
    def marks(self) -> OwnershipMarks:
        """What bears out that a page came from here, also where nothing of this profile has been written yet."""
        labels = (shown.label for shown in self._served.values())
        return OwnershipMarks(frozenset(label for label in labels if label), frozenset(self._served))
