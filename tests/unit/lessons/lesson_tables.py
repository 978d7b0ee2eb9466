"""The lessons' tables in memory, with lessons that a test adds."""

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import create_engine

from sync.db.engine import Transaction
from sync.lessons import store
from sync.lessons.model import ERROR, Lesson, new_record

AT = "2026-02-02T10:00:00Z"


@contextmanager
def lesson_tables() -> Iterator[Transaction]:
    with create_engine("sqlite://").begin() as connection:
        store.recreate_tables(connection)
        yield connection


def error_lesson(number: int, message: str, cure: str, *, error_type: str = "", language: str = "general") -> Lesson:
    given = {
        "language": language,
        "error": {"type": error_type, "message": message},
        "solution": {"description": cure, "actions": []},
    }
    content = new_record(ERROR, given, AT)
    return Lesson(f"err-20260202-{number:04}", ERROR, "", "said", 1, 0, 0, 0, AT, AT, ("proj_a",), content)


def add(connection: Transaction, lesson: Lesson) -> None:
    store.insert_lesson(connection, lesson, shares_term=True, sessions=())
