"""The event log as the rest of the program uses it: append, read, follow.

A position that this log never gave is refused to other programs: they have read another log, such as one before a
backup was restored. They start again at 0 and recognise events by their ids. Positions of damaged events stay valid.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Final, Literal

import msgspec
from msgspec.structs import replace

from sync.clock import Clock
from sync.db.engine import Database, Transaction
from sync.errors import InvalidInput, StorageBusy
from sync.log import erased_store, outbox_store, store
from sync.log.identity import store as identity_store
from sync.log.integrity import store as integrity_store
from sync.log.integrity.store import ProblemJson
from sync.log.local_state import MODEL_DAY, REDACTION_RULES
from sync.log.model import CLOUD, AppendResult, Event, EventDraft, EventPage, Query, RefusedEvent
from sync.log.projections.registry import PROJECTIONS
from sync.runtime.change_counter import ChangeCounter

BuildDrafts = Callable[[Transaction], Sequence[EventDraft]]
StoreWithEvents = Callable[[Transaction, Sequence[AppendResult]], None]
# Names that begin with one of these belong to this program.
RESERVED_PREFIXES: Final = frozenset(name.partition(".")[0] for name in (*PROJECTIONS, REDACTION_RULES, MODEL_DAY))


class OutboxCounts(msgspec.Struct, frozen=True):
    """Counts of the deliveries to one destination."""

    pending: int
    quarantined: int


class EventLog:
    """One profile's log. `changed` moves after every commit of this process that added events.

    `former_device_ids`: ids that this device had before.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        device_id: str,
        session_id: str,
        former_device_ids: tuple[str, ...] = (),
    ) -> None:
        self.database = database
        self.device_id = device_id
        self.former_device_ids = former_device_ids
        self.session_id = session_id  # of events without one
        self.changed = ChangeCounter()
        self.has_cloud = True  # without one, deliveries stay queued until a first login, and no caller waits for them
        self.writes_stopped = False  # the profile is being removed from the device
        self.quarantine = EventQuarantine(database, self.changed)
        self._clock = clock

    @property
    def own_device_ids(self) -> frozenset[str]:
        """Return the id of this device, and those that it had before."""
        return frozenset((self.device_id, *self.former_device_ids))

    def append_in(self, connection: Transaction, drafts: Sequence[EventDraft]) -> list[AppendResult]:
        """Append within the caller's transaction. Raises StorageBusy if `writes_stopped`."""
        if self.writes_stopped:
            raise StorageBusy("this memory is being taken off this device", hint="Say it again in a moment.")
        return store.append(
            connection,
            drafts,
            device_id=self.device_id,
            clock=self._clock,
            default_session_id=self.session_id,
            former_device_ids=self.former_device_ids,
        )

    async def append(self, drafts: Sequence[EventDraft]) -> list[AppendResult]:
        """Record all drafts or none; when this returns, they are on disk with their deliveries."""
        recorded = await self.database.write(self.append_in, drafts)
        self.changed.increment()
        return recorded

    async def append_and_count(
        self, build_drafts: BuildDrafts, store_with_events: StoreWithEvents | None = None
    ) -> tuple[list[AppendResult], int]:
        """Record events and count the pending deliveries to the cloud in one transaction.

        `build_drafts` decides from the log what to record; `store_with_events` stores more in the transaction.
        """

        def record(connection: Transaction) -> tuple[list[AppendResult], int]:
            recorded = self.append_in(connection, build_drafts(connection))
            if store_with_events is not None:
                store_with_events(connection, recorded)
            return recorded, outbox_store.count_deliveries(connection, CLOUD, "pending") if self.has_cloud else 0

        answer = await self.database.write(record)
        self.changed.increment()
        return answer

    async def read(self, query: Query, *, from_other_program: bool = False) -> EventPage:
        """Return events after a position. Raises InvalidInput if another program gives an unknown position."""
        return await self.database.read(_read_page, store.read_page, query, from_other_program)

    async def tail(self, query: Query, *, from_other_program: bool = False) -> EventPage:
        """Return the newest events; `from_other_program` as in `read`."""
        return await self.database.read(_read_page, store.read_newest_page, query, from_other_program)

    async def newest(self, types: Sequence[str], limit: int, *, excluded_devices: Collection[str] = ()) -> list[Event]:
        """Return the newest events of some types, without those of excluded devices, newest first in HLC order."""
        return await self.database.read(store.read_newest, types, limit=limit, excluded_devices=excluded_devices)

    async def watermark(self, consumer: str) -> int:
        """Return the offset of a consumer; 0 if it is unknown."""
        return await self.database.read(store.watermark, consumer)

    async def set_watermark(self, consumer: str, position_or_event_id: int | str) -> int:
        """Store the offset of another program, given as a position or as the id of its last event; return the position.

        Raises InvalidInput for a name of this program, an unknown event, or a position that was never given.
        """
        if consumer.partition(".")[0] in RESERVED_PREFIXES:
            raise InvalidInput(f"{consumer} is a follower of this program itself", field="name")

        named = await resolve_ids(self, [position_or_event_id]) if isinstance(position_or_event_id, str) else {}

        def set_offset(connection: Transaction) -> int:
            event = store.find_event(connection, *named.values()) if named else None
            if isinstance(position_or_event_id, str) and event is None:
                raise InvalidInput("no event has this id", field="eventId", hint="Give the id of an event read here.")
            position = event.position if event is not None else int(position_or_event_id)
            _check_known_position(connection, position, "position")
            store.set_watermark(connection, consumer, position, self._clock)
            return position

        return await self.database.write(set_offset)

    async def find_problems(self) -> list[ProblemJson]:
        """Return the problems of the log; none if it is sound."""
        return await self.database.read(lambda connection: list(integrity_store.find_problems(connection)))

    async def newest_position(self, types: Sequence[str] = ()) -> int:
        """Return the newest position, of all events or of some types; 0 if there is none."""
        if not types:
            return await self.database.read(store.newest_position)
        return await self.database.read(store.newest_position_of_types, types)

    async def outbox(self, destination: str = CLOUD, *, after_pending_writes: bool = False) -> OutboxCounts:
        """Count deliveries; with `after_pending_writes`, after the writes that were queued before."""

        def count(connection: Transaction) -> OutboxCounts:
            return OutboxCounts(
                pending=outbox_store.count_deliveries(connection, destination, "pending"),
                quarantined=outbox_store.count_refused(connection),
            )

        return await (self.database.write if after_pending_writes else self.database.read)(count)


