"""A lesson: its record as its JSON file has it, its counters and its state. Pure."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from sync.errors import InvalidInput
from sync.lessons.commands import FRONTEND, FRONTEND_LANGUAGES, GENERAL, language_of
from sync.lessons.corrections import normalise_text
from sync.lessons.error_text import ErrorText, error_identity, split_type

LessonKind = Literal["error", "pattern"]
LessonSource = Literal["said", "mined", "corrected", "imported"]
ERROR: Final = "error"
PATTERN: Final = "pattern"
CORRECTION: Final = "correction"  # the type of a pattern that a user's correction is
SAID: Final = "said"  # by the person; what is of another source is held after a second session or a confirmation
ID_PREFIX: Final[Mapping[str, str]] = {ERROR: "err", PATTERN: "pat"}
_LINE: Final = re.compile(r":\d.*")  # of a location
MAX_ID: Final = 128  # characters

ERROR_FIELDS: Final[Mapping[str, type]] = {
    "timestamp": str, "language": str, "framework": str, "error": dict, "context": dict, "solution": dict,
    "occurrences": int, "last_occurred": str, "tags": list,
}  # fmt: skip
TYPE_NAMES: Final[Mapping[type, str]] = {str: "text", int: "number", list: "list", dict: "object"}
PATTERN_FIELDS: Final[Mapping[str, type]] = {
    "timestamp": str, "type": str, "language": str, "framework": str, "name": str, "description": str, "pattern": dict,
    "when_to_use": list, "benefits": list, "usage_count": int, "tags": list,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson. `content` is the record of its JSON file without counters; `project_ids`: where it was seen."""

    lesson_id: str
    kind: str
    state: str
    source: str
    occurrences: int
    helped: int
    hurt: int
    shown: int
    created_at: str
    last_at: str
    project_ids: tuple[str, ...]
    content: Mapping[str, Any]

    @property
    def is_global(self) -> bool:
        """Whether it holds in every project: it was seen in two, or in none in particular."""
        return len(set(self.project_ids)) != 1 or self.project_ids[0] == "proj_global"

    @property
    def language(self) -> str:
        return text_field(self.content, "language")

    @property
    def title(self) -> str:
        if self.kind == PATTERN:
            return text_field(self.content, "name")
        error = self.content.get("error")
        parts = (error.get("type"), error.get("message")) if isinstance(error, Mapping) else ()
        return ": ".join(part for part in parts if isinstance(part, str) and part)

    @property
    def tags(self) -> list[str]:
        tags = self.content.get("tags")
        return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []

    def record(self) -> dict[str, Any]:
        """The record as its JSON file has it, with the current counters."""
        record = {"id": self.lesson_id, **self.content, **({"id": self.lesson_id} if "id" in self.content else {})}
        counter = "occurrences" if self.kind == ERROR else "usage_count"
        is_number = isinstance(record.get(counter), int)  # else it is kept until the lesson is counted
        if (counter in record and (is_number or self.occurrences)) or self.occurrences > 1:
            record[counter] = self.occurrences
        if self.kind == ERROR and "last_occurred" in record and self.last_at not in {"", str(record["last_occurred"])}:
            record["last_occurred"] = self.last_at
        return record


def lesson_state(
    source: str, *, shares_term: bool, sessions: int, helped: int, hurt: int, is_risky: bool = False
) -> str:
    """The state: `held_back`, `candidate`, `held` or `contradicted`. Only the cure of a held one is shown to an agent.

    A mined cure that shares no word with its error needs one session more than others. For an imported one its tree
    counts as a session. A risky cure is held only after a confirmation. A correction is a candidate from the first.
    """
    if hurt > helped:
        return "contradicted"
    if source == SAID or helped:
        return "held"
    support = sessions + 1 if source == "imported" else sessions if shares_term else sessions - 1
    return ("held_back", "candidate", "candidate" if is_risky else "held")[min(max(support, source == "corrected"), 2)]


def text_field(value: Mapping[str, Any], name: str) -> str:
    text = value.get(name)
    return text if isinstance(text, str) else ""


def identity_of(kind: str, content: Mapping[str, Any]) -> str:
    """The identity of a lesson: an error's normalised text, a pattern's type and name; else empty.

    A name is compared without spaces, marks and 的.
    """
    if kind == PATTERN:
        name = text_field(content, "name")
        return f"{slug(text_field(content, 'type'))}\n{normalise_text(name).replace('的', '') or name.strip()}"
    error = content.get("error")
    if not isinstance(error, Mapping):
        return ""
    return (
        error_identity(text_field(content, "language"), text_field(error, "type"), text_field(error, "message")) or ""
    )


