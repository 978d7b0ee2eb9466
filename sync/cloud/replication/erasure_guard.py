"""Review the erasure requests of other devices.

A mass erasure waits for the user unless the key of an admitted device signed it: docs/decisions/002-mass-erasure.md.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from functools import partial
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.clock import Clock, timestamp, to_unix_ms
from sync.cloud import replication_store
from sync.cloud.auth import device_key_store
from sync.cloud.auth.device_key import DeviceKey
from sync.cloud.auth.event_signer import EventSigner, read_device_keys
from sync.cloud.port import DeviceRow
from sync.db.engine import Transaction
from sync.errors import InvalidInput
from sync.log import store as log_store
from sync.log.devices import store as registry_store
from sync.log.devices.signing import signer_of
from sync.log.envelope import parse_timestamp_ms
from sync.log.event_types import (
    ENTRY_ADDED,
    EXCHANGE_RECORDED,
    MEMORY_FACT,
    MESSAGE,
    PAYLOAD_FORGOTTEN,
    PAYLOAD_REDACTED,
)
from sync.log.log import EventLog
from sync.log.model import ERASURE_STATE_FIELD, Event, RemoteErasureState, named_event_ids
from sync.log.retractions import correction_of, is_redacted
from sync.settings.sections import PrivacySettings

TRUST_DELAY: Final = timedelta(days=1)  # after which a key is trusted, as long as no event names the first device
WINDOW_MS: Final = 86_400_000  # requests within a day count together
ALWAYS_ALLOWED_LINES: Final = 3  # however short the document is; an exchange with what is derived from it is one
MESSAGES_OF_EXCHANGE: Final = 2  # the stored question and answer
FACT_ID_MARK: Final = ".fact."  # the id of a fact begins with that of the exchange in which it was stated

EventReview = Callable[[Transaction, Event], Event]


class ErasureImpact(msgspec.Struct, frozen=True):
    """The lines that a request removes from the document, and how many lines the document has.

    `entries`: the lines as a person counts them, an exchange with what is derived from it as one; by default each line.
    """

    lines: int = 0
    document_lines: int = 0
    entries: int | None = None


def is_mass_erasure(
    limits: PrivacySettings, events: int, impact: ErasureImpact, *, earlier: int = 0, earlier_entries: int | None = None
) -> bool:
    """Whether so many events and lines are a mass erasure.

    `earlier`: the events of requests of the same day; `earlier_entries`: the same as a person counts them.
    """
    lines, of = impact.lines + earlier, impact.document_lines + earlier
    entries = impact.lines if impact.entries is None else impact.entries
    entries += earlier if earlier_entries is None else earlier_entries
    many_lines = impact.lines > 0 and entries > ALWAYS_ALLOWED_LINES and lines * 100 > of * limits.erasure_percent
    return events + earlier > limits.erasure_events or many_lines


def count_entries(events: Sequence[Event]) -> int:
    """These events as a person counts them: an exchange with its messages, its facts and their lines is one.

    An erased event has its type and id only, so no more lines are left out than there are facts of exchanges.
    """
    exchanges = {event.event_id for event in events if event.type == EXCHANGE_RECORDED}
    of_type = Counter(event.type for event in events)
    facts = sum(
        event.type == MEMORY_FACT and event.event_id.partition(FACT_ID_MARK)[0] in exchanges for event in events
    )
    lines, messages = min(of_type[ENTRY_ADDED], facts), min(of_type[MESSAGE], MESSAGES_OF_EXCHANGE * len(exchanges))
    return len(events) - facts - lines - messages


class ErasureGuard:
    """Reviews the erasure requests of other devices. `signer` signs what leaves this one.

    `impact_of` computes what erasing these events removes from the document.
    """

    def __init__(
        self,
        event_log: EventLog,
        key: DeviceKey,
        limits: PrivacySettings,
        impact_of: Callable[[Transaction, Sequence[str]], ErasureImpact],
        clock: Clock,
    ) -> None:
        self.signer = EventSigner(event_log, key)
        self._log = event_log
        self._key = key
        self._limits = limits
        self._impact_of = impact_of
        self._clock = clock

    async def review_for(self, events: Sequence[Event]) -> EventReview | None:
        """The review of these events; None if none of them erases or corrects anything."""
        if all(event.type not in (PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED) for event in events):
            return None
        return partial(self._review, await self._key.public_key())

    async def record_device_keys(self, rows: Sequence[DeviceRow]) -> None:
        """Store the keys of the account's devices, and delete those that are no longer listed."""
        now = timestamp(self._clock.now())
        await self._log.database.write(device_key_store.replace_device_keys, rows, now)

    def _review(self, own_key: str, connection: Transaction, event: Event) -> Event:
        if event.type == PAYLOAD_REDACTED:
            return event if self._is_correction(connection, event) else _marked(event, RemoteErasureState.REFUSED)
        named = named_event_ids(event)
        held = replication_store.count_erasable(connection, named) if event.type == PAYLOAD_FORGOTTEN else 0
        if held == 0:
            return event
        if self._is_unauthorised(connection, event):
            return _marked(event, RemoteErasureState.WAITS)
        trusted = self._trusted_keys(connection) | {own_key}
        is_trusted = signer_of(event) in trusted
        earlier, entries = (0, 0) if is_trusted else self._count_earlier_untrusted(connection, event, trusted)
        impact = self._impact_of(connection, named)
        if not is_mass_erasure(self._limits, held, impact, earlier=earlier, earlier_entries=entries):
            return event
        mark = RemoteErasureState.APPLIED if is_trusted else RemoteErasureState.WAITS
        return _marked(event, mark)

    def _is_unauthorised(self, connection: Transaction, request: Event) -> bool:
        """Whether another device that is not admitted takes a decision; in an account without a first one it may."""
        found = (log_store.find_event(connection, name) for name in named_event_ids(request))
        registry = registry_store.read_registry(connection)
        is_foreign = registry.has_first and request.device_id not in self._log.own_device_ids
        return is_foreign and any(event is not None and registry.is_unauthorised(request, event) for event in found)

    def _is_correction(self, connection: Transaction, event: Event) -> bool:
        """Whether a correction only redacts, and comes from the author or from an admitted device.

        Without the old payload only its device counts.
        """
        correction = correction_of(event)
        corrected = None if correction is None else log_store.find_event(connection, correction[0])
        if correction is None or event.device_id in self._log.own_device_ids:
            return True
        if corrected is not None and corrected.payload and not is_redacted(corrected.payload, correction[1]):
            return False
        is_authors = corrected is not None and corrected.device_id == event.device_id
        admitted = registry_store.read_registry(connection)
        return event.is_proven and (is_authors or admitted.is_admitted(event.device_id))

    def _trusted_keys(self, connection: Transaction) -> frozenset[str]:
        """The keys of the admitted devices; of an account without a first device, those that are known for a day."""
        registry = registry_store.read_registry(connection)
        if not registry.has_first:
            return device_key_store.keys_known_before(connection, timestamp(self._clock.now() - TRUST_DELAY))
        keys = read_device_keys(connection).items()
        return frozenset(key for device_id, known in keys if registry.is_admitted(device_id) for key in known)

    def _count_earlier_untrusted(
        self, connection: Transaction, event: Event, trusted: frozenset[str]
    ) -> tuple[int, int]:
        """Count the events that untrusted requests of other devices have named in the day before this one.

        Also as a person counts them (`count_entries`).

        A request that came from a peer, and that the server has not accepted yet, counts as one of now.
        """
        now = to_unix_ms(self._clock.now())
        end = _accepted_ms(event, now)
        count = entries = 0
        for other in log_store.read_by_types(connection, [PAYLOAD_FORGOTTEN], after=0):
            taken = _accepted_ms(other, now)
            if other.device_id == self._log.device_id or not end - WINDOW_MS < taken <= end:
                continue
            if signer_of(other) not in trusted:
                named = named_event_ids(other)
                held = [one for name in named if (one := log_store.find_event(connection, name)) is not None]
                count += len(named)
                entries += count_entries(held) + len(named) - len(held)
            if count > self._limits.erasure_events:
                break
        return count, entries


def _marked(event: Event, state: RemoteErasureState) -> Event:
    return replace(event, extra={**event.extra, ERASURE_STATE_FIELD: str(state)})


def _accepted_ms(event: Event, otherwise: int) -> int:
    """When the server accepted an event; `otherwise` if that is unknown."""
    try:
        return otherwise if event.server_ts is None else parse_timestamp_ms(event.server_ts)
    except InvalidInput:
        return otherwise
