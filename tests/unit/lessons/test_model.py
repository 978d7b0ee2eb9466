"""The record of a new lesson."""

import pytest

from sync.lessons.model import ERROR, identity_of, new_record


@pytest.mark.parametrize(
    ("message", "location", "language"),
    [
        ("ImportError: cannot import name 'Depends'", "", "python"),
        ("error TS2304: Cannot find name 'x'", "", "typescript"),
        ("it failed", "src/main.go:3", "go"),
        ("it failed", "C:\\src\\a.py:3:1", "python"),
        ("错误：连接被拒绝", "", "general"),
    ],
)
def test_an_error_that_names_no_language_has_the_one_it_shows(message: str, location: str, language: str) -> None:
    record = new_record(ERROR, {"error": {"message": message, "location": location}}, "2026-02-25T14:30:00Z")
    named = new_record(ERROR, {"language": language, "error": {"message": message}}, "2026-02-26T14:30:00Z")
    assert record["language"] == language
    assert identity_of(ERROR, record) == identity_of(ERROR, named)
