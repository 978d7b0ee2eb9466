"""The SQL of the device registry."""

from collections.abc import Iterable, Sequence
from typing import Final

from sqlalchemy import text

from sync.db.engine import Transaction
from sync.log import erased_store, replica_store, store
from sync.log.devices.device_registry import DeviceRegistry, is_recovery
from sync.log.event_catalogue import DECISION_TYPES
from sync.log.event_types import DEVICE_EVENT_TYPES, PAYLOAD_FORGOTTEN
from sync.log.model import ERASURE_STATE_FIELD, Event, RemoteErasureState, erased_by
from sync.log.newest_query import LAST_SPOKEN_QUERY

_LAST_SPOKEN: Final = text(LAST_SPOKEN_QUERY)


def read_registry(connection: Transaction) -> DeviceRegistry:
    """Read the registry of the account's devices."""
    events = list(store.read_by_types(connection, DEVICE_EVENT_TYPES, after=0))
    if not any(map(is_recovery, events)):
        return DeviceRegistry.of(events)
    return DeviceRegistry.of(events, read_last_spoken(connection), replica_store.read_state(connection).hlc or "")


def hold_unauthorised(connection: Transaction, requests: Iterable[Event], received: Sequence[Event]) -> bool:
    """Let those requests wait that take a decision among events that are about to be stored; whether there is one."""
    decisions = {event.event_id: event for event in received if event.type in DECISION_TYPES}
    named = [(one, decisions[name]) for one in requests for name in erased_by(one) if name in decisions]
    is_unauthorised = read_registry(connection).is_unauthorised
    held = {one.event_id: one for one, event in named if one.type == PAYLOAD_FORGOTTEN and is_unauthorised(one, event)}
    for request in held.values():
        erased_store.set_extra_field(connection, request, ERASURE_STATE_FIELD, str(RemoteErasureState.WAITS))
    return bool(held)


def read_last_spoken(connection: Transaction) -> dict[str, str]:
    """Read the HLC of the newest event of each device."""
    return {row.device_id: row.hlc for row in connection.execute(_LAST_SPOKEN)}
