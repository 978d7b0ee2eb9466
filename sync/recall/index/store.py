"""SQL of the index. Every function runs inside a transaction of the caller.

The projection creates the tables, so a new layout needs no migration and a SQLite without FTS5 lacks only recall.
The term index only says which items contain a term (`detail=none`, contentless); scores are computed by `ranking`.
Erased terms leave it when its segments are merged, in steps that let other writers in; a table notes unfinished merges.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from sync.clock import EPOCH
from sync.db.derived_tables import RECALL_TABLES, VECTOR_TABLES
from sync.db.engine import Transaction
from sync.log import erased_store
from sync.log.authorship import authorship
from sync.log.event_types import EXCHANGE_TEXT, TEXT_SUFFIX
from sync.recall.index import vector_store
from sync.recall.index.extraction import DAILY_RECORD, ITEMS_PER_EVENT, is_turn, item_origin, item_part
from sync.recall.index.integrity import drop_term_index
from sync.recall.index.item_filter import ItemFilter, project_term
from sync.recall.model import StoredItem
from sync.recall.text.tokenizer import index_terms

_UNMERGED_TABLE: Final = "recall_unmerged"
_TABLE_NAMES: Final = ("recall_items", "recall_totals", _UNMERGED_TABLE)
_COLUMNS: Final = "id, born, said, entry_id, kind, project_id, ts_ms, importance, marks, text"
_INSERT_ITEM: Final = f"insert into recall_items ({_COLUMNS}, length) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_TERMS: Final = "insert into recall_words (rowid, words) values (?, ?)"
_DELETE_TERMS: Final = "insert into recall_words (recall_words, rowid, words) values ('delete', ?, ?)"
_MERGE_TERMS: Final = "insert into recall_words (recall_words, rank) values ('merge', ?)"
MERGE_PAGES: Final = 64  # of the term index, written in one step
_MIN_CHANGES_OF_A_MERGE: Final = 2  # SQLite's count is lower if there was nothing to merge
_UPDATE_TOTALS: Final = "update recall_totals set items = items + ?, length = length + ?"
_WITH_EVENT: Final = f"""
    select i.id, i.entry_id, i.kind, i.text, i.importance, i.marks, i.project_id, i.ts_ms,
      e.event_id, e.ts, e.utc_offset, e.project_path, e.session_id, e.device_id, e.origin,
      e.type, e.extra
    from recall_items i join events e on e.position = i.said / {ITEMS_PER_EVENT} where i.id in """

_ITEM_HEAD: Final = "select id, kind, substr(text, 1, 40) from recall_items where id in "
_ADJACENT_ITEMS: Final = """
    select i.id, (select max(id) from recall_items where id < i.id), (select min(id) from recall_items where id > i.id)
    from recall_items i where i.id in """
_TURN_SESSION: Final = f"""
    select i.id, i.kind, substr(i.text, 1, 40), e.session_id, e.device_id
    from recall_items i join events e on e.position = i.id / {ITEMS_PER_EVENT} where i.id in """


class ItemRow(NamedTuple):
    """A row of `recall_items`, in the order of `_COLUMNS`.

    `first_id`: the entry's first item; `text_id`: the item with its current text; `marks`: words, joined by spaces.
    """

    item_id: int
    first_id: int
    text_id: int
    entry_id: str | None
    kind: str
    project_id: str
    ts_ms: int
    importance: float
    marks: str
    text: str

    def terms(self) -> list[str]:
        """All terms of the text and the marks, with repetitions."""
        return index_terms(f"{self.text} {self.marks}")


def recreate_tables(connection: Transaction) -> None:
    """Drop the tables and create empty ones."""
    drop_term_index(connection)
    for name in (*_TABLE_NAMES, *vector_store.TABLE_NAMES):
        connection.exec_driver_sql(f"drop table if exists {name}")
    for statement in (*RECALL_TABLES, *VECTOR_TABLES):
        connection.exec_driver_sql(statement)


def is_created(connection: Transaction) -> bool:
    return connection.exec_driver_sql("select 1 from sqlite_master where name = 'recall_totals'").first() is not None


def insert(connection: Transaction, rows: Sequence[ItemRow]) -> None:
    """Add new rows with their terms."""
    if not rows:
        return
    terms = [row.terms() for row in rows]
    values = [(*row, len(of_row)) for row, of_row in zip(rows, terms, strict=True)]
    connection.exec_driver_sql(_INSERT_ITEM, values)
    indexed = [(row.item_id, _indexed_words(row, of_row)) for row, of_row in zip(rows, terms, strict=True)]
    connection.exec_driver_sql(_INSERT_TERMS, indexed)
    connection.exec_driver_sql(_UPDATE_TOTALS, (len(rows), sum(map(len, terms))))


def delete(connection: Transaction, rows: Sequence[ItemRow]) -> None:
    """Delete rows with their terms and vectors."""
    vector_store.remove_vectors(connection, [row.item_id for row in rows])
    for row in rows:
        terms = row.terms()
        connection.exec_driver_sql(_DELETE_TERMS, (row.item_id, _indexed_words(row, terms)))
        connection.exec_driver_sql("delete from recall_items where id = ?", (row.item_id,))
        connection.exec_driver_sql(_UPDATE_TOTALS, (-1, -len(terms)))


def mark_unmerged(connection: Transaction) -> None:
    """Note that the term index may contain erased terms until it is merged."""
    connection.exec_driver_sql(f"create table if not exists {_UNMERGED_TABLE} (one)")


def is_unmerged(connection: Transaction) -> bool:
    return (
        connection.exec_driver_sql("select 1 from sqlite_master where name = ?", (_UNMERGED_TABLE,)).first() is not None
    )


def merge_step(connection: Transaction, *, is_first_step: bool) -> bool:
    """Merge a part of the term index; whether there may be more to merge.

    After the last step no term is left that was erased before the first, if nothing was indexed meanwhile.
    """
    driver: Any = connection.connection.driver_connection
    before = driver.total_changes
    connection.exec_driver_sql(_MERGE_TERMS, (-MERGE_PAGES if is_first_step else MERGE_PAGES,))
    return bool(driver.total_changes - before >= _MIN_CHANGES_OF_A_MERGE)


def mark_merged(connection: Transaction) -> None:
    """Note that no erased term is left."""
    connection.exec_driver_sql(f"drop table if exists {_UNMERGED_TABLE}")


def by_entries(connection: Transaction, entry_ids: Sequence[str]) -> list[ItemRow]:
    return _select_rows(connection, f"entry_id in ({_placeholders(entry_ids)})", entry_ids)


def by_ids(connection: Transaction, item_ids: Sequence[int]) -> list[ItemRow]:
    return _select_rows(connection, f"id in ({_placeholders(item_ids)})", item_ids)


def by_positions(connection: Transaction, positions: Sequence[int]) -> list[ItemRow]:
    """The items of the events at these positions, and later items of the same entries."""
    ids = [position * ITEMS_PER_EVENT + slot for position in positions for slot in range(ITEMS_PER_EVENT)]
    marks = _placeholders(ids)
    return _select_rows(connection, f"id in ({marks}) or (born <> id and born in ({marks}))", ids * 2)


def item_totals(connection: Transaction) -> tuple[int, float]:
    """The number of items, and their average number of terms."""
    items, length = connection.exec_driver_sql("select items, length from recall_totals").one()
    return int(items), (length / items if items else 0.0)


def positions_of(connection: Transaction, event_ids: Sequence[str]) -> dict[str, int]:
    """The positions of events, without unknown ones."""
    rows = connection.exec_driver_sql(
        f"select event_id, position from events where event_id in ({_placeholders(event_ids)})", tuple(event_ids)
    )
    return {row.event_id: row.position for row in rows}


def count_items_with_term(connection: Transaction, term: str, limit: int) -> int:
    """The number of items with a term; above `limit` an estimate from the density of the first ones."""
    count, first, last = (
        _cursor(connection)
        .execute(
            "select count(*), min(rowid), max(rowid) from"
            " (select rowid from recall_words where recall_words match ? limit ?)",
            (ItemFilter().match([term]), limit),
        )
        .fetchone()
    )
    if count < limit:
        return int(count)
    newest = int(connection.exec_driver_sql("select max(id) from recall_items").scalar_one())
    return int(max(count, count * (newest - first + 1) / (last - first + 1)))


def with_id_bounds(connection: Transaction, item_filter: ItemFilter) -> ItemFilter | None:
    """A filter with the bounds of its time's ids, so that a search for a day does not read all years; None if empty."""
    if item_filter.since_ms is None and item_filter.until_ms is None:
        return item_filter
    where, parameters = ItemFilter(since_ms=item_filter.since_ms, until_ms=item_filter.until_ms).where()
    statement = f"select min(i.id), max(i.id) from recall_items i where true{where}"
    first, last = connection.exec_driver_sql(statement, tuple(parameters)).one()
    return None if first is None else replace(item_filter, id_bounds=(first, last))


