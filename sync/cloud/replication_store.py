"""The SQL of replication: what to push, what was answered, whose profile this is."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from sqlalchemy import bindparam, func, select

from sync.clock import Clock
from sync.cloud.port import SyncAnswer
from sync.cloud.sync_decisions import PageVerdict
from sync.db.engine import Transaction
from sync.db.schema import events
from sync.errors import DeviceForked
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.envelope import bounded_hlc
from sync.log.event_types import ERASING_TYPES, PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED
from sync.log.model import CLOUD, Event, RefusedEvent, RemoteCursor
from sync.log.retractions import Retractions

_COUNT_ERASABLE: Final = (
    select(func.count())
    .select_from(events)
    .where(
        events.c.event_id.in_(bindparam("ids", expanding=True)),
        events.c.payload != "{}",
        events.c.type.not_in(ERASING_TYPES),
    )
)


class PendingBatch(NamedTuple):
    """What one request is made of."""

    events: list[Event]
    cursor: RemoteCursor


def read_cursor(connection: Transaction) -> RemoteCursor:
    """Where we stand in the server's log."""
    return outbox_store.read_cursor(connection, CLOUD)


def pending_batch(connection: Transaction, most_events: int, *, device_id: str | None = None) -> PendingBatch:
    """The oldest undelivered events and our place in the server's log, from one view of the database.

    `device_id`: none but those of this device. They say nothing that a wish behind them takes back, carried out by now
    or not: a restored server that gets both again has heard the wish before, from another device.
    """
    positions = outbox_store.pending_positions(connection, CLOUD, most_events, device_id=device_id)
    found = log_store.read_at_positions(connection, positions)
    withdrawn = Retractions()
    if found:
        withdrawn.apply(
            log_store.read_by_types(connection, (PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED), after=found[0].position)
        )
    return PendingBatch([withdrawn.effective_event(event) for event in found], read_cursor(connection))


def count_erasable(connection: Transaction, event_ids: Sequence[str]) -> int:
    """How many of these events have a payload here that an erasure request would take away."""
    return int(connection.execute(_COUNT_ERASABLE, {"ids": list(event_ids)}).scalar_one())


def apply_answer(
    connection: Transaction,
    answer: SyncAnswer,
    verdict: PageVerdict,
    clock: Clock,
    *,
    device_id: str = "",
    review: Callable[[Transaction, Event], Event] | None = None,
) -> int:
    """Take an answer in, acknowledgements, events and cursor together. Returns how many events were new here.

    After a reset the server's numbers are forgotten and read again from the start; when the cursor has caught up,
    events that were acknowledged once and have no number any more are sent again. What comes back of `device_id`, ours,
    counts as acknowledged: nobody else would send it again. Raises DeviceForked where our own replica has said what we
    do not hold, or not under that number: two databases speak as one, or we are what a backup has left of it. No number
    need ever meet another one to tell. Numbers of former replicas are the server's to say.
    """
    if verdict.reset:
        outbox_store.clear_server_numbers(connection)
        log_store.bump_order_version(connection, clock)
        outbox_store.save_cursor(connection, CLOUD, verdict.cursor)
        outbox_store.acknowledge(connection, CLOUD, answer.acked)
        return 0
    outbox_store.acknowledge(connection, CLOUD, answer.acked)
    known = outbox_store.replica_numbers(connection, [event.event_id for event in answer.events])
    held = [event for event in answer.events if event.event_id in known]
    new = list({event.event_id: event for event in answer.events if event.event_id not in known}.values())
    unlike = {event.event_id: event for event in answer.events if known.get(event.event_id) != event.replica_key}
    if unlike:
        _adopt_server_numbers(connection, list(unlike.values()))
    beyond = answer.head if verdict.caught_up else None
    may_lack = (
        outbox_store.clear_stale_numbers(connection, answer.events, beyond=beyond) or read_cursor(connection).may_lack
    )
    outbox_store.set_server_numbers(connection, held)
    if any(bounded_hlc(event) != event.hlc for event in held):
        log_store.bump_order_version(connection, clock)
    outbox_store.acknowledge(connection, CLOUD, [(event.event_id, event.server_seq or 0) for event in held])
    if review is None:
        log_store.insert_events(connection, new)
    else:
        for event in new:  # one by one: each request is weighed with those before it
            log_store.insert_events(connection, [review(connection, event)])
    returned = [event.event_id for event in new if event.device_id == device_id]
    outbox_store.mark_delivered(connection, CLOUD, returned)
    log_store.observe_remote_events(connection, answer.events, clock)
    if may_lack and verdict.caught_up:
        outbox_store.requeue_lost(connection, CLOUD)
    outbox_store.save_cursor(connection, CLOUD, replace(verdict.cursor, may_lack=may_lack and not verdict.caught_up))
    return len(new)


def _adopt_server_numbers(connection: Transaction, renumbered: Sequence[Event]) -> None:
    """Take the numbers that events of former replicas have there. Raises DeviceForked."""
    own = log_store.existing_replica_id(connection)
    if _is_forked(renumbered, own):
        raise DeviceForked("the server has events under our replica's numbers that we do not hold under them")
    outbox_store.adopt_replica_numbers(connection, renumbered, own_replica_id=own)


def _is_forked(renumbered: Sequence[Event], own: str) -> bool:
    return len({event.replica_key for event in renumbered}) < len(renumbered) or any(
        event.replica_id == own for event in renumbered
    )


def acknowledge(connection: Transaction, answer: SyncAnswer) -> None:
    """Take in what an answer says the server has, and nothing else: its events are asked for again."""
    there = [(event.event_id, event.server_seq or 0) for event in answer.events]
    outbox_store.acknowledge(connection, CLOUD, [*answer.acked, *there])


def fork_replica(connection: Transaction, clock: Clock) -> str:
    """This database is a copy: what the server does not have gets a new replica's numbers, and keeps its ids."""
    own = log_store.ensure_replica_id(connection, clock)
    outbox_store.retire_former_numbers(connection, CLOUD, own_replica_id=own)
    unsent = outbox_store.unsent_positions(connection, CLOUD, own)
    return log_store.renumber_as_new_replica(connection, unsent, clock)


def quarantine_events(connection: Transaction, refusals: Sequence[RefusedEvent]) -> None:
    for refusal in refusals:
        outbox_store.quarantine_event(connection, CLOUD, refusal)
