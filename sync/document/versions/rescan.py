"""The log read again under the rules of today: what they find in payloads that were kept under older ones.

Decisions
    An event never changes but for its payload: its id, its place, its day and its origin stay, so that nothing else of
    it is lost. The corrected payload is an event of its own (`payload_redacted`); the `payload_forgotten` behind it
    makes the server blank the old one, and every device replace it, as any wish to forget travels and is carried out.
    Texts that changed are named by their hashes in later edits and removals; those are corrected with them.
    Lines that were typed on this device stay in its file as they were typed: that is the person's own text, of which
    only the redacted form ever left. Lines that were captured, or came from another device, change with their events.
    What retention has archived is read as well. Its correction and the wish are recorded as for what the log holds, and
    carried out in the archives at once; what never leaves this device changes in the archives alone. The rules count
    as read under only then: killed in between, `doctor` goes on saying that they do not.
    A dry run reads and counts. Which rules a log was last read under is noted beside it, with the first
    version of the document for the first time; `doctor` compares.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
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

PAGE_SIZE: Final = 500  # events read at a time
IDS_PER_REQUEST: Final = 200  # events that one wish to forget names
WRAPPER_BYTES: Final = 1024  # bytes that a corrected payload may take beyond the bound of an event


@dataclass(frozen=True, slots=True)
class PayloadCorrection:
    """An event whose payload is another under the rules of today."""

    event: Event
    payload: dict[str, Any]


class ArchivedEvents(Protocol):
    """What retention has archived on this device (`sync.retention.service`)."""

    async def visit_archived(self, visitor: Callable[[Event], None]) -> tuple[str, ...]:
        """Show every archived event, in a thread; the names of the archives that cannot be read."""
        ...

    async def apply_retractions(self, corrected_payloads: Mapping[str, Mapping[str, Any]]) -> int:
        """Carry out there what the log says by now, and give these events these payloads."""
        ...


@dataclass(frozen=True, slots=True)
class RescanResult:
    """`events` of the log, `corrected` of them or of what is archived, by kind how many values.

    `applied`: they are recorded, not only found. `unread`: archives that could not be read.
    """

    events: int
    corrected: tuple[str, ...]
    counts: dict[str, int]
    applied: bool
    unread: tuple[str, ...] = ()


@dataclass(slots=True)
class _ScanState:
    """What has been read so far in one place. `hashed` are events that name a line's state by its hash."""

    events: int = 0
    corrections: dict[str, PayloadCorrection] = field(default_factory=dict)
    hash_events: list[Event] = field(default_factory=list)


async def rescan(
    events: EventLog,
    redactor: Redactor,
    clock: Clock,
    *,
    local: bool,
    apply: bool,
    archives: ArchivedEvents | None = None,
) -> RescanResult:
    """Read the whole log and the archives; `local`: also what never leaves this device.

    With `apply`, record what has to change, and change the archives. Raises RedactionFailed, StorageError; what is
    recorded then is carried out later, and the rest is found again.
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
    found = {**archived.corrections, **logged.corrections}
    if found and apply:
        await events.database.write(
            partial(_record_corrections, events=events, corrections=found, log_state=logged, redactor=redactor)
        )
        events.changed.increment()
    if archives and apply:
        stays = {name: was.payload for name, was in archived.corrections.items() if was.event.reach is EventScope.LOCAL}
        await archives.apply_retractions(stays)
    if apply or not found:
        await record_scanned_rules(events, redactor, clock)
    return RescanResult(logged.events, tuple(found), _count_placeholders(found.values()), applied=apply, unread=unread)


async def record_scanned_rules(events: EventLog, redactor: Redactor, clock: Clock) -> None:
    """The log has been read under the rules of today."""
    await events.database.write(
        lambda connection: log_store.set_watermark(connection, REDACTION_RULES, redactor.rules_version, clock)
    )


async def needs_rescan(events: EventLog, redactor: Redactor) -> bool:
    """Whether the log holds events that were not read under the rules of today."""

    def looking(connection: Transaction) -> bool:
        mark = log_store.watermark(connection, REDACTION_RULES)
        known = mark != 0 or store.newest(connection, store.FILE) is not None  # else the log is as young as the rules
        return known and mark != redactor.rules_version

    return await events.database.read(looking)


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
    known = {
        before: now
        for reading in states
        for correction in reading.corrections.values()
        for before, now in changed_hashes(correction.event, correction.payload)
    }
    for reading in states if known else ():
        for event in reading.hash_events:
            before = reading.corrections.get(event.event_id)
            payload = dict(event.payload) if before is None else before.payload
            changed = replace_hashes(payload, known)
            if changed != payload:
                reading.corrections[event.event_id] = PayloadCorrection(event, changed)


def _record_corrections(
    connection: Transaction,
    *,
    events: EventLog,
    corrections: Mapping[str, PayloadCorrection],
    log_state: _ScanState,
    redactor: Redactor,
) -> None:
    """Local events of the log change at once; for others corrections and the wish are recorded, in this order.

    What somebody wished to forget meanwhile goes: a correction would bring it back.
    """
    taken = last_erasure_types(connection)
    leaving = [
        correction
        for name, correction in corrections.items()
        if correction.event.reach is EventScope.CLOUD and taken.get(name) != PAYLOAD_FORGOTTEN
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
        for event, named, payload in map(_correction_target, leaving)
        if len(msgspec.json.encode({"event_id": named, "payload": payload})) <= MAX_EVENT_BYTES + WRAPPER_BYTES
    ]
    names = [correction.event.event_id for correction in leaving]
    wishes = [
        EventDraft(
            PAYLOAD_FORGOTTEN,
            redactor.clean_payload_with_ids("event_ids", names[start : start + IDS_PER_REQUEST], {}),
            origin=Origin.TOOL,
        )
        for start in range(0, len(names), IDS_PER_REQUEST)
    ]
    if names:
        events.append_in(connection, [*drafts, *wishes])


def _correction_target(correction: PayloadCorrection) -> tuple[Event, str, dict[str, Any]]:
    """Whose payload a correction gives, and the payload; the correction of a correction speaks of the one behind it."""
    event, payload = correction.event, correction.payload
    behind = correction_of(event)
    if behind is not None and isinstance(payload.get("payload"), dict):
        return event, behind[0], payload["payload"]
    return event, event.event_id, payload


def _count_placeholders(corrections: Iterable[PayloadCorrection]) -> dict[str, int]:
    """Placeholders that the corrected payloads have and the old ones had not."""
    counts: Counter[str] = Counter()
    for correction in corrections:
        before, now = (
            msgspec.json.encode(value).decode() for value in (dict(correction.event.payload), correction.payload)
        )
        for kind in KINDS:
            counts[kind] += max(0, now.count(placeholder(kind)) - before.count(placeholder(kind)))
    return {kind: count for kind, count in counts.most_common() if count}
