"""SQL of the lessons' tables. Every function runs inside a transaction of the caller.

The projection creates the tables, so a new layout needs no migration and a salvaged database gets them again.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

from sync.db.derived_tables import LESSON_INDEXES, LESSON_TABLES
from sync.db.engine import Transaction
from sync.db.row_checks import has_valid_rows
from sync.errors import StorageCorrupt
from sync.lessons import matching
from sync.lessons.commands import command_key, is_risky
from sync.lessons.error_text import match_keys, named_key
from sync.lessons.matching import MatchedLesson, MatchRequest, find_match, terms_of, texts_of_cure
from sync.lessons.mining import LessonCall
from sync.lessons.model import ERROR, Lesson, identity_of, lesson_state, text_field
from sync.log import store as log_store
from sync.log.projections.registry import LESSON_FILES

_ITEM: Final = (
    "lesson_id, kind, state, source, occurrences, helped, hurt, shown, created_at, last_at, project_ids, content"
)
_CALL: Final = "position, session_id, project_id, tool, command, file_path, error_key, error_type, message, language"
_ITEM_TYPES: Final = (*4 * (str,), *4 * (int,), *4 * (str,))
_BAD_JSON: Final = """select 1 from lesson_items where
  case when json_valid(content) then json_type(content) end is not 'object'
  or case when json_valid(sessions) then json_type(sessions) end is not 'array'
  or case when json_valid(project_ids) then json_type(project_ids) end is not 'array'
  or exists (select 1 from json_each(project_ids) where type <> 'text')"""
MAX_ROWS_KEPT: Final = 20_000  # of the calls and of the shown hints: some months of work
_CALLS_KEPT: Final = 32  # of a session that mining reads
_FAILED_CALLS_READ: Final = 1_000  # newest failed calls that name their lessons


def is_created(connection: Transaction) -> bool:
    return connection.exec_driver_sql("select 1 from sqlite_master where name = 'lesson_calls'").first() is not None


def is_intact(connection: Transaction) -> bool:
    """Whether every row of the tables can be understood."""
    return has_valid_rows(connection, LESSON_TABLES) and connection.exec_driver_sql(_BAD_JSON).first() is None


def recreate_tables(connection: Transaction) -> None:
    """Drop the tables and create empty ones."""
    for name in LESSON_TABLES:
        connection.exec_driver_sql(f"drop table if exists {name}")
    for statement in (*LESSON_TABLES.values(), *LESSON_INDEXES):
        connection.exec_driver_sql(statement)


def insert_lesson(
    connection: Transaction, lesson: Lesson, *, shares_term: bool, sessions: Sequence[str], is_removed: bool = False
) -> None:
    """Add a lesson, or replace the one of its id."""
    state = lesson_state(lesson.source, shares_term=shares_term, sessions=len(sessions), helped=lesson.helped,
                         hurt=lesson.hurt, is_risky=is_risky(texts_of_cure(lesson.content)))  # fmt: skip
    identity, text = identity_of(lesson.kind, lesson.content), json.dumps(lesson.content, ensure_ascii=False)
    values = (
        lesson.lesson_id, lesson.kind, identity, lesson.source, state, int(shares_term), json.dumps(list(sessions)),
        json.dumps(list(lesson.project_ids)), lesson.occurrences, lesson.helped, lesson.hurt, lesson.shown,
        lesson.created_at, lesson.last_at, int(is_removed), text,
    )  # fmt: skip
    places = ", ".join("?" * len(values))
    connection.exec_driver_sql(f"insert or replace into lesson_items values ({places})", values)  # noqa: S608 - places
    for table in ("lesson_keys", "lesson_terms"):
        connection.exec_driver_sql(f"delete from {table} where lesson_id = ?", (lesson.lesson_id,))  # noqa: S608 - names of ours
    error = lesson.content.get("error")
    if lesson.kind != ERROR or not isinstance(error, dict) or is_removed:
        return
    message = text_field(error, "message")
    found = (*match_keys(text_field(error, "type"), message), named_key(text_field(error, "type"), message))
    keys = [(key, lesson.lesson_id) for key in found if key is not None]
    terms = [(term, lesson.lesson_id) for term in terms_of(message)]
    for table, rows in (("lesson_keys", keys), ("lesson_terms", terms)):
        if rows:
            connection.exec_driver_sql(f"insert or ignore into {table} values (?, ?)", rows)  # noqa: S608 - names of ours


def find_lesson(connection: Transaction, lesson_id: str) -> Lesson | None:
    """The lesson with an id, unless it was removed."""
    query = f"select {_ITEM} from lesson_items where lesson_id = ? and removed = 0"  # noqa: S608 - names of ours
    row = connection.exec_driver_sql(query, (lesson_id,)).first()
    return None if row is None else _lesson(row)


def find_evidence(connection: Transaction, lesson_id: str) -> tuple[bool, list[str]]:
    """Whether the cure shares a word with the error, and the sessions that speak for it."""
    query = "select shares_term, sessions from lesson_items where lesson_id = ?"
    row = connection.exec_driver_sql(query, (lesson_id,)).first()
    return (False, []) if row is None else (bool(row[0]), json.loads(row[1]))


def by_identity(connection: Transaction, identity: str) -> list[Lesson]:
    """The lessons of an identity, the stated ones first."""
    query = (
        f"select {_ITEM} from lesson_items where identity = ? and removed = 0"  # noqa: S608 - names of ours
        " order by source = 'mined', created_at, lesson_id"
    )
    return [_lesson(row) for row in connection.exec_driver_sql(query, (identity,))] if identity else []


def by_keys(connection: Transaction, keys: Sequence[str]) -> list[Lesson]:
    """The lessons about any of these errors, in any state."""
    if not keys:
        return []
    query = (
        f"select {_ITEM} from lesson_items where removed = 0 and lesson_id in"  # noqa: S608 - names of ours
        f" (select lesson_id from lesson_keys where key in ({', '.join('?' * len(keys))}))"
        " order by created_at, lesson_id"
    )
    return [_lesson(row) for row in connection.exec_driver_sql(query, tuple(keys))]


def all_lessons(connection: Transaction) -> list[Lesson]:
    """Every lesson, oldest first."""
    query = f"select {_ITEM} from lesson_items where removed = 0 order by created_at, lesson_id"  # noqa: S608 - names of ours
    return [_lesson(row) for row in connection.exec_driver_sql(query)]


def newest_change(connection: Transaction) -> int:
    """The newest position of the log that may change what the files show."""
    return log_store.newest_position_of_types(connection, LESSON_FILES.event_types)


def next_id(connection: Transaction, prefix: str) -> str:
    """The next id of a day: `err-20260225-` becomes `err-20260225-001`. Ids of removed lessons are not given again."""
    query = "select lesson_id from lesson_items where lesson_id >= ? and lesson_id < ?"
    taken = connection.exec_driver_sql(query, (prefix, f"{prefix}~")).scalars()
    numbers = [int(rest) for name in taken if (rest := str(name).removeprefix(prefix)).isdecimal()]
    return f"{prefix}{max(numbers, default=0) + 1:03}"


def note_feedback(connection: Transaction, event_id: str, instinct_id: str, lesson_id: str) -> None:
    """Keep which event of feedback a correction was made of."""
    values = (event_id, instinct_id, lesson_id)
    connection.exec_driver_sql("insert or replace into lesson_feedback values (?, ?, ?)", values)


def correction_of_instinct(connection: Transaction, instinct_id: str) -> Lesson | None:
    """The lesson of a correction, unless it was removed."""
    query = "select lesson_id from lesson_feedback where instinct_id = ? limit 1"
    lesson_id = connection.exec_driver_sql(query, (instinct_id,)).scalar()
    return None if lesson_id is None else find_lesson(connection, str(lesson_id))


def corrections(connection: Transaction) -> dict[str, Lesson]:
    """The lessons of corrections by the id of their instinct."""
    rows = connection.exec_driver_sql("select distinct instinct_id, lesson_id from lesson_feedback").fetchall()
    found = ((str(row[0]), find_lesson(connection, str(row[1]))) for row in rows)
    return {instinct_id: lesson for instinct_id, lesson in found if lesson is not None}


def feedback_of(connection: Transaction, lesson_id: str) -> list[str]:
    """The events of feedback that a correction was made of."""
    query = "select event_id from lesson_feedback where lesson_id = ? order by event_id"
    return [str(name) for name in connection.exec_driver_sql(query, (lesson_id,)).scalars()]


def drop_feedback(connection: Transaction, lesson_id: str) -> None:
    connection.exec_driver_sql("delete from lesson_feedback where lesson_id = ?", (lesson_id,))


def note_shown(connection: Transaction, session_id: str, lesson_id: str, position: int) -> None:
    values = (session_id, lesson_id, position)
    connection.exec_driver_sql("insert or ignore into lesson_shown values (?, ?, ?)", values)


def trim_tables(connection: Transaction) -> None:
    """Keep the newest calls, and the newest hints."""
    for table in ("lesson_calls", "lesson_shown"):
        connection.exec_driver_sql(
            f"delete from {table} where position <="  # noqa: S608 - names of ours
            f" (select position from {table} order by position desc limit 1 offset {MAX_ROWS_KEPT})"
        )


def insert_call(connection: Transaction, call: LessonCall) -> None:
    values = (
        call.position, call.session_id, call.project_id, call.tool, call.command, command_key(call.command),
        call.file_path, call.error_key, call.error_type, call.message, call.language,
    )  # fmt: skip
    connection.exec_driver_sql("insert or replace into lesson_calls values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", values)


def calls_of_session(connection: Transaction, session_id: str) -> list[LessonCall]:
    """The last calls of a session, oldest first."""
    query = f"select {_CALL} from lesson_calls where session_id = ? order by position desc limit {_CALLS_KEPT}"  # noqa: S608
    return [LessonCall(*row) for row in connection.exec_driver_sql(query, (session_id,))][::-1]


def sessions_with_error(connection: Transaction, error_key: str) -> list[str]:
    """The last sessions in which an error occurred, newest first."""
    query = (
        "select session_id from lesson_calls where error_key = ?"
        " group by session_id order by max(position) desc limit 5"
    )
    return [str(name) for name in connection.exec_driver_sql(query, (error_key,)).scalars()]


def occurrences_of(connection: Transaction, keys: Sequence[str]) -> int:
    """How often an error was captured."""
    if not keys:
        return 0
    query = f"select count(*) from lesson_calls where error_key in ({', '.join('?' * len(keys))})"  # noqa: S608
    return int(connection.exec_driver_sql(query, tuple(keys)).scalar_one())


def newest_failure(connection: Transaction) -> LessonCall | None:
    query = f"select {_CALL} from lesson_calls where error_key is not null order by position desc limit 1"  # noqa: S608
    row = connection.exec_driver_sql(query).first()
    return None if row is None else LessonCall(*row)


def lessons_of_failed_calls(connection: Transaction) -> list[tuple[LessonCall, Lesson]]:
    """The newest failed calls, each with a lesson about its error that is active."""
    call, item = (
        ", ".join(f"{table}.{name}" for name in names.split(", ")) for table, names in (("c", _CALL), ("i", _ITEM))
    )
    query = (
        f"select {call}, {item} from (select * from lesson_calls where error_key is not null"  # noqa: S608
        f" order by position desc limit {_FAILED_CALLS_READ}) c join lesson_keys k on k.key = c.error_key"
        " join lesson_items i on i.lesson_id = k.lesson_id"
        " where i.removed = 0 and i.state = 'held' order by c.position desc, i.lesson_id"
    )
    width = _CALL.count(",") + 1
    rows = connection.exec_driver_sql(query)
    return [(LessonCall(*row[:width]), _lesson(row[width:])) for row in rows]


def match(connection: Transaction, request: MatchRequest) -> MatchedLesson:
    """The lesson for a tool call."""
    return find_match(_execute_with(connection), request)


def is_near_error(connection: Transaction, request: MatchRequest) -> bool:
    """Whether a call that succeeded may show a cure."""
    return matching.is_near_error(_execute_with(connection), request)


def _execute_with(connection: Transaction) -> matching.Execute:
    return lambda sql, values: connection.exec_driver_sql(sql, tuple(values)).fetchall()


def _lesson(row: Any) -> Lesson:
    """The lesson of a row. Raises StorageCorrupt, and what JSON raises: the tables are then built again."""
    if not all(map(isinstance, row, _ITEM_TYPES)):
        raise StorageCorrupt("a row of the lessons cannot be understood")
    names = _ITEM.replace(" ", "").split(",")[:-2]
    fields = dict(zip(names, row[: len(names)], strict=True))
    return Lesson(**fields, project_ids=tuple(json.loads(row[10])), content=json.loads(row[11]))
