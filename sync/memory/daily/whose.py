"""Whose a folder of pages is, and what was written into it: `.xiaobai-memory.json` in the folder says so."""

import json
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.digests import sha256
from sync.files import Probe, probe
from sync.memory.daily.noted import read_json, write_text

MARKER: Final = ".xiaobai-memory.json"
_SHAPES: Final[dict[str, Any]] = {
    "installation": str,
    "profile": str,
    "pages": dict[str, list[str]],
    "summary": list[str],
    "keywords": list[str],
    "vectors": list[str],
    "left": list[str],
}


class Owner:
    """One installation, with the account that is active in it."""

    def __init__(self, installation: str, profile: str) -> None:
        self._told = {"installation": installation, "profile": profile}

    def read(self, root: Path) -> dict[str, Any]:
        """What is told of a folder; what is not of the shape in which we write it counts as not told."""
        return {name: value for name, value in read_json(root / MARKER).items() if _fits(name, value)}

    def is_foreign(self, root: Path) -> bool:
        """Whether another installation keeps this folder."""
        return self.read(root).get("installation") not in {None, self._told["installation"]}

    def is_anothers(self, root: Path) -> bool:
        """Whether another account of this machine wrote here last."""
        return self.read(root).get("profile") not in {None, self._told["profile"]}

    def mark_page(self, root: Path, name: str, text: str, found: Probe | None) -> None:
        """Say what a page holds, or held: as such another account may take it away."""
        pages = self.read(root).get("pages", {})
        held = pages.get(name, [])
        before = [found.sha256] if found is not None and found.sha256 in held else held[:1]
        self.mark(root, pages={**pages, name: [sha256(text.encode()), *before]})

    def write(self, root: Path, name: str, kind: str, text: str) -> int | None:
        """Write an overview; how many files that changed, None if the file there is of another program or a person."""
        found, marker, data = probe(root / name), self.read(root), text.encode()
        unmarked = kind == "keywords" and kind not in marker and "installation" in marker  # by an earlier version
        if found is not None and found.sha256 not in {sha256(data), *marker.get(kind, [])} and not unmarked:
            return None
        self.mark(root, **{kind: [sha256(data), *([found.sha256] if found else [])]})
        return write_text(root / name, text)

    def mark(self, root: Path, **told: Any) -> None:
        known = self.read(root)
        if "installation" not in known:  # an index that is there already is not ours
            known["keywords"] = []
        text = json.dumps({**known, **self._told, **told}, ensure_ascii=False)
        write_text(root / MARKER, text + "\n")


def _fits(name: str, value: object) -> bool:
    try:
        msgspec.convert(value, _SHAPES.get(name, Any))
    except msgspec.ValidationError:
        return False
    return True
