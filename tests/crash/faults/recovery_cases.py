"""Whole memories whose database was lost, has a bad page beside an impossible number, or holds a bad row.

`corrupt_databases` checks the rows; here a sidecar starts on the rest and is used. Every line is in the file once, the
server has every event once, nothing is taken for a manual edit, and a repair asks for a bounded number of keys.
"""

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from sync.app import App
from sync.cloud.contact import parse_contact
from sync.db import integrity
from sync.db.rebuild.corrupt_reader import KEYS_PER_PAGE, ROWS_PER_READ, CorruptDatabase
from sync.document.capture.exchange_events import ExchangeInput
from sync.document.versions import own_projection
from sync.log.model import Event
from sync.open_app import AppMode
from tests.integration.db.rebuild.test_repeated_salvage import SET_SEQUENCE, change
from tests.integration.db.rebuild.test_salvage import (
    PAGE,
    Home,
    delete_file,
    events_of,
    leaf_pages,
    no_database,
    overwrite_page,
    root_page_of,
    rows_on_server,
    zero_bytes,
)
from tests.integration.db.test_derived import GARBAGE, columns, corrupt_column
from tests.simulation.planted_bugs import PlantedBug
from tests.support import EMAIL, PASSWORD, draft

EXCHANGES: Final = 4
FULL_RUN: Final = 120
NOTES: Final = 60  # events that no line of the document comes from; enough for several pages
DERIVED: Final = ("cursors", "deliveries", "replica", "watermarks", "written")
REPAIRED: Final = 4  # tables that a repair reads key by key
IMPOSSIBLE: Final = (10**10, 85_793_054_220_991, 2**62)


def _lose_database(path: Path, chance: random.Random) -> None:
    chance.choice([delete_file, zero_bytes, no_database])(path)


def _write_wrong_number(path: Path, chance: random.Random) -> None:
    change(path, SET_SEQUENCE, chance.choice(IMPOSSIBLE))
    overwrite_page(path, chance.choice(list(leaf_pages(path, root_page_of(path, "events")))))


def _write_bad_row(path: Path, chance: random.Random) -> None:
    while True:
        table = chance.choice(DERIVED)
        if corrupt_column(path, table, chance.choice(columns(path, table)), chance.choice(GARBAGE)):
            return


DAMAGES: Final[tuple[Callable[[Path, random.Random], None], ...]] = (
    _lose_database,
    _write_wrong_number,
    _write_bad_row,
)


def trial(seed: int) -> tuple[str, str]:
    """The result of one memory, and the complaint if a check failed."""
    damage = DAMAGES[seed % len(DAMAGES)]
    try:
        with tempfile.TemporaryDirectory(prefix="xiaobai-home-") as folder:
            asyncio.run(_check_goes_on(Home(Path(folder)), damage, random.Random(seed)))
    except Exception as error:  # noqa: BLE001 - any exception is the result of this memory
        first = error
        while isinstance(first, ExceptionGroup):
            first = first.exceptions[0]
        return "failed", f"seed {seed},{damage.__name__.replace('_', ' ')}: {type(first).__name__}: {first}"
    return damage.__name__.strip("_").replace("_", " "), ""


async def _check_goes_on(home: Home, damage: Callable[[Path, random.Random], None], chance: random.Random) -> None:
    async with home.app(AppMode.HELPER) as app:
        await app.login_flow.log_in(parse_contact(email=EMAIL), PASSWORD)
        await _use_app(app, range(EXCHANGES))
        await app.log.append([draft("记" * 200) for _ in range(NOTES)])
        await _sync_both_ways(app)
        before = await events_of(app)
    path = home.database
    size = path.stat().st_size
    damage(path, chance)
    with keys_counted(size):
        async with home.app(AppMode.SIDECAR) as app:
            await _use_app(app, range(EXCHANGES, EXCHANGES + 2))
            await _sync_both_ways(app)
            await app.status()
            assert await app.log.find_problems() == []
            _check_unchanged(home, before, await events_of(app))


async def _use_app(app: App, numbers: range) -> None:
    for number in numbers:
        await app.memory_service.update(ExchangeInput(f"问题 {number} 号", f"回答 {number}"))
        await app.reconcile_memory_file()
    await app.event_files.write_pending()


async def _sync_both_ways(app: App) -> None:
    """Push and pull."""
    for _ in range(2):
        assert app.replicator is not None
        await app.replicator.sync_now()
        await app.reconcile_memory_file()


def _check_unchanged(home: Home, before: Mapping[str, Event], after: Mapping[str, Event]) -> None:
    text = home.settings.memory_file.read_text("utf-8")
    questions = [f"用户问：问题 {number} 号\n" for number in range(EXCHANGES + 2)]
    assert [text.count(line) for line in questions] == [1] * len(questions), "a line is not there once"
    assert set(before) <= set(after), f"{len(set(before) - set(after))} events are gone"
    for place, events in (("here", after.values()), ("on the server", rows_on_server(home))):
        new = Counter(event.type for event in events if event.event_id not in before)
        assert new - Counter(device_registered=1) == Counter(exchange_recorded=2), f"{place}: {dict(new)}"


@contextmanager
def keys_counted(size: int) -> Iterator[None]:
    """End a repair that asks for more keys, one by one, than a file of this size can hold."""
    most = REPAIRED * (size // PAGE * KEYS_PER_PAGE + ROWS_PER_READ)
    asked, read_one = 0, CorruptDatabase._read_one

    def counted(damaged: CorruptDatabase, *given: Any) -> Any:
        nonlocal asked
        asked += 1
        assert asked <= most, f"a repair asks for more than {most} keys"
        return read_one(damaged, *given)

    CorruptDatabase._read_one = counted  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        CorruptDatabase._read_one = read_one  # type: ignore[method-assign]


# --- bugs planted on purpose ---------------------------------------------------------------------------------


def _up_to_the_noted(_: CorruptDatabase, __: Any, low: int, ___: int, noted: int) -> int | None:
    return low if low <= noted else None


def _ignore_restored(local: Any, *_: Any) -> Any:
    return local


BUGS: Final = (
    PlantedBug(
        "a repair asks for every number up to the one that was noted",
        ((CorruptDatabase, "_next_key", _up_to_the_noted),),
        1,
    ),
    PlantedBug(
        "the file is imported again after the database was lost",
        ((own_projection, "adopt_logged_ids", _ignore_restored),),
        0,
    ),
    PlantedBug("a bad row of a small table stays", ((integrity, "check_rows", lambda *_: None),), 8),
)
