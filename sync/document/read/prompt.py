"""The document and the digest of other devices within a limit.

Preferences come first, then dated entries from the newest, then undated ones, then the digest. Question and
answer stay together. The chosen entries keep the document's order; the last line counts what was left out.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Final

import msgspec

from sync.document.markdown.language import EN, ZH, Language
from sync.document.markdown.model import Block, BlockKind, MemoryDocument, Section
from sync.document.markdown.one_line import summarize
from sync.document.markdown.parse import parse_text
from sync.document.markdown.template import PREFERENCES, heading_title
from sync.document.markdown.version_labels import parse_day

OTHER_DEVICES: Final = {ZH: "其他设备", EN: "Other devices"}  # the section under which lines of the digest are counted
OTHER_SECTIONS: Final = {ZH: "其他", EN: "Other"}  # lines without a section
NOTE_SECTIONS: Final = 4  # sections that the last line names; users may have many
TITLE_LENGTH: Final = 20  # characters of a section's name in the note
NOTE_SHARE: Final = 0.5  # of the limit; a longer note is left out


class Omission(msgspec.Struct, frozen=True):
    """How many entries of a top-level section did not fit."""

    section: str
    count: int


class _PromptUnit(msgspec.Struct, frozen=True):
    """Entries that are chosen together: positions of their blocks in the document."""

    blocks: tuple[int, ...]
    rank: int
    day: date | None


def compose(
    document_text: str, digest_text: str, max_chars: int | None = None, language: Language = ZH
) -> tuple[str, tuple[Omission, ...]]:
    """Document and digest in at most `max_chars` code points, and what was left out."""
    whole = _join(document_text, digest_text)
    if max_chars is None or len(whole) <= max_chars:
        return whole, ()
    document = parse_text(document_text)
    note_length = _max_note_length(document, digest_text, language)
    has_note = note_length <= max_chars * NOTE_SHARE
    budget = max_chars - (note_length if has_note else 0)
    chosen = _choose(document, budget, language)
    text = _render_chosen(document, chosen, language)
    rest, dropped = _digest_head(digest_text, budget - len(text) - 2)
    counts = Counter(_top_section(block.section) for at, block in _entries(document) if at not in chosen)
    named = Counter({_shown_section(section, language): count for section, count in counts.items()})
    named[OTHER_DEVICES[language]] += dropped
    omitted = tuple(Omission(section, count) for section, count in named.items() if count)
    return _join(text, rest) + (_note(omitted, language) if has_note else ""), omitted


def _join(document_text: str, digest_text: str) -> str:
    if not digest_text.strip():
        return document_text
    return f"{document_text.rstrip()}\n\n{digest_text}" if document_text.strip() else digest_text


def _entries(document: MemoryDocument) -> list[tuple[int, Block]]:
    return [(at, block) for at, block in enumerate(document.blocks) if block.kind is BlockKind.ENTRY]


def _top_section(section: Section) -> str:
    return section[0] if section else ""


def _units(document: MemoryDocument) -> list[_PromptUnit]:
    """The units to choose from, by rank. A preference is a unit of its own; other lines form units by paragraph."""
    paragraphs: list[list[int]] = []
    last = -2
    for at, block in _entries(document):
        if at == last + 1 and _top_section(block.section) != PREFERENCES:
            paragraphs[-1].append(at)
        else:
            paragraphs.append([at])
        last = at
    units = [_unit(document, tuple(paragraph)) for paragraph in paragraphs]
    dated = sorted((unit for unit in units if unit.day), key=lambda unit: (unit.day, unit.blocks), reverse=True)
    return [unit for unit in units if unit.rank == 0] + dated + [unit for unit in units if unit.rank == 2]


def _unit(document: MemoryDocument, blocks: tuple[int, ...]) -> _PromptUnit:
    section = document.blocks[blocks[0]].section
    if _top_section(section) == PREFERENCES:
        return _PromptUnit(blocks, 0, None)
    day = next((found for title in reversed(section) if (found := parse_day(title))), None)
    return _PromptUnit(blocks, 1 if day else 2, day)


def _choose(document: MemoryDocument, budget: int, language: Language) -> frozenset[int]:
    """Positions of the entries that fit.

    The first dated unit that does not fit ends the dated ones, so that the newest are shown without a gap. A long
    preference or undated line is skipped instead.
    """
    chosen: set[int] = set()
    headings: set[Section] = set()
    spent = len(_title(document))
    dated_full = False
    for unit in _units(document):
        if unit.rank == 1 and dated_full:
            continue
        section = document.blocks[unit.blocks[0]].section
        new = {section[:depth] for depth in range(1, len(section) + 1)} - headings
        cost = sum(len(document.blocks[at].text) + 1 for at in unit.blocks) + 1
        cost += sum(len(_heading(path, language)) + 1 for path in new)
        if spent + cost > budget:
            dated_full = dated_full or unit.rank == 1
            continue
        spent += cost
        headings |= new
        chosen.update(unit.blocks)
    return frozenset(chosen)


def _title(document: MemoryDocument) -> str:
    first = (block for block in document.blocks if block.level == 1 and not block.section)
    title = next(first, None)
    return "" if title is None else f"{title.text}\n"


def _heading(section: Section, language: Language) -> str:
    return f"\n{'#' * min(len(section) + 1, 6)} {heading_title(section, language)}\n"


def _shown_section(section: str, language: Language) -> str:
    return heading_title((section,), language)


def _render_chosen(document: MemoryDocument, chosen: frozenset[int], language: Language) -> str:
    """The chosen entries under their headings, in the document's order."""
    if not chosen:
        return ""
    parts = [_title(document)]
    last_section: Section = ()
    last = -2
    for at in sorted(chosen):
        block = document.blocks[at]
        if block.section != last_section:
            common = next(
                (n for n, (one, other) in enumerate(zip(block.section, last_section, strict=False)) if one != other),
                min(len(block.section), len(last_section)),
            )
            parts.extend(
                _heading(block.section[:depth], language) for depth in range(common + 1, len(block.section) + 1)
            )
            last_section = block.section
        elif at != last + 1 and last >= 0 and _top_section(block.section) != PREFERENCES:
            parts.append("\n")
        parts.append(block.text + "\n")
        last = at
    return "".join(parts).lstrip("\n")


