"""`lessons/export` and `lessons/import`: the tree of JSON files, which is how lessons leave and reach a device."""

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec

from bridge.api.method_table import Params
from bridge.api.path_params import absolute_path
from sync.app import App
from sync.contract.lessons import LessonExportJson, LessonImportJson
from sync.errors import InvalidInput
from sync.lessons.files import tree
from sync.system.files import make_private_folder, translate_os_errors, write_private

PathText = Annotated[str, msgspec.Meta(min_length=1, max_length=4_096)]


class LessonExport(Params, frozen=True):
    """`path`: a folder for the tree of JSON files, which must be empty or missing."""

    path: PathText | None = None


class LessonImport(Params, frozen=True):
    """`path`: a tree of JSON files, or a file of one."""

    path: PathText
    dry_run: bool = False


async def export_lessons(app: App, params: LessonExport) -> LessonExportJson:
    """All lessons in the format of their JSON files."""
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
        await app.lesson_files().write_changes()
    return {
        "found": counts["found"],
        "recorded": counts["recorded"],
        "known": counts["known"],
        "renamed": counts["renamed"],
        "dryRun": params.dry_run,
        "refusals": refusals,
    }


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
