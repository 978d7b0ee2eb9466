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

from sync.daily import config
from sync.daily.config import DailyConfig
from sync.errors import InvalidInput, StorageError
from sync.system.files import make_folder_below, make_private_folder, read_once, write_private

PAGES_PATH: Final = Path(".cursor", "skills", "memories")
CONFIG_FILE: Final = "config.json"
SUBFOLDERS: Final = ("daily", "index")  # below a folder of pages


@dataclass(frozen=True, slots=True)
class PageFolder:
    """A folder of pages. `shared`: records of several projects lie in it, so each says where it comes from."""

    root: Path
    is_shared: bool


@dataclass(frozen=True, slots=True)
class EffectiveOptions:
    """The options that hold for a project, where they stand, and what is wrong with that file."""

    value: DailyConfig
    raw: dict[str, Any]
    path: Path
    problem: str | None = None


class PageFolders:
    """The places of one person on this machine."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._options_cache: dict[Path, tuple[Any, EffectiveOptions]] = {}

    def options(self, project_path: str | None) -> EffectiveOptions:
        """What holds for a project, or for what belongs to none."""
        own = self._project_folder(project_path)
        if own is not None and os.path.isfile(own / CONFIG_FILE):  # noqa: PTH113 - as `is_folder`
            return self._read_options(own / CONFIG_FILE)
        return self._read_options(self.home / PAGES_PATH / CONFIG_FILE)

    def folder_of(self, project_path: str | None) -> PageFolder | None:
        """Where a project's records lie; None where `project-only` leaves no place for them."""
        location = self.options(project_path).value.storage.location
        own = self._project_folder(project_path)
        if location != "global-only" and own is not None:
            return PageFolder(own, is_shared=False)
        return None if location == "project-only" else PageFolder(self.home / PAGES_PATH, is_shared=True)

    def set_option(self, project_path: str | None, option: str, value: Any, *, for_project: bool) -> EffectiveOptions:
        """Write one option, into the project's own file where that is asked for. InvalidInput, StorageError."""
        own = self._project_folder(project_path) if for_project else None
        if for_project and own is None:
            raise InvalidInput("projectPath is no folder of this machine", field="projectPath")
        now = self.options(project_path)
        path = own / CONFIG_FILE if own is not None else now.path
        now = self._read_options(path)
        if now.problem is not None:
            raise InvalidInput(now.problem, field=CONFIG_FILE, hint=f"Mend {path}; it was left as it is.")
        written = config.with_option(now.raw, option, value)
        self.make_folder(PageFolder(path.parent, is_shared=own is None))
        write_private(path, config.to_text(written).encode())
        return self._read_options(path)

    def make_folder(self, folder: PageFolder, name: str = ".") -> None:
        """Make a folder of pages, or one below it. In a project, one that exists keeps its mode."""
        if folder.is_shared:
            make_private_folder(folder.root / name)
        else:
            make_folder_below(folder.root.parents[len(PAGES_PATH.parts) - 1], folder.root / name)

    def _project_folder(self, project_path: str | None) -> Path | None:
        if not project_path or "\0" in project_path:
            return None
        project = Path(project_path)
        if not project.is_absolute() or not is_folder(project):
            return None
        root = project / PAGES_PATH
        if root == self.home / PAGES_PATH:
            return None
        return root if lies_within(root) else None

    def _read_options(self, path: Path) -> EffectiveOptions:
        try:
            found = read_once(path)
        except StorageError as error:
            return EffectiveOptions(config.DEFAULT_CONFIG, {}, path, f"{path}: {error.kind}")
        sha = None if found is None else found.sha256
        known = self._options_cache.get(path)
        if known is None or known[0] != sha:
            known = self._options_cache[path] = (sha, _parse_options(found.data if found else b"", path))
        return known[1]


def lies_within(root: Path) -> bool:
    """Whether a project's folder of pages lies in the project, and so does each folder that we write into below it."""
    project = os.path.realpath(root.parents[len(PAGES_PATH.parts) - 1])
    if not Path(os.path.realpath(root)).is_relative_to(project):
        return False
    return not any(os.path.islink(root / name) for name in SUBFOLDERS)  # noqa: PTH114 - as `is_folder`


def is_folder(path: Path) -> bool:
    """False as well where the system refuses to say, which `Path.is_dir` raises."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def list_folder(folder: Path) -> list[Path]:
    """What lies in a folder; nothing where it cannot be read, which whoever reads its pages is told."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _parse_options(data: bytes, path: Path) -> EffectiveOptions:
    try:
        value, raw = config.parse_config(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return EffectiveOptions(config.DEFAULT_CONFIG, {}, path, f"{path} is not UTF-8")
    except InvalidInput as error:
        return EffectiveOptions(config.DEFAULT_CONFIG, {}, path, f"{path}: {error.message}")
    return EffectiveOptions(value, raw, path)