def _digest_head(digest_text: str, budget: int) -> tuple[str, int]:
    """As many lines of the digest, from its top, as fit; and how many entries were dropped."""
    lines = digest_text.splitlines(keepends=True)
    count = 0
    for line in lines:
        if len(line) > budget:
            break
        budget -= len(line)
        count += 1
    while count and not lines[count - 1].startswith("- "):
        count -= 1
    return "".join(lines[:count]), sum(line.startswith("- ") for line in lines[count:])


def _max_note_length(document: MemoryDocument, digest_text: str, language: Language) -> int:
    """The greatest length of the note, whatever is left out."""
    entries = _entries(document)
    total = len(entries) + len(digest_text.splitlines())
    titles = {_shown_section(_top_section(block.section), language) for _, block in entries}
    names = sorted(titles | {OTHER_DEVICES[language]}, key=lambda name: len(_section_name(name, language)))
    return len(_note([Omission(name, total) for name in names[-NOTE_SECTIONS:]], language))


def _note(omitted: Sequence[Omission], language: Language) -> str:
    if not omitted:
        return ""
    total = sum(omission.count for omission in omitted)
    most = sorted(omitted, key=lambda omission: -omission.count)[:NOTE_SECTIONS]
    counts = [(_section_name(omission.section, language), omission.count) for omission in most]
    if language is EN:
        listed = ", ".join(f"{name} {count}" for name, count in counts)
        return f"\n(To save space, {total} lines are left out: {listed})\n"
    listed = "，".join(f"{name} {count} 条" for name, count in counts)
    return f"\n（篇幅所限，未列出 {total} 条：{listed}）\n"


def _section_name(section: str, language: Language) -> str:
    return summarize(section, TITLE_LENGTH) or OTHER_SECTIONS[language]
