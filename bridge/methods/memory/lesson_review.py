"""`lessons/review`: the past errors that fit changed files."""

import asyncio
from pathlib import Path
from typing import Annotated, Final

import msgspec

from bridge.api.method_table import Params
from bridge.api.path_params import absolute_path
from sync.app import App
from sync.contract.lessons import LessonReviewJson, review_to_json
from sync.errors import InvalidInput
from sync.lessons.review import ChangedFile, file_lines, parse_diff, review
from sync.system.files import translate_os_errors

MAX_FILE_BYTES: Final = 2_000_000  # of a file whose lines are compared

PathText = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]


class ReviewParams(Params, frozen=True):
    """`paths`: files, compared as a whole. `diff`: a unified diff, of which the added lines are compared."""

    paths: Annotated[tuple[PathText, ...], msgspec.Meta(max_length=1_000)] = ()
    diff: Annotated[str, msgspec.Meta(max_length=4_000_000)] | None = None


async def review_files(app: App, params: ReviewParams) -> LessonReviewJson:
    """The past errors that fit changed files, the most frequent first."""
    if not params.paths and params.diff is None:
        raise InvalidInput("it is not said what to review", field="paths", hint="Give paths, or a diff.")
    paths = [absolute_path(path, "paths") for path in params.paths]
    files = await asyncio.to_thread(lambda: [_changed_file(path) for path in paths])
    files += parse_diff(params.diff or "")
    if not files and (params.diff or "").strip():
        raise InvalidInput("this is no unified diff", field="diff", hint="Give the output of `git diff`.")
    await app.lesson_files().read_edits()
    lessons = await app.lessons().all()
    return review_to_json(len(files), await asyncio.to_thread(review, lessons, files))


def _changed_file(path: Path) -> ChangedFile:
    """A file with all its lines. Raises StorageError, InvalidInput."""
    with translate_os_errors(path):
        if not path.is_file():
            raise InvalidInput(f"{path} is no file", field="paths", hint="Name files, or give the diff.")
        with path.open("rb") as file:
            text = file.read(MAX_FILE_BYTES).decode(errors="replace")
    return ChangedFile(path.as_posix(), file_lines(text))
