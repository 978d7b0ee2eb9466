"""The files of a simulated device, read with the standard library: profiles, versions, pages, archives."""

import json
import os
import shutil
import sqlite3
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sync.document.version_delta import VersionDelta, decode_whole
from sync.log.event_types import PAYLOAD_FORGOTTEN
from sync.log.model import ERASURE_STATE_FIELD, RemoteErasureState
from tests.simulation.checks.expected_state import words_of
from tests.simulation.workload.editor import FOOTER, digest_of

PAGES: Final = Path(".cursor", "skills", "memories")
MARKER: Final = ".xiaobai-memory.json"
STAND: Final = "select max(position), count(server_seq), (select max(seq) from cursors) from events"
WAITS: Final = "select 1 from deliveries where state = 'pending' limit 1"
_REQUEST_WAITS: Final = f'"{ERASURE_STATE_FIELD}":"{RemoteErasureState.WAITS}"'
NEWEST: Final = "select max(version) from written where sha256 = ?"
BEARS: Final = "select 1 from written where sha256 = ? or label = ? limit 1"


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event row. `payload` is JSON. `waits`: it is a request that waits for the user."""

    type: str
    payload: str
    waits: bool = False

    @property
    def words(self) -> set[str]:
        return set(words_of(self.payload))

    @property
    def names(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(self.payload)
        return found


class DeviceFiles:
    """The folder of one installation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.memory_file = folder / "memory.md"
        self.pages = folder / "home" / PAGES
        self._profiles = folder / "data" / "profiles"
        self._databases: dict[str, Path] = {}  # by the names of profiles
        self._owners: dict[Path, str] = {}  # the owner of a profile never changes
        self._connections: dict[Path, tuple[int, sqlite3.Connection]] = {}

    def databases(self) -> list[Path]:
        """The profile databases; cached, because a run asks a hundred times."""
        try:
            names = sorted(found.name for found in os.scandir(self._profiles))
        except FileNotFoundError:
            return []
        for name in names:
            if name not in self._databases:
                self._databases[name] = self._profiles / name / "memory.db"
        return [path for name in names if (path := self._databases[name]).exists()]

    def query(self, database: Path, question: str, *given: object) -> list[tuple[Any, ...]]:
        return self.connection(database).execute(question, given).fetchall()

    def connection(self, database: Path) -> sqlite3.Connection:
        """A cached connection; a replaced file gets a new one.

        The inode identifies the file; it cannot be reused while the file is open.
        """
        inode = database.stat().st_ino
        known, connection = self._connections.get(database, (None, None))
        if connection is None or known != inode:
            if connection is not None:
                connection.close()
            connection = sqlite3.connect(database)
            self._connections[database] = (inode, connection)
        return connection

    def close(self) -> None:
        """Close the databases."""
        while self._connections:
            self._connections.popitem()[1][1].close()

    def profiles(self) -> Iterator[tuple[Path, str | None]]:
        """Yield each database of the device with its owner."""
        for database in self.databases():
            if (owner := self._owners.get(database)) is None:
                try:
                    rows = self.query(database, "select user_id from accounts")
                except sqlite3.Error:
                    continue  # it was being created when the program died
                if rows:
                    self._owners[database] = owner = rows[0][0]
            yield database, owner

    def progress(self) -> list[tuple[Any, ...]]:
        """The state of each profile and of the file."""
        path = self.memory_file
        states = [self.query(database, STAND)[0] for database, _ in self.profiles()]
        return [*states, (digest_of(path.read_bytes()) if path.exists() else "",)]

    def has_unsent(self) -> bool:
        """Whether anything is still pending."""
        return any(self.query(database, WAITS) for database, _ in self.profiles())

    def versions(self, digest: str) -> Mapping[Path, int]:
        """The newest version of this hash that was ingested, by database."""
        found: dict[Path, int] = {}
        for database in self.databases():
            with suppress(sqlite3.Error):
                if (newest := self.query(database, NEWEST, digest)[0][0]) is not None:
                    found[database] = newest
        return found

    def has_version(self, digest: str) -> bool:
        """Whether a version of this hash was ingested."""
        return bool(self.versions(digest))

    def unread_file(self) -> str | None:
        """The memory file if it was not ingested yet."""
        data = self.memory_file.read_bytes() if self.memory_file.exists() else b""
        return None if self.has_version(digest_of(data)) else data.decode("utf-8", "replace")

    def is_parked(self, data: bytes) -> bool:
        """Whether a profile has it, or it was a removed account's."""
        name = f"parked/{digest_of(data)[:16]}.md"
        return any((self.folder / "data" / "profiles").glob(f"*/{name}")) or (self.folder / "data" / name).exists()

    def installation(self) -> dict[str, str]:
        try:
            found: dict[str, str] = json.loads((self.folder / "data" / "installation.json").read_text())
        except (OSError, ValueError):
            return {}
        return found

    def document_owner(self) -> str | None:
        """The owner of the memory file's content: the former profile until the next one has written it."""
        installed = self.installation()
        active, former = (installed.get(name, "") for name in ("profile", "document_of"))
        held = {database.parent.name: (database, owner) for database, owner in self.profiles()}
        if active not in held or former not in held:
            return next((held[name][1] for name in (former, active) if name in held), None)
        came = self._stands(held[active][0]) and not self._stands(held[former][0])
        return held[active if came else former][1]

    def _stands(self, database: Path) -> bool:
        """Whether the memory file is a version of this profile, as written or edited since."""
        data = self.memory_file.read_bytes() if self.memory_file.exists() else b""
        label = data.decode("utf-8", "replace").strip().rpartition(FOOTER)[2]
        return bool(self.query(database, BEARS, digest_of(data), label))

    def copied_to(self, folder: Path) -> None:
        shutil.copytree(self.folder, folder, dirs_exist_ok=True)

    def leave_pages_behind(self) -> None:
        """Move the copy to another path without pages, as if only the data was copied."""
        shutil.rmtree(self.folder / "home", ignore_errors=True)
        for noted in (self.folder / "data" / "profiles").glob("*/daily"):
            shutil.rmtree(noted)

    def events_of(self, database: Path) -> dict[str, StoredEvent]:
        """The events of a profile, in log order; none of a removed profile."""
        if not database.exists():
            return {}
        rows = self.query(database, "select event_id, type, payload, extra from events order by position")
        return {
            event_id: StoredEvent(kind, payload, _REQUEST_WAITS in extra) for event_id, kind, payload, extra in rows
        }

    def has_index(self, database: Path) -> bool:
        return bool(self.query(database, "select 1 from sqlite_master where name = 'recall_items'"))

    def page_marker(self) -> dict[str, Any]:
        """The owner of the pages, as the program has noted it."""
        with suppress(OSError, ValueError):
            found: dict[str, Any] = json.loads((self.pages / MARKER).read_text())
            return found
        return {}

    def page_files(self) -> list[Path]:
        """The noted account's pages, without those that another account left edited."""
        left = self.page_marker().get("left", [])
        return [path for path in sorted((self.pages / "daily").glob("*.md")) if path.name not in left]

    def has_other_accounts_page(self, day: str) -> bool:
        """Whether another account left the page of a day edited."""
        return any(name.startswith(day) for name in self.page_marker().get("left", []))

    def archived(self) -> dict[str, dict[str, str]]:
        """Archived events by profile: event id and line."""
        found: dict[str, dict[str, str]] = {}
        for path in sorted((self.folder / "data" / "archive").glob("*/*.xbm")):
            events = found.setdefault(path.parent.name, {})
            with suppress(tarfile.TarError, EOFError, OSError, zlib.error), tarfile.open(path, "r:gz") as tar:
                for member in tar:
                    part = tar.extractfile(member) if member.name.startswith("events/") else None
                    lines = part.read().decode().splitlines() if part else ()
                    events |= {json.loads(line)["event_id"]: line for line in lines}
        return found

    def rows(self, database: Path) -> Iterator[tuple[str, str]]:
        """Yield each table with its content as text."""
        named = "select name from sqlite_master where type = 'table' and sql not like '%virtual%'"
        for (table,) in self.query(database, named):
            for row in self.query(database, f'select * from "{table}"'):
                yield table, " ".join(_text(value) for value in row)

    def newest_document(self, database: Path) -> str:
        return next(self.documents(database, "surface = 'file' order by version desc limit 1"), "")

    def documents(self, database: Path, where: str) -> Iterator[str]:
        """Yield the text of versions."""
        columns = "select bytes, entry_ids, base from written where"
        for data, ids, base in self.query(database, f"{columns} {where}"):
            if base is None:
                yield zlib.decompress(data).decode()
            else:
                ((whole, whole_ids, _),) = self.query(database, f"{columns} version = ?", base)
                yield VersionDelta.decode(data, ids).apply_to(decode_whole(whole, whole_ids)).document.text

    def has_copy_without_erased(self, data: bytes, forgotten: Mapping[str, set[str]]) -> bool:
        """Whether a version has all words of `data`, except those on lines that were erased here.

        `forgotten`: erased words by event id.
        """
        lines = [words_of(line) for line in data.decode("utf-8", "replace").split("\n")]
        for database in self.databases():
            requests = (event for event in self.events_of(database).values() if event.type == PAYLOAD_FORGOTTEN)
            names = [name for request in requests for name in request.names["event_ids"]]
            erased = {word for name in names for word in forgotten.get(name, ())}
            left = {word for words in lines if erased.isdisjoint(words) for word in words}
            if any(erased.intersection(words) for words in lines):
                return any(left.issubset(words_of(one)) for one in self.documents(database, "surface = 'file'"))
        return False


def _text(value: object) -> str:
    if isinstance(value, bytes):
        with suppress(zlib.error):
            value = zlib.decompress(value)
        return value.decode("utf-8", "replace")
    return value if isinstance(value, str) else ""