def items_with_terms(
    connection: Transaction, terms: Sequence[Collection[str]], item_filter: ItemFilter, limit: int
) -> list[int]:
    """The newest items with a term of each group, passed as one JSON value because thousands of rows would be slow.

    Hidden items are among them.
    """
    where, parameters = item_filter.of_rows.where()
    joined = " cross join recall_items i on i.id = w.rowid" if where else ""
    if item_filter.id_bounds is not None:
        where, parameters = f" and w.rowid between ? and ?{where}", [*item_filter.id_bounds, *parameters]
    found = f"select w.rowid as id from recall_words w{joined} where w.recall_words match ?{where}"
    return _ids(connection, f"{found} order by w.rowid desc limit ?", (item_filter.match(*terms), *parameters, limit))


def matching_among(connection: Transaction, item_ids: Collection[int], item_filter: ItemFilter) -> Collection[int]:
    """Those of these items that match a filter."""
    where, parameters = item_filter.where()
    if not where or not item_ids:
        return item_ids
    statement = f"select i.id from recall_items i where i.id in (select value from json_each(?)){where}"
    return frozenset(_ids(connection, statement, (json.dumps(list(item_ids)), *parameters)))


def term_counts(connection: Transaction, item_ids: Sequence[int]) -> dict[int, int]:
    """The number of terms of each item."""
    return dict(
        _cursor(connection).execute(
            f"select id, length from recall_items where id in ({_placeholders(item_ids)})", tuple(item_ids)
        )
    )


