"""The check of the lessons for `doctor`."""

import os
from typing import TYPE_CHECKING, Final

from sync.errors import StorageError
from sync.startup.doctor import HealthCheck

if TYPE_CHECKING:  # loaded at its first use
    from sync.lessons.service import LessonService

MAX_SHOWN_FILES: Final = 5


async def check_lessons(lessons: "LessonService") -> HealthCheck:
    """How many lessons there are, and whether the files that show them are up to date and can be written."""
    folder = lessons.folder
    try:
        known, differing = await lessons.inspect()
    except StorageError as error:
        return HealthCheck("lessons", ok=False, found=error.message, hint=error.hint)
    if not known:
        return HealthCheck("lessons", ok=None, found="none")
    if os.path.lexists(folder) and not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        hint = "Give this user write permission to this folder; the lessons themselves are in the database."
        return HealthCheck("lessons", ok=False, found=f"{folder} cannot be written to", hint=hint)
    candidates = sum(lesson.state == "candidate" for lesson in known)
    found = f"{len(known)}, of which candidates: {candidates}; {folder}"
    if differing:
        hint = "An edit of these files is not read back; the next lesson writes them again. `lessons edit` changes one."
        shown = ", ".join(differing[:MAX_SHOWN_FILES])
        return HealthCheck("lessons", ok=None, found=f"{found}; differ: {shown}", hint=hint)
    return HealthCheck("lessons", ok=True, found=found)
