"""The tree as a live view: it follows the log with the watermark `jsonl`, and can be built anew to the same bytes.

Decisions
    Files come first, the watermark after them: a process killed between the two finds lines that it is about to write,
    knows them by their positions, and writes the rest. Nothing stands twice, nothing is missing.
    A file is trusted as far as its last line is the event that the log has at that position. Where it is not (a
    power failure, a restored backup, a hand in the file) the file is built anew from the log.
    Of what a `payload_forgotten` names, the tree shows nothing from that event on, or what it was corrected to, whether
    or not the payload has left the log already; so its bytes do not depend on who was first.
    Only the sidecar, or a command that holds its role, writes here.
"""

import asyncio
import logging
import os
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, ParamSpec, Protocol, TypeVar

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.jsonl import indexes, store
from sync.jsonl.event_file import (
    EventFile,
    FileTail,
    find_event_files,
    find_session_meta_files,
    remove_partial_files,
    write_if_changed,
)
from sync.jsonl.indexes import JsonlIndexes
from sync.jsonl.model import FileKey, encode_line, file_key_of, is_month, month_of, safe_file_name
from sync.jsonl.store import LinePosition
from sync.log import store as log_store
from sync.log.event_types import SESSION_EVENT_TYPES
from sync.log.local_state import rules_name
from sync.log.log import EventLog
from sync.log.model import Event, Query, erased_by
from sync.log.projections.registry import JSONL
from sync.log.retractions import Retractions
from sync.log.sessions import session_store
from sync.log.sessions.model import Session, to_json
from sync.runtime.supervision import finish_despite_cancel

T = TypeVar("T")
P = ParamSpec("P")

FORMAT_VERSION: Final = 1  # of lines and small files; raised, it has every tree built anew
BATCH_EVENTS: Final = 500  # events between two watermarks
POSITIONS_PER_READ: Final = 5_000  # events looked at in one read: nobody waits long for the reader
STARTUP_DELAY: Final = 0.5  # seconds; the first answer does not wait for files
BATCH_DELAY: Final = 0.05  # seconds; a burst of single events comes as a few appends
WRITE_TIMEOUT: Final = 2.0  # seconds that one who leaves waits for a file
MAX_DESCRIBED_SESSIONS: Final = 10_000  # sessions remembered as already written

log = logging.getLogger(__name__)


class JsonlProgress(Protocol):
    """Hears how far something long has come: so many of so many events."""

    def __call__(self, done: int, total: int, /) -> None: ...


@dataclass(frozen=True, slots=True)
class JsonlRebuildResult:
    """What building anew came to. `written`: files that were not what the log says; `removed`: those it knows not."""

    root: Path
    events: int
    files: int
    written: int
    removed: int


