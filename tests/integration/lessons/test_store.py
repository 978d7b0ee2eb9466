"""The tables of the lessons stay bounded."""

import pytest

from sync.lessons import store
from sync.lessons.mining import LessonCall
from tests.unit.lessons.lesson_tables import lesson_tables


def test_the_oldest_calls_and_shown_hints_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_ROWS_KEPT", 10)
    with lesson_tables() as connection:
        for number in range(25):
            store.insert_call(connection, LessonCall(number, "s", "p", "Bash", f"make {number}", "", f"key{number}"))
            store.note_shown(connection, f"s{number}", "err-1", number)
            store.trim_tables(connection)
        assert [call.position for call in store.calls_of_session(connection, "s")] == list(range(15, 25))
        rows = connection.exec_driver_sql("select session_id from lesson_shown order by position").scalars()
        assert list(rows) == [f"s{number}" for number in range(15, 25)]
