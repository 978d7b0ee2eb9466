"""Redact the stored log again with the current rules, and correct the payloads in which they find something.

A correction is an event of its own (`payload_redacted`); a `payload_forgotten` behind it erases the old payload on the
server and on every device. Archived events are corrected in the archives. See docs/decisions/011-rescan.md.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol

import msgspec

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.document import store
from sync.document.erasure.corrections import changed_hashes, replace_hashes
from sync.document.erasure.erasure import last_erasure_types
from sync.log import store as log_store
from sync.log.event_types import ERASING_TYPES, PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED
from sync.log.local_state import REDACTION_RULES
from sync.log.log import EventLog
from sync.log.model import MAX_EVENT_BYTES, Event, EventDraft, EventScope, Origin, Query
from sync.log.retractions import correction_of, redacted_payload
from sync.redaction import KINDS, Redactor, placeholder

PAGE_SIZE: Final = 500  # events per read
IDS_PER_REQUEST: Final = 200  # events that one erasure request names
WRAPPER_BYTES: Final = 1024  # bytes that a corrected payload may have beyond the limit of an event


class PayloadCorrection(msgspec.Struct, frozen=True):
    """An event, and its payload under the current rules."""

    event: Event
    payload: dict[str, Any]


class ArchivedEvents(Protocol):
    """The events that retention has archived on this device (`sync.retention.service`)."""

    async def visit_archived(self, visitor: Callable[[Event], None]) -> tuple[str, ...]:
        """Pass every archived event to `visitor`, in a thread; the names of the archives that cannot be read."""
        ...

    async def apply_retractions(self, corrected_payloads: Mapping[str, Mapping[str, Any]]) -> int:
        """Apply the log's retractions to the archives, and replace these payloads by event id."""
        ...


class RescanResult(msgspec.Struct, frozen=True):
    """How many `events` the log has, which events are `corrected`, and how many values of each kind were found.

    `applied`: the corrections are recorded. `unread`: archives that could not be read.
    """

    events: int
    corrected: tuple[str, ...]
    counts: dict[str, int]
    applied: bool
    unread: tuple[str, ...] = ()


class _ScanState(msgspec.Struct):
    """The scan of the log or of the archives. `hash_events` name the state of a line by its hash."""

    events: int = 0
    corrections: dict[str, PayloadCorrection] = msgspec.field(default_factory=dict)
    hash_events: list[Event] = msgspec.field(default_factory=list)


async def rescan(
    events: EventLog,
    redactor: Redactor,
    clock: Clock,
    *,
    local: bool,
    apply: bool,
    archives: ArchivedEvents | None = None,
) -> RescanResult:
    """Scan the whole log and the archives; `local`: also events that never leave this device.

    With `apply`, record the corrections and change the archives. Raises RedactionFailed, StorageError; recorded
    corrections are applied later, and the next scan finds the rest.
    """
    redactor = redactor.for_egress()
    logged, archived = _ScanState(), _ScanState()
    after = 0
    while page := (await events.read(Query(after=after, limit=PAGE_SIZE))).events:
        await asyncio.to_thread(_scan_page, logged, page, redactor, local)
        after = page[-1].position
    unread = (
        await archives.visit_archived(lambda event: _scan_page(archived, (event,), redactor, local)) if archives else ()
    )
    _correct_hashes(logged, archived)
    corrections = {**archived.corrections, **logged.corrections}
    if corrections and apply:
        await events.database.write(
            _record_corrections, events=events, corrections=corrections, log_state=logged, redactor=redactor
        )
        events.changed.increment()
    if archives and apply:
        local_payloads = {
            name: correction.payload
            for name, correction in archived.corrections.items()
            if correction.event.reach is EventScope.LOCAL
        }
        await archives.apply_retractions(local_payloads)
    if apply or not corrections:
        await record_scanned_rules(events, redactor, clock)
    return RescanResult(
        logged.events, tuple(corrections), _count_placeholders(corrections.values()), applied=apply, unread=unread
    )


async def record_scanned_rules(events: EventLog, redactor: Redactor, clock: Clock) -> None:
    """Note that the log was scanned with the current rules."""
    await events.database.write(log_store.set_watermark, REDACTION_RULES, redactor.rules_version, clock)


