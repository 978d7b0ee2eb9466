"""What a person or another program changed in the files of the lessons. Pure.

The manifest says which files the product wrote: all others were written by hand and are read before they are replaced.
"""

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from sync.errors import InvalidInput
from sync.lessons.files.tree import FOLDERS, INDEX_FILE, ImportedRecord, parse_file
from sync.lessons.model import Lesson, content_key

COUNTED_FIELDS: Final = ("occurrences", "usage_count", "last_occurred")  # a record shows them; an edit keeps the counts
UNFINISHED: Final = -1  # the position of files that are being written
_KIND_OF_FOLDER: Final = {folder: kind for kind, folder in FOLDERS.items()}


@dataclass(frozen=True, slots=True)
class Manifest:
    """What was written. `digests`: of each file, two while it is replaced. `lesson_ids`: of the lessons in the files.

    `kept`: files that were read and stay, because a lesson does not have every value of them. `position`: how far of
    the log the files show; `UNFINISHED` while they are written.
    """

    replica_id: str = ""
    profile: str = ""
    digests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    lesson_ids: frozenset[str] = frozenset()
    kept: Mapping[str, str] = field(default_factory=dict)
    position: int = 0

    def wrote(self, name: str, data: bytes) -> bool:
        """Whether the product wrote this file as it is."""
        return digest(data) in self.digests.get(name, ())

    def ids_of(self, replica_id: str) -> frozenset[str]:
        """The ids in the files, if this database wrote them."""
        return self.lesson_ids if self.replica_id == replica_id else frozenset()

    def has_read(self, name: str, data: bytes) -> bool:
        return self.wrote(name, data) or self.kept.get(name) == digest(data)


@dataclass(frozen=True, slots=True)
class HandEdits:
    """`records`: by file. `unreadable`: why, by file."""

    records: Mapping[str, tuple[ImportedRecord, ...]]
    unreadable: Mapping[str, str]


def find_edits(files: Mapping[str, bytes], manifest: Manifest) -> HandEdits:
    """The records of the files that the product did not write as they are."""
    records: dict[str, tuple[ImportedRecord, ...]] = {}
    unreadable: dict[str, str] = {}
    for name, data in sorted(files.items()):
        if name == INDEX_FILE or manifest.has_read(name, data):
            continue
        try:
            records[name] = tuple(parse_file(data, name, _KIND_OF_FOLDER[name.partition("/")[0]]))
        except InvalidInput as error:
            unreadable[name] = error.message
    return HandEdits(records, unreadable)


def edited_content(lesson: Lesson, record: Mapping[str, Any]) -> dict[str, Any] | None:
    """The content of a lesson after an edit of its record; None if the record is as it was. Counts are not edited."""
    kept = ("id", *COUNTED_FIELDS)
    shown = lesson.record()
    if _without(record, kept) == _without(shown, kept):
        return None
    return {
        name: lesson.content.get(name, value) if name in kept else value
        for name, value in record.items()
        if name not in kept or name in lesson.content
    } | {name: lesson.content[name] for name in kept if name in lesson.content}


def is_in_view(records: Collection[ImportedRecord], lessons: Collection[Lesson]) -> bool:
    """Whether lessons have every value of these records, but for their ids and counts."""
    known = {(lesson.kind, content_key(lesson.content)) for lesson in lessons}
    return all((one.kind, content_key(one.record)) in known for one in records)


def parse_manifest(data: bytes | None) -> Manifest:
    """The manifest in a file; an empty one if the file is missing or damaged: then every file is read."""
    try:
        value = json.loads(data or b"")
        digests = {str(name): tuple(map(str, found)) for name, found in value["digests"].items()}
        kept = {str(name): str(one) for name, one in value["kept"].items()}
        ids = frozenset(map(str, value["lesson_ids"]))
        position = int(value["position"])
        return Manifest(str(value["replica_id"]), str(value["profile"]), digests, ids, kept, position)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Manifest()


def render_manifest(manifest: Manifest) -> bytes:
    value = {
        "replica_id": manifest.replica_id,
        "profile": manifest.profile,
        "digests": {name: list(found) for name, found in sorted(manifest.digests.items())},
        "lesson_ids": sorted(manifest.lesson_ids),
        "kept": dict(sorted(manifest.kept.items())),
        "position": manifest.position,
    }
    return json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _without(record: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name not in names}
