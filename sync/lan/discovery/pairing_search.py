"""What discovery does for pairings: announce that a code is shown here, and note where one is shown."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from sync.runtime.change_counter import ChangeCounter

MAX_SHOWN: Final = 5  # devices that are noted: each may test one guess at a code that is entered here


@dataclass(slots=True)
class PairingSearch:
    """`is_showing`: whether a code is shown here now. `searches`: how many calls wait for a device that shows one."""

    is_showing: Callable[[], bool] = lambda: False
    searches: int = 0
    changed: ChangeCounter = field(default_factory=ChangeCounter)  # what is announced or looked for
    found: ChangeCounter = field(default_factory=ChangeCounter)
    _address_by_name: dict[str, tuple[str, int]] = field(default_factory=dict)  # by the name of the announcement

    @property
    def is_needed(self) -> bool:
        return self.searches > 0 or self.is_showing()

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """Where a code is shown."""
        return list(self._address_by_name.values())

    def note(self, name: str, addresses: tuple[str, ...], port: int, *, shows: bool) -> None:
        """Note what an announcement says now."""
        if not shows or not addresses:
            self._address_by_name.pop(name, None)
        elif name in self._address_by_name or len(self._address_by_name) < MAX_SHOWN:
            self._address_by_name[name] = (addresses[0], port)
            self.found.increment()

    def remove(self, name: str) -> None:
        self._address_by_name.pop(name, None)