async def needs_rescan(events: EventLog, redactor: Redactor) -> bool:
    """Whether the log has events that were not scanned with the current rules."""

    def is_outdated(connection: Transaction) -> bool:
        scanned = log_store.watermark(connection, REDACTION_RULES)
        has_log = scanned != 0 or store.newest(connection, store.FILE) is not None  # else the log is new
        return has_log and scanned != redactor.rules_version

    return await events.database.read(is_outdated)


def _scan_page(state: _ScanState, page: Sequence[Event], redactor: Redactor, local: bool) -> None:
    for event in page:
        state.events += 1
        if event.type in ERASING_TYPES or (event.reach is EventScope.LOCAL and not local):
            continue
        payload = redacted_payload(event, redactor).value
        if payload != dict(event.payload):
            state.corrections[event.event_id] = PayloadCorrection(event, payload)
        if "base_hash" in event.payload or "entries" in event.payload:
            state.hash_events.append(event)


def _correct_hashes(*states: _ScanState) -> None:
    new_by_old = {
        before: now
        for state in states
        for correction in state.corrections.values()
        for before, now in changed_hashes(correction.event, correction.payload)
    }
    for state in states if new_by_old else ():
        for event in state.hash_events:
            correction = state.corrections.get(event.event_id)
            payload = dict(event.payload) if correction is None else correction.payload
            changed = replace_hashes(payload, new_by_old)
            if changed != payload:
                state.corrections[event.event_id] = PayloadCorrection(event, changed)


def _record_corrections(
    connection: Transaction,
    *,
    events: EventLog,
    corrections: Mapping[str, PayloadCorrection],
    log_state: _ScanState,
    redactor: Redactor,
) -> None:
    """Replace the payloads of local events; for others record corrections and the erasure request, in this order.

    An event that was erased meanwhile gets no correction, which would bring it back.
    """
    erasure_types = last_erasure_types(connection)
    shared = [
        correction
        for name, correction in corrections.items()
        if correction.event.reach is EventScope.CLOUD and erasure_types.get(name) != PAYLOAD_FORGOTTEN
    ]
    for correction in log_state.corrections.values():
        if correction.event.reach is EventScope.LOCAL:
            log_store.replace_payload(connection, correction.event.event_id, correction.payload)
    drafts = [
        EventDraft(
            PAYLOAD_REDACTED,
            redactor.clean_payload_with_ids("event_id", named, {"payload": payload}),
            event.project_id,
            session_id=event.session_id,
            origin=Origin.TOOL,
        )
        for event, named, payload in map(_correction_target, shared)
        if len(msgspec.json.encode({"event_id": named, "payload": payload})) <= MAX_EVENT_BYTES + WRAPPER_BYTES
    ]
    names = [correction.event.event_id for correction in shared]
    requests = [
        EventDraft(
            PAYLOAD_FORGOTTEN,
            redactor.clean_payload_with_ids("event_ids", names[start : start + IDS_PER_REQUEST], {}),
            origin=Origin.TOOL,
        )
        for start in range(0, len(names), IDS_PER_REQUEST)
    ]
    if names:
        events.append_in(connection, [*drafts, *requests])


def _correction_target(correction: PayloadCorrection) -> tuple[Event, str, dict[str, Any]]:
    """The event, the id that a correction names and the payload; a correction of a correction names the first event."""
    event, payload = correction.event, correction.payload
    earlier = correction_of(event)
    if earlier is not None and isinstance(payload.get("payload"), dict):
        return event, earlier[0], payload["payload"]
    return event, event.event_id, payload


def _count_placeholders(corrections: Iterable[PayloadCorrection]) -> dict[str, int]:
    """The placeholders by kind that only the corrected payloads have."""
    counts: Counter[str] = Counter()
    for correction in corrections:
        before, now = (
            msgspec.json.encode(value).decode() for value in (dict(correction.event.payload), correction.payload)
        )
        for kind in KINDS:
            counts[kind] += max(0, now.count(placeholder(kind)) - before.count(placeholder(kind)))
    return {kind: count for kind, count in counts.most_common() if count}
