"""The pages, indexes and summaries on disk: written from the records, and read for manual edits.

Manual edits are imported first; then a page is written, but only over the bytes that were read. A page that cannot be
parsed is left as it is and named in `notices`. See docs/decisions/020-daily-pages.md.
"""

import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.daily.config import DailyConfig
from sync.daily.model import Record
from sync.daily.pages.folder_owner import FolderOwner
from sync.daily.pages.indexes import DayFile, file_name, keywords_json, summary_md
from sync.daily.pages.numbering import by_page_number, group_by_day, page_numbers, page_of
from sync.daily.pages.page_checkpoints import PageCheckpoints
from sync.daily.pages.page_diff import PageBase, PageDiff, diff_page
from sync.daily.pages.page_folders import (
    PAGES_PATH,
    SUBFOLDERS,
    PageFolder,
    PageFolders,
    is_folder,
    lies_within,
    list_folder,
)
from sync.daily.pages.page_format import in_its_language, parse, render, split_page
from sync.daily.records.reducer import DailyRecords
from sync.errors import DocumentChanged, InvalidInput, StorageBusy, StorageError
from sync.runtime.log_once import LogOnce
from sync.system.atomic_swap import compare_and_swap, displaced_files, remove_unchanged
from sync.system.files import (
    FileProbe,
    pinned_folder,
    read_once,
    remove_private,
    remove_temporary_files,
    translate_os_errors,
)
from sync.system.process_lock import ProcessLock
from sync.system.repositories import is_in_repository

LOCK_FILE: Final = ".xiaobai-memory.lock"
LOCK_TIMEOUT: Final = 2.0  # seconds; a process holds the lock for a few small files
SUMMARY_FILE: Final = "summary.md"
KEYWORDS_FILE: Final = "index/keywords.json"
EMBEDDINGS_FILE: Final = "index/embeddings.json"
MEGABYTE: Final = 1024 * 1024
WAITS: Final = "is in a repository and changes your records; it is left as it is until `daily take`"
LEFT_ALONE: Final = "has text of another account, or was changed by hand while one was active, and is left as it is"
_PAGE_NAME: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:\.([2-9]|[1-9]\d{1,2}))?\.md", re.ASCII)

log = logging.getLogger(__name__)


class PageEdit(msgspec.Struct, frozen=True):
    """The manual edits of one page, and its text. Added sessions belong to `project_path`.

    `is_project_file`: the page is in a repository, so that a pull may have written it.
    """

    folder: PageFolder
    name: str
    day: str
    project_path: str | None
    text: str
    diff: PageDiff
    is_project_file: bool = False

    @property
    def path(self) -> str:
        return str(self.folder.root / "daily" / self.name)

    def new_base(self, new_record_ids: Mapping[int, str], change_ids: Mapping[int, str]) -> PageBase:
        """The page as the base of the next comparison."""
        return PageBase(self.text, {**self.diff.record_ids, **new_record_ids}, change_ids)


class FolderContent(msgspec.Struct, frozen=True):
    """What a folder shows: its records, the files that hold them, and its options."""

    folder: PageFolder
    records: tuple[Record, ...]
    files: tuple[DayFile, ...]
    options: DailyConfig


