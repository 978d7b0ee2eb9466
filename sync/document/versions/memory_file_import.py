"""A memory file from somewhere else, as what was said in it: exchanges under their days, and single lines. Pure.

Decisions
    用户问 with the AI 答 behind it, below a day, is the exchange it was written from; every other line is a line.
    Each gets the id of what it says and where it stands (an exchange, of how often it stood there before as well), so
    the same file again, or a later state of it, brings only what is new, on whatever device. What was removed here
    after an import does not come back by another.
    A day says no hour: what stands below it is dated to its noon, other lines to what stands behind 最后更新.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date
from hashlib import sha256
from typing import Final

from sync.document.markdown.entry_ids import entry_id_from_hex
from sync.document.markdown.model import EntryAdded, MemoryDocument, Section
from sync.document.markdown.template import ANSWER_PREFIX, QUESTION_PREFIX, RECORDS, SECTIONS
from sync.document.markdown.version_labels import day_label, parse_day
from sync.document.shared.entry_ops import normalised_section

SOURCE: Final = "memory_file"
AT_END: Final = ""  # behind nobody: at the end of the section
_QUESTION: Final = re.compile(r"\s*[-*+]\s*用户问\s*[：:]\s*(.*)", re.DOTALL)
_ANSWER: Final = re.compile(r"\s*[-*+]\s*AI\s*答\s*[：:]\s*(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ImportedExchange:
    """An exchange as its two lines told it; either may be empty."""

    day: date
    question: str
    answer: str
    earlier_copies: int = 0

    @property
    def key(self) -> str:
        return f"{self.day}\n{self.question}\n{self.answer}\n{self.earlier_copies}"

    @property
    def line(self) -> tuple[Section, str]:
        """Where its first line stands in a document of ours, and what it says."""
        said = QUESTION_PREFIX + self.question if self.question else ANSWER_PREFIX + self.answer
        return (RECORDS, day_label(self.day)), said.rstrip()


@dataclass(frozen=True, slots=True)
class ImportedLine:
    """A line of its own; the same words twice in one section are one."""

    section: Section
    text: str

    @property
    def digest(self) -> str:
        return sha256("\n".join((SOURCE, *self.section, "", self.text)).encode()).hexdigest()[:32]

    @property
    def day(self) -> date | None:
        return _day_of(self.section)

    @property
    def added(self) -> EntryAdded:
        return EntryAdded(entry_id_from_hex(self.digest), AT_END, self.section, self.text)


ImportedEntry = ImportedExchange | ImportedLine


def is_memory_document(document: MemoryDocument) -> bool:
    """Whether a line stands in one of the sections that a memory file has: any text is a document."""
    return any(entry.section[:1] and entry.section[0] in SECTIONS for entry in document.entries)


def entries_of(document: MemoryDocument) -> Iterator[ImportedEntry]:
    """What a document says, in its order."""
    seen: Counter[ImportedEntry] = Counter()
    for piece in _parse_entries(document):
        yield replace(piece, earlier_copies=seen[piece]) if isinstance(piece, ImportedExchange) else piece
        seen[piece] += 1


def _parse_entries(document: MemoryDocument) -> Iterator[ImportedEntry]:
    asked: ImportedExchange | None = None
    for entry in document.entries:
        day = _day_of(entry.section)
        question, answer = (pattern.fullmatch(entry.text) if day else None for pattern in (_QUESTION, _ANSWER))
        if asked is not None and (answer is None or asked.day != day):
            yield asked
            asked = None
        if day is not None and question is not None:
            asked = ImportedExchange(day, question[1].strip(), "")
        elif day is not None and answer is not None:
            yield ImportedExchange(day, asked.question if asked else "", answer[1].strip())
            asked = None
        else:
            yield ImportedLine(normalised_section(entry.section), entry.text)
    if asked is not None:
        yield asked


def _day_of(section: Section) -> date | None:
    return parse_day(section[1]) if len(section) > 1 and section[0] == RECORDS else None
