"""The book, kept level with the log: what is new is read and told where the story ended.

Where that cannot be (`Story.go_on`), or much is new at once, it is told from the beginning, beside the loop.
"""

import asyncio
from typing import Final

from sync.log.log import Log
from sync.log.model import FORGOTTEN, Event, Query
from sync.log.withdrawn import REDACTED, correction_of
from sync.memory.daily.book import Book, Story, book_of
from sync.memory.daily.model import DEEDS, ORIGINAL

TYPES: Final = (*DEEDS, ORIGINAL, FORGOTTEN, REDACTED)
GO_ON_MOST: Final = 200  # events that the loop tells in a few milliseconds


class Shelf:
    """One profile's book."""

    def __init__(self, events: Log) -> None:
        self._log = events
        self._events: list[Event] = []
        self._position = 0
        self._seen: object = None
        self._story = Story()
        self._told = 0  # so many of the events; one who was cancelled may have read more
        self._book = Book()
        self._alone = asyncio.Lock()

    async def book(self) -> Book:
        """All records, as the whole log tells them. Raises StorageError."""
        async with self._alone:
            token = self._log.database.token()
            if token == self._seen:
                return self._book
            steady = self._log.database.is_steady(token)
            while page := (await self._log.read(Query(types=TYPES, after=self._position))).events:
                self._events += page
                self._position = page[-1].position
            if fresh := self._events[self._told :]:
                if len(fresh) > GO_ON_MOST or not self._story.go_on(fresh):
                    self._story = await asyncio.to_thread(Story, tuple(self._events))
                self._told = len(self._events)
                self._book = self._story.book()
            self._seen = token if steady else None
            return self._book

    async def without(self, event_id: str) -> Book:
        """The story without one deed, as an undo would leave it."""
        await self.book()
        others = [event for event in self._events if event.event_id != event_id]
        return await asyncio.to_thread(book_of, others)

    async def about(self, record_ids: set[str]) -> list[str]:
        """The ids of all events about these records, undone ones and the words before redaction included."""
        await self.book()
        told = [event for event in self._events if event.payload.get("record_id") in record_ids]
        ids = {event.event_id for event in told}
        return [event.event_id for event in self._events if {event.event_id, event.payload.get("of")} & ids]

    async def reaching(self, event_ids: frozenset[str]) -> set[str]:
        """The ids of the records whose words, undone ones included, once ended with one of these events."""
        await self.book()
        told = (event.payload for event in self._events if event.payload.get("until_event_id") in event_ids)
        return {str(payload.get("record_id")) for payload in told}

    async def corrections(self, event_ids: set[str]) -> list[str]:
        """The ids of the events that say what these say from now on."""
        await self.book()
        told = ((event.event_id, correction_of(event)) for event in self._events)
        return [by for by, correction in told if correction is not None and correction[0] in event_ids]
