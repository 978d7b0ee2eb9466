"""What a read does while another process holds the write lock."""

import sqlite3
from pathlib import Path

from sync.db.engine import Database
from tests.unit.db.test_engine import database, insert, names

__all__ = ["database"]


async def test_what_only_reads_opens_and_answers_while_another_process_holds_the_lock(
    database: Database, tmp_path: Path
) -> None:
    await database.write(insert("known"))
    other = sqlite3.connect(tmp_path / "memory.db", isolation_level=None)
    other.execute("begin immediate")
    assert not await database.upkeep.run(lambda: database.write(insert("later"))), "the write waits, the read does not"
    reader = await Database.open(tmp_path / "memory.db", wait=False)
    assert not await reader.upkeep.run(lambda: reader.write(insert("never")))
    assert await names(reader) == {"known"}
    other.execute("rollback")
    other.close()
    await database.write(insert("newest"))
    assert await names(reader) == {"known", "later", "newest"}
    assert not await reader.upkeep.run(lambda: reader.write(insert("own")))
    await reader.write(insert("asked for"))
    assert await reader.upkeep.run(lambda: reader.write(insert("own"))), "the lock is free"
    await reader.close()
