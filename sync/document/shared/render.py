"""Render the shared document: the same lines in the same order give the same bytes.

Layout as in the template: its sections in their order, others after them in the order of their first mention, days
newest first, a blank line before each question, a separator between sections.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Final

from sync.document.markdown.language import WORDS
from sync.document.markdown.model import Block, BlockKind, Entry, MemoryDocument, Section, Snapshot
from sync.document.markdown.parse import assign_sections, parse_text
from sync.document.markdown.reparse import reparse
from sync.document.markdown.template import (
    PLACEHOLDER_SECTIONS,
    QUESTION_PREFIXES,
    RECORDS,
    SEPARATOR,
    TEMPLATE_SECTIONS,
    footer_line,
    heading_title,
)
from sync.document.markdown.version_labels import parse_day
from sync.document.shared.entry_ops import EventOrder
from sync.document.shared.local_overlay import LocalOverlay
from sync.document.shared.reducer import SharedReducer

FENCE_MARKS: Final = ("```", "~~~")
NO_ORDER: Final[EventOrder] = ("", "", "")


def render_shared(reducer: SharedReducer, overlay: LocalOverlay) -> Snapshot:
    """Render the reduced document with a device's overlay. The reducer must have at least one event."""
    writer = _SharedRenderer(reducer, overlay)
    writer.write()
    return writer.snapshot()


class _SharedRenderer:
    def __init__(self, reducer: SharedReducer, overlay: LocalOverlay) -> None:
        self._reducer = reducer
        self._overlay = overlay
        self._words = WORDS[reducer.language]
        self._blocks: list[Block] = []
        self._ids: list[str] = []
        self._needs_blank_line = False  # before the next block
        self._first_mention: dict[Section, EventOrder] = {}  # of a section or one below it
        self._below: defaultdict[Section, list[Section]] = defaultdict(list)
        for section in self._sections():
            self._below[section[:-1]].append(section)

    def write(self) -> None:
        form = self._overlay.form
        if form.front_matter:
            self._blocks.append(Block(BlockKind.FRONT_MATTER, form.front_matter))
            self._needs_blank_line = True
        title = form.title or self._words.title
        self._append_block(BlockKind.HEADING, f"# {title}", level=1, title=title)
        self._needs_blank_line = True
        self._entries(())
        for number, section in enumerate(self._below[()]):
            if number:
                self._separator()
            self._section(section)
        self._separator()
        self._needs_blank_line = True
        label = self._reducer.label or ""
        self._append_block(BlockKind.FOOTER, footer_line(label, self._reducer.language), title=label)

    def snapshot(self) -> Snapshot:
        """What `parse` returns for the bytes. Lines are single entries, so only fences need parsing again."""
        form, blocks, ids = self._overlay.form, self._blocks, tuple(self._ids)
        text = "".join(block.raw for block in blocks)
        if not any(fence in text for fence in FENCE_MARKS):
            return Snapshot(MemoryDocument(assign_sections(blocks), form.encoding, form.bom), ids)
        return reparse(parse_text(text, encoding=form.encoding, bom=form.bom), blocks, ids)

    # --- order -----------------------------------------------------------------------------------

    def _sections(self) -> list[Section]:
        """All sections to show and their parents, siblings in order."""
        reducer = self._reducer
        shown = {section for section in TEMPLATE_SECTIONS if reducer.is_heading_wanted(section) is not False}
        shown |= {section for section in reducer.first_mentions if section and reducer.is_heading_wanted(section)}
        shown |= {*reducer.sections_with_entries(), *self._overlay.local_sections, *self._overlay.local_lines}
        shown |= {section[:depth] for section in shown for depth in range(1, len(section))}
        shown.discard(())
        for section, order in reducer.first_mentions.items():
            for depth in range(1, len(section) + 1):
                above = section[:depth]
                self._first_mention[above] = min(order, self._first_mention.get(above, order))
        return sorted(shown, key=self._sort_key)

    def _sort_key(self, section: Section) -> tuple[int, int, EventOrder, Section]:
        """Template sections, then days newest first, then others by first mention, then those of this device."""
        if section in TEMPLATE_SECTIONS:
            return 0, TEMPLATE_SECTIONS.index(section), NO_ORDER, section
        day = parse_day(section[-1]) if section[:-1] == (RECORDS,) else None
        if day is not None:
            return 1, (date.max - day).days, NO_ORDER, section
        first = self._first_mention.get(section)
        return (3, 0, NO_ORDER, section) if first is None else (2, 0, first, section)

    def _lines(self, section: Section) -> Iterator[tuple[Entry, bool]]:
        """The lines of a section as this device shows them, each with whether a blank line precedes it."""
        remaining = list(self._overlay.local_lines.get(section, ()))
        for own in _take_lines_after(None, remaining):
            yield own, False
        for line in self._reducer.entries_in(section):
            text = self._overlay.texts.get(line.entry_id, line.text)
            yield Entry(line.entry_id, text, section), line.position.blank_before
            for own in _take_lines_after(line.entry_id, remaining):
                yield own, False
        for _, own in remaining:
            yield own, False

    # --- writing ---------------------------------------------------------------------------------------------

    def _section(self, section: Section) -> None:
        title = self._overlay.titles.get(section[-1]) or heading_title(section, self._reducer.language)
        level = len(section) + 1
        self._needs_blank_line = True
        self._append_block(BlockKind.HEADING, f"{'#' * level} {title}".rstrip(), level=level, title=title)
        self._needs_blank_line = level <= 2
        empty = not self._entries(section) and not self._below[section]
        if empty and section in PLACEHOLDER_SECTIONS:
            self._append_block(BlockKind.PLACEHOLDER, self._words.placeholder)
        for below in self._below[section]:
            self._section(below)

    def _entries(self, section: Section) -> bool:
        """Write the lines of a section. Return whether there were any."""
        follows = False
        for entry, gap in self._lines(section):
            self._needs_blank_line = self._needs_blank_line or (
                follows and (gap or entry.text.startswith(QUESTION_PREFIXES))
            )
            self._append_block(BlockKind.ENTRY, entry.text)
            self._ids.append(entry.entry_id)
            follows = True
        return follows

    def _separator(self) -> None:
        self._needs_blank_line = True
        self._append_block(BlockKind.SEPARATOR, SEPARATOR)

    def _append_block(self, kind: BlockKind, text: str, *, level: int = 0, title: str = "") -> None:
        newline = self._overlay.form.newline
        if self._needs_blank_line and self._blocks:
            self._blocks.append(Block(BlockKind.BLANK, newline))
        self._needs_blank_line = False
        self._blocks.append(Block(kind, text.replace("\n", newline) + newline, (), level, title))


def _take_lines_after(entry_id: str | None, remaining: list[tuple[str | None, Entry]]) -> Iterator[Entry]:
    """Remove from the list and yield the device's own lines that follow an entry, and each other."""
    last = entry_id
    for after, line in list(remaining):
        if after == last:
            remaining.remove((after, line))
            last = line.entry_id
            yield line
