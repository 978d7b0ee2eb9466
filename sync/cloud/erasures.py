"""Erasure requests of other devices: signed where they begin, judged where they arrive.

A large one waits for the person unless a key that is known for a day signed it: docs/decisions/002-mass-erasure.md.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final

from sqlalchemy import Connection

from sync.clock import Clock, timestamp
from sync.cloud import store
from sync.cloud.device_key import DeviceKey, verify
from sync.cloud.port import DeviceRow
from sync.errors import InvalidInput
from sync.log import store as log_store
from sync.log.envelope import instant_ms
from sync.log.log import Log
from sync.log.model import FORGOTTEN, HELD, Event, Withheld, named_by
from sync.sections import PrivacySettings

SIGNATURE: Final = "signature"  # a field of the envelope: {"key": "ed25519:…", "value": base64}
KNOWN_FOR: Final = timedelta(days=1)  # before a key is trusted with a large request
WINDOW_MS: Final = 86_400_000  # small requests of one day count together
FEW: Final = 3  # lines that may always go, however short the document is

Judge = Callable[[Connection, Event], Event]


@dataclass(frozen=True, slots=True)
class Stake:
    """What a request takes away here: lines of the document, and how many lines the document has."""

    lines: int = 0
    of: int = 0


def signed_bytes(event: Event) -> bytes:
    """What a device signs: the request, under its id and the device's."""
    said = ["xiaobai-memory erasure 1", event.event_id, event.device_id, event.type, dict(event.payload)]
    return json.dumps(said, sort_keys=True, separators=(",", ":")).encode()


def signer_of(event: Event) -> str | None:
    """The public key whose holder signed this request; None without a signature that is good."""
    said = event.extra.get(SIGNATURE)
    key, value = (said.get("key"), said.get("value")) if isinstance(said, dict) else (None, None)
    if not isinstance(key, str) or not isinstance(value, str):
        return None
    return key if verify(key, value, signed_bytes(event)) else None


def is_large(limits: PrivacySettings, events: int, stake: Stake, *, earlier: int = 0) -> bool:
    """Whether so many events and lines are a mass erasure, with what requests of the same day took before."""
    lines, of = stake.lines + earlier, stake.of + earlier
    many_lines = stake.lines > 0 and lines > FEW and lines * 100 > of * limits.erasure_percent
    return events + earlier > limits.erasure_events or many_lines


class ErasureGuard:
    """Signs this device's erasure requests and judges those of the others.

    `stake` says, within a transaction, what a request that names these events takes from the document.
    """

    def __init__(
        self,
        events: Log,
        key: DeviceKey,
        limits: PrivacySettings,
        stake: Callable[[Connection, Sequence[str]], Stake],
        clock: Clock,
    ) -> None:
        self._log = events
        self._key = key
        self._limits = limits
        self._stake = stake
        self._clock = clock

    async def signed(self, events: Sequence[Event]) -> tuple[Event, ...]:
        """These events as they are sent."""
        return tuple([await self._signed(event) if event.type == FORGOTTEN else event for event in events])

    async def _signed(self, event: Event) -> Event:
        signature = {"key": await self._key.public(), "value": await self._key.sign(signed_bytes(event))}
        return replace(event, extra={**event.extra, SIGNATURE: signature})

    async def judge(self, events: Sequence[Event]) -> Judge | None:
        """How to take these events in; None where none of them erases anything."""
        if all(event.type != FORGOTTEN for event in events):
            return None
        return partial(self._judged, await self._key.public())

    async def note_keys(self, rows: Sequence[DeviceRow]) -> None:
        """Note the keys of the account's devices, and forget those that are none of them any more."""
        now = timestamp(self._clock.now())
        await self._log.database.write(lambda connection: store.note_keys(connection, rows, now))

    def _judged(self, own_key: str, connection: Connection, event: Event) -> Event:
        named = named_by(event)
        held = store.count_words(connection, named) if event.type == FORGOTTEN else 0
        if held == 0:
            return event
        trusted = store.keys_known_before(connection, timestamp(self._clock.now() - KNOWN_FOR)) | {own_key}
        is_trusted = signer_of(event) in trusted
        earlier = 0 if is_trusted else self._earlier(connection, event, trusted)
        if not is_large(self._limits, held, self._stake(connection, named), earlier=earlier):
            return event
        mark = Withheld.APPLIED if is_trusted else Withheld.WAITS
        return replace(event, extra={**event.extra, HELD: str(mark)})

    def _earlier(self, connection: Connection, event: Event, trusted: frozenset[str]) -> int:
        """How many events other requests have named within a day before this one, and no trusted key signed."""
        if (end := _taken_ms(event)) is None:
            return 0
        count = 0
        for other in log_store.of_types(connection, [FORGOTTEN], after=0):
            taken = _taken_ms(other)
            if taken is None or other.device_id == self._log.device_id or not end - WINDOW_MS < taken <= end:
                continue
            if signer_of(other) not in trusted:
                count += len(named_by(other))
            if count > self._limits.erasure_events:
                break
        return count


def _taken_ms(event: Event) -> int | None:
    """When the server took an event."""
    try:
        return None if event.server_ts is None else instant_ms(event.server_ts)
    except InvalidInput:
        return None
