"""The JSONL files as a projection of the log; a rebuild gives the same bytes.

A file is trusted as far as its last line is the event that the log has at that position; if it is not (a power
failure, a restored backup, a manual edit), the file is rebuilt. An erased event is shown erased or corrected from its
erasure request on, whether or not the payload has left the log, so the bytes do not depend on which came first.
"""

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import msgspec

from sync.db.engine import Transaction
from sync.jsonl import store
from sync.jsonl.event_file import EventFile, FileTail, find_event_files, remove_event_tree, remove_partial_files
from sync.jsonl.metadata_files import MetadataFiles
from sync.jsonl.model import FileKey, encode_line, file_key_of
from sync.jsonl.store import LinePosition
from sync.jsonl.unfinished import mark_whole
from sync.log import store as log_store
from sync.log.log import EventLog
from sync.log.model import Event, EventPage, changed_by
from sync.log.projections.external import BATCH_EVENTS, OnProgress
from sync.log.projections.registry import JSONL
from sync.log.retractions import Retractions
from sync.runtime.supervision import finish_despite_cancel

T = TypeVar("T")
P = ParamSpec("P")

FORMAT_VERSION: Final = 2  # of lines and small files
POSITIONS_PER_READ: Final = 5_000  # events in one read, so that other readers do not wait long
WRITE_TIMEOUT: Final = 2.0  # seconds that a cancelled caller waits for a file

log = logging.getLogger(__name__)


class RebuiltJson(msgspec.Struct, frozen=True, rename="camel"):
    """`written`: files that differed from the log; `removed`: files that the log does not know."""

    root: str
    events: int
    files: int
    written: int
    removed: int


