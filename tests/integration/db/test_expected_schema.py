"""One flipped bit anywhere in the stored schema: the next start has every event, and the memory can be used."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sync.context import store as context_store
from sync.db.engine import Database
from sync.db.expected_schema import CorruptionFound, check_schema
from sync.db.migrate import APPLICATION_ID, known_migrations
from sync.db.schema import DERIVABLE_TABLES, SMALL_TABLES, events, metadata, written
from sync.document.capture.exchange_events import ExchangeInput
from sync.errors import SchemaTooNew
from sync.recall.model import SearchRequest
from tests.integration.db.rebuild.test_salvage import PAGE, Home, events_of, has_salvage_warning
from tests.proof import first_in_test

USER_VERSION = range(60, 64)  # bytes of the header: a number above those we know is a newer program's
SAMPLES = 400


async def make_home(folder: Path) -> Home:
    """One with every table that there is."""
    home = Home(folder)
    async with home.app() as app:
        for number in range(3):
            await app.memory_service.update(ExchangeInput(f"第 {number} 个问题", f"回答 {number}"))
        assert (await app.recall().search(SearchRequest("问题"))).hits
        await app.lessons().learn("error", {"error": {"message": "an error"}, "tags": ["a"]})
        await app.log.database.write(context_store.record_given, "s", ["evt_1"], 1, 1)
    return home


def schema_pages(path: Path) -> Iterator[int]:
    """The pages of the tree of `sqlite_master`, overflow pages included."""
    data = path.read_bytes()

    def pages(number: int) -> Iterator[int]:
        page = data[(number - 1) * PAGE : number * PAGE]
        head = page[100:] if number == 1 else page
        yield number
        cells = int.from_bytes(head[3:5], "big")
        if head[0] == 5:
            for cell in range(cells):
                at = int.from_bytes(head[12 + 2 * cell : 14 + 2 * cell], "big")
                yield from pages(int.from_bytes(page[at : at + 4], "big"))
            yield from pages(int.from_bytes(head[8:12], "big"))

    return pages(1)


@pytest.mark.parametrize("seed", first_in_test(range(SAMPLES // 10), 1))
async def test_a_flipped_bit_of_the_schema_costs_nothing(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    home = await make_home(tmp_path)
    async with home.app() as app:
        before = await events_of(app)
    for number in range(10):
        data = bytearray(home.database.read_bytes())
        at = (chance.choice(list(schema_pages(home.database))) - 1) * PAGE + chance.randrange(PAGE)
        data[at] ^= 1 << chance.randrange(8)
        sound = home.database.read_bytes()
        home.database.write_bytes(data)
        try:
            async with home.app() as app:
                after = await events_of(app)
                assert before.items() <= after.items() or {**before}.keys() <= after.keys()
                await app.memory_service.update(ExchangeInput(f"又问 {number}", "好"))
                assert (await app.memory_service.load(wait_ms=0)).document.count(f"用户问：又问 {number}\n") == 1
                found = await app.recall().search(SearchRequest("问题"))
                assert found.hits or found.partial
                assert await app.lessons().all()
                assert await app.log.find_problems() == []
                before = await events_of(app)
            async with home.app() as app:
                assert not has_salvage_warning(app), "the next start finds nothing to do"
        except SchemaTooNew:
            assert at in USER_VERSION
            home.database.write_bytes(sound)


@pytest.mark.parametrize(
    "damage",
    [
        "set sql = replace(sql, 'event_id', 'event_if') where name = 'events'",
        "set sql = replace(sql, 'server_seq', 'server_ser') where name = 'events'",
        "set tbl_name = cast(tbl_name as blob) where name = 'lesson_terms'",
        "set name = cast(name as blob) where name = 'lesson_terms'",
    ],
)
async def test_a_damaged_name_in_the_stored_schema_costs_no_event(tmp_path: Path, damage: str) -> None:
    home = await make_home(tmp_path)
    async with home.app() as app:
        before = await events_of(app)
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("pragma writable_schema = on")
        connection.execute(f"update sqlite_master {damage}")
        connection.commit()
    async with home.app() as app:
        assert before.keys() <= (await events_of(app)).keys()
        assert await app.lessons().all()


@pytest.mark.parametrize("version", [migration.version for migration in known_migrations()])
def test_the_schema_of_every_version_is_sound_and_a_missing_index_is_not(version: int) -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        for migration in known_migrations():
            for statement in migration.statements if migration.version <= version else ():
                connection.execute(statement)
        connection.execute(f"pragma application_id = {APPLICATION_ID}")
        connection.execute(f"pragma user_version = {version}")
        assert check_schema(connection)
        connection.execute("drop index events_by_time")
        with pytest.raises(CorruptionFound):
            check_schema(connection)


async def test_derived_tables_of_another_layout_are_made_again_without_a_salvage(tmp_path: Path) -> None:
    home = await make_home(tmp_path)
    with closing(sqlite3.connect(home.database)) as connection:
        connection.execute("alter table recall_items add column former text")
        connection.execute("drop table lesson_terms")
    async with home.app() as app:
        assert not has_salvage_warning(app)
        assert (await app.recall().search(SearchRequest("问题"))).hits
        assert await app.lessons().all()


async def test_every_table_is_kept_by_a_salvage_or_can_be_derived(tmp_path: Path) -> None:
    """Name a new table in one of the two lists."""
    await (await Database.open(tmp_path / "memory.db")).close()
    assert {*SMALL_TABLES, *DERIVABLE_TABLES, events, written} == set(metadata.tables.values())
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        stored = connection.execute("select name from sqlite_master where type = 'table' and name not like 'sqlite%'")
        assert {name for (name,) in stored} == set(metadata.tables)
