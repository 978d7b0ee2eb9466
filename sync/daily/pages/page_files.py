"""The pages, indexes and summaries on the disk: a view of the book, and a place where a person may write.

Decisions
    What a person changed in a page is taken in first (`hand.py`) and becomes deeds; only then is the page written, and
    only over the bytes that were taken in: what was saved since, or never read, is left to the next round. A page that
    is not understood is left alone, byte for byte, and named in `notices`, until it is understood again.
    Before deeds are made of a page it is noted which they are and which records its additions become, and afterwards
    that it is taken in: it is the base of what is saved next, and a kill at any point takes nothing in twice, also
    where what was said is forgotten before anybody looks again.
    A page with nothing to show any more goes, but not one where a hand wrote into a session that went meanwhile.
    Before a page is written, what it will say is noted in the profile's folder beside what it said; so a kill between
    the two is no hand edit afterwards. What killed writers left half written goes at the next write, and with a page
    what was noted of it: either may hold what is forgotten since.
    What fails in one place keeps no other from its turn: it is named in `notices` (and `failing`), and tried again.
    One installation keeps a folder (`.xiaobai-memory.json` in it says which, and for which account). What another
    account of this machine left there is taken away where it stands as it was written, and left alone where not.
    Only the sidecar, or a command that holds its role, reads and writes here.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from sync.daily.config import DailyConfig
from sync.daily.model import Record
from sync.daily.pages.folder_owner import FolderOwner
from sync.daily.pages.indexes import DayFile, file_name, keywords_json, summary_md
from sync.daily.pages.numbering import by_page_number, group_by_day, page_numbers, page_of
from sync.daily.pages.page_checkpoints import PageCheckpoints
from sync.daily.pages.page_diff import PageBase, PageDiff, diff_page
from sync.daily.pages.page_folders import SUBFOLDERS, PageFolder, PageFolders, is_folder, lies_within, list_folder
from sync.daily.pages.page_format import render, split_page
from sync.daily.records.reducer import DailyRecords
from sync.errors import DocumentChanged, InvalidInput, StorageBusy, StorageError
from sync.runtime.log_once import LogOnce
from sync.system.atomic_swap import compare_and_swap, displaced_files, remove_unchanged
from sync.system.files import read_once, remove_private, remove_temporary_files, translate_os_errors
from sync.system.process_lock import ProcessLock

LOCK_FILE: Final = ".xiaobai-memory.lock"
LOCK_TIMEOUT: Final = 2.0  # seconds; another process writes a few small files at most
SUMMARY_FILE: Final = "summary.md"
KEYWORDS_FILE: Final = "index/keywords.json"
EMBEDDINGS_FILE: Final = "index/embeddings.json"
MEGABYTE: Final = 1024 * 1024
LEFT_ALONE: Final = "was changed by hand while another account was active, and is left as it is"
_PAGE_NAME: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:\.([2-9]|[1-9]\d{1,2}))?\.md", re.ASCII)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PageEdit:
    """What a person changed in one page, in which place, and its text; `project_path` is that of what was added."""

    folder: PageFolder
    name: str
    day: str
    project_path: str | None
    text: str
    diff: PageDiff

    def new_base(self, new_record_ids: Mapping[int, str], change_ids: Mapping[int, str]) -> PageBase:
        """The page as one that is taken in."""
        return PageBase(self.text, {**self.diff.record_ids, **new_record_ids}, change_ids)


@dataclass(frozen=True, slots=True)
class FolderContent:
    """What a place is to show: its records, in the files that hold them, under the options that hold there."""

    folder: PageFolder
    records: tuple[Record, ...]
    files: tuple[DayFile, ...]
    options: DailyConfig


class PageFiles:
    """The pages of one profile, wherever they lie. Synchronous; call it in a thread."""

    def __init__(self, page_folders: PageFolders, *, checkpoint_folder: Path, installation: str, profile: str) -> None:
        """`kept`: the folder in which is noted what was written."""
        self._page_folders = page_folders
        self._checkpoints, self._log_once = PageCheckpoints(checkpoint_folder), LogOnce(log)
        self.owner = FolderOwner(installation, profile)
        self.notices: dict[str, str] = {}
        self.failing_folders: set[Path] = set()  # the places that could not be read or written in this round
        self._read_hashes: dict[Path, str] = {}  # the hash of each page as `edits` read it

    def read_edits(self, records: DailyRecords) -> list[PageEdit]:
        """What a person changed since the pages were written, also where that is no deed; begins a round."""
        self._log_once.retain(self.failing_folders)
        self.notices, self.failing_folders, self._read_hashes = {}, set(), {}
        found: list[PageEdit] = []
        for place, project_path in self._known_folders(records):
            with self.isolate_errors(place):
                found += self._edits_in(place, None if place.is_shared else project_path, records)
        return found

    def begin_import(self, edit: PageEdit, new_record_ids: Mapping[int, str], change_ids: Mapping[int, str]) -> None:
        """Note, before a page is taken in, what its additions become and by which deeds. Raises StorageError."""
        self._checkpoints.begin_import(edit.folder.root, edit.name, edit.new_base(new_record_ids, change_ids))

    def finish_import(self, edit: PageEdit, new_record_ids: Mapping[int, str]) -> None:
        """Note that deeds say what a page says. Raises StorageError."""
        self._checkpoints.save(edit.folder.root, edit.name, edit.new_base(new_record_ids, {}), is_confirmed=True)

    def stamps(self, records: DailyRecords) -> tuple[Any, ...]:
        """Something that differs after a page was touched."""
        return tuple(
            (str(entry), found.st_mtime_ns, found.st_size)
            for place, _ in self._known_folders(records)
            for folder in (place.root, place.root / "daily")
            for entry in list_folder(folder)
            if not entry.name.startswith(".") and (found := _lstat(entry))
        )

    def write_pages(self, records: DailyRecords) -> int:
        """Make every page what the book says, as `edits` has read them; how many files changed."""
        written = 0
        for shown in self.folder_contents(records):
            if shown.folder.root not in self.failing_folders:
                with self.isolate_errors(shown.folder):
                    written += self._write_folder(shown, records)
        return written

    def folder_contents(self, daily_records: DailyRecords) -> list[FolderContent]:
        """What each place is to show, those included that have nothing to show any more."""
        by_place: dict[PageFolder, list[Record]] = {}
        for record in daily_records.visible():
            place = self._page_folders.folder_of(record.project_path)
            if place is not None:
                by_place.setdefault(place, []).append(record)
        for place, _ in self._known_folders(daily_records):
            if is_folder(place.root):
                by_place.setdefault(place, [])
        number_of = page_numbers(daily_records.all_records(), self._page_folders.folder_of)
        return [self._folder_content(place, records, number_of) for place, records in by_place.items()]

    @contextmanager
    def exclusive(self, folder: PageFolder) -> Iterator[bool]:
        """Nobody else writes in a place meanwhile; False where another process does so just now."""
        busy = partial(StorageBusy, "another process writes the pages of this place just now")
        try:
            lock = ProcessLock(folder.root / LOCK_FILE, timeout=LOCK_TIMEOUT, timeout_error=busy).acquire()
        except StorageBusy as error:
            log.info(error.message)
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    @contextmanager
    def isolate_errors(self, folder: PageFolder) -> Iterator[None]:
        """What cannot be read or written in a place now is told, and stops nothing else."""
        try:
            with translate_os_errors(folder.root):
                yield
        except StorageError as error:
            self._log_once.report(folder.root, f"the daily pages of a place could not be settled: {error.kind}")
            self.notices[str(folder.root)] = error.message
            self.failing_folders.add(folder.root)

    # --- reading ----------------------------------------------------------------------------------------------

    def _known_folders(self, records: DailyRecords) -> list[tuple[PageFolder, str | None]]:
        """Every place that the book or what was written before names, with its project."""
        home = PageFolder(self._page_folders.home / ".cursor" / "skills" / "memories", is_shared=True)
        found: dict[Path, tuple[PageFolder, str | None]] = {home.root: (home, None)}
        paths = dict.fromkeys(record.project_path for record in (*records.by_id.values(), *records.removed.values()))
        for path in paths:
            place = self._page_folders.folder_of(path)
            if place is not None:
                found.setdefault(place.root, (place, path))
        for root, path in self._checkpoints.page_folders():
            found.setdefault(root, (PageFolder(root, is_shared=path is None), path))
        return list(found.values())

    def _edits_in(self, place: PageFolder, project_path: str | None, records: DailyRecords) -> list[PageEdit]:
        if not is_folder(place.root) or self._is_foreign(place) or self.owner.is_other_profile(place.root):
            return []
        left = self.owner.read(place.root).get("left", [])
        names = _page_names(place.root)
        for name in names:
            if name in left:
                self._add_notice(place, name, LEFT_ALONE)
        edits = (self._read_edit(place, name, project_path, records) for name in names if name not in left)
        return [edit for edit in edits if edit is not None]

    def _read_edit(
        self, folder: PageFolder, name: str, project_path: str | None, records: DailyRecords
    ) -> PageEdit | None:
        match = _PAGE_NAME.fullmatch(name)
        assert match is not None  # _pages_in lets no other name through
        found = read_once(folder.root / "daily" / name)
        if found is None:
            return None
        self._read_hashes[folder.root / "daily" / name] = found.sha256
        bases = self._checkpoints.bases(folder.root, name)
        begun = self._checkpoints.unfinished_import(folder.root, name, records.record_ids, records.all_change_ids)
        try:
            text = found.data.decode("utf-8")
            if begun is None and any(text == base.text for base in bases):
                return None
            told = diff_page(bases, text, match.group(1), records.by_id, begun)
        except UnicodeDecodeError:
            self._add_notice(folder, name, "is not UTF-8")
            return None
        except InvalidInput as error:
            self._add_notice(folder, name, error.message)
            return None
        noted = bases or begun is not None  # else it is a page of a hand that says nothing yet
        return PageEdit(folder, name, match.group(1), project_path, text, told) if told.changes or noted else None

    def _add_notice(self, folder: PageFolder, name: str, what: str) -> None:
        self.notices[str(folder.root / "daily" / name)] = what

    # --- writing ----------------------------------------------------------------------------------------------

    def _folder_content(
        self, folder: PageFolder, records: Sequence[Record], page_numbers: Mapping[str, int]
    ) -> FolderContent:
        options = self._page_folders.options(_project_of(records)).value
        limit = int(options.storage.max_file_size_mb * MEGABYTE)
        found: list[DayFile] = []
        for day, of_day in group_by_day(records).items():
            noted = by_page_number(of_day, page_numbers)
            page = page_of(day, noted.items(), with_origin=folder.is_shared)
            for part, piece in enumerate(split_page(page, limit), start=1):
                held = {note.number: noted[note.number] for note in piece.sessions}
                found.append(DayFile(part, piece, held))
        return FolderContent(folder, tuple(records), tuple(found), options)

    def _write_folder(self, content: FolderContent, records: DailyRecords) -> int:
        place, files = content.folder, content.files
        if self._is_foreign(place):
            return 0
        for name in SUBFOLDERS:
            self._page_folders.make_folder(place, name)
        with self.exclusive(place) as alone:
            if not alone:
                return 0
            for folder in (place.root, place.root / "daily", place.root / "index"):
                remove_temporary_files(folder)
            self._checkpoints.remove_leftovers(place.root)
            _remove_displaced(place.root, self._checkpoints)
            self._claim_folder(place, content.records)
            written = sum(self._write_page(place, file) for file in files)
            written += self._remove_obsolete(place, {file_name(file.page.day, file.part) for file in files})
            return written + self._write_indexes(place, files, records)

    def _write_page(self, folder: PageFolder, file: DayFile) -> int:
        name = file_name(file.page.day, file.part)
        path = folder.root / "daily" / name
        if str(path) in self.notices:
            return 0
        text = render(file.page)
        found = read_once(path)
        if found is not None and found.data == text.encode():
            if found.sha256 not in self.owner.read(folder.root).get("pages", {}).get(name, []):
                self.owner.mark_page(folder.root, name, text, found)  # a hand wrote it as we would: it is ours now
            if self._checkpoints.bases(folder.root, name) != [_base_of(file, text)]:
                self._checkpoints.save(folder.root, name, _base_of(file, text), is_confirmed=True)
            return 0
        if (None if found is None else found.sha256) != self._read_hashes.get(path):
            return 0  # a person saved since it was read, or it never was; the next round takes it in
        stands = None if found is None else found.data.decode("utf-8", "replace")
        self._checkpoints.save(folder.root, name, _base_of(file, text), text_on_disk=stands)
        self.owner.mark_page(folder.root, name, text, found)
        try:
            compare_and_swap(path, None if found is None else found.sha256, text.encode())
        except DocumentChanged:  # a person saved this moment; the next round takes it in
            return 0
        self._checkpoints.save(folder.root, name, _base_of(file, text), is_confirmed=True)
        return 1

    def _remove_obsolete(self, folder: PageFolder, names: set[str]) -> int:
        """Take away the pages that have nothing to show any more, and what was noted of them.

        Those are what we wrote, or what a hand wrote and deeds say as well: both are noted.
        """
        removed = 0
        for name in sorted({*_page_names(folder.root), *self._checkpoints.page_names(folder.root)} - names):
            path = folder.root / "daily" / name
            found = read_once(path)
            if str(path) in self.notices:
                continue
            if found is None:
                self._checkpoints.remove(folder.root, name)
            elif self._checkpoints.matches_base(folder.root, name, found.data):
                with suppress(DocumentChanged):  # a person saved this moment; the next round takes it in
                    remove_unchanged(path, found.sha256)
                    self._checkpoints.remove(folder.root, name)
                    removed += 1
        return removed

    def _write_indexes(self, folder: PageFolder, files: Sequence[DayFile], records: DailyRecords) -> int:
        written, keywords = 0, keywords_json(files, records.updated_at, with_origin=folder.is_shared)
        for name, kind, text in ((KEYWORDS_FILE, "keywords", keywords), (SUMMARY_FILE, "summary", summary_md(files))):
            if (done := self.owner.write_index(folder.root, name, kind, text)) is None:
                self.notices[str(folder.root / name)] = "was written by somebody else and is left as it is"
            written += done or 0
        return written

    # --- whose it is ------------------------------------------------------------------------------------------

    def _is_foreign(self, folder: PageFolder) -> bool:
        if not (folder.is_shared or lies_within(folder.root)):  # since it was written
            self.notices[str(folder.root)] = "has a folder that is a link, and is left alone"
            return True
        if not self.owner.is_other_installation(folder.root):
            return False
        self.notices[str(folder.root)] = "is kept by another installation of xiaobai-memory"
        return True

    def _claim_folder(self, folder: PageFolder, records: Sequence[Record]) -> None:
        """Make the folder ours: what another account of this machine wrote there goes, as far as it is unchanged."""
        marker = self.owner.read(folder.root)
        if self.owner.is_other_profile(folder.root):
            for name in _page_names(folder.root):
                _remove_unchanged(folder.root / "daily" / name, marker.get("pages", {}).get(name))
            if "keywords" not in marker:  # an earlier version noted no hash
                remove_private(folder.root / KEYWORDS_FILE)
            _remove_unchanged(folder.root / KEYWORDS_FILE, marker.get("keywords"))
            _remove_unchanged(folder.root / SUMMARY_FILE, marker.get("summary"))
            _remove_unchanged(folder.root / EMBEDDINGS_FILE, marker.get("vectors"))
            found = {name: read_once(folder.root / "daily" / name) for name in _page_names(folder.root)}
            ours = self._checkpoints.matches_any_state
            left = [name for name, page in found.items() if page and not ours(folder.root, name, page.data)]
            self.owner.update_marker(folder.root, pages={}, summary=[], keywords=[], vectors=[], left=left)
        for name in self.owner.read(folder.root).get("left", []):
            self._add_notice(folder, name, LEFT_ALONE)
        if records:
            self._checkpoints.save_folder(folder.root, None if folder.is_shared else _project_of(records))


def _base_of(file: DayFile, text: str) -> PageBase:
    return PageBase(text, {number: record.record_id for number, record in file.records.items()})


def _page_names(root: Path) -> list[str]:
    folder = root / "daily"
    with translate_os_errors(folder):
        found = sorted(folder.iterdir()) if is_folder(folder) else []
    return [entry.name for entry in found if _PAGE_NAME.fullmatch(entry.name)]


def _lstat(entry: Path) -> os.stat_result | None:
    """What `lstat` says; None where it went this moment, or nobody may know."""
    try:
        return entry.lstat()
    except OSError:
        return None


def _project_of(records: Iterable[Record]) -> str | None:
    return next((record.project_path for record in records), None)


def _remove_unchanged(path: Path, known_hashes: Any) -> None:
    found = read_once(path)
    if found is not None and isinstance(known_hashes, list) and found.sha256 in known_hashes:
        with suppress(DocumentChanged):  # saved this moment: it is left
            remove_unchanged(path, found.sha256)


def _remove_displaced(root: Path, checkpoints: PageCheckpoints) -> None:
    """Take away what a killed writer exchanged out of a page, where it is ours; a hand's stays where it is."""
    for name in {*_page_names(root), *checkpoints.page_names(root)}:
        for aside in displaced_files(root / "daily" / name):
            found = read_once(aside)
            if found is not None and checkpoints.matches_base(root, name, found.data):
                remove_private(aside)
