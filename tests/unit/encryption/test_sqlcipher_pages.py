"""An encrypted database without its driver: what SQLCipher wrote, read by our own hand, whole and damaged."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from sync.encryption.driver import DatabaseAccess, cipher_driver
from sync.encryption.key import DatabaseKey
from sync.encryption.sqlcipher_pages import PAGE_BYTES, decrypt_database, key_decrypts

KEY: Final = DatabaseKey.new(random.Random(1).randbytes)


OTHER: Final = DatabaseKey.new(random.Random(2).randbytes)


ROWS: Final = 300


@contextmanager
def written(path: Path, rows: int = ROWS) -> Iterator[sqlite3.Connection]:
    with closing(DatabaseAccess(cipher_driver(), KEY).connect(path)) as connection:
        connection.execute("pragma journal_mode = wal")
        connection.execute("create table said (number integer primary key, text text)")
        _say(connection, 0, rows)
        connection.execute("pragma wal_checkpoint(truncate)")
        yield connection


def _say(connection: sqlite3.Connection, first: int, count: int) -> None:
    connection.execute("begin")
    words = [(number, f"第 {number} 句 " + "很久以前" * 20) for number in range(first, first + count)]
    connection.executemany("insert into said values (?, ?)", words)
    connection.execute("commit")


def numbers(image: bytes) -> list[int]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.deserialize(image)
        assert connection.execute("pragma quick_check").fetchall() == [("ok",)]
        return [row[0] for row in connection.execute("select number from said order by number")]


def wal_of(path: Path) -> bytes:
    return path.with_name(f"{path.name}-wal").read_bytes()


def test_what_sqlcipher_wrote_is_a_plain_database_once_it_is_decrypted(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with written(path):
        pass
    assert numbers(decrypt_database(path.read_bytes(), b"", KEY)) == list(range(ROWS))


def test_commits_only_in_the_write_ahead_log_are_read_and_a_torn_one_is_not(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with written(path) as connection:
        connection.execute("pragma wal_autocheckpoint = 0")
        sizes = []
        for first in (ROWS, ROWS + 10, ROWS + 20):
            _say(connection, first, 10)
            sizes.append(len(wal_of(path)))
        data, wal = path.read_bytes(), wal_of(path)
    assert numbers(decrypt_database(data, wal, KEY)) == list(range(ROWS + 30))
    assert numbers(decrypt_database(data, wal[: sizes[1] + PAGE_BYTES // 2], KEY)) == list(range(ROWS + 20))
    torn = bytearray(wal)
    torn[sizes[0] + 200] ^= 1
    assert numbers(decrypt_database(data, bytes(torn), KEY)) == list(range(ROWS + 10))


def test_frames_of_an_earlier_round_of_the_log_are_not_taken_for_newer_ones(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with written(path) as connection:
        connection.execute("pragma wal_autocheckpoint = 0")
        _say(connection, ROWS, 50)
        connection.execute("pragma wal_checkpoint(restart)")
        connection.execute("delete from said where number >= 100")  # over the first frames of the round before
        connection.execute("update said set text = '' where number = 0")
        data, wal = path.read_bytes(), wal_of(path)
    assert numbers(decrypt_database(data, wal, KEY)) == list(range(100))


def test_a_damaged_page_costs_nothing_of_the_others_and_a_broken_first_one_says_so(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with written(path):
        pass
    data = bytearray(path.read_bytes())
    whole = decrypt_database(bytes(data), b"", KEY)
    data[5 * PAGE_BYTES + 100] ^= 0xFF
    data[:16] = bytes(16)  # the salt is known from the key
    damaged = decrypt_database(bytes(data), b"", KEY)
    differ = {at // PAGE_BYTES for at in range(len(whole)) if whole[at] != damaged[at]}
    assert differ == {5}
    data[200] ^= 0xFF
    assert not decrypt_database(bytes(data), b"", KEY).startswith(b"SQLite format 3")


def test_a_key_fits_as_long_as_one_page_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with written(path):
        pass
    assert key_decrypts(KEY, path)
    assert not key_decrypts(OTHER, path)
    data = bytearray(path.read_bytes())
    for page in range(len(data) // PAGE_BYTES - 1):
        data[page * PAGE_BYTES + 50] ^= 1
    path.write_bytes(data)
    assert key_decrypts(KEY, path)
    path.write_bytes(data[:-PAGE_BYTES] + b"cut off")
    assert not key_decrypts(KEY, path)


def test_nothing_makes_a_database_of_nothing() -> None:
    assert decrypt_database(b"", b"", KEY) == b""
    assert decrypt_database(b"less than a page", b"", KEY) == b""
