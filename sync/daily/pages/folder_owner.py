"""Who owns a folder of pages, and what was written there: the marker `.xiaobai-memory.json` in the folder."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.daily.pages.page_checkpoints import read_json, write_text
from sync.daily.pages.page_folders import PageFolder
from sync.system.digests import sha256
from sync.system.files import FileProbe, pinned_folder, read_once

MARKER_FILE: Final = ".xiaobai-memory.json"
_FIELD_TYPES: Final[dict[str, Any]] = {
    "installation": str,
    "profile": str,
    "pages": dict[str, list[str]],
    "summary": list[str],
    "keywords": list[str],
    "vectors": list[str],
    "left": list[str],
}


class FolderOwner:
    """One installation, with the account that is active in it."""

    def __init__(self, installation: str, profile: str) -> None:
        self._identity = {"installation": installation, "profile": profile}

    def read(self, root: Path) -> dict[str, Any]:
        """The folder's marker, without malformed fields."""
        return {name: value for name, value in read_json(root / MARKER_FILE).items() if _has_valid_type(name, value)}

    def is_other_installation(self, root: Path) -> bool:
        """Whether another installation keeps this folder."""
        return self.read(root).get("installation") not in {None, self._identity["installation"]}

    def is_other_profile(self, root: Path) -> bool:
        """Whether another account of this machine wrote here last."""
        return self.read(root).get("profile") not in {None, self._identity["profile"]}

    def leave_alone(self, root: Path, name: str) -> None:
        """Leave a page as it is until it is gone."""
        self.update_marker(root, left=[*self.read(root).get("left", []), name])

    def left_pages(self, root: Path, names: Sequence[str]) -> list[str]:
        """Those of the folder's pages that are left alone. A page that is gone is no longer noted."""
        noted = self.read(root).get("left", [])
        left = [name for name in noted if name in names]
        if left != noted:
            self.update_marker(root, left=left)
        return left

    def mark_page(self, root: Path, name: str, text: str, previous: FileProbe | None) -> None:
        """Note a page's hash, so that another account can tell that it is unedited and remove it."""
        marker = self.read(root)
        pages, left = marker.get("pages", {}), marker.get("left", [])
        held = pages.get(name, [])
        before = [previous.sha256] if previous is not None and previous.sha256 in held else held[:1]
        pages = {**pages, name: [sha256(text.encode()), *before]}
        self.update_marker(root, pages=pages, left=[one for one in left if one != name])

    def write_index(self, folder: PageFolder, name: str, kind: str, text: str) -> int | None:
        """Write an index; how many files changed, or None if the existing file is not ours."""
        root = folder.root
        found, marker, data = read_once(root / name), self.read(root), text.encode()
        unmarked = kind == "keywords" and kind not in marker and "installation" in marker  # by an earlier version
        if found is not None and found.sha256 not in {sha256(data), *marker.get(kind, [])} and not unmarked:
            return None
        self.update_marker(root, **{kind: [sha256(data), *([found.sha256] if found else [])]})
        with pinned_folder((root / name).parent, within=folder.boundary) as pinned:
            return write_text(pinned / Path(name).name, text)

    def update_marker(self, root: Path, **fields: Any) -> None:
        marker = self.read(root)
        if "installation" not in marker:  # an index that exists already is not ours
            marker["keywords"] = []
        text = json.dumps({**marker, **self._identity, **fields}, ensure_ascii=False)
        write_text(root / MARKER_FILE, text + "\n")


def _has_valid_type(name: str, value: object) -> bool:
    try:
        msgspec.convert(value, _FIELD_TYPES.get(name, Any))
    except msgspec.ValidationError:
        return False
    return True
