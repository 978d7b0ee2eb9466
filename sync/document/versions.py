"""Every known state of the document, and the transactions that make a new one.

Each method is one transaction: the events of an edit, the versions that contain it and the watermark they stand for
become durable together or not at all. Nothing here touches the file; `memory_file` does, with what it finds here.
A device's own document follows the events of the device. Nothing that was typed into it is ever applied to it again,
since its text in the log is redacted; what was typed before the memory was taken off the device, restored from a backup
or begun anew comes back (`returned`). A shared one (`sharing`) is made anew from all that the log knows.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Final

from sqlalchemy import Connection

from sync.db.tables import ON_DISK, RECOVERY
from sync.digests import sha256
from sync.document import forgetting, store
from sync.document.capture import RESTORED
from sync.document.handed_out import HandedOut
from sync.document.labels import place_in_time
from sync.document.ledger import DocumentView, Edited, Footing, elsewhere, folded, start
from sync.document.model import (
    Document,
    EntryRemoved,
    Version,
    encode,
)
from sync.document.parse import in_form_of
from sync.document.plan import choose_base, is_cut_off, is_suspicious, lacks_end, plan
from sync.document.recovering import RecoveringLedger
from sync.errors import InvalidInput
from sync.log import store as log_store
from sync.log.model import Draft, Origin

HASH_BEGINNING: Final = re.compile(r"[0-9a-f]{7,64}")
SEE_HISTORY: Final = "`xiaobai-memory history` (`memory/history`) lists the versions and their hashes."


@dataclass(frozen=True, slots=True)
class Standing:
    """`newest`; the number of the version that the file had last; whether `follow` would find nothing to do."""

    newest: Version | None
    on_disk: int
    at_rest: bool

    @property
    def sha256(self) -> str | None:
        return self.newest.sha256 if self.newest else None


@dataclass(frozen=True, slots=True)
class Due:
    """What `follow` finds to do: somebody wishes something gone, the log is ahead of the newest version.

    `has_recovered`: nothing more comes back that could name a held line.
    """

    wished: bool
    is_behind: bool
    newest: Version | None
    has_recovered: bool


class Versions(RecoveringLedger):
    """The versions of one profile's document."""

    def __init__(self, footing: Footing) -> None:
        super().__init__(footing)
        self.handed_out = HandedOut()
        self._cleaned: date | None = None  # the day on which nothing was left to fold
        self._first: Document | None = None  # the file while it is being taken in
        self.can_answer = False  # whether a view shows more than the template beside a file that is still unread

    async def newest(self) -> Version | None:
        return await self._log.database.read(lambda connection: store.newest(connection, store.FILE))

    async def standing(self, *, keep_days: int = -1) -> Standing:
        """How things stand; one look, for most of the time there is nothing to do."""
        cleaned = keep_days < 0 or self._cleaned == self._clock.now().date()

        def looking(connection: Connection) -> Standing:
            current = store.newest(connection, store.FILE)
            on_disk = log_store.watermark(connection, ON_DISK)
            if current is None or current.number != on_disk or not cleaned:
                return Standing(current, on_disk, at_rest=False)
            busy = forgetting.is_asked(connection) or self._is_behind(connection, current)
            return Standing(current, on_disk, at_rest=not (busy or self._has_recovered(connection)))

        standing = await self._log.database.read(looking)
        self.can_answer = standing.newest is not None
        return standing

    async def view(self) -> DocumentView:
        """The newest version with what the log has besides. What was shown can be the base of a `save`.

        Without a version it is the file that is being taken in, whose lines have no ids yet.
        """
        first = self._first
        view = await self._log.database.read(lambda connection: self._shown(connection, first))
        if view.version or first is None:
            self.handed_out.add(view.snapshot, view.version)
        return view

    async def history(self, limit: int) -> list[store.HistoryRow]:
        """The newest versions, newest first."""
        return await self._log.database.read(lambda connection: store.history(connection, store.FILE, limit))

    async def is_lost(self, document: Document | None) -> bool:
        """Whether this file (None: there is none) looks lost rather than edited."""

        def looking(connection: Connection) -> bool:
            current = store.newest(connection, store.FILE)
            if current is None or document is None:
                return current is not None and not current.snapshot.document.is_blank
            written = _possible_bases(connection, document_sha256, document)
            ring = _loadable(connection, written, document_sha256, document)
            unknown = not ring or _older_than_all(document, ring)
            return not unknown and _looks_lost(current, document, choose_base(document, ring), written)

        document_sha256 = "" if document is None else sha256(encode(document))
        return await self._log.database.read(looking)

    async def seen_on_disk(self, version: Version) -> None:
        await self._log.database.write(lambda connection: self._seen_on_disk(connection, version))

    async def follow(self, *, keep_days: int = -1) -> Version | None:
        """Put what the log has since recorded into a new version, and carry out what it asks to forget; the newest.

        Days older than `keep_days` are folded, a few at a time, which is looked for once a day; -1 keeps them all.
        """
        due = await self._log.database.read(self._due)
        if due.wished:
            while await self._log.database.read(forgetting.is_asked):
                if (asked := await self._in_transaction(self._forget)) is not None:
                    self.handed_out.clear(asked.cleared)
            await self._log.database.purge(patient=False)
            due = await self._log.database.read(self._due)
        newest = await self._in_transaction(self._followed) if due.is_behind else due.newest
        if due.has_recovered:
            newest = await self._in_transaction(self._end_recovery)
            self._log.changed.set()
        today = self._clock.now().date()
        if keep_days >= 0 and today != self._cleaned:
            if await self._in_transaction(lambda connection: self._fold_days(connection, today, keep_days)):
                self._log.changed.set()
            else:
                self._cleaned = today
            return await self.newest()
        return newest

    def _due(self, connection: Connection) -> Due:
        current = store.newest(connection, store.FILE)
        behind, recovered = self._is_behind(connection, current), self._has_recovered(connection)
        return Due(forgetting.is_asked(connection), behind, current, recovered)

    async def take_in(self, digest: str, document: Document, *, meant: bool = False) -> Edited | None:
        """What a hand did to the file. None where a person has to say first what was meant; `meant` says it."""
        self._first, self.can_answer = document, True
        try:
            return await self._edited(lambda connection: self._record_hand(connection, digest, document, meant=meant))
        finally:
            self._first = None

    async def take_in_app_cache(self, digest: str, document: Document, *, file_first: bool) -> Edited | None:
        """What the app wrote into its own cache: a hand edit of what the cache held before."""
        return await self._edited(
            lambda connection: self._record_app(connection, digest, document, file_first=file_first)
        )

    async def save(self, document: Document, base_sha256: str | None, *, meant: bool) -> Edited:
        """The app's settings page: an edit of what `load` showed under that hash. InvalidInput where it looks lost."""
        edited = await self._edited(lambda connection: self._record_save(connection, document, base_sha256, meant))
        if edited is None:
            raise InvalidInput(
                "most of the memory is missing in this document",
                field="document",
                hint="If that is meant, call again with allowLoss: true; the versions before it are kept.",
            )
        return edited

    async def set_aside(self, document: Document, *, to_forget: bool = False) -> bool:
        """Keep what stands in the file as a version, because the newest one is about to be written over it.

        `to_forget`: only where somebody wishes something gone, which goes from this version too then. Whether it was.
        """
        if to_forget and not await self._log.database.read(forgetting.is_wished):
            return False
        await self._in_transaction(lambda connection: self._record_aside(connection, document))
        return True

    async def restore(self, digest: str) -> Edited:
        """Bring an older version back, as new events. `digest`: its hash, or a beginning of it that is its alone.

        Raises InvalidInput if it is no such beginning, or names no version or several.
        """
        wanted = digest.lower()
        if HASH_BEGINNING.fullmatch(wanted) is None:
            message = "the hash of a version is 64 hexadecimal digits, of which the first 7 are enough"
            raise InvalidInput(message, field="sha256", hint=SEE_HISTORY)
        edited = await self._edited(lambda connection: self._record_restore(connection, wanted))
        assert edited is not None
        return edited

    # --- transactions ----------------------------------------------------------------------------------------

    def _record_hand(self, connection: Connection, digest: str, document: Document, *, meant: bool) -> Edited | None:
        if _is_found(connection, digest, document) and not meant:
            return self._record_found(connection, digest, document)
        known = store.newest(connection, store.FILE)
        current = self._followed(connection, beyond=document.label)
        written = _possible_bases(connection, digest, document)
        ring = _loadable(connection, written, digest, document)
        unknown = not ring or _older_than_all(document, ring)
        base = current if meant else None if unknown else choose_base(document, ring)
        if base is not None and base.sha256 == digest:
            return Edited((), digest)  # an older version of ours: nothing was typed
        if current and not unknown and not meant and _looks_lost(current, document, base, written):
            return None
        loaded = None if unknown else choose_base(document, ring)
        stripped = self._stripped(connection, document, loaded, digest)
        planned = plan(base, current, stripped.document, self._new_id)
        origin = Origin.IMPORTED if known is None else Origin.USER
        self._record(connection, planned, base, origin)
        seen = self._append(connection, planned.observed, "hand", digest=digest)
        self._erased.mark(connection, stripped, seen)
        self._seen_on_disk(connection, seen)
        if planned.must_write or self._sharing is not None or stripped.erased:
            finished = self._finished(connection, planned.snapshot, current, document.label)
            if finished.document != planned.observed.document or stripped.erased:
                seen = self._append(connection, finished, "merged")
        return Edited(planned.operations, seen.sha256)

    def _record_save(
        self, connection: Connection, document: Document, base_sha256: str | None, meant: bool
    ) -> Edited | None:
        current = self._followed(connection)
        base = self._base_of_save(connection, document, base_sha256, meant=meant)
        if current is not None and base is not None and not meant and is_suspicious(current, document, base):
            return None
        if (known := base or current) is not None:
            document = in_form_of(document, known.snapshot.document)
        stripped = self._stripped(connection, document, base, base_sha256 or "")
        planned = plan(base, current, stripped.document, self._new_id)
        self._record(connection, planned, base, Origin.USER)
        version = self._append(connection, self._finished(connection, planned.snapshot, current), "saved")
        self._erased.mark(connection, stripped, version)  # an app that does not load again still shows them
        return Edited(planned.operations, version.sha256)

    def _record_restore(self, connection: Connection, beginning: str) -> Edited:
        digest, *others = store.hashes(connection, store.FILE, beginning) or [""]
        if others:
            raise InvalidInput("several versions have a hash that begins so", field="sha256", hint="Give more digits.")
        wanted = store.find(connection, store.FILE, digest)
        if wanted is None:
            raise InvalidInput("no version has this hash", field="sha256", hint=SEE_HISTORY)
        current = self._followed(connection)
        planned = plan(current, current, wanted.snapshot.document, self._new_id)
        told = self._redactor.payload({"sha256": digest, "operations": len(planned.operations)})
        self._log.record_in(connection, [Draft(type=RESTORED, payload=told, origin=Origin.USER)])
        self._record(connection, planned, current, Origin.USER)
        version = self._append(connection, self._finished(connection, planned.snapshot, current), "restored")
        return Edited(planned.operations, version.sha256)

    def _record_app(
        self, connection: Connection, digest: str, document: Document, *, file_first: bool
    ) -> Edited | None:
        """A cache that has lost its lines deletes nothing; but what is new in it was said, and is the next base."""
        known = store.newest(connection, store.APP_CACHE)
        if known is not None and known.sha256 == digest:
            return None
        shrunk = known is not None and is_suspicious(known, document)
        if known is not None and is_cut_off(known.snapshot.document, document):
            return None  # its last line may be half a line
        if known is None and file_first and store.newest(connection, store.FILE) is None:
            return None  # the file comes first; the cache is compared with it by the next call
        current = self._followed(connection)
        ring = store.candidates(connection, store.APP_CACHE, digest, document.label)
        base = store.find(connection, store.APP_CACHE, digest) or choose_base(document, ring)
        stripped = self._stripped(connection, document, base, digest)
        planned = elsewhere(plan(base, current, stripped.document, self._new_id), base, current)
        if shrunk:
            said = tuple(one for one in planned.operations if not isinstance(one, EntryRemoved))
            planned = replace(planned, operations=said)
        if shrunk and not planned.operations:
            return None
        self._record(connection, planned, None, Origin.IMPORTED if known is None else Origin.USER)
        if planned.operations:
            merged = folded(start(current, self._clock), planned.operations)
            self._append(connection, self._finished(connection, merged, current), "app_cache")
        cached = (connection, store.APP_CACHE, planned.observed, "hand", self._clock, self._keep)
        self._erased.mark(connection, stripped, store.append(*cached, digest=digest))
        return Edited(planned.operations, digest)

    # --- parts of them ---------------------------------------------------------------------------------------

    def _base_of_save(
        self, connection: Connection, document: Document, base_sha256: str | None, *, meant: bool
    ) -> Version | None:
        """What the app's text was made from. None where its hash names nothing we know: then nothing is a deletion.

        Without a hash, a text that shares no line with its likely base is no edit of that: it was loaded as a template.
        """
        if base_sha256 is not None:
            return self.handed_out.find(base_sha256) or store.find(connection, store.FILE, base_sha256)
        ring = store.candidates(connection, store.FILE, "", document.label)
        base = choose_base(document, ring)
        if base is None or meant:
            return base
        known = {entry.text for entry in base.snapshot.entries}
        strange = known.isdisjoint(entry.text for entry in document.entries)
        return None if strange or _older_than_all(document, ring) else base


