"""Open a project's notes: take the lock, read the files, repair INDEX.md, and record manual edits in the log.

Files come before events: after a crash between them the next open finds the files and records them. One lock for all
projects of a data directory serialises writers; writers of other programs are noticed by compare-and-swap.
"""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.clock import Clock, timestamp
from sync.db.engine import Transaction
from sync.errors import DocumentChanged, StorageBusy, StorageError
from sync.log import store
from sync.log.event_catalogue import NOTE_TYPES
from sync.log.event_types import (
    MEMORY_INDEX_UPDATED,
    MEMORY_NOTE_CREATED,
    MEMORY_NOTE_DELETED,
    MEMORY_NOTE_UPDATED,
    NOTE_TEXT_TYPES,
    RETRACTING_TYPES,
)
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import Door, EventDraft, Origin, Query, project_id_for
from sync.notes.audit import AuditState, note_payload
from sync.notes.folder import NONE_TAKEN, NoteFolder, NoteFolderContent, repaired_index
from sync.notes.model import NoteFile, note_id_of
from sync.notes.note_draft import is_chinese
from sync.notes.note_format import parse_note
from sync.runtime.supervision import finish_despite_cancel
from sync.system.process_lock import ProcessLock
from sync.system.repositories import is_in_repository
from sync.system.swap_journal import SwapJournal

LOCK_FILE: Final = "notes.lock"
JOURNAL_FILE: Final = "notes.pending"
LEFTOVER_SECONDS: Final = 60.0  # a running writer of another data directory is younger
LOCK_TIMEOUT: Final = 120.0  # seconds; a writer holds the lock for some tens of milliseconds
WRITE_TIMEOUT: Final = 10.0  # seconds that a cancelled caller waits for a write that has begun
SWAP_ATTEMPTS: Final = 5  # writes of INDEX.md while other programs write it too

NoteEvent = tuple[str, Mapping[str, Any]]  # type and payload


class OpenNotes(msgspec.Struct):
    """A project's notes while the lock is held. `notices`: what was repaired, and what is wrong."""

    folder: NoteFolder
    content: NoteFolderContent
    audit: AuditState
    now: str
    notices: list[str] = msgspec.field(default_factory=list)
    in_repository: bool = False

    @property
    def notes(self) -> dict[str, NoteFile]:
        return self.content.notes

    def is_taken(self, file: NoteFile) -> bool:
        """Whether a note is the person's: not the team's, and in a repository written here or taken."""
        return not file.is_shared and (not self.in_repository or file.sha256 in self.audit.taken)

    @property
    def taken_ids(self) -> Mapping[str, str]:
        """What a read of the folder must know of a repository: see `NoteFolder.read`."""
        return self.audit.taken_ids if self.in_repository else NONE_TAKEN

    @property
    def takeable(self) -> list[NoteFile]:
        """The notes of a repository that the person may take."""
        return [file for file in self.notes.values() if not file.is_shared and not self.is_taken(file)]

    def label_of(self, file: NoteFile) -> str:
        """Whose a note is, before its text; empty for the person's."""
        is_english = not is_chinese(file.note.one_liner or file.note.title)
        if file.is_shared:
            return "【team】" if is_english else "【团队】"
        return "" if self.is_taken(file) else "【project file】" if is_english else "【项目文件】"

    def may_record(self, file: NoteFile) -> bool:
        """Whether the log may hold the text of a note: not if it was erased."""
        return file.note_id not in self.audit.forgotten


