"""Which other devices the account has, and when the server last saw them."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from sync.clock import Clock
from sync.cloud.port import DeviceRow
from sync.log.model import Event

ACTIVE_DAYS: Final = timedelta(days=7)
LIST_INTERVAL: Final = 86_400.0  # seconds; a device that only reads is seen in the list alone


class ActiveDevices:
    """The other devices as the server lists them, and as their events come."""

    def __init__(self, device_id: str, clock: Clock) -> None:
        self._device_id = device_id
        self._clock = clock
        self._seen: dict[str, datetime] = {}
        self._listed: frozenset[str] = frozenset()
        self._listed_at: float | None = None  # monotonic seconds

    def must_be_listed(self) -> bool:
        """Whether the list of before lacks a device, or is old."""
        if self._listed_at is None or self._clock.monotonic() - self._listed_at >= LIST_INTERVAL:
            return True
        return not self._listed.issuperset(self._seen)

    def note_list(self, rows: Sequence[DeviceRow]) -> None:
        """Note what the server lists. Events of a device that it does not list are those of a deleted one."""
        self._listed_at = self._clock.monotonic()
        for row in rows:
            if row.device_id != self._device_id and row.revoked_at is None:
                self._note_seen(row.device_id, row.last_seen_at)
            else:
                self._seen.pop(row.device_id, None)
        self._listed = frozenset({*self._seen, *(row.device_id for row in rows)})

    def note_events(self, events: Sequence[Event]) -> None:
        """Note that the server has taken these events from their devices."""
        for event in events:
            if event.device_id != self._device_id and event.server_ts is not None:
                self._note_seen(event.device_id, event.server_ts)

    def any_active(self) -> bool:
        """Whether one of them was seen within a week."""
        since = self._clock.now() - ACTIVE_DAYS
        return any(seen >= since for seen in self._seen.values())

    def _note_seen(self, device_id: str, time: str) -> None:
        try:
            seen = datetime.fromisoformat(time)
        except ValueError:
            return
        if seen.tzinfo is not None:
            self._seen[device_id] = max(seen, self._seen.get(device_id, seen))
