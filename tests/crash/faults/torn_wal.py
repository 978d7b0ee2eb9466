"""What a power cut can leave of the write-ahead log: cut anywhere, sectors torn, frames swapped, another's salt.

Each state is opened by the program itself. The commits before the first changed byte must be there, whole, and no
others; checkpointed commits are there whatever happened to the log.
https://www.sqlite.org/fileformat2.html#the_write_ahead_log
"""

import asyncio
import random
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path
from typing import Final, NoReturn

from sync.db.engine import Database
from sync.db.rebuild.salvage import open_or_salvage
from sync.log import store
from sync.log.log import EventLog
from sync.log.model import CLOUD, Query
from tests.support import START, FixedClock, draft

HEADER: Final = 32
FRAME_HEADER: Final = 24
SECTOR: Final = 512
COMMITS: Final = 5
AROUND: Final = (-1, 0, 1, FRAME_HEADER, SECTOR)  # bytes from the end of a frame: where a cut is made
STRIDE: Final = 11  # step through the cuts, so that a sample covers the whole log; not a divisor of their number
FULL_RUN: Final = 3_000  # seeds; every second one is a cut at a frame boundary, and none of those is left out


@dataclass(frozen=True)
class IntactLog:
    """A database and its log as on disk while the program runs.

    `commits`: how many events each recorded, in order; `ends`: where in the log the commits end that are only there.
    """

    name: str
    database: bytes
    log: bytes
    commits: tuple[int, ...]
    ends: tuple[int, ...]
    frame: int

    @property
    def safe(self) -> int:
        """How many commits are in the database itself."""
        return len(self.commits) - len(self.ends)

    @property
    def frames(self) -> range:
        return range(HEADER, len(self.log), self.frame)

    def expected(self, first_changed: int) -> int:
        """How many events there are when the log is good up to this byte."""
        whole = self.safe + sum(end <= first_changed for end in self.ends)
        return sum(self.commits[:whole])


@cache
def bases() -> tuple[IntactLog, ...]:
    return (
        asyncio.run(_base("nothing checkpointed", former=0)),
        asyncio.run(_base("a log begun again over a longer one", former=2 * COMMITS)),
    )


async def _base(name: str, *, former: int) -> IntactLog:
    """`former`: checkpointed commits, whose stale frames follow the newer ones."""
    chance, clock = random.Random(name), FixedClock()
    commits = [chance.randint(1, 3) for _ in range(former + COMMITS)]
    with tempfile.TemporaryDirectory(prefix="xiaobai-wal-") as folder:
        path = Path(folder) / "memory.db"
        database = await Database.open(path)
        await database.write(lambda connection: store.ensure_replica_id(connection, clock))
        log = EventLog(database, clock, device_id="device-a", session_id="sess_20260202_001")
        for number, count in enumerate(commits):
            await log.append([draft(f"{number} " + "记" * chance.choice([5, 400])) for _ in range(count)])
            if number == former - 1:
                with closing(sqlite3.connect(path)) as other:
                    assert other.execute("pragma wal_checkpoint(passive)").fetchone()[0] == 0
        data, wal = path.read_bytes(), path.with_name("memory.db-wal").read_bytes()
        await database.close()
    frame = FRAME_HEADER + int.from_bytes(wal[8:12], "big")
    ends = tuple(_ends(wal, frame))[-COMMITS:]
    assert len(ends) == COMMITS
    assert former == 0 or len(wal) > ends[-1], "there are stale frames"
    return IntactLog(name, data, wal, tuple(commits), ends, frame)


def _ends(wal: bytes, frame: int) -> Iterator[int]:
    """Where each commit ends: its last frame tells the size of the database."""
    for at in range(HEADER, len(wal), frame):
        if wal[at + 8 : at + 16] != wal[16:24]:
            return  # another generation's
        if wal[at + 4 : at + 8] != bytes(4):
            yield at + frame


# --- states ------------------------------------------------------------------------------------------------

State = tuple[bytes, int]  # the log, and its first changed byte


def boundary_cuts() -> list[tuple[int, int]]:
    """Every frame of every base, with each distance from its end."""
    return [
        (number, min(max(at + base.frame + away, 0), len(base.log)))
        for number, base in enumerate(bases())
        for at in base.frames
        for away in AROUND
    ]


def _cut(base: IntactLog, chance: random.Random) -> State:
    at = chance.randrange(len(base.log))
    return base.log[:at], at


def _flipped(base: IntactLog, chance: random.Random) -> State:
    changed = bytearray(base.log)
    places = [chance.randrange(len(changed)) for _ in range(chance.choice([1, 2, 8]))]
    for at in set(places):
        changed[at] ^= chance.randint(1, 255)
    return _state(base, bytes(changed))


