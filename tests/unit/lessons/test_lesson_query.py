"""Which lessons a search finds, and in which order."""

from typing import Any

import pytest

from sync.lessons.lesson_query import LessonQuery, find_duplicates, select_lessons
from sync.lessons.model import Lesson


def lesson(number: int, message: str, cure: str = "", *, state: str = "held", **content: Any) -> Lesson:
    record = {"error": {"message": message}, "solution": {"description": cure}, "tags": [], **content}
    at = f"2026-02-{number:02}T00:00:00Z"
    return Lesson(f"err-{number}", "error", state, "said", 1, 0, 0, 0, at, at, ("proj_a",), record)


CURE = lesson(1, "cannot import", "循环导入问题，使用延迟导入解决", language="python")
TITLE = lesson(2, "循环导入", "重构模块", tags=["fastapi"], language="Python")
OTHER = lesson(3, "连接超时", "重启服务")
HIDDEN = lesson(4, "循环导入", state="held_back")
LESSONS = (CURE, TITLE, OTHER, HIDDEN)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("", [OTHER, TITLE, CURE]),  # the newest first
        ("循环导入", [TITLE, CURE]),  # in the title before in the cure
        ("import 延迟", [CURE]),
        ("循环导入要解决", [CURE, TITLE]),  # no lesson has it as a whole: the one with more of it first
        ("量子计算", []),
        ("！", []),
    ],
)
def test_all_words_are_looked_for_and_the_best_match_is_first(words: str, found: list[Lesson]) -> None:
    assert select_lessons(LESSONS, LessonQuery(words)) == found


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (LessonQuery(tag="FastAPI"), [TITLE]),
        (LessonQuery(fields={"language": "python"}), [TITLE, CURE]),
        (LessonQuery(fields={"language": "go"}), []),
        (LessonQuery(kind="pattern"), []),
        (LessonQuery(state="held_back"), [HIDDEN]),
    ],
)
def test_values_are_compared_without_case(wanted: LessonQuery, found: list[Lesson]) -> None:
    assert select_lessons(LESSONS, wanted) == found


def test_of_equal_lessons_the_one_that_is_held_stays() -> None:
    candidate = lesson(5, "连接超时", "重启服务", state="candidate")
    assert find_duplicates([candidate, OTHER]) == ([candidate], {OTHER.lesson_id: [candidate]})
