"""Erase the files of notes whose events are erased. The files go first, as docs/decisions/024-notes.md says."""

import asyncio
from collections.abc import Sequence

from sync.db.engine import Transaction
from sync.errors import InvalidInput, StorageError, XiaobaiError
from sync.log import store
from sync.log.event_types import MEMORY_NOTE_DELETED, MEMORY_QUESTION_ASKED, NOTE_TEXT_TYPES
from sync.log.model import project_id_for
from sync.notes.audit import BY_FORGET
from sync.notes.model import NoteFile
from sync.notes.workspace import NoteWorkspace, OpenNotes


class NoteErasure:
    """The notes of one profile's projects, for an erasure."""

    def __init__(self, workspace: NoteWorkspace) -> None:
        self._workspace = workspace

    async def remove_files(self, event_ids: Sequence[str]) -> list[str]:
        """Remove the files of the notes of these events, with their rows; the files that stay, each with its reason.

        A file is removed only as the log knows it: one that was changed since stays. The notes are recorded as
        forgotten, so that the text of a file that stays or comes back does not enter the log again.
        """
        kept: list[str] = []
        for project, note_ids in (await self._workspace.log.database.read(lambda tx: _notes_of(tx, event_ids))).items():
            removed: set[str] = set()
            try:
                recorded = await self._recorded(project)
                async with self._workspace.open(project) as opened:
                    titles = {opened.notes[note_id].note.title for note_id in note_ids & opened.notes.keys()}
                    copies = await asyncio.to_thread(opened.folder.copies_with, note_ids | (titles - {""}))
                    kept += [f"{path}: a copy of an unreadable INDEX.md names the note; delete it" for path in copies]
                    for note_id in sorted(note_ids):
                        file = opened.notes.get(note_id)
                        reason = None if file is None else await self._remove_file(opened, file, recorded)
                        if reason is not None:
                            kept.append(reason)
                        elif file is not None:
                            removed.add(note_id)
            except InvalidInput:  # on a drive that is not there, or removed as a whole
                kept.append(f"{project}: there is no such folder now; notes in it stay if it comes back")
            except StorageError as error:
                kept.append(f"{project}: {error.message}")
            left = sorted(note_ids - removed)
            forgotten = ((MEMORY_NOTE_DELETED, {"note_id": note_id, "by": BY_FORGET}) for note_id in left)
            await self._workspace.record(project, *forgotten)
        return kept

    async def _remove_file(self, opened: OpenNotes, file: NoteFile, recorded: frozenset[str]) -> str | None:
        """Why the file stays; None if it is removed."""
        path = opened.folder.root / file.file
        if file.is_shared:
            return f"{path}: it is shared; change it where it comes from"
        if file.sha256 not in recorded:
            return f"{path}: it was changed by hand; read it and delete it yourself"
        try:
            await self._workspace.remove_note(opened, file, BY_FORGET)
        except XiaobaiError as error:
            return f"{path}: {error.message}"
        return None

    async def _recorded(self, project: str) -> frozenset[str]:
        """The SHA-256 of every version of the project's notes that the log has."""
        events = await self._workspace.log.database.read(
            lambda tx: list(store.read_by_types(tx, NOTE_TEXT_TYPES, after=0))
        )
        project_id = project_id_for(project)
        return frozenset(str(event.payload.get("sha256")) for event in events if event.project_id == project_id)


def _notes_of(connection: Transaction, event_ids: Sequence[str]) -> dict[str, set[str]]:
    """The ids of the notes that these events hold or ask about, by the folder of the project."""
    notes: dict[str, set[str]] = {}
    for name in event_ids:
        event = store.find_event(connection, name)
        if event is None or event.type not in NOTE_TEXT_TYPES or event.project_path is None:
            continue
        note_id = event.payload.get("new_note_id" if event.type == MEMORY_QUESTION_ASKED else "note_id")
        if isinstance(note_id, str) and note_id:
            notes.setdefault(event.project_path, set()).add(note_id)
    return notes
