"""What `events/files`, `events/rebuildFiles`, `events/import` and `sessionMeta/*` answer."""

from typing import Any, TypedDict


class EventFilesJson(TypedDict):
    """Where the JSONL tree lies; `position` of `head` events are in it."""

    root: str
    position: int
    head: int


class RebuiltJson(TypedDict):
    """`written`: files that were not what the log says; `removed`: those that it does not know."""

    root: str
    events: int
    files: int
    written: int
    removed: int


class RefusedLineJson(TypedDict):
    line: int
    problem: str


class ImportedFileJson(TypedDict):
    """`refusals` names the first of `refused`."""

    path: str
    recorded: int
    known: int
    refused: int
    refusals: list[RefusedLineJson]


class ImportedJson(TypedDict):
    recorded: int
    known: int
    refused: int
    files: list[ImportedFileJson]


class SessionMetaJson(TypedDict):
    """`session` in the snake_case of seed 002, as `<id>.meta.json`; `eventId` is null where nothing new was said."""

    session: dict[str, Any]
    recorded: bool
    eventId: str | None


class SessionsJson(TypedDict):
    """Newest first; each as `<id>.meta.json`, with `events` and `last_at`."""

    sessions: list[dict[str, Any]]
