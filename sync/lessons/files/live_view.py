"""The JSON files of the lessons: written after every change, and read again after an edit by hand.

A file that cannot be read stays byte for byte. No file is replaced or removed before its records are lessons.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from sync.errors import StorageBusy, StorageError
from sync.lessons import store
from sync.lessons.files.hand_edits import (
    UNFINISHED,
    HandEdits,
    Manifest,
    digest,
    find_edits,
    is_in_view,
    parse_manifest,
    render_manifest,
)
from sync.lessons.files.imports import LessonImports
from sync.lessons.files.tree import FOLDERS, INDEX_FILE, render_tree
from sync.lessons.model import Lesson
from sync.lessons.service import LessonService
from sync.runtime.log_once import LogOnce
from sync.system.files import (
    make_folder_below,
    make_private_folder,
    read_once,
    remove_temporary_files,
    translate_os_errors,
    write_private,
)
from sync.system.process_lock import ProcessLock

LOCK_TIMEOUT: Final = 20.0  # seconds that writing the files waits for another process
MANIFEST_FILE: Final = ".written.json"
FOREIGN_INDEX_FILE: Final = "index.before.json"  # the index of another program, which is replaced

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FilesState:
    """The files as they are. `edits`: those that are not read yet."""

    files: Mapping[str, bytes]
    manifest: Manifest
    edits: HandEdits

    def show_all(self, replica_id: str, position: int) -> bool:
        """Whether the files are as they were written, of this database, and up to this position of its log."""
        manifest, edits = self.manifest, self.edits
        if manifest.position != position or manifest.replica_id not in {"", replica_id} or edits.records:
            return False
        written = (name for name in manifest.digests if name not in edits.unreadable)
        return all(name in self.files and manifest.wrote(name, self.files[name]) for name in written)


@dataclass(frozen=True, slots=True)
class FilesReport:
    """`differing`: files that differ from the lessons. `unreadable`: why, by file. `kept`: other files that stay."""

    lessons: list[Lesson]
    differing: list[str]
    unreadable: Mapping[str, str]
    kept: list[str]


class LessonFiles:
    """The folder of one profile's lessons.

    `is_other_profile`: whether a profile of this installation has this name.
    """

    def __init__(
        self,
        lessons: LessonService,
        imports: LessonImports,
        folder: Path,
        *,
        profile: str,
        is_other_profile: Callable[[str], bool],
    ) -> None:
        self.folder = folder
        self.imports = imports
        self._lessons = lessons
        self._profile = profile
        self._is_other_profile = is_other_profile
        self._failures = LogOnce(_log)
        self._lock = ProcessLock(folder / ".lock", timeout=LOCK_TIMEOUT, timeout_error=_busy_error)

    async def read_edits(self) -> None:
        """Take in what was edited by hand, and write files that are behind. Raises StorageError if none can be read."""
        if self.folder.is_dir() and not await self.is_current():
            await self.write_changes()

    async def is_current(self) -> bool:
        """Whether there is nothing to read and nothing to write, without making the files. Raises StorageError."""
        replica_id, position = await self._lessons.replica_id(), await self._lessons.read(store.newest_change)
        return (await asyncio.to_thread(self._read, replica_id)).show_all(replica_id, position)

    async def write_changes(self) -> None:
        """`reconcile` beside what is recorded: files that cannot be written now are logged, and written later."""
        try:
            await self.reconcile()
        except StorageError as error:
            self._failures.report("files", f"the files of the lessons are behind: {error.message}")
        else:
            self._failures.clear("files")

    async def reconcile(self) -> None:
        """Take in what was edited by hand, and write the files as the lessons are now. Raises StorageError."""
        replica_id = await self._lessons.replica_id()
        await asyncio.to_thread(self._make_folders)
        async with self._lock.hold():
            await asyncio.to_thread(self._remove_partial_files)
            state = await asyncio.to_thread(self._read, replica_id)
            records = [record for found in state.edits.records.values() for record in found]
            if records:
                await self.imports.take_edits(records, gone=state.manifest.ids_of(replica_id))
            lessons, position = await self._lessons.read(lambda one: (store.all_lessons(one), store.newest_change(one)))
            with translate_os_errors(self.folder):
                await asyncio.to_thread(self._write, state, lessons, replica_id, position)

    async def inspect(self) -> FilesReport:
        """The lessons of the tables, and the files that differ from them; it writes nothing."""
        lessons = await self._lessons.recorded()
        if not lessons and not self.folder.is_dir():
            return FilesReport([], [], {}, [])
        replica_id = await self._lessons.replica_id()
        state = await asyncio.to_thread(self._read, replica_id)
        rendered = render_tree(lessons) if lessons or state.manifest.digests else {}
        differing = {name for name, data in rendered.items() if state.files.get(name) != data}
        differing |= {name for name in state.files.keys() - rendered if state.manifest.wrote(name, state.files[name])}
        differing |= state.edits.records.keys()
        kept = [name for name in state.manifest.kept if name in state.files and name not in state.edits.records]
        return FilesReport(lessons, sorted(differing - state.edits.unreadable.keys()), state.edits.unreadable, kept)

    async def apply_erasures(self) -> None:
        """Take erased lessons out of the tables and the files, if there are any."""
        if await self._lessons.has_any() and self.folder.exists():
            await self.reconcile()

    def _make_folders(self) -> None:
        if not self.folder.is_dir():
            make_private_folder(self.folder)
        for name in FOLDERS.values():
            make_folder_below(self.folder, self.folder / name)

    def _remove_partial_files(self) -> None:
        """Remove what killed writers left, which may hold erased text. Who holds the lock is the only writer."""
        for folder in (self.folder, *map(self.folder.joinpath, FOLDERS.values())):
            remove_temporary_files(folder)

    def _read(self, replica_id: str) -> FilesState:
        """Raises StorageError."""
        with translate_os_errors(self.folder):
            paths = [path for name in FOLDERS.values() for path in (self.folder / name).glob("*.json")]
            names = [path.relative_to(self.folder).as_posix() for path in paths if not path.name.startswith(".")]
            found = {name: self._data_of(name) for name in (*names, INDEX_FILE)}
        manifest = parse_manifest(self._data_of(MANIFEST_FILE))
        if manifest.replica_id != replica_id and not self._is_of_other_profile(manifest):
            manifest = Manifest()
        files = {name: data for name, data in found.items() if data is not None}
        return FilesState(files, manifest, find_edits(files, manifest))

    def _is_of_other_profile(self, manifest: Manifest) -> bool:
        """Whether another profile of this installation wrote the files: it has the lessons in them."""
        return manifest.profile not in {"", self._profile} and self._is_other_profile(manifest.profile)

    def _data_of(self, name: str) -> bytes | None:
        found = read_once(self.folder / name)
        return None if found is None else found.data

    def _write(self, before: FilesState, lessons: list[Lesson], replica_id: str, position: int) -> None:
        """The manifest names the new files before they are written, so that a crash leaves none of unknown origin."""
        unreadable, read = before.edits.unreadable, before.edits.records
        tree = render_tree(lessons)
        rendered = {name: data for name, data in tree.items() if name not in unreadable}
        others = [name for name in before.files if name not in rendered and name not in unreadable]
        ids = frozenset(lesson.lesson_id for lesson in lessons)
        gone = before.manifest.ids_of(replica_id) - ids
        kept = {name: found for name, found in before.manifest.kept.items() if name in others and name not in read}
        for name in read.keys() & set(others):
            if not is_in_view([one for one in read[name] if one.record.get("id") not in gone], lessons):
                kept[name] = digest(before.files[name])
        digests = {name: (digest(data),) for name, data in tree.items()}  # so that one that is taken away is missed
        after = Manifest(replica_id, self._profile, digests, ids, kept, position)
        changed = {name: data for name, data in rendered.items() if before.files.get(name) != data}
        removable = [name for name in others if name not in kept]
        if changed or removable:
            former = before.manifest.digests
            both = {name: tuple(dict.fromkeys((*former.get(name, ()), *found))) for name, found in digests.items()}
            both_ids = ids | before.manifest.lesson_ids
            self._write_manifest(replace(after, digests={**former, **both}, lesson_ids=both_ids, position=UNFINISHED))
        for name, data in changed.items():
            if name == INDEX_FILE:
                self._keep_foreign_index(before)
            if self._data_of(name) == before.files.get(name):  # else it was edited meanwhile, and is read next
                write_private(self.folder / name, data)
        for name in removable:
            if self._data_of(name) == before.files.get(name):
                (self.folder / name).unlink(missing_ok=True)
        self._write_manifest(after)

    def _write_manifest(self, manifest: Manifest) -> None:
        data = render_manifest(manifest)
        if self._data_of(MANIFEST_FILE) != data:
            write_private(self.folder / MANIFEST_FILE, data)

    def _keep_foreign_index(self, before: FilesState) -> None:
        """Keep the index of another program once; the records that it lists are lessons now."""
        index = before.files.get(INDEX_FILE)
        if index is not None and not before.manifest.digests:
            with suppress(FileExistsError), (self.folder / FOREIGN_INDEX_FILE).open("xb") as file:
                file.write(index)


def _busy_error() -> StorageBusy:
    return StorageBusy("another process writes the files of the lessons")
