"""What the simulation's short way to SQLite answers, beside SQLAlchemy's own."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from sqlalchemy import bindparam, delete, func, insert, select, text, update
from sqlalchemy.exc import (
    IntegrityError,
    InvalidRequestError,
    MultipleResultsFound,
    NoResultFound,
    OperationalError,
    StatementError,
)

from sync.db.engine import Transaction, engine_without_pragmas
from sync.db.schema import captured, cursors, metadata, written
from sync.encryption.driver import PLAIN_ACCESS
from tests.simulation.host import quick_sql
from tests.simulation.host.quick_sql import QuickConnection

ROWS: Final = [{"event_id": name, "question": f"{name}?", "answer": f"{name}!"} for name in "abcd"]
VERSION: Final = {
    "surface": "file",
    "label": None,
    "sha256": "0",
    "bytes": "你好".encode(),
    "entry_ids": "",
    "cause": "hand",
    "created_at": "",
}
INSERT: Final = insert(captured)
PUT: Final = insert(written)
MOVE: Final = insert(cursors)
SEQ: Final = select(cursors.c.seq)
BY_ID: Final = select(captured).where(captured.c.event_id == bindparam("id"))
AMONG: Final = select(captured.c.answer).where(captured.c.event_id.in_(bindparam("ids", expanding=True)))
BESIDES: Final = AMONG.where(captured.c.answer != bindparam("but"), captured.c.question != "d?").order_by("answer")
WITHIN: Final = select(captured.c.answer).where(captured.c.event_id.in_(["a", "b"])).order_by(captured.c.answer)
COUNT: Final = select(func.count()).select_from(captured)
ALL: Final = select(captured).order_by(captured.c.event_id)
BY_TEXT: Final = text("select answer from captured where event_id = :id")
BYTES: Final = select(written.c.bytes)
CHANGE: Final = update(captured).where(captured.c.event_id == bindparam("id")).values(answer="changed")
REMOVE: Final = delete(captured).where(captured.c.event_id.in_(bindparam("ids", expanding=True)))
RETURNING: Final = (
    update(captured).where(captured.c.event_id == bindparam("id")).values(answer="x").returning(captured.c.answer)
)
STREAM: Final = select(captured.c.answer).execution_options(yield_per=2)
CURSOR: Final = {"destination": "there", "seq": 7, "head": 8, "may_lack": 0}
NO_TABLE: Final = text("select 1 from nothing")
Ask = Callable[[Transaction], Any]

ASKED: Final[dict[str, Ask]] = {
    "rows by name": lambda on: [dict(row) for row in on.execute(BY_ID, {"id": "b"}).mappings()],
    "a row's fields": lambda on: on.execute(BY_ID, {"id": "b"}).one().question,
    "no row": lambda on: on.execute(BY_ID, {"id": "z"}).mappings().first(),
    "a list": lambda on: sorted(on.execute(AMONG, {"ids": ["a", "c"]}).scalars()),
    "a longer list": lambda on: sorted(on.execute(AMONG, {"ids": ["a", "c", "d"]}).scalars()),
    "an empty list": lambda on: on.execute(AMONG, {"ids": []}).all(),
    "a list and more": lambda on: on.execute(BESIDES, {"but": "a!", "ids": ["a", "b", "c", "d"]}).scalars().all(),
    "a list within the statement": lambda on: on.execute(WITHIN).scalars().all(),
    "rows": lambda on: [row.answer for row in on.execute(ALL)],
    "the first row": lambda on: on.execute(ALL).first(),
    "no value": lambda on: on.execute(BY_ID, {"id": "z"}).scalar(),
    "nothing given": lambda on: on.execute(COUNT).scalar_one(),
    "text": lambda on: on.execute(BY_TEXT, {"id": "a"}).one()[0],
    "bytes": lambda on: (on.execute(PUT, VERSION).lastrowid, on.execute(BYTES).scalars().all()),
    "how many rows": lambda on: on.execute(ALL).rowcount,
    "a changed row": lambda on: (on.execute(CHANGE, {"id": "a"}).rowcount, on.execute(BY_ID, {"id": "a"}).one()[2]),
    "many changed": lambda on: (on.execute(CHANGE, [{"id": "a"}, {"id": "b"}]), on.execute(ALL).all())[1],
    "removed": lambda on: (on.execute(REMOVE, {"ids": ["a", "b"]}).rowcount, on.execute(COUNT).scalar_one()),
    "fewer names": lambda on: (on.execute(MOVE, CURSOR), on.execute(SEQ).all())[1],
    "returning": lambda on: on.execute(RETURNING, {"id": "c"}).scalar_one(),
    "a stream": lambda on: sorted(on.execute(STREAM).scalars()),
    "an option": lambda on: on.execute(COUNT, execution_options={"yield_per": 1}).scalar_one(),
}
REFUSED: Final[dict[str, tuple[type[Exception], Ask]]] = {
    "a second one": (IntegrityError, lambda on: on.execute(INSERT, ROWS[0])),
    "text for bytes": (StatementError, lambda on: on.execute(PUT, {**VERSION, "bytes": "你好"})),
    "text for bytes among many": (StatementError, lambda on: on.execute(PUT, [VERSION, {**VERSION, "bytes": "你好"}])),
    "a name too few": (StatementError, lambda on: on.execute(BY_ID, {})),
    "no row for one": (NoResultFound, lambda on: on.execute(BY_ID, {"id": "z"}).one()),
    "rows for one": (MultipleResultsFound, lambda on: on.execute(ALL).mappings().one()),
    "rows for a value": (MultipleResultsFound, lambda on: on.execute(ALL).scalar_one()),
    "no such table": (OperationalError, lambda on: on.execute(NO_TABLE)),
}


@contextmanager
def connected(path: Path, kind: type[Transaction]) -> Iterator[Transaction]:
    engine = engine_without_pragmas(path, PLAIN_ACCESS)
    engine._connection_cls = kind
    with engine.connect() as connection, connection.begin():
        metadata.create_all(connection)
        connection.execute(INSERT, ROWS)
        yield connection
    engine.dispose()


@pytest.mark.parametrize("asked", ASKED.values(), ids=list(ASKED))
def test_the_short_way_answers_what_sqlalchemy_answers(tmp_path: Path, asked: Ask) -> None:
    def answers(kind: type[Transaction]) -> list[Any]:
        found = []
        with connected(tmp_path / kind.__name__, kind) as connection:
            for _ in range(4):  # seen once, seen again, worked out, known
                nested = connection.begin_nested()
                found.append(asked(connection))
                nested.rollback()
        return found

    assert answers(QuickConnection) == answers(Transaction)


def test_most_of_them_do_go_the_short_way(tmp_path: Path) -> None:
    ordinary = set()
    quick_sql._KNOWN.clear()
    with connected(tmp_path / "log.db", QuickConnection) as connection:
        for name, asked in ASKED.items():
            for _ in range(3):
                nested = connection.begin_nested()
                asked(connection)
                nested.rollback()
            known = [kind for statement in quick_sql._KNOWN.values() for kind in statement.by_names.values()]
            ordinary |= {name} if None in known else set()
            quick_sql._KNOWN.clear()
    assert ordinary == {"a list within the statement", "returning", "a stream"}


@pytest.mark.parametrize(("error", "asked"), REFUSED.values(), ids=list(REFUSED))
def test_its_errors_are_those_of_sqlalchemy(tmp_path: Path, error: type[Exception], asked: Ask) -> None:
    with connected(tmp_path / "log.db", QuickConnection) as connection:
        for _ in range(4):
            nested = connection.begin_nested()
            with pytest.raises(error):
                asked(connection)
            nested.rollback()


def test_a_transaction_that_is_over_answers_nothing(tmp_path: Path) -> None:
    engine = engine_without_pragmas(tmp_path / "log.db", PLAIN_ACCESS)
    engine._connection_cls = QuickConnection
    with closing(engine.connect()) as connection, connection.begin() as whole:
        metadata.create_all(connection)
        for _ in range(4):
            connection.execute(COUNT)
        whole.rollback()
        with pytest.raises(InvalidRequestError):
            connection.execute(COUNT)
    engine.dispose()
