"""Import the event lines of a file: proven events as they are, all others as new events of this device.

See docs/decisions/014-archive-import.md. Both the archive and the JSONL importer use it. A batch is one transaction,
and known events stay as they are, so an interrupted import is continued by starting it again.
"""

import asyncio
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sync.clock import Clock
from sync.cloud.auth.event_signer import DeviceKeys, EventSigner
from sync.db.engine import Transaction
from sync.errors import InvalidInput, RedactionFailed
from sync.jsonl.imported_drafts import ImportNames, draft_import, source_line
from sync.jsonl.model import ImportCounts
from sync.lan.store import insert_received
from sync.log import erased_store, outbox_store, store
from sync.log.devices.signing import signer_of
from sync.log.envelope import DECODE_ERRORS, from_wire
from sync.log.event_types import PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED
from sync.log.identity import store as identity_store
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import CLOUD, UNPROVEN_FIELD, Event, EventDraft, is_excluded_from_import
from sync.log.retractions import Retractions

BATCH_EVENTS: Final = 500  # events in one transaction
FORMER_DEVICE_FIELD: Final = "imported_device_id"  # in `extra` of what earlier versions imported under its own id


class _Candidate(NamedTuple):
    """A line that nothing proves: its event, if its envelope is whole, and the draft of the new event."""

    draft: EventDraft
    source_id: str | None = None
    event: Event | None = None
    is_shortened: bool = False


class _Batch(msgspec.Struct):
    proven: list[Event] = []
    others: list[_Candidate] = []


class EventImport:
    """One import into one profile's log; it remembers the new ids of the events that later lines name.

    `proves_all`: the file as a whole is proven, or the user said that it is their own memory.
    """

    def __init__(
        self, events: EventLog, intake: DraftBuilder, signer: EventSigner, clock: Clock, *, proves_all: bool = False
    ) -> None:
        self._log, self._intake, self._signer, self._clock = events, intake, signer, clock
        self._proves_all = proves_all
        self._names = ImportNames({})
        self._keys: DeviceKeys | None = None

    async def take(self, values: Sequence[tuple[int | str, Mapping[str, Any]]], result: ImportCounts) -> None:
        """Import one batch of lines, each with its name in refusals."""
        self._keys = self._keys or await self._signer.device_keys()
        await self._import_batch(await asyncio.to_thread(self._parse, values, result), result)

    async def append(self, drafts: Sequence[EventDraft], result: ImportCounts) -> None:
        """Import what a program's file was made into; the drafts have ids."""
        for start in range(0, len(drafts), BATCH_EVENTS):
            others = [_Candidate(draft) for draft in drafts[start : start + BATCH_EVENTS]]
            await self._import_batch(_Batch(others=others), result)

    async def _import_batch(self, batch: _Batch, result: ImportCounts) -> None:
        run = self._log.database.read if result.dry_run else self._log.database.write
        if await run(partial(self._take_in, batch=batch, result=result)) and not result.dry_run:
            self._log.changed.increment()

    def _parse(self, values: Sequence[tuple[int | str, Mapping[str, Any]]], result: ImportCounts) -> _Batch:
        batch = _Batch()
        for label, value in values:
            if is_excluded_from_import(value.get("type")):
                continue
            event = _whole_event(value)
            if event is not None and self._is_proven(event, value):
                batch.proven.append(event)
                continue
            name, value = value.get("event_id"), source_line(value)  # noqa: PLW2901 - what it was imported from
            event = _whole_event(value)
            try:
                draft = draft_import(value, event, self._intake, self._names)
            except (InvalidInput, RedactionFailed) as error:
                result.refuse(label, error.message)
                continue
            if draft is not None:
                self._names.new_ids[str(name)] = str(draft.event_id)
                payload, source_id = value.get("payload"), value.get("event_id")
                is_cut = isinstance(payload, dict) and self._intake.is_shortened(draft.type, payload)
                batch.others.append(_Candidate(draft, source_id if isinstance(source_id, str) else None, event, is_cut))
        return batch

    def _is_proven(self, event: Event, value: Mapping[str, Any]) -> bool:
        """Return whether the file or a signature proves an event, unless its exporter had no proof of it."""
        keys = (self._keys or {}).get(event.device_id, frozenset())
        return (self._proves_all and UNPROVEN_FIELD not in value) or signer_of(event, keys) in keys

    def _take_in(self, connection: Transaction, *, batch: _Batch, result: ImportCounts) -> int:
        """Store what is new, and return how many there are."""
        names = {event.event_id for event in batch.proven}
        names.update(name for one in batch.others for name in (one.source_id, one.draft.event_id) if name)
        held = identity_store.read_held(connection, list(names))
        refills, retractions = _refills(connection, held, batch.proven)
        new = list({event.event_id: event for event in batch.proven if event.event_id not in held}.values())
        fresh = [
            one
            for one in {one.draft.event_id: one for one in batch.others}.values()
            if one.draft.event_id not in held and not _is_known(one, held, retractions)
        ]
        lines = [*(event.event_id for event in batch.proven), *(one.source_id for one in batch.others)]
        lines += [event.event_id for event in refills if event.event_id not in lines]
        recorded = len(new) + len(fresh) + len(refills)
        result.found += len(lines)
        result.recorded += recorded
        result.known += len(lines) - recorded
        result.shortened += sum(one.is_shortened for one in fresh)
        result.unproven += sum(one.source_id is not None for one in fresh)
        if result.dry_run:
            return recorded
        insert_received(
            connection,
            identity_store.with_free_numbers(connection, new),
            self._clock,
            own_device_ids=self._log.own_device_ids,
        )
        self._log.append_in(connection, [one.draft for one in fresh])
        if refills:
            erased_store.refill(connection, refills)
            outbox_store.requeue_dropped(connection, CLOUD, [event.event_id for event in refills])
            store.bump_order_version(connection, self._clock)
            store.reset_projections(connection)
        return recorded


