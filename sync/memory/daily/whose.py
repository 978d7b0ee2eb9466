"""Whose a folder of pages is, and what was written into it: `.xiaobai-memory.json` in the folder says so."""

import json
from pathlib import Path
from typing import Any, Final

from sync.memory.daily.noted import read_json, write_text

MARKER: Final = ".xiaobai-memory.json"


class Owner:
    """One installation, with the account that is active in it."""

    def __init__(self, installation: str, profile: str) -> None:
        self._told = {"installation": installation, "profile": profile}

    def read(self, root: Path) -> dict[str, Any]:
        return read_json(root / MARKER)

    def is_foreign(self, root: Path) -> bool:
        """Whether another installation keeps this folder."""
        return self.read(root).get("installation") not in {None, self._told["installation"]}

    def is_anothers(self, root: Path) -> bool:
        """Whether another account of this machine wrote here last."""
        return self.read(root).get("profile") not in {None, self._told["profile"]}

    def mark(self, root: Path, **told: Any) -> None:
        text = json.dumps({**self.read(root), **self._told, **told}, ensure_ascii=False)
        write_text(root / MARKER, text + "\n")
