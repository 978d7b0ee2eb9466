"""Refused connections: each kind logged once, counted, and shown in `lan/status`."""

import logging
from dataclasses import dataclass, replace
from typing import Final

from sync.clock import Clock, timestamp
from sync.lan.transport.trust import RefusalCause
from sync.runtime.log_once import LogOnce

MAX_REFUSALS: Final = 50  # the oldest is forgotten first

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Connections from or to one address that were refused for one cause. `device_id` is empty for a stranger."""

    cause: RefusalCause
    address: str
    device_id: str
    count: int
    last_at: str


class Refusals:
    """The newest refusals."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refusals: dict[tuple[RefusalCause, str, str], Refusal] = {}
        self._log = LogOnce(log)

    def add(self, cause: RefusalCause, address: str, device_id: str = "") -> None:
        """Note a refusal; only the first of its cause and device is logged."""
        key = (cause, address, device_id)
        known = self._refusals.pop(key, Refusal(cause, address, device_id, 0, ""))
        self._refusals[key] = replace(known, count=known.count + 1, last_at=timestamp(self._clock.now()))
        self._log.report((cause, device_id), f"a connection on the local network was refused: {cause}")
        while len(self._refusals) > MAX_REFUSALS:
            del self._refusals[next(iter(self._refusals))]

    def newest_first(self) -> list[Refusal]:
        return list(reversed(self._refusals.values()))
