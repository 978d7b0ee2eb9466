"""Databases damaged as by a disk, a cable or another program, opened by the program itself.

Nothing may be deleted, invented or duplicated. Every row that SQLite can still read must be in the new database, unsent
events are still pending, and losses are reported.
"""

import asyncio
import random
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from sync.cloud import replication_store as cloud_store
from sync.cloud.auth import owner_store
from sync.db.engine import Database, Transaction
from sync.db.rebuild.row_copy import count_missing, rebuild_outbox
from sync.db.rebuild.salvage import LogCompletion, SalvageResult, open_or_salvage
from sync.encryption import emptied_marker
from sync.errors import SchemaTooNew, StorageCorrupt
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.log import EventLog
from sync.log.model import CLOUD, Event, Query, RefusedEvent, RemoteCursor
from tests.integration.document.harness import open_document_harness
from tests.support import START, FixedClock, draft

PAGE: Final = 4096
SECTOR: Final = 512
MANY: Final = 150
SENT: Final = 60
IN_THE_LOG: Final = 20
READ_AT_ONCE: Final = 10 * MANY

Row = Mapping[str, Any]


@dataclass(frozen=True)
class IntactDatabase:
    """An intact memory: events, some sent, one refused; versions of the document; an owner.

    `log`: the write-ahead log with its newest events, as after a kill; empty after an orderly end.
    """

    database: bytes
    log: bytes
    events: Mapping[str, Event]
    rows: Mapping[int, tuple[Any, ...]]
    unsent: frozenset[str]


@cache
def intact_database(*, killed: bool = False) -> IntactDatabase:
    return asyncio.run(_build_database(killed))


async def _build_database(killed: bool) -> IntactDatabase:
    chance = random.Random(7)
    with tempfile.TemporaryDirectory(prefix="xiaobai-damage-") as folder:
        async with open_document_harness(Path(folder) / "harness") as harness:
            await harness.record_and_reconcile(*(f"问题 {number}" for number in range(8)))
            for _ in range(MANY - 8):
                await harness.log.append([draft("记" * chance.choice([5, 60, 900]))])
            event_ids = [event.event_id for event in (await harness.log.read(Query(limit=READ_AT_ONCE))).events]
            await harness.database.write(lambda connection: _half_sent(connection, event_ids))
            path = harness.database.path
            await harness.database.purge()  # all of it is in the database
            if killed:
                await harness.log.append([draft("在日志里" * 40) for _ in range(IN_THE_LOG)])
            events = {event.event_id: event for event in (await harness.log.read(Query(limit=READ_AT_ONCE))).events}
            database, log = path.read_bytes(), path.with_name(f"{path.name}-wal").read_bytes()
        with closing(sqlite3.connect(path)) as connection:
            rows = {row[0]: row for row in connection.execute("select * from events")}
            unsent = connection.execute("select event_id from events where server_seq is null").fetchall()
        return IntactDatabase(database, log, events, rows, frozenset(row[0] for row in unsent))


def _half_sent(connection: Transaction, event_ids: list[str]) -> None:
    numbered = [(event_id, number) for number, event_id in enumerate(event_ids[:SENT], start=1)]
    outbox_store.acknowledge(connection, CLOUD, numbered)
    outbox_store.quarantine_event(
        connection, CLOUD, RefusedEvent(event_ids[SENT], "23514", "refused", "2026-02-02T10:00:00.000Z")
    )
    newest = RemoteCursor(epoch="e", seq=SENT, event_id=event_ids[SENT - 1], head=SENT)
    outbox_store.save_cursor(connection, CLOUD, newest)
    owner_store.claim_profile(connection, "user-a", "a", "2026-02-02T10:00:00.000Z")


# --- damage ------------------------------------------------------------------------------------------------


