"""Split a memory file from another installation into exchanges and single lines. Pure.

A question with the answer after it, under a day, is an exchange; every other line is a line. Each gets an id
from its text and place, so a repeated import brings only what is new, on any device, and nothing that was removed here
since. Exchanges are dated to noon of their day, other lines to the time in the footer.
"""

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from hashlib import sha256
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.document.markdown.edits import exchange_lines
from sync.document.markdown.entry_ids import entry_id_from_hex
from sync.document.markdown.model import EntryAdded, MemoryDocument, Section
from sync.document.markdown.positions import normalised_section
from sync.document.markdown.template import RECORDS, SECTIONS
from sync.document.markdown.version_labels import day_label, leading_day, parse_day
from sync.texts.language import EN, ZH, Language

SOURCE: Final = "memory_file"
AT_END: Final = ""  # the end of the section
_QUESTION: Final = re.compile(r"\s*[-*+]\s*(?:用户问|(User asked))\s*[：:]\s*(.*)", re.DOTALL)
_ANSWER: Final = re.compile(r"\s*[-*+]\s*AI\s*(?:答|(answered))\s*[：:]\s*(.*)", re.DOTALL)


class ImportedExchange(msgspec.Struct, frozen=True):
    """An exchange read from its two lines; either may be empty."""

    day: date
    question: str
    answer: str
    earlier_copies: int = 0
    language: Language = ZH

    @property
    def key(self) -> str:
        return f"{self.day}\n{self.question}\n{self.answer}\n{self.earlier_copies}"

    @property
    def line(self) -> tuple[Section, str]:
        """The section and text that its first line has in our documents."""
        asked, answered = exchange_lines(self.question, self.answer, self.language)
        return (RECORDS, day_label(self.day)), asked if self.question else answered


class ImportedLine(msgspec.Struct, frozen=True):
    """A single line; the same text twice in one section is one line."""

    section: Section
    text: str

    @property
    def digest(self) -> str:
        return sha256("\n".join((SOURCE, *self.section, "", self.text)).encode()).hexdigest()[:32]

    @property
    def day(self) -> date | None:
        """The day with which the nearest heading begins that has one."""
        return next((day for title in reversed(self.section) if (day := leading_day(title)) is not None), None)

    @property
    def added(self) -> EntryAdded:
        return EntryAdded(entry_id_from_hex(self.digest), AT_END, self.section, self.text)


ImportedEntry = ImportedExchange | ImportedLine


def is_memory_document(document: MemoryDocument) -> bool:
    """Whether a line is in one of the sections of a memory file, since any text parses as a document."""
    return any(entry.section[:1] and entry.section[0] in SECTIONS for entry in document.entries)


def entries_of(document: MemoryDocument) -> Iterator[ImportedEntry]:
    """The entries of a document, in its order."""
    seen: Counter[ImportedEntry] = Counter()
    for piece in _parse_entries(document):
        yield replace(piece, earlier_copies=seen[piece]) if isinstance(piece, ImportedExchange) else piece
        seen[piece] += 1


def _parse_entries(document: MemoryDocument) -> Iterator[ImportedEntry]:
    question_only: ImportedExchange | None = None
    for entry in document.entries:
        day = _day_of(entry.section)
        question, answer = (pattern.fullmatch(entry.text) if day else None for pattern in (_QUESTION, _ANSWER))
        if question_only is not None and (answer is None or question_only.day != day):
            yield question_only
            question_only = None
        if day is not None and question is not None:
            question_only = ImportedExchange(day, question[2].strip(), "", language=EN if question[1] else ZH)
        elif day is not None and answer is not None:
            asked, language = question_only.question if question_only else "", EN if answer[1] else ZH
            yield ImportedExchange(day, asked, answer[2].strip(), language=language)
            question_only = None
        else:
            yield ImportedLine(normalised_section(entry.section), entry.text)
    if question_only is not None:
        yield question_only


def _day_of(section: Section) -> date | None:
    return parse_day(section[1]) if len(section) > 1 and section[0] == RECORDS else None
