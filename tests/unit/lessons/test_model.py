"""The record of a new lesson."""

import pytest

from sync.lessons.model import ERROR, identity_of, lesson_state, new_record


@pytest.mark.parametrize(
    ("message", "location", "language"),
    [
        ("ImportError: cannot import name 'Depends'", "", "python"),
        ("error TS2304: Cannot find name 'x'", "", "typescript"),
        ("it failed", "src/main.go:3", "go"),
        ("it failed", "C:\\src\\a.py:3:1", "python"),
        ("TypeError: Cannot read properties of undefined (reading 'x')", "", "javascript"),
        ("java.lang.NullPointerException: at com.x", "", "java"),
        ("错误：连接被拒绝", "", "general"),
    ],
)
def test_an_error_that_names_no_language_has_the_one_it_shows(message: str, location: str, language: str) -> None:
    record = new_record(ERROR, {"error": {"message": message, "location": location}}, "2026-02-25T14:30:00Z")
    named = new_record(ERROR, {"language": language, "error": {"message": message}}, "2026-02-26T14:30:00Z")
    assert record["language"] == language
    assert identity_of(ERROR, record) == identity_of(ERROR, named)


@pytest.mark.parametrize(
    ("source", "sessions", "helped", "is_risky", "state"),
    [
        ("mined", 1, 0, False, "candidate"),
        ("mined", 2, 0, False, "held"),
        ("mined", 9, 0, True, "candidate"),
        ("mined", 1, 1, True, "held"),
        ("imported", 0, 0, False, "candidate"),
        ("imported", 1, 0, False, "held"),
        ("imported", 5, 0, True, "candidate"),
        ("imported", 0, 1, True, "held"),
        ("said", 0, 0, True, "held"),
    ],
)
def test_a_cure_is_held_after_a_second_session_and_a_risky_one_after_a_confirmation(
    source: str, sessions: int, helped: int, is_risky: bool, state: str
) -> None:
    now = lesson_state(source, shares_term=True, sessions=sessions, helped=helped, hurt=0, is_risky=is_risky)
    assert now == state
    assert lesson_state(source, shares_term=True, sessions=sessions, helped=0, hurt=1) == "contradicted"
