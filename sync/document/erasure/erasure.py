"""Carrying out what `payload_forgotten` events ask: payloads, lines and older versions that hold the text go.

Decisions
    A wish is an event like any other: it is durable before anything is taken away, waits in the outbox while there is
    no network, is carried out by the server when it arrives there, and by every device that pulls it. A device that
    was killed half-way finds the wish again, because its watermark moves in the transaction that carries it out.
    Where that cannot be done at once (a busy database, a full disk), nothing that is shown has the words any more.
    Here it is carried out with the document, not where it is pulled: which lines came from an event stands in its
    payload, and the lines, the versions and the payload have to go together.
    The row of an event stays, blank, under its number. Versions keep their hash, because it names what lay on disk; the
    forgotten lines are taken out of their bytes, and before that out of what is `parked`. An editor that still shows
    such a line and saves it adds nothing (`erased`).
    What retention archived (`payload_expired`) goes the same way, on this device alone; a line that the document has
    again meanwhile stays. A few wishes at a time: the writer serves `update` too.
    What retention took before any cloud had it is not sent as a blank row, which every other device would then know and
    no archive could fill in for all of them. Out of its archive, or corrected, it has words again and goes out.
    Where a correction came before the wish (`rescan`) the payload is replaced instead, and so are its lines.
    A line that left the document and came back, restored or by an undo, has another id: what added it goes too.
    An edit or removal of a line quotes what it was made from, or names its hash: it goes with the line. One that was
    made before its device had heard of the wish goes by a wish of that device: nobody else knows that there is no
    newer one on its way.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Final

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.document import store
from sync.document.capture.day_compaction import compacted_entry_hashes
from sync.document.capture.exchange_events import (
    exchange_ids,
    exchange_lines,
    preference_entries_of,
    repeated_exchange_id,
)
from sync.document.erasure.corrections import TextRewrite, apply_rewrites, rewrites_of
from sync.document.erasure.selection import ErasureSelection
from sync.document.markdown.edits import remove_entry
from sync.document.markdown.model import EntryRemoved, MergePlan, Snapshot, Version
from sync.document.markdown.template import ANSWER_PREFIX
from sync.document.shared.entry_ops import conflict_copy_id
from sync.log import erased_store, outbox_store
from sync.log import store as log_store
from sync.log.event_types import (
    DAILY_UNDONE,
    DAY_FOLDED,
    ENTRY_ADDED,
    ENTRY_EDITED,
    ENTRY_REMOVED,
    ERASING_TYPES,
    EXCHANGE_RECORDED,
    MESSAGE,
    PAYLOAD_EXPIRED,
    PAYLOAD_FORGOTTEN,
    PAYLOAD_REDACTED,
    RETRACTING_TYPES,
    SESSION_EDITED,
    SESSION_MARKED,
    SESSION_ORIGINAL,
    SESSION_RECORDED,
)
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import CLOUD, Event, EventDraft, Origin, Query, erased_by
from sync.log.projections.registry import ERASURE
from sync.log.retractions import Retractions, correction_of
from sync.redaction import Redactor

QUOTING_TYPES: Final = (ENTRY_EDITED, ENTRY_REMOVED, DAY_FOLDED)
MANUAL_TYPES: Final = frozenset({ENTRY_ADDED, ENTRY_EDITED})  # what was typed here stays in the file as it was typed
ERASURE_OFFSET: Final = ERASURE.name  # how far the log's wishes are carried out
RECORD_TYPES: Final = (
    SESSION_RECORDED,
    SESSION_EDITED,
    SESSION_MARKED,
    DAILY_UNDONE,
)  # hold all that it says then
RECORD_FIELDS: Final = ("record_id", "topic", "facts", "code", "tags")
REQUESTS_PER_TRANSACTION: Final = (
    5  # carried out in one transaction; what retention took, one at a time: nobody waits for it
)
IDS_PER_REQUEST: Final = 400  # events that one wish names: their ids stay below an event's size


@dataclass(frozen=True, slots=True)
class PendingErasure:
    """What has to go: payloads of events, and the lines that came from them."""

    event_ids: frozenset[str]
    entry_ids: frozenset[str]
    position: int
    corrected_payloads: Mapping[str, Mapping[str, Any]] = field(
        default_factory=dict
    )  # of events that are corrected instead
    rewrites: tuple[TextRewrite, ...] = ()  # and the lines that change with them
    quoting_event_ids: tuple[str, ...] = ()  # of these lines: deeds of this device that the wish does not name
    expired_event_ids: frozenset[str] = frozenset()  # what goes because retention took it

    @property
    def affected_entry_ids(self) -> frozenset[str]:
        """The lines that go or change."""
        return self.entry_ids | {change.entry_id for change in self.rewrites}

    def apply_to(self, snapshot: Snapshot) -> Snapshot:
        """A version without what has to go."""
        return apply_rewrites(_remove_entries(snapshot, self.entry_ids), self.rewrites)


def has_pending(connection: Transaction) -> bool:
    """Whether the log asks for something that was not carried out yet."""
    return _has_pending(connection, ERASING_TYPES)


def has_pending_request(connection: Transaction) -> bool:
    """Likewise, of what a person wishes."""
    return _has_pending(connection, (PAYLOAD_FORGOTTEN,))


def _has_pending(connection: Transaction, types: Sequence[str]) -> bool:
    return log_store.newest_position_of_types(connection, types) > log_store.watermark(connection, ERASURE_OFFSET)


def all_pending(connection: Transaction, device_id: str) -> Iterator[PendingErasure]:
    """All that the log asks of this device and was not carried out yet: what is shown meanwhile does not have it."""
    asked = next_pending(connection, device_id) if has_pending(connection) else None
    while asked is not None:
        yield asked
        asked = next_pending(connection, device_id, after=asked.position)


def pending_retractions(connection: Transaction) -> Retractions:
    """What the log has taken back, where some of that was not carried out yet; else nothing."""
    found = Retractions()
    if has_pending(connection):
        found.apply(log_store.read_by_types(connection, RETRACTING_TYPES, after=0))
    return found


def next_pending(connection: Transaction, device_id: str, *, after: int | None = None) -> PendingErasure | None:
    """What the log asks of this device next; None where all is carried out.

    `after`: behind this position, not behind what is carried out.
    """
    mark = log_store.watermark(connection, ERASURE_OFFSET) if after is None else after
    found = log_store.read_page(
        connection, Query(types=ERASING_TYPES, after=mark, limit=REQUESTS_PER_TRANSACTION)
    ).events
    if not found:
        return None
    asked = (
        found[:1]
        if found[0].type == PAYLOAD_EXPIRED
        else list(takewhile(lambda event: event.type == PAYLOAD_FORGOTTEN, found))
    )
    named = frozenset(event_id for event in asked for event_id in erased_by(event))
    here = frozenset(name for event in asked if event.type == PAYLOAD_EXPIRED for name in erased_by(event))
    held = [event for event_id in named if (event := log_store.find_event(connection, event_id)) is not None]
    payloads = {name: said for name, said in _newest_corrections(connection, named, mark).items() if name not in here}
    gone = [event for event in held if event.event_id not in payloads]
    lines = frozenset(entry_id for event in gone if event.event_id not in here for entry_id in entry_ids_of(event))
    quotes = _quoting_events(connection, device_id, lines, except_ids=named) if lines else ()
    old = frozenset(entry_id for event in gone if event.event_id in here for entry_id in entry_ids_of(event))
    lines |= old - store.shown_entry_ids(connection) if old else old
    rewordings = tuple(
        change
        for event in held
        if event.event_id in payloads and not (event.device_id == device_id and event.type in MANUAL_TYPES)
        for change in rewrites_of(event, payloads[event.event_id])
    )
    return PendingErasure(named, lines, asked[-1].position, payloads, rewordings, quotes, expired_event_ids=here)


def _quoting_events(
    connection: Transaction, device_id: str, lines: frozenset[str], *, except_ids: frozenset[str]
) -> tuple[str, ...]:
    own = log_store.read_by_device(connection, device_id, after=0, types=QUOTING_TYPES)
    found = frozenset(event.event_id for event in own if _is_quoting(event, lines)) - except_ids
    return tuple(sorted({*found, *_repeating_events(connection, found)})) if found else ()


def _is_quoting(event: Event, lines: frozenset[str]) -> bool:
    """Whether a deed holds former words of these lines, or a hash that a guess at them can be compared with."""
    if event.type == DAY_FOLDED:
        return not lines.isdisjoint(compacted_entry_hashes(event))
    is_edit = event.type == ENTRY_EDITED or "base_hash" in event.payload
    return is_edit and event.payload.get("entry_id") in lines


def request_drafts(event_ids: Sequence[str], redactor: Redactor) -> list[EventDraft]:
    """The wish that the payloads of these events go, which are our own."""
    parts = (list(event_ids[start : start + IDS_PER_REQUEST]) for start in range(0, len(event_ids), IDS_PER_REQUEST))
    return [
        EventDraft(PAYLOAD_FORGOTTEN, redactor.clean_payload_with_ids("event_ids", part, {}), origin=Origin.TOOL)
        for part in parts
    ]


def _newest_corrections(connection: Transaction, named: frozenset[str], after: int) -> dict[str, Mapping[str, Any]]:
    """The newest payload that each of these events has from now on, where no wish behind `mark` withdraws that too."""
    told = [
        (event.event_id, correction_of(event))
        for event in log_store.read_by_types(connection, [PAYLOAD_REDACTED], after=0)
    ]
    found = [(by, said) for by, said in told if said is not None and said[0] in named]
    later = log_store.read_page(connection, Query(types=ERASING_TYPES, after=after)).events if found else ()
    withdrawn = {name for event in later for name in erased_by(event)}
    return {name: payload for by, (name, payload) in found if by not in withdrawn}


def apply_corrections(connection: Transaction, pending: PendingErasure) -> None:
    """Put the corrected payloads in the place of the old ones, before the document follows the log."""
    blank = [event.event_id for event in erased_store.find_erased(connection, list(pending.corrected_payloads))]
    for event_id, payload in pending.corrected_payloads.items():
        log_store.replace_payload(connection, event_id, payload)
    outbox_store.requeue_dropped(connection, CLOUD, blank)


async def request(events: EventLog, intake: DraftBuilder, event_ids: Sequence[str]) -> list[str]:
    """Record the wish; which of the events are held by us, or by the cloud where retention took ours away.

    With them go those that say the same again: repeats of an exchange, its messages, the line of a day that names it,
    edits of its lines, and deeds of a daily record that repeat what it says.
    """

    def looking(connection: Transaction) -> list[str]:
        named = dict.fromkeys((*event_ids, *_repeating_events(connection, frozenset(event_ids))))
        held = [event for name in named if (event := log_store.find_event(connection, name)) is not None]
        elsewhere = expired_here(connection) if any(not event.payload for event in held) else frozenset()
        return [
            event.event_id
            for event in held
            if event.type not in ERASING_TYPES and (event.payload or event.event_id in elsewhere)
        ]

    found = await events.database.read(looking)
    wishes = [
        intake.build_erasure(found[start : start + IDS_PER_REQUEST]) for start in range(0, len(found), IDS_PER_REQUEST)
    ]
    if wishes:
        await events.append(wishes)
    return found


def expired_here(connection: Transaction) -> frozenset[str]:
    """The events that only this device has forgotten: the cloud and other devices may hold them."""
    return frozenset(name for name, kind in last_erasure_types(connection).items() if kind == PAYLOAD_EXPIRED)


def last_erasure_types(connection: Transaction) -> dict[str, str]:
    """By which kind of wish each event went last. One behind a correction takes only the former payload away."""
    wishes = list(log_store.read_by_types(connection, ERASING_TYPES, after=0))
    heard = Retractions()
    heard.apply(wish for wish in wishes if wish.type == PAYLOAD_FORGOTTEN)
    heard.apply(log_store.read_by_types(connection, [PAYLOAD_REDACTED], after=0))
    return {
        name: wish.type
        for wish in wishes
        for name in erased_by(wish)
        if wish.type == PAYLOAD_EXPIRED or not heard.is_corrected(name)
    }


async def select_events(events: EventLog, selection: ErasureSelection) -> list[Event]:
    """Every event that a choice means, in log order."""
    elsewhere = frozenset[str]() if selection.words else await events.database.read(expired_here)
    found: list[Event] = []
    query = Query(since_ms=selection.since_ms, until_ms=selection.until_ms)
    while page := (await events.read(query)).events:
        found += [event for event in page if selection.selects(event, elsewhere)]
        query = replace(query, after=page[-1].position)
        await asyncio.sleep(0)  # whoever waits for the loop comes first
    return found


def plan_removals(pending: PendingErasure, current: Version | None) -> MergePlan | None:
    """How the lines leave the document: as removals. None where it has none of them.

    By their ids: of lines that read alike, such as two answers, no comparison of texts finds the right one.
    """
    if current is None or pending.entry_ids.isdisjoint(current.snapshot.ids):
        return None
    left = _remove_entries(current.snapshot, pending.entry_ids)
    gone = [entry for entry in current.snapshot.entries if entry.entry_id in pending.entry_ids]
    removed = tuple(EntryRemoved(entry.entry_id, entry.text, entry.section) for entry in gone)
    return MergePlan(removed, left, (), left)


def apply(connection: Transaction, pending: PendingErasure, clock: Clock) -> dict[tuple[str, str], int]:
    """Blank the payloads, clear the versions, and note that it is done. What `store.clear` took out."""
    log_store.erase_payloads(connection, pending.event_ids - pending.corrected_payloads.keys())
    outbox_store.drop_undelivered(connection, CLOUD, sorted(pending.expired_event_ids))
    concerned = pending.affected_entry_ids
    lost = store.erase_from_versions(connection, lambda ids: not concerned.isdisjoint(ids), pending.apply_to)
    log_store.set_watermark(connection, ERASURE_OFFSET, pending.position, clock)
    return lost


def _repeating_events(connection: Transaction, event_ids: frozenset[str]) -> list[str]:
    """Events that hold words of these exchanges a second time."""
    held = (log_store.find_event(connection, event_id) for event_id in event_ids)
    saying = [event for event in held if event is not None]
    lines = frozenset(line for event in saying for line in entry_ids_of(event))
    edits = list(log_store.read_by_types(connection, (ENTRY_EDITED, ENTRY_REMOVED), after=0)) if lines else []
    back = list(
        _readding_events(connection, saying, [event for event in edits if event.payload.get("entry_id") in lines])
    )
    lines |= {line for event in back for line in entry_ids_of(event)}
    questions = {f"{event_id}.q" for event_id in event_ids}
    quoting = [event.event_id for event in (*back, *(one for one in edits if _is_quoting(one, lines)))]
    event_ids = event_ids.union(quoting)  # corrections of these too
    again = quoting + [
        event.event_id
        for event in log_store.read_by_types(connection, [EXCHANGE_RECORDED], after=0)
        if repeated_exchange_id(event) in event_ids
    ]
    folded = list(log_store.read_by_types(connection, [DAY_FOLDED], after=0))
    told = [
        (event.event_id, correction_of(event))
        for event in log_store.read_by_types(connection, [PAYLOAD_REDACTED], after=0)
    ]
    spoken = log_store.read_by_types(connection, [SESSION_ORIGINAL], after=0)
    again += [event.event_id for event in spoken if event.payload.get("of") in event_ids]
    again += [message for event_id in event_ids for message in _stored_messages_of(connection, event_id)]
    deeds = [
        event for event in log_store.read_by_types(connection, RECORD_TYPES, after=0) if "record_id" in event.payload
    ]
    records = [_record_content(event) for event in deeds if event.event_id in event_ids]
    again += [event.event_id for event in deeds if _record_content(event) in records]
    again += [event_id for event_id, correction in told if correction is not None and correction[0] in event_ids]
    days = {event.payload.get("entry_id") for event in folded if questions & set(compacted_entry_hashes(event))}
    return [*again, *(event.event_id for event in folded if event.payload.get("entry_id") in days)]


def _readding_events(connection: Transaction, erased: Sequence[Event], edits: Sequence[Event]) -> Iterator[Event]:
    """The additions of their lines that had left the document: restored or typed again, a line has another id.

    `edits`: those of their lines, removals too. Many answers read alike: one goes if it follows a line that goes.
    """
    texts: defaultdict[str, set[str]] = defaultdict(set)
    for event in (*erased, *edits):
        for entry_id, text in _lines_with_text(event):
            texts[entry_id].add(text)
    left: dict[tuple[str, str], int] = {}
    for event in edits:
        for text in texts[event.payload["entry_id"]] if event.type == ENTRY_REMOVED else ():
            left.setdefault((str(event.payload.get("section")), text), event.position)
    gone = set(texts)
    for event in log_store.read_by_types(connection, [ENTRY_ADDED], after=min(left.values())) if left else ():
        for entry_id, text in _lines_with_text(event):
            was = left.get((str(event.payload.get("section")), text))
            follows = not text.startswith(ANSWER_PREFIX) or event.payload.get("after") in gone
            if was is not None and was < event.position and follows:
                gone.add(entry_id)
                yield event


def _lines_with_text(event: Event) -> Iterator[tuple[str, str]]:
    """The ids of the document's lines that an event says, each with its words."""
    if event.type == EXCHANGE_RECORDED:
        yield from zip(exchange_ids(event), exchange_lines(event) or (), strict=False)
        yield from ((entry.entry_id, entry.text) for entry in preference_entries_of(event))
    entry_id, text = event.payload.get("entry_id"), event.payload.get("text")
    if event.type in MANUAL_TYPES and isinstance(entry_id, str) and isinstance(text, str):
        yield entry_id, text