def decode_lines(lines: Iterable[tuple[int, bytes]], result: ImportCounts) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of numbered lines; other lines are refused."""
    for number, line in lines:
        line = line.removeprefix(BOM_UTF8) if number == 1 else line  # noqa: PLW2901 - editors on Windows add it
        if not line.strip():
            continue
        try:
            value = msgspec.json.decode(line)
        except DECODE_ERRORS:
            result.refuse(number, "this is no whole line of JSON")
            continue
        if not isinstance(value, dict):
            result.refuse(number, "an event is a JSON object")
        else:
            yield number, value


def _whole_event(value: Mapping[str, Any]) -> Event | None:
    """Return the event of a line; None if its envelope is not whole."""
    with suppress(InvalidInput):
        return from_wire(value)
    return None


def _is_known(one: _Candidate, held: Mapping[str, Event], retractions: Retractions) -> bool:
    """Return whether the log has a line that nothing proves, or has erased it."""
    if not retractions.erased_ids.isdisjoint({one.draft.event_id, one.source_id}):
        return True
    known = held.get(one.source_id or "")
    if known is None or known.type != one.draft.type:
        return False
    if one.event is not None and one.event.device_id in (known.device_id, known.extra.get(FORMER_DEVICE_FIELD)):
        return True
    payload = one.event.payload if one.event is not None else {}
    return dict(known.payload) in ({}, dict(payload), one.draft.payload.value)


def _is_copy(held: Event, given: Event) -> bool:
    """Return whether two events are one; a guest's own events get another HLC at the login."""
    return (held.device_id, held.type) == (given.device_id, given.type)


def _refills(
    connection: Transaction, held: Mapping[str, Event], proven: Sequence[Event]
) -> tuple[list[Event], Retractions]:
    """Return the held events that retention emptied here, with the payloads of the file, and what the log retracts.

    What nothing proves refills nothing, or the real text could not come back.
    """
    given = {event.event_id: event for event in proven if event.payload}
    emptied = [(event, given.get(name)) for name, event in held.items() if not event.payload]
    refills = [
        replace(event, payload=other.payload, extra=other.extra)
        for event, other in emptied
        if other is not None and _is_copy(event, other)
    ]
    retractions = Retractions()  # a correction among the refills counts, before the log's own
    retractions.apply(store.read_by_types(connection, [PAYLOAD_FORGOTTEN], after=0))
    retractions.apply(refills)
    retractions.apply(store.read_by_types(connection, [PAYLOAD_REDACTED], after=0))
    return [event for event in map(retractions.effective_event, refills) if event.payload], retractions
