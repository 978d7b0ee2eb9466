"""`lessons/*`: errors with their cures, and patterns. They never leave this device."""

import asyncio
import os
from collections.abc import Iterator
from datetime import UTC, timedelta
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from bridge.api.filter_params import resolve_project_id
from bridge.api.method_table import NoParams, Params
from bridge.api.path_params import absolute_path
from sync.app import App
from sync.contract import lessons as contract
from sync.contract.lessons import (
    LearnedJson,
    LessonCaptureJson,
    LessonCleanJson,
    LessonJson,
    LessonMatchJson,
    LessonProposalJson,
    LessonsJson,
    LessonStatsJson,
)
from sync.errors import InvalidInput, StorageError
from sync.lessons.capture import LessonCapture, propose
from sync.lessons.lesson_query import LessonQuery, find_duplicates, select_lessons
from sync.lessons.matching import MatchRequest
from sync.lessons.model import Lesson, merge_fields
from sync.lessons.pattern_extraction import MAX_NAMES, extract_pattern
from sync.log.model import GLOBAL_PROJECT, MAX_NAME_LENGTH, Origin
from sync.system.files import translate_os_errors

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
PathText = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
Text = Annotated[str, msgspec.Meta(max_length=200_000)]
MAX_SOURCE_BYTES: Final = 2_000_000  # of a file from which a pattern is taken
MAX_SOURCE_FILES: Final = 500  # of a folder


class LearnParams(Params, frozen=True):
    """`record`: the fields of its JSON file. `path`: take names and signatures of a pattern from this file.

    `recent`: take fields of an error that are not given from the newest failed call, as `lessons/propose` shows them.
    """

    kind: Literal["error", "pattern"]
    record: dict[str, Any] = msgspec.field(default_factory=dict)
    path: PathText | None = None
    recent: bool = False
    project: PathText | None = None
    origin: Literal["user", "agent"] = "user"


class LessonFilter(Params, frozen=True):
    """`query`: words that a lesson has all of; if none has, those that have half of them are found."""

    query: Text = ""
    kind: Literal["error", "pattern"] | None = None
    tag: Name | None = None
    language: Name | None = None
    framework: Name | None = None
    type: Name | None = None
    state: Literal["candidate", "held", "contradicted", "held_back"] | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 1_000


class LessonId(Params, frozen=True):
    id: Name


class LessonEdit(Params, frozen=True):
    """`changes`: fields of the record; of one that is an object the given parts are replaced."""

    id: Name
    changes: dict[str, Any]


class LessonVerdict(Params, frozen=True):
    id: Name
    verdict: Literal["helped", "hurt"]


class LessonRemoval(Params, frozen=True):
    """Nothing is removed without `confirm`."""

    ids: tuple[Name, ...] = ()
    older_than_days: Annotated[int, msgspec.Meta(ge=0, le=36_500)] | None = None
    duplicates: bool = False
    all: bool = False
    confirm: bool = False


class MatchParams(Params, frozen=True):
    """A tool call; without `output`, `error` and `exitCode` it has not run yet. Only one that failed gets a lesson."""

    tool: Annotated[str, msgspec.Meta(max_length=256)] = ""
    input: Any = None
    output: Text | None = None
    error: Text | None = None
    exit_code: int | None = None
    project: PathText | None = None
    session_id: Name | None = None


class CaptureParams(Params, frozen=True):
    """A tool call that has run."""

    tool: Annotated[str, msgspec.Meta(max_length=256)] = ""
    input: Any = None
    output: Text | None = None
    error: Text | None = None
    exit_code: int | None = None
    interrupted: bool = False
    project: PathText | None = None
    session_id: Name | None = None


async def learn(app: App, params: LearnParams) -> LearnedJson:
    """Record an error or a pattern; a known one is counted."""
    given = params.record
    if params.recent and params.kind == "error":
        given = merge_fields(await app.lessons().read(propose), given)
    if params.path is not None:
        path = absolute_path(params.path, "path")
        given = {**await asyncio.to_thread(_pattern_of, path), **given}
    origin = Origin.MODEL if params.origin == "agent" else Origin.USER
    project_id = resolve_project_id(params.project) or GLOBAL_PROJECT
    await app.lesson_files().read_edits()
    result = await app.lessons().learn(params.kind, given, project_id=project_id, origin=origin)
    await app.lesson_files().write_changes()
    return contract.learned_to_json(result)


async def propose_lesson(app: App, params: NoParams) -> LessonProposalJson:  # noqa: ARG001 - every row has params
    """The lesson that the newest failed call suggests; it records nothing."""
    return {"record": await app.lessons().read(propose) or None}


async def list_lessons(app: App, params: LessonFilter) -> LessonsJson:
    """Lessons by words, tag, language, framework or type; the best match first, without words the newest."""
    await app.lesson_files().read_edits()
    fields = {"language": params.language, "framework": params.framework, "type": params.type}
    wanted = LessonQuery(params.query, params.kind, params.tag, params.state, fields)
    lessons = await app.lessons().all()
    found = await asyncio.to_thread(select_lessons, lessons, wanted)
    return {"lessons": contract.lessons_to_json(found[: params.limit])}


async def show(app: App, params: LessonId) -> LessonJson:
    """One lesson."""
    await app.lesson_files().read_edits()
    return contract.lesson_to_json(await app.lessons().find(params.id))


async def edit(app: App, params: LessonEdit) -> LessonJson:
    """Replace fields of a lesson; that confirms it."""
    await app.lesson_files().read_edits()
    lesson = await app.lessons().edit(params.id, params.changes)
    await app.lesson_files().write_changes()
    return contract.lesson_to_json(lesson)


