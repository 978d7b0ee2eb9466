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

from sqlalchemy import Connection

from sync.clock import Clock
from sync.jobs import to_its_end
from sync.log import session_store
from sync.log import store as log_store
from sync.log.log import Log
from sync.log.model import Event, Query, forgotten_by
from sync.log.sessions import ABOUT, Session, to_json
from sync.log.withdrawn import Withdrawn
from sync.tree import index, store
from sync.tree.files import EventFile, Tail, event_files, meta_files, remove_unfinished, write_changed
from sync.tree.index import Index
from sync.tree.model import FileKey, is_month, key_of, line, month_of, plain
from sync.tree.store import FOLLOWER, RULES, Place

T = TypeVar("T")
P = ParamSpec("P")

FORMAT: Final = 1  # of lines and small files; raised, it has every tree built anew
BATCH: Final = 500  # events between two watermarks
PLACES: Final = 5_000  # events looked at in one read: nobody waits long for the reader
AFTER_A_START: Final = 0.5  # seconds; the first answer does not wait for files
BETWEEN_BATCHES: Final = 0.05  # seconds; a burst of single events comes as a few appends
WRITING_MAY_TAKE: Final = 2.0  # seconds that one who leaves waits for a file
MOST_KNOWN: Final = 10_000  # sessions remembered as already written

log = logging.getLogger(__name__)


