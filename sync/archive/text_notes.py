"""Read notes of other programs, such as day notes and Obsidian's, as daily pages. Pure.

A note's day is that of the heading, of the file's name, of the front matter, else the day on which the file was
written. Each line is a fact and each fenced block is code; the topic is the file's name. A long note becomes several
sessions of its page.
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import groupby
from typing import Final

from sync.daily.model import MAX_CODE_BLOCKS, MAX_FACT_CHARS, MAX_FACTS, Code, normalised_content
from sync.daily.pages.page_format import DayPage, PageSession
from sync.document.markdown.model import Block, BlockKind, MemoryDocument, Section
from sync.document.markdown.version_labels import leading_day, parse_day

SESSION_CHARS: Final = 10_000  # of one session's lines; a record holds 15,000
NOON: Final = "12:00:00"  # of a note, of which only the day is known
BULLET: Final = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[[ xX]\]\s+)?")
_FENCE: Final = re.compile(r"\s*(?:[-*+]\s+)?(`{3,}|~{3,})[ \t]*([^\n]*)\n(.*)\n\s*\1[`~]*\s*\Z", re.DOTALL)
_FRONT_MATTER_DAY: Final = re.compile(r"^(?:date|day|created(?:_at)?)\s*:\s*[\"']?(.+)$", re.MULTILINE | re.IGNORECASE)

_Line = tuple[date, str | Code]


def own_day_of(name: str, document: MemoryDocument) -> date | None:
    """Return the day that a file's name begins with, or that its front matter gives."""
    head = document.blocks[0] if document.blocks else None
    named = _FRONT_MATTER_DAY.search(head.raw) if head is not None and head.kind is BlockKind.FRONT_MATTER else None
    return leading_day(name) or (leading_day(named[1]) if named is not None else None)


def day_of_section(section: Section) -> date | None:
    """Return the day that the nearest heading begins with."""
    return next((day for title in reversed(section) if (day := leading_day(title)) is not None), None)


def read_note(topic: str, document: MemoryDocument, day: date) -> Iterator[DayPage]:
    """Yield the pages of a note, by day. `day`: of lines below no heading with a day."""
    lines = sorted(_lines_of(document.blocks, day), key=lambda line: line[0])
    for own_day, on_day in groupby(lines, key=lambda line: line[0]):
        parts = list(_parts_of([line for _, line in on_day]))
        sessions = [
            PageSession(
                number,
                NOON,
                normalised_content(
                    topic if number == 1 else f"{topic} ({number})",
                    [line for line in part if isinstance(line, str)],
                    [line for line in part if isinstance(line, Code)],
                ),
            )
            for number, part in enumerate(parts, 1)
        ]
        yield DayPage(own_day.isoformat(), tuple(sessions))


def _lines_of(blocks: Sequence[Block], day: date) -> Iterator[_Line]:
    for block in blocks:
        own_day = day_of_section(block.section) or day
        if block.kind is BlockKind.HEADING and parse_day(block.title) is None:
            yield own_day, block.title
        elif block.kind is BlockKind.ENTRY and (fence := _FENCE.fullmatch(block.raw.rstrip())) is not None:
            yield from ((own_day, Code(fence[2], part)) for part in cut(fence[3], SESSION_CHARS, "\n"))
        elif block.kind is BlockKind.ENTRY:
            yield from (
                (own_day, part) for part in cut(BULLET.sub("", block.raw.strip(), count=1), MAX_FACT_CHARS, " ")
            )


def cut(text: str, size: int, mark: str) -> Iterator[str]:
    """Cut a text behind a mark into parts of at most this size."""
    while len(text) > size:
        end = text.rfind(mark, size // 2, size) + 1 or size
        yield text[:end]
        text = text[end:]
    yield text


def _parts_of(lines: Sequence[str | Code]) -> Iterator[list[str | Code]]:
    """Divide lines into parts that a record holds."""
    part, size = list[str | Code](), 0
    for line in lines:
        length = len(line.text if isinstance(line, Code) else line)
        is_full = len(part) >= MAX_FACTS or sum(isinstance(one, Code) for one in part) >= MAX_CODE_BLOCKS
        if part and (is_full or size + length > SESSION_CHARS):
            yield part
            part, size = [], 0
        part.append(line)
        size += length + 1
    if part:
        yield part
