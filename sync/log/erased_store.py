"""SQL of erased rows, events without a payload, and how they get it back; and the requests to forget that wait."""

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy import bindparam, select, update

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.db.schema import events
from sync.log import store
from sync.log.envelope import event_of_row
from sync.log.event_types import (
    FORGET_REQUESTED,
    HOLDING_TYPES,
    PAYLOAD_EXPIRED,
    PAYLOAD_FORGOTTEN,
    PAYLOAD_REDACTED,
)
from sync.log.local_state import FORGET_SETTLED
from sync.log.model import Event, erased_by
from sync.log.retractions import ForgetRequest, Retractions

_BLANK_AMONG: Final = select(events).where(
    events.c.event_id.in_(bindparam("ids", expanding=True)), events.c.payload == "{}"
)
_FILL: Final = (
    update(events)
    .where(events.c.event_id == bindparam("id"))
    .values(payload=bindparam("new_payload"), extra=bindparam("new_extra"))
)

_MARKED: Final = select(events).where(
    events.c.type.in_((PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED)),
    events.c.extra.contains(bindparam("name"), autoescape=False),
)
_MARK: Final = update(events).where(events.c.event_id == bindparam("id")).values(extra=bindparam("new_extra"))


def requests_with_field(connection: Transaction, name: str) -> list[Event]:
    """Return the erasure requests and corrections that have this extra field, in log order."""
    rows = connection.execute(_MARKED.order_by(events.c.position), {"name": f'"{name}":'}).mappings()
    return [event for row in rows if name in (event := event_of_row(row)).extra]


def set_extra_field(connection: Transaction, event: Event, name: str, value: str) -> None:
    """Set an extra field of an event."""
    new_extra = msgspec.json.encode({**event.extra, name: value}).decode()
    connection.execute(_MARK, {"id": event.event_id, "new_extra": new_extra})


def find_erased(connection: Transaction, event_ids: Sequence[str]) -> list[Event]:
    """Return those of these events whose row has no payload."""
    return [event_of_row(row) for row in connection.execute(_BLANK_AMONG, {"ids": event_ids}).mappings()]


def refill(connection: Transaction, refilled: Sequence[Event]) -> None:
    """Give erased events their payloads again, and take them out of the expiry events that named them."""
    for event in refilled:
        new_payload, new_extra = msgspec.json.encode(event.payload).decode(), msgspec.json.encode(event.extra).decode()
        connection.execute(_FILL, {"id": event.event_id, "new_payload": new_payload, "new_extra": new_extra})
    refilled_ids = {event.event_id for event in refilled}
    for expiry in list(store.read_by_types(connection, [PAYLOAD_EXPIRED], after=0)):
        remaining = [event_id for event_id in erased_by(expiry) if event_id not in refilled_ids]
        if len(remaining) < len(erased_by(expiry)):
            store.replace_payload(connection, expiry.event_id, {**expiry.payload, "event_ids": remaining})


def forget_requests(connection: Transaction) -> list[ForgetRequest]:
    """Return the requests to forget that wait, oldest first."""
    settled = store.watermark(connection, FORGET_SETTLED)
    if store.newest_position_of_types(connection, (FORGET_REQUESTED,)) <= settled:
        return []
    holds = Retractions()
    holds.apply(store.read_by_types(connection, HOLDING_TYPES, after=settled))
    return list(holds.requests.values())


def held_ids(connection: Transaction) -> frozenset[str]:
    """Return the ids of the events that wait to be forgotten: no view shows them, and they are not sent."""
    return frozenset().union(*(one.event_ids for one in forget_requests(connection)))


def settle_forget_requests(connection: Transaction, clock: Clock) -> None:
    """Note that no request waits, so that `forget_requests` need not read them again."""
    if not forget_requests(connection):
        newest = store.newest_position_of_types(connection, HOLDING_TYPES)
        store.set_watermark(connection, FORGET_SETTLED, newest, clock)
