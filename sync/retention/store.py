"""The SQL of retention: what is old and still says something. It reads the log and stores nothing."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, LargeBinary, Select, cast, func, select

from sync.db.tables import deliveries, events, watermarks
from sync.log import store as log_store
from sync.log.envelope import event_of_row
from sync.log.model import CLOUD, FORGOTTEN
from sync.log.withdrawn import REDACTED, Withdrawn, correction_of
from sync.retention.model import KEPT, Mark, Old, is_place

_UNDELIVERED: Final = (
    select(deliveries.c.position)
    .where(deliveries.c.destination == CLOUD, deliveries.c.position == events.c.position)
    .where(deliveries.c.state.in_(("pending", "quarantined")))
    .exists()
)
_SIZE: Final = func.length(cast(events.c.payload, LargeBinary)) + func.length(cast(events.c.extra, LargeBinary))
_SAYS: Final = events.c.payload != "{}"
_OLD: Final[Select[Any]] = select(events, _SIZE.label("size"), _UNDELIVERED.label("undelivered")).where(_SAYS)
_TOTAL: Final = select(func.count(), func.coalesce(func.sum(_SIZE), 0)).where(_SAYS)


def total(connection: Connection) -> tuple[int, int]:
    """How many events say something, and in how many bytes."""
    count, size = connection.execute(_TOTAL).one()
    return int(count), int(size)


def candidates(connection: Connection, *, after: int, before_ms: int | None, limit: int) -> list[Old]:
    """The next events that may be due, in log order."""
    statement = _OLD.where(events.c.position > after, events.c.type.not_in(KEPT))
    statement = statement.where(events.c.type.not_like("device\\_%", escape="\\"))
    if before_ms is not None:
        statement = statement.where(events.c.ts_ms < before_ms)
    return [_old(row) for row in connection.execute(statement.order_by(events.c.position).limit(limit)).mappings()]


def at(connection: Connection, positions: Sequence[int]) -> list[Old]:
    """These events, of those that still say something."""
    statement = _OLD.where(events.c.position.in_(positions)).order_by(events.c.position)
    return [_old(row) for row in connection.execute(statement).mappings()]


def corrections(connection: Connection) -> list[Old]:
    """Every event that holds the payload of another anew."""
    return [_old(row) for row in connection.execute(_OLD.where(events.c.type == REDACTED)).mappings()]


def wished(connection: Connection, after: int) -> tuple[Withdrawn, int]:
    """What was to be forgotten everywhere behind a position, or corrected, and the position of the last such wish."""
    wishes = list(log_store.of_types(connection, [FORGOTTEN], after=after))
    found = Withdrawn()
    found.hear(wishes)
    if not wishes:
        return found, after
    for event in log_store.of_types(connection, [REDACTED], after=0):
        told = correction_of(event)
        if told is not None and told[0] in found.forgotten:
            found.hear([event])
    return found, wishes[-1].position


def marks(connection: Connection) -> list[Mark]:
    """How far everybody who follows the log has come."""
    return [Mark(row.name, row.position) for row in connection.execute(select(watermarks)) if is_place(row.name)]


def _old(row: Any) -> Old:
    return Old(event_of_row(row), row["size"], bool(row["undelivered"]))
