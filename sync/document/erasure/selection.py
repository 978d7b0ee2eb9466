"""Select events for an erasure by words, source or time. Pure.

Words match as they are written (width and case folded), and an event must have all of them; "several words" in quotes
are one. A source is the id of a device, session or project, its folder, an origin, or the program it was imported from.
Events without text of their own are never selected: without a removal or a move, what it removed would come back.
"""

import re
import unicodedata
from collections.abc import Collection, Iterator
from math import inf
from typing import Any, Final

import msgspec

from sync.log.envelope import event_ms
from sync.log.event_types import (
    DOCUMENT_RESTORED,
    ENTRY_MOVED,
    ENTRY_REMOVED,
    FACT_VERDICT_TYPES,
    HIDING_TYPES,
    SECTION_ADDED,
    SECTION_REMOVED,
    SESSION_MARKED,
    SESSION_REMOVED,
    SESSION_SKIPPED,
)
from sync.log.model import ENVELOPE_FIELDS, Event

PREVIEW_CHARS: Final = 120  # characters of an event that a dry run shows
_WORDS: Final = re.compile(r'"([^"]*[^"\s][^"]*)"|(\S+)')
_ID_SUFFIXES: Final = ("_id", "_ids", "hash")  # of the names of fields without words
_RECORD_CHANGES: Final = (SESSION_REMOVED, SESSION_MARKED, SESSION_SKIPPED)  # of the daily records
_NEVER_SELECTED: Final = frozenset(
    {
        *HIDING_TYPES,
        ENTRY_REMOVED,
        DOCUMENT_RESTORED,
        ENTRY_MOVED,
        SECTION_ADDED,
        SECTION_REMOVED,
        *FACT_VERDICT_TYPES,
        *_RECORD_CHANGES,
    }
)


class ErasureSelection(msgspec.Struct, frozen=True):
    """An event must meet every given condition. Times are Unix milliseconds; the end is not included."""

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
        return [phrase or word for phrase, word in _WORDS.findall(_casefolded(self.query or ""))]

    def selects(self, event: Event, expired: Collection[str] = ()) -> bool:
        """Whether an event of the right time is selected.

        `expired`: events erased on this device only; a source or a time selects them, words only in the archives.
        A mark of a daily record repeats the record, so one with the words is selected too.
        """
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
        text = _casefolded(text_of(event)) if self.words else ""
        return all(word in text for word in self.words)


def text_of(event: Event) -> str:
    """All text of an event."""
    extra = {name: value for name, value in event.extra.items() if name not in ENVELOPE_FIELDS}
    return "\n".join((*_texts(dict(event.payload)), *_texts(extra)))


def _sources(event: Event) -> set[Any]:
    imported_from = (event.payload.get(name) for name in ("source", "source_session_id"))
    places = (event.device_id, event.origin, event.session_id, event.project_id, event.project_path)
    return {name for name in (*places, *imported_from) if isinstance(name, str) and name}


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
