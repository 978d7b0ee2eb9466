"""The SQL of replication: what to push, and applying an answer."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import takewhile
from typing import Final, NamedTuple

from msgspec.structs import replace
from sqlalchemy import bindparam, func, select, text

from sync.clock import Clock, timestamp
from sync.cloud.port import SyncAnswer
from sync.cloud.sync_decisions import PageVerdict
from sync.db.engine import Transaction
from sync.db.schema import events
from sync.errors import DeviceForked
from sync.log import erased_store, outbox_store
from sync.log import store as log_store
from sync.log.devices import store as registry_store
from sync.log.envelope import bounded_hlc
from sync.log.event_types import ERASING_TYPES, PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED
from sync.log.identity import store as identity_store
from sync.log.identity.same_event import winner_at_server
from sync.log.model import CLOUD, ERASURE_STATE_FIELD, Event, RefusedEvent, RemoteCursor, replicable_events
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

_LATE: Final = text(f"""
with named (event_id, accepted, newest) as (
  select item.value, min(case when request.extra not like '%"{ERASURE_STATE_FIELD}"%' then request.server_seq end),
    max(coalesce(request.server_seq, {2**63 - 1}))
  from events as request cross join json_each(request.payload, '$.event_ids') as item
  where request.type = '{PAYLOAD_FORGOTTEN}' group by item.value
)
select event.event_id from named cross join events as event on event.event_id = named.event_id
where event.device_id in :own and max(named.accepted, named.newest) < event.server_seq
order by event.event_id
""").bindparams(bindparam("own", expanding=True))  # noqa: S608 - constants only
CLASH_CODE: Final = "22023"  # as the server's own refusal
CLASH: Final = "event_id_taken: the server has another event under this id"


class PendingBatch(NamedTuple):
    """The events and the cursor of one request."""

    events: list[Event]
    cursor: RemoteCursor


def read_cursor(connection: Transaction) -> RemoteCursor:
    """How far the server's log was pulled."""
    return outbox_store.read_cursor(connection, CLOUD)


def pending_batch(connection: Transaction, most_events: int, *, device_id: str | None = None) -> PendingBatch:
    """The oldest undelivered events and the cursor, from one transaction. `device_id`: only events of that device.

    What waits to be forgotten holds back what follows it. Text that a later erasure request or correction in the log
    retracts is left out, whether that was applied yet or not: a restored server may have the request already, from
    another device, and would not apply it again.
    """
    positions = outbox_store.pending_positions(connection, CLOUD, most_events, device_id=device_id)
    held_ids = erased_store.held_ids(connection)
    waiting = log_store.read_at_positions(connection, positions)
    pending = list(takewhile(lambda event: event.event_id not in held_ids, waiting))
    retractions = Retractions()
    if pending:
        retractions.apply(
            log_store.read_by_types(connection, (PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED), after=pending[0].position)
        )
    return PendingBatch([retractions.effective_event(event) for event in pending], read_cursor(connection))


def count_erasable(connection: Transaction, event_ids: Sequence[str]) -> int:
    """How many of these events have a payload here that an erasure request would remove."""
    return int(connection.execute(_COUNT_ERASABLE, {"ids": list(event_ids)}).scalar_one())


def events_numbered_after_their_erasure(connection: Transaction, *, own_device_ids: Collection[str]) -> list[str]:
    """This device's events that the server got after the request that erases them, and no request since."""
    return list(connection.execute(_LATE, {"own": list(own_device_ids)}).scalars())


def apply_answer(
    connection: Transaction,
    answer: SyncAnswer,
    verdict: PageVerdict,
    clock: Clock,
    *,
    device_id: str = "",
    review: Callable[[Transaction, Event], Event] | None = None,
) -> int:
    """Apply acknowledgements, events and cursor in one transaction. Return how many events were new here.

    A reset clears the server's numbers. Once the cursor has caught up again, acknowledged events that got no number are
    sent again. Events of `device_id`, this device, that the server returns count as acknowledged. The server decides
    the replica numbers of former replicas, and of other devices' events the envelope; an event of this device whose id
    another one has there goes into quarantine. Raises DeviceForked if the server has events of this replica that this
    database lacks, or has under other numbers: a copy, or restored from a backup. Forged events are not stored.
    """
    if verdict.reset:
        outbox_store.clear_server_numbers(connection)
        log_store.bump_order_version(connection, clock)
        outbox_store.save_cursor(connection, CLOUD, verdict.cursor)
        outbox_store.acknowledge(connection, CLOUD, answer.acked)
        return 0
    outbox_store.acknowledge(connection, CLOUD, answer.acked)
    new, held, clashes = _resolve_page(connection, answer.events, clock)
    beyond = answer.head if verdict.caught_up else None
    may_lack = (
        outbox_store.clear_stale_numbers(connection, answer.events, beyond=beyond) or read_cursor(connection).may_lack
    )
    _note_held(connection, held, clock)
    outbox_store.acknowledge(connection, CLOUD, [(event.event_id, event.server_seq or 0) for event in held])
    _quarantine_clashes(connection, clashes, clock)
    if review is None:
        log_store.insert_events(connection, new)
    else:
        for event in new:  # one by one: a review counts the requests before it
            log_store.insert_events(connection, [review(connection, event)])
    returned = [event.event_id for event in new if event.device_id == device_id]
    outbox_store.mark_delivered(connection, CLOUD, returned)
    identity_store.end_revoked(connection, new, clock)
    log_store.observe_remote_events(connection, answer.events, clock)
    if may_lack and verdict.caught_up:
        outbox_store.requeue_lost(connection, CLOUD)
    outbox_store.save_cursor(connection, CLOUD, replace(verdict.cursor, may_lack=may_lack and not verdict.caught_up))
    return len(new)


