"""Check whether a database is intact, as far as a start can.

Opening reads no page of the events, so `quick_check` runs on files up to `QUICK_CHECK_MAX_BYTES` (1.3 ms per MB), and
every event of files up to `READ_ALL_MAX_BYTES` is read, because damage inside a text breaks no page.
"""

from contextlib import closing
from pathlib import Path
from typing import Any, Final

from sync.db.engine import BUSY_TIMEOUT_MS
from sync.db.migrate import APPLICATION_ID, known_migrations
from sync.db.sqlite_errors import translate_sqlite_errors, translate_undecodable_schema
from sync.encryption import emptied_marker
from sync.encryption.driver import DatabaseAccess
from sync.errors import StorageCorrupt
from sync.system.files import stat_stamp

QUICK_CHECK_MAX_BYTES: Final = 256 * 1024 * 1024  # a third of a second; a larger file is checked when reading it fails
READ_ALL_MAX_BYTES: Final = 16 * 1024 * 1024  # every row is read: 5 ms per MB

_ALL_ROWS: Final = "select * from events"
_INVALID_JSON: Final = "select 1 from events where not json_valid(payload) or not json_valid(extra) limit 1"


class CorruptionFound(StorageCorrupt):
    """Damage that opening does not detect."""


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
            check_integrity(connection, path)
    return is_ours


def check_integrity(driver: Any, path: Path) -> None:
    """Raise damage that opening does not detect; `driver` is its connection.

    SQLite accepts invalid UTF-8 and JSON; one such row would fail every answer that includes it.
    """
    size = path.stat().st_size
    if size <= QUICK_CHECK_MAX_BYTES and driver.execute("pragma quick_check(1)").fetchone()[0] != "ok":
        raise CorruptionFound("quick_check found damage")
    if size > READ_ALL_MAX_BYTES:
        return
    for _ in driver.execute(_ALL_ROWS):
        pass  # fetching decodes
    if driver.execute(_INVALID_JSON).fetchone():
        raise CorruptionFound("a payload is not JSON")
