"""The lesson for a tool call: only one that failed, and the one about the same names."""

from dataclasses import replace
from typing import Any

import pytest

from sync.lessons import store
from sync.lessons.matching import MAX_OF_KEY, MatchRequest
from tests.unit.lessons.lesson_tables import add, error_lesson, lesson_tables

MESSAGE = "ModuleNotFoundError: No module named 'requests'"
LESSON = error_lesson(1, MESSAGE, "pip install requests")
CALL = MatchRequest("Bash", {"command": "pytest"}, session_id="s")


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (replace(CALL, error=MESSAGE), "exact"),
        (replace(CALL, output=MESSAGE, exit_code=1), "exact"),
        (replace(CALL, output=MESSAGE, error="exit 1"), "exact"),
        (replace(CALL, output=MESSAGE), "none"),
        (replace(CALL, output=MESSAGE, exit_code=0), "none"),
        (replace(CALL, error=MESSAGE, exit_code=0), "none"),
        (replace(CALL, error=MESSAGE, exit_code=130), "interrupt"),
    ],
)
def test_words_in_the_output_of_a_call_that_succeeded_give_no_hint(call: MatchRequest, reason: str) -> None:
    with lesson_tables() as connection:
        add(connection, LESSON)
        assert store.match(connection, call).reason == reason


@pytest.mark.parametrize(
    ("projects", "reason"),
    [(("proj_a",), "none"), (("proj_b",), "similar"), (("proj_a", "proj_c"), "similar"), (("proj_global",), "similar")],
)
def test_a_similar_lesson_of_one_other_project_is_not_shown_and_a_global_one_is(
    projects: tuple[str, ...], reason: str
) -> None:
    message = "the worker could not reach the queue broker in time"
    call = replace(CALL, error=f"{message} again", project_id="proj_b")
    with lesson_tables() as connection:
        add(connection, replace(error_lesson(1, message, "start the broker"), project_ids=projects))
        assert store.match(connection, call).reason == reason


def test_of_many_lessons_about_one_error_the_one_about_the_same_name_is_found() -> None:
    with lesson_tables() as connection:
        for number in range(2 * MAX_OF_KEY):
            message = f"ModuleNotFoundError: No module named 'module{number}'"
            add(connection, error_lesson(number, message, f"pip install module{number}"))
        found = store.match(connection, replace(CALL, error="ModuleNotFoundError: No module named 'module3'"))
        assert found.lesson_id == "err-20260202-0003"
        assert store.match(connection, replace(CALL, error=MESSAGE)).lesson_id is None


def test_a_match_reads_no_whole_table(monkeypatch: pytest.MonkeyPatch) -> None:
    with lesson_tables() as connection:
        add(connection, LESSON)
        statements: list[tuple[str, tuple[object, ...]]] = []
        run = connection.exec_driver_sql

        def execute(sql: str, values: tuple[object, ...] = ()) -> Any:
            statements.append((sql, values))
            return run(sql, values)

        with monkeypatch.context() as patch:
            patch.setattr(connection, "exec_driver_sql", execute)
            for call in (
                CALL,
                replace(CALL, error=MESSAGE),
                replace(CALL, error="no one here can read this long text"),
            ):
                store.match(connection, call)
        assert len(statements) >= 4
        for sql, values in statements:
            plan = [str(row[3]) for row in run(f"explain query plan {sql}", values)]
            assert not [step for step in plan if step.startswith("SCAN") and "lesson_" in step], plan
