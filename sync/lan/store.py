"""The SQL of peers: what the log holds and offers, reading offered events, and storing those of a peer."""

import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Final

from msgspec.structs import replace
from sqlalchemy import text

from sync.clock import Clock, timestamp
from sync.cloud.replication_store import CLASH_CODE, without_erased_payloads
from sync.db.engine import Transaction
from sync.errors import DeviceForked
from sync.lan.protocol.have_want import Holdings
from sync.lan.protocol.ranges import NumberRanges, Range, contains, union
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.envelope import event_of_row
from sync.log.event_catalogue import DEVICE_LOCAL_TYPES
from sync.log.event_types import ERASING_TYPES, HOLDING_TYPES, PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED, RETRACTING_TYPES
from sync.log.identity import store as identity_store
from sync.log.identity.same_event import is_clash, winner_without_server
from sync.log.identity.store import note_returned_numbers
from sync.log.model import (
    CLOUD,
    LOCAL_FIELDS,
    PEERS,
    UNPROVEN_FIELD,
    Event,
    RefusedEvent,
    replicable_events,
)
from sync.log.retractions import Retractions


def _sql_list(names: Iterable[str]) -> str:
    """Names of types as an SQL list; they are constants of this program."""
    return ", ".join(f"'{name}'" for name in sorted(names))


# A row without a payload that an erasure or retention names is not offered: a peer that stored it empty would skip the
# payload that another device still has.
_OFFERED: Final = f"""
reach = 'cloud' and type not in ({_sql_list(DEVICE_LOCAL_TYPES)}) and (payload <> '{{}}' or event_id not in (
  select named.value from events as request, json_each(request.payload, '$.event_ids') as named
  where request.type in ({_sql_list(ERASING_TYPES)})
))
"""  # noqa: S608 - constants only
_ISLANDS: Final = text(f"""
select kind, proof, device_id, replica_id, min(replica_seq) as first, max(replica_seq) as last from (
  select *, replica_seq - row_number() over (
           partition by kind, proof, device_id, replica_id order by replica_seq
         ) as island
  from (
    select iif(extra like '%"{UNPROVEN_FIELD}":%', 'unproven', 'proven') as proof, device_id, replica_id, replica_seq,
           case when not ({_OFFERED}) then 'held'
                when type in ({_sql_list(RETRACTING_TYPES)}) then 'erasures' else 'events' end as kind
    from events where position > :after
  )
) group by kind, proof, device_id, replica_id, island order by replica_id, first
""")  # noqa: S608 - constants only
_NEWS: Final = text(f"""
select max(position) as position, coalesce(max(type in ({_sql_list(RETRACTING_TYPES)})), 0) as retracts
from events where position > :after
""")  # noqa: S608 - constants only
_IN_RANGES: Final = text(f"""
with wanted (first, last) as (
  select json_extract(value, '$[0]'), json_extract(value, '$[1]') from json_each(:ranges)
)
select events.* from wanted cross join events
where replica_id = :replica and replica_seq between first and last and {_OFFERED}
""")  # noqa: S608 - constants only

# `cross join` keeps the order: from the few requests to what they name, not from all events to all requests.
_UNDER: Final = text("select * from events where replica_id = :replica and replica_seq = :number")

_CLASH: Final = "event_id_taken: the device {} has another event under this id"

EventReview = Callable[[Transaction, Event], Event]


