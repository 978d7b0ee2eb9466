"""Append imported items to the log: drafts that this device records, and events of other devices.

Items are appended in batches; one batch is a transaction. Known events stay as they are, so an interrupted import
is continued by starting it again. See docs/decisions/014-archive-import.md.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from sync.archive.model import ArchiveImportResult
from sync.clock import Clock
from sync.db.engine import Transaction
from sync.log import erased_store, outbox_store, store
from sync.log.event_types import ERASING_TYPES, PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED
from sync.log.identity import store as identity_store
from sync.log.identity.store import note_returned_numbers
from sync.log.log import EventLog
from sync.log.model import CLOUD, Event, EventDraft
from sync.log.retractions import Retractions
from sync.redaction import Redactor

BATCH_EVENTS: Final = 500  # events in one transaction
ARCHIVE_SOURCE: Final = "archive"  # the source that this program writes itself
SOURCE_DEVICE_FIELD: Final = "imported_device_id"

ImportItem = EventDraft | Event  # to be recorded by this device, or another device's


class ItemImporter:
    """Appends items to one profile's log."""

    def __init__(self, events: EventLog, redactor: Redactor, *, clock: Clock) -> None:
        self._log = events
        self._redactor = redactor
        self._clock = clock

    async def append(
        self, items: Sequence[ImportItem], result: ArchiveImportResult, shortened_ids: Collection[str] = ()
    ) -> None:
        """Append items and count them in `result`; a dry run only counts. `shortened_ids`: messages that were cut."""
        for start in range(0, len(items), BATCH_EVENTS):
            batch = items[start : start + BATCH_EVENTS]
            importing = partial(
                self._import_batch, items=batch, refill_erased=result.source == ARCHIVE_SOURCE, dry_run=result.dry_run
            )
            new, displaced = await (
                self._log.database.read(importing) if result.dry_run else self._log.database.write(importing)
            )
            result.found += len(batch)
            result.recorded += len(new)
            result.known += len(batch) - len(new) - len(displaced)
            result.shortened += len(new.intersection(shortened_ids))
            for event_id in displaced:
                result.refuse(event_id, "its place is another event's here")
            if new and not result.dry_run:
                self._log.changed.increment()

    def _import_batch(
        self, connection: Transaction, *, items: Sequence[ImportItem], refill_erased: bool, dry_run: bool
    ) -> tuple[set[str | None], list[str]]:
        """Return the ids that are new or refilled, and those of other devices' events whose number is taken here.

        Other devices' events come first: some may have numbers of a replica that this one was, or is.
        """
        ids = [item.event_id for item in items if item.event_id is not None]
        known = store.known_ids(connection, ids)
        refills = _refills_from(connection, items, self._log.device_id) if refill_erased else []
        retractions = _retractions_of(connection, ids, refills)
        refilled = [event for event in map(retractions.effective_event, refills) if event.payload]
        unknown = {item.event_id: item for item in items if item.event_id not in known}.values()
        new = [item for one in unknown if (item := _effective_item(one, retractions, self._redactor)) is not None]
        remote = [item for item in new if isinstance(item, Event)]
        free: dict[tuple[str, int], Event] = {}
        for event in remote:
            if not identity_store.any_number_taken(connection, [event]):
                free.setdefault(event.replica_key, event)
        displaced = [event.event_id for event in remote if free.get(event.replica_key) is not event]
        if not dry_run:
            store.insert_events(connection, list(free.values()))
            store.observe_remote_events(connection, list(free.values()), self._clock)
            note_returned_numbers(connection, list(free.values()), self._clock)
            self._log.append_in(connection, [item for item in new if isinstance(item, EventDraft)])
            self._refill(connection, refilled)
        imported = {item.event_id for item in new} | {event.event_id for event in refilled}
        return imported.difference(displaced), displaced

    def _refill(self, connection: Transaction, refilled: Sequence[Event]) -> None:
        """Give erased rows their payloads again, and have projections that passed them rebuilt."""
        if refilled:
            erased_store.refill(connection, refilled)
            outbox_store.requeue_dropped(connection, CLOUD, [event.event_id for event in refilled])
            store.bump_order_version(connection, self._clock)  # rebuilds a shared document
            store.reset_projections(connection)


def _refills_from(connection: Transaction, items: Sequence[ImportItem], device_id: str) -> list[Event]:
    """Return the events whose rows are erased here, with the payloads that they have in these items."""
    by_id = {item.event_id: item for item in items if item.event_id is not None and _payload_of(item)}
    refills = []
    for erased in erased_store.find_erased(connection, list(by_id)):
        item = by_id[erased.event_id]
        extra = {} if item.extra is None else dict(item.extra.value if isinstance(item, EventDraft) else item.extra)
        if erased.device_id != device_id:  # the row is still its own device's
            extra.pop(SOURCE_DEVICE_FIELD, None)
        if erased.type == item.type:
            refills.append(replace(erased, payload=_payload_of(item), extra=extra))
    return refills


def _retractions_of(connection: Transaction, event_ids: Collection[str], refills: Sequence[Event]) -> Retractions:
    """Return what the log retracts of these events. Corrections among the refills count, before the log's own."""
    retractions = Retractions()
    retractions.apply(store.read_by_types(connection, [PAYLOAD_FORGOTTEN], after=0))
    if not retractions.erased_ids.isdisjoint(event_ids):
        retractions.apply(refills)
        retractions.apply(store.read_by_types(connection, [PAYLOAD_REDACTED], after=0))
    return retractions


def _effective_item(item: ImportItem, retractions: Retractions, redactor: Redactor) -> ImportItem | None:
    """Return what may be recorded of an unknown item; None if the user erased it."""
    if item.event_id is None or item.event_id not in retractions.erased_ids or item.type in ERASING_TYPES:
        return item
    payload = retractions.corrected_payload(item.event_id)
    if payload is None:
        return None if _payload_of(item) else item
    if isinstance(item, EventDraft):
        return replace(item, payload=redactor.clean_payload(payload))
    return replace(item, payload=payload)


def _payload_of(item: ImportItem) -> Mapping[str, Any]:
    return item.payload.value if isinstance(item, EventDraft) else item.payload
