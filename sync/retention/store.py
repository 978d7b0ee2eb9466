"""SQL of retention: old events that still have a payload. It only reads."""

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
_HAS_PAYLOAD: Final = events.c.payload != "{}"
_OLD: Final[Select[Any]] = select(events, _SIZE.label("size"), _UNDELIVERED.label("undelivered")).where(_HAS_PAYLOAD)
_TOTAL: Final = select(func.count(), func.coalesce(func.sum(_SIZE), 0)).where(_HAS_PAYLOAD)


def count_events_and_bytes(connection: Transaction) -> tuple[int, int]:
    """Return how many events have a payload, and the bytes of all."""
    count, size = connection.execute(_TOTAL).one()
    return int(count), int(size)


def read_candidates(
    connection: Transaction, *, after: int, before_ms: int | None, limit: int
) -> list[RetentionCandidate]:
    """Return the next events that may be due, in log order."""
    statement = _OLD.where(events.c.position > after, events.c.type.not_in(NEVER_EXPIRED_TYPES))
    statement = statement.where(events.c.type.not_like("device\\_%", escape="\\"))
    if before_ms is not None:
        statement = statement.where(events.c.ts_ms < before_ms)
    return [
        _candidate_of_row(row)
        for row in connection.execute(statement.order_by(events.c.position).limit(limit)).mappings()
    ]


def read_candidates_at(connection: Transaction, positions: Sequence[int]) -> list[RetentionCandidate]:
    """Return those of these events that have a payload."""
    statement = _OLD.where(events.c.position.in_(positions)).order_by(events.c.position)
    return [_candidate_of_row(row) for row in connection.execute(statement).mappings()]


def read_correction_candidates(connection: Transaction) -> list[RetentionCandidate]:
    """Return all corrections."""
    return [
        _candidate_of_row(row) for row in connection.execute(_OLD.where(events.c.type == PAYLOAD_REDACTED)).mappings()
    ]


def read_retractions(connection: Transaction, after: int) -> tuple[Retractions, int]:
    """Return the erasures everywhere after a position, with their corrections, and the position of the last."""
    requests = list(log_store.read_by_types(connection, [PAYLOAD_FORGOTTEN], after=after))
    retractions = Retractions()
    retractions.apply(requests)
    if not requests:
        return retractions, after
    for event in log_store.read_by_types(connection, [PAYLOAD_REDACTED], after=0):
        correction = correction_of(event)
        if correction is not None and correction[0] in retractions.erased_ids:
            retractions.apply([event])
    return retractions, requests[-1].position


def read_consumer_offsets(connection: Transaction) -> list[ConsumerOffset]:
    """Return the offsets of the consumers that retention has to wait for."""
    return [
        ConsumerOffset(projection, row.position)
        for row in connection.execute(select(watermarks))
        if not is_local_state(row.name) and (projection := projection_of(row.name)).delays_retention
    ]


def _candidate_of_row(row: Any) -> RetentionCandidate:
    return RetentionCandidate(event_of_row(row), row["size"], bool(row["undelivered"]))