def read_holdings(connection: Transaction, before: Holdings | None = None) -> Holdings:
    """What this log holds and offers, as ranges of numbers.

    With the holdings of before only newer events are read, unless one of them may take others back: then, and at
    first, all of them are. A payload that came back since is offered in the next connection.
    """
    epoch, order = log_store.existing_replica_id(connection), log_store.order_version(connection)
    if before is None or (before.epoch, before.order) != (epoch, order):
        before = Holdings(epoch, order=order)
    news = connection.execute(_NEWS, {"after": before.position}).one()
    if news.position is None:
        return before
    if news.retracts:
        before = Holdings(epoch, order=order)
    found: defaultdict[tuple[str, str], defaultdict[str, list[Range]]] = defaultdict(lambda: defaultdict(list))
    for row in connection.execute(_ISLANDS, {"after": before.position}):
        for key in {("held", ""), (row.kind, ""), (row.proof, row.device_id)}:
            found[key][row.replica_id].append((row.first, row.last))
    held, erasures, offered = (
        union(numbers, found[kind, ""])
        for kind, numbers in (("held", before.held), ("erasures", before.erasures), ("events", before.events))
    )
    proven, unproven = dict(before.proven), dict(before.unproven)
    for kind, of in (("proven", proven), ("unproven", unproven)):
        of |= {device: union(of.get(device, {}), found[key, device]) for key, device in found if key == kind}
    last = _last_of(connection, erasures, offered)
    return Holdings(epoch, held, erasures, offered, last, proven, unproven, news.position, order)


def _last_of(connection: Transaction, *offered: NumberRanges) -> dict[str, tuple[int, str]]:
    """The highest number of each replica, with its event id."""
    highest: dict[str, int] = {}
    for numbers in offered:
        for replica, ranges in numbers.items():
            highest[replica] = max(highest.get(replica, 0), ranges[-1][1])
    found = {replica: _event_under(connection, replica, number) for replica, number in highest.items()}
    return {replica: (highest[replica], event.event_id) for replica, event in found.items() if event is not None}


def _event_under(connection: Transaction, replica: str, number: int) -> Event | None:
    row = connection.execute(_UNDER, {"replica": replica, "number": number}).mappings().first()
    return None if row is None else event_of_row(row)


def check_numbers(
    connection: Transaction, last: Mapping[str, tuple[int, str]], proven: Mapping[str, NumberRanges]
) -> None:
    """Raises DeviceForked if the log has another event of the same device under one of these numbers.

    `proven`: what the peer has of the two devices that are connected; what a third one has done parts no others.
    """
    for replica, (number, event_id) in last.items():
        held = _event_under(connection, replica, number)
        if held is None or held.event_id == event_id or not held.is_proven:
            continue
        if contains(proven.get(held.device_id, {}), replica, number):
            raise DeviceForked("a peer has other events under numbers that are in use here")


def read_offered(connection: Transaction, numbers: NumberRanges, *, epoch: str) -> list[Event] | None:
    """The offered events of these numbers, erasure requests and corrections first; None if the epoch is over.

    Text that a later request in the log retracts, applied or not, or that waits to be forgotten, is left out.
    """
    if log_store.existing_replica_id(connection) != epoch:
        return None
    found: list[Event] = []
    for replica, ranges in numbers.items():
        wanted = {"replica": replica, "ranges": json.dumps(ranges)}
        found += [event_of_row(row) for row in connection.execute(_IN_RANGES, wanted).mappings()]
    if not found:
        return []
    retractions = Retractions()
    oldest = min(event.position for event in found) - 1
    types = (PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED, *HOLDING_TYPES)
    retractions.apply(log_store.read_by_types(connection, types, after=oldest))
    effective = [(event, retractions.effective_event(event)) for event in found]
    sent = [_without_local_marks(now) for before, now in effective if now.payload or not before.payload]
    return sorted(sent, key=lambda event: (event.type not in RETRACTING_TYPES, event.position))


def _without_local_marks(event: Event) -> Event:
    if not any(name in event.extra for name in LOCAL_FIELDS):
        return event
    extra = {name: value for name, value in event.extra.items() if name not in LOCAL_FIELDS}
    return replace(event, extra=extra)


