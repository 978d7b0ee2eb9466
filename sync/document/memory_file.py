"""Keeps the log and the memory file telling the same story.

`settle()` is the whole of it: what the log says is put into the newest version, what a hand did to the file becomes
events, and if the two differ the file is written. It can be called at any time, from any cause, as often as one likes.

Decisions
    A version is stored before it is written to the file, together with the events or the watermark it stands for. A
    crash between the two leaves a file that equals an older version: the next call writes the newer one.
    Our own write equals a known version, so it is no news: no timer suppresses echoes.
    Hand edits are recorded in one transaction with the versions that contain them; only `exchange_recorded` events are
    followed, so nothing that came from the file is ever applied to it again (its text in the log is redacted).
    An empty, vanished or mostly-shrunk file is no mass delete. An empty or missing one is filled again when there is
    something new to write; a mostly-shrunk one is left alone until it is explained.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from sync.clock import Clock, milliseconds, uuid7
from sync.document import store
from sync.document.app_cache import read_content
from sync.document.capture import EXCHANGE, applied, operation_drafts
from sync.document.edit import edit_entry, insert_entry, remove_entry, set_footer
from sync.document.labels import next_label, parse_time, time_label
from sync.document.model import (
    Document,
    Entry,
    EntryAdded,
    EntryEdited,
    EntryRemoved,
    Operation,
    Snapshot,
    Version,
    encode,
)
from sync.document.parse import parse
from sync.document.plan import choose_base, is_suspicious, plan
from sync.document.surface import Sleep, stable_read
from sync.document.template import template
from sync.errors import DocumentChanged, DocumentUntouchable, StorageError
from sync.files import Probe, Stamp, compare_and_swap, sha256, stamp
from sync.log import store as log_store
from sync.log.log import Log
from sync.log.model import Event, Origin
from sync.redaction import Redactor

FOLLOWER: Final = "document"  # how far the log is in the versions
ON_DISK: Final = "document.on_disk"  # the newest version that was seen in, or written to, the file
ATTEMPTS: Final = 5  # rounds against an editor that saves at the same moment; the next event starts over

log = logging.getLogger(__name__)


class Notice(StrEnum):
    """What `status` says about the file."""

    MASS_DELETE = "suspicious_mass_delete"
    MISSING = "document_missing"
    UNTOUCHABLE = "document_untouchable"
    NOT_UTF8 = "document_not_utf8"
    LARGE_ENTRY = "entry_too_large"
    APP_CACHE = "app_cache_unreadable"


class _May(Enum):
    """What may be done to the file after it was read."""

    WRITE = "write"
    WRITE_NEWS = "write news"  # it is empty or gone: fill it again only with something it never had
    NOTHING = "nothing"  # it is not understood, or a person has to say what was meant


@dataclass(frozen=True, slots=True)
class DocumentView:
    """The newest known document. `exists`: there is a file or an event behind it, not only the template."""

    document: Document
    exists: bool
    updated_at: str | None

    @property
    def text(self) -> str:
        return self.document.text

    @property
    def sha256(self) -> str:
        return sha256(encode(self.document))


class MemoryFile:
    """The memory file of one profile. Only the holder of the sidecar role calls `settle`; anybody may `view`."""

    def __init__(
        self,
        path: Path,
        events: Log,
        redactor: Redactor,
        *,
        clock: Clock,
        keep_versions: int,
        app_cache: Path | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.path = path
        self.notices: set[Notice] = set()
        self._log = events
        self._redactor = redactor.for_leaving()
        self._clock = clock
        self._keep = keep_versions
        self._app_cache = app_cache
        self._sleep = sleep
        self._turn = asyncio.Lock()
        self._looked: Stamp | None = None

    @property
    def looked_at(self) -> bool:
        """Whether the file is, as far as `stat` can tell, as it was when it was last taken in or written."""
        return stamp(self.path) == self._looked

    async def settle(self) -> None:
        """Bring file, versions and log together. Raises StorageError; an untouchable file is only noted."""
        async with self._turn:
            await self._settle()

    async def look(self) -> None:
        """Settle unless the file is as it was when somebody last looked; waits for a look that is under way."""
        if not self.looked_at:
            async with self._turn:
                if not self.looked_at:
                    await self._settle()

    async def _settle(self) -> None:
        await self._take_in_app_cache()
        for _ in range(ATTEMPTS):
            seen = stamp(self.path)
            known = await self._newest()
            disk = await stable_read(self.path, self._sleep, known=known.sha256 if known else None)
            may = await self._take_in(disk)
            current = await self._follow()
            self._looked = seen  # only now: whoever asks before shall wait until the edit is taken in
            if current is None or not await self._worth_writing(disk, current, may):
                return
            try:
                await self._write(disk, current)
            except DocumentChanged:
                continue
            return

    async def view(self) -> DocumentView:
        """The newest version with what the log has besides, whether or not the file has it yet."""

        def looking(connection: Connection) -> DocumentView:
            current = store.newest(connection, store.FILE)
            pending = self._pending(connection)
            snapshot = applied(self._start(current), pending)
            updated = pending[-1].ts if pending else store.newest_at(connection, store.FILE)
            return DocumentView(snapshot.document, exists=current is not None or bool(pending), updated_at=updated)

        return await self._log.database.read(looking)

    async def _take_in(self, disk: Probe | None) -> _May:
        """Make events of what a hand did; says what may be done to the file now."""
        self.notices -= {Notice.MISSING, Notice.MASS_DELETE, Notice.UNTOUCHABLE}
        current = await self._newest()
        if disk is None:
            return _May.WRITE_NEWS
        if current is not None and disk.sha256 == current.sha256:
            await self._log.database.write(lambda connection: self._seen_on_disk(connection, current))
            return _May.WRITE
        try:
            document = parse(disk.data)
        except DocumentUntouchable:
            self.notices.add(Notice.UNTOUCHABLE)
            return _May.NOTHING
        if document.is_blank:
            return _May.WRITE_NEWS
        self.notices.discard(Notice.NOT_UTF8)
        if document.encoding != "utf-8":
            self.notices.add(Notice.NOT_UTF8)  # it is read, and written in its own encoding
        recorded = await self._log.database.write(lambda connection: self._record_hand(connection, disk, document))
        if recorded is None:
            self.notices.add(Notice.MASS_DELETE)
            return _May.NOTHING
        if recorded:
            self._log.changed.set()
        return _May.WRITE

    async def _worth_writing(self, disk: Probe | None, current: Version, may: _May) -> bool:
        if may is _May.WRITE:
            return disk is None or disk.sha256 != current.sha256
        if may is _May.NOTHING:
            return False
        on_disk = await self._log.database.read(lambda connection: log_store.watermark(connection, ON_DISK))
        if current.number > on_disk:
            return True
        self.notices.add(Notice.MISSING if disk is None else Notice.MASS_DELETE)
        return False

    def _record_hand(self, connection: Connection, disk: Probe, document: Document) -> int | None:
        """In one transaction: the events of a hand edit and the versions that contain it.

        Returns how many events it made, or None where a person has to say first what was meant.
        """
        current = store.newest(connection, store.FILE)
        ring = self._loadable(connection, disk, document)
        unknown = not ring or _older_than_all(document, ring)
        base = None if unknown else choose_base(document, ring)
        if base is not None and base.sha256 == disk.sha256:
            return 0  # an older version of ours: nothing was typed
        if current is not None and not unknown and is_suspicious(current, document, base):
            return None
        planned = plan(base, current, document, self._new_id)
        origin = Origin.IMPORTED if current is None else Origin.USER
        recorded = self._record(connection, planned.operations, origin)
        seen = self._append(connection, planned.observed, "hand")
        self._seen_on_disk(connection, seen)
        if planned.must_write:
            self._append(connection, self._labelled(planned.snapshot, current), "merged")
        return recorded

    def _loadable(self, connection: Connection, disk: Probe, document: Document) -> list[Version]:
        """The versions an editor can have loaded: what never was on disk is nobody's base, unless the file names it."""
        on_disk = log_store.watermark(connection, ON_DISK)
        found = store.candidates(connection, store.FILE, disk.sha256, document.label)
        return [
            version
            for version in found
            if version.number <= on_disk or version.label == document.label or version.sha256 == disk.sha256
        ]

    async def _take_in_app_cache(self) -> None:
        """What the app wrote into its own cache counts as a hand edit of what the cache held before."""
        if self._app_cache is None:
            return
        try:
            content = await read_content(self._app_cache)
            document = None if content is None else parse(content)
        except (StorageError, DocumentUntouchable) as error:
            self.notices.add(Notice.APP_CACHE)
            log.warning("the app's cache was left alone: %s", error.kind)
            return
        self.notices.discard(Notice.APP_CACHE)
        if content is not None and document is not None and not document.is_blank:
            digest = sha256(content)
            await self._log.database.write(lambda connection: self._record_app(connection, digest, document))

    def _record_app(self, connection: Connection, digest: str, document: Document) -> None:
        known = store.newest(connection, store.APP_CACHE)
        if known is not None and (known.sha256 == digest or is_suspicious(known, document)):
            return
        current = store.newest(connection, store.FILE)
        if known is None and current is None and not self.looked_at and self.path.exists():
            return  # the file comes first; the cache is compared with it by the next call
        ring = store.candidates(connection, store.APP_CACHE, digest, document.label)
        planned = plan(choose_base(document, ring), current, document, self._new_id)
        self._record(connection, planned.operations, Origin.IMPORTED if known is None else Origin.USER)
        if planned.operations:
            merged = _folded(self._start(current), planned.operations)
            self._append(connection, self._labelled(merged, current), "app_cache")
        store.append(connection, store.APP_CACHE, planned.observed, "hand", self._clock, self._keep)

    async def _follow(self) -> Version | None:
        """Put what the log has since recorded into a new version; the newest version."""

        def following(connection: Connection) -> Version | None:
            current = store.newest(connection, store.FILE)
            pending = self._pending(connection)
            if not pending:
                return current
            snapshot = self._labelled(applied(self._start(current), pending), current)
            log_store.set_watermark(connection, FOLLOWER, pending[-1].position, self._clock)
            return self._append(connection, snapshot, "log")

        if await self._log.database.read(self._pending):
            return await self._log.database.write(following)
        return await self._newest()

    async def _newest(self) -> Version | None:
        return await self._log.database.read(lambda connection: store.newest(connection, store.FILE))

    async def _write(self, disk: Probe | None, current: Version) -> None:
        """Compare-and-swap, then note that the file has it. Raises DocumentChanged, StorageError."""
        data = encode(current.snapshot.document)
        await asyncio.to_thread(compare_and_swap, self.path, disk.sha256 if disk else None, data)
        self._looked = stamp(self.path)
        await self._log.database.write(lambda connection: self._seen_on_disk(connection, current))

    def _pending(self, connection: Connection) -> list[Event]:
        mark = log_store.watermark(connection, FOLLOWER)
        return log_store.of_device(connection, self._log.device_id, after=mark, types=[EXCHANGE])

    def _record(self, connection: Connection, operations: Sequence[Operation], origin: Origin) -> int:
        drafts, too_large = operation_drafts(operations, self._redactor, origin)
        if too_large:
            self.notices.add(Notice.LARGE_ENTRY)
        if drafts:
            self._log.record_in(connection, drafts)
        return len(drafts)

    def _append(self, connection: Connection, snapshot: Snapshot, cause: str) -> Version:
        return store.append(connection, store.FILE, snapshot, cause, self._clock, self._keep)

    def _seen_on_disk(self, connection: Connection, version: Version) -> None:
        if log_store.watermark(connection, ON_DISK) != version.number:
            log_store.set_watermark(connection, ON_DISK, version.number, self._clock)

    def _labelled(self, snapshot: Snapshot, current: Version | None) -> Snapshot:
        """With a footer of its own: the label names the version."""
        return set_footer(snapshot, next_label(current.label if current else None, self._clock.now()))

    def _start(self, current: Version | None) -> Snapshot:
        if current is not None:
            return current.snapshot
        return Snapshot(parse(template(time_label(self._clock.now()))))

    def _new_id(self) -> str:
        """`ent_` and 32 letters: no digits, so that no redaction rule can take an id for a number."""
        digits = uuid7(milliseconds(self._clock.now()), self._clock.random_bytes).hex
        return "ent_" + digits.translate(_LETTERS)


_LETTERS: Final = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


def _older_than_all(document: Document, ring: Sequence[Version]) -> bool:
    """Whether the file was loaded from a version so old that we no longer have it: then nothing in it is a deletion."""
    loaded = parse_time(document.label or "")
    oldest = parse_time(ring[0].label or "") if ring else None
    known = any(version.label == document.label for version in ring)
    return loaded is not None and oldest is not None and not known and loaded < oldest


def _folded(snapshot: Snapshot, operations: Sequence[Operation]) -> Snapshot:
    """Operations of another surface applied to this one; what is gone here and edited there comes back."""
    for operation in operations:
        here = operation.entry_id in snapshot.ids
        match operation:
            case EntryAdded() if not here:
                entry = Entry(operation.entry_id, operation.text, operation.section)
                snapshot = insert_entry(snapshot, entry, operation.after)
            case EntryEdited() if here:
                snapshot = edit_entry(snapshot, operation.entry_id, operation.text)
            case EntryEdited():
                snapshot = insert_entry(snapshot, Entry(operation.entry_id, operation.text, operation.section), None)
            case EntryRemoved() if here:
                snapshot = remove_entry(snapshot, operation.entry_id)
            case _:
                continue  # added or removed on both sides
    return snapshot