class NoteWorkspace:
    """The notes of one profile's projects."""

    def __init__(self, log: EventLog, drafts: DraftBuilder, clock: Clock, data_dir: Path) -> None:
        self.log = log
        self.clock = clock
        self.redactor = drafts.redactor
        self._drafts = drafts
        busy = partial(StorageBusy, "other processes are writing notes")
        self._lock = ProcessLock(data_dir / LOCK_FILE, timeout=LOCK_TIMEOUT, timeout_error=busy)
        self._journal = SwapJournal(data_dir / JOURNAL_FILE)
        self._audits: dict[str, AuditState] = {}

    @asynccontextmanager
    async def open(self, project: str, *, writes_files: bool = True) -> AsyncIterator[OpenNotes]:
        """Hold the lock, with files, INDEX.md and log in agreement. Raises InvalidInput, StorageError.

        A command that reads writes no files; the log learns what a person has changed all the same.
        """
        async with self._lock.hold():
            if writes_files:
                await asyncio.to_thread(self._journal.recover)
            opened = await self.look(project)
            if opened.folder.exists():
                if writes_files:
                    before = self.clock.now().timestamp() - LEFTOVER_SECONDS
                    await asyncio.to_thread(opened.folder.remove_leftovers, before)
                    await finish_despite_cancel(self._repair_index(opened), WRITE_TIMEOUT)
                elif opened.content.index is not None:
                    opened.notices += repaired_index(opened.content)[1]
                await finish_despite_cancel(self._record_edits(opened), WRITE_TIMEOUT)
            yield opened

    async def look(self, project: str) -> OpenNotes:
        """The notes as they are, without the lock and without writing anything."""
        folder = NoteFolder(project, self._journal)
        audit = await self._audit(project)
        in_repository = await asyncio.to_thread(is_in_repository, folder.root)
        opened = OpenNotes(folder, NoteFolderContent(), audit, timestamp(self.clock.now()), [], in_repository)
        opened.content = await asyncio.to_thread(folder.read, opened.taken_ids)
        opened.notices += opened.content.warnings
        return opened

    async def record(self, project: str, *events: NoteEvent, project_files: Collection[str] = ()) -> None:
        """Record audit events of a project. `project_files`: the ids of notes that are not the person's."""
        drafts = [self._draft(project, kind, payload, project_files) for kind, payload in events]
        if drafts:
            await self.log.append(drafts)

    def _draft(self, project: str, kind: str, payload: Mapping[str, Any], project_files: Collection[str]) -> EventDraft:
        is_shared = bool(payload.get("shared"))
        is_foreign = is_shared or payload.get("note_id") in project_files
        origin = Origin.IMPORTED if is_foreign else Origin.USER
        value = {"type": kind, "payload": dict(payload), "project_path": project, "origin": str(origin)}
        door = Door.TEAM if is_shared else Door.PROJECT if is_foreign else None
        return replace(self._drafts.build(value | {"project_id": project_id_for(project)}), door=door)

    async def write_note(self, opened: OpenNotes, file: str, text: str, expected: str | None, **more: Any) -> NoteFile:
        """Write a note, then INDEX.md, then the events. Raises DocumentChanged, StorageError."""
        return await finish_despite_cancel(self._write_note(opened, file, text, expected, more), WRITE_TIMEOUT)

    async def _write_note(
        self, opened: OpenNotes, file: str, text: str, expected: str | None, more: dict[str, Any]
    ) -> NoteFile:
        written = await asyncio.to_thread(opened.folder.write_note, file, text, expected)
        note = parse_note(text)
        done = NoteFile(note_id_of(note, file, opened.content.row_id(file)), file, written, note)
        kind = MEMORY_NOTE_CREATED if expected is None else MEMORY_NOTE_UPDATED
        is_own = expected is None or not opened.in_repository or expected in opened.audit.taken
        index_events = await self._index_events(opened, done.note_id)
        await self.record(
            str(opened.folder.project),
            (kind, note_payload(done, with_text=opened.may_record(done), **more)),
            *index_events,
            project_files=() if is_own else (done.note_id,),
        )
        return done

    async def take(self, opened: OpenNotes, files: Sequence[NoteFile]) -> None:
        """Make notes of a repository the person's own, as they are."""
        taken = [note_payload(file, with_text=opened.may_record(file), by="take") for file in files]
        await self.record(str(opened.folder.project), *((MEMORY_NOTE_UPDATED, payload) for payload in taken))

    async def text_events(self, opened: OpenNotes, note_id: str) -> list[str]:
        """The events that hold the text of a note."""
        project_id = project_id_for(str(opened.folder.project))

        def read(connection: Transaction) -> list[str]:
            return [
                event.event_id
                for event in store.read_by_types(connection, NOTE_TEXT_TYPES, after=0)
                if event.project_id == project_id and event.payload.get("note_id") == note_id
            ]

        return await self.log.database.read(read)

    async def remove_note(self, opened: OpenNotes, file: NoteFile, by: str) -> None:
        """Remove a note, then its row, then record it. Raises DocumentChanged, StorageError."""
        await finish_despite_cancel(self._remove_note(opened, file, by), WRITE_TIMEOUT)

    async def _remove_note(self, opened: OpenNotes, file: NoteFile, by: str) -> None:
        await asyncio.to_thread(opened.folder.remove_note, file.file, file.sha256)
        index_events = await self._index_events(opened)
        deleted = (MEMORY_NOTE_DELETED, {"note_id": file.note_id, "by": by})
        await self.record(str(opened.folder.project), deleted, *index_events)

    async def _index_events(self, opened: OpenNotes, *written_ids: str) -> list[NoteEvent]:
        """Bring INDEX.md into agreement after a write, and what to record of it.

        The note is written by then. An INDEX.md that cannot be written is repaired at the next open.
        """
        try:
            written = await self._write_index(opened, written_ids)
        except (StorageError, DocumentChanged) as error:
            opened.notices.append(f"INDEX.md could not be written: {error.message}")
            return []
        return [(MEMORY_INDEX_UPDATED, {"repairs": 0})] if written else []

    async def _write_index(self, opened: OpenNotes, written_ids: Collection[str] = ()) -> list[str]:
        """Bring INDEX.md into agreement with the notes; what changed. Again if another program wrote it meanwhile."""
        for attempt in range(SWAP_ATTEMPTS):
            content = await asyncio.to_thread(opened.folder.read, opened.taken_ids)
            opened.content = content
            index, changes = repaired_index(content, written_ids)
            if not changes:
                return []
            try:
                await asyncio.to_thread(opened.folder.write_index, content, index)
            except DocumentChanged:
                if attempt + 1 == SWAP_ATTEMPTS:
                    raise
                continue
            opened.content = await asyncio.to_thread(opened.folder.read, opened.taken_ids)
            return changes
        return []

    async def _repair_index(self, opened: OpenNotes) -> None:
        repairs = list[str]()
        try:
            if opened.content.notes or opened.content.index is not None:
                repairs = await self._write_index(opened)
        except StorageError as error:  # a folder that only can be read; the notes can still be used
            opened.notices.append(f"INDEX.md could not be repaired: {error.message}")
        opened.notices += repairs
        if repairs:
            await self.record(str(opened.folder.project), (MEMORY_INDEX_UPDATED, {"repairs": len(repairs)}))

    async def _record_edits(self, opened: OpenNotes) -> None:
        """Record the notes whose files another program or a person changed."""
        project, events = str(opened.folder.project), list[NoteEvent]()
        known = opened.audit.known
        for note_id, file in opened.notes.items():
            if note_id not in known:
                kind = MEMORY_NOTE_CREATED
            elif known[note_id] != file.sha256:
                kind = MEMORY_NOTE_UPDATED
            else:
                continue
            events.append((kind, note_payload(file, with_text=opened.may_record(file), by="edit")))
        gone = [note_id for note_id in known if opened.content.is_gone(note_id)]
        events += [(MEMORY_NOTE_DELETED, {"note_id": note_id, "by": "edit"}) for note_id in gone]
        foreign = [note_id for note_id, file in opened.notes.items() if not opened.is_taken(file)]
        await self.record(project, *events, project_files=foreign)
        opened.audit = await self._audit(project)

    async def _audit(self, project: str) -> AuditState:
        """What the log knows; only what is new since the last call is read."""
        project_id = project_id_for(project)

        def read(connection: Transaction) -> AuditState:
            state = self._audits.setdefault(project_id, AuditState())
            newest = store.newest_position_of_types(connection, RETRACTING_TYPES)
            if newest != state.retractions_position:  # read again without what is erased, applied or not
                state = self._audits[project_id] = AuditState(retractions_position=newest)
                state.retractions.apply(store.read_by_types(connection, RETRACTING_TYPES, after=0))
            while page := store.read_page(
                connection, Query(project_id=project_id, types=NOTE_TYPES, after=state.position)
            ).events:
                state.apply(page)
            return state

        return await self.log.database.read(read)
