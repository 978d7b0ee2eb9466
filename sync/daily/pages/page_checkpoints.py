"""What was last written to each page, kept in the profile's folder: the base of comparisons with manual edits."""

import hashlib
import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.daily.pages.page_diff import PageBase, is_of_other_account, sessions_of
from sync.daily.pages.page_format import DayPage
from sync.errors import StorageError
from sync.system.files import make_private_folder, read_once, remove_private, remove_temporary_files, write_private

MAX_OLDER_STATES: Final = 4  # of a page whose last writes may have failed; each is a copy of its text


class PageCheckpoints:
    """One profile's checkpoints: a subfolder for each folder of pages, a file for each page.

    `other_folders`: the checkpoints of the other profiles, to tell their pages from ours.
    """

    def __init__(self, folder: Path, other_folders: Callable[[], Sequence[Path]] = list) -> None:
        self._folder, self._other_folders = folder, other_folders

    def bases(self, root: Path, name: str) -> list[PageBase]:
        """The page as last written and, unless that is confirmed, the states that may still be on disk."""
        states = map(_parse_base, _written_states(read_json(self._path(root, name))))
        return [base for base in states if base is not None]

    def other_account_of(
        self, root: Path, name: str, page: DayPage, own_bases: Sequence[PageBase]
    ) -> "PageCheckpoints | None":
        """The checkpoints of the other account that a page belongs to; None if it is ours."""
        for other in map(PageCheckpoints, self._other_folders()):
            if is_of_other_account(page, own_bases, other.bases(root, name)):
                return other
        return None

    def matches(self, root: Path, name: str, data: bytes, *, with_begun: bool = False) -> bool:
        """Whether a page is as we wrote or imported it, or perhaps as it was when an unfinished import began."""
        checkpoint = read_json(self._path(root, name))
        begun = (checkpoint.get("begun"),) if with_begun else ()
        states = map(_parse_base, (*_written_states(checkpoint), *begun))
        return any(base is not None and data == base.text.encode() for base in states)

    def unfinished_import(
        self, root: Path, name: str, known_record_ids: Container[str], known_change_ids: Container[str]
    ) -> PageBase | None:
        """The page as it was when its import began, if that was never finished; None if nothing was imported.

        It has the sessions that were imported: their records exist, or their changes are in the log (perhaps erased).
        """
        base = _parse_base(read_json(self._path(root, name)).get("begun"))
        if base is None:
            return None
        changes = {number: event_id for number, event_id in base.change_ids.items() if event_id in known_change_ids}
        imported = {
            number: record_id
            for number, record_id in base.record_ids.items()
            if number in changes or (number not in base.change_ids and record_id in known_record_ids)
        }
        return PageBase(base.text, imported, changes) if imported else None

    def begin_import(self, root: Path, name: str, base: PageBase) -> None:
        """Note the record ids of a page's sessions and the ids of the changes to come, before making any."""
        path = self._path(root, name)
        self._make_folder(path.parent)
        checkpoint = read_json(path)
        former = _former_sessions(checkpoint)
        _write_checkpoint(path, written=_written_states(checkpoint), unfinished=_state_json(base), former=former)

    def save(
        self, root: Path, name: str, base: PageBase, *, text_on_disk: str | None = None, is_confirmed: bool = False
    ) -> None:
        """Note a page's text and, until the write is confirmed, its earlier states, which may still be on disk.

        `text_on_disk`: the current text if it is known, so that only that state is kept.
        """
        path = self._path(root, name)
        found = read_json(path)
        checkpoint, former = {} if is_confirmed else found, _former_sessions(found, base)
        written = _written_states(checkpoint)
        current = [state for state in written if text_on_disk is not None and state.get("text") == text_on_disk]
        states = [_state_json(base), *(current or written[:MAX_OLDER_STATES])]
        self._make_folder(path.parent)
        _write_checkpoint(path, written=states, unfinished=checkpoint.get("begun"), former=former)

    def erased_sessions(self, root: Path, name: str, known_record_ids: Container[str]) -> set[str]:
        """The number and time of each session that the page once showed and whose record was erased."""
        former = _former_sessions(read_json(self._path(root, name)))
        return {session for record_id, session in former.items() if record_id not in known_record_ids}

    def page_names(self, root: Path) -> list[str]:
        """The pages of a folder that have a checkpoint, whether they exist or not."""
        return [path.stem for path in self._path(root, "").parent.glob("*.md.json")]

    def remove_leftovers(self, root: Path) -> None:
        """Remove the temporary files of killed writers."""
        remove_temporary_files(self._path(root, "").parent)

    def remove(self, root: Path, name: str) -> None:
        """Forget a page, but for the sessions that an editor may still show."""
        path = self._path(root, name)
        if former := _former_sessions(read_json(path), PageBase("", {})):
            _write_checkpoint(path, written=[], unfinished=None, former=former)
        else:
            remove_private(path)

    def save_folder(self, root: Path, project_path: str | None) -> None:
        path = self._path(root, "place")
        self._make_folder(path.parent)
        write_text(path, json.dumps({"root": str(root), "project_path": project_path}, ensure_ascii=False))

    def page_folders(self) -> Iterator[tuple[Path, str | None]]:
        """Every folder in which pages were written, and its project."""
        for path in sorted(self._folder.glob("*/place.json")):
            folder = read_json(path)
            root, project = folder.get("root"), folder.get("project_path")
            if isinstance(root, str):
                yield Path(root), project if isinstance(project, str) else None

    def _make_folder(self, path: Path) -> None:
        make_private_folder(self._folder)  # a parent that is created implicitly is not private
        make_private_folder(path)

    def _path(self, root: Path, name: str) -> Path:
        return self._folder / hashlib.sha256(str(root).encode()).hexdigest()[:16] / f"{name}.json"


