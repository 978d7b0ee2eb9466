"""Folders that other machines write too: of a cloud service or on a network. Nothing here changes anything."""

import os
import re
from pathlib import Path
from typing import Final

_CLOUD_FOLDER: Final = re.compile(
    r"(?:Dropbox|Nextcloud|iCloud ?Drive|Google ?Drive|My Drive)(?: \(.+\))?|OneDrive(?: - .+)?"
    r"|CloudStorage|Mobile Documents"
)  # as the services name them; the last two are of macOS
_NETWORK_TYPES: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "drvfs", "davfs", "afs", "fuse.sshfs"})
_CONFLICT: Final = re.compile(r"conflict|冲突", re.IGNORECASE)  # Dropbox, Nextcloud, Syncthing, Jianguoyun
_MOUNTS: Final = Path("/proc/self/mounts")
MAX_NAMED: Final = 3  # conflict copies named in a warning


def sharing_warning(data_dir: Path) -> str | None:
    """What `status` shows if the database is in a folder that other machines write."""
    sharing = sharing_of(data_dir)
    return None if sharing is None else f"data_folder_shared: {sharing}"


def copies_warning(file: Path) -> str | None:
    """What `status` shows if there are conflict copies beside a file."""
    copies = conflict_copies(file)
    return f"conflict_copies: {', '.join(copies[:MAX_NAMED])}" if copies else None


def sharing_of(folder: Path, mounts: Path = _MOUNTS) -> str | None:
    """The cloud folder or the type of the network file system that a folder is in; None if neither is known."""
    path = Path(os.path.realpath(folder))
    for part in (path, *path.parents):
        if _CLOUD_FOLDER.fullmatch(part.name):
            return str(part)
    try:
        lines = [line.split(" ") for line in mounts.read_text("utf-8", "replace").splitlines()]
    except OSError:  # not on this system
        return None
    above = [(len(line[1]), line[2]) for line in lines if len(line) > 2 and path.is_relative_to(line[1])]
    kind = max(above, default=(0, ""))[1]
    return kind if kind in _NETWORK_TYPES else None


def conflict_copies(file: Path) -> list[str]:
    """The names of files beside `file` that a synchronising program made of a conflicting version."""
    try:
        names = [path.name for path in file.parent.iterdir()]
    except OSError:
        return []
    beside = (name for name in names if name.startswith(file.stem) and name.endswith(file.suffix) and name != file.name)
    return sorted(name for name in beside if _CONFLICT.search(name[len(file.stem) :]))