class Told(Protocol):
    """Hears how far something long has come: so many of so many events."""

    def __call__(self, done: int, total: int, /) -> None: ...


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What building anew came to. `written`: files that were not what the log says; `removed`: those it knows not."""

    root: Path
    events: int
    files: int
    written: int
    removed: int


class Tree:
    """One profile's tree, below `root`."""

    def __init__(self, root: Path, events: Log, *, clock: Clock) -> None:
        self.root = Path(os.path.realpath(root))
        self._log = events
        self._clock = clock
        self._tails: dict[FileKey, Tail] = {}
        self._withdrawn = Withdrawn()
        self._heard_until = 0
        self._index: Index | None = None
        self._written: set[str] = set()  # sessions about which the next ordinary event says nothing new
        self._alone = asyncio.Lock()

    async def keep_up(self) -> None:
        """Mend what is not what the log says, then take what comes, until cancelled."""
        await asyncio.sleep(AFTER_A_START)
        await self.examine()
        while True:
            seen = self._log.changed.count
            await self.catch_up()
            await asyncio.sleep(BETWEEN_BATCHES)
            await self._log.changed.wait(seen)

    async def catch_up(self, *, batches: int | None = None) -> int:
        """Take all there is, or so many batches; how many events that was. Raises StorageError.

        Who takes only so many does not wait for one who is at it already.
        """
        if batches is not None and self._alone.locked():
            return 0
        async with self._alone:
            if await self._log.watermark(RULES) != FORMAT or await _is_gone(self.root, self._log):
                if batches is not None and await self._log.newest_position() > batches * BATCH:
                    return 0  # a first tree of a long log is nothing for a command, or for one that leaves
                return (await self._rebuild(None)).events
            taken = 0
            while batches is None or batches > 0:
                count = await self._step()
                taken += count
                if count < BATCH:
                    break
                batches = None if batches is None else batches - 1
            return taken

    async def rebuild(self, told: Told | None = None) -> Rebuilt:
        """Make every file what the log says, and take away what it does not know. Raises StorageError."""
        async with self._alone:
            return await self._rebuild(told)

    async def examine(self) -> int:
        """Compare every file's end with the log as far as it was written; how many were built anew.

        What killed writers left half made goes: nobody else writes here.
        """
        async with self._alone:
            await asyncio.to_thread(remove_unfinished, self.root)
            for file in await asyncio.to_thread(lambda: list(event_files(self.root))):
                await asyncio.to_thread(file.tail)  # which cuts half lines
            mark = await self._log.watermark(FOLLOWER)
            mended = 0
            for key, place in (await self._last_places(mark, None)).items():
                if not await self._holds(key, place):
                    await self._build(key, mark)
                    mended += 1
            if mended:
                log.warning("%d files of events were not what the log says and are built anew", mended)
            return mended

    # --- following --------------------------------------------------------------------------------------------

    async def _step(self) -> int:
        mark = await self._log.watermark(FOLLOWER)
        page = await self._log.read(Query(after=mark, limit=BATCH))
        if not page.events:
            return 0
        await self._hear_wishes(page.next_offset)
        files: defaultdict[FileKey, list[Event]] = defaultdict(list)
        for event in page.events:
            files[key_of(event)].append(event)
        for key, events in files.items():
            await self._append(key, events)
        named = [event_id for event in page.events for event_id in forgotten_by(event)]
        if named:
            await self._forget(named, page.next_offset)
        await self._note(page.events, anew=bool(named))
        await self._describe(await self._sessions_to_describe(page.events, named))
        await self._log.database.write(
            lambda connection: log_store.set_watermark(connection, FOLLOWER, page.next_offset, self._clock)
        )
        return len(page.events)

    async def _append(self, key: FileKey, events: Sequence[Event]) -> None:
        file = EventFile.of(self.root, key)
        tail = self._tails.pop(key, None)  # and is kept again when all went well
        if tail is None:
            tail = await asyncio.to_thread(file.tail)
            if not await self._follows(key, tail, events[0].position):
                await self._build(key, events[-1].position)
                return
        known = tail.last.position if tail.last else 0
        lines = [(event, line(self._withdrawn.left_of(event))) for event in events if event.position > known]
        if lines:
            tail = await _whole(file.append, lines, tail)
        self._tails[key] = tail

    async def _follows(self, key: FileKey, tail: Tail, position: int) -> bool:
        """Whether a file holds what the log says before a position, as far as its end tells."""
        last = tail.last
        if not tail.readable:
            return False
        if last is not None:
            place = await self._asked(lambda connection: store.place_at(connection, last.position))
            if place is None or (place.key, place.event_id) != (key, last.event_id):
                return False
        after = last.position if last else 0
        return not await self._asked(
            lambda connection: store.of_file(connection, key, after=after, upto=position - 1, limit=1)
        )

    async def _holds(self, key: FileKey, place: Place) -> bool:
        """Whether a file ends with this event, or with one that comes later in the log."""
        tail = await asyncio.to_thread(EventFile.of(self.root, key).tail)
        last = tail.last
        if not tail.readable or last is None or last.position < place.position:
            return False
        found = await self._asked(lambda connection: store.place_at(connection, last.position))
        return found is not None and (found.key, found.event_id) == (key, last.event_id)

    # --- forgetting -------------------------------------------------------------------------------------------

    async def _hear_wishes(self, upto: int) -> None:
        if self._heard_until < upto:
            self._withdrawn.hear(await self._asked(partial(store.taking_back, after=self._heard_until)))
            self._heard_until = upto

    async def _forget(self, named: Sequence[str], upto: int) -> None:
        places = await self._asked(lambda connection: store.places_of(connection, named, upto=upto))
        for key in sorted({place.key for place in places}):
            await self._build(key, upto)

    # --- building ---------------------------------------------------------------------------------------------

    async def _build(self, key: FileKey, upto: int) -> bool:
        """Make a file what the log says up to a position; whether it was anything else."""
        self._tails.pop(key, None)
        file, tail = EventFile.of(self.root, key), Tail()
        while True:
            after = tail.last.position if tail.last else 0
            events = await self._asked(partial(store.of_file, key=key, after=after, upto=upto, limit=BATCH))
            if not events:
                break
            piece = [(event, line(self._withdrawn.left_of(event))) for event in events]
            tail = await _whole(file.build, piece, tail)
        if tail.last is None:
            return await asyncio.to_thread(file.remove)
        changed = await _whole(file.take_built)
        self._tails[key] = tail
        return changed

    async def _rebuild(self, told: Told | None) -> Rebuilt:
        head = await self._log.newest_position()
        await self._hear_wishes(head)
        self._tails.clear()
        self._written.clear()
        keys = await self._last_places(head, told)
        written = removed = 0
        for key in sorted(keys):
            written += await self._build(key, head)
        kept = {EventFile.of(self.root, key).path for key in keys}
        for file in await asyncio.to_thread(lambda: list(event_files(self.root))):
            if file.path not in kept:
                removed += await asyncio.to_thread(file.remove)
        await self._note((), anew=True)
        described = await self._describe(await self._asked(lambda connection: list(session_store.all_ids(connection))))
        for path in await asyncio.to_thread(lambda: list(meta_files(self.root))):
            if path not in described and is_month(path.parent.name):
                with suppress(FileNotFoundError):
                    await asyncio.to_thread(path.unlink)
                removed += 1

        def settled(connection: Connection) -> None:
            log_store.set_watermark(connection, FOLLOWER, head, self._clock)
            log_store.set_watermark(connection, RULES, FORMAT, self._clock)

        await self._log.database.write(settled)
        return Rebuilt(self.root, head, len(keys), written, removed)

    async def _last_places(self, upto: int, told: Told | None) -> dict[FileKey, Place]:
        """Every file that the log asks for, with the last event in it."""
        last: dict[FileKey, Place] = {}
        after = 0
        while found := await self._asked(partial(store.places, after=after, upto=upto, limit=PLACES)):
            last |= {place.key: place for place in found}
            after = found[-1].position
            if told is not None:
                told(after, upto)
        return last

    # --- small files ------------------------------------------------------------------------------------------

    async def _note(self, events: Sequence[Event], *, anew: bool) -> None:
        """Bring `index/` up to the log."""
        folder = self.root / "index"
        if self._index is None and not anew:
            self._index = await asyncio.to_thread(_read_index, folder)
            anew = self._index is None
        if self._index is None or anew:
            self._index = await self._asked(self._whole_index)
        if not self._index.note(map(self._withdrawn.left_of, events)) and not anew:
            return
        for name, data in self._index.files().items():
            await asyncio.to_thread(write_changed, folder / f"{name}.json", data)

    def _whole_index(self, connection: Connection) -> Index:
        found = Index(projects=store.projects(connection))
        for project_id, session_id in store.sessions_by_project(connection):
            found.sessions.setdefault(project_id, set()).add(session_id)
        for event in store.tagged(connection):
            found.note_tags(self._withdrawn.left_of(event))
        return found

    async def _sessions_to_describe(self, events: Sequence[Event], named: Sequence[str]) -> list[str]:
        asked = {event.session_id for event in events if event.type in ABOUT or event.session_id not in self._written}
        if named:
            asked |= set(await self._asked(lambda connection: store.session_ids_of(connection, named)))
        return sorted(asked - {""})

    async def _describe(self, session_ids: Sequence[str]) -> set[Path]:
        """Write what there is to say about sessions; the files of those about which there is anything."""
        found = await self._asked(
            lambda connection: session_store.sessions(connection, session_ids, self._withdrawn.left_of)
        )
        paths = set()
        for session in found:
            path = self.root / _meta_path(session)
            if session.announced:
                await asyncio.to_thread(write_changed, path, index.text(to_json(session)))
                paths.add(path)
            else:  # it never was, or what was said of it is forgotten
                await asyncio.to_thread(path.unlink, missing_ok=True)
            if session.ended_at is None and len(self._written) < MOST_KNOWN:
                self._written.add(session.span.session_id)
            else:
                self._written.discard(session.span.session_id)
        return paths

    async def _asked(self, question: Callable[[Connection], T]) -> T:
        return await self._log.database.read(question)


async def _whole(write: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Write in a thread; whoever is cancelled waits for it, so that nobody else begins before it has ended."""
    return await to_its_end(asyncio.to_thread(write, *args, **kwargs), WRITING_MAY_TAKE)


def _meta_path(session: Session) -> Path:
    return Path("sessions", month_of(session.span.first_ms), f"{plain(session.span.session_id)}.meta.json")


def _read_index(folder: Path) -> Index | None:
    try:
        return index.read({name: (folder / f"{name}.json").read_bytes() for name in index.FILES})
    except OSError:
        return None


async def written(root: Path, events: Log) -> int:
    """The position in the log up to which the files below a root have come; 0 where they are gone."""
    return 0 if await _is_gone(root, events) else await events.watermark(FOLLOWER)


async def _is_gone(root: Path, events: Log) -> bool:
    """Whether nothing lies there of what was written: another folder was named, or somebody removed it."""
    return not await asyncio.to_thread((root / "events").exists) and await events.watermark(FOLLOWER) > 0
