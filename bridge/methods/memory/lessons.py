"""`lessons/*`: errors with their cures, and patterns (seed 003). They never leave this device."""

import asyncio
from datetime import UTC, timedelta
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
    LessonExportJson,
    LessonImportJson,
    LessonJson,
    LessonMatchJson,
    LessonProposalJson,
    LessonsJson,
    LessonStatsJson,
)
from sync.errors import InvalidInput
from sync.lessons.capture import LessonCapture
from sync.lessons.files import tree
from sync.lessons.matching import MatchRequest
from sync.lessons.model import Lesson, content_key, merge_fields
from sync.lessons.pattern_extraction import extract_pattern
from sync.lessons.proposal import propose
from sync.log.model import GLOBAL_PROJECT, MAX_NAME_LENGTH, Origin
from sync.system.files import make_private_folder, translate_os_errors, write_private

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME_LENGTH)]
PathText = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]
Text = Annotated[str, msgspec.Meta(max_length=200_000)]
MAX_SOURCE_BYTES: Final = 2_000_000  # of a file from which a pattern is taken


class LearnParams(Params, frozen=True):
    """`record`: the fields of seed 003. `path`: take names and signatures of a pattern from this file.

    `recent`: take fields of an error that are not given from the newest failed call, as `lessons/propose` shows them.
    """

    kind: Literal["error", "pattern"]
    record: dict[str, Any] = msgspec.field(default_factory=dict)
    path: PathText | None = None
    recent: bool = False
    project: PathText | None = None
    origin: Literal["user", "agent"] = "user"


class LessonFilter(Params, frozen=True):
    """`query`: words that a lesson has all of."""

    query: Text = ""
    kind: Literal["error", "pattern"] | None = None
    tag: Name | None = None
    language: Name | None = None
    framework: Name | None = None
    type: Name | None = None
    state: Name | None = None
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


class LessonExport(Params, frozen=True):
    """`path`: a folder for the tree of seed 003, which must be empty or missing."""

    path: PathText | None = None


class LessonImport(Params, frozen=True):
    """`path`: a tree of seed 003, or a file of one."""

    path: PathText
    dry_run: bool = False


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
    await app.lesson_files().reconcile()
    return contract.learned_to_json(result)


async def propose_lesson(app: App, params: NoParams) -> LessonProposalJson:  # noqa: ARG001 - every row has params
    """The lesson that the newest failed call suggests; it records nothing."""
    return {"record": await app.lessons().read(propose) or None}


async def list_lessons(app: App, params: LessonFilter) -> LessonsJson:
    """Lessons by words, tag, language, framework or type, newest first."""
    await app.lesson_files().read_edits()
    found = [lesson for lesson in await app.lessons().all() if _is_selected(lesson, params)]
    found.sort(key=lambda lesson: (lesson.last_at, lesson.lesson_id), reverse=True)
    return {"lessons": contract.lessons_to_json(found[: params.limit])}


async def show(app: App, params: LessonId) -> LessonJson:
    """One lesson."""
    await app.lesson_files().read_edits()
    return contract.lesson_to_json(await app.lessons().find(params.id))


async def edit(app: App, params: LessonEdit) -> LessonJson:
    """Replace fields of a lesson; that confirms it."""
    await app.lesson_files().read_edits()
    lesson = await app.lessons().edit(params.id, params.changes)
    await app.lesson_files().reconcile()
    return contract.lesson_to_json(lesson)


async def judge(app: App, params: LessonVerdict) -> LessonJson:
    """A lesson helped, or hurt."""
    await app.lesson_files().read_edits()
    lesson = await app.lessons().count(params.id, params.verdict)
    await app.lesson_files().reconcile()
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
        await app.lesson_files().reconcile()
    return {"lessons": contract.lessons_to_json(chosen), "removed": params.confirm}


async def stats(app: App, params: NoParams) -> LessonStatsJson:  # noqa: ARG001 - every row has params
    """How many lessons there are, and which errors repeat."""
    await app.lesson_files().read_edits()
    lessons = [lesson for lesson in await app.lessons().all() if lesson.state != "held_back"]
    errors = [lesson for lesson in lessons if lesson.kind == "error"]
    week_ago = (app.clock.now().astimezone(UTC) - timedelta(days=7)).strftime("%Y-%m-%dT%H:%M:%SZ")
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


async def export_lessons(app: App, params: LessonExport) -> LessonExportJson:
    """All lessons in the format of seed 003."""
    await app.lesson_files().read_edits()
    lessons = await app.lessons().all()
    if params.path is None:
        exported = tree.export_of(lessons)
        return {
            "version": exported["version"],
            "errors": exported["errors"],
            "patterns": exported["patterns"],
            "path": None,
        }
    path = absolute_path(params.path, "path")
    await asyncio.to_thread(_write_tree, path, tree.render_tree(lessons))
    return {"version": tree.VERSION, "errors": [], "patterns": [], "path": str(path)}


