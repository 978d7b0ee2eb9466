"""The SQL of the device registry."""

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy import bindparam, text

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.log import store
from sync.log.devices.device_registry import DeviceRegistry
from sync.log.event_types import DEVICE_ADMITTED, REGISTRY_TYPES
from sync.log.model import UNPROVEN_FIELD, Event

_LAST_SPOKEN: Final = text("select device_id, max(hlc) as hlc from events where reach = 'cloud' group by device_id")
_UNPROVEN_AMONG: Final = text(
    f"""select event_id from events where event_id in :ids and extra like '%"{UNPROVEN_FIELD}"%'"""  # noqa: S608 - a constant
).bindparams(bindparam("ids", expanding=True))
_PROVE: Final = text(
    "update events set device_id = :device_id, hlc = :hlc, ts = :ts, origin = :origin, type = :type, extra = :extra,"
    " payload = :payload where event_id = :event_id"
)


def read_registry(connection: Transaction) -> DeviceRegistry:
    """Read the registry of the account's devices."""
    events = list(store.read_by_types(connection, REGISTRY_TYPES, after=0))
    is_recovery = any(event.type == DEVICE_ADMITTED and event.payload.get("recovery") is True for event in events)
    last_spoken = {row.device_id: row.hlc for row in connection.execute(_LAST_SPOKEN)} if is_recovery else {}
    return DeviceRegistry.of(events, last_spoken)


def unproven_ids(connection: Transaction, event_ids: Sequence[str]) -> set[str]:
    """Return those of these events that are held and whose author was not proven."""
    return set(connection.execute(_UNPROVEN_AMONG, {"ids": list(event_ids)}).scalars()) if event_ids else set()


def replace_unproven(connection: Transaction, proven: Sequence[Event], clock: Clock) -> None:
    """Replace held events whose author was not proven by the same events with a proof."""
    for event in proven:
        texts = {name: msgspec.json.encode(getattr(event, name)).decode() for name in ("extra", "payload")}
        values = {name: getattr(event, name) for name in ("event_id", "device_id", "hlc", "ts", "origin", "type")}
        connection.execute(_PROVE, {**values, **texts})
    if proven:
        store.bump_order_version(connection, clock)
