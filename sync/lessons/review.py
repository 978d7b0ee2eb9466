"""Past errors that fit changed files: by the file that a lesson names, or by the names in its error. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sync.lessons.commands import GENERAL, language_of
from sync.lessons.error_text import quoted_names
from sync.lessons.model import ERROR, Lesson, file_of, text_field

MAX_FINDINGS: Final = 20
MIN_NAME: Final = 4  # characters of a name that alone shows the construct of an error
_HUNK: Final = re.compile(r"^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_LOCATION: Final = re.compile(r"^(.*?)(?::(\d+)(?:[-:]\d+)*)?$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChangedFile:
    """A file with the text of its changed lines by their numbers."""

    path: str
    lines: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReviewFinding:
    """A past error that fits a changed file. `reason`: `file` or `construct`; `line` is None for a whole file."""

    lesson: Lesson
    path: str
    line: int | None
    reason: str


def file_lines(text: str) -> dict[int, str]:
    """All lines of a file as changed lines."""
    return dict(enumerate(text.splitlines(), start=1))


def parse_diff(diff: str) -> list[ChangedFile]:
    """The files of a unified diff with their added lines; a deleted file is not among them."""
    files: list[tuple[str, dict[int, str]]] = []
    old_left = new_left = number = 0
    for line in diff.splitlines():
        if old_left > 0 or new_left > 0:
            mark = line[:1]
            if mark == "+" and files:
                files[-1][1][number] = line[1:]
            is_new, is_old = mark not in {"-", "\\"}, mark not in {"+", "\\"}
            number, new_left, old_left = number + is_new, new_left - is_new, old_left - is_old
        elif line.startswith("+++ "):
            files.append((line[4:].partition("\t")[0].strip().removeprefix("b/"), {}))
        elif hunk := _HUNK.match(line):
            old_left, number, new_left = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
    return [ChangedFile(path, lines) for path, lines in files if path != "/dev/null"]


def review(lessons: Sequence[Lesson], files: Sequence[ChangedFile]) -> list[ReviewFinding]:
    """The past errors that fit the files, the most frequent first; each once a file."""
    errors = [lesson for lesson in lessons if lesson.kind == ERROR and lesson.state in {"candidate", "held"}]
    found = [one for file in files for lesson in errors if (one := _finding(lesson, file)) is not None]
    found.sort(key=lambda one: (-one.lesson.occurrences, one.lesson.lesson_id, one.path))
    return found[:MAX_FINDINGS]


def _finding(lesson: Lesson, file: ChangedFile) -> ReviewFinding | None:
    construct = _construct_line(lesson, file)
    if construct is not None:
        return ReviewFinding(lesson, file.path, construct, "construct")
    for location in _locations(lesson.content):
        match = _LOCATION.match(location)
        if match is not None and _is_same_file(match[1], file.path):
            return ReviewFinding(lesson, file.path, int(match[2]) if match[2] else None, "file")
    return None


def _construct_line(lesson: Lesson, file: ChangedFile) -> int | None:
    """The first changed line that has every name that the error quotes, in a file of its language."""
    error = lesson.content.get("error")
    names = quoted_names(text_field(error, "message")) if isinstance(error, Mapping) else frozenset()
    if not names or (len(names) == 1 and len(min(names)) < MIN_NAME):
        return None
    language = language_of(file_path=file.path)
    if file_of(ERROR, {"language": language}) not in {file_of(ERROR, lesson.content), GENERAL}:
        return None
    words = [re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE) for name in names]
    return next((number for number, text in file.lines.items() if all(word.search(text) for word in words)), None)


def _locations(content: Mapping[str, Any]) -> Iterator[str]:
    """The files that a lesson names, with a line if it names one."""
    for part, name in (("error", "location"), ("solution", "code_reference"), ("context", "related_files")):
        fields = content.get(part)
        value = fields.get(name) if isinstance(fields, Mapping) else None
        yield from (one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str) and one)


def _is_same_file(named: str, path: str) -> bool:
    """Whether two paths name one file: they are equal, or one ends with the other, which has a folder."""
    ours, theirs = (
        [part for part in one.replace("\\", "/").split("/") if part not in {"", "."}] for one in (named, path)
    )
    short, long = sorted((ours, theirs), key=len)
    return bool(short) and (ours == theirs or (len(short) > 1 and long[-len(short) :] == short))
