"""Erasure requests (`payload_forgotten`), expiries (`payload_expired`) and corrections: recorded, pending, applied.

A request is an ordinary event: durable before any text is removed, sent like any other, and applied by the server and
by every device. See docs/decisions/007-erasure.md.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.document import store
from sync.document.erasure.corrections import TextRewrite, apply_rewrites, rewrites_of
from sync.document.erasure.related_events import (
    MANUAL_TYPES,
    entry_ids_of,
    later_facts,
    quoting_events,
    repeating_events,
    unknown_corrections,
    whole_texts,
)
from sync.document.erasure.selection import ErasureSelection
from sync.document.markdown.edits import remove_entries
from sync.document.markdown.entry_ids import fact_entry_id
from sync.document.markdown.model import EntryRemoved, MergePlan, Snapshot, Version
from sync.log import erased_store, outbox_store
from sync.log import store as log_store
from sync.log.event_types import (
    ERASING_TYPES,
    HIDING_TYPES,
    HOLDING_TYPES,
    MEMORY_FACT,
    PAYLOAD_EXPIRED,
    PAYLOAD_FORGOTTEN,
    PAYLOAD_REDACTED,
    REGISTRY_TYPES,
)
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import CLOUD, Event, EventDraft, Origin, Query, erased_by
from sync.log.projections.registry import ERASURE
from sync.log.retractions import Retractions, correction_of
from sync.redaction import Redactor

ERASURE_OFFSET: Final = ERASURE.name  # the log position up to which erasures are applied
REQUESTS_PER_TRANSACTION: Final = 5  # the writer serves `update` too; of expiries, one at a time
_APPLIED_TYPES: Final = (*ERASING_TYPES, *REGISTRY_TYPES)  # in the order of the log
IDS_PER_REQUEST: Final = 400  # events that one request names: their ids stay below an event's size


class PendingErasure(msgspec.Struct, frozen=True):
    """What has to be erased: payloads of events, and the lines that came from them."""

    event_ids: frozenset[str]
    entry_ids: frozenset[str]
    position: int
    corrected_payloads: Mapping[str, Mapping[str, Any]] = msgspec.field(default_factory=dict)  # replace payloads
    rewrites: tuple[TextRewrite, ...] = ()  # the lines that change with the corrected payloads
    quoting_event_ids: tuple[str, ...] = ()  # this device's events that quote what is erased, not named by the request
    expired_event_ids: frozenset[str] = frozenset()  # archived by retention

    @property
    def affected_entry_ids(self) -> frozenset[str]:
        """The lines that are erased or rewritten."""
        return self.entry_ids | {change.entry_id for change in self.rewrites}

    def apply_to(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot without the erased lines, with the rewritten ones."""
        return apply_rewrites(remove_entries(snapshot, self.entry_ids), self.rewrites)


# --- record a request ----------------------------------------------------------------------------------------------


async def request(events: EventLog, intake: DraftBuilder, event_ids: Sequence[str]) -> list[str]:
    """Record a request to erase these events and what repeats them (`related_events`); the events that it names."""
    erasable = await events.database.read(lambda connection: erasable_events(connection, event_ids))
    requests = [intake.build_erasure(part) for part in parts_of(erasable)]
    if requests:
        await events.append(requests)
    return erasable


def erasable_events(connection: Transaction, event_ids: Sequence[str]) -> list[str]:
    """What a request to erase these events names: they and what repeats them.

    It names those that this device holds, and those that it has archived but the cloud may hold.
    """
    names = dict.fromkeys((*event_ids, *repeating_events(connection, frozenset(event_ids))))
    held = [event for name in names if (event := log_store.find_event(connection, name)) is not None]
    expired = expired_here(connection) if any(not event.payload for event in held) else frozenset()
    return [
        event.event_id
        for event in held
        if event.type not in (*ERASING_TYPES, *HOLDING_TYPES) and (event.payload or event.event_id in expired)
    ]


def request_drafts(event_ids: Sequence[str], redactor: Redactor) -> list[EventDraft]:
    """Requests to erase events of this device, as the program makes them."""
    payloads = (redactor.clean_payload_with_ids("event_ids", part, {}) for part in parts_of(event_ids))
    return [EventDraft(PAYLOAD_FORGOTTEN, payload, origin=Origin.TOOL) for payload in payloads]