def _looks_lost(current: Version, document: Document, base: Version | None, written: Sequence[Version]) -> bool:
    """Whether a file read from the disk looks lost, or not yet written to its end."""
    cut = lacks_end((base or current).snapshot.document, document)
    return cut or is_suspicious(current, document, base, written=written)


def _possible_bases(connection: Connection, digest: str, document: Document) -> Sequence[Version]:
    """The versions that the file may have been, oldest first.

    One without a label may be the beginning of any that was on disk: somebody may have been asked about it for long.
    """
    found = store.candidates(connection, store.FILE, digest, document.label)
    if document.label is not None or any(version.sha256 == digest for version in found):
        return found
    on_disk = log_store.watermark(connection, ON_DISK)
    begun = store.beginning_with(connection, store.FILE, encode(document), through=on_disk)
    return found if begun is None or begun.number >= found[0].number else [begun, *found]


def _loadable(connection: Connection, written: Sequence[Version], digest: str, document: Document) -> list[Version]:
    """The versions an editor can have loaded: what never was on disk is nobody's base, unless the file names it.

    One that was written as the program died, or as the disk failed, is not known to have been there. No edit is judged
    by it, but a file that is cut off may still be its beginning.
    """
    on_disk = log_store.watermark(connection, ON_DISK)
    return [
        version
        for version in written
        if version.number <= on_disk or version.label == document.label or version.sha256 == digest
    ]


def _older_than_all(document: Document, ring: Sequence[Version]) -> bool:
    """Whether the file was loaded from a version so old that we no longer have it: then nothing in it is a deletion."""
    loaded = place_in_time(document.label)
    oldest = place_in_time(ring[0].label) if ring else None
    known = any(version.label == document.label for version in ring)
    return loaded is not None and oldest is not None and not known and loaded < oldest


def _is_found(connection: Connection, digest: str, document: Document) -> bool:
    """Whether damage took the version that a file was made from: then nobody knows its lines."""
    ring = store.candidates(connection, store.FILE, digest, document.label)
    named = any(version.sha256 == digest or version.label == document.label for version in ring)
    return not named and log_store.watermark(connection, RECOVERY) > 0