class _CheckpointState(msgspec.Struct):
    """A state of a page as stored."""

    text: str
    records: dict[int, str] = {}
    deeds: dict[int, str] = {}


def _parse_base(state: object) -> PageBase | None:
    try:
        stored = msgspec.convert(state, _CheckpointState, str_keys=True)
    except msgspec.ValidationError:
        return None
    return PageBase(stored.text, stored.records, stored.deeds)


def _written_states(checkpoint: dict[str, Any]) -> list[dict[str, Any]]:
    """The well-formed states in a checkpoint."""
    states = checkpoint.get("written")
    return [state for state in states if _parse_base(state) is not None] if isinstance(states, list) else []


def _state_json(base: PageBase) -> dict[str, Any]:
    state: dict[str, Any] = {"text": base.text, "records": _by_number(base.record_ids)}
    return {**state, "deeds": _by_number(base.change_ids)} if base.change_ids else state


def _by_number(ids: Mapping[int, str]) -> dict[str, str]:
    return {str(number): one for number, one in ids.items()}


def _former_sessions(checkpoint: dict[str, Any], base: PageBase | None = None) -> dict[str, str]:
    """The sessions that a page showed before, by record: those noted and those that `base` no longer has."""
    noted = checkpoint.get("former")
    former = {one: text for one, text in noted.items() if isinstance(text, str)} if isinstance(noted, dict) else {}
    for state in map(_parse_base, _written_states(checkpoint) if base is not None else ()):
        gone = () if state is None else sessions_of(state).values()
        former |= {record_id: session.heading for record_id, session in gone}
    kept = () if base is None else base.record_ids.values()
    return {record_id: heading for record_id, heading in former.items() if record_id not in kept}


def _write_checkpoint(path: Path, *, written: list[Any], unfinished: Any, former: dict[str, str]) -> None:
    more = ({} if unfinished is None else {"begun": unfinished}) | ({"former": former} if former else {})
    write_text(path, json.dumps({"written": written, **more}, ensure_ascii=False))


def write_text(path: Path, text: str) -> int:
    """Write a file of ours unless it has this text already; how many files changed."""
    found = read_once(path)
    if found is not None and found.data == text.encode():
        return 0
    write_private(path, text.encode())
    return 1


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file of ours; empty if the file is missing or damaged."""
    try:
        found = read_once(path)
        content = json.loads(found.data) if found else {}
    except (StorageError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}
