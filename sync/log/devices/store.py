"""The SQL of the device registry."""

from typing import Final

from sqlalchemy import text

from sync.db.engine import Transaction
from sync.log import store
from sync.log.devices.device_registry import DeviceRegistry, is_recovery
from sync.log.event_types import DEVICE_EVENT_TYPES
from sync.log.newest_query import LAST_SPOKEN_QUERY

_LAST_SPOKEN: Final = text(LAST_SPOKEN_QUERY)


def read_registry(connection: Transaction) -> DeviceRegistry:
    """Read the registry of the account's devices."""
    events = list(store.read_by_types(connection, DEVICE_EVENT_TYPES, after=0))
    last_spoken = read_last_spoken(connection) if any(map(is_recovery, events)) else {}
    return DeviceRegistry.of(events, last_spoken)


def read_last_spoken(connection: Transaction) -> dict[str, str]:
    """Read the HLC of the newest event of each device."""
    return {row.device_id: row.hlc for row in connection.execute(_LAST_SPOKEN)}
