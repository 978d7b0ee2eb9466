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
from sqlalchemy import Connection

from sync.clock import Clock
from sync.document import store
from sync.document.corrections import hashes, rehashed
from sync.document.forgetting import taken_away
from sync.document.ledger import RULES
from sync.log import store as log_store
from sync.log.log import Log
from sync.log.model import EVENT_BYTES, FORGOTTEN, TAKING_AWAY, Draft, Event, Origin, Query, Reach
from sync.log.withdrawn import REDACTED, cleaned, correction_of
from sync.redaction import KINDS, Redactor, placeholder

PAGE: Final = 500  # events read at a time
WISHES: Final = 200  # events that one wish to forget names
WRAPPING: Final = 1024  # bytes that a corrected payload may take beyond the bound of an event


@dataclass(frozen=True, slots=True)
class Correction:
    """An event whose payload is another under the rules of today."""

    event: Event
    payload: dict[str, Any]


class Archives(Protocol):
    """What retention has archived on this device (`sync.retention.room`)."""

    async def visit(self, take: Callable[[Event], None]) -> tuple[str, ...]:
        """Show every archived event, in a thread; the names of the archives that cannot be read."""
        ...

    async def withdraw(self, corrected: Mapping[str, Mapping[str, Any]]) -> int:
        """Carry out there what the log says by now, and give these events these payloads."""
        ...


@dataclass(frozen=True, slots=True)
class Rescan:
    """`events` of the log, `corrected` of them or of what is archived, by kind how many values.

    `applied`: they are recorded, not only found. `unread`: archives that could not be read.
    """

    events: int
    corrected: tuple[str, ...]
    counts: dict[str, int]
    applied: bool
    unread: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reading:
    """What has been read so far in one place. `hashed` are events that name a line's state by its hash."""

    events: int = 0
    found: dict[str, Correction] = field(default_factory=dict)
    hashed: list[Event] = field(default_factory=list)


async def rescan(
    events: Log, redactor: Redactor, clock: Clock, *, local: bool, apply: bool, archives: Archives | None = None
) -> Rescan:
    """Read the whole log and the archives; `local`: also what never leaves this device.

    With `apply`, record what has to change, and change the archives. Raises RedactionFailed, StorageError; what is
    recorded then is carried out later, and the rest is found again.
    """
    redactor = redactor.for_leaving()
    logged, archived = _Reading(), _Reading()
    after = 0
    while page := (await events.read(Query(after=after, limit=PAGE))).events:
        await asyncio.to_thread(_read, logged, page, redactor, local)
        after = page[-1].position
    unread = await archives.visit(lambda event: _read(archived, (event,), redactor, local)) if archives else ()
    _correct_hashes(logged, archived)
    found = {**archived.found, **logged.found}
    if found and apply:
        await events.database.write(partial(_record, events=events, found=found, logged=logged, redactor=redactor))
        events.changed.set()
    if archives and apply:
        stays = {name: was.payload for name, was in archived.found.items() if was.event.reach is Reach.LOCAL}
        await archives.withdraw(stays)
    if apply or not found:
        await note_rules(events, redactor, clock)
    return Rescan(logged.events, tuple(found), _counts(found.values()), applied=apply, unread=unread)


async def note_rules(events: Log, redactor: Redactor, clock: Clock) -> None:
    """The log has been read under the rules of today."""
    await events.database.write(lambda connection: log_store.set_watermark(connection, RULES, redactor.rules, clock))


async def is_behind(events: Log, redactor: Redactor) -> bool:
    """Whether the log holds events that were not read under the rules of today."""

    def looking(connection: Connection) -> bool:
        mark = log_store.watermark(connection, RULES)
        known = mark != 0 or store.newest(connection, store.FILE) is not None  # else the log is as young as the rules
        return known and mark != redactor.rules

    return await events.database.read(looking)


def _read(reading: _Reading, page: Sequence[Event], redactor: Redactor, local: bool) -> None:
    for event in page:
        reading.events += 1
        if event.type in TAKING_AWAY or (event.reach is Reach.LOCAL and not local):
            continue
        payload = cleaned(event, redactor).value
        if payload != dict(event.payload):
            reading.found[event.event_id] = Correction(event, payload)
        if "base_hash" in event.payload or "entries" in event.payload:
            reading.hashed.append(event)


def _correct_hashes(*readings: _Reading) -> None:
    known = {
        before: now
        for reading in readings
        for correction in reading.found.values()
        for before, now in hashes(correction.event, correction.payload)
    }
    for reading in readings if known else ():
        for event in reading.hashed:
            before = reading.found.get(event.event_id)
            payload = dict(event.payload) if before is None else before.payload
            changed = rehashed(payload, known)
            if changed != payload:
                reading.found[event.event_id] = Correction(event, changed)


def _record(
    connection: Connection, *, events: Log, found: Mapping[str, Correction], logged: _Reading, redactor: Redactor
) -> None:
    """Local events of the log change at once; for others corrections and the wish are recorded, in this order.

    What somebody wished to forget meanwhile goes: a correction would bring it back.
    """
    taken = taken_away(connection)
    leaving = [
        correction
        for name, correction in found.items()
        if correction.event.reach is Reach.CLOUD and taken.get(name) != FORGOTTEN
    ]
    for correction in logged.found.values():
        if correction.event.reach is Reach.LOCAL:
            log_store.replace_payload(connection, correction.event.event_id, correction.payload)
    drafts = [
        Draft(
            REDACTED,
            redactor.naming("event_id", named, {"payload": payload}),
            event.project_id,
            session_id=event.session_id,
            origin=Origin.TOOL,
        )
        for event, named, payload in map(_told, leaving)
        if len(msgspec.json.encode({"event_id": named, "payload": payload})) <= EVENT_BYTES + WRAPPING
    ]
    names = [correction.event.event_id for correction in leaving]
    wishes = [
        Draft(FORGOTTEN, redactor.naming("event_ids", names[start : start + WISHES], {}), origin=Origin.TOOL)
        for start in range(0, len(names), WISHES)
    ]
    if names:
        events.record_in(connection, [*drafts, *wishes])


def _told(correction: Correction) -> tuple[Event, str, dict[str, Any]]:
    """Whose payload a correction gives, and the payload; the correction of a correction speaks of the one behind it."""
    event, payload = correction.event, correction.payload
    behind = correction_of(event)
    if behind is not None and isinstance(payload.get("payload"), dict):
        return event, behind[0], payload["payload"]
    return event, event.event_id, payload


def _counts(found: Iterable[Correction]) -> dict[str, int]:
    """Placeholders that the corrected payloads have and the old ones had not."""
    counts: Counter[str] = Counter()
    for correction in found:
        before, now = (
            msgspec.json.encode(value).decode() for value in (dict(correction.event.payload), correction.payload)
        )
        for kind in KINDS:
            counts[kind] += max(0, now.count(placeholder(kind)) - before.count(placeholder(kind)))
    return {kind: count for kind, count in counts.most_common() if count}
