"""Complete the log of a salvaged database from the profile's event files, and continue it as a new replica.

Above log, cloud and document, because a salvage concerns all three: the log's numbers are no longer safe, the server
must learn which replica is replaced, and the file's lines are known already. See docs/decisions/037-one-way-back.md.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from sync.accounts.profiles import change_installation, read_installation
from sync.clock import Clock, to_unix_ms
from sync.cloud import replication_store as cloud_store
from sync.db.engine import Transaction
from sync.db.expected_schema import CorruptionFound
from sync.db.rebuild.row_copy import count_missing, rebuild_outbox
from sync.db.rebuild.salvage import LogCompletion
from sync.db.schema import DOCUMENT_LOG_OFFSET, RECOVERY_STARTED, events, watermarks, written
from sync.errors import StorageError
from sync.jsonl.event_file import newest_line_ids
from sync.jsonl.model import decode_line
from sync.jsonl.unfinished import KEPT_PREFIX, read_unfinished, write_unfinished
from sync.log import store as log_store
from sync.log.event_types import RETRACTING_TYPES
from sync.log.integrity.store import restore_events
from sync.log.model import CLOUD, Event
from sync.log.projections.registry import ARCHIVE_RETRACTIONS, ERASURE
from sync.log.retractions import Retractions
from sync.settings.settings import Settings
from sync.system.files import translate_os_errors

BATCH_EVENTS: Final = 500


def complete_log(
    settings: Settings,
    clock: Clock,
    folder: Path,
    connection: Transaction,
    lost_tables: AbstractSet[str],
    denied_ids: AbstractSet[str],
) -> LogCompletion:
    """Add what the event files below `folder` have and the rows do not; then become a new replica.

    Nothing is committed before the files are read; they are then kept aside, and written again from the log.
    """
    installation = read_installation(settings.data_dir)
    device_id, earlier = installation.device_identity(settings.device_id) if installation else ("", ())
    trees = _event_trees(folder)
    restored = _restore_events(connection, trees, denied_ids)
    rebuild_outbox(connection, CLOUD, (device_id, *earlier))
    former = log_store.ensure_replica_id(connection, clock)
    log_store.reset_projections(connection)
    for entry in (ERASURE, ARCHIVE_RETRACTIONS):  # what came back may have been erased meanwhile
        log_store.set_watermark(connection, entry.name, 0, clock)
    if restored or lost_tables & {events.name, written.name, watermarks.name}:
        log_store.set_watermark(connection, DOCUMENT_LOG_OFFSET, 0, clock)
        log_store.set_watermark(connection, RECOVERY_STARTED, to_unix_ms(clock.now()), clock)
    cloud_store.fork_replica(connection, clock)
    change_installation(settings.data_dir, lambda now: replace(now, former=former))
    kept = _keep_aside(trees, clock.now()) if trees else None
    return LogCompletion(former, count_missing(connection), kept)


def check_event_files(folder: Path, driver: Any) -> None:
    """Raise CorruptionFound if the log lacks the last event of a file: an older database was put back."""
    newest: list[str] = []
    with suppress(StorageError):  # what cannot be read tells nothing, and stops no start
        newest = newest_line_ids(folder)
    for event_id in newest:
        if not driver.execute("select 1 from events where event_id = ?", (event_id,)).fetchone():
            raise CorruptionFound("older than its event files, from which it is brought forward")


def _event_trees(folder: Path) -> list[Path]:
    """The event files of the damaged database, and those kept aside that were not yet written again whole."""
    with translate_os_errors(folder):
        kept = [folder / name for name in reversed(read_unfinished(folder)) if name.startswith(KEPT_PREFIX)]
        return [tree for tree in (folder / "events", *kept) if tree.is_dir()]


def _restore_events(connection: Transaction, trees: Sequence[Path], denied_ids: AbstractSet[str]) -> int:
    """Add the unknown events of the files, the retractions first; return how many."""
    first = [event for event in _read_events(trees, denied_ids) if event.type in RETRACTING_TYPES]
    restored, retractions = restore_events(connection, first), Retractions()
    retractions.apply(log_store.read_by_types(connection, RETRACTING_TYPES, after=0))
    others = (event for event in _read_events(trees, denied_ids) if event.type not in RETRACTING_TYPES)
    while batch := [retractions.effective_event(event) for event in itertools.islice(others, BATCH_EVENTS)]:
        restored += restore_events(connection, batch)
    return restored


def _read_events(trees: Sequence[Path], denied_ids: AbstractSet[str]) -> Iterator[Event]:
    """The events of the lines that can be read. The files may have been written from rows that were damaged already."""
    for path in (path for tree in trees for path in sorted(tree.glob("*/project_*_events.jsonl"))):
        with translate_os_errors(path), path.open("rb") as lines:
            events_read = filter(None, map(decode_line, lines))
            yield from (event for event in events_read if event.event_id not in denied_ids)


def _keep_aside(trees: Sequence[Path], now: datetime) -> Path:
    """Note which trees are the sources until one is written whole, and move that in use aside."""
    tree = trees[0]
    if tree.name != "events":
        return tree
    folder = Path(os.path.realpath(tree.parent))
    kept = folder / f"{KEPT_PREFIX}{now.astimezone(UTC):%Y%m%dT%H%M%SZ}"
    names = (kept if number == 1 else kept.with_name(f"{kept.name}-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not name.exists())
    write_unfinished(folder, [*(found.name for found in reversed(trees[1:])), aside.name])
    with translate_os_errors(aside):
        tree.rename(aside)
    return aside