def matching_item_ids(connection: Transaction, item_filter: ItemFilter) -> list[int] | None:
    """The items that match a filter, hidden ones included; None for all."""
    where, parameters = item_filter.of_rows.where()
    of_projects = "select rowid as id from recall_words where recall_words match ?"
    projects = [item_filter.match()] if item_filter.project_ids else []
    if not where:
        return _ids(connection, of_projects, projects) if projects else None
    inside = f" and i.id in ({of_projects})" if projects else ""
    return _ids(connection, f"select i.id from recall_items i where true{where}{inside}", (*parameters, *projects))


def latest_items(connection: Transaction, item_filter: ItemFilter, limit: int) -> list[int]:
    """The newest items that match a filter."""
    where, parameters = item_filter.where()
    statement = f"select i.id from recall_items i where true{where} order by i.ts_ms desc, i.id desc limit ?"
    return list(connection.exec_driver_sql(statement, (*parameters, limit)).scalars())


def items_of_events(connection: Transaction, event_ids: Sequence[str], item_filter: ItemFilter) -> list[int]:
    """The items of these events that match a filter, in the events' order."""
    positions = positions_of(connection, event_ids)
    rows = by_positions(connection, list(positions.values()))
    of_position: dict[int, list[int]] = {}
    for row in rows:
        of_position.setdefault(row.first_id // ITEMS_PER_EVENT, []).append(row.item_id)
    found = [item_id for event_id in event_ids for item_id in of_position.get(positions.get(event_id, -1), ())]
    where, parameters = item_filter.where()
    if not found or not where:
        return found
    statement = f"select i.id from recall_items i where i.id in ({_placeholders(found)}){where}"
    allowed = set(connection.exec_driver_sql(statement, (*found, *parameters)).scalars())
    return [item_id for item_id in found if item_id in allowed]


def best_items(connection: Transaction, item_filter: ItemFilter, limit: int) -> list[int]:
    """The items that match a filter: daily records first, then by importance, then the newest."""
    where, parameters = item_filter.where()
    order = f"order by i.kind = '{DAILY_RECORD}' desc, i.importance desc, i.ts_ms desc, i.id desc limit ?"
    statement = f"select i.id from recall_items i where true{where} {order}"
    return list(connection.exec_driver_sql(statement, (*parameters, limit)).scalars())


def load_items(connection: Transaction, item_ids: Sequence[int]) -> list[StoredItem]:
    """Items with the fields of their events, in the given order, without those that wait to be forgotten."""
    item_ids = _shown(connection, item_ids)
    rows = _cursor(connection).execute(_WITH_EVENT + f"({_placeholders(item_ids)})", tuple(item_ids))
    items = {row[0]: _stored_item(row) for row in rows}
    return [items[item_id] for item_id in item_ids if item_id in items]


def neighbouring_turns(connection: Transaction, item_ids: Sequence[int]) -> dict[int, tuple[int, ...]]:
    """The turns before and after each of these turns in the same conversation, without items that are no turns."""
    cursor = _cursor(connection)
    heads = cursor.execute(_ITEM_HEAD + f"({_placeholders(item_ids)})", tuple(item_ids))
    turns = [item_id for item_id, kind, head in heads if is_turn(kind, head)]
    if not turns:
        return {}
    beside = {item_id: near for item_id, *near in cursor.execute(_ADJACENT_ITEMS + f"({_placeholders(turns)})", turns)}
    every = list({*turns, *(at for near in beside.values() for at in near if at is not None)})
    rows = cursor.execute(_TURN_SESSION + f"({_placeholders(every)})", every)
    sessions = {at: (session, device) for at, kind, head, session, device in rows if is_turn(kind, head)}
    return {
        item_id: tuple(at for at in near if at in sessions and sessions[at] == sessions[item_id])
        for item_id, near in beside.items()
    }


def item_texts(connection: Transaction, item_ids: Sequence[int]) -> dict[int, str]:
    """The texts of these items, without those that wait to be forgotten."""
    item_ids = _shown(connection, item_ids)
    rows = connection.exec_driver_sql(
        f"select id, text from recall_items where id in ({_placeholders(item_ids)})", tuple(item_ids)
    )
    return {row.id: row.text for row in rows}


def _shown(connection: Transaction, item_ids: Sequence[int]) -> Sequence[int]:
    """These items without those whose events wait to be forgotten."""
    held_ids = erased_store.held_ids(connection)
    hidden = frozenset(positions_of(connection, tuple(held_ids)).values()) if held_ids else frozenset[int]()
    return [item_id for item_id in item_ids if item_id // ITEMS_PER_EVENT not in hidden] if hidden else item_ids


def _select_rows(connection: Transaction, where: str, values: Iterable[Any]) -> list[ItemRow]:
    rows = connection.exec_driver_sql(f"select {_COLUMNS} from recall_items where {where}", tuple(values))
    return [ItemRow(*row) for row in rows]


def _stored_item(row: Sequence[Any]) -> StoredItem:
    """A row of `_WITH_EVENT`."""
    item_id, entry_id, kind, text, importance, marks, project_id, ts_ms, event_id, ts, utc_offset, *of_event = row
    project_path, session_id, device_id, origin, event_type, extra = of_event
    envelope = msgspec.json.decode(extra)
    return StoredItem(
        item_id=item_id,
        event_id=event_id.removesuffix(TEXT_SUFFIX) if event_type == EXCHANGE_TEXT else event_id,
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
        written=authorship(event_type, origin, device_id, envelope, part=item_part(item_id, kind)),
        importance=importance,
        marks=tuple(marks.split()),
    )


def _local_date(ts_ms: int, utc_offset: int) -> str:
    try:
        return (EPOCH + timedelta(milliseconds=ts_ms, minutes=utc_offset)).date().isoformat()
    except OverflowError:  # written by another program
        return datetime(1970, 1, 1, tzinfo=UTC).date().isoformat()


def _ids(connection: Transaction, statement: str, parameters: Sequence[Any]) -> list[int]:
    """The ids that a statement selects. As one JSON value, they cost a tenth of as many rows."""
    (ids_json,) = _cursor(connection).execute(f"select json_group_array(id) from ({statement})", parameters).fetchone()
    ids: list[int] = json.loads(ids_json)
    return ids


def _indexed_words(row: ItemRow, terms: Iterable[str]) -> str:
    """What the term index holds of an item: each of its terms once, and the one of its project."""
    return " ".join((*dict.fromkeys(terms), project_term(row.project_id)))


def _cursor(connection: Transaction) -> Any:
    """The driver's own cursor. A search runs a hundred small statements; SQLAlchemy's would be three times as slow."""
    driver: Any = connection.connection.driver_connection
    return driver.cursor()


def _placeholders(values: Sequence[Any]) -> str:
    return ", ".join("?" * len(values))


def all_rows(connection: Transaction) -> Iterator[ItemRow]:
    """All rows in order, to compare two indexes."""
    yield from _select_rows(connection, "true order by id", ())
