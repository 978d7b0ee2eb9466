"""The SQL of the public keys of the account's devices, and when this device first saw each."""

from collections.abc import Sequence
from typing import Final

from sqlalchemy import bindparam, delete, insert, select

from sync.cloud.port import DeviceRow
from sync.db.engine import Transaction
from sync.db.schema import device_keys

_DELETE_UNLISTED_KEYS: Final = delete(device_keys).where(
    device_keys.c.public_key.not_in(bindparam("listed", expanding=True))
)
_INSERT_KEY: Final = insert(device_keys).prefix_with("or ignore")
_KEYS: Final = select(device_keys.c.public_key, device_keys.c.device_id)
_KNOWN_KEYS: Final = select(device_keys.c.public_key).where(device_keys.c.first_seen_at <= bindparam("moment"))


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
