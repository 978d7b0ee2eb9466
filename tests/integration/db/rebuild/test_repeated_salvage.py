"""A database that is repaired again, or whose numbers are wrong. The damage is that of `test_salvage`."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Column, Integer, MetaData, Table, Text

from sync.db import schema
from sync.db.migrate import known_migrations
from sync.db.rebuild.corrupt_reader import CorruptDatabase
from sync.document.capture.exchange_events import ExchangeInput
from sync.log import local_state
from tests.integration.db.rebuild.test_salvage import (
    Home,
    events_of,
    has_salvage_warning,
    leaf_pages,
    middle_of_events,
    overwrite_page,
    root_page_of,
    surviving_event_ids,
)
from tests.proof import first_in_test
from tests.support import draft

POISON: Final = 85_793_054_220_991  # what an earlier repair made of the fingerprint of the rules
SET_SEQUENCE: Final = "update sqlite_sequence set seq = ? where name = 'events'"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def change(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement, values)


def sequences(path: Path) -> dict[str, int]:
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("select name, seq from sqlite_sequence"))


async def test_a_second_repair_ends_and_saves_what_can_be_read(home: Home) -> None:
    async with home.app() as app:
        for number in range(3):
            await app.memory_service.update(ExchangeInput(f"问题 {number}", f"回答 {number}"))
        await app.reconcile_memory_file()
    before = await home.fill(200)
    for _ in range(3):
        middle_of_events(home.database)
        async with home.app() as app:
            assert has_salvage_warning(app)
            after = await events_of(app)  # what the files of the events brought back has another position
            assert len(after) > 100
            assert set(after) <= set(before)
            assert await app.log.find_problems() == []
    assert max(sequences(home.database).values()) < 10_000, "no fingerprint was taken for a position"


@pytest.mark.parametrize("wrong", first_in_test([POISON, -5, 10**10, 2**62], 2))
async def test_a_sequence_that_cannot_be_true_delays_no_repair(home: Home, wrong: int) -> None:
    before = await home.fill(200)
    change(home.database, SET_SEQUENCE, wrong)
    overwrite_page(home.database, list(leaf_pages(home.database, root_page_of(home.database, "events")))[-1])
    async with home.app() as app:
        assert 180 < len(await surviving_event_ids(app, before)) < 200
        (recorded,) = await app.log.append([draft("the next one")])
        assert recorded.event.position not in {event.position for event in before.values()}, "a lost number is not used"
        assert recorded.event.position < 10_000


@pytest.mark.parametrize("bad", [1, -1, -2], ids=["before the gap", "last", "behind the gap"])
async def test_events_behind_a_gap_in_the_numbers_are_saved(home: Home, bad: int) -> None:
    """A home that went on recording after the earlier repair has them there."""
    await home.fill(100)
    change(home.database, SET_SEQUENCE, POISON)
    before = await home.fill(100)
    overwrite_page(home.database, list(leaf_pages(home.database, root_page_of(home.database, "events")))[bad])
    async with home.app() as app:
        assert len(await surviving_event_ids(app, before)) > 170


async def test_the_page_on_which_the_numbers_jump_costs_its_own_rows_only(home: Home) -> None:
    await home.fill(100)
    change(home.database, SET_SEQUENCE, POISON)
    before = await home.fill(100)
    pages = list(leaf_pages(home.database, root_page_of(home.database, "events")))
    positions = [event.position for event in before.values()]
    share = next(number for number, position in enumerate(positions) if position > POISON) / len(positions)
    for page in pages[int(share * len(pages)) - 1 : int(share * len(pages)) + 2]:
        overwrite_page(home.database, page)
    async with home.app() as app:
        survived = await surviving_event_ids(app, before)
        assert {before[name].position > POISON for name in survived} == {True, False}
        assert len(survived) > 140


async def test_an_installation_with_a_fingerprint_for_a_number_is_healed_by_its_next_start(home: Home) -> None:
    before = await home.fill(20)
    change(home.database, SET_SEQUENCE, POISON)
    (healing,) = [migration for migration in known_migrations() if migration.name == "possible_numbers"]
    for statement in healing.statements:
        change(home.database, statement)
    async with home.app() as app:
        assert not has_salvage_warning(app)
        (recorded,) = await app.log.append([draft("the next one")])
        assert recorded.event.position == len(before) + 1


async def test_a_mark_that_no_event_can_have_is_removed_by_a_repair(home: Home) -> None:
    """What follows the log from there would never see an event again."""
    async with home.app() as app:
        await app.memory_service.update(ExchangeInput("问题", "回答"))
        await app.reconcile_memory_file()
    change(home.database, "update watermarks set position = ? where name in ('document', 'jsonl')", POISON)
    await home.fill(50)
    middle_of_events(home.database)
    async with home.app() as app:
        await app.memory_service.update(ExchangeInput("再问", "再答"))
        await app.reconcile_memory_file()
        assert home.settings.memory_file.read_text().count("再问") == 1
        assert home.settings.memory_file.read_text().count("问题") == 1


def test_every_kind_of_mark_is_known_as_a_key_or_as_none() -> None:
    names = {
        "document": schema.events,
        "document.forgotten": schema.events,
        "document.shared": schema.events,
        "jsonl": schema.events,
        "retention.archives": schema.events,
        "an.agent.of.the.user": schema.events,
        "forget.settled": schema.events,
        "document.on_disk": schema.written,
        "redaction.rules": None,
        "recall.rules": None,
        "document.order": None,
        "document.shared.order": None,
        "daily.begun": None,
    }
    names |= dict.fromkeys(local_state.NAMES - names.keys(), None)
    assert {name: schema.table_of_watermark(name) for name in names} == names


@pytest.mark.parametrize("seed", first_in_test(range(8), 2))
def test_rows_between_bad_pages_are_found_wherever_the_gaps_are(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = tmp_path / "rows.db"
    table = Table("filled", MetaData(), Column("position", Integer, primary_key=True), Column("filler", Text))
    keys = {*range(1, 400), *(chance.choice([10**6, 10**12]) + chance.randrange(10**5) for _ in range(200))}
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("create table filled (position integer primary key, filler text)")
        connection.executemany("insert into filled values (?, ?)", [(key, "x" * 200) for key in sorted(keys)])
    pages = list(leaf_pages(path, root_page_of(path, "filled")))
    for page in chance.sample(pages, 3):
        overwrite_page(path, page)
    with closing(sqlite3.connect(path)) as connection:
        connection.text_factory = bytes
        found = {row["position"] for row in CorruptDatabase(connection, len(pages)).rows(table, "position", 0)}
        assert found == {key for key in keys if is_readable(connection, key)}


def is_readable(connection: sqlite3.Connection, key: int) -> bool:
    try:
        return connection.execute("select 1 from filled where position = ?", [key]).fetchone() is not None
    except sqlite3.DatabaseError:
        return False
