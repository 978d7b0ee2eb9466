"""A document while it is edited: its blocks with their ids in one list, and the places where new ones belong.

The editor changes only the bytes around an edit: added lines end as the document's lines do, a blank line keeps two
things apart, and a blank line goes with the entry that it followed. `to_snapshot` parses the result again, so that the
snapshot is what `parse` returns for the same bytes.
"""

import re
from collections.abc import Iterable
from typing import Final

from sync.document.markdown.model import Block, BlockKind, Cell, Section, Snapshot
from sync.document.markdown.parse import parse_text
from sync.document.markdown.positions import (
    DEEPEST_HEADING_LEVEL,
    CellList,
    content_end,
    extent_of,
    find_heading,
    footer_position,
    new_subsection_position,
    own_lines_end,
)
from sync.document.markdown.reparse import reparse, reparse_changed_part
from sync.document.markdown.template import RECORDS, SECTIONS, SEPARATOR, heading_title, language_of
from sync.document.markdown.version_labels import day_label, parse_day
from sync.document.markdown.words import WORDS
from sync.texts.language import ZH, Language

_ENDING: Final = re.compile(r"(?:\r\n|\n|\r)\Z")


class BlockEditor:
    """Read `cells` directly; change them through the methods."""

    def __init__(self, snapshot: Snapshot, language: Language = ZH) -> None:
        """`language`: of new headings in a document that has none of the template."""
        self._original = snapshot
        self._default_language = language
        self._newline = snapshot.document.newline
        self.cells = CellList(snapshot)

    # --- reading -------------------------------------------------------------------------------------------

    @property
    def language(self) -> Language:
        """The language of new headings."""
        return language_of(self._original.document) or self._default_language

    def index_of(self, entry_id: str) -> int | None:
        ids = [cell.entry_id for cell in self.cells]
        return ids.index(entry_id) if entry_id in ids else None

    def is_entry(self, at: int) -> bool:
        return 0 <= at < len(self.cells) and self.cells[at].kind is BlockKind.ENTRY

    # --- changing ------------------------------------------------------------------------------------------

    def new_cell(
        self, text: str, kind: BlockKind = BlockKind.ENTRY, section: Section = (), entry_id: str | None = None
    ) -> Cell:
        """A new cell that ends its lines as the document does."""
        return Cell(Block(kind, text.replace("\n", self._newline) + self._newline, section), entry_id)

    def new_separator(self) -> Cell:
        """A line between two sections that does not turn the lines below the first one into front matter."""
        first = self.cells[0].block if self.cells else None
        opened = first is not None and first.kind is BlockKind.SEPARATOR and first.text == SEPARATOR
        return self.new_cell("***" if opened else SEPARATOR, BlockKind.SEPARATOR)

    def insert(self, at: int, cells: Iterable[Cell], *, blank_before: bool = False, blank_after: bool = False) -> int:
        """Insert cells, with blank lines around them if requested and missing. Return the index after the last one."""
        added = list(cells)
        if blank_before and at > 0 and self.cells[at - 1].kind is not BlockKind.BLANK:
            added.insert(0, self.new_cell("", BlockKind.BLANK))
        end = at + len(added)
        if blank_after and at < len(self.cells) and self.cells[at].kind is not BlockKind.BLANK:
            added.append(self.new_cell("", BlockKind.BLANK))
        self.cells.splice(at, at, added)
        return end

    def remove(self, at: int) -> None:
        """Remove a cell, and one blank line if two would meet or one would be left at the end."""
        low, high, end = at, at + 1, len(self.cells)
        blank_before = at > 0 and self.cells[at - 1].kind is BlockKind.BLANK
        if high < end:
            if (blank_before or at == 0) and self.cells[high].kind is BlockKind.BLANK:
                high += 1
        elif blank_before:
            low -= 1
        self.cells.splice(low, high, ())

    def remove_entry(self, at: int) -> None:
        """Remove an entry, and the heading of its day if no entry is left below it.

        The file does not say who wrote a heading. Only a heading in exactly the program's own form and place is
        removed; one that a person wrote differently stays.
        """
        section = self.cells[at].block.section
        self.remove(at)
        day = parse_day(section[-1]) if len(section) > 1 and section[-2] == RECORDS else None
        headings = [one for one in self.cells.headings() if one < at and self.cells[one].block.section == section]
        if day is None or not headings or self.cells[headings[-1]].block.raw.rstrip() != f"### {day_label(day)}":
            return
        heading = headings[-1]  # the original app may repeat it
        end = extent_of(self.cells, heading)
        if content_end(self.cells, heading + 1, end) == heading + 1:
            self._remove_separators(heading, end)
            self.remove(heading)

    def _remove_separators(self, heading: int, end: int) -> None:
        """Remove those of an empty day, but one before a higher section if none stands there."""
        level = self.cells[heading].block.level
        is_day = end < len(self.cells) and self.cells[end].block.level == level
        before = next((cell for cell in reversed(self.cells[:heading]) if cell.kind is not BlockKind.BLANK), None)
        is_divided = before is not None and before.kind is BlockKind.SEPARATOR
        places = [at for at in range(heading + 1, end) if self.cells[at].kind is BlockKind.SEPARATOR]
        for at in reversed(places[0 if is_day or is_divided else 1 :]):
            self.remove(at)

    def set_text(self, at: int, text: str) -> None:
        """Replace the text of a cell and keep its line ending."""
        cell = self.cells[at]
        if cell.block.text == text:
            return
        ending = _ENDING.search(cell.block.raw)
        raw = text.replace("\n", self._newline) + (ending[0] if ending else "")
        self._replace_cell(at, Cell(Block(cell.kind, raw, cell.block.section), cell.entry_id))

    def remove_placeholder(self, heading: int) -> None:
        """Remove the placeholder of a section that gets its first entry, if it is as the program writes it."""
        at = self.cells.find(BlockKind.PLACEHOLDER, heading + 1, own_lines_end(self.cells, heading))
        if at is not None and self.cells[at].block.text in {words.placeholder for words in WORDS.values()}:
            self.remove(at)

    def ensure_section(self, section: Section) -> int:
        """Return the index of a section's heading; insert it, and its parents, if it is missing. Not for ``()``."""
        heading = find_heading(self.cells, section)
        if heading is not None:
            return heading
        if len(section) == 1:
            return self._insert_top_section(section)
        parent = self.ensure_section(section[:-1])
        level = self.cells[parent].block.level + 1
        if level > DEEPEST_HEADING_LEVEL:
            return parent
        return self._insert_heading(section, level, new_subsection_position(self.cells, parent, section))

    def to_snapshot(self) -> Snapshot:
        """The edited document."""
        origin, cells = self._original, self.cells
        if tuple(cells) == origin.cells:
            return origin
        self._normalise_line_endings()
        changed = cells[cells.untouched_head : len(cells) - cells.untouched_tail]
        spliced = reparse_changed_part(origin, cells.untouched_head, cells.untouched_tail, changed)
        if spliced is not None:
            return spliced
        blocks = [cell.block for cell in cells]
        ids = tuple([cell.entry_id for cell in cells if cell.entry_id is not None])
        text = "".join([block.raw for block in blocks])
        read = parse_text(text, encoding=origin.document.encoding, bom=origin.document.bom)
        return reparse(read, blocks, ids)

    # --- inside --------------------------------------------------------------------------------------------

    def _insert_heading(self, section: Section, level: int, at: int) -> int:
        title = heading_title(section, self.language)
        raw = f"{'#' * level} {title}".rstrip() + self._newline
        cell = Cell(Block(BlockKind.HEADING, raw, section, level, title))
        return self.insert(at, [cell], blank_before=True, blank_after=True) - 1

    def _insert_top_section(self, section: Section) -> int:
        """Insert a top-level section before the next template section that exists, else at the end."""
        title = section[0]
        if all(cell.kind is BlockKind.BLANK for cell in self.cells):
            title = WORDS[self.language].title
            raw = f"# {title}{self._newline}"
            self.cells.splice(0, 0, [Cell(Block(BlockKind.HEADING, raw, (), 1, title))])
        divided = self.cells.find(BlockKind.SEPARATOR) is not None
        later = SECTIONS[SECTIONS.index(title) + 1 :] if title in SECTIONS else ()
        for name in later:
            following = find_heading(self.cells, (name,))
            if following is not None:
                if divided:
                    self.insert(following, [self.new_separator()], blank_before=True, blank_after=True)
                return self._insert_heading(section, 2, following)
        at = content_end(self.cells, 0, footer_position(self.cells))
        if divided and at > 0 and self.cells[at - 1].kind is not BlockKind.HEADING:
            at = self.insert(at, [self.new_separator()], blank_before=True, blank_after=True)
        return self._insert_heading(section, 2, at)

    def _normalise_line_endings(self) -> None:
        """End every line but the last, and the last one as the last line of the original did."""
        before = self._original.document.blocks
        open_end = bool(before) and not _ENDING.search(before[-1].raw)
        cells = self.cells
        # The cells before this range are unchanged, and their lines end already.
        for at in range(max(0, cells.untouched_head - 1), len(cells) - cells.untouched_tail):
            cell = cells[at]
            ending = _ENDING.search(cell.block.raw)
            last = at == len(cells) - 1
            if not ending and not last:
                self._set_raw(at, cell.block.raw + self._newline)
            elif ending and last and open_end and cell not in self._original.cells:
                self._set_raw(at, cell.block.raw[: ending.start()])

    def _set_raw(self, at: int, raw: str) -> None:
        block = self.cells[at].block
        whole = Block(block.kind, raw, block.section, block.level, block.title)
        self._replace_cell(at, Cell(whole, self.cells[at].entry_id))

    def _replace_cell(self, at: int, cell: Cell) -> None:
        self.cells.splice(at, at + 1, [cell])
