"""Check whether a database is intact, as far as a start can.

Opening reads no page of the events, so `quick_check` runs on files up to `QUICK_CHECK_MAX_BYTES` (1.3 ms per MB). Of
files up to `READ_ALL_MAX_BYTES`, or if the log was found damaged, every row and index is read: damage inside a text
breaks no page.
"""

from contextlib import closing
from pathlib import Path
from typing import Any, Final

from sync.db.engine import BUSY_TIMEOUT_MS
from sync.db.expected_schema import CorruptionFound, check_schema
from sync.db.migrate import APPLICATION_ID, known_migrations
from sync.db.row_checks import check_rows
from sync.db.sqlite_errors import corruption_errors, translate_sqlite_errors, translate_undecodable_schema
from sync.encryption import emptied_marker
from sync.encryption.driver import DatabaseAccess
from sync.encryption.emptied_marker import EmptiedDatabase
from sync.system.files import remove_private, stat_stamp, write_private

QUICK_CHECK_MAX_BYTES: Final = 256 * 1024 * 1024  # a third of a second; a larger file is checked when reading it fails
READ_ALL_MAX_BYTES: Final = 16 * 1024 * 1024  # every row is read: 5 ms per MB

_ALL_ROWS: Final = "select * from events"
_INVALID_JSON: Final = "select 1 from events where not json_valid(payload) or not json_valid(extra) limit 1"


def request_full_check(path: Path) -> None:
    """Have the next start of a sidecar read everything, whatever the size."""
    write_private(_request_path(path), b"")


def check_with_wal(path: Path, access: DatabaseAccess) -> bool:
    """If a log was left, check database and log; False if there is no log. Raises a StorageError."""
    emptied_marker.refuse_emptied(path)
    log = stat_stamp(path.with_name(f"{path.name}-wal"))
    if log is None or not log[0]:
        return False
    connecting = closing(access.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, read_only=True))
    with translate_undecodable_schema(), translate_sqlite_errors(), connecting as connection:
        mark, version = (
            int(connection.execute(f"pragma {name}").fetchone()[0]) for name in ("application_id", "user_version")
        )
        is_ours = mark == APPLICATION_ID and 0 < version <= known_migrations()[-1].version
        if is_ours:  # else opening says what it is
            check_pages(connection, path)
    return is_ours


def check_before_migration(driver: Any, path: Path, *, thorough: bool) -> None:
    """Raise damage that opening does not detect, in the write transaction that opens the database."""
    if not driver.execute("select 1 from sqlite_master").fetchone() and emptied_marker.has_begun(path):
        raise EmptiedDatabase(f"{path} has no tables, and it held a memory")
    if check_schema(driver) and thorough:
        check_pages(driver, path)


def check_pages(driver: Any, path: Path) -> None:
    """Raise CorruptionFound for damaged pages, indexes and events; `driver` is its connection.

    SQLite accepts invalid UTF-8 and JSON; one such row would fail every answer that includes it.
    """
    size, is_requested = path.stat().st_size, _request_path(path).exists()
    is_whole = is_requested or size <= READ_ALL_MAX_BYTES
    check = "integrity_check" if is_whole else "quick_check"
    if (is_whole or size <= QUICK_CHECK_MAX_BYTES) and driver.execute(f"pragma {check}(1)").fetchone()[0] != "ok":
        raise CorruptionFound(f"{check} found damage")
    if not is_whole:
        return
    try:
        for _ in driver.execute(_ALL_ROWS):
            pass  # fetching decodes
    except corruption_errors() as error:
        raise CorruptionFound("a text of an event cannot be read") from error
    if driver.execute(_INVALID_JSON).fetchone():
        raise CorruptionFound("a payload is not JSON")


def check_small_tables(driver: Any, path: Path, destination: str) -> None:
    """Raise CorruptionFound if a row of another table than `events` cannot be understood."""
    if path.stat().st_size <= READ_ALL_MAX_BYTES or _request_path(path).exists():
        check_rows(driver, destination)
    remove_private(_request_path(path))


def _request_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.check")