def content_key(content: Mapping[str, Any]) -> str:
    """What equal lessons have in common: their whole record but its id, times and counters."""
    own = {"id", "timestamp", "last_occurred", "occurrences", "usage_count"}
    return json.dumps({name: value for name, value in content.items() if name not in own}, sort_keys=True)


def slug(name: str) -> str:
    """A language or type as the name of a file: lower case, with dashes; it never leaves its folder."""
    text = re.sub(r"[^\w+#-]+", "-", name.strip().casefold()).strip("-")[:60]
    return text or GENERAL


def file_of(kind: str, content: Mapping[str, Any]) -> str:
    """The name of the file that has a lesson, without its suffix."""
    if kind == PATTERN:
        return slug(text_field(content, "type"))
    language = slug(text_field(content, "language"))
    return FRONTEND if language in FRONTEND_LANGUAGES else language


def check_new(kind: str, content: Mapping[str, Any]) -> None:
    """Raise InvalidInput that names every missing or wrong field at once."""
    fields = ERROR_FIELDS if kind == ERROR else PATTERN_FIELDS
    wrong = [
        f"{name} is no {TYPE_NAMES[fields[name]]}"
        for name, value in content.items()
        if name in fields and value is not None and (not isinstance(value, fields[name]) or isinstance(value, bool))
    ]
    error = content.get("error")
    if kind == ERROR and not (isinstance(error, Mapping) and text_field(error, "message").strip()):
        wrong.append("error.message is missing")
    if kind == PATTERN:
        wrong += [f"{name} is missing" for name in ("type", "name") if not text_field(content, name).strip()]
    if wrong:
        needed = "error {type, message, location}" if kind == ERROR else "type, name"
        hint = f"Nothing was recorded. A record needs {needed}; its fields: {', '.join(fields)}."
        raise InvalidInput(
            f"the {kind} is not complete: {'; '.join(sorted(wrong))}", field=wrong[0].split()[0], hint=hint
        )


def merge_fields(former: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """A record with other fields; of a field that is an object the given parts are replaced."""
    merged = dict(former)
    for name, value in changes.items():
        known = merged.get(name)
        merged[name] = {**known, **value} if isinstance(known, Mapping) and isinstance(value, Mapping) else value
    return merged


def new_record(kind: str, given: Mapping[str, Any], timestamp: str) -> dict[str, Any]:
    """The record of a new lesson, in the order of its JSON file; other fields of the caller come last, as given."""
    given = {name: value for name, value in given.items() if value is not None and name != "id"}
    if kind == ERROR:
        error = dict(given["error"])
        split = split_type(text_field(error, "type"), text_field(error, "message"))
        record: dict[str, Any] = {
            "id": "",
            "timestamp": timestamp,
            "language": _language_shown(error, split),
            "framework": "",
            "error": {"type": split.type, "message": split.message, "location": error.get("location", "")},
            "context": {"task": "", "related_files": []},
            "solution": {"description": "", "actions": [], "code_reference": ""},
            "occurrences": 1,
            "last_occurred": timestamp,
            "tags": [],
        }
        extra = {name: value for name, value in error.items() if name not in record["error"]}
        record["error"] |= extra
        given |= {name: {**record[name], **value} for name, value in given.items() if name in {"context", "solution"}}
        return {**record, **{name: value for name, value in given.items() if name != "error"}}
    record = {
        "id": "", "timestamp": timestamp, "type": "", "language": "", "framework": "", "name": "", "description": "",
        "pattern": {"structure": "", "fields": [], "example_reference": ""}, "when_to_use": [], "benefits": [],
        "usage_count": 0, "tags": [],
    }  # fmt: skip
    return {**record, **given, "pattern": {**record["pattern"], **given.get("pattern", {})}}


def _language_shown(given: Mapping[str, Any], split: ErrorText) -> str:
    """The language of an error that names none, so that it is the same error as one that does."""
    kind, message = text_field(given, "type"), text_field(given, "message")
    text = f"{kind or split.type}: {message}" if kind or not message.startswith(split.type) else message
    return language_of(text=text, file_path=_LINE.sub("", text_field(given, "location")))
