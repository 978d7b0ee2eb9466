"""The check of the lessons for `doctor`."""

import os
from typing import TYPE_CHECKING, Final

from sync.startup.checks import HealthCheck

if TYPE_CHECKING:  # loaded at its first use
    from collections.abc import Iterable

    from sync.lessons.files.live_view import LessonFiles

MAX_SHOWN_FILES: Final = 5


async def check_lessons(files: "LessonFiles") -> HealthCheck:
    """How many lessons there are, and whether the files that show them are up to date and can be read and written."""
    folder = files.folder
    report = await files.inspect()
    if not report.lessons and not report.differing and not report.unreadable:
        return HealthCheck("lessons", ok=None, found="none")
    if os.path.lexists(folder) and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        hint = "Give this user write permission to this folder; the lessons themselves are in the database."
        return HealthCheck("lessons", ok=False, found=f"{folder} cannot be written to", hint=hint)
    candidates = sum(lesson.state == "candidate" for lesson in report.lessons)
    found = f"{len(report.lessons)}, of which candidates: {candidates}; {folder}"
    if report.unreadable:
        hint = "Repair or remove these files; until then they stay as they are, and show no lesson of now."
        return HealthCheck("lessons", ok=False, found=f"{found}; {_join_names(report.unreadable.values())}", hint=hint)
    if report.differing:
        hint = "The next command about lessons reads an edit of these files, and writes them again."
        return HealthCheck("lessons", ok=None, found=f"{found}; differ: {_join_names(report.differing)}", hint=hint)
    kept = f"; kept beside the lessons: {_join_names(report.kept)}" if report.kept else ""
    return HealthCheck("lessons", ok=True, found=f"{found}{kept}")


def _join_names(names: "Iterable[str]") -> str:
    return ", ".join(list(names)[:MAX_SHOWN_FILES])
