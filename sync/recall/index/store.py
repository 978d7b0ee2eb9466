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

from sync.clock import EPOCH
from sync.db.engine import Transaction
from sync.recall.index import vector_store
from sync.recall.index.extraction import ITEMS_PER_EVENT, is_turn, item_origin
from sync.recall.index.integrity import drop_term_index
from sync.recall.model import StoredItem
from sync.recall.text.tokenizer import index_terms

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
_UNMERGED_TABLE: Final = "recall_unmerged"
_TABLE_NAMES: Final = ("recall_items", "recall_totals", _UNMERGED_TABLE)
_INSERT_ITEM: Final = "insert into recall_items values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_TERMS: Final = "insert into recall_words (rowid, words) values (?, ?)"
_DELETE_TERMS: Final = "insert into recall_words (recall_words, rowid, words) values ('delete', ?, ?)"
_MERGE_TERMS: Final = "insert into recall_words (recall_words, rank) values ('merge', ?)"
MERGE_PAGES: Final = 64  # pages of the word index that are written in one step
_MIN_CHANGES_OF_A_MERGE: Final = (
    2  # rows that a merge changes at least where there was something to merge, as SQLite says
)
_UPDATE_TOTALS: Final = "update recall_totals set items = items + ?, length = length + ?"
_COLUMNS: Final = "id, born, said, entry_id, kind, project_id, ts_ms, length, importance, marks, text"
_WITH_EVENT: Final = f"""
    select i.id, i.entry_id, i.kind, i.text, i.importance, i.marks, i.project_id, i.ts_ms,
      e.event_id, e.ts, e.utc_offset, e.project_path, e.session_id, e.device_id, e.origin
    from recall_items i join events e on e.position = i.said / {ITEMS_PER_EVENT} where i.id in """

_ITEM_HEAD: Final = "select id, kind, substr(text, 1, 40) from recall_items where id in "
_ADJACENT_ITEMS: Final = """
    select i.id, (select max(id) from recall_items where id < i.id), (select min(id) from recall_items where id > i.id)
    from recall_items i where i.id in """
_TURN_SESSION: Final = f"""
    select i.id, i.kind, substr(i.text, 1, 40), e.session_id, e.device_id
    from recall_items i join events e on e.position = i.id / {ITEMS_PER_EVENT} where i.id in """


@dataclass(frozen=True, slots=True)
class ItemRow:
    """A row of `recall_items`. `born`: the id under which the line first came in; `said`: that of its present words."""

    item_id: int
    first_id: int
    text_id: int
    entry_id: str | None
    kind: str
    project_id: str
    ts_ms: int
    importance: float
    marks: tuple[str, ...]
    text: str

    def terms(self) -> list[str]:
        """Every term of text and marks, with repetitions."""
        return index_terms(" ".join((self.text, *self.marks)))


@dataclass(frozen=True, slots=True)
class ItemFilter:
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
            given.append((f"i.kind in ({_placeholders(self.kinds)})", list(self.kinds)))
        return "".join(f" and {text}" for text, _ in given), [value for _, values in given for value in values]


def recreate_tables(connection: Transaction) -> None:
    """Make the tables anew, empty."""
    drop_term_index(connection)
    for name in (*_TABLE_NAMES, *vector_store.TABLE_NAMES):
        connection.exec_driver_sql(f"drop table if exists {name}")
    for statement in (*_TABLES, *vector_store.TABLES):
        connection.exec_driver_sql(statement)


def is_created(connection: Transaction) -> bool:
    return connection.exec_driver_sql("select 1 from sqlite_master where name = 'recall_totals'").first() is not None


