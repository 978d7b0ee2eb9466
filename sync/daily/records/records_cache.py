"""The reduced records, kept between calls and brought up to date with the log.

New events are applied incrementally. If they change the effect of earlier ones, or are many, all events are reduced
again in a thread; so they are if what is known of the devices has changed.
"""

import asyncio
from typing import Final

from sync.daily.records.reducer import DailyRecords, RecordsReducer, reduce_events
from sync.log.devices import store as registry_store
from sync.log.devices.device_view import DeviceView
from sync.log.event_types import (
    HOLDING_TYPES,
    PAYLOAD_FORGOTTEN,
    PAYLOAD_REDACTED,
    RECORD_CHANGE_TYPES,
    SESSION_ORIGINAL,
)
from sync.log.log import EventLog
from sync.log.model import Event, Query, text_in
from sync.log.retractions import correction_of

EVENT_TYPES: Final = (*RECORD_CHANGE_TYPES, SESSION_ORIGINAL, PAYLOAD_FORGOTTEN, PAYLOAD_REDACTED, *HOLDING_TYPES)
MAX_INCREMENTAL_EVENTS: Final = 200  # the event loop applies as many in a few milliseconds


class RecordsCache:
    """One profile's records."""

    def __init__(self, events: EventLog) -> None:
        self._log = events
        self._events: list[Event] = []
        self._position = 0
        self._database_token: object = None
        self._reducer = RecordsReducer()
        self._view = DeviceView()
        self._reduced_count = 0  # of `_events`; a cancelled call may have read more than it reduced
        self._records = DailyRecords()
        self._lock = asyncio.Lock()

    async def current_records(self) -> DailyRecords:
        """All records as of the end of the log. Raises StorageError."""
        async with self._lock:
            token = self._log.database.change_token()
            if token == self._database_token:
                return self._records
            steady = self._log.database.is_token_readable(token)
            while page := (await self._log.read(Query(types=EVENT_TYPES, after=self._position))).events:
                self._events += page
                self._position = page[-1].position
            registry = await self._log.database.read(registry_store.read_registry)
            view = DeviceView(registry, self._log.own_device_ids)
            if (fresh := self._events[self._reduced_count :]) or view != self._view:
                is_long = len(fresh) > MAX_INCREMENTAL_EVENTS
                if is_long or view != self._view or not self._reducer.extend(fresh):
                    self._reducer = await asyncio.to_thread(RecordsReducer, tuple(self._events), view)
                self._view, self._reduced_count = view, len(self._events)
                self._records = self._reducer.current_records()
            self._database_token = token if steady else None
            return self._records

    async def records_without(self, event_id: str) -> DailyRecords:
        """The records as they would be without one change: after its undo."""
        await self.current_records()
        others = [event for event in self._events if event.event_id != event_id]
        return await asyncio.to_thread(reduce_events, others, self._view)

    async def event_ids_of_records(self, record_ids: set[str]) -> list[str]:
        """The ids of all events about these records, undone ones and unredacted originals included."""
        await self.current_records()
        ids = {event.event_id for event in self._events if text_in(event, "record_id") in record_ids}
        return [event.event_id for event in self._events if {event.event_id, text_in(event, "of")} & ids]

    async def record_ids_ending_with(self, event_ids: frozenset[str]) -> set[str]:
        """The ids of the records that at some time covered a session up to one of these events."""
        await self.current_records()
        ending = (event for event in self._events if text_in(event, "until_event_id") in event_ids)
        return {str(event.payload.get("record_id")) for event in ending}

    async def correction_ids(self, event_ids: set[str]) -> list[str]:
        """The ids of the events that correct these."""
        await self.current_records()
        corrections = ((event.event_id, correction_of(event)) for event in self._events)
        return [by for by, correction in corrections if correction is not None and correction[0] in event_ids]