def parts_of(event_ids: Sequence[str]) -> Iterator[list[str]]:
    """The ids in parts that one event can name."""
    for start in range(0, len(event_ids), IDS_PER_REQUEST):
        yield list(event_ids[start : start + IDS_PER_REQUEST])


async def select_events(events: EventLog, selection: ErasureSelection) -> list[Event]:
    """The events that a selection means, in log order."""
    expired = frozenset[str]() if selection.words else await events.database.read(expired_here)
    selected: list[Event] = []
    query = Query(since_ms=selection.since_ms, until_ms=selection.until_ms)
    while page := (await events.read(query)).events:
        selected += [event for event in page if selection.selects(event, expired)]
        query = replace(query, after=page[-1].position)
        await asyncio.sleep(0)  # let other tasks run
    return selected


# --- what is pending -----------------------------------------------------------------------------------------------


def has_pending(connection: Transaction) -> bool:
    """Whether the log asks for something that was not applied yet."""
    return _has_pending(connection, ERASING_TYPES)


def has_unread(connection: Transaction) -> bool:
    """Whether the log has a request that was not applied yet, or may have admitted who made one that waits."""
    return _has_pending(connection, _APPLIED_TYPES)


def has_pending_request(connection: Transaction) -> bool:
    """Likewise, for requests of a user only."""
    return _has_pending(connection, (PAYLOAD_FORGOTTEN,))


def _has_pending(connection: Transaction, types: Sequence[str]) -> bool:
    return log_store.newest_position_of_types(connection, types) > log_store.watermark(connection, ERASURE_OFFSET)


def hides_text(connection: Transaction) -> bool:
    """Whether an erasure is pending, or a request to forget waits."""
    return has_pending(connection) or bool(erased_store.forget_requests(connection))


def all_pending(connection: Transaction, device_id: str) -> Iterator[PendingErasure]:
    """Every erasure that is not applied yet, and what waits to be forgotten; a view leaves out what they name."""
    if held_ids := erased_store.held_ids(connection):
        held = [event for name in held_ids if (event := log_store.find_event(connection, name)) is not None]
        yield PendingErasure(held_ids, _lines_of(held), 0)
    pending = next_pending(connection, device_id) if has_pending(connection) else None
    while pending is not None:
        yield pending
        pending = next_pending(connection, device_id, after=pending.position)


def pending_retractions(connection: Transaction) -> Retractions:
    """All retractions of the log if some of them were not applied yet; else none."""
    retractions = Retractions()
    if hides_text(connection):
        retractions.apply(log_store.read_by_types(connection, HIDING_TYPES, after=0))
    return retractions


def next_pending(connection: Transaction, device_id: str, *, after: int | None = None) -> PendingErasure | None:
    """What this device applies next; None if everything is applied. `after`: behind this position instead."""
    offset = log_store.watermark(connection, ERASURE_OFFSET) if after is None else after
    query = Query(types=_APPLIED_TYPES, after=offset, limit=REQUESTS_PER_TRANSACTION)
    page = log_store.read_page(connection, query).events
    if not page:
        return None
    if page[0].type != PAYLOAD_FORGOTTEN:
        requests = list(page[:1])
        expired = frozenset(erased_by(requests[0]))
    else:
        requests = list(takewhile(lambda event: event.type == PAYLOAD_FORGOTTEN, page))
        expired = frozenset()
    named = frozenset(event_id for event in requests for event_id in erased_by(event))
    held = [event for event_id in named if (event := log_store.find_event(connection, event_id)) is not None]
    corrections = _newest_corrections(connection, named, offset)
    payloads = {name: payload for name, payload in corrections.items() if name not in expired}
    erased = [event for event in held if event.event_id not in payloads]
    for_good = [event for event in erased if event.event_id not in expired]
    lines = _lines_of(for_good)
    quoting = quoting_events(connection, device_id, lines, except_ids=named) if lines else ()
    quoting += later_facts(connection, device_id, for_good, except_ids=named.union(quoting))
    corrected = (event.event_id for event in held if event.event_id in payloads)
    quoting += tuple(name for name in whole_texts(connection, corrected) if name not in named)
    by_user = (event for event in requests if event.type == PAYLOAD_FORGOTTEN and event.origin != Origin.TOOL)
    asked = frozenset(event_id for event in by_user for event_id in erased_by(event))
    quoting += unknown_corrections(connection, device_id, asked, except_ids=named)
    expired_lines = frozenset(
        entry_id for event in erased if event.event_id in expired for entry_id in entry_ids_of(event)
    )
    if expired_lines:  # a line that the document has again by now stays
        lines |= expired_lines - store.shown_entry_ids(connection)
    rewrites = tuple(
        change
        for event in held
        if event.event_id in payloads and not (event.device_id == device_id and event.type in MANUAL_TYPES)
        for change in rewrites_of(event, payloads[event.event_id])
    )  # what was typed here stays in the file as it was typed
    return PendingErasure(named, lines, requests[-1].position, payloads, rewrites, quoting, expired)


