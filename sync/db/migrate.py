"""Brings a database to the schema this program knows, or refuses one that a newer program has written."""

import sqlite3
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from sqlalchemy import Connection

from sync.errors import SchemaTooNew, StorageCorrupt

APPLICATION_ID: Final = 0x58_42_4D_31  # "XBM1": tells our files from any other SQLite database


class Migration(NamedTuple):
    version: int
    name: str
    statements: tuple[str, ...]


def known_migrations() -> list[Migration]:
    """The numbered files of `migrations/`, oldest first. A file that has shipped is never changed again."""
    return list(_load_migrations())


@cache
def _load_migrations() -> tuple[Migration, ...]:
    found = []
    for file in Path(__file__).with_name("migrations").iterdir():
        number, _, name = file.name.removesuffix(".sql").partition("_")
        if file.name.endswith(".sql"):
            found.append(Migration(int(number), name, _split_statements(file.read_text("utf-8"))))
    return tuple(sorted(found))


def _split_statements(script: str) -> tuple[str, ...]:
    """One by one; a trigger's own semicolons do not end it."""
    found, held = [], ""
    for line in script.splitlines(keepends=True):
        if not line.lstrip().startswith("--"):
            held += line
        if sqlite3.complete_statement(held):
            found.append(held.strip())
            held = ""
    return tuple(statement for statement in (*found, held.strip()) if statement)


def migrate(connection: Connection) -> int:
    """Apply what is missing inside the caller's transaction; returns the schema version reached."""
    version = int(connection.exec_driver_sql("pragma user_version").scalar_one())
    _check_application_id(connection, version)
    migrations = known_migrations()
    newest = migrations[-1].version
    if version > newest:
        raise SchemaTooNew(f"the database has schema {version}, this program knows {newest}")
    for migration in migrations:
        if migration.version > version:
            for statement in migration.statements:
                connection.exec_driver_sql(statement)
            connection.exec_driver_sql(f"pragma user_version = {migration.version}")
    if version == 0:
        connection.exec_driver_sql(f"pragma application_id = {APPLICATION_ID}")
    return newest


def _check_application_id(connection: Connection, version: int) -> None:
    """Never build our tables into another program's file."""
    mark = int(connection.exec_driver_sql("pragma application_id").scalar_one())
    tables = int(connection.exec_driver_sql("select count(*) from sqlite_master").scalar_one())
    if mark != (APPLICATION_ID if version or tables else 0):
        raise StorageCorrupt("the database belongs to another program", hint="Move it aside; nothing was changed.")