class PageFiles:
    """All pages of one profile. Synchronous; call it in a thread. Only the holder of the sidecar role may."""

    def __init__(self, page_folders: PageFolders, checkpoints: PageCheckpoints, owner: FolderOwner) -> None:
        self._page_folders, self._checkpoints, self.owner = page_folders, checkpoints, owner
        self._log_once = LogOnce(log)
        self.notices: dict[str, str] = {}
        self.failing_folders: set[Path] = set()  # in this round; they are retried
        self.waiting: dict[str, PageEdit] = {}  # pages of a repository that the person may take
        self._read_hashes: dict[Path, str] = {}  # of each page as `read_edits` read it

    def read_edits(self, records: DailyRecords) -> list[PageEdit]:
        """Begin a round: the manual edits since the pages were written, those without a change included."""
        self._log_once.retain(self.failing_folders)
        self.notices, self.failing_folders, self._read_hashes, self.waiting = {}, set(), {}, {}
        edits: list[PageEdit] = []
        for folder, project_path in self._known_folders(records):
            with self.isolate_errors(folder):
                edits += self._edits_in(folder, None if folder.is_shared else project_path, records)
        return edits

    def begin_import(self, edit: PageEdit, new_record_ids: Mapping[int, str], change_ids: Mapping[int, str]) -> None:
        """Note the ids that a page's edits are about to get, so that a crash cannot import them twice. StorageError."""
        self._checkpoints.begin_import(edit.folder.root, edit.name, edit.new_base(new_record_ids, change_ids))

    def finish_import(self, edit: PageEdit, new_record_ids: Mapping[int, str]) -> None:
        """Note that a page's edits are imported. Raises StorageError."""
        self._checkpoints.save(edit.folder.root, edit.name, edit.new_base(new_record_ids, {}), is_confirmed=True)

    def stamps(self, records: DailyRecords) -> tuple[Any, ...]:
        """A value that changes when a file does."""
        return tuple(
            (str(entry), status.st_mtime_ns, status.st_size)
            for folder, _ in self._known_folders(records)
            for path in (folder.root, folder.root / "daily")
            for entry in list_folder(path)
            if not entry.name.startswith(".") and (status := _lstat(entry))
        )

    def write_pages(self, records: DailyRecords) -> int:
        """Write every page that differs from the records; how many files changed."""
        written = 0
        for shown in self.folder_contents(records):
            if shown.folder.root not in self.failing_folders:
                with self.isolate_errors(shown.folder):
                    written += self._write_folder(shown, records)
        return written

    def folder_contents(self, daily_records: DailyRecords) -> list[FolderContent]:
        """What each folder shows, folders without visible records included."""
        by_folder: dict[PageFolder, list[Record]] = {}
        for record in daily_records.visible():
            folder = self._page_folders.folder_of(record.page_project)
            if folder is not None:
                by_folder.setdefault(folder, []).append(record)
        for folder, _ in self._known_folders(daily_records):
            if is_folder(folder.root):
                by_folder.setdefault(folder, [])
        number_of = page_numbers(daily_records.all_records(), self._page_folders.folder_of)
        return [
            _folder_content(folder, records, number_of, self._page_folders.options(_project_of(records)).value)
            for folder, records in by_folder.items()
        ]

    @contextmanager
    def exclusive(self, folder: PageFolder) -> Iterator[bool]:
        """Lock a folder against other processes; False if another one holds the lock."""
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
        """Turn a storage error of a folder into a notice, so that other folders are not affected."""
        try:
            with translate_os_errors(folder.root):
                yield
        except StorageError as error:
            self._log_once.report(folder.root, f"the daily pages of a place could not be settled: {error.kind}")
            self.notices[str(folder.root)] = error.message
            self.failing_folders.add(folder.root)

    def _known_folders(self, records: DailyRecords) -> list[tuple[PageFolder, str | None]]:
        """Every folder that a record belongs to or that has a checkpoint, with its project."""
        home = PageFolder(self._page_folders.home / PAGES_PATH, is_shared=True)
        folders: dict[Path, tuple[PageFolder, str | None]] = {home.root: (home, None)}
        paths = dict.fromkeys(record.page_project for record in (*records.by_id.values(), *records.removed.values()))
        for path in paths:
            folder = self._page_folders.folder_of(path)
            if folder is not None:
                folders.setdefault(folder.root, (folder, path))
        for root, path in self._checkpoints.page_folders():
            folders.setdefault(root, (PageFolder(root, is_shared=path is None), path))
        return list(folders.values())

    def _edits_in(self, folder: PageFolder, project_path: str | None, records: DailyRecords) -> list[PageEdit]:
        if not is_folder(folder.root) or self._is_foreign(folder) or self.owner.is_other_profile(folder.root):
            return []
        names = _page_names(folder.root)
        left = self.owner.left_pages(folder.root, names)
        for name in left:
            self._add_notice(folder, name, LEFT_ALONE)
        edits = (self._read_edit(folder, name, project_path, records) for name in names if name not in left)
        return [edit for edit in edits if edit is not None]

    def _read_edit(
        self, folder: PageFolder, name: str, project_path: str | None, records: DailyRecords
    ) -> PageEdit | None:
        day = name[: len("2026-01-29")]  # as _page_names has checked
        found = read_once(folder.root / "daily" / name)
        if found is None:
            return None
        self._read_hashes[folder.root / "daily" / name] = found.sha256
        bases = self._checkpoints.bases(folder.root, name)
        erased = self._checkpoints.erased_sessions(folder.root, name, records.record_ids)
        unfinished = self._checkpoints.unfinished_import(folder.root, name, records.record_ids, records.all_change_ids)
        try:
            text = found.data.decode("utf-8")
            if unfinished is None and any(text == base.text for base in bases):
                return None
            owner = None if unfinished else self._checkpoints.other_account_of(folder.root, name, parse(text), bases)
            if owner is not None:
                self._set_aside(folder, name, found, owner)
                return None
            diff = diff_page(bases, text, day, records.by_id, unfinished, erased)
        except UnicodeDecodeError:
            self._add_notice(folder, name, "is not UTF-8")
            return None
        except InvalidInput as error:
            self._add_notice(folder, name, error.message)
            return None
        if not (diff.changes or bases or unfinished or erased):
            return None  # the user created the page, and it is still empty
        return PageEdit(folder, name, day, project_path, text, diff, is_in_repository(folder.root))

    def _set_aside(self, folder: PageFolder, name: str, page: FileProbe, owner: PageCheckpoints) -> None:
        """Remove another account's page that a window saved again, or leave it alone if it was edited."""
        if owner.matches(folder.root, name, page.data):
            _remove_unchanged(folder.root / "daily" / name, [page.sha256])
            del self._read_hashes[folder.root / "daily" / name]
        else:
            self.owner.leave_alone(folder.root, name)
            self._add_notice(folder, name, LEFT_ALONE)

    def _add_notice(self, folder: PageFolder, name: str, what: str) -> None:
        self.notices[str(folder.root / "daily" / name)] = what

    def _write_folder(self, content: FolderContent, records: DailyRecords) -> int:
        folder, files = content.folder, content.files
        if self._is_foreign(folder):
            return 0
        for name in SUBFOLDERS:
            self._page_folders.make_folder(folder, name)
        with self.exclusive(folder) as is_locked:
            if not is_locked:
                return 0
            for path in (folder.root, folder.root / "daily", folder.root / "index"):
                remove_temporary_files(path)
            self._checkpoints.remove_leftovers(folder.root)
            _remove_displaced(folder.root, self._checkpoints)
            self._claim_folder(folder, content.records)
            written = sum(self._write_page(folder, file) for file in files)
            written += self._remove_obsolete(folder, {file_name(file.page.day, file.part) for file in files})
            return written + self._write_indexes(folder, files, records)

    def _write_page(self, folder: PageFolder, file: DayFile) -> int:
        path = folder.root / "daily" / (name := file_name(file.page.day, file.part))
        if str(path) in self.notices:
            return 0
        found = read_once(path)
        text = render(in_its_language(file.page, found, self._page_folders.language.current))
        if found is not None and found.data == text.encode():
            if found.sha256 not in self.owner.read(folder.root).get("pages", {}).get(name, []):
                self.owner.mark_page(folder.root, name, text, found)  # a manual edit wrote exactly our text
            if self._checkpoints.bases(folder.root, name) != [_base_of(file, text)]:
                self._checkpoints.save(folder.root, name, _base_of(file, text), is_confirmed=True)
            return 0
        if (None if found is None else found.sha256) != self._read_hashes.get(path):
            return 0  # edited since it was read, or never read; the next round imports it
        on_disk = None if found is None else found.data.decode("utf-8", "replace")
        self._checkpoints.save(folder.root, name, _base_of(file, text), text_on_disk=on_disk)
        self.owner.mark_page(folder.root, name, text, found)
        try:
            with pinned_folder(path.parent, within=folder.boundary) as pinned:
                compare_and_swap(pinned / name, None if found is None else found.sha256, text.encode())
        except DocumentChanged:  # edited this moment; the next round imports it
            return 0
        self._checkpoints.save(folder.root, name, _base_of(file, text), is_confirmed=True)
        return 1

    def _remove_obsolete(self, folder: PageFolder, names: set[str]) -> int:
        """Remove the pages that have no records any more, with their checkpoints; not one with unknown content."""
        removed = 0
        for name in sorted({*_page_names(folder.root), *self._checkpoints.page_names(folder.root)} - names):
            path = folder.root / "daily" / name
            if str(path) in self.notices:
                continue
            if (found := read_once(path)) is None:
                self._checkpoints.remove(folder.root, name)
            elif self._checkpoints.matches(folder.root, name, found.data):
                with suppress(DocumentChanged):  # edited this moment; the next round imports it
                    remove_unchanged(path, found.sha256)
                    self._checkpoints.remove(folder.root, name)
                    removed += 1
        return removed

    def _write_indexes(self, folder: PageFolder, files: Sequence[DayFile], records: DailyRecords) -> int:
        keywords = keywords_json(files, records.updated_at, with_origin=folder.is_shared)
        written, summary = 0, summary_md(files, self._page_folders.language.current)
        for name, kind, text in ((KEYWORDS_FILE, "keywords", keywords), (SUMMARY_FILE, "summary", summary)):
            if (done := self.owner.write_index(folder, name, kind, text)) is None:
                self.notices[str(folder.root / name)] = "was written by somebody else and is left as it is"
            written += done or 0
        return written

    def _is_foreign(self, folder: PageFolder) -> bool:
        if not (folder.is_shared or lies_within(folder.root)):
            self.notices[str(folder.root)] = "has a folder that is a link, and is left alone"
            return True
        if not self.owner.is_other_installation(folder.root):
            return False
        self.notices[str(folder.root)] = "is kept by another installation of xiaobai-memory"
        return True

    def _claim_folder(self, folder: PageFolder, records: Sequence[Record]) -> None:
        """Take over a folder: remove what another account of this machine wrote there, unless it was edited since."""
        marker = self.owner.read(folder.root)
        if self.owner.is_other_profile(folder.root):
            for name in _page_names(folder.root):
                _remove_unchanged(folder.root / "daily" / name, marker.get("pages", {}).get(name))
            if "keywords" not in marker:  # an earlier version did not note its hash
                remove_private(folder.root / KEYWORDS_FILE)
            for name, kind in ((KEYWORDS_FILE, "keywords"), (SUMMARY_FILE, "summary"), (EMBEDDINGS_FILE, "vectors")):
                _remove_unchanged(folder.root / name, marker.get(kind))
            pages = {name: read_once(folder.root / "daily" / name) for name in _page_names(folder.root)}
            is_ours = partial(self._checkpoints.matches, with_begun=True)
            left = [name for name, page in pages.items() if page and not is_ours(folder.root, name, page.data)]
            self.owner.update_marker(folder.root, pages={}, summary=[], keywords=[], vectors=[], left=left)
        for name in set(_page_names(folder.root)) & set(self.owner.read(folder.root).get("left", [])):
            self._add_notice(folder, name, LEFT_ALONE)
        if records:
            self._checkpoints.save_folder(folder.root, None if folder.is_shared else _project_of(records))


