"""What was written into pages, noted in the profile's folder: the base of every comparison with what a hand left."""

import hashlib
import json
from collections.abc import Container, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.daily.pages.page_diff import PageBase
from sync.errors import StorageError
from sync.system.files import make_private_folder, read_once, remove_private, remove_temporary_files, write_private

MAX_OLDER_STATES: Final = 4  # states of a page that it may be in besides the newest; each is a copy of its text


class PageCheckpoints:
    """One profile's notes, in `folder`: a folder for each place, a file for each page in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def bases(self, root: Path, name: str) -> list[PageBase]:
        """The page as it was written last and, where it is not sure that it came to that, as it may have stayed."""
        return [
            base
            for told in _written_states(read_json(self._path(root, name)))
            if (base := _parse_base(told)) is not None
        ]

    def matches_base(self, root: Path, name: str, data: bytes) -> bool:
        """Whether a page stands as we had written it or taken it in."""
        return any(data == base.text.encode() for base in self.bases(root, name))

    def matches_any_state(self, root: Path, name: str, data: bytes) -> bool:
        """Likewise, or as a hand had left it when it was begun to be taken in: that may not have come to its end."""
        told = read_json(self._path(root, name))
        states = map(_parse_base, (*_written_states(told), told.get("begun")))
        return any(base is not None and data == base.text.encode() for base in states)

    def unfinished_import(
        self, root: Path, name: str, known_record_ids: Container[str], known_change_ids: Container[str]
    ) -> PageBase | None:
        """The page of a hand as it was begun to be taken in, where it is not noted that it was taken in.

        With those of its sessions that were: of which there are records (`added`), or that deeds have `said`, which may
        be forgotten by now. None without any.
        """
        found = _parse_base(read_json(self._path(root, name)).get("begun"))
        if found is None:
            return None
        deeds = {number: event_id for number, event_id in found.change_ids.items() if event_id in known_change_ids}
        held = {
            number: record_id
            for number, record_id in found.record_ids.items()
            if number in deeds or (number not in found.change_ids and record_id in known_record_ids)
        }
        return PageBase(found.text, held, deeds) if held else None

    def begin_import(self, root: Path, name: str, base: PageBase) -> None:
        """Say which records the sessions of a hand's page are or become, and by which deeds, before any is done."""
        path = self._path(root, name)
        self._make_folder(path.parent)
        _write_checkpoint(path, written=_written_states(read_json(path)), unfinished=_state_json(base))

    def save(
        self, root: Path, name: str, base: PageBase, *, text_on_disk: str | None = None, is_confirmed: bool = False
    ) -> None:
        """What a page says, and until that is `sure` also what it said before: what `stands` there, where we know it.

        A disk that fails again and again leaves an older page than the one that was noted last.
        """
        path = self._path(root, name)
        known = {} if is_confirmed else read_json(path)
        written = _written_states(known)
        before = [told for told in written if text_on_disk is not None and told.get("text") == text_on_disk] or written[
            :MAX_OLDER_STATES
        ]
        self._make_folder(path.parent)
        _write_checkpoint(path, written=[_state_json(base), *before], unfinished=known.get("begun"))

    def page_names(self, root: Path) -> list[str]:
        """The pages of a place of which something is noted, whether they are there or not."""
        return [path.stem for path in self._path(root, "").parent.glob("*.md.json")]

    def remove_leftovers(self, root: Path) -> None:
        """Take away what a killed writer left half written."""
        remove_temporary_files(self._path(root, "").parent)

    def remove(self, root: Path, name: str) -> None:
        remove_private(self._path(root, name))

    def save_folder(self, root: Path, project_path: str | None) -> None:
        path = self._path(root, "place")
        self._make_folder(path.parent)
        write_text(path, json.dumps({"root": str(root), "project_path": project_path}, ensure_ascii=False))

    def page_folders(self) -> Iterator[tuple[Path, str | None]]:
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


class _CheckpointState(msgspec.Struct):
    """A page as a note has it."""

    text: str
    records: dict[int, str] = {}
    deeds: dict[int, str] = {}


def _parse_base(state: object) -> PageBase | None:
    try:
        found = msgspec.convert(state, _CheckpointState, str_keys=True)
    except msgspec.ValidationError:
        return None
    return PageBase(found.text, found.records, found.deeds)


def _written_states(checkpoint: dict[str, Any]) -> list[dict[str, Any]]:
    """The states of a page that a note tells of; what is of another shape is none."""
    states = checkpoint.get("written")
    return [state for state in states if _parse_base(state) is not None] if isinstance(states, list) else []


def _state_json(base: PageBase) -> dict[str, Any]:
    told: dict[str, Any] = {"text": base.text, "records": _by_number(base.record_ids)}
    return {**told, "deeds": _by_number(base.change_ids)} if base.change_ids else told


def _by_number(ids: Mapping[int, str]) -> dict[str, str]:
    return {str(number): one for number, one in ids.items()}


def _write_checkpoint(path: Path, *, written: list[Any], unfinished: Any) -> None:
    more = {} if unfinished is None else {"begun": unfinished}
    write_text(path, json.dumps({"written": written, **more}, ensure_ascii=False))


def write_text(path: Path, text: str) -> int:
    """Make a file of ours say this; how many files that changed."""
    found = read_once(path)
    if found is not None and found.data == text.encode():
        return 0
    write_private(path, text.encode())
    return 1


def read_json(path: Path) -> dict[str, Any]:
    """What a small file of ours says; nothing where it is missing or damaged."""
    try:
        found = read_once(path)
        told = json.loads(found.data) if found else {}
    except (StorageError, ValueError, RecursionError):
        return {}
    return told if isinstance(told, dict) else {}