class JsonlProjection:
    """One profile's files, below `root`. An `ExternalProjectionRunner` moves its offset."""

    entry = JSONL
    rules_version = FORMAT_VERSION

    def __init__(self, root: Path, events: EventLog) -> None:
        self.root = Path(os.path.realpath(root))
        self._log = events
        self._tails: dict[FileKey, FileTail] = {}
        self._retractions = Retractions()
        self._retractions_until = 0
        self._removal = asyncio.Lock()
        self._metadata = MetadataFiles(self.root, events, self._retractions)

    async def is_missing(self) -> bool:
        return await _is_missing(self.root, self._log)

    async def repair(self, offset: int) -> int:
        """Compare the end of every file with the log up to `offset`; return how many files were rebuilt.

        Removes what killed writers left behind.
        """
        await asyncio.to_thread(remove_partial_files, self.root)
        for file in await asyncio.to_thread(lambda: list(find_event_files(self.root))):
            await asyncio.to_thread(file.read_tail)  # truncates partial lines
        rebuilt = 0
        for key, place in (await self._last_positions(offset, None)).items():
            if not await self._ends_at_or_after(key, place):
                await self._build_file(key, offset)
                rebuilt += 1
        if rebuilt:
            log.warning("%d files of events differed from the log and were rebuilt", rebuilt)
        return rebuilt

    async def apply(self, page: EventPage) -> None:
        """Append a page of events to their files."""
        await self._load_retractions(page.next_offset)
        files: defaultdict[FileKey, list[Event]] = defaultdict(list)
        for event in page.events:
            files[file_key_of(event)].append(event)
        for key, events in files.items():
            await self._append(key, events)
        erased_ids = [event_id for event in page.events for event_id in changed_by(event)]
        if erased_ids:
            await self._rebuild_erased(erased_ids, page.next_offset)
        await self._metadata.update(page.events, erased_ids)
        if len(page.events) < BATCH_EVENTS:  # the last of the log
            await asyncio.to_thread(mark_whole, self.root)

    async def rebuild(self, head: int, on_progress: OnProgress | None) -> RebuiltJson:
        """Make every file what the log says up to `head`, and remove the files that it does not know."""
        await self._load_retractions(head)
        self._tails.clear()
        keys = await self._last_positions(head, on_progress)
        written = removed = 0
        for key in sorted(keys):
            written += await self._build_file(key, head)
        known_paths = {EventFile.of(self.root, key).path for key in keys}
        for file in await asyncio.to_thread(lambda: list(find_event_files(self.root))):
            if file.path not in known_paths:
                removed += await asyncio.to_thread(file.remove)
        removed += await self._metadata.rebuild()
        await asyncio.to_thread(mark_whole, self.root)
        return RebuiltJson(str(self.root), head, len(keys), written, removed)

    async def remove_all(self) -> None:
        """Remove all files; the open log has their events, and nothing waits for the files any longer."""
        async with self._removal:
            await asyncio.to_thread(remove_event_tree, self.root)
        if await self._query(partial(log_store.has_watermark, name=self.entry.name)):
            await self._log.database.write(log_store.forget_projection, self.entry.name)

    # --- appending --------------------------------------------------------------------------------------------

    async def _append(self, key: FileKey, events: Sequence[Event]) -> None:
        file = EventFile.of(self.root, key)
        tail = self._tails.pop(key, None)  # stored again after a successful append
        if tail is None:
            tail = await asyncio.to_thread(file.read_tail)
            if not await self._continues_log(key, tail, events[0].position):
                await self._build_file(key, events[-1].position)
                return
        last_position = tail.last_line.position if tail.last_line else 0
        lines = [
            (event, encode_line(self._retractions.effective_event(event)))
            for event in events
            if event.position > last_position
        ]
        if lines:
            tail = await _finish_write(file.append, lines, tail)
        self._tails[key] = tail

    async def _continues_log(self, key: FileKey, tail: FileTail, position: int) -> bool:
        """Return whether a file, judged by its end, holds what the log says before a position."""
        last = tail.last_line
        if not tail.is_readable:
            return False
        if last is not None:
            place = await self._query(lambda connection: store.read_line_position_at(connection, last.position))
            if place is None or (place.key, place.event_id) != (key, last.event_id):
                return False
        after = last.position if last else 0
        return not await self._query(
            lambda connection: store.read_file_events(connection, key, after=after, upto=position - 1, limit=1)
        )

    async def _ends_at_or_after(self, key: FileKey, place: LinePosition) -> bool:
        """Return whether a file ends with this event, or with one that comes later in the log."""
        tail = await asyncio.to_thread(EventFile.of(self.root, key).read_tail)
        last = tail.last_line
        if not tail.is_readable or last is None or last.position < place.position:
            return False
        logged = await self._query(lambda connection: store.read_line_position_at(connection, last.position))
        return logged is not None and (logged.key, logged.event_id) == (key, last.event_id)

    # --- rebuilding -------------------------------------------------------------------------------------------

    async def _load_retractions(self, upto: int) -> None:
        if self._retractions_until < upto:
            self._retractions.apply(
                await self._query(partial(store.read_retracting_events, after=self._retractions_until))
            )
            self._retractions_until = upto

    async def _rebuild_erased(self, erased_ids: Sequence[str], upto: int) -> None:
        places = await self._query(lambda connection: store.read_line_positions_of(connection, erased_ids, upto=upto))
        for key in sorted({place.key for place in places}):
            await self._build_file(key, upto)

    async def _build_file(self, key: FileKey, upto: int) -> bool:
        """Make a file what the log says up to a position; return whether it differed."""
        self._tails.pop(key, None)
        file, tail = EventFile.of(self.root, key), FileTail()
        while True:
            after = tail.last_line.position if tail.last_line else 0
            events = await self._query(
                partial(store.read_file_events, key=key, after=after, upto=upto, limit=BATCH_EVENTS)
            )
            if not events:
                break
            lines = [(event, encode_line(self._retractions.effective_event(event))) for event in events]
            tail = await _finish_write(file.build, lines, tail)
        if tail.last_line is None:
            return await asyncio.to_thread(file.remove)
        changed = await _finish_write(file.install_built)
        self._tails[key] = tail
        return changed

    async def _last_positions(self, upto: int, on_progress: OnProgress | None) -> dict[FileKey, LinePosition]:
        """Return every file that the log needs, with the last event in it."""
        last: dict[FileKey, LinePosition] = {}
        after = 0
        while places := await self._query(
            partial(store.read_line_positions, after=after, upto=upto, limit=POSITIONS_PER_READ)
        ):
            last |= {place.key: place for place in places}
            after = places[-1].position
            if on_progress is not None:
                on_progress(after, upto)
        return last

    async def _query(self, question: Callable[[Transaction], T]) -> T:
        return await self._log.database.read(question)


async def _finish_write(write: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Write in a thread. A cancelled caller waits for it, so that no other write begins before it ends."""
    return await finish_despite_cancel(asyncio.to_thread(write, *args, **kwargs), WRITE_TIMEOUT)


async def read_exported_position(root: Path, events: EventLog) -> int:
    """Return the position in the log that the files below a root have reached; 0 if they are gone."""
    return 0 if await _is_missing(root, events) else await events.watermark(JSONL.name)


async def _is_missing(root: Path, events: EventLog) -> bool:
    """Return whether the files are gone: the settings name another folder, or the folder was removed."""
    return not await asyncio.to_thread((root / "events").exists) and await events.watermark(JSONL.name) > 0