def insert(connection: Transaction, rows: Sequence[ItemRow]) -> None:
    """Add rows that are not there yet."""
    if not rows:
        return
    said = [row.terms() for row in rows]
    values = [
        (
            row.item_id,
            row.first_id,
            row.text_id,
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
    connection.exec_driver_sql(_INSERT_ITEM, values)
    indexed = [(row.item_id, " ".join(dict.fromkeys(found))) for row, found in zip(rows, said, strict=True)]
    connection.exec_driver_sql(_INSERT_TERMS, indexed)
    connection.exec_driver_sql(_UPDATE_TOTALS, (len(rows), sum(map(len, said))))


def delete(connection: Transaction, rows: Sequence[ItemRow]) -> None:
    """Take rows out, with every word of theirs and their vectors."""
    vector_store.remove_vectors(connection, [row.item_id for row in rows])
    for row in rows:
        found = row.terms()
        connection.exec_driver_sql(_DELETE_TERMS, (row.item_id, " ".join(dict.fromkeys(found))))
        connection.exec_driver_sql("delete from recall_items where id = ?", (row.item_id,))
        connection.exec_driver_sql(_UPDATE_TOTALS, (-1, -len(found)))


def mark_unmerged(connection: Transaction) -> None:
    """Something was taken out: the word index has to be merged to have nothing of it."""
    connection.exec_driver_sql(f"create table if not exists {_UNMERGED_TABLE} (one)")


def is_unmerged(connection: Transaction) -> bool:
    return (
        connection.exec_driver_sql("select 1 from sqlite_master where name = ?", (_UNMERGED_TABLE,)).first() is not None
    )


def merge_step(connection: Transaction, *, is_first_step: bool) -> bool:
    """One step of merging the word index, the first where `begin`; whether there may be more to do.

    After the last one nothing is left of what was taken out before the first, if nothing was put in meanwhile.
    """
    driver: Any = connection.connection.driver_connection
    before = driver.total_changes
    connection.exec_driver_sql(_MERGE_TERMS, (-MERGE_PAGES if is_first_step else MERGE_PAGES,))
    return bool(driver.total_changes - before >= _MIN_CHANGES_OF_A_MERGE)


def mark_merged(connection: Transaction) -> None:
    """Nothing of what was taken out is left."""
    connection.exec_driver_sql(f"drop table if exists {_UNMERGED_TABLE}")


def by_entries(connection: Transaction, entry_ids: Sequence[str]) -> list[ItemRow]:
    return _select_rows(connection, f"entry_id in ({_placeholders(entry_ids)})", entry_ids)


def by_ids(connection: Transaction, item_ids: Sequence[int]) -> list[ItemRow]:
    return _select_rows(connection, f"id in ({_placeholders(item_ids)})", item_ids)


def by_positions(connection: Transaction, positions: Sequence[int]) -> list[ItemRow]:
    """What came from the events at these positions, also where a later event has changed it."""
    ids = [position * ITEMS_PER_EVENT + place for position in positions for place in range(ITEMS_PER_EVENT)]
    places = _placeholders(ids)
    return _select_rows(connection, f"id in ({places}) or (born <> id and born in ({places}))", ids * 2)


def item_totals(connection: Transaction) -> tuple[int, float]:
    """How many items there are, and how many terms one has on average."""
    items, length = connection.exec_driver_sql("select items, length from recall_totals").one()
    return int(items), (length / items if items else 0.0)


def positions_of(connection: Transaction, event_ids: Sequence[str]) -> dict[str, int]:
    """Where events stand in the log; those that are not held are left out."""
    found = connection.exec_driver_sql(
        f"select event_id, position from events where event_id in ({_placeholders(event_ids)})", tuple(event_ids)
    )
    return {row.event_id: row.position for row in found}


def count_items_with_term(connection: Transaction, term: str, limit: int) -> int:
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


def items_with_term(connection: Transaction, term: str, item_filter: ItemFilter, limit: int) -> list[int]:
    """The newest items that hold a term.

    They come as one value: thousands of rows would take longer to hand over than to find.
    """
    where, given = item_filter.where()
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


def term_counts(connection: Transaction, item_ids: Sequence[int]) -> dict[int, int]:
    """How many terms items have."""
    return dict(
        _cursor(connection).execute(
            f"select id, length from recall_items where id in ({_placeholders(item_ids)})", tuple(item_ids)
        )
    )


def matching_item_ids(connection: Transaction, item_filter: ItemFilter) -> set[int] | None:
    """The items that a filter lets through; None where it filters nothing."""
    where, given = item_filter.where()
    if not where:
        return None
    return set(connection.exec_driver_sql(f"select i.id from recall_items i where true{where}", tuple(given)).scalars())


def load_items(connection: Transaction, item_ids: Sequence[int]) -> dict[int, StoredItem]:
    """Items with what their events say of them."""
    found = _cursor(connection).execute(_WITH_EVENT + f"({_placeholders(item_ids)})", tuple(item_ids))
    return {row[0]: _stored_item(row) for row in found}


def neighbouring_turns(connection: Transaction, item_ids: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """The turns before and after each of these items in the same conversation; items that are no turns are left out."""
    cursor = _cursor(connection)
    heads = cursor.execute(_ITEM_HEAD + f"({_placeholders(item_ids)})", tuple(item_ids))
    spoken = [item_id for item_id, kind, head in heads if is_turn(kind, head)]
    if not spoken:
        return {}
    beside = {
        item_id: near for item_id, *near in cursor.execute(_ADJACENT_ITEMS + f"({_placeholders(spoken)})", spoken)
    }
    all_of_them = list({*spoken, *(at for near in beside.values() for at in near if at is not None)})
    said = cursor.execute(_TURN_SESSION + f"({_placeholders(all_of_them)})", all_of_them)
    sessions = {at: (session, device) for at, kind, head, session, device in said if is_turn(kind, head)}
    return {
        item_id: tuple(at for at in near if at in sessions and sessions[at] == sessions[item_id])
        for item_id, near in beside.items()
    }


def item_texts(connection: Transaction, item_ids: Sequence[int]) -> dict[int, str]:
    found = connection.exec_driver_sql(
        f"select id, text from recall_items where id in ({_placeholders(item_ids)})", tuple(item_ids)
    )
    return {row.id: row.text for row in found}


def _select_rows(connection: Transaction, where: str, values: Iterable[Any]) -> list[ItemRow]:
    found = connection.exec_driver_sql(f"select {_COLUMNS} from recall_items where {where}", tuple(values))
    return [
        ItemRow(
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


def _stored_item(row: Sequence[Any]) -> StoredItem:
    """A row of `_WITH_EVENT`."""
    item_id, entry_id, kind, text, importance, marks, project_id, ts_ms, event_id, ts, utc_offset, *of_event = row
    project_path, session_id, device_id, origin = of_event
    return StoredItem(
        item_id=item_id,
        event_id=event_id,
        entry_id=entry_id,
        kind=kind,
        text=text,
        date=_local_date(ts_ms, utc_offset),
        ts=ts,
        ts_ms=ts_ms,
        project_id=project_id,
        project_path=project_path,
        session_id=session_id,
        device_id=device_id,
        origin=item_origin(item_id, kind, origin),
        importance=importance,
        marks=tuple(marks.split()),
    )


def _local_date(ts_ms: int, utc_offset: int) -> str:
    try:
        return (EPOCH + timedelta(milliseconds=ts_ms, minutes=utc_offset)).date().isoformat()
    except OverflowError:  # a time of another program that no calendar has
        return datetime(1970, 1, 1, tzinfo=UTC).date().isoformat()


def _cursor(connection: Transaction) -> Any:
    """The driver's own cursor: a query asks a hundred small questions, and each would cost thrice as much."""
    driver: Any = connection.connection.driver_connection
    return driver.cursor()


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _placeholders(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def all_rows(connection: Transaction) -> Iterator[ItemRow]:
    """All rows in order, for whoever compares two indexes."""
    yield from _select_rows(connection, "true order by id", ())
