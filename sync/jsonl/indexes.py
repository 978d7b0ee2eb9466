"""The content of `index/projects.json`, `sessions_by_project.json` and `tags.json`. Pure.

Each is an object with sorted names, so the same log gives the same bytes. They grow by union, and are rebuilt after an
erasure.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from sync.log.event_types import TYPES_WITH_TAGS
from sync.log.model import Event

FILES: Final = ("projects", "sessions_by_project", "tags")


class JsonlIndexes(msgspec.Struct):
    """Projects with their last path, projects with their sessions, tags with their events in log order."""

    projects: dict[str, str | None] = msgspec.field(default_factory=dict)
    sessions: dict[str, set[str]] = msgspec.field(default_factory=dict)
    tags: dict[str, dict[str, None]] = msgspec.field(default_factory=dict)  # a dict as an ordered set

    def add(self, events: Iterable[Event]) -> bool:
        """Add events in log order; return whether anything changed."""
        changes = [self._add(event) for event in events]
        return any(changes)

    def add_tags(self, event: Event) -> bool:
        new = [tag for tag in tags_of(event) if event.event_id not in self.tags.setdefault(tag, {})]
        for tag in new:
            self.tags[tag][event.event_id] = None
        return bool(new)

    def _add(self, event: Event) -> bool:
        path = event.project_path or self.projects.get(event.project_id)
        known = self.sessions.setdefault(event.project_id, set())
        new = event.project_id not in self.projects or path != self.projects[event.project_id]
        new = new or bool(event.session_id and event.session_id not in known)
        self.projects[event.project_id] = path
        if event.session_id:
            known.add(event.session_id)
        return self.add_tags(event) or new

    def render(self) -> dict[str, bytes]:
        """Return the content of the files, by name without `.json`."""
        projects = {name: {"path": path, "name": _last_path_part(path)} for name, path in self.projects.items()}
        sessions = {project: sorted(ids) for project, ids in self.sessions.items() if ids}
        tags = {tag: list(ids) for tag, ids in self.tags.items()}
        values: tuple[Mapping[str, Any], ...] = (projects, sessions, tags)
        return {name: json_bytes(value) for name, value in zip(FILES, values, strict=True)}


def parse_indexes(files: Mapping[str, bytes]) -> JsonlIndexes | None:
    """Parse the files; None if one of them is not valid."""
    try:
        projects, sessions, tags = (json.loads(files[name]) for name in FILES)
        return JsonlIndexes(
            projects={name: value["path"] for name, value in projects.items()},
            sessions={name: set(ids) for name, ids in sessions.items()},
            tags={tag: dict.fromkeys(ids) for tag, ids in tags.items()},
        )
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def tags_of(event: Event) -> list[str]:
    """Return the valid tags of an event."""
    tags = event.payload.get("tags") if event.type in TYPES_WITH_TAGS else None
    return [tag for tag in tags if isinstance(tag, str) and tag] if isinstance(tags, list) else []


def _last_path_part(path: str | None) -> str | None:
    """Return the last part of a path of any operating system."""
    parts = [part for part in re.split(r"[/\\]", path or "") if part]
    return parts[-1] if parts else None


def json_bytes(value: Mapping[str, Any]) -> bytes:
    """Encode a small file as readable JSON."""
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True).encode("utf-8", "replace") + b"\n"
