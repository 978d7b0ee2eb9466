"""The document and the digest of other devices within a limit.

The user's own lines come first: preferences (identity, health and safety before all), then dated entries from the
newest, then undated ones. Those of programs follow, then the digest; one program or device gets at most a tenth.
Question and answer stay together. The chosen entries keep the document's order; the last line counts what was left out.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import date
from typing import Final

import msgspec

from sync.document.markdown.model import Block, BlockKind, MemoryDocument, Section
from sync.document.markdown.one_line import summarize, unescape_markdown
from sync.document.markdown.template import PREFERENCES, heading_title
from sync.document.markdown.version_labels import parse_day
from sync.texts.language import EN, ZH, Language

OTHER_DEVICES: Final = {ZH: "其他设备", EN: "Other devices"}  # the section under which lines of the digest are counted
OTHER_SECTIONS: Final = {ZH: "其他", EN: "Other"}  # lines without a section
NOTE_SECTIONS: Final = 4  # sections that the last line names; users may have many
TITLE_LENGTH: Final = 20  # characters of a section's name in the note
NOTE_SHARE: Final = 0.5  # of the limit; a longer note is left out
AUTHOR_SHARE: Final = 0.1  # of the limit, for one program or one other device


class Omission(msgspec.Struct, frozen=True):
    """How many entries of a top-level section did not fit."""

    section: str
    count: int


class _PromptUnit(msgspec.Struct, frozen=True):
    """Entries that are chosen together: positions of their blocks in the document."""

    blocks: tuple[int, ...]
    rank: int
    day: date | None
    author: str | None


Authors = Sequence[str | None]
"""Of each entry of a document, in order; None: the user, on this device."""


def compose(
    document: MemoryDocument,
    digest_text: str,
    max_chars: int | None = None,
    language: Language = ZH,
    authors: Authors = (),
) -> tuple[str, tuple[Omission, ...]]:
    """Document and digest in at most `max_chars` code points, and what was left out. Without `authors` all is own."""
    whole = _join(document.text, digest_text)
    if max_chars is None:
        return whole, ()
    share = int(max_chars * AUTHOR_SHARE)
    if len(whole) <= max_chars and _most_of_one_author(document, digest_text, authors) <= share:
        return whole, ()
    note_length = _max_note_length(document, digest_text, language)
    has_note = note_length <= max_chars * NOTE_SHARE
    budget = max_chars - (note_length if has_note else 0)
    chosen = _choose(document, authors or [None] * len(document.entries), budget, share, language)
    text = _render_chosen(document, chosen, language)
    rest, dropped = digest_head(digest_text, budget - len(text) - 2, share)
    counts = Counter(_top_section(block.section) for at, block in _entries(document) if at not in chosen)
    named = Counter({_shown_section(section, language): count for section, count in counts.items()})
    named[OTHER_DEVICES[language]] += dropped
    omitted = tuple(Omission(section, count) for section, count in named.items() if count)
    return _join(text, rest) + (_note(omitted, language) if has_note else ""), omitted


def _most_of_one_author(document: MemoryDocument, digest_text: str, authors: Authors) -> int:
    """The characters of the program or other device that has most."""
    spent_by: Counter[str] = Counter({"": 0})
    for block, author in zip(document.entries, authors, strict=False):
        spent_by[author or ""] += 0 if author is None else len(block.text) + 1
    for line in digest_text.splitlines(keepends=True):
        spent_by[_device_of(line)] += len(line) if _device_of(line) else 0
    return max(spent_by.values())


def _device_of(digest_line: str) -> str:
    """The label of the device in a line of the digest, without the day; empty for other lines."""
    return digest_line.partition("】")[0].rpartition(" ")[0] if digest_line.startswith("- ") else ""


def _join(document_text: str, digest_text: str) -> str:
    if not digest_text.strip():
        return document_text
    return f"{document_text.rstrip()}\n\n{digest_text}" if document_text.strip() else digest_text


def _entries(document: MemoryDocument) -> list[tuple[int, Block]]:
    return [(at, block) for at, block in enumerate(document.blocks) if block.kind is BlockKind.ENTRY]


def _top_section(section: Section) -> str:
    return section[0] if section else ""


def _units(document: MemoryDocument, authors: Authors, budget: int) -> list[_PromptUnit]:
    """The units to choose from, the user's first, then by rank.

    A preference is a unit of its own; other lines of one author form units by paragraph.
    """
    paragraphs: list[tuple[str | None, list[int]]] = []
    last = -2
    for (at, block), author in zip(_entries(document), authors, strict=True):
        if at == last + 1 and _top_section(block.section) != PREFERENCES and paragraphs[-1][0] == author:
            paragraphs[-1][1].append(at)
        else:
            paragraphs.append((author, [at]))
        last = at
    units = [_unit(document, tuple(paragraph), author) for author, paragraph in paragraphs]
    dated = sorted((unit for unit in units if unit.day), key=lambda unit: (unit.day, unit.blocks), reverse=True)
    stated = _vital_first(document, [unit for unit in units if unit.rank == 0], budget)
    ranked = stated + dated + [unit for unit in units if unit.rank == 2]
    return sorted(ranked, key=lambda unit: unit.author is not None)


def _unit(document: MemoryDocument, blocks: tuple[int, ...], author: str | None) -> _PromptUnit:
    section = document.blocks[blocks[0]].section
    if _top_section(section) == PREFERENCES:
        return _PromptUnit(blocks, 0, None, author)
    day = next((found for title in reversed(section) if (found := parse_day(title))), None)
    return _PromptUnit(blocks, 1 if day else 2, day, author)


def _vital_first(document: MemoryDocument, preferences: list[_PromptUnit], budget: int) -> list[_PromptUnit]:
    """The preferences, those of identity, health and safety first if not all fit."""
    texts = {unit.blocks: document.blocks[unit.blocks[0]].text for unit in preferences}
    if sum(map(len, texts.values())) < budget // 2:
        return preferences
    from sync.understanding.reading.reader import extract_statements  # noqa: PLC0415 - nearly always all fit

    def is_vital(unit: _PromptUnit) -> bool:
        text = unescape_markdown(texts[unit.blocks].lstrip().removeprefix("- "))
        return any(one.is_vital for one in extract_statements(text))

    return sorted(preferences, key=lambda unit: unit.author is None and not is_vital(unit))


def _choose(document: MemoryDocument, authors: Authors, budget: int, share: int, language: Language) -> frozenset[int]:
    """Positions of the entries that fit. `share`: what one author other than the user gets.

    The first dated unit that does not fit ends the dated ones, so that the newest are shown without a gap. A long
    preference or undated line is skipped instead.
    """
    chosen: set[int] = set()
    headings: set[Section] = set()
    spent = len(_title(document))
    spent_by: Counter[str | None] = Counter()
    full: set[str | None] = set()  # authors of whom no more dated units are shown
    for unit in _units(document, authors, budget):
        if unit.rank == 1 and unit.author in full:
            continue
        section = document.blocks[unit.blocks[0]].section
        new = {section[:depth] for depth in range(1, len(section) + 1)} - headings
        cost = sum(len(document.blocks[at].text) + 1 for at in unit.blocks) + 1
        cost += sum(len(_heading(path, language)) + 1 for path in new)
        if spent + cost > budget or (unit.author is not None and spent_by[unit.author] + cost > share):
            full |= {unit.author} if unit.rank == 1 else set()
            continue
        spent += cost
        spent_by[unit.author] += cost
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


def digest_head(digest_text: str, budget: int, share: int) -> tuple[str, int]:
    """As many lines of the digest, from its top, as fit into the budget and the share of their device.

    Also returns how many entries were dropped.
    """
    lines = digest_text.splitlines(keepends=True)
    kept: list[str] = []
    spent_by: Counter[str] = Counter()
    for line in lines:
        if len(line) > budget:
            break
        device = _device_of(line)
        if not device or spent_by[device] + len(line) <= share:
            kept.append(line)
            budget -= len(line)
            spent_by[device] += len(line)
    shown, total = (sum(line.startswith("- ") for line in some) for some in (kept, lines))
    return "".join(kept) if shown else "", total - shown


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