async def judge(app: App, params: LessonVerdict) -> LessonJson:
    """A lesson helped, or hurt."""
    await app.lesson_files().read_edits()
    lesson = await app.lessons().count(params.id, params.verdict)
    await app.lesson_files().write_changes()
    return contract.lesson_to_json(lesson)


async def clean(app: App, params: LessonRemoval) -> LessonCleanJson:
    """The lessons to remove; with confirm they are removed for good."""
    criteria = (bool(params.ids), params.duplicates, params.all, params.older_than_days is not None)
    if sum(criteria) > 1:
        hint = "Give one of ids, an age in days, duplicates and all; nothing was removed."
        raise InvalidInput("it is not clear which lessons: more than one choice", field="ids", hint=hint)
    if not any(criteria):
        hint = "Give ids, an age in days, duplicates or all; nothing was removed."
        raise InvalidInput("it is not said which lessons", field="ids", hint=hint)
    await app.lesson_files().read_edits()
    chosen, merges = await _chosen(app, params)
    if params.confirm and (chosen or params.all):
        names = [lesson.lesson_id for lesson in chosen]
        await app.lessons().remove(names, merges=merges, with_calls=params.all)
        await app.erasure.apply()
        try:
            await app.lesson_files().reconcile()
        except StorageError as error:
            hint = "Once they can be written, the next command about lessons writes them again."
            raise StorageError(
                f"the lessons are erased; files may still hold them: {error.message}", hint=hint
            ) from error
    return {"lessons": contract.lessons_to_json(chosen), "removed": params.confirm}


async def stats(app: App, params: NoParams) -> LessonStatsJson:  # noqa: ARG001 - every row has params
    """How many lessons there are, and which errors repeat."""
    await app.lesson_files().read_edits()
    lessons = [lesson for lesson in await app.lessons().all() if lesson.state != "held_back"]
    errors = [lesson for lesson in lessons if lesson.kind == "error"]
    week_ago = _days_ago(app, 7)
    repeated = sorted((one for one in errors if one.occurrences > 1), key=lambda one: (-one.occurrences, one.lesson_id))
    return {
        "total": len(lessons),
        "errors": len(errors),
        "patterns": len(lessons) - len(errors),
        "errorsByLanguage": _counts(lesson.language for lesson in errors),
        "newInSevenDays": sum(lesson.created_at >= week_ago for lesson in lessons),
        "topRepeated": contract.lessons_to_json(repeated[:3]),
        "states": _counts(lesson.state for lesson in lessons),
        "path": str(app.lesson_files().folder),
    }


async def match(app: App, params: MatchParams) -> LessonMatchJson:
    """The one lesson for a tool call, or none; a hint is given once a session."""
    return contract.match_to_json(await _capture_of(app).match(_request_of(app, params)))


async def capture(app: App, params: CaptureParams) -> LessonCaptureJson:
    """Record a tool call that has run: what it teaches, and the lesson for it."""
    result = await _capture_of(app).capture(_request_of(app, params), is_interrupted=params.interrupted)
    if result.mined:
        await app.lesson_files().write_changes()
    return contract.capture_to_json(result)


def _capture_of(app: App) -> LessonCapture:
    """Part of what is captured leaves the device, so all of it is redacted."""
    return LessonCapture(app.lessons(), app.draft_builder.redactor, app.memory_service.pauses.is_paused)


def _request_of(app: App, params: MatchParams | CaptureParams) -> MatchRequest:
    return MatchRequest(
        tool=params.tool,
        tool_input=params.input,
        output=params.output,
        error=params.error,
        project_id=resolve_project_id(params.project),
        session_id=app.draft_builder.safe_session_id(params.session_id),
        exit_code=params.exit_code,
    )


async def _chosen(app: App, params: LessonRemoval) -> tuple[list[Lesson], dict[str, list[Lesson]]]:
    """The lessons to remove, and those among them that are merged into others."""
    lessons = await app.lessons().all()
    if params.ids:
        return [await app.lessons().find(lesson_id) for lesson_id in params.ids], {}
    if params.all:
        return lessons, {}
    if params.older_than_days is not None:
        return [lesson for lesson in lessons if lesson.last_at < _days_ago(app, params.older_than_days)], {}
    return find_duplicates(lessons)


def _days_ago(app: App, days: int) -> str:
    """The time of this many days ago, as lessons have it."""
    return (app.clock.now().astimezone(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _counts(names: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _source_files(folder: Path) -> Iterator[Path]:
    """The files below a folder in order, without hidden ones, links and what is installed (`node_modules`)."""
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        files = (Path(at) / name for name in sorted(names) if not name.startswith("."))
        yield from (file for file in files if file.is_file() and not file.is_symlink())


def _pattern_of(path: Path) -> dict[str, Any]:
    """The pattern of a source file, or of the files of a folder. Raises InvalidInput, StorageError."""
    with translate_os_errors(path):
        if not path.exists():
            hint = "Give a source file or a folder; nothing was recorded."
            raise InvalidInput(f"there is no {path}", field="path", hint=hint)
        files = [path] if path.is_file() else list(islice(_source_files(path), MAX_SOURCE_FILES))
        found = [
            extract_pattern(str(file), file.read_bytes()[:MAX_SOURCE_BYTES].decode(errors="replace")) for file in files
        ]
    found = [one for one in found if one["pattern"]["structure"]]
    if not found:
        hint = "Give a source file, or the fields of the pattern; nothing was recorded."
        raise InvalidInput(f"{path} has no class and no function that is known here", field="path", hint=hint)
    structure = "; ".join(one["pattern"]["structure"] for one in found)[:4_000]
    fields = [name for one in found for name in one["pattern"]["fields"]][:MAX_NAMES]
    pattern = {"structure": structure, "fields": fields, "example_reference": str(path)}
    return {**found[0], "name": path.stem, "pattern": pattern}
