"""What was written into pages, noted in the profile's folder: the base of every comparison with what a hand left."""

import hashlib
import json
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.errors import StorageError
from sync.files import make_private_folder, probe, remove_leftovers, remove_private, write_private
from sync.memory.daily.hand import Base

IN_DOUBT: Final = 4  # states of a page that it may be in besides the newest; each is a copy of its text


class Noted:
    """One profile's notes, in `folder`: a folder for each place, a file for each page in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def bases(self, root: Path, name: str) -> list[Base]:
        """The page as it was written last and, where it is not sure that it came to that, as it may have stayed."""
        return [base for told in _written(read_json(self._path(root, name))) if (base := _base(told)) is not None]

    def is_known(self, root: Path, name: str, data: bytes) -> bool:
        """Whether a page stands as we had written it or taken it in."""
        return any(data == base.text.encode() for base in self.bases(root, name))

    def is_ours(self, root: Path, name: str, data: bytes) -> bool:
        """Likewise, or as a hand had left it when it was begun to be taken in: that may not have come to its end."""
        told = read_json(self._path(root, name))
        states = map(_base, (*_written(told), told.get("begun")))
        return any(base is not None and data == base.text.encode() for base in states)

    def begun(self, root: Path, name: str, added: Container[str], said: Container[str]) -> Base | None:
        """The page of a hand as it was begun to be taken in, where it is not noted that it was taken in.

        With those of its sessions that were: of which there are records (`added`), or that deeds have `said`, which may
        be forgotten by now. None without any.
        """
        found = _base(read_json(self._path(root, name)).get("begun"))
        if found is None:
            return None
        deeds = {number: event_id for number, event_id in found.deeds.items() if event_id in said}
        held = {
            number: record_id
            for number, record_id in found.records.items()
            if number in deeds or (number not in found.deeds and record_id in added)
        }
        return Base(found.text, held, deeds) if held else None

    def begin(self, root: Path, name: str, base: Base) -> None:
        """Say which records the sessions of a hand's page are or become, and by which deeds, before any is done."""
        path = self._path(root, name)
        self._make_folder(path.parent)
        _write(path, written=_written(read_json(path)), begun=_told(base))

    def note(self, root: Path, name: str, base: Base, *, stands: str | None = None, sure: bool = False) -> None:
        """What a page says, and until that is `sure` also what it said before: what `stands` there, where we know it.

        A disk that fails again and again leaves an older page than the one that was noted last.
        """
        path = self._path(root, name)
        known = {} if sure else read_json(path)
        written = _written(known)
        before = [told for told in written if stands is not None and told.get("text") == stands] or written[:IN_DOUBT]
        self._make_folder(path.parent)
        _write(path, written=[_told(base), *before], begun=known.get("begun"))

    def names(self, root: Path) -> list[str]:
        """The pages of a place of which something is noted, whether they are there or not."""
        return [path.stem for path in self._path(root, "").parent.glob("*.md.json")]

    def tidy(self, root: Path) -> None:
        """Take away what a killed writer left half written."""
        remove_leftovers(self._path(root, "").parent)

    def remove(self, root: Path, name: str) -> None:
        remove_private(self._path(root, name))

    def note_place(self, root: Path, project_path: str | None) -> None:
        path = self._path(root, "place")
        self._make_folder(path.parent)
        write_text(path, json.dumps({"root": str(root), "project_path": project_path}, ensure_ascii=False))

    def places(self) -> Iterator[tuple[Path, str | None]]:
        """Every place in which something was written, and its project."""
        for path in sorted(self._folder.glob("*/place.json")):
            told = read_json(path)
            root, project = told.get("root"), told.get("project_path")
            if isinstance(root, str):
                yield Path(root), project if isinstance(project, str) else None

    def _make_folder(self, path: Path) -> None:
        make_private_folder(self._folder)  # as a parent alone it would be open to others
        make_private_folder(path)

    def _path(self, root: Path, name: str) -> Path:
        return self._folder / hashlib.sha256(str(root).encode()).hexdigest()[:16] / f"{name}.json"


class _Told(msgspec.Struct):
    """A page as a note has it."""

    text: str
    records: dict[int, str] = {}
    deeds: dict[int, str] = {}


def _base(told: object) -> Base | None:
    try:
        found = msgspec.convert(told, _Told, str_keys=True)
    except msgspec.ValidationError:
        return None
    return Base(found.text, found.records, found.deeds)


def _written(told: dict[str, Any]) -> list[dict[str, Any]]:
    """The states of a page that a note tells of; what is of another shape is none."""
    states = told.get("written")
    return [state for state in states if _base(state) is not None] if isinstance(states, list) else []


def _told(base: Base) -> dict[str, Any]:
    told: dict[str, Any] = {"text": base.text, "records": _by_number(base.records)}
    return {**told, "deeds": _by_number(base.deeds)} if base.deeds else told


def _by_number(ids: Mapping[int, str]) -> dict[str, str]:
    return {str(number): one for number, one in ids.items()}


def _write(path: Path, *, written: list[Any], begun: Any) -> None:
    more = {} if begun is None else {"begun": begun}
    write_text(path, json.dumps({"written": written, **more}, ensure_ascii=False))


def write_text(path: Path, text: str) -> int:
    """Make a file of ours say this; how many files that changed."""
    found = probe(path)
    if found is not None and found.data == text.encode():
        return 0
    write_private(path, text.encode())
    return 1


def read_json(path: Path) -> dict[str, Any]:
    """What a small file of ours says; nothing where it is missing or damaged."""
    try:
        found = probe(path)
        told = json.loads(found.data) if found else {}
    except (StorageError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
