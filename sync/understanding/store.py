"""SQL of the facts. Every function runs inside a transaction of the caller; it only reads."""

from collections.abc import Iterable
from typing import Final

import msgspec
from sqlalchemy import text

from sync.db.engine import Transaction
from sync.log.event_types import EXCHANGE_RECORDED

_EXCHANGES: Final = text("""
select event_id, device_id from events
where type = :type and event_id in (select value from json_each(:ids))
""")


def exchange_devices(connection: Transaction, event_ids: Iterable[str]) -> dict[str, str]:
    """The device of each of these events that is an exchange, erased ones included."""
    ids = msgspec.json.encode(sorted(event_ids)).decode()
    return {row[0]: row[1] for row in connection.execute(_EXCHANGES, {"type": EXCHANGE_RECORDED, "ids": ids})}
