"""Where pages are stored, and the `config.json` that decides it.

A project's own `config.json` applies to it, else the home's, else the defaults. In a repository a pull may have written
it: there it may only keep less than the home's, but for what was set on this machine.

A project's folder is used only if the
project is a folder of this machine. Links out of the project, or below its folder of pages, are not followed: a
repository could bring them. The pages of an unusable folder are stored in the home.
"""

import json
import os
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.daily import config
from sync.daily.config import DailyConfig
from sync.daily.pages.page_checkpoints import read_json
from sync.errors import InvalidInput, StorageError
from sync.system.files import make_folder_below, make_private_folder, read_once, write_private
from sync.system.repositories import is_in_repository
from sync.texts.language import LanguageChoice

PAGES_PATH: Final = Path(".cursor", "skills", "memories")
CONFIG_FILE: Final = "config.json"
CHOSEN_FILE: Final = ".xiaobai-memory-options.json"  # in the home: what was set here in the files of projects
SUBFOLDERS: Final = ("daily", "index")  # below a folder of pages


class PageFolder(msgspec.Struct, frozen=True):
    """A folder of pages. If it is shared by several projects, each session on a page names its project."""

    root: Path
    is_shared: bool

    @property
    def boundary(self) -> Path:
        """The folder that no link leads out of: the project; the user's own pages may lie anywhere."""
        return Path(self.root.anchor) if self.is_shared else self.root.parents[len(PAGES_PATH.parts) - 1]


class EffectiveOptions(msgspec.Struct, frozen=True):
    """The options that apply to a project, the file they are from, and what is wrong with it."""

    value: DailyConfig
    raw: dict[str, Any]
    path: Path
    problem: str | None = None


class PageFolders:
    """The folders of pages of one user on this machine."""

    def __init__(self, home: Path, language: LanguageChoice | None = None) -> None:
        self.home, self.language = home, language or LanguageChoice()
        self._options_cache: dict[Path, tuple[Any, EffectiveOptions]] = {}

    def options(self, project_path: str | None) -> EffectiveOptions:
        """The options of a project, or without one those of the home."""
        own = self._project_folder(project_path)
        if own is not None and os.path.isfile(own / CONFIG_FILE):  # noqa: PTH113 - as `is_folder`
            found = self._read_options(own / CONFIG_FILE)
            return self._restricted(found) if is_in_repository(own) else found
        return self._read_options(self.home / PAGES_PATH / CONFIG_FILE)

    def folder_of(self, project_path: str | None) -> PageFolder | None:
        """The folder of a project's records; None if `project-only` excludes the only possible one."""
        location = self.options(project_path).value.storage.location
        own = self._project_folder(project_path)
        if location != "global-only" and own is not None:
            return PageFolder(own, is_shared=False)
        return None if location == "project-only" else PageFolder(self.home / PAGES_PATH, is_shared=True)

    def set_option(self, project_path: str | None, option: str, value: Any, *, for_project: bool) -> EffectiveOptions:
        """Set one option, in the project's own file if `for_project`. Raises InvalidInput, StorageError."""
        own = self._project_folder(project_path) if for_project else None
        if for_project and own is None:
            raise InvalidInput("projectPath is no folder of this machine", field="projectPath")
        now = self.options(project_path)
        path = own / CONFIG_FILE if own is not None else now.path
        now = self._read_options(path)
        if now.problem is not None:
            raise InvalidInput(now.problem, field=CONFIG_FILE, hint=f"Correct {path}; it was left as it is.")
        written = config.with_option(now.raw, option, value)
        self.make_folder(PageFolder(path.parent, is_shared=own is None))
        write_private(path, config.to_text(written).encode())
        if path.parent != self.home / PAGES_PATH:
            chosen = self._chosen()
            of_path = config.with_option(config.still_chosen(chosen.get(str(path)), now.raw), option, value)
            self.make_folder(PageFolder(self.home / PAGES_PATH, is_shared=True))
            text = json.dumps({**chosen, str(path): of_path}, ensure_ascii=False)
            write_private(self.home / PAGES_PATH / CHOSEN_FILE, text.encode())
        return self.options(project_path)

    def make_folder(self, folder: PageFolder, name: str = ".") -> None:
        """Create a folder of pages, or one below it. An existing folder in a project keeps its mode."""
        if folder.is_shared:
            make_private_folder(folder.root / name)
        else:
            make_folder_below(folder.boundary, folder.root / name)

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

    def _chosen(self) -> dict[str, Any]:
        """The options that were set on this machine in the files of projects, by file."""
        return read_json(self.home / PAGES_PATH / CHOSEN_FILE)

    def _restricted(self, found: EffectiveOptions) -> EffectiveOptions:
        chosen = config.still_chosen(self._chosen().get(str(found.path)), found.raw)
        home = self._read_options(self.home / PAGES_PATH / CONFIG_FILE).value
        value = config.tightened(msgspec.convert(chosen, DailyConfig) if chosen else home, found.value)
        problem = found.problem
        if problem is None and value != found.value:
            problem = f"{found.path} is in a repository: of what it loosens only what `daily config` set here counts"
        return replace(found, value=value, problem=problem)

    def _read_options(self, path: Path) -> EffectiveOptions:
        try:
            found = read_once(path)
        except StorageError as error:
            return EffectiveOptions(config.DEFAULT_CONFIG, {}, path, f"{path}: {error.kind}")
        sha = None if found is None else found.sha256
        cached = self._options_cache.get(path)
        if cached is None or cached[0] != sha:
            cached = self._options_cache[path] = (sha, _parse_options(found.data if found else b"", path))
        return cached[1]


def lies_within(root: Path) -> bool:
    """Whether a project's folder of pages, with its subfolders, really is inside the project."""
    project = os.path.realpath(root.parents[len(PAGES_PATH.parts) - 1])
    if not Path(os.path.realpath(root)).is_relative_to(project):
        return False
    return not any(os.path.islink(root / name) for name in SUBFOLDERS)  # noqa: PTH114 - as `is_folder`


def is_folder(path: Path) -> bool:
    """Like `Path.is_dir`, but False instead of an OSError."""
    return os.path.isdir(path)  # noqa: PTH112 - see above


def list_folder(folder: Path) -> list[Path]:
    """The entries of a folder; none if it cannot be read, which reading its pages reports."""
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
