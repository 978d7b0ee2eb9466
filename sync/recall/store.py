"""The index's SQL. Every function runs inside a transaction of the caller.

Decisions
    The tables are the view's own: it makes them when it begins and drops them when it begins anew, so a SQLite without
    FTS5 lacks recall and nothing else, and a new layout needs no migration.
    The word index holds which items have a term and nothing more (`detail=none`, contentless): scores are ours
    (`score.py`), and 100,000 items take less room than their texts. Its rows are taken out with the words that were
    put in, so the text stands beside it; whose it is and when it was said stays with the event.
    A term of what was taken out lies in the word index until all its parts are merged into one: a third of a second
    for 100,000 items, in which nobody could record. So it is merged in steps, each a transaction of its own, and that
    it has to be is kept as a table (`recall_unmerged`): a program that ends meanwhile goes on with it.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import Connection

from sync.clock import EPOCH
from sync.recall import vector_store
from sync.recall.items import PLACES, is_turn, origin_of
from sync.recall.model import Kept
from sync.recall.segment import words
from sync.recall.soundness import drop_words

_TABLES: Final = (
    """create table recall_items (
      id integer primary key, born integer not null, said integer not null, entry_id text, kind text not null,
      project_id text not null, ts_ms integer not null, length integer not null, importance real not null,
      marks text not null, text text not null
    )""",
    "create unique index recall_by_entry on recall_items (entry_id) where entry_id is not null",
    "create index recall_by_birth on recall_items (born) where born <> id",
    "create index recall_by_time on recall_items (ts_ms)",
    """create virtual table recall_words using fts5(
      words, content='', detail=none, columnsize=0, tokenize="ascii tokenchars '_./#+@:-'"
    )""",
    "create table recall_totals (one integer primary key check (one = 1), items integer, length integer)",
    "insert into recall_totals values (1, 0, 0)",
)
_UNMERGED: Final = "recall_unmerged"
_NAMES: Final = ("recall_items", "recall_totals", _UNMERGED)
_INSERT: Final = "insert into recall_items values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INDEX: Final = "insert into recall_words (rowid, words) values (?, ?)"
_UNINDEX: Final = "insert into recall_words (recall_words, rowid, words) values ('delete', ?, ?)"
_MERGE: Final = "insert into recall_words (recall_words, rank) values ('merge', ?)"
MERGED: Final = 64  # pages of the word index that are written in one step
_DID_SOMETHING: Final = 2  # rows that a merge changes at least where there was something to merge, as SQLite says
_COUNT: Final = "update recall_totals set items = items + ?, length = length + ?"
_COLUMNS: Final = "id, born, said, entry_id, kind, project_id, ts_ms, length, importance, marks, text"
_WITH_EVENT: Final = f"""
    select i.id, i.entry_id, i.kind, i.text, i.importance, i.marks, i.project_id, i.ts_ms,
      e.event_id, e.ts, e.utc_offset, e.project_path, e.session_id, e.device_id, e.origin
    from recall_items i join events e on e.position = i.said / {PLACES} where i.id in """

_HEAD: Final = "select id, kind, substr(text, 1, 40) from recall_items where id in "
_BESIDE: Final = """
    select i.id, (select max(id) from recall_items where id < i.id), (select min(id) from recall_items where id > i.id)
    from recall_items i where i.id in """
_TURN: Final = f"""
    select i.id, i.kind, substr(i.text, 1, 40), e.session_id, e.device_id
    from recall_items i join events e on e.position = i.id / {PLACES} where i.id in """


@dataclass(frozen=True, slots=True)
class Row:
    """A row of `recall_items`. `born`: the id under which the line first came in; `said`: that of its present words."""

    item_id: int
    born: int
    said: int
    entry_id: str | None
    kind: str
    project_id: str
    ts_ms: int
    importance: float
    marks: tuple[str, ...]
    text: str

    def words(self) -> list[str]:
        """Every term of text and marks, with repetitions."""
        return words(" ".join((self.text, *self.marks)))


@dataclass(frozen=True, slots=True)
class Filter:
    """Which items count; times in Unix milliseconds, `until_ms` exclusive."""

    project_id: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    kinds: tuple[str, ...] = ()

    def where(self) -> tuple[str, list[Any]]:
        """Conditions on `i`, each with `and` before it, and what they are given."""
        given: list[tuple[str, list[Any]]] = []
        if self.project_id is not None:
            given.append(("i.project_id = ?", [self.project_id]))
        if self.since_ms is not None:
            given.append(("i.ts_ms >= ?", [self.since_ms]))
        if self.until_ms is not None:
            given.append(("i.ts_ms < ?", [self.until_ms]))
        if self.kinds:
            given.append((f"i.kind in ({_places(self.kinds)})", list(self.kinds)))
        return "".join(f" and {text}" for text, _ in given), [value for _, values in given for value in values]


def create(connection: Connection) -> None:
    """Make the tables anew, empty."""
    drop_words(connection)
    for name in (*_NAMES, *vector_store.NAMES):
        connection.exec_driver_sql(f"drop table if exists {name}")
    for statement in (*_TABLES, *vector_store.TABLES):
        connection.exec_driver_sql(statement)


def exists(connection: Connection) -> bool:
    return connection.exec_driver_sql("select 1 from sqlite_master where name = 'recall_totals'").first() is not None


def put(connection: Connection, rows: Sequence[Row]) -> None:
    """Add rows that are not there yet."""
    if not rows:
        return
    said = [row.words() for row in rows]
    values = [
        (
            row.item_id,
            row.born,
            row.said,
            row.entry_id,
            row.kind,
            row.project_id,
            row.ts_ms,
            len(found),
            row.importance,
            " ".join(row.marks),
            row.text,
        )
        for row, found in zip(rows, said, strict=True)
    ]
    connection.exec_driver_sql(_INSERT, values)
    indexed = [(row.item_id, " ".join(dict.fromkeys(found))) for row, found in zip(rows, said, strict=True)]
    connection.exec_driver_sql(_INDEX, indexed)
    connection.exec_driver_sql(_COUNT, (len(rows), sum(map(len, said))))


def remove(connection: Connection, rows: Sequence[Row]) -> None:
    """Take rows out, with every word of theirs and their vectors."""
    vector_store.remove(connection, [row.item_id for row in rows])
    for row in rows:
        found = row.words()
        connection.exec_driver_sql(_UNINDEX, (row.item_id, " ".join(dict.fromkeys(found))))
        connection.exec_driver_sql("delete from recall_items where id = ?", (row.item_id,))
        connection.exec_driver_sql(_COUNT, (-1, -len(found)))


def let_go(connection: Connection) -> None:
    """Something was taken out: the word index has to be merged to have nothing of it."""
    connection.exec_driver_sql(f"create table if not exists {_UNMERGED} (one)")


def is_unmerged(connection: Connection) -> bool:
    return connection.exec_driver_sql("select 1 from sqlite_master where name = ?", (_UNMERGED,)).first() is not None


def merge(connection: Connection, *, begin: bool) -> bool:
    """One step of merging the word index, the first where `begin`; whether there may be more to do.

    After the last one nothing is left of what was taken out before the first, if nothing was put in meanwhile.
    """
    driver: Any = connection.connection.driver_connection
    before = driver.total_changes
    connection.exec_driver_sql(_MERGE, (-MERGED if begin else MERGED,))
    return bool(driver.total_changes - before >= _DID_SOMETHING)


def have_let_go(connection: Connection) -> None:
    """Nothing of what was taken out is left."""
    connection.exec_driver_sql(f"drop table if exists {_UNMERGED}")


def by_entries(connection: Connection, entry_ids: Sequence[str]) -> list[Row]:
    return _rows(connection, f"entry_id in ({_places(entry_ids)})", entry_ids)


def by_ids(connection: Connection, item_ids: Sequence[int]) -> list[Row]:
    return _rows(connection, f"id in ({_places(item_ids)})", item_ids)


def by_positions(connection: Connection, positions: Sequence[int]) -> list[Row]:
    """What came from the events at these positions, also where a later event has changed it."""
    ids = [position * PLACES + place for position in positions for place in range(PLACES)]
    places = _places(ids)
    return _rows(connection, f"id in ({places}) or (born <> id and born in ({places}))", ids * 2)


def totals(connection: Connection) -> tuple[int, float]:
    """How many items there are, and how many terms one has on average."""
    items, length = connection.exec_driver_sql("select items, length from recall_totals").one()
    return int(items), (length / items if items else 0.0)


def positions_of(connection: Connection, event_ids: Sequence[str]) -> dict[str, int]:
    """Where events stand in the log; those that are not held are left out."""
    found = connection.exec_driver_sql(
        f"select event_id, position from events where event_id in ({_places(event_ids)})", tuple(event_ids)
    )
    return {row.event_id: row.position for row in found}


def count(connection: Connection, term: str, limit: int) -> int:
    """How many items hold a term; of more than `limit`, about how many, by how dense its first ones lie."""
    held, first, last = (
        _cursor(connection)
        .execute(
            "select count(*), min(rowid), max(rowid) from"
            " (select rowid from recall_words where recall_words match ? limit ?)",
            (_quoted(term), limit),
        )
        .fetchone()
    )
    if held < limit:
        return int(held)
    newest = int(connection.exec_driver_sql("select max(id) from recall_items").scalar_one())
    return int(max(held, held * (newest - first + 1) / (last - first + 1)))


def holders(connection: Connection, term: str, asked: Filter, limit: int) -> list[int]:
    """The newest items that hold a term.

    They come as one value: thousands of rows would take longer to hand over than to find.
    """
    where, given = asked.where()
    joined = f" cross join recall_items i on i.id = w.rowid where w.recall_words match ?{where}" if where else ""
    statement = f"select w.rowid from recall_words w{joined or ' where w.recall_words match ?'}"
    (found,) = (
        _cursor(connection)
        .execute(
            f"select json_group_array(rowid) from ({statement} order by w.rowid desc limit ?)",
            (_quoted(term), *given, limit),
        )
        .fetchone()
    )
    item_ids: list[int] = json.loads(found)
    return item_ids


def lengths(connection: Connection, item_ids: Sequence[int]) -> dict[int, int]:
    """How many terms items have."""
    return dict(
        _cursor(connection).execute(
            f"select id, length from recall_items where id in ({_places(item_ids)})", tuple(item_ids)
        )
    )


def allowed(connection: Connection, asked: Filter) -> set[int] | None:
    """The items that a filter lets through; None where it filters nothing."""
    where, given = asked.where()
    if not where:
        return None
    return set(connection.exec_driver_sql(f"select i.id from recall_items i where true{where}", tuple(given)).scalars())


def kept(connection: Connection, item_ids: Sequence[int]) -> dict[int, Kept]:
    """Items with what their events say of them."""
    found = _cursor(connection).execute(_WITH_EVENT + f"({_places(item_ids)})", tuple(item_ids))
    return {row[0]: _kept(row) for row in found}


def turns(connection: Connection, item_ids: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """The turns before and after each of these items in the same conversation; items that are no turns are left out."""
    cursor = _cursor(connection)
    heads = cursor.execute(_HEAD + f"({_places(item_ids)})", tuple(item_ids))
    spoken = [item_id for item_id, kind, head in heads if is_turn(kind, head)]
    if not spoken:
        return {}
    beside = {item_id: near for item_id, *near in cursor.execute(_BESIDE + f"({_places(spoken)})", spoken)}
    all_of_them = list({*spoken, *(at for near in beside.values() for at in near if at is not None)})
    said = cursor.execute(_TURN + f"({_places(all_of_them)})", all_of_them)
    sessions = {at: (session, device) for at, kind, head, session, device in said if is_turn(kind, head)}
    return {
        item_id: tuple(at for at in near if at in sessions and sessions[at] == sessions[item_id])
        for item_id, near in beside.items()
    }


def texts(connection: Connection, item_ids: Sequence[int]) -> dict[int, str]:
    found = connection.exec_driver_sql(
        f"select id, text from recall_items where id in ({_places(item_ids)})", tuple(item_ids)
    )
    return {row.id: row.text for row in found}


def _rows(connection: Connection, where: str, given: Iterable[Any]) -> list[Row]:
    found = connection.exec_driver_sql(f"select {_COLUMNS} from recall_items where {where}", tuple(given))
    return [
        Row(
            row.id,
            row.born,
            row.said,
            row.entry_id,
            row.kind,
            row.project_id,
            row.ts_ms,
            row.importance,
            tuple(row.marks.split()),
            row.text,
        )
        for row in found
    ]


def _kept(row: Sequence[Any]) -> Kept:
    """A row of `_WITH_EVENT`."""
    item_id, entry_id, kind, text, importance, marks, project_id, ts_ms, event_id, ts, utc_offset, *of_event = row
    project_path, session_id, device_id, origin = of_event
    return Kept(
        item_id=item_id,
        event_id=event_id,
        entry_id=entry_id,
        kind=kind,
        text=text,
        date=_day(ts_ms, utc_offset),
        ts=ts,
        ts_ms=ts_ms,
        project_id=project_id,
        project_path=project_path,
        session_id=session_id,
        device_id=device_id,
        origin=origin_of(item_id, kind, origin),
        importance=importance,
        marks=tuple(marks.split()),
    )


def _day(ts_ms: int, utc_offset: int) -> str:
    try:
        return (EPOCH + timedelta(milliseconds=ts_ms, minutes=utc_offset)).date().isoformat()
    except OverflowError:  # a time of another program that no calendar has
        return datetime(1970, 1, 1, tzinfo=UTC).date().isoformat()


def _cursor(connection: Connection) -> Any:
    """The driver's own cursor: a query asks a hundred small questions, and each would cost thrice as much."""
    driver: Any = connection.connection.driver_connection
    return driver.cursor()


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _places(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def everything(connection: Connection) -> Iterator[Row]:
    """All rows in order, for whoever compares two indexes."""
    yield from _rows(connection, "true order by id", ())
