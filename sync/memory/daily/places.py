"""Where pages lie, and the `config.json` that says so: a project's own folder, or the one in the home.

Decisions
    A project's `config.json` holds for it where there is one, else the home's, else the defaults.
    A project's folder is used only where the project is a folder of this machine, and only if it really lies in it: a
    link that leads out of the project is not followed, nor is any link below that folder. A repository can bring links.
    A path that is too long, or that this user may not look at, is no folder: what belongs to it lies in the home.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sync.errors import InvalidInput, StorageError
from sync.files import make_folder_below, make_private_folder, probe, write_private
from sync.memory.daily import config
from sync.memory.daily.config import Config

FOLDER: Final = Path(".cursor", "skills", "memories")
CONFIG: Final = "config.json"
FOLDERS: Final = ("daily", "index")  # below a folder of pages


@dataclass(frozen=True, slots=True)
class Place:
    """A folder of pages. `shared`: records of several projects lie in it, so each says where it comes from."""

    root: Path
    shared: bool


@dataclass(frozen=True, slots=True)
class Options:
    """The options that hold for a project, where they stand, and what is wrong with that file."""

    value: Config
    raw: dict[str, Any]
    path: Path
    problem: str | None = None


class Places:
    """The places of one person on this machine."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._read: dict[Path, tuple[Any, Options]] = {}

    def options(self, project_path: str | None) -> Options:
        """What holds for a project, or for what belongs to none."""
        own = self._project_root(project_path)
        if own is not None and os.path.isfile(own / CONFIG):  # noqa: PTH113 - as `is_folder`
            return self._options(own / CONFIG)
        return self._options(self.home / FOLDER / CONFIG)

    def of(self, project_path: str | None) -> Place | None:
        """Where a project's records lie; None where `project-only` leaves no place for them."""
        location = self.options(project_path).value.storage.location
        own = self._project_root(project_path)
        if location != "global-only" and own is not None:
            return Place(own, shared=False)
        return None if location == "project-only" else Place(self.home / FOLDER, shared=True)

    def set_option(self, project_path: str | None, option: str, value: Any, *, for_project: bool) -> Options:
        """Write one option, into the project's own file where that is asked for. InvalidInput, StorageError."""
        own = self._project_root(project_path) if for_project else None
        if for_project and own is None:
            raise InvalidInput("projectPath is no folder of this machine", field="projectPath")
        now = self.options(project_path)
        path = own / CONFIG if own is not None else now.path
        now = self._options(path)
        if now.problem is not None:
            raise InvalidInput(now.problem, field=CONFIG, hint=f"Mend {path}; it was left as it is.")
        written = config.changed(now.raw, option, value)
        self.make_folder(Place(path.parent, shared=own is None))
        write_private(path, config.to_text(written).encode())
        return self._options(path)

    def make_folder(self, place: Place, name: str = ".") -> None:
        """Make a folder of pages, or one below it. In a project, one that exists keeps its mode."""
        if place.shared:
            make_private_folder(place.root / name)
        else:
            make_folder_below(place.root.parents[len(FOLDER.parts) - 1], place.root / name)

    def _project_root(self, project_path: str | None) -> Path | None:
        if not project_path or "\0" in project_path:
            return None
        project = Path(project_path)
        if not project.is_absolute() or not is_folder(project):
            return None
        root = project / FOLDER
        if root == self.home / FOLDER:
            return None
        return root if lies_within(root) else None

    def _options(self, path: Path) -> Options:
        try:
            found = probe(path)
        except StorageError as error:
            return Options(config.DEFAULT, {}, path, f"{path}: {error.kind}")
        sha = None if found is None else found.sha256
        known = self._read.get(path)
        if known is None or known[0] != sha:
            known = self._read[path] = (sha, _parsed(found.data if found else b"", path))
        return known[1]


def lies_within(root: Path) -> bool:
    """Whether a project's folder of pages lies in the project, and so does each folder that we write into below it."""
    project = os.path.realpath(root.parents[len(FOLDER.parts) - 1])
    if not Path(os.path.realpath(root)).is_relative_to(project):
        return False
    return not any(os.path.islink(root / name) for name in FOLDERS)  # noqa: PTH114 - as `is_folder`


def is_folder(path: Path) -> bool:
    """False as well where the system refuses to say, which `Path.is_dir` raises."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def entries(folder: Path) -> list[Path]:
    """What lies in a folder; nothing where it cannot be read, which whoever reads its pages is told."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _parsed(data: bytes, path: Path) -> Options:
    try:
        value, raw = config.read(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Options(config.DEFAULT, {}, path, f"{path} is not UTF-8")
    except InvalidInput as error:
        return Options(config.DEFAULT, {}, path, f"{path}: {error.message}")
    return Options(value, raw, path)