def _folder_content(
    folder: PageFolder, records: Sequence[Record], page_numbers: Mapping[str, int], options: DailyConfig
) -> FolderContent:
    limit = int(options.storage.max_file_size_mb * MEGABYTE)
    files: list[DayFile] = []
    for day, of_day in group_by_day(records).items():
        by_number = by_page_number(of_day, page_numbers)
        page = page_of(day, by_number.items(), with_origin=folder.is_shared)
        for part, piece in enumerate(split_page(page, limit), start=1):
            of_part = {session.number: by_number[session.number] for session in piece.sessions}
            files.append(DayFile(part, piece, of_part))
    return FolderContent(folder, tuple(records), tuple(files), options)


def _base_of(file: DayFile, text: str) -> PageBase:
    return PageBase(text, {number: record.record_id for number, record in file.records.items()})


def _page_names(root: Path) -> list[str]:
    folder = root / "daily"
    with translate_os_errors(folder):
        found = sorted(folder.iterdir()) if is_folder(folder) else []
    return [entry.name for entry in found if _PAGE_NAME.fullmatch(entry.name)]


def _lstat(entry: Path) -> os.stat_result | None:
    """The status of a file; None if it has gone or cannot be read."""
    try:
        return entry.lstat()
    except OSError:
        return None


def _project_of(records: Iterable[Record]) -> str | None:
    return next((record.page_project for record in records), None)


def _remove_unchanged(path: Path, known_hashes: Any) -> None:
    found = read_once(path)
    if found is not None and isinstance(known_hashes, list) and found.sha256 in known_hashes:
        with suppress(DocumentChanged):  # edited this moment, so it stays
            remove_unchanged(path, found.sha256)


def _remove_displaced(root: Path, checkpoints: PageCheckpoints) -> None:
    """Remove the former contents of pages that a killed writer left beside them, except manual edits."""
    for name in {*_page_names(root), *checkpoints.page_names(root)}:
        for aside in displaced_files(root / "daily" / name):
            found = read_once(aside)
            if found is not None and checkpoints.matches(root, name, found.data):
                remove_private(aside)
