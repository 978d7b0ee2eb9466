"""Which events a wish to forget means that names none: those with certain words, from somewhere, of a time. Pure.

Decisions
    Words are looked for as they are written (width and case folded), every one of them somewhere in what an event
    says. Nothing that only resembles them is chosen: what is forgotten is gone on every device.
    A source is the id of a device, a session or a project (or its folder), an origin, or the program it was imported
    from: whichever of them it equals.
    What says nothing of its own is never chosen: removals, moves and marks, without which what they took away would
    come back; what was forgotten or corrected; what is said of devices. A mark of a daily record repeats what that
    says, so one that has the words goes with them.
    Of what retention has archived here the words are gone from the log: a source or a time finds it there, words find
    it in the archives. It goes from those, from the cloud and from the other devices then.
"""

import unicodedata
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from sync.log.envelope import event_ms
from sync.log.event_types import (
    DOCUMENT_RESTORED,
    ENTRY_MOVED,
    ENTRY_REMOVED,
    ERASING_TYPES,
    PAYLOAD_REDACTED,
    SECTION_ADDED,
    SECTION_REMOVED,
    SESSION_MARKED,
    SESSION_REMOVED,
    SESSION_SKIPPED,
)
from sync.log.model import Event

PREVIEW_CHARS: Final = 120  # characters of an event that a dry run shows
_ID_SUFFIXES: Final = ("_id", "_ids", "hash")  # the ends of the names of fields that hold no words
_RECORD_CHANGES: Final = (SESSION_REMOVED, SESSION_MARKED, SESSION_SKIPPED)  # of the daily records
_NEVER_SELECTED: Final = frozenset(
    {
        *ERASING_TYPES,
        PAYLOAD_REDACTED,
        ENTRY_REMOVED,
        DOCUMENT_RESTORED,
        ENTRY_MOVED,
        SECTION_ADDED,
        SECTION_REMOVED,
        *_RECORD_CHANGES,
    }
)


@dataclass(frozen=True, slots=True)
class ErasureSelection:
    """All of what is given has to be true of an event. Times are Unix milliseconds, the end is not included."""

    query: str | None = None
    source: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    @property
    def is_empty(self) -> bool:
        bounds = (self.source, self.since_ms, self.until_ms)
        return not self.words and all(bound is None for bound in bounds)

    @property
    def words(self) -> list[str]:
        return _casefolded(self.query or "").split()

    def selects(self, event: Event, expired: Collection[str] = ()) -> bool:
        """Whether an event of the right time is meant; `expired`: those that only this device has forgotten."""
        if event.type in _NEVER_SELECTED or event.type.startswith("device_"):
            return event.type == SESSION_MARKED and bool(self.words) and self._matches(event)
        if not event.payload and (event.event_id not in expired or self.words):
            return False
        return self._matches(event)

    def is_in_period(self, event: Event) -> bool:
        return (self.since_ms or 0) <= event_ms(event) < (inf if self.until_ms is None else self.until_ms)

    def _matches(self, event: Event) -> bool:
        if self.source is not None and self.source not in _sources(event):
            return False
        said = _casefolded(text_of(event)) if self.words else ""
        return all(word in said for word in self.words)


def text_of(event: Event) -> str:
    """Everything an event says in words."""
    return "\n".join((*_texts(dict(event.payload)), *_texts(dict(event.extra))))


def _sources(event: Event) -> set[Any]:
    said = (event.payload.get(name) for name in ("source", "source_session_id"))
    places = (event.device_id, event.origin, event.session_id, event.project_id, event.project_path)
    return {name for name in (*places, *said) if isinstance(name, str) and name}


def _texts(value: Any, name: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if not name.endswith(_ID_SUFFIXES) and name != "after":
            yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, str(key))
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item, name)


def _casefolded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()