async def import_lessons(app: App, params: LessonImport) -> LessonImportJson:
    """Take in lessons of another program; idempotent."""
    records, refusals = await asyncio.to_thread(_read_tree, absolute_path(params.path, "path"))
    counts = await app.lesson_files().imports.import_records(records, dry_run=params.dry_run)
    if not params.dry_run:
        await app.lesson_files().reconcile()
    return {
        "found": counts["found"],
        "recorded": counts["recorded"],
        "known": counts["known"],
        "renamed": counts["renamed"],
        "dryRun": params.dry_run,
        "refusals": refusals,
    }


async def match(app: App, params: MatchParams) -> LessonMatchJson:
    """The one lesson for a tool call, or none; a hint is given once a session."""
    return contract.match_to_json(await _capture_of(app).match(_request_of(app, params)))


async def capture(app: App, params: CaptureParams) -> LessonCaptureJson:
    """Record a tool call that has run: what it teaches, and the lesson for it."""
    result = await _capture_of(app).capture(_request_of(app, params), is_interrupted=params.interrupted)
    if result.mined:
        await app.lesson_files().reconcile()
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
        cutoff = app.clock.now().astimezone(UTC) - timedelta(days=params.older_than_days)
        before = cutoff.strftime("%Y-%m-%dT%H:%M:%SZ")
        return [lesson for lesson in lessons if lesson.last_at < before], {}
    chosen: list[Lesson] = []
    merges: dict[str, list[Lesson]] = {}
    kept: dict[tuple[str, str], Lesson] = {}
    for lesson in sorted(lessons, key=lambda one: (one.source != "said", one.state != "held")):
        first = kept.setdefault((lesson.kind, content_key(lesson.content)), lesson)
        if first is not lesson:
            chosen.append(lesson)
            merges.setdefault(first.lesson_id, []).append(lesson)
    return chosen, merges


def _is_selected(lesson: Lesson, wanted: LessonFilter) -> bool:
    if lesson.state == "held_back" and wanted.state != "held_back":
        return False
    content = lesson.content
    fields = {
        "language": (wanted.language, content.get("language")),
        "framework": (wanted.framework, content.get("framework")),
        "type": (wanted.type, content.get("type")),
        "kind": (wanted.kind, lesson.kind),
        "state": (wanted.state, lesson.state),
    }
    if any(want is not None and want.casefold() != str(has).casefold() for want, has in fields.values()):
        return False
    if wanted.tag is not None and wanted.tag.casefold() not in {tag.casefold() for tag in lesson.tags}:
        return False
    text = f"{lesson.lesson_id} {msgspec.json.encode(content).decode()}".casefold()
    return all(word in text for word in wanted.query.casefold().split())


def _counts(names: Any) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _pattern_of(path: Path) -> dict[str, Any]:
    """The pattern of a source file, or of the files of a folder. Raises InvalidInput, StorageError."""
    with translate_os_errors(path):
        files = sorted(file for file in path.iterdir() if file.is_file()) if path.is_dir() else [path]
        found = [
            extract_pattern(str(file), file.read_bytes()[:MAX_SOURCE_BYTES].decode(errors="replace")) for file in files
        ]
    found = [one for one in found if one["pattern"]["structure"]]
    if not found:
        hint = "Give a source file, or the fields of the pattern; nothing was recorded."
        raise InvalidInput(f"{path} has no class and no function that is known here", field="path", hint=hint)
    structure = "; ".join(one["pattern"]["structure"] for one in found)[:4_000]
    fields = [name for one in found for name in one["pattern"]["fields"]]
    pattern = {"structure": structure, "fields": fields, "example_reference": str(path)}
    return {**found[0], "name": path.stem, "pattern": pattern}


def _read_tree(path: Path) -> tuple[list[tree.ImportedRecord], list[str]]:
    """The records below a path, and what cannot be read. Raises InvalidInput, StorageError."""
    with translate_os_errors(path):
        if path.is_file():
            return tree.parse_file(path.read_bytes(), path.name, None), []
        files = [(kind, file) for kind, name in tree.FOLDERS.items() for file in sorted((path / name).glob("*.json"))]
        if not files:
            hint = "Give a folder with errors/ and patterns/, or a file of `lessons export`."
            raise InvalidInput(f"{path} has no lessons", field="path", hint=hint)
        records: list[tree.ImportedRecord] = []
        refusals: list[str] = []
        for kind, file in files:
            try:
                records += tree.parse_file(file.read_bytes(), f"{file.parent.name}/{file.name}", kind)
            except InvalidInput as error:
                refusals.append(error.message)
    return records, refusals


def _write_tree(path: Path, files: dict[str, bytes]) -> None:
    with translate_os_errors(path):
        if path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise InvalidInput(f"{path} exists and is not empty", field="path", hint="Name a new folder.")
        for folder in ("", *tree.FOLDERS.values()):
            make_private_folder(path / folder)
        for name, data in files.items():
            write_private(path / name, data)