class JsonlProjection:
    """One profile's tree, below `root`."""

    def __init__(self, root: Path, events: EventLog, *, clock: Clock) -> None:
        self.root = Path(os.path.realpath(root))
        self._log = events
        self._clock = clock
        self._tails: dict[FileKey, FileTail] = {}
        self._retractions = Retractions()
        self._retractions_until = 0
        self._index: JsonlIndexes | None = None
        self._described_sessions: set[str] = set()  # sessions about which the next ordinary event says nothing new
        self._lock = asyncio.Lock()

    async def run(self) -> None:
        """Mend what is not what the log says, then take what comes, until cancelled."""
        await asyncio.sleep(STARTUP_DELAY)
        await self.repair_files()
        while True:
            seen = self._log.changed.count
            await self.catch_up()
            await asyncio.sleep(BATCH_DELAY)
            await self._log.changed.wait_for_change(seen)

    async def catch_up(self, *, batches: int | None = None) -> int:
        """Take all there is, or so many batches; how many events that was. Raises StorageError.

        Who takes only so many does not wait for one who is at it already.
        """
        if batches is not None and self._lock.locked():
            return 0
        async with self._lock:
            if await self._log.watermark(rules_name(JSONL.name)) != FORMAT_VERSION or await _is_missing(
                self.root, self._log
            ):
                if batches is not None and await self._log.newest_position() > batches * BATCH_EVENTS:
                    return 0  # a first tree of a long log is nothing for a command, or for one that leaves
                return (await self._rebuild(None)).events
            taken = 0
            while batches is None or batches > 0:
                count = await self._step()
                taken += count
                if count < BATCH_EVENTS:
                    break
                batches = None if batches is None else batches - 1
            return taken

    async def rebuild(self, on_progress: JsonlProgress | None = None) -> JsonlRebuildResult:
        """Make every file what the log says, and take away what it does not know. Raises StorageError."""
        async with self._lock:
            return await self._rebuild(on_progress)

    async def repair_files(self) -> int:
        """Compare every file's end with the log as far as it was written; how many were built anew.

        What killed writers left half made goes: nobody else writes here.
        """
        async with self._lock:
            await asyncio.to_thread(remove_partial_files, self.root)
            for file in await asyncio.to_thread(lambda: list(find_event_files(self.root))):
                await asyncio.to_thread(file.read_tail)  # which cuts half lines
            mark = await self._log.watermark(JSONL.name)
            mended = 0
            for key, place in (await self._last_positions(mark, None)).items():
                if not await self._ends_at_or_after(key, place):
                    await self._build_file(key, mark)
                    mended += 1
            if mended:
                log.warning("%d files of events were not what the log says and are built anew", mended)
            return mended

    # --- following --------------------------------------------------------------------------------------------

    async def _step(self) -> int:
        mark = await self._log.watermark(JSONL.name)
        page = await self._log.read(Query(after=mark, limit=BATCH_EVENTS))
        if not page.events:
            return 0
        await self._load_retractions(page.next_offset)
        files: defaultdict[FileKey, list[Event]] = defaultdict(list)
        for event in page.events:
            files[file_key_of(event)].append(event)
        for key, events in files.items():
            await self._append(key, events)
        named = [event_id for event in page.events for event_id in erased_by(event)]
        if named:
            await self._rebuild_erased(named, page.next_offset)
        await self._update_index(page.events, rebuild=bool(named))
        await self._write_session_files(await self._sessions_to_describe(page.events, named))
        await self._log.database.write(
            lambda connection: log_store.set_watermark(connection, JSONL.name, page.next_offset, self._clock)
        )
        return len(page.events)

    async def _append(self, key: FileKey, events: Sequence[Event]) -> None:
        file = EventFile.of(self.root, key)
        tail = self._tails.pop(key, None)  # and is kept again when all went well
        if tail is None:
            tail = await asyncio.to_thread(file.read_tail)
            if not await self._continues_log(key, tail, events[0].position):
                await self._build_file(key, events[-1].position)
                return
        known = tail.last_line.position if tail.last_line else 0
        lines = [
            (event, encode_line(self._retractions.effective_event(event))) for event in events if event.position > known
        ]
        if lines:
            tail = await _finish_write(file.append, lines, tail)
        self._tails[key] = tail

    async def _continues_log(self, key: FileKey, tail: FileTail, position: int) -> bool:
        """Whether a file holds what the log says before a position, as far as its end tells."""
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
        """Whether a file ends with this event, or with one that comes later in the log."""
        tail = await asyncio.to_thread(EventFile.of(self.root, key).read_tail)
        last = tail.last_line
        if not tail.is_readable or last is None or last.position < place.position:
            return False
        found = await self._query(lambda connection: store.read_line_position_at(connection, last.position))
        return found is not None and (found.key, found.event_id) == (key, last.event_id)

    # --- forgetting -------------------------------------------------------------------------------------------

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

    # --- building ---------------------------------------------------------------------------------------------

    async def _build_file(self, key: FileKey, upto: int) -> bool:
        """Make a file what the log says up to a position; whether it was anything else."""
        self._tails.pop(key, None)
        file, tail = EventFile.of(self.root, key), FileTail()
        while True:
            after = tail.last_line.position if tail.last_line else 0
            events = await self._query(
                partial(store.read_file_events, key=key, after=after, upto=upto, limit=BATCH_EVENTS)
            )
            if not events:
                break
            piece = [(event, encode_line(self._retractions.effective_event(event))) for event in events]
            tail = await _finish_write(file.build, piece, tail)
        if tail.last_line is None:
            return await asyncio.to_thread(file.remove)
        changed = await _finish_write(file.install_built)
        self._tails[key] = tail
        return changed

    async def _rebuild(self, on_progress: JsonlProgress | None) -> JsonlRebuildResult:
        head = await self._log.newest_position()
        await self._load_retractions(head)
        self._tails.clear()
        self._described_sessions.clear()
        keys = await self._last_positions(head, on_progress)
        written = removed = 0
        for key in sorted(keys):
            written += await self._build_file(key, head)
        kept = {EventFile.of(self.root, key).path for key in keys}
        for file in await asyncio.to_thread(lambda: list(find_event_files(self.root))):
            if file.path not in kept:
                removed += await asyncio.to_thread(file.remove)
        await self._update_index((), rebuild=True)
        described = await self._write_session_files(
            await self._query(lambda connection: list(session_store.all_session_ids(connection)))
        )
        for path in await asyncio.to_thread(lambda: list(find_session_meta_files(self.root))):
            if path not in described and is_month(path.parent.name):
                with suppress(FileNotFoundError):
                    await asyncio.to_thread(path.unlink)
                removed += 1

        def settled(connection: Transaction) -> None:
            log_store.set_watermark(connection, JSONL.name, head, self._clock)
            log_store.set_watermark(connection, rules_name(JSONL.name), FORMAT_VERSION, self._clock)

        await self._log.database.write(settled)
        return JsonlRebuildResult(self.root, head, len(keys), written, removed)

    async def _last_positions(self, upto: int, on_progress: JsonlProgress | None) -> dict[FileKey, LinePosition]:
        """Every file that the log asks for, with the last event in it."""
        last: dict[FileKey, LinePosition] = {}
        after = 0
        while found := await self._query(
            partial(store.read_line_positions, after=after, upto=upto, limit=POSITIONS_PER_READ)
        ):
            last |= {place.key: place for place in found}
            after = found[-1].position
            if on_progress is not None:
                on_progress(after, upto)
        return last

    # --- small files ------------------------------------------------------------------------------------------

    async def _update_index(self, events: Sequence[Event], *, rebuild: bool) -> None:
        """Bring `index/` up to the log."""
        folder = self.root / "index"
        if self._index is None and not rebuild:
            self._index = await asyncio.to_thread(_read_index, folder)
            rebuild = self._index is None
        if self._index is None or rebuild:
            self._index = await self._query(self._index_of_log)
        if not self._index.add(map(self._retractions.effective_event, events)) and not rebuild:
            return
        for name, data in self._index.render().items():
            await asyncio.to_thread(write_if_changed, folder / f"{name}.json", data)

    def _index_of_log(self, connection: Transaction) -> JsonlIndexes:
        found = JsonlIndexes(projects=store.read_projects(connection))
        for project_id, session_id in store.read_sessions_by_project(connection):
            found.sessions.setdefault(project_id, set()).add(session_id)
        for event in store.read_events_with_tags(connection):
            found.add_tags(self._retractions.effective_event(event))
        return found

    async def _sessions_to_describe(self, events: Sequence[Event], erased_ids: Sequence[str]) -> list[str]:
        asked = {
            event.session_id
            for event in events
            if event.type in SESSION_EVENT_TYPES or event.session_id not in self._described_sessions
        }
        if erased_ids:
            asked |= set(await self._query(lambda connection: store.read_described_session_ids(connection, erased_ids)))
        return sorted(asked - {""})

    async def _write_session_files(self, session_ids: Sequence[str]) -> set[Path]:
        """Write what there is to say about sessions; the files of those about which there is anything."""
        found = await self._query(
            lambda connection: session_store.read_sessions(connection, session_ids, self._retractions.effective_event)
        )
        paths = set()
        for session in found:
            path = self.root / _meta_path(session)
            if session.is_described:
                await asyncio.to_thread(write_if_changed, path, indexes.json_bytes(to_json(session)))
                paths.add(path)
            else:  # it never was, or what was said of it is forgotten
                await asyncio.to_thread(path.unlink, missing_ok=True)
            if session.ended_at is None and len(self._described_sessions) < MAX_DESCRIBED_SESSIONS:
                self._described_sessions.add(session.span.session_id)
            else:
                self._described_sessions.discard(session.span.session_id)
        return paths

    async def _query(self, question: Callable[[Transaction], T]) -> T:
        return await self._log.database.read(question)


async def _finish_write(write: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Write in a thread; whoever is cancelled waits for it, so that nobody else begins before it has ended."""
    return await finish_despite_cancel(asyncio.to_thread(write, *args, **kwargs), WRITE_TIMEOUT)


def _meta_path(session: Session) -> Path:
    return Path("sessions", month_of(session.span.first_ms), f"{safe_file_name(session.span.session_id)}.meta.json")


def _read_index(folder: Path) -> JsonlIndexes | None:
    try:
        return indexes.parse_indexes({name: (folder / f"{name}.json").read_bytes() for name in indexes.FILES})
    except OSError:
        return None


async def read_exported_position(root: Path, events: EventLog) -> int:
    """The position in the log up to which the files below a root have come; 0 where they are gone."""
    return 0 if await _is_missing(root, events) else await events.watermark(JSONL.name)


async def _is_missing(root: Path, events: EventLog) -> bool:
    """Whether nothing lies there of what was written: another folder was named, or somebody removed it."""
    return not await asyncio.to_thread((root / "events").exists) and await events.watermark(JSONL.name) > 0
