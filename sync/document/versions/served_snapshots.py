"""The snapshots that `load` has returned and that are no versions: an app may base its next save on one."""

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from sync.document.markdown.model import Snapshot, Version
from sync.document.ownership.fingerprints import OwnershipMarks

MAX_SNAPSHOTS: Final = 32  # an app saves a page that it loaded a moment ago


class ServedSnapshots:
    """The newest snapshots of one process by their hash, in memory only."""

    def __init__(self) -> None:
        self._served: dict[str, Version] = {}

    def add(self, snapshot: Snapshot, number: int) -> None:
        """Add a snapshot as the newest. `number`: of the newest version at that time."""
        served = replace(Version.of(number, snapshot), snapshot=snapshot.without_caches())
        self._served.pop(served.sha256, None)
        self._served[served.sha256] = served
        while len(self._served) > MAX_SNAPSHOTS:
            del self._served[next(iter(self._served))]

    def find(self, digest: str) -> Version | None:
        return self._served.get(digest)

    def apply_erasure(self, without_erased: Callable[[Snapshot], Snapshot]) -> None:
        """Erase from every snapshot; the hashes still name what an app was shown."""
        self._served = {
            digest: replace(shown, snapshot=without_erased(shown.snapshot)) for digest, shown in self._served.items()
        }

    @property
    def marks(self) -> OwnershipMarks:
        """The marks by which a page is recognised as this profile's before it has a version."""
        labels = (shown.label for shown in self._served.values())
        return OwnershipMarks(frozenset(label for label in labels if label), frozenset(self._served))
