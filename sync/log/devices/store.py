"""The SQL of the device registry."""

from typing import Final

from sqlalchemy import text

from sync.db.engine import Transaction
from sync.log import store
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.event_types import DEVICE_ADMITTED, REGISTRY_TYPES

_LAST_SPOKEN: Final = text("select device_id, max(hlc) as hlc from events where reach = 'cloud' group by device_id")


def read_registry(connection: Transaction) -> DeviceRegistry:
    """Read the registry of the account's devices."""
    events = list(store.read_by_types(connection, REGISTRY_TYPES, after=0))
    is_recovery = any(event.type == DEVICE_ADMITTED and event.payload.get("recovery") is True for event in events)
    last_spoken = {row.device_id: row.hlc for row in connection.execute(_LAST_SPOKEN)} if is_recovery else {}
    return DeviceRegistry.of(events, last_spoken)
