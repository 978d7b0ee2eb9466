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
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from sync.errors import DocumentChanged, InvalidInput, StorageError
from sync.files import (
    compare_and_swap,
    left_aside,
    probe,
    remove_leftovers,
    remove_private,
    remove_unchanged,
    told,
)
from sync.memory.daily.book import Book
from sync.memory.daily.config import Config
from sync.memory.daily.hand import Base, Told, changes
from sync.memory.daily.model import Record
from sync.memory.daily.noted import Noted
from sync.memory.daily.numbering import days, numbers, page_of, sessions
from sync.memory.daily.overview import Written, file_name, keywords_json, summary_md
from sync.memory.daily.page import parts, render
from sync.memory.daily.places import FOLDERS, Place, Places, entries, is_folder, lies_within
from sync.memory.daily.whose import Owner
from sync.troubles import Troubles

LOCK: Final = ".xiaobai-memory.lock"
LOCK_PATIENCE: Final = 2.0  # seconds; another process writes a few small files at most
SUMMARY: Final = "summary.md"
KEYWORDS: Final = "index/keywords.json"
EMBEDDINGS: Final = "index/embeddings.json"
MEGABYTE: Final = 1024 * 1024
LEFT: Final = "was changed by hand while another account was active, and is left as it is"
_PAGE: Final = re.compile(r"(\d{4}-\d{2}-\d{2})(?:\.([2-9]|[1-9]\d{1,2}))?\.md", re.ASCII)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Edit:
    """What a person changed in one page, in which place, and its text; `project_path` is that of what was added."""

    place: Place
    name: str
    day: str
    project_path: str | None
    text: str
    told: Told

    def base(self, added: Mapping[int, str], deeds: Mapping[int, str]) -> Base:
        """The page as one that is taken in."""
        return Base(self.text, {**self.told.records, **added}, deeds)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a place is to show: its records, in the files that hold them, under the options that hold there."""

    place: Place
    records: tuple[Record, ...]
    files: tuple[Written, ...]
    options: Config


class Pages:
    """The pages of one profile, wherever they lie. Synchronous; call it in a thread."""

    def __init__(self, places: Places, *, kept: Path, installation: str, profile: str) -> None:
        """`kept`: the folder in which is noted what was written."""
        self._places = places
        self._noted, self._troubles = Noted(kept), Troubles(log)
        self.owner = Owner(installation, profile)
        self.notices: dict[str, str] = {}
        self.failing: set[Path] = set()  # the places that could not be read or written in this round
        self._read: dict[Path, str] = {}  # the hash of each page as `edits` read it

    def edits(self, book: Book) -> list[Edit]:
        """What a person changed since the pages were written, also where that is no deed; begins a round."""
        self._troubles.end_but(self.failing)
        self.notices, self.failing, self._read = {}, set(), {}
        found: list[Edit] = []
        for place, project_path in self._known(book):
            with self.by_itself(place):
                found += self._edits_of(place, None if place.shared else project_path, book)
        return found

    def begin(self, edit: Edit, added: Mapping[int, str], deeds: Mapping[int, str]) -> None:
        """Note, before a page is taken in, what its additions become and by which deeds. Raises StorageError."""
        self._noted.begin(edit.place.root, edit.name, edit.base(added, deeds))

    def took(self, edit: Edit, added: Mapping[int, str]) -> None:
        """Note that deeds say what a page says. Raises StorageError."""
        self._noted.note(edit.place.root, edit.name, edit.base(added, {}), sure=True)

    def stamps(self, book: Book) -> tuple[Any, ...]:
        """Something that differs after a page was touched."""
        return tuple(
            (str(entry), found.st_mtime_ns, found.st_size)
            for place, _ in self._known(book)
            for folder in (place.root, place.root / "daily")
            for entry in entries(folder)
            if not entry.name.startswith(".") and (found := _touched(entry))
        )

    def write(self, book: Book) -> int:
        """Make every page what the book says, as `edits` has read them; how many files changed."""
        written = 0
        for shown in self.shown(book):
            if shown.place.root not in self.failing:
                with self.by_itself(shown.place):
                    written += self._write_place(shown, book)
        return written

    def shown(self, book: Book) -> list[Shown]:
        """What each place is to show, those included that have nothing to show any more."""
        by_place: dict[Place, list[Record]] = {}
        for record in book.shown():
            place = self._places.of(record.project_path)
            if place is not None:
                by_place.setdefault(place, []).append(record)
        for place, _ in self._known(book):
            if is_folder(place.root):
                by_place.setdefault(place, [])
        number_of = numbers(book.every(), self._places.of)
        return [self._shown(place, records, number_of) for place, records in by_place.items()]

    @contextmanager
    def alone(self, place: Place) -> Iterator[bool]:
        """Nobody else writes in a place meanwhile; False where another process does so just now."""
        try:
            with FileLock(place.root / LOCK, timeout=LOCK_PATIENCE, mode=0o600):
                yield True
        except Timeout:
            log.info("another process writes the pages of this place just now")
            yield False

    @contextmanager
    def by_itself(self, place: Place) -> Iterator[None]:
        """What cannot be read or written in a place now is told, and stops nothing else."""
        try:
            with told(place.root):
                yield
        except StorageError as error:
            self._troubles.met(place.root, f"the daily pages of a place could not be settled: {error.kind}")
            self.notices[str(place.root)] = error.message
            self.failing.add(place.root)

    # --- reading ----------------------------------------------------------------------------------------------

    def _known(self, book: Book) -> list[tuple[Place, str | None]]:
        """Every place that the book or what was written before names, with its project."""
        home = Place(self._places.home / ".cursor" / "skills" / "memories", shared=True)
        found: dict[Path, tuple[Place, str | None]] = {home.root: (home, None)}
        paths = dict.fromkeys(record.project_path for record in (*book.records.values(), *book.gone.values()))
        for path in paths:
            place = self._places.of(path)
            if place is not None:
                found.setdefault(place.root, (place, path))
        for root, path in self._noted.places():
            found.setdefault(root, (Place(root, shared=path is None), path))
        return list(found.values())

    def _edits_of(self, place: Place, project_path: str | None, book: Book) -> list[Edit]:
        if not is_folder(place.root) or self._foreign(place) or self.owner.is_anothers(place.root):
            return []
        left = self.owner.read(place.root).get("left", [])
        names = _pages_in(place.root)
        for name in names:
            if name in left:
                self._notice(place, name, LEFT)
        edits = (self._edit(place, name, project_path, book) for name in names if name not in left)
        return [edit for edit in edits if edit is not None]

    def _edit(self, place: Place, name: str, project_path: str | None, book: Book) -> Edit | None:
        match = _PAGE.fullmatch(name)
        assert match is not None  # _pages_in lets no other name through
        found = probe(place.root / "daily" / name)
        if found is None:
            return None
        self._read[place.root / "daily" / name] = found.sha256
        bases = self._noted.bases(place.root, name)
        begun = self._noted.begun(place.root, name, book.told, book.ever)
        try:
            text = found.data.decode("utf-8")
            if begun is None and any(text == base.text for base in bases):
                return None
            told = changes(bases, text, match.group(1), book.records, begun)
        except UnicodeDecodeError:
            self._notice(place, name, "is not UTF-8")
            return None
        except InvalidInput as error:
            self._notice(place, name, error.message)
            return None
        noted = bases or begun is not None  # else it is a page of a hand that says nothing yet
        return Edit(place, name, match.group(1), project_path, text, told) if told.changes or noted else None

    def _notice(self, place: Place, name: str, what: str) -> None:
        self.notices[str(place.root / "daily" / name)] = what

    # --- writing ----------------------------------------------------------------------------------------------

    def _shown(self, place: Place, records: Sequence[Record], number_of: Mapping[str, int]) -> Shown:
        options = self._places.options(_project_of(records)).value
        limit = int(options.storage.max_file_size_mb * MEGABYTE)
        found: list[Written] = []
        for day, of_day in days(records).items():
            noted = sessions(of_day, number_of)
            page = page_of(day, noted.items(), with_origin=place.shared)
            for part, piece in enumerate(parts(page, limit), start=1):
                held = {note.number: noted[note.number] for note in piece.notes}
                found.append(Written(part, piece, held))
        return Shown(place, tuple(records), tuple(found), options)

    def _write_place(self, shown: Shown, book: Book) -> int:
        place, files = shown.place, shown.files
        if self._foreign(place):
            return 0
        for name in FOLDERS:
            self._places.make_folder(place, name)
        with self.alone(place) as alone:
            if not alone:
                return 0
            for folder in (place.root, place.root / "daily", place.root / "index"):
                remove_leftovers(folder)
            self._noted.tidy(place.root)
            _clear_aside(place.root, self._noted)
            self._take_place(place, shown.records)
            written = sum(self._write_page(place, file) for file in files)
            written += self._remove_others(place, {file_name(file.page.day, file.part) for file in files})
            return written + self._write_overviews(place, files, book)

    def _write_page(self, place: Place, file: Written) -> int:
        name = file_name(file.page.day, file.part)
        path = place.root / "daily" / name
        if str(path) in self.notices:
            return 0
        text = render(file.page)
        found = probe(path)
        if found is not None and found.data == text.encode():
            if found.sha256 not in self.owner.read(place.root).get("pages", {}).get(name, []):
                self.owner.mark_page(place.root, name, text, found)  # a hand wrote it as we would: it is ours now
            if self._noted.bases(place.root, name) != [_base(file, text)]:
                self._noted.note(place.root, name, _base(file, text), sure=True)
            return 0
        if (None if found is None else found.sha256) != self._read.get(path):
            return 0  # a person saved since it was read, or it never was; the next round takes it in
        stands = None if found is None else found.data.decode("utf-8", "replace")
        self._noted.note(place.root, name, _base(file, text), stands=stands)
        self.owner.mark_page(place.root, name, text, found)
        try:
            compare_and_swap(path, None if found is None else found.sha256, text.encode())
        except DocumentChanged:  # a person saved this moment; the next round takes it in
            return 0
        self._noted.note(place.root, name, _base(file, text), sure=True)
        return 1

    def _remove_others(self, place: Place, names: set[str]) -> int:
        """Take away the pages that have nothing to show any more, and what was noted of them.

        Those are what we wrote, or what a hand wrote and deeds say as well: both are noted.
        """
        removed = 0
        for name in sorted({*_pages_in(place.root), *self._noted.names(place.root)} - names):
            path = place.root / "daily" / name
            found = probe(path)
            if str(path) in self.notices:
                continue
            if found is None:
                self._noted.remove(place.root, name)
            elif self._noted.is_known(place.root, name, found.data):
                with suppress(DocumentChanged):  # a person saved this moment; the next round takes it in
                    remove_unchanged(path, found.sha256)
                    self._noted.remove(place.root, name)
                    removed += 1
        return removed

    def _write_overviews(self, place: Place, files: Sequence[Written], book: Book) -> int:
        written, keywords = 0, keywords_json(files, book.updated_at, with_origin=place.shared)
        for name, kind, text in ((KEYWORDS, "keywords", keywords), (SUMMARY, "summary", summary_md(files))):
            if (done := self.owner.write(place.root, name, kind, text)) is None:
                self.notices[str(place.root / name)] = "was written by somebody else and is left as it is"
            written += done or 0
        return written

    # --- whose it is ------------------------------------------------------------------------------------------

    def _foreign(self, place: Place) -> bool:
        if not (place.shared or lies_within(place.root)):  # since it was written
            self.notices[str(place.root)] = "has a folder that is a link, and is left alone"
            return True
        if not self.owner.is_foreign(place.root):
            return False
        self.notices[str(place.root)] = "is kept by another installation of xiaobai-memory"
        return True

    def _take_place(self, place: Place, records: Sequence[Record]) -> None:
        """Make the folder ours: what another account of this machine wrote there goes, as far as it is unchanged."""
        marker = self.owner.read(place.root)
        if self.owner.is_anothers(place.root):
            for name in _pages_in(place.root):
                _remove_theirs(place.root / "daily" / name, marker.get("pages", {}).get(name))
            if "keywords" not in marker:  # an earlier version noted no hash
                remove_private(place.root / KEYWORDS)
            _remove_theirs(place.root / KEYWORDS, marker.get("keywords"))
            _remove_theirs(place.root / SUMMARY, marker.get("summary"))
            _remove_theirs(place.root / EMBEDDINGS, marker.get("vectors"))
            found = {name: probe(place.root / "daily" / name) for name in _pages_in(place.root)}
            ours = self._noted.is_ours
            left = [name for name, page in found.items() if page and not ours(place.root, name, page.data)]
            self.owner.mark(place.root, pages={}, summary=[], keywords=[], vectors=[], left=left)
        for name in self.owner.read(place.root).get("left", []):
            self._notice(place, name, LEFT)
        if records:
            self._noted.note_place(place.root, None if place.shared else _project_of(records))


def _base(file: Written, text: str) -> Base:
    return Base(text, {number: record.record_id for number, record in file.records.items()})


def _pages_in(root: Path) -> list[str]:
    folder = root / "daily"
    with told(folder):
        found = sorted(folder.iterdir()) if is_folder(folder) else []
    return [entry.name for entry in found if _PAGE.fullmatch(entry.name)]


def _touched(entry: Path) -> os.stat_result | None:
    """What `lstat` says; None where it went this moment, or nobody may know."""
    try:
        return entry.lstat()
    except OSError:
        return None


def _project_of(records: Iterable[Record]) -> str | None:
    return next((record.project_path for record in records), None)


def _remove_theirs(path: Path, known: Any) -> None:
    found = probe(path)
    if found is not None and isinstance(known, list) and found.sha256 in known:
        with suppress(DocumentChanged):  # saved this moment: it is left
            remove_unchanged(path, found.sha256)


def _clear_aside(root: Path, noted: Noted) -> None:
    """Take away what a killed writer exchanged out of a page, where it is ours; a hand's stays where it is."""
    for name in {*_pages_in(root), *noted.names(root)}:
        for aside in left_aside(root / "daily" / name):
            found = probe(aside)
            if found is not None and noted.is_known(root, name, found.data):
                remove_private(aside)
