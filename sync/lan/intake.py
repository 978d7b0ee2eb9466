"""How much a peer may bring in a day: what the server takes of an account, so that no peer fills the disk."""

from typing import Final

from sync.clock import Clock

EVENTS_A_DAY: Final = 200_000  # the server's limits (sql/README.md), here of each peer
BYTES_A_DAY: Final = 268_435_456


class DailyIntake:
    """Counts, in this process, what each device has brought on this UTC day, known events too."""

    def __init__(self, clock: Clock, *, events: int = EVENTS_A_DAY, size: int = BYTES_A_DAY) -> None:
        self._clock, self._limits = clock, (events, size)
        self._brought: dict[tuple[int, str], tuple[int, int]] = {}  # of each day and device: events and bytes

    def add(self, device_id: str, events: int, size: int) -> None:
        """Count what a device has brought."""
        key = self._today(device_id)
        before = self._brought.get(key, (0, 0))
        self._brought = {one: counts for one, counts in self._brought.items() if one[0] == key[0]}
        self._brought[key] = (before[0] + events, before[1] + size)

    def has_room(self, device_id: str) -> bool:
        """Return whether a device may bring more today."""
        events, size = self._brought.get(self._today(device_id), (0, 0))
        return events < self._limits[0] and size < self._limits[1]

    def _today(self, device_id: str) -> tuple[int, str]:
        return int(self._clock.now().timestamp()) // 86_400, device_id
