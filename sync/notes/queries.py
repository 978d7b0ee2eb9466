"""The use cases that read notes: list, show, retrieve, sniff, the start of a session, the rates and the drift check."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.db.engine import Transaction
from sync.errors import DocumentChanged, InvalidInput, StorageError
from sync.log import store
from sync.log.event_types import MEMORY_NOTE_CREATED, MEMORY_RETRIEVE_PERFORMED
from sync.notes import governance, ranking, texts
from sync.notes.folder import repaired_index
from sync.notes.model import ARCHIVE, NoteFile, is_for_team
from sync.notes.ranking import RankedNote
from sync.notes.service import own_note
from sync.notes.workspace import NoteWorkspace, OpenNotes
from sync.system.atomic_swap import compare_and_swap
from sync.system.files import read_once
from sync.texts.language import Language

NoteCosines = Callable[[str, str], Awaitable[ranking.Cosines | None]]  # of a project's notes and a text
FENCE_BYTES: Final = 6
MAX_COMPARED: Final = 100  # notes of a project that are compared with each other


class NoteList(msgspec.Struct, frozen=True):
    notes: tuple[NoteFile, ...]
    base: str
    notices: tuple[str, ...]
    takeable: int = 0  # notes of a repository that the person may take


class Retrieved(msgspec.Struct, frozen=True):
    """Notes for a message. `covered`: the note that already decides a decision point.

    `contradicting`: `notes` decide it differently, so nothing is covered.
    """

    notes: tuple[RankedNote, ...]
    base: str
    is_empty: bool  # the project has no notes
    covered: RankedNote | None = None
    contradicting: bool = False


class SessionNotes(msgspec.Struct, frozen=True):
    text: str
    notes: tuple[NoteFile, ...]
    base: str


class SharedNotes(msgspec.Struct):
    """The files that an export wrote, found there already, and did not write, with the reason.

    `others`: how many notes of the project are not for the team.
    """

    written: list[str] = msgspec.field(default_factory=list)
    unchanged: list[str] = msgspec.field(default_factory=list)
    refused: dict[str, str] = msgspec.field(default_factory=dict)
    others: int = 0


class NoteQueries:
    """One profile's reading of notes."""

    def __init__(self, workspace: NoteWorkspace, cosines: NoteCosines) -> None:
        self._workspace = workspace
        self._cosines = cosines

    async def list_notes(self, project: str, *, status: str | None = None) -> NoteList:
        opened = await self._open(project)
        chosen = [file for file in opened.notes.values() if status in {None, file.note.status}]
        return NoteList(tuple(chosen), opened.folder.base, tuple(opened.notices), len(opened.takeable))

    async def show(self, project: str, note_id: str) -> NoteList:
        """One note. Raises InvalidInput if there is none."""
        opened = await self._open(project)
        file = opened.notes.get(note_id) or own_note(opened, note_id)
        return NoteList((file,), opened.folder.base, tuple(opened.notices))

    async def _open(self, project: str) -> OpenNotes:
        """The notes, known to the log; as they are if another process holds the write lock."""
        if self._workspace.log.database.upkeep.is_locked_out:
            return await self._workspace.look(project)
        async with self._workspace.open(project, writes_files=False) as opened:
            return opened

    async def retrieve(self, project: str, message: str) -> Retrieved:
        """At most two notes for a message; none without a match."""
        return await self._search(project, message, None)

    async def sniff(self, project: str, decision_point: str, options: Sequence[str]) -> Retrieved:
        """Whether a note covers a decision point, so that no question is needed."""
        return await self._search(project, decision_point, options)

    async def session(self, project: str, language: Language) -> SessionNotes:
        """The convention and the person's notes marked to load, for a session's start. It writes nothing."""
        opened = await self._workspace.look(project)
        fence = self._workspace.clock.random_bytes(FENCE_BYTES).hex()
        own = [file for file in opened.content.current if opened.is_taken(file)]
        text, given = texts.session_text(own, opened.folder.base, fence, language)
        return SessionNotes(text, tuple(given), opened.folder.base)

    async def export(self, project: str, target: Path) -> SharedNotes:
        """Copy the notes that are for the team into a folder, such as a checkout of the team's repository.

        A file that is there keeps its bytes. Raises InvalidInput if the folder is not there or is the project's own.
        """
        async with self._workspace.open(project) as opened:
            return await asyncio.to_thread(self._copy_for_team, opened, target)

    def _copy_for_team(self, opened: OpenNotes, target: Path) -> SharedNotes:
        hint = "Give the folder of the team's repository."
        if not os.path.isdir(target):  # noqa: PTH112 - no OSError
            raise InvalidInput("the folder to export to is not there", field="path", hint=hint)
        if Path(os.path.realpath(target)).is_relative_to(os.path.realpath(opened.folder.root)):
            raise InvalidInput("the folder to export to is the project's own", field="path", hint=hint)
        done = SharedNotes()
        for file in opened.notes.values():
            if file.is_shared or not is_for_team(file.note):
                done.others += not file.is_shared
                continue
            name = file.file.rpartition("/")[2]
            if self._workspace.redactor.clean(file.note.text) != file.note.text:
                done.refused[name] = "it holds what looks like a secret"
                continue
            try:
                found = read_once(target / name)
                if found is None:
                    compare_and_swap(target / name, None, file.note.text.encode())
                    done.written.append(name)
                elif found.sha256 == file.sha256:
                    done.unchanged.append(name)
                else:
                    done.refused[name] = "another text is there; compare the two and delete one"
            except (StorageError, DocumentChanged) as error:
                done.refused[name] = error.message
        return done

    async def rates(self, project: str) -> dict[str, float | None]:
        """The four rates of `notes doctor`."""
        opened = await self._workspace.look(project)
        active = [file for file in opened.content.current if file.note.status != ARCHIVE]
        return opened.audit.rates(_fragmented(active), len(active))

    async def drift(self, project: str) -> list[str]:
        """What differs between INDEX.md and the notes; changes nothing."""
        content = (await self._workspace.look(project)).content
        if content.index_bytes is None and content.is_index_readable and not content.notes:
            return []
        active = [file for file in content.current if file.note.status != ARCHIVE]
        pairs = (
            (one, other) for at, one in enumerate(active[:MAX_COMPARED]) for other in active[at + 1 : MAX_COMPARED]
        )
        rivals = [f"{one.note_id} and {other.note_id} contradict each other" for one, other in pairs
                  if governance.contradict(one, other)]  # fmt: skip
        return [*content.warnings, *repaired_index(content)[1], *rivals]

    async def known_drift(self) -> tuple[int, list[str]]:
        """How many projects with notes the log knows and this machine has, and what differs in them."""

        def read(connection: Transaction) -> set[str]:
            events = store.read_by_types(connection, (MEMORY_NOTE_CREATED,), after=0)
            return {event.project_path for event in events if event.project_path is not None}

        count, found = 0, list[str]()
        for project in sorted(await self._workspace.log.database.read(read)):
            try:
                found += [f"{project}: {line}" for line in await self.drift(project)]
            except InvalidInput:  # the folder is gone
                continue
            except StorageError as error:
                found.append(f"{project}: {error.message}")
            count += 1
        return count, found

    async def _search(self, project: str, text: str, options: Sequence[str] | None) -> Retrieved:
        opened = await self._open(project)
        files, base, is_empty = opened.content.current, opened.folder.base, not opened.notes
        if not files or not ranking.is_searchable(text):
            return Retrieved((), base, is_empty)
        ranked = ranking.rank(text, files, await self._cosines(project, text))
        ranked = [replace(one, label=opened.label_of(one.file)) for one in ranked]
        own = [one for one in ranked if one.file.is_shared or opened.is_taken(one.file)]
        decided = ranking.deciding(text, options, own) if options is not None else []
        contradicting = ranking.is_contradicted(decided, options or ())
        covered = None if contradicting else next(iter(decided), None)
        found = (decided if contradicting else ranked)[: ranking.MAX_RETRIEVED]
        adopted = [one.file.note_id for one in found]
        event = (MEMORY_RETRIEVE_PERFORMED, {"adopted": adopted, "sniffed": options is not None})
        await self._workspace.log.database.upkeep.run(lambda: self._workspace.record(project, event))
        return Retrieved(tuple(found), base, is_empty=False, covered=covered, contradicting=contradicting)


def _fragmented(files: Sequence[NoteFile]) -> int:
    """How many notes say the same as another one."""
    found = set[str]()
    for at, file in enumerate(files):
        payload = governance.as_payload(file)
        for other in files[at + 1 :]:
            if governance.relation(payload, other) is governance.Relation.SAME:
                found |= {file.note_id, other.note_id}
    return len(found)