def _lines_of(events: Sequence[Event]) -> frozenset[str]:
    """The lines of the document that events made, with those of facts."""
    lines = frozenset(entry_id for event in events for entry_id in entry_ids_of(event))
    return lines.union(fact_entry_id(event.event_id) for event in events if event.type == MEMORY_FACT)


def _newest_corrections(connection: Transaction, named: frozenset[str], after: int) -> dict[str, Mapping[str, Any]]:
    """The corrected payloads of these events, except corrections that a later request erases."""
    events = log_store.read_by_types(connection, [PAYLOAD_REDACTED], after=0)
    corrections = [
        (event.event_id, correction)
        for event in events
        if (correction := correction_of(event)) is not None and correction[0] in named
    ]
    requests = log_store.read_page(connection, Query(types=ERASING_TYPES, after=after)).events if corrections else ()
    withdrawn = {name for event in requests for name in erased_by(event)}
    return {name: payload for event_id, (name, payload) in corrections if event_id not in withdrawn}


def expired_here(connection: Transaction) -> frozenset[str]:
    """The events that only this device has erased: the cloud and other devices may hold them."""
    return frozenset(name for name, kind in last_erasure_types(connection).items() if kind == PAYLOAD_EXPIRED)


def last_erasure_types(connection: Transaction) -> dict[str, str]:
    """The type of the last request for each event, except requests that only take the payload before a correction."""
    requests = list(log_store.read_by_types(connection, ERASING_TYPES, after=0))
    retractions = Retractions()
    retractions.apply(event for event in requests if event.type == PAYLOAD_FORGOTTEN)
    retractions.apply(log_store.read_by_types(connection, [PAYLOAD_REDACTED], after=0))
    return {
        name: event.type
        for event in requests
        for name in erased_by(event)
        if event.type == PAYLOAD_EXPIRED or not retractions.is_corrected(name)
    }


# --- apply (in the order of `sync.document.versions.erasure_step`) -------------------------------------------------


def apply_corrections(connection: Transaction, pending: PendingErasure) -> None:
    """Replace the payloads that are corrected, before the document follows the log.

    An archived event that was never sent has a payload again, and is sent.
    """
    blank = [event.event_id for event in erased_store.find_erased(connection, list(pending.corrected_payloads))]
    for event_id, payload in pending.corrected_payloads.items():
        log_store.replace_payload(connection, event_id, payload)
    outbox_store.requeue_dropped(connection, CLOUD, blank)


def plan_removals(pending: PendingErasure, current: Version | None) -> MergePlan | None:
    """The removal of the erased lines by their ids; None if the document has none of them."""
    if current is None or pending.entry_ids.isdisjoint(current.snapshot.ids):
        return None
    remaining = remove_entries(current.snapshot, pending.entry_ids)
    erased = [entry for entry in current.snapshot.entries if entry.entry_id in pending.entry_ids]
    removals = tuple(EntryRemoved(entry.entry_id, entry.text, entry.section) for entry in erased)
    return MergePlan(removals, remaining, (), remaining)


def apply(connection: Transaction, pending: PendingErasure, clock: Clock) -> dict[tuple[str, str], int]:
    """Blank the payloads, clear the outbox and every stored version, and move the offset; the lines that it removed.

    The row of an event stays, blank. An archived event that no cloud has yet is not sent blank.
    """
    log_store.erase_payloads(connection, pending.event_ids - pending.corrected_payloads.keys())
    outbox_store.drop_undelivered(connection, CLOUD, sorted(pending.expired_event_ids))
    affected = pending.affected_entry_ids
    removed = store.erase_from_versions(connection, lambda ids: not affected.isdisjoint(ids), pending.apply_to)
    log_store.set_watermark(connection, ERASURE_OFFSET, pending.position, clock)
    return removed
