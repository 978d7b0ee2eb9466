"""The SQL of rows without words: which they are, and how their words come back. As in `store`, within a transaction."""

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy import bindparam, select, update

from sync.db.engine import Transaction
from sync.db.schema import events
from sync.log import store
from sync.log.envelope import event_of_row
from sync.log.event_types import PAYLOAD_EXPIRED, PAYLOAD_FORGOTTEN
from sync.log.model import Event, erased_by

_BLANK_AMONG: Final = select(events).where(
    events.c.event_id.in_(bindparam("ids", expanding=True)), events.c.payload == "{}"
)
_FILL: Final = (
    update(events)
    .where(events.c.event_id == bindparam("id"))
    .values(payload=bindparam("said"), extra=bindparam("beside"))
)

_MARKED: Final = select(events).where(
    events.c.type == PAYLOAD_FORGOTTEN, events.c.extra.contains(bindparam("name"), autoescape=False)
)
_MARK: Final = update(events).where(events.c.event_id == bindparam("id")).values(extra=bindparam("beside"))


def requests_with_field(connection: Transaction, name: str) -> list[Event]:
    """Erasure requests that have this field beside their payload, in log order."""
    rows = connection.execute(_MARKED.order_by(events.c.position), {"name": f'"{name}":'}).mappings()
    return [event for row in rows if name in (event := event_of_row(row)).extra]


def set_extra_field(connection: Transaction, event: Event, name: str, value: str) -> None:
    """Set a field beside the payload of an event."""
    beside = msgspec.json.encode({**event.extra, name: value}).decode()
    connection.execute(_MARK, {"id": event.event_id, "beside": beside})


def find_erased(connection: Transaction, event_ids: Sequence[str]) -> list[Event]:
    """Those of these events of which we hold a row without words."""
    return [event_of_row(row) for row in connection.execute(_BLANK_AMONG, {"ids": event_ids}).mappings()]


def refill(connection: Transaction, refilled: Sequence[Event]) -> None:
    """Give blank events their words again, in their old places. What took them away here names them no more."""
    for event in refilled:
        said, beside = msgspec.json.encode(event.payload).decode(), msgspec.json.encode(event.extra).decode()
        connection.execute(_FILL, {"id": event.event_id, "said": said, "beside": beside})
    back = {event.event_id for event in refilled}
    for wish in list(store.read_by_types(connection, [PAYLOAD_EXPIRED], after=0)):
        left = [name for name in erased_by(wish) if name not in back]
        if len(left) < len(erased_by(wish)):
            store.replace_payload(connection, wish.event_id, {**wish.payload, "event_ids": left})