def _torn(base: IntactLog, chance: random.Random) -> State:
    changed = bytearray(base.log)
    for _ in range(chance.choice([1, 3])):
        at = chance.randrange(len(changed) // SECTOR) * SECTOR
        changed[at : at + SECTOR] = chance.choice([bytes(SECTOR), chance.randbytes(SECTOR)])
    return _state(base, bytes(changed[: len(base.log)]))


def _swapped(base: IntactLog, chance: random.Random) -> State:
    one, other = sorted(chance.sample(list(base.frames), 2))
    changed = bytearray(base.log)
    changed[one : one + base.frame] = base.log[other : other + base.frame]
    changed[other : other + base.frame] = base.log[one : one + base.frame]
    return _state(base, bytes(changed))


def _repeated(base: IntactLog, chance: random.Random) -> State:
    """A sector written to another place, as by a drive with a wrong address."""
    changed = bytearray(base.log)
    source, target = (chance.choice(base.frames) for _ in range(2))
    changed[target : target + base.frame] = base.log[source : source + base.frame]
    return _state(base, bytes(changed))


def _other_salt(base: IntactLog, chance: random.Random) -> State:
    """The header of a restarted log before frames of the former one, which are invalid then."""
    changed = bytearray(base.log)
    if chance.random() < 0.5:
        changed[16:24] = chance.randbytes(8)
    else:
        at = chance.choice(base.frames)
        changed[at + 8 : at + 16] = chance.randbytes(8)
    return _state(base, bytes(changed))


def _log_deleted(base: IntactLog, chance: random.Random) -> State:
    return chance.choice([b"", bytes(len(base.log)), chance.randbytes(len(base.log))]), 0


def _state(base: IntactLog, changed: bytes) -> State:
    first, end = 0, len(base.log)
    while first < end:  # the longest common prefix, by bisection
        middle = (first + end + 1) // 2
        first, end = (middle, end) if base.log[:middle] == changed[:middle] else (first, middle - 1)
    return changed, first if first >= HEADER else 0  # without its header nothing of the log counts


SCRAMBLED: Final[tuple[Callable[[IntactLog, random.Random], State], ...]] = (
    _cut,
    _flipped,
    _torn,
    _swapped,
    _repeated,
    _other_salt,
    _log_deleted,
)


def trial(seed: int) -> tuple[str, str]:
    """Even seeds walk along the cuts at frame boundaries, odd ones scramble. Returns the result and the complaint."""
    if seed % 2 == 0:
        cuts = boundary_cuts()
        number, at = cuts[seed // 2 * STRIDE % len(cuts)]
        base, kind = bases()[number], "cut at a boundary"
        log, first = base.log[:at], at
    else:
        chance = random.Random(seed)
        base, scramble = chance.choice(bases()), chance.choice(SCRAMBLED)
        kind = scramble.__name__.strip("_").replace("_", " ")
        log, first = scramble(base, chance)
    try:
        asyncio.run(_check_opened(base, log, base.expected(first)))
    except Exception as error:  # noqa: BLE001 - any exception is the result of this state
        return "failed", f"seed {seed}, {kind}, {base.name}: {type(error).__name__}: {error}"
    return kind, ""


async def _check_opened(base: IntactLog, log: bytes, expected: int) -> None:
    with tempfile.TemporaryDirectory(prefix="xiaobai-wal-") as folder:
        path = Path(folder) / "memory.db"
        path.write_bytes(base.database)
        path.with_name("memory.db-wal").write_bytes(log)
        database, _ = await open_or_salvage(
            path, sidecar=True, thorough=True, destination=CLOUD, now=START, complete_log=_fail_on_salvage
        )
        try:
            await _holds(database, base, expected)
        finally:
            await database.close()


def _fail_on_salvage(*_: object) -> NoReturn:
    raise AssertionError("taken for damage")


async def _holds(database: Database, base: IntactLog, expected: int) -> None:
    clock = FixedClock(seed=3)
    await database.write(lambda connection: store.ensure_replica_id(connection, clock))
    log = EventLog(database, clock, device_id="device-a", session_id="sess_20260202_001")
    events = (await log.read(Query())).events
    assert len(events) == expected, f"{len(events)} events, not {expected}"
    assert expected in {0, *accumulate(base.commits)}
    assert [event.replica_seq for event in events] == list(range(1, expected + 1))
    assert await log.find_problems() == []
    integrity = await database.read(lambda to: to.exec_driver_sql("pragma integrity_check").scalar())
    assert integrity == "ok"
    undelivered = "select count(*) from events where position not in (select position from deliveries)"
    assert await database.read(lambda to: to.exec_driver_sql(undelivered).scalar()) == 0
