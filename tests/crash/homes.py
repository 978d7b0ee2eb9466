"""Whole memories whose database was lost, has a bad page beside an impossible number, or holds a bad row.

`damage` looks at the rows; here a sidecar starts on what is left and is used. Every line is once in the file, the
server has every event once, nothing is taken for a hand edit, and a repair asks for no more keys than the file can
hold.
"""

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.app import App, Role
from sync.cloud.contact import contact_of
from sync.db.damaged import KEYS_PER_PAGE, RANGE, Damaged
from sync.db.menders import Menders
from sync.document import ledger, sharing
from sync.document.capture import Exchange
from sync.log.model import Event
from sync.sections import DocumentSettings, RecallSettings
from tests.integration.test_bad_rows import GARBAGE, columns, spoil
from tests.integration.test_salvage import (
    PAGE,
    Home,
    events_of,
    garbage,
    gone,
    leaves,
    no_database,
    root_of,
    stored,
    zero_bytes,
)
from tests.integration.test_second_salvage import SET_SEQUENCE, change
from tests.simulation.sabotage import Bug
from tests.support import EMAIL, PASSWORD, draft

EXCHANGES: Final = 4
FULL_RUN: Final = 120
NOTES: Final = 60  # events that no line of the document comes from; enough for several pages
DERIVED: Final = ("cursors", "deliveries", "replica", "watermarks", "written")
REPAIRED: Final = 4  # tables that a repair reads key by key
IMPOSSIBLE: Final = (10**10, 85_793_054_220_991, 2**62)


def _lost(path: Path, chance: random.Random) -> None:
    chance.choice([gone, zero_bytes, no_database])(path)


def _wrong_number(path: Path, chance: random.Random) -> None:
    change(path, SET_SEQUENCE, chance.choice(IMPOSSIBLE))
    garbage(path, chance.choice(list(leaves(path, root_of(path, "events")))))


def _bad_row(path: Path, chance: random.Random) -> None:
    while True:
        table = chance.choice(DERIVED)
        if spoil(path, table, chance.choice(columns(path, table)), chance.choice(GARBAGE)):
            return


DAMAGES: Final[tuple[Callable[[Path, random.Random], None], ...]] = (_lost, _wrong_number, _bad_row)


def trial(seed: int) -> tuple[str, str]:
    """What became of one memory, and the complaint where something was wrong."""
    damage = DAMAGES[seed % len(DAMAGES)]
    try:
        with tempfile.TemporaryDirectory(prefix="xiaobai-home-") as folder:
            asyncio.run(_lived_on(Home(Path(folder)), damage, random.Random(seed)))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what became of this memory
        first = error
        while isinstance(first, ExceptionGroup):
            first = first.exceptions[0]
        return "failed", f"seed {seed},{damage.__name__.replace('_', ' ')}: {type(first).__name__}: {first}"
    return damage.__name__.strip("_").replace("_", " "), ""


async def _lived_on(home: Home, damage: Callable[[Path, random.Random], None], chance: random.Random) -> None:
    document = DocumentSettings(sharing=chance.choice(["device", "user"]))
    home.settings = msgspec.structs.replace(home.settings, document=document, recall=RecallSettings(embeddings="off"))
    async with home.app(Role.HELPER) as app:
        await app.entrance.log_in(contact_of(email=EMAIL), PASSWORD)
        await _used(app, range(EXCHANGES))
        await app.log.record([draft("记" * 200) for _ in range(NOTES)])
        await _level(app)
        before = await events_of(app)
    path = home.database
    size = path.stat().st_size
    damage(path, chance)
    with keys_counted(size):
        async with home.app(Role.SIDECAR) as app:
            await _used(app, range(EXCHANGES, EXCHANGES + 2))
            await _level(app)
            await app.status()
            assert await app.log.verify() == []
            _as_it_was(home, before, await events_of(app))


async def _used(app: App, numbers: range) -> None:
    for number in numbers:
        await app.conversation.update(Exchange(f"问题 {number} 号", f"回答 {number}"))
        await app.settle()
    await app.events.settle()


async def _level(app: App) -> None:
    """With the server, in both directions."""
    for _ in range(2):
        assert app.replicator is not None
        await app.replicator.sync_now()
        await app.settle()


def _as_it_was(home: Home, before: Mapping[str, Event], after: Mapping[str, Event]) -> None:
    text = home.settings.memory_file.read_text("utf-8")
    asked = [f"用户问：问题 {number} 号\n" for number in range(EXCHANGES + 2)]
    assert [text.count(line) for line in asked] == [1] * len(asked), "a line is not there once"
    assert set(before) <= set(after), f"{len(set(before) - set(after))} events are gone"
    for place, events in (("here", after.values()), ("on the server", stored(home))):
        new = Counter(event.type for event in events if event.event_id not in before)
        assert new - Counter(device_registered=1) == Counter(exchange_recorded=2), f"{place}: {dict(new)}"


@contextmanager
def keys_counted(size: int) -> Iterator[None]:
    """End a repair that asks for more keys, one by one, than a file of this size can hold."""
    most = REPAIRED * (size // PAGE * KEYS_PER_PAGE + RANGE)
    asked, read_one = 0, Damaged._read_one

    def counted(damaged: Damaged, *given: Any) -> Any:
        nonlocal asked
        asked += 1
        assert asked <= most, f"a repair asks for more than {most} keys"
        return read_one(damaged, *given)

    Damaged._read_one = counted  # type: ignore[assignment,method-assign]
    try:
        yield
    finally:
        Damaged._read_one = read_one  # type: ignore[method-assign]


# --- bugs planted on purpose ---------------------------------------------------------------------------------


def _up_to_the_noted(_: Damaged, __: Any, low: int, ___: int, noted: int) -> int | None:
    return low if low <= noted else None


def _as_new(local: Any, *_: Any) -> Any:
    return local


BUGS: Final = (
    Bug("a repair asks for every number up to the one that was noted", ((Damaged, "_following", _up_to_the_noted),), 1),
    Bug(
        "the file is imported again after the database was lost",
        ((ledger, "adopted", _as_new), (sharing, "adopted", _as_new)),
        0,
    ),
    Bug("a bad row of derived data stays", ((Menders, "run", lambda *_: Counter()),), 8),
)
