"""The JSON files of the lessons: `errors/<language>.json`, `patterns/<type>.json`, `index.json`. Pure."""

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sync.errors import InvalidInput
from sync.lessons.model import ERROR, PATTERN, Lesson, file_of, text_field

FOLDERS: Final = {ERROR: "errors", PATTERN: "patterns"}
INDEX_FILE: Final = "index.json"
MAX_LISTED: Final = 10  # ids in `recentErrors` and `topPatterns`
VERSION: Final = "1.0"


@dataclass(frozen=True, slots=True)
class ImportedRecord:
    """A record of another program's file, value for value."""

    kind: str
    record: Mapping[str, Any]


def render_tree(lessons: Sequence[Lesson]) -> dict[str, bytes]:
    """The files by their path in the tree. A cure that is held back is in none."""
    shown = [lesson for lesson in lessons if lesson.state != "held_back"]
    files: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for lesson in shown:
        files[f"{FOLDERS[lesson.kind]}/{file_of(lesson.kind, lesson.content)}.json"].append(lesson.record())
    rendered: dict[str, bytes] = {path: to_json_bytes(records) for path, records in sorted(files.items())}
    return {**rendered, INDEX_FILE: to_json_bytes(build_index(shown))}


def build_index(lessons: Sequence[Lesson]) -> dict[str, Any]:
    """The content of `index.json`."""
    by_language: dict[str, dict[str, int]] = {}
    by_tag: dict[str, list[str]] = {}
    by_framework: dict[str, list[str]] = {}
    for lesson in lessons:
        if lesson.language:
            counts = by_language.setdefault(lesson.language, {"errors": 0, "patterns": 0})
            counts[FOLDERS[lesson.kind]] += 1
        for tag in lesson.tags:
            by_tag.setdefault(tag, []).append(lesson.lesson_id)
        if framework := text_field(lesson.content, "framework"):
            by_framework.setdefault(framework, []).append(lesson.lesson_id)
    errors = [lesson for lesson in lessons if lesson.kind == ERROR]
    patterns = [lesson for lesson in lessons if lesson.kind == PATTERN]
    recent = sorted(errors, key=lambda lesson: (lesson.last_at, lesson.lesson_id), reverse=True)
    top = sorted(patterns, key=lambda lesson: (-lesson.occurrences, lesson.lesson_id))
    return {
        "version": VERSION,
        "lastUpdated": max((lesson.last_at for lesson in lessons), default=""),
        "stats": {"totalErrors": len(errors), "totalPatterns": len(patterns), "byLanguage": by_language},
        "indexes": {
            "byTag": by_tag,
            "byFramework": by_framework,
            "recentErrors": [lesson.lesson_id for lesson in recent[:MAX_LISTED]],
            "topPatterns": [lesson.lesson_id for lesson in top[:MAX_LISTED]],
        },
    }


def export_of(lessons: Sequence[Lesson]) -> dict[str, Any]:
    """All lessons as one object, which `lessons import` reads."""
    shown = [lesson for lesson in lessons if lesson.state != "held_back"]
    return {
        "version": VERSION,
        "errors": [lesson.record() for lesson in shown if lesson.kind == ERROR],
        "patterns": [lesson.record() for lesson in shown if lesson.kind == PATTERN],
    }


def parse_file(data: bytes, name: str, kind: str | None) -> list[ImportedRecord]:
    """The records of a file: a list, an export, an object of records, or one record.

    Raises InvalidInput that names everything in it that is no record.

    `kind`: that of the file's folder; without one each record shows what it is.
    """
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        hint = "Nothing of this file was imported; it is as it was."
        raise InvalidInput(f"{name} is no JSON", field="path", hint=hint) from None
    found = list(_records_in(value, name, kind))
    wrong = [
        f"{place} is no object" if not isinstance(item, dict) else f"{place} is neither an error nor a pattern"
        for place, item, of_place in found
        if _kind_of(item, of_place) is None
    ]
    if wrong:
        raise InvalidInput("; ".join(wrong), field="path", hint="Nothing of this file was imported; it is as it was.")
    return [
        _imported(item, name, kind, of_item)
        for _, item, of_place in found
        if isinstance(item, dict) and (of_item := _kind_of(item, of_place)) is not None
    ]


def _records_in(value: object, name: str, kind: str | None) -> Iterator[tuple[str, object, str | None]]:
    """Where each record is, the record, and its kind if its place shows it."""
    if isinstance(value, list):
        yield from ((f"{name}[{place}]", item, kind) for place, item in enumerate(value))
    elif isinstance(value, dict) and ({"errors", "patterns"} & value.keys()):
        for one, folder in FOLDERS.items():
            yield from _records_in(value.get(folder) or [], f"{name} {folder}", one)
    elif isinstance(value, dict) and ("error" in value or "pattern" in value or "id" in value):
        yield name, value, kind
    elif isinstance(value, dict):
        yield from ((f"{name} {key}", item, kind) for key, item in value.items())
    else:
        yield name, value, kind


def _kind_of(item: object, kind: str | None) -> str | None:
    if not isinstance(item, dict):
        return None
    return kind or (ERROR if "error" in item else PATTERN if "pattern" in item or "name" in item else None)


def _imported(item: Mapping[str, Any], name: str, kind: str | None, of_item: str) -> ImportedRecord:
    """The record, with the language or type that the name of its file says if it has none."""
    needed = {ERROR: "language", PATTERN: "type"}[of_item]
    stem = name.rpartition("/")[2].removesuffix(".json")
    is_named = kind is None or item.get(needed) not in (None, "")
    return ImportedRecord(of_item, item if is_named else {**item, needed: stem})


def to_json_bytes(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