async def resolve_ids(events: EventLog, names: Sequence[str]) -> dict[str, str]:
    """Return the event id of each known name: an event id, or an id that a program gave on this device."""
    device_ids = (events.device_id, *events.former_device_ids)
    return await events.database.read(identity_store.resolve_ids, names=names, device_ids=device_ids)


async def find_events(events: EventLog, event_ids: Sequence[str]) -> dict[str, Event]:
    """Return the known ones of these events by id, without the text of those that wait to be forgotten."""

    def read(connection: Transaction) -> dict[str, Event]:
        found = (store.find_event(connection, event_id) for event_id in event_ids)
        held_ids = erased_store.held_ids(connection)
        return {event.event_id: _without_held(event, held_ids) for event in found if event is not None}

    return await events.database.read(read)


async def user_visible_outbox(events: EventLog) -> OutboxCounts:
    """Return the cloud's outbox as the user sees it: without a cloud nothing is pending."""
    outbox = await events.outbox()
    return outbox if events.has_cloud else replace(outbox, pending=0)


def _read_page(
    connection: Transaction, read: Callable[[Transaction, Query], EventPage], query: Query, from_other_program: bool
) -> EventPage:
    page = read(connection, query)
    if not from_other_program:
        return page
    if not page.events:
        _check_known_position(connection, query.after, "after")
    elif held := erased_store.held_ids(connection):
        return replace(page, events=tuple(_without_held(event, held) for event in page.events))
    return page


def _without_held(event: Event, held_ids: Collection[str]) -> Event:
    return replace(event, payload={}, extra={}) if event.event_id in held_ids else event


def _check_known_position(connection: Transaction, position: int, field: str) -> None:
    last = store.highest_given_position(connection)
    if position > last:
        raise InvalidInput(
            f"{position} is no position of this log, whose newest is {last}",
            field=field,
            hint="Give a nextOffset of this log; if it was restored or created again, begin at 0: ids stay.",
        )


class EventQuarantine:
    """Events that a destination refuses permanently. They do not block others and are kept."""

    def __init__(self, database: Database, changed: ChangeCounter, destination: str = CLOUD) -> None:
        self._database = database
        self._changed = changed
        self._destination = destination

    async def list_refused(self) -> list[RefusedEvent]:
        return await self._database.read(outbox_store.list_refused)

    async def release(self, event_ids: Sequence[str] | None, state: Literal["pending", "dropped"]) -> list[str]:
        """Retry refused events, or drop them; None means all. Return their ids."""
        released = await self._database.write(outbox_store.release_quarantined, self._destination, event_ids, state)
        self._changed.increment()
        return released