def store_events(
    connection: Transaction,
    received: Sequence[Event],
    clock: Clock,
    *,
    own_device_ids: Collection[str],
    peer_device: str = "",
    review: EventReview | None = None,
) -> int:
    """Store a peer's events in one transaction; return how many were new.

    A known event stays as it is, unless only the one that came is proven; of two imports of one file the earlier one
    stays. Events that never leave a device are skipped. Payloads that an earlier request in this log erased stay away.
    Events of this device that a restored database lost are sent to the cloud as well. Raises DeviceForked, and stores
    nothing, if this device or the peer has two events under one number: then one of the two databases is a copy.
    """
    unique = {event.event_id: _as_local(event) for event in replicable_events(received)}
    known = identity_store.read_held(connection, list(unique))
    placed = identity_store.with_free_numbers(
        connection, list(unique.values()), own_device_ids=own_device_ids, peer_device=peer_device
    )
    new = [event for event in placed if event.event_id not in known]
    numbered = [one for one in placed if _takes_number(known.get(one.event_id), one, own_device_ids, peer_device)]
    if outbox_store.adopt_replica_numbers(
        connection, numbered, own_replica_id=log_store.existing_replica_id(connection)
    ):
        log_store.bump_order_version(connection, clock)
    _resolve_known(connection, known, [event for event in placed if event.event_id in known], clock, review)
    if new:
        insert_received(connection, new, clock, own_device_ids=own_device_ids, review=review)
        note_returned_numbers(connection, new, clock)
    return len(new)


def insert_received(
    connection: Transaction,
    received: Sequence[Event],
    clock: Clock,
    *,
    own_device_ids: Collection[str],
    review: EventReview | None = None,
) -> None:
    """Store unknown events whose numbers are free; those of this device are sent, because the server may lack them."""
    new = [_as_local(event) for event in received]
    for request in (event for event in new if event.type in RETRACTING_TYPES):  # a review counts those before it
        log_store.insert_events(connection, [request if review is None else review(connection, request)])
    others = [event for event in new if event.type not in RETRACTING_TYPES]
    log_store.insert_events(connection, without_erased_payloads(connection, others))
    log_store.observe_remote_events(connection, new, clock)
    own = [event.event_id for event in replicable_events(new) if event.device_id in own_device_ids]
    outbox_store.enqueue(connection, CLOUD, _positions(connection, own))
    identity_store.end_revoked(connection, new, clock)


def _takes_number(held: Event | None, sent: Event, own_device_ids: Collection[str], peer_device: str) -> bool:
    """Return whether an event gets the number under which it came: its device, or the first proof, decides."""
    if held is None or winner_without_server(held, sent) is not held:
        return True
    if held.device_id in own_device_ids or held.device_id != sent.device_id or held.server_seq is not None:
        return False
    return sent.is_proven and (held.replica_id == held.event_id or sent.device_id == peer_device)


def _resolve_known(
    connection: Transaction,
    known: Mapping[str, Event],
    received: Sequence[Event],
    clock: Clock,
    review: EventReview | None,
) -> None:
    """Adopt what is proven, or was imported earlier, unless a server has decided; name what is another event."""
    replaced: list[tuple[Event, Event]] = []
    for event in without_erased_payloads(connection, received):
        held = known[event.event_id]
        winner = winner_without_server(held, event)
        if winner is not held:
            replaced.append((held, winner if review is None else review(connection, winner)))
        if is_clash(held, event):
            other = event.device_id if winner is held else held.device_id
            refusal = RefusedEvent(held.event_id, CLASH_CODE, _CLASH.format(other), timestamp(clock.now()))
            outbox_store.quarantine_event(connection, PEERS, refusal)
    identity_store.replace_events(connection, replaced, clock)


def _as_local(event: Event) -> Event:
    """The event without what only the server, or the log that it is in, may say of it."""
    if event.server_seq is None and event.server_ts is None and not event.position:
        return event
    return replace(event, server_seq=None, server_ts=None, position=0)


def _positions(connection: Transaction, event_ids: Sequence[str]) -> list[int]:
    found = (log_store.find_event(connection, event_id) for event_id in event_ids)
    return [event.position for event in found if event is not None]
