"""SQL of the facts. Every function runs inside a transaction of the caller; it only reads."""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec
from sqlalchemy import text

from sync.db.engine import Transaction
from sync.log.event_types import EXCHANGE_RECORDED

_EXCHANGES: Final = text("""
select event_id, device_id from events
where type = :type and event_id in (select value from json_each(:ids))
""")
_EXCHANGES_AFTER: Final = text("select event_id, device_id from events where type = :type and position > :after")
_NEWEST_EXCHANGE: Final = text("""
select position, event_id from events where type = :type order by position desc limit 1
""")
_RECORDED: Final = text("select 1 from events where position = :position and event_id = :id")


def newest_exchange(connection: Transaction) -> tuple[int, str]:
    """The position and id of the newest exchange; (0, "") before the first."""
    row = connection.execute(_NEWEST_EXCHANGE, {"type": EXCHANGE_RECORDED}).first()
    return (0, "") if row is None else (row[0], row[1])


def are_recorded(connection: Transaction, events: Iterable[tuple[int, str]]) -> bool:
    """Whether the log has all these events, given by position and id. Position 0 is no event."""
    return all(
        connection.execute(_RECORDED, {"position": position, "id": event_id}).first() is not None
        for position, event_id in events
        if position
    )


def exchanges_after(connection: Transaction, position: int, event_ids: Collection[str]) -> dict[str, str]:
    """The devices of those of these exchanges that are recorded behind a position."""
    if not event_ids:
        return {}
    rows = connection.execute(_EXCHANGES_AFTER, {"type": EXCHANGE_RECORDED, "after": position})
    return {row[0]: row[1] for row in rows if row[0] in event_ids}


def exchange_devices(connection: Transaction, event_ids: Iterable[str]) -> dict[str, str]:
    """The device of each of these events that is an exchange, erased ones included."""
    ids = msgspec.json.encode(sorted(event_ids)).decode()
    return {row[0]: row[1] for row in connection.execute(_EXCHANGES, {"type": EXCHANGE_RECORDED, "ids": ids})}
