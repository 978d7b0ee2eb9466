"""Answers of lessons, and how they become JSON. A record has the fields of its JSON file."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

if TYPE_CHECKING:  # named only in annotations
    from sync.lessons.capture import CaptureResult
    from sync.lessons.matching import MatchedLesson
    from sync.lessons.model import Lesson
    from sync.lessons.review import ReviewFinding
    from sync.lessons.service import LearnResult


class LessonJson(TypedDict):
    """`record`: as in its JSON file. `projects`: where it was seen."""

    id: str
    kind: Literal["error", "pattern"]
    state: str
    source: str
    title: str
    occurrences: int
    helped: int
    hurt: int
    shown: int
    projects: list[str]
    isGlobal: bool
    record: dict[str, Any]


class LearnedJson(TypedDict):
    """`recorded`: false if the error was known and is counted once more."""

    recorded: bool
    lesson: LessonJson
    related: list[str]


class LessonProposalJson(TypedDict):
    """`record`: fields of the lesson; null if no call failed."""

    record: dict[str, Any] | None


class LessonsJson(TypedDict):
    lessons: list[LessonJson]


class HintJson(TypedDict):
    """`text`: one line of at most 480 bytes of UTF-8 with the cure itself."""

    id: str
    kind: str
    state: str
    text: str
    occurrences: int


class LessonMatchJson(TypedDict):
    """`reason`: exact, command, similar; or none, shown, interrupt."""

    lesson: HintJson | None
    reason: str


class LessonCaptureJson(TypedDict):
    failure: bool
    counted: list[str]
    mined: list[str]
    lesson: HintJson | None
    reason: str


class ReviewFindingJson(TypedDict):
    """A past error that fits a changed file. `line`: null if it fits the file as a whole."""

    lesson: LessonJson
    path: str
    line: int | None
    reason: Literal["file", "construct"]


class LessonReviewJson(TypedDict):
    """`files`: how many were looked at."""

    files: int
    findings: list[ReviewFindingJson]


class LessonCleanJson(TypedDict):
    """`removed`: false for a dry run."""

    lessons: list[LessonJson]
    removed: bool


class LessonImportJson(TypedDict):
    found: int
    recorded: int
    known: int
    renamed: int
    dryRun: bool
    refusals: list[str]


class LessonExportJson(TypedDict):
    """The records themselves, or the folder that has them now."""

    version: str
    errors: list[dict[str, Any]]
    patterns: list[dict[str, Any]]
    path: str | None


class LessonStatsJson(TypedDict):
    total: int
    errors: int
    patterns: int
    errorsByLanguage: dict[str, int]
    newInSevenDays: int
    topRepeated: list[LessonJson]
    states: dict[str, int]
    path: str


def lesson_to_json(lesson: "Lesson") -> LessonJson:
    return {
        "id": lesson.lesson_id,
        "kind": "pattern" if lesson.kind == "pattern" else "error",
        "state": lesson.state,
        "source": lesson.source,
        "title": lesson.title,
        "occurrences": lesson.occurrences,
        "helped": lesson.helped,
        "hurt": lesson.hurt,
        "shown": lesson.shown,
        "projects": list(lesson.project_ids),
        "isGlobal": lesson.is_global,
        "record": lesson.record(),
    }


def lessons_to_json(lessons: "Sequence[Lesson]") -> list[LessonJson]:
    return [lesson_to_json(lesson) for lesson in lessons]


def learned_to_json(result: "LearnResult") -> LearnedJson:
    return {"recorded": result.is_new, "lesson": lesson_to_json(result.lesson), "related": list(result.related)}


def review_to_json(files: int, findings: "Sequence[ReviewFinding]") -> LessonReviewJson:
    return {
        "files": files,
        "findings": [
            {
                "lesson": lesson_to_json(one.lesson),
                "path": one.path,
                "line": one.line,
                "reason": "file" if one.reason == "file" else "construct",
            }
            for one in findings
        ],
    }


def match_to_json(found: "MatchedLesson") -> LessonMatchJson:
    return {"lesson": _hint(found), "reason": found.reason}


def capture_to_json(result: "CaptureResult") -> LessonCaptureJson:
    return {
        "failure": result.is_failure,
        "counted": list(result.counted),
        "mined": list(result.mined),
        "lesson": _hint(result.match),
        "reason": result.match.reason,
    }


def line_to_json(lesson: "Lesson", text: str) -> HintJson:
    """A lesson with its line."""
    return {
        "id": lesson.lesson_id,
        "kind": lesson.kind,
        "state": lesson.state,
        "text": text,
        "occurrences": lesson.occurrences,
    }


def _hint(found: "MatchedLesson") -> HintJson | None:
    if found.lesson_id is None:
        return None
    return {
        "id": found.lesson_id,
        "kind": found.kind,
        "state": found.state,
        "text": found.text,
        "occurrences": found.occurrences,
    }
