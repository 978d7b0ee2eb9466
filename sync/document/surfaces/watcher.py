"""Watch the memory file. A change only means "read the file again".

watchdog watches the parent folder (an atomic save replaces the file, so a watch on the file goes blind) and the folder
of a symlink's target. Kinds of events are unreliable; only those that our own reads cause are left out. `renew` detects
a dead observer and a folder that was replaced. The poll every few seconds works without any of it.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer
from watchdog.observers.api import BaseObserver

from sync.runtime.change_counter import ChangeCounter
from sync.system.files import resolve_target

READ_EVENTS: Final = frozenset({"opened", "closed_no_write"})

_Watched = tuple[frozenset[tuple[Path, int]], frozenset[str]]  # folders with their inodes, names in them

log = logging.getLogger(__name__)


class _NameFilter(FileSystemEventHandler):
    """Passes on events about the watched names, from watchdog's thread to the loop."""

    def __init__(self, names: frozenset[str], changes: ChangeCounter, loop: asyncio.AbstractEventLoop) -> None:
        self._names = names
        self._changes = changes
        self._loop = loop

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type in READ_EVENTS:
            return
        touched = {Path(str(path)).name for path in (event.src_path, event.dest_path) if path}
        if touched & self._names and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._changes.increment)


class Watcher:
    """Counts a change when something happens to a file. `status` shows `alive`."""

    def __init__(self, path: Path, changes: ChangeCounter) -> None:
        self._path = path
        self._changes = changes
        self._observer: BaseObserver | None = None
        self._watched: _Watched = (frozenset(), frozenset())
        self.problem: str | None = None  # why the file is not watched

    @property
    def warning(self) -> str | None:
        """What `status` shows if the file is not watched."""
        return None if self.problem is None else f"file_not_watched: {self.problem}; it is read every few seconds"

    @property
    def alive(self) -> bool:
        """Whether every watch works: a watch ends when its folder is deleted, though the observer is still alive."""
        observer = self._observer
        return observer is not None and observer.is_alive() and all(part.is_alive() for part in observer.emitters)

    def renew(self) -> None:
        """Watch the folders that exist now; cheap if nothing has changed. Never raises, since the poll remains."""
        folders, names = wanted = (self._folders(), frozenset({self._path.name, resolve_target(self._path).name}))
        if self.alive and wanted == self._watched:
            return
        self.stop()
        if not folders:
            return
        handler = _NameFilter(names, self._changes, asyncio.get_running_loop())
        try:
            observer = Observer()
            for folder, _ in folders:
                observer.schedule(handler, str(folder), recursive=False)
            observer.start()
        except OSError as error:  # the system's limits of instances and watches, a file system without events
            cause = error.strerror or type(error).__name__
            if cause != self.problem:
                log.warning("the file cannot be watched (%s); it is read every few seconds", cause)
            self.problem = cause
            return
        self._observer, self._watched, self.problem = observer, wanted, None
        self._changes.increment()  # for what happened without a watch

    def stop(self) -> None:
        if self._observer is not None and self._observer.is_alive():
            self._observer.stop()
            self._observer.join(timeout=2.0)
        self._observer = None

    def _folders(self) -> frozenset[tuple[Path, int]]:
        """The folders to watch, with their inodes: a folder may have been replaced."""
        folders = set()
        for folder in {self._path.parent.resolve(), resolve_target(self._path).parent}:
            try:
                folders.add((folder, folder.stat().st_ino))
            except OSError:
                continue  # it does not exist now; the next `renew` finds it
        return frozenset(folders)
