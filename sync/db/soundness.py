"""Whether a database is sound, as far as a start can look: damage that opening alone does not meet.

Opening reads no page of the events, so `quick_check` is asked of files up to `CHECKED_BYTES` (1.3 ms per MB), and every
event is read of files up to `READ_BYTES`, because damage inside a text breaks no page.
"""

from contextlib import closing
from pathlib import Path
from typing import Any, Final

from sync.db.engine import BUSY_TIMEOUT_MS
from sync.db.failures import legible, translated
from sync.db.migrate import APPLICATION_ID, known
from sync.errors import StorageCorrupt
from sync.files import stamp
from sync.vault import begun
from sync.vault.access import Access

CHECKED_BYTES: Final = 256 * 1024 * 1024  # a third of a second; a larger file is checked when reading it fails
READ_BYTES: Final = 16 * 1024 * 1024  # every row is read: 5 ms per MB

_ALL_ROWS: Final = "select * from events"
_NO_JSON: Final = "select 1 from events where not json_valid(payload) or not json_valid(extra) limit 1"


class FoundDamage(StorageCorrupt):
    """Damage that opening did not meet."""


def checked_with_its_log(path: Path, access: Access) -> bool:
    """Where a log was left, check database and log as they stand; False where there is none. Raises a StorageError."""
    begun.refuse_emptied(path)
    log = stamp(path.with_name(f"{path.name}-wal"))
    if log is None or not log[0]:
        return False
    connecting = closing(access.connect(path, timeout=BUSY_TIMEOUT_MS / 1000, read_only=True))
    with legible(), translated(), connecting as connection:
        mark, version = (
            int(connection.execute(f"pragma {name}").fetchone()[0]) for name in ("application_id", "user_version")
        )
        is_ours = mark == APPLICATION_ID and 0 < version <= known()[-1].version
        if is_ours:  # else opening says what it is
            check(connection, path)
    return is_ours


def check(driver: Any, path: Path) -> None:
    """Raise what opening did not meet; `driver` is its connection.

    SQLite minds neither text that is no text nor JSON that is none; one such row would fail every answer with it.
    """
    size = path.stat().st_size
    if size <= CHECKED_BYTES and driver.execute("pragma quick_check(1)").fetchone()[0] != "ok":
        raise FoundDamage("quick_check found damage")
    if size > READ_BYTES:
        return
    for _ in driver.execute(_ALL_ROWS):
        pass  # fetching decodes
    if driver.execute(_NO_JSON).fetchone():
        raise FoundDamage("a payload is not JSON")
