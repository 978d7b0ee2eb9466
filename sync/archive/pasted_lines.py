"""Read text that lists what another assistant knows: each line becomes a fact that waits for the user. Pure.

Programs write such a list on request, as in `[2025-11-03] - Lives in Kiel` (Claude, Gemini, ChatGPT, November 2026). A
line's id derives from its text, so a repeated paste records nothing new, on any device.
"""

import hashlib
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime, time
from typing import Any, Final

import msgspec

from sync.archive.chat_events import as_imported
from sync.archive.chat_exports import stripped_text
from sync.archive.model import Skipped, SkippedCounts
from sync.archive.text_notes import BULLET, cut
from sync.clock import Clock
from sync.document.markdown.version_labels import leading_day
from sync.errors import TooLarge
from sync.log.event_types import MEMORY_FACT
from sync.log.ingest import DraftBuilder
from sync.log.model import EventDraft
from sync.understanding.fact_events import statement_draft
from sync.understanding.model import MAX_REMEMBERED, Level
from sync.understanding.reading.reader import remembered

MAX_PASTED_BYTES: Final = 1024 * 1024
MAX_PASTED_LINES: Final = 2_000
EXTRACTOR: Final = "pasted"
_DATED: Final = re.compile(r"\[\s*([\d./年月日-]+|unknown|未知)\s*\]\s*[-–—:：]?\s*", re.IGNORECASE)
_HEADING: Final = re.compile(r"#{1,6}\s.*|\*\*[^*]+\*\*[:：]?|[^.。!?！？]{1,60}[:：]")
_LAYOUT: Final = re.compile(r"[-=*_|:`~>\s]*|(?:`{3,}|~{3,})[\w-]*")


class PastedLine(msgspec.Struct, frozen=True):
    """One thing that another assistant knows. `day`: since when, if the line says so."""

    text: str
    day: date | None = None

    @property
    def event_id(self) -> str:
        return "evt_" + hashlib.sha256(f"{EXTRACTOR}\n{self.text}".encode()).hexdigest()[:32]


def read_pasted(text: str, skipped: SkippedCounts) -> list[PastedLine]:
    """Return the lines of a pasted text; headings are left out. Raises TooLarge with the count."""
    if (size := len(text.encode(errors="replace"))) > MAX_PASTED_BYTES:
        raise TooLarge(f"it has {size} bytes, at most {MAX_PASTED_BYTES} are read", field="text")
    lines = text.removeprefix("\ufeff").splitlines()
    if len(lines) > MAX_PASTED_LINES:
        raise TooLarge(f"it has {len(lines)} lines, at most {MAX_PASTED_LINES} are read", field="text")
    return [one for line in lines for one in _read_line(line, skipped)]


def _read_line(line: str, skipped: SkippedCounts) -> Iterator[PastedLine]:
    bare = line.strip()
    if _LAYOUT.fullmatch(bare):
        return
    if _HEADING.fullmatch(bare):
        skipped[Skipped.HEADINGS] += 1
        return
    bare = BULLET.sub("", bare, count=1)
    dated = _DATED.match(bare)
    day = leading_day(dated[1]) if dated is not None else None
    for part in cut(bare[dated.end() :] if dated is not None else bare, MAX_REMEMBERED, " "):
        yield PastedLine(" ".join(part.split()), day)


def memory_texts(value: object) -> list[str]:
    """Return the texts of Claude's `memories.json`: {conversations_memory, project_memories, memory_files}."""
    if not isinstance(value, dict) or not {"conversations_memory", "project_memories", "memory_files"} & value.keys():
        return []
    projects, files = value.get("project_memories"), value.get("memory_files")
    contents = [one.get("content") for one in (files if isinstance(files, list) else ()) if isinstance(one, Mapping)]
    found: list[Any] = [
        value.get("conversations_memory"),
        *(projects.values() if isinstance(projects, dict) else ()),
        *contents,
    ]
    return [text for text in map(stripped_text, found) if text]


def draft_pasted_line(line: PastedLine, intake: DraftBuilder, clock: Clock) -> EventDraft | None:
    """Return the event of a line; None if it has no words. Raises RedactionFailed."""
    statement = remembered(line.text, Level.LIKELY)
    if statement is None:
        return None
    place = EventDraft(type=MEMORY_FACT, payload=intake.redactor.clean_payload({}), event_id=line.event_id)
    draft = statement_draft(statement, place, line.event_id, intake.redactor, extractor=EXTRACTOR)
    at = None if line.day is None else clock.local(datetime.combine(line.day, time(12)))
    return as_imported(draft, at, clock)
