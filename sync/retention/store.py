"""The SQL of retention: what is old and still says something. It reads the log and stores nothing."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import LargeBinary, Select, cast, func, select

from sync.db.engine import Transaction
from sync.db.schema import deliveries, events, watermarks
from sync.log import store as log_store
from sync.log.envelope import event_of_row
from sync.log.event_types import PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED
from sync.log.local_state import is_local_state
from sync.log.model import CLOUD
from sync.log.projections.registry import projection_of
from sync.log.retractions import Retractions, correction_of
from sync.retention.policy import NEVER_EXPIRED_TYPES, ConsumerOffset, RetentionCandidate

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


def count_events_and_bytes(connection: Transaction) -> tuple[int, int]:
    """How many events say something, and in how many bytes."""
    count, size = connection.execute(_TOTAL).one()
    return int(count), int(size)


def read_candidates(
    connection: Transaction, *, after: int, before_ms: int | None, limit: int
) -> list[RetentionCandidate]:
    """The next events that may be due, in log order."""
    statement = _OLD.where(events.c.position > after, events.c.type.not_in(NEVER_EXPIRED_TYPES))
    statement = statement.where(events.c.type.not_like("device\\_%", escape="\\"))
    if before_ms is not None:
        statement = statement.where(events.c.ts_ms < before_ms)
    return [
        _candidate_of_row(row)
        for row in connection.execute(statement.order_by(events.c.position).limit(limit)).mappings()
    ]


def read_candidates_at(connection: Transaction, positions: Sequence[int]) -> list[RetentionCandidate]:
    """These events, of those that still say something."""
    statement = _OLD.where(events.c.position.in_(positions)).order_by(events.c.position)
    return [_candidate_of_row(row) for row in connection.execute(statement).mappings()]


def read_correction_candidates(connection: Transaction) -> list[RetentionCandidate]:
    """Every event that holds the payload of another anew."""
    return [
        _candidate_of_row(row) for row in connection.execute(_OLD.where(events.c.type == PAYLOAD_REDACTED)).mappings()
    ]


def read_retractions(connection: Transaction, after: int) -> tuple[Retractions, int]:
    """What was to be forgotten everywhere behind a position, or corrected, and the position of the last such wish."""
    wishes = list(log_store.read_by_types(connection, [PAYLOAD_FORGOTTEN], after=after))
    found = Retractions()
    found.apply(wishes)
    if not wishes:
        return found, after
    for event in log_store.read_by_types(connection, [PAYLOAD_REDACTED], after=0):
        told = correction_of(event)
        if told is not None and told[0] in found.erased_ids:
            found.apply([event])
    return found, wishes[-1].position


def read_consumer_offsets(connection: Transaction) -> list[ConsumerOffset]:
    """Return the offsets of the consumers that retention has to wait for."""
    return [
        ConsumerOffset(projection, row.position)
        for row in connection.execute(select(watermarks))
        if not is_local_state(row.name) and (projection := projection_of(row.name)).delays_retention
    ]


def _candidate_of_row(row: Any) -> RetentionCandidate:
    return RetentionCandidate(event_of_row(row), row["size"], bool(row["undelivered"]))