def _record_content(event: Event) -> tuple[Any, ...]:
    """What a daily record says after a deed."""
    return tuple(event.payload.get(name) for name in RECORD_FIELDS)


def _stored_messages_of(connection: Transaction, event_id: str) -> Iterator[str]:
    """The messages of an exchange, where they are stored: they were numbered right behind it, at its very time.

    Those that retention has archived say nothing here any more; they are in the archive and in the cloud.
    """
    exchange = log_store.find_event(connection, event_id)
    if exchange is None or exchange.type != EXCHANGE_RECORDED:
        return
    for number, event in enumerate(log_store.read_later_of_replica(connection, exchange), exchange.replica_seq + 1):
        theirs = event.replica_seq != number or event.session_id != exchange.session_id
        is_part = "part" in event.payload if event.payload else event.ts == exchange.ts
        if theirs or event.type != MESSAGE or not is_part:
            return
        yield event.event_id


def entry_ids_of(event: Event) -> tuple[str, ...]:
    """The ids of the document's lines that an event speaks of, each with that of the line it may have left beside it.

    That one stands in a shared document where two changed a line apart. Nothing else says its words, and once the event
    is blank nothing tells whose it was: it would stay as a line that no event knows.
    """
    return tuple(
        line for entry_id in _named_entry_ids(event) for line in (entry_id, conflict_copy_id(entry_id, event.event_id))
    )


def _named_entry_ids(event: Event) -> tuple[str, ...]:
    if event.type == EXCHANGE_RECORDED:
        return *exchange_ids(event), *(entry.entry_id for entry in preference_entries_of(event))
    entry_id = event.payload.get("entry_id") if event.type in {ENTRY_ADDED, ENTRY_EDITED, DAY_FOLDED} else None
    return (entry_id,) if isinstance(entry_id, str) else ()


def _remove_entries(snapshot: Snapshot, entry_ids: frozenset[str]) -> Snapshot:
    for entry_id in entry_ids.intersection(snapshot.ids):
        snapshot = remove_entry(snapshot, entry_id)
    return snapshot
