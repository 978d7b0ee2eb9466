"""Past errors that fit changed files."""

from dataclasses import replace

import pytest

from sync.lessons.model import Lesson
from sync.lessons.review import ChangedFile, parse_diff, review
from tests.unit.lessons.lesson_tables import error_lesson

IMPORT = replace(
    error_lesson(
        1, "cannot import name 'Depends' from 'fastapi'", "延迟导入", error_type="ImportError", language="python"
    ),
    state="held",
    occurrences=3,
)
DIFF = """diff --git a/src/api/routes.py b/src/api/routes.py
--- a/src/api/routes.py
+++ b/src/api/routes.py
@@ -3,2 +3,3 @@ x
 import os
-from fastapi import Depends
+from fastapi import Query, Depends
+++ z
diff --git a/gone.py b/gone.py
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-from fastapi import Depends
"""


def located(location: str) -> Lesson:
    return replace(IMPORT, content={**IMPORT.content, "error": {"message": "x happened", "location": location}})


def test_a_diff_gives_the_added_lines_with_their_numbers() -> None:
    assert parse_diff(DIFF) == [
        ChangedFile("src/api/routes.py", {4: "from fastapi import Query, Depends", 5: "++ z"}),
    ]


def test_an_error_fits_the_changed_line_that_has_all_its_names() -> None:
    (found,) = review([IMPORT], parse_diff(DIFF))
    assert (found.path, found.line, found.reason) == ("src/api/routes.py", 4, "construct")


@pytest.mark.parametrize(
    "file",
    [
        ChangedFile("a.py", {1: "from fastapi import Query"}),
        ChangedFile("a.py", {1: "import fastapi", 2: "DependsOn = 1"}),
        ChangedFile("a.go", {1: "// from fastapi import Depends"}),
        ChangedFile("a.py"),
    ],
)
def test_other_names_and_other_languages_do_not_fit(file: ChangedFile) -> None:
    assert review([IMPORT], [file]) == []


@pytest.mark.parametrize(
    ("location", "path", "line"),
    [
        ("src/api/routes.py:15", "/home/u/p/src/api/routes.py", 15),
        ("src/api/routes.py:15-20", "src/api/routes.py", 15),
        ("routes.py", "routes.py", None),
    ],
)
def test_an_error_fits_the_file_that_it_names(location: str, path: str, line: int | None) -> None:
    (found,) = review([located(location)], [ChangedFile(path)])
    assert (found.line, found.reason) == (line, "file")


@pytest.mark.parametrize(("location", "path"), [("main.py:1", "x/main.py"), ("a/main.py", "b/main.py"), (":3", "a.py")])
def test_another_file_of_the_same_name_does_not_fit(location: str, path: str) -> None:
    assert review([located(location)], [ChangedFile(path)]) == []


def test_a_contradicted_or_held_back_lesson_is_not_shown_and_the_frequent_come_first() -> None:
    lessons = [replace(IMPORT, state=state) for state in ("contradicted", "held_back")]
    lessons += [replace(IMPORT, lesson_id="err-2", occurrences=1), IMPORT]
    found = review(lessons, parse_diff(DIFF))
    assert [one.lesson.occurrences for one in found] == [3, 1]
