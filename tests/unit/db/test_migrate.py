"""Migrations: what they make, and what a failing one leaves."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine

from sync.db.engine import Database
from sync.db.migrate import APPLICATION_ID, known_migrations, migrate
from sync.db.schema import metadata
from sync.document.read import cold_load
from sync.errors import (
    StorageError,
)
from sync.log.outbox_store import count_deliveries, read_cursor


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(tmp_path / "memory.db")
    yield opened
    await opened.close()


def pragma(name: str) -> Any:
    return lambda connection: connection.exec_driver_sql(f"pragma {name}").scalar_one()


def test_the_migrations_make_the_tables_that_the_program_knows() -> None:
    """Names, types, what may be null, and keys. SQLite says `notnull` 0 for an integer primary key."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        migrate(connection)
        tables = connection.exec_driver_sql("select name from sqlite_master where type = 'table'").scalars().all()
        made = {
            name: [
                (column[1], column[2].upper(), not column[3] and not column[5], bool(column[5]))
                for column in connection.exec_driver_sql(f"pragma table_info({name})")
            ]
            for name in tables
            if not name.startswith("sqlite_")
        }
    known_here = {
        table.name: [
            (column.name, str(column.type), bool(column.nullable), bool(column.primary_key)) for column in table.columns
        ]
        for table in metadata.tables.values()
    }
    engine.dispose()
    assert made == known_here


def test_what_waited_before_the_counts_were_kept_is_counted() -> None:
    """A database of the first schema, with deliveries in two states, brought up to date."""
    engine = create_engine("sqlite://")
    with engine.begin() as connection:
        for statement in known_migrations()[0].statements:
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql(f"pragma application_id = {APPLICATION_ID}")
        connection.exec_driver_sql("pragma user_version = 1")
        for position, state in enumerate(("pending", "pending", "acked")):
            connection.exec_driver_sql(f"insert into deliveries values ('cloud', {position}, '{state}')")
        connection.exec_driver_sql("insert into cursors values ('cloud', 'e', 7, 'evt', 7, null)")
        migrate(connection)
        assert [count_deliveries(connection, "cloud", state) for state in ("pending", "acked", "dropped")] == [2, 1, 0]
        assert read_cursor(connection, "cloud").may_lack, "it may have been on its way through a restored server's log"
        connection.exec_driver_sql("update deliveries set state = 'dropped' where position = 0")
        connection.exec_driver_sql("delete from deliveries where position = 2")
        connection.exec_driver_sql(
            "insert or ignore into deliveries values ('cloud', 1, 'acked'), ('cloud', 9, 'acked')"
        )
        assert [count_deliveries(connection, "cloud", state) for state in ("pending", "acked", "dropped")] == [1, 1, 1]
    engine.dispose()


def test_the_newest_schema_is_one_that_a_glimpse_can_read() -> None:
    """A migration that leaves `events`, `written` and the counts alone is added to the range."""
    assert known_migrations()[-1].version in cold_load.SCHEMA_VERSIONS


async def test_migrating_twice_changes_nothing(tmp_path: Path) -> None:
    database = await Database.open(tmp_path / "memory.db")
    before = await database.read(pragma("schema_version"))
    assert await database.write(migrate) == known_migrations()[-1].version
    assert await database.read(pragma("schema_version")) == before
    await database.close()


async def test_a_migration_that_fails_leaves_the_old_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "memory.db"
    broken = known_migrations()[-1]._replace(
        version=known_migrations()[-1].version + 1, statements=("create table extra (x)", "no sql")
    )
    await (await Database.open(path)).close()
    shipped = known_migrations()
    monkeypatch.setattr("sync.db.migrate.known_migrations", lambda: [*shipped, broken])
    with pytest.raises(StorageError):
        await Database.open(path)
    monkeypatch.undo()
    database = await Database.open(path)
    assert await database.read(pragma("user_version")) == shipped[-1].version
    tables = await database.read(lambda c: c.exec_driver_sql("select name from sqlite_master").scalars().all())
    assert "extra" not in tables
    await database.close()