def _pages(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 2, 10])):
        at = chance.randrange(len(data) // PAGE) * PAGE
        data[at : at + PAGE] = chance.choice([bytes(PAGE), b"\xff" * PAGE, chance.randbytes(PAGE)])


def _sectors(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 4])):
        at = chance.randrange(len(data) // SECTOR) * SECTOR
        data[at : at + SECTOR] = chance.choice([bytes(SECTOR), chance.randbytes(SECTOR)])


def _cut_short(data: bytearray, chance: random.Random) -> None:
    del data[chance.choice([chance.randrange(1, len(data)), chance.randrange(1, len(data) // PAGE) * PAGE]) :]


def _header(data: bytearray, chance: random.Random) -> None:
    count = chance.choice([16, 100, PAGE])
    data[:count] = chance.choice([bytes(count), chance.randbytes(count)])


def _bytes(data: bytearray, chance: random.Random) -> None:
    for _ in range(chance.choice([1, 5, 50])):
        data[chance.randrange(len(data))] ^= chance.randint(1, 255)


def _swapped(data: bytearray, chance: random.Random) -> None:
    one, other = (PAGE * number for number in chance.sample(range(len(data) // PAGE), 2))
    data[one : one + PAGE], data[other : other + PAGE] = data[other : other + PAGE], data[one : one + PAGE]


def _repeated(data: bytearray, chance: random.Random) -> None:
    one, other = (PAGE * number for number in chance.sample(range(len(data) // PAGE), 2))
    data[one : one + PAGE] = data[other : other + PAGE]


def _no_database(data: bytearray, chance: random.Random) -> None:
    data[:] = chance.choice([b"this is a text\n" * 500, chance.randbytes(len(data)), bytes(len(data)), b"\0", b""])


Damage = Callable[[bytearray, random.Random], None]
DAMAGES: Final[tuple[Damage, ...]] = (
    _pages,
    _sectors,
    _cut_short,
    _header,
    _bytes,
    _swapped,
    _repeated,
    _no_database,
)
# What these leave can look like rows that were never written: SQLite keeps no checksums.
PLAUSIBLE: Final = frozenset({_sectors, _bytes})
# After these, "sound" may not be reported.
EVIDENT: Final = frozenset({_cut_short, _no_database})


def trial(seed: int) -> tuple[str, str]:
    """The result of one damaged database, and the complaint if a check failed.

    In every fourth round its write-ahead log is beside it, as after a kill.
    """
    chance = random.Random(seed)
    damage = DAMAGES[seed % len(DAMAGES)]
    before = intact_database(killed=seed // len(DAMAGES) % 4 == 1)
    data = bytearray(before.database)
    damage(data, chance)
    try:
        return asyncio.run(_check_opened(before, bytes(data), damage)), ""
    except Exception as error:  # noqa: BLE001 - any exception is the result of this database
        return "failed", f"seed {seed},{damage.__name__.replace('_', ' ')}: {type(error).__name__}: {error}"


async def _check_opened(before: IntactDatabase, data: bytes, damage: Damage) -> str:
    clock = FixedClock(seed=3)

    def complete(connection: Transaction, *_: object) -> LogCompletion:
        rebuild_outbox(connection, CLOUD, ("device-a",))
        former = log_store.ensure_replica_id(connection, clock)
        cloud_store.fork_replica(connection, clock)
        return LogCompletion(former, count_missing(connection))

    with tempfile.TemporaryDirectory(prefix="xiaobai-damage-") as folder:
        path = Path(folder) / "memory.db"
        _put(path, data, before.log)
        emptied_marker.write_marker(path)
        readable = _readable(Path(folder) / "look", data, before)
        try:
            database, salvage = await open_or_salvage(
                path, sidecar=True, thorough=True, destination=CLOUD, now=START, complete_log=complete
            )
        except (SchemaTooNew, StorageCorrupt):
            assert data[:100] != before.database[:100], "refused although the header is ours"
            assert path.read_bytes() == data, "refused and yet touched"
            return "refused and left as it was"
        try:
            survived = await _surviving_ids(database, before, plausible=damage in PLAUSIBLE or salvage is None)
            missing = readable - survived
            assert not missing, f"{len(missing)} readable rows were not saved"
            if salvage is None:
                lost = set(before.events) - survived
                assert not lost or damage not in EVIDENT, f"{len(lost)} events are gone and nobody says so"
                return "nothing that SQLite notices"
            assert salvage.moved_to.read_bytes() == data, "the damaged file is kept as it was"
            assert _log_beside(salvage.moved_to) == before.log, "and the log beside it"
            await _check_usable(database, salvage, survived, before)
        finally:
            await database.close()
    return "salvaged whole" if survived >= set(before.events) else "salvaged in part" if survived else "nothing left"


def _put(path: Path, data: bytes, log: bytes) -> None:
    path.write_bytes(data)
    if log:
        path.with_name(f"{path.name}-wal").write_bytes(log)


def _log_beside(path: Path) -> bytes:
    log = path.with_name(f"{path.name}-wal")
    return log.read_bytes() if log.exists() else b""


def _readable(path: Path, data: bytes, before: IntactDatabase) -> set[str]:
    """The events that a plain reader finds, one by one, as they were."""
    _put(path, data, before.log)
    found = set()
    with closing(sqlite3.connect(path)) as connection:
        for position, row in before.rows.items():
            try:
                same = connection.execute("select * from events where position = ?", [position]).fetchone() == row
            except (sqlite3.Error, UnicodeDecodeError):  # the second: the text of the error is damaged itself
                continue
            if same:
                found.add(str(row[1]))
    return found


async def _surviving_ids(database: Database, before: IntactDatabase, *, plausible: bool) -> set[str]:
    """The ids that survived. Check that none is invented or changed, if the damage cannot look like a row."""
    events = (await database.read(lambda to: log_store.read_page(to, Query(limit=READ_AT_ONCE)))).events
    ids = [event.event_id for event in events]
    assert len(ids) == len(set(ids)), "an event is there twice"
    if not plausible:
        original_events = before.events
        assert set(ids) <= set(original_events), "an event was invented"
        assert all(_content_of(event) == _content_of(original_events[event.event_id]) for event in events), (
            "an event was changed"
        )
    return set(ids)


def _content_of(event: Event) -> tuple[object, ...]:
    return event.position, event.type, dict(event.payload), event.ts, event.hlc


async def _check_usable(database: Database, salvage: SalvageResult, survived: set[str], before: IntactDatabase) -> None:
    """Check that the new database is usable."""
    assert await database.read(lambda to: to.exec_driver_sql("pragma integrity_check").scalar()) == "ok"
    assert await database.read(lambda to: to.exec_driver_sql("pragma foreign_key_check").all()) == []
    waiting = await database.read(
        lambda to: set(
            to.exec_driver_sql(
                "select event_id from events join deliveries using (position) where state in ('pending', 'quarantined')"
            ).scalars()
        )
    )
    unsent = before.unsent & survived
    assert unsent <= waiting, f"{len(unsent - waiting)} that were never sent do not wait"
    if lost := set(before.events) - survived:
        assert "events" in salvage.lost, f"{len(lost)} events are lost and nobody says so: {salvage.lost}"
    log = EventLog(database, FixedClock(seed=4), device_id="device-a", session_id="sess_20260202_002")
    (recorded,) = await log.append([draft("然后")])
    assert not recorded.duplicate
    assert await log.find_problems() == []
