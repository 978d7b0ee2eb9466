"""The log as the rest of the program sees it: record, read, follow.

Decisions
    A position that this log never gave is refused to other programs, as the place of a follower and as `after`. Whoever
    has one has read another log: an older backup was put back, or a database was made anew. To answer him from the
    newest on would pass over what was recorded here before he asked, and to answer him nothing would do so for ever; so
    he is told, and begins at 0, where he knows by its id what he has taken already. What damage took had its position:
    a follower that has come that far goes on. A position that both logs gave looks like one of this; a follower that
    keeps its place here (`set_watermark`) has it brought back or lost with the log itself.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from sqlalchemy import Connection

from sync.clock import Clock
from sync.db.engine import Database
from sync.errors import InvalidInput, StorageBusy
from sync.log import audit_store, outbox_store, store
from sync.log.audit_store import Problem
from sync.log.model import CLOUD, Draft, Event, Page, Query, Recorded, Refusal
from sync.signals import Signal

Drafted = Callable[[Connection], Sequence[Draft]]
Beside = Callable[[Connection, Sequence[Recorded]], None]
OUR_FOLLOWERS: Final = frozenset({"document", "recall", "insights", "daily", "jsonl", "redaction"})


@dataclass(frozen=True, slots=True)
class Outbox:
    """How deliveries to one destination stand."""

    pending: int
    quarantined: int


class Log:
    """One profile's log. `changed` is set after every commit of this process that added events.

    `earlier_ids`: under which this device recorded before it was given the one it has.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        device_id: str,
        session_id: str,
        earlier_ids: tuple[str, ...] = (),
    ) -> None:
        self.database = database
        self.device_id = device_id
        self.earlier_ids = earlier_ids
        self.session_id = session_id  # of what this process records without one
        self.changed = Signal()
        self.has_cloud = True  # without one, deliveries are kept for a later first login and nothing waits
        self.ended = False  # this memory is being taken off the device: nothing is recorded any more
        self.quarantine = Quarantine(database, self.changed)
        self._clock = clock

    def record_in(self, connection: Connection, drafts: Sequence[Draft]) -> list[Recorded]:
        """The write door for a room that has more to store in the same transaction. StorageBusy where it `ended`."""
        if self.ended:
            raise StorageBusy("this memory is being taken off this device", hint="Say it again in a moment.")
        return store.record(connection, drafts, device_id=self.device_id, clock=self._clock, session_id=self.session_id)

    async def record(self, drafts: Sequence[Draft]) -> list[Recorded]:
        """Record all drafts or none; when this returns they are on disk, with their deliveries."""
        recorded = await self.database.write(lambda connection: self.record_in(connection, drafts))
        self.changed.set()
        return recorded

    async def record_and_count(self, drafted: Drafted, beside: Beside | None = None) -> tuple[list[Recorded], int]:
        """Record, and how many deliveries to the cloud wait after it: one transaction instead of three trips.

        `drafted` says what to record, given what the log holds; `beside`: what a room stores with it.
        """

        def recording(connection: Connection) -> tuple[list[Recorded], int]:
            recorded = self.record_in(connection, drafted(connection))
            if beside is not None:
                beside(connection, recorded)
            return recorded, outbox_store.count(connection, CLOUD, "pending") if self.has_cloud else 0

        answer = await self.database.write(recording)
        self.changed.set()
        return answer

    async def read(self, query: Query, *, foreign: bool = False) -> Page:
        """Events after a position. `foreign`: another program's; InvalidInput where this log never gave it."""
        return await self.database.read(lambda connection: _page(connection, store.read, query, foreign))

    async def tail(self, query: Query, *, foreign: bool = False) -> Page:
        """The newest events; `foreign` as for `read`."""
        return await self.database.read(lambda connection: _page(connection, store.tail, query, foreign))

    async def newest(self, types: Sequence[str], limit: int, *, besides: Collection[str] = ()) -> list[Event]:
        """The newest events of these types of all devices but some, newest first in the log's own order."""
        return await self.database.read(
            lambda connection: store.newest(connection, types, limit=limit, besides=besides)
        )

    async def watermark(self, follower: str) -> int:
        """How far a follower has come; 0 where it is unknown."""
        return await self.database.read(lambda connection: store.watermark(connection, follower))

    async def set_watermark(self, follower: str, place: int | str) -> int:
        """Note how far another program has come, as a position or as the id of the last event it took; the position.

        Our own followers move theirs with what they write: InvalidInput, as for an event that is not here and for a
        position that nothing had yet.
        """
        if follower.partition(".")[0] in OUR_FOLLOWERS:
            raise InvalidInput(f"{follower} is a follower of this program itself", field="name")

        def setting(connection: Connection) -> int:
            event = store.find(connection, place) if isinstance(place, str) else None
            if isinstance(place, str) and event is None:
                raise InvalidInput("no event has this id", field="eventId", hint="Give the id of an event read here.")
            position = event.position if event is not None else int(place)
            _check_given(connection, position, "position")
            store.set_watermark(connection, follower, position, self._clock)
            return position

        return await self.database.write(setting)

    async def verify(self) -> list[Problem]:
        """What is wrong with the log; nothing where it is sound."""
        return await self.database.read(lambda connection: list(audit_store.problems(connection)))

    async def newest_position(self, types: Sequence[str] = ()) -> int:
        """Of all events, or of those of some types; 0 where there is none."""
        if not types:
            return await self.database.read(store.newest_position)
        return await self.database.read(lambda connection: store.newest_of_types(connection, types))

    async def last_own_seq(self) -> int:
        """The number of this replica's newest event."""
        return await self.database.read(store.last_own_seq)

    async def outbox(self, destination: str = CLOUD, *, behind_writes: bool = False) -> Outbox:
        """`behind_writes`: as it stands when all is done that was begun before."""

        def counting(connection: Connection) -> Outbox:
            return Outbox(
                pending=outbox_store.count(connection, destination, "pending"),
                quarantined=outbox_store.count(connection, destination, "quarantined"),
            )

        return await (self.database.write if behind_writes else self.database.read)(counting)


async def to_be_sent(events: Log) -> Outbox:
    """The outbox of the cloud as the user reads it: without a cloud nothing is pending."""
    outbox = await events.outbox()
    return outbox if events.has_cloud else replace(outbox, pending=0)


def _page(connection: Connection, read: Callable[[Connection, Query], Page], query: Query, foreign: bool) -> Page:
    page = read(connection, query)
    if foreign and not page.events:
        _check_given(connection, query.after, "after")
    return page


def _check_given(connection: Connection, position: int, field: str) -> None:
    last = store.last_position(connection)
    if position > last:
        raise InvalidInput(
            f"{position} is no position of this log, whose newest is {last}",
            field=field,
            hint="Give a nextOffset of this log; where it was restored or made anew, begin at 0: ids stay.",
        )


class Quarantine:
    """Events that a destination refuses for good: they do not block the others, and are not forgotten."""

    def __init__(self, database: Database, changed: Signal, destination: str = CLOUD) -> None:
        self._database = database
        self._changed = changed
        self._destination = destination

    async def refusals(self) -> list[Refusal]:
        return await self._database.read(lambda connection: outbox_store.refusals(connection, self._destination))

    async def release(self, event_ids: Sequence[str] | None, state: Literal["pending", "dropped"]) -> list[str]:
        """Try refused events again, or give them up; None means all. Returns the ids this was done to."""
        done = await self._database.write(
            lambda connection: outbox_store.release(connection, self._destination, event_ids, state)
        )
        self._changed.set()
        return done