def _note_held(connection: Transaction, held: Sequence[Event], clock: Clock) -> None:
    """Note the server's numbers of held events."""
    outbox_store.set_server_numbers(connection, held)
    if any(bounded_hlc(event) != event.hlc for event in held):
        log_store.bump_order_version(connection, clock)


class _Page(NamedTuple):
    """The events of a page: those to store, those that the log holds, and held ones that clash with the server's."""

    new: list[Event]
    held: list[Event]
    clashes: list[Event]


def _resolve_page(connection: Transaction, received: Sequence[Event], clock: Clock) -> _Page:
    """Compare a page with the log, adopt the server's numbers and envelopes. Raises DeviceForked."""
    sent = {event.event_id: event for event in replicable_events(received)}
    local = identity_store.read_held(connection, [event.event_id for event in received])
    effective = without_erased_payloads(connection, list(sent.values()))
    new = [event for event in effective if event.event_id not in local]
    winners = _winners(connection, local, [event for event in effective if event.event_id in local])
    clashes = {event_id for event_id, winner in winners.items() if winner is None}
    taken = [event for event in received if event.event_id not in clashes]
    held = [event for event in taken if event.event_id in local]
    moved = {
        event.event_id: event
        for event in taken
        if event.event_id not in local or local[event.event_id].replica_key != event.replica_key
    }
    if moved:
        _adopt_server_numbers(connection, list(moved.values()))
    changed = [(local[name], winner) for name, winner in winners.items() if winner and winner != local[name]]
    identity_store.replace_events(connection, changed, clock)
    return _Page(new, held, [local[event_id] for event_id in sorted(clashes)])


def _winners(connection: Transaction, local: Mapping[str, Event], sent: Sequence[Event]) -> dict[str, Event | None]:
    """What the log keeps of each held event that the server has; None for a clash."""
    own = identity_store.read_own_ids(connection, [event.event_id for event in sent])
    return {
        event.event_id: winner_at_server(local[event.event_id], event, is_own=event.event_id in own) for event in sent
    }


def _quarantine_clashes(connection: Transaction, held: Sequence[Event], clock: Clock) -> None:
    """Quarantine held events under whose ids the server has other events, so that they are named."""
    outbox_store.set_server_numbers(connection, [replace(event, server_seq=None, server_ts=None) for event in held])
    now = timestamp(clock.now())
    quarantine_events(connection, [RefusedEvent(event.event_id, CLASH_CODE, CLASH, now) for event in held])


def without_erased_payloads(connection: Transaction, received: Sequence[Event]) -> list[Event]:
    """The events, those without a payload that the log erased or let expire: a peer may have brought the request.

    A request that takes a decision among them, and must not, waits from now on.
    """
    retractions, requests = Retractions(), list(log_store.read_by_types(connection, ERASING_TYPES, after=0))
    retractions.apply(requests)
    if retractions.erased_ids.isdisjoint(event.event_id for event in received):
        return list(received)
    if registry_store.hold_unauthorised(connection, requests, received):
        return without_erased_payloads(connection, received)
    retractions.apply(log_store.read_by_types(connection, (PAYLOAD_REDACTED,), after=0))
    return [retractions.effective_event(event) for event in received]


def _adopt_server_numbers(connection: Transaction, renumbered: Sequence[Event]) -> None:
    """Adopt the server's numbers of events of former replicas. Raises DeviceForked."""
    own = log_store.existing_replica_id(connection)
    if _is_forked(renumbered, own):
        raise DeviceForked("the server has events under our replica's numbers that we do not hold under them")
    outbox_store.adopt_replica_numbers(connection, renumbered, own_replica_id=own)


def _is_forked(renumbered: Sequence[Event], own: str) -> bool:
    return len({event.replica_key for event in renumbered}) < len(renumbered) or any(
        event.replica_id == own for event in renumbered
    )


def acknowledge(connection: Transaction, answer: SyncAnswer) -> None:
    """Acknowledge all events that an answer names, but do not store them: they are pulled again."""
    pulled = [(event.event_id, event.server_seq or 0) for event in answer.events]
    outbox_store.acknowledge(connection, CLOUD, [*answer.acked, *pulled])


def fork_replica(connection: Transaction, clock: Clock) -> str:
    """Become a new replica and return its id. Unsent events keep their ids and get new numbers."""
    own = log_store.ensure_replica_id(connection, clock)
    outbox_store.retire_former_numbers(connection, CLOUD, own_replica_id=own)
    unsent = outbox_store.unsent_positions(connection, CLOUD, own)
    return log_store.renumber_as_new_replica(connection, unsent, clock)


def quarantine_events(connection: Transaction, refusals: Sequence[RefusedEvent]) -> None:
    for refusal in refusals:
        outbox_store.quarantine_event(connection, CLOUD, refusal)
