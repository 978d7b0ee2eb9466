"""The SQL of the public keys of the account's devices and of paired ones, and when this device first saw each."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import bindparam, delete, insert, or_, select, union

from sync.cloud.port import DeviceRow
from sync.db.engine import Transaction
from sync.db.schema import device_keys, paired_devices

_DELETE_UNLISTED_KEYS: Final = delete(device_keys).where(
    device_keys.c.public_key.not_in(bindparam("listed", expanding=True))
)
_INSERT_KEY: Final = insert(device_keys).prefix_with("or ignore")
_KEYS: Final = select(device_keys.c.public_key, device_keys.c.device_id)
_KNOWN_KEYS: Final = union(
    select(device_keys.c.public_key).where(device_keys.c.first_seen_at <= bindparam("moment")),
    select(paired_devices.c.public_key).where(paired_devices.c.paired_at <= bindparam("moment")),
)
_PAIRED: Final = select(paired_devices).order_by(paired_devices.c.paired_at, paired_devices.c.device_id)
_UNPAIR: Final = delete(paired_devices).where(paired_devices.c.device_id == bindparam("device"))
_REPLACED_PAIRINGS: Final = delete(paired_devices).where(
    or_(paired_devices.c.device_id == bindparam("device"), paired_devices.c.public_key == bindparam("key"))
)


class PairedDeviceRow(NamedTuple):
    """A device that was paired by code. `discovery_id`: what the marks of its announcements are made of."""

    public_key: str
    device_id: str
    name: str
    discovery_id: str
    paired_at: str


def replace_device_keys(connection: Transaction, rows: Sequence[DeviceRow], now: str) -> None:
    """Store the keys that the server lists. A new key gets the time `now`; a key that is not listed is deleted."""
    listed = {row.public_key: row.device_id for row in rows if row.public_key and row.revoked_at is None}
    connection.execute(_DELETE_UNLISTED_KEYS, {"listed": list(listed)})
    values = [{"public_key": key, "device_id": device, "first_seen_at": now} for key, device in listed.items()]
    if values:
        connection.execute(_INSERT_KEY, values)


def read_device_keys(connection: Transaction) -> dict[str, str]:
    """The keys of the account's devices as of the last sync, each with its device id."""
    return {row.public_key: row.device_id for row in connection.execute(_KEYS)}


def keys_known_before(connection: Transaction, moment: str) -> frozenset[str]:
    """The keys that this device has known since `moment` or longer."""
    return frozenset(connection.execute(_KNOWN_KEYS, {"moment": moment}).scalars())


def read_paired_devices(connection: Transaction) -> list[PairedDeviceRow]:
    """The paired devices, the first one first."""
    return [PairedDeviceRow(*row) for row in connection.execute(_PAIRED)]


def add_paired_device(connection: Transaction, row: PairedDeviceRow) -> None:
    """Store a pairing; an earlier one of the same device or key goes."""
    connection.execute(_REPLACED_PAIRINGS, {"device": row.device_id, "key": row.public_key})
    connection.execute(insert(paired_devices).values(row._asdict()))


def remove_paired_device(connection: Transaction, device_id: str) -> bool:
    """End a pairing; return whether there was one."""
    return connection.execute(_UNPAIR, {"device": device_id}).rowcount > 0
