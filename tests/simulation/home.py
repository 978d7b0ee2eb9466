"""What lies on a simulated device's disk, read with the standard library: profiles, versions, parked documents."""

import json
import shutil
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.simulation.person import digest_of


class Home:
    """The folder of one installation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.memory_file = folder / "memory.md"

    def databases(self) -> list[Path]:
        return sorted((self.folder / "data" / "profiles").glob("*/memory.db"))

    def asked(self, database: Path, question: str, *given: object) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(database)) as connection:
            return connection.execute(question, given).fetchall()

    def profiles(self) -> Iterator[tuple[Path, str | None]]:
        """Each database of the device and whose it is."""
        for database in self.databases():
            try:
                rows = self.asked(database, "select user_id from accounts")
            except sqlite3.Error:
                continue  # it was being made when the program died
            yield database, rows[0][0] if rows else None

    def stand(self) -> list[tuple[Any, ...]]:
        """How far each profile is, and the file."""
        path = self.memory_file
        stands = [
            self.asked(database, "select max(position), count(server_seq), (select max(seq) from cursors) from events")[
                0
            ]
            for database, _ in self.profiles()
        ]
        return [*stands, (digest_of(path.read_bytes()) if path.exists() else "",)]

    def knows(self, digest: str) -> bool:
        """Whether a version of this hash has been taken in."""
        for database in self.databases():
            try:
                if self.asked(database, "select 1 from written where sha256 = ? limit 1", digest):
                    return True
            except sqlite3.Error:
                continue
        return False

    def unseen(self) -> str | None:
        """The memory file where nobody has taken it in yet."""
        data = self.memory_file.read_bytes() if self.memory_file.exists() else b""
        return None if self.knows(digest_of(data)) else data.decode("utf-8", "replace")

    def parked(self, data: bytes) -> bool:
        return any((self.folder / "data" / "profiles").glob(f"*/parked/{digest_of(data)[:16]}.md"))

    def installation(self) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads((self.folder / "data" / "installation.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    def document_owner(self) -> str | None:
        """Whose document the memory file holds."""
        installed = self.installation()
        name = installed.get("document_of") or installed.get("profile")
        return next((owner for database, owner in self.profiles() if database.parent.name == name), None)

    def copied_to(self, folder: Path) -> None:
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)

    def newest_document(self, database: Path) -> str:
        rows = self.asked(database, "select bytes from written where surface = 'file' order by version desc limit 1")
        return zlib.decompress(rows[0][0]).decode() if rows else ""
