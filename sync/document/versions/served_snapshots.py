"""The snapshots that `load` has returned and that are no versions: an app may base its next save on one."""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.document.markdown.model import Snapshot, Version
from sync.document.ownership.fingerprints import OwnershipMarks
from sync.document.version_delta import VersionDelta, same_encoding

MAX_SNAPSHOTS: Final = 32  # an app saves a page that it loaded a moment ago


class _ServedSnapshot(msgspec.Struct, frozen=True):
    """A snapshot as its difference from an earlier one: whole ones take 43 bytes each for each exchange."""

    number: int
    label: str | None
    base: Snapshot
    difference: VersionDelta

    @property
    def snapshot(self) -> Snapshot:
        return self.difference.apply_to(self.base)


class ServedSnapshots:
    """The newest snapshots of one process by their hash, in memory only."""

    def __init__(self) -> None:
        self._served: dict[str, _ServedSnapshot] = {}
        self._newest: tuple[Snapshot, _ServedSnapshot] | None = None

    def add(self, snapshot: Snapshot, number: int) -> None:
        """Add a snapshot as the newest. `number`: of the newest version at that time."""
        digest, whole = snapshot.document.sha256, snapshot.without_caches()
        served = _ServedSnapshot(number, snapshot.document.label, *self._difference(snapshot, whole))
        self._newest = whole, served
        self._served.pop(digest, None)
        self._served[digest] = served
        while len(self._served) > MAX_SNAPSHOTS:
            del self._served[next(iter(self._served))]

    def find(self, digest: str) -> Version | None:
        served = self._served.get(digest)
        return None if served is None else Version(served.number, served.label, digest, served.snapshot)

    def _difference(self, snapshot: Snapshot, whole: Snapshot) -> tuple[Snapshot, VersionDelta]:
        """A base and the difference from it; the snapshot itself if too much of it is new."""
        if self._newest is not None and same_encoding(self._newest[0].document, snapshot.document):
            before, served = self._newest
            difference = served.difference.next_delta(before, snapshot)
            if difference is not None:
                return served.base, difference
        return whole, VersionDelta.of_base(b"", whole)

    def apply_erasure(self, without_erased: Callable[[Snapshot], Snapshot]) -> None:
        """Erase from every snapshot; the hashes still name what an app was shown."""
        self._newest = None
        self._served = {digest: _erased(served, without_erased) for digest, served in self._served.items()}

    @property
    def marks(self) -> OwnershipMarks:
        """The marks by which a page is recognised as this profile's before it has a version."""
        labels = (shown.label for shown in self._served.values())
        return OwnershipMarks(frozenset(label for label in labels if label), frozenset(self._served))


def _erased(served: _ServedSnapshot, without_erased: Callable[[Snapshot], Snapshot]) -> _ServedSnapshot:
    left = without_erased(served.snapshot).without_caches()
    return replace(served, base=left, difference=VersionDelta.of_base(b"", left))
