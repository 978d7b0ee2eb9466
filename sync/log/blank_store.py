"""The SQL of rows without words: which they are, and how their words come back. As in `store`, within a transaction."""

from collections.abc import Sequence
from typing import Final

import msgspec
from sqlalchemy import Connection, bindparam, select, update

from sync.db.tables import events
from sync.log import store
from sync.log.envelope import event_of_row
from sync.log.model import EXPIRED, Event, forgotten_by

_BLANK_AMONG: Final = select(events).where(
    events.c.event_id.in_(bindparam("ids", expanding=True)), events.c.payload == "{}"
)
_FILL: Final = (
    update(events)
    .where(events.c.event_id == bindparam("id"))
    .values(payload=bindparam("said"), extra=bindparam("beside"))
)


def blank_among(connection: Connection, event_ids: Sequence[str]) -> list[Event]:
    """Those of these events of which we hold a row without words."""
    return [event_of_row(row) for row in connection.execute(_BLANK_AMONG, {"ids": event_ids}).mappings()]


def bring_back(connection: Connection, found: Sequence[Event]) -> None:
    """Give blank events their words again, in their old places. What took them away here names them no more."""
    for event in found:
        said, beside = msgspec.json.encode(event.payload).decode(), msgspec.json.encode(event.extra).decode()
        connection.execute(_FILL, {"id": event.event_id, "said": said, "beside": beside})
    back = {event.event_id for event in found}
    for wish in list(store.of_types(connection, [EXPIRED], after=0)):
        left = [name for name in forgotten_by(wish) if name not in back]
        if len(left) < len(forgotten_by(wish)):
            store.replace_payload(connection, wish.event_id, {**wish.payload, "event_ids": left})
