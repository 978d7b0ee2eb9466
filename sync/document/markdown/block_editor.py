"""A document while it is being changed: the blocks with their ids in one list, and where things belong in it.

Only `edit`, `plan` and `returned` work with drafts; everybody else sees the snapshots that come out. A draft touches
the bytes around a change and nothing else: what it adds ends lines the way the document does, a blank line is added
where two things would otherwise run together, and one of two blank lines goes where an entry between them went.

`freeze` reads its own result back, so that a snapshot is what `parse` will make of the same bytes (`reading_back`).
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
from sync.document.markdown.template import RECORDS, SECTIONS, SEPARATOR, TITLE
from sync.document.markdown.version_labels import day_label, parse_day

_ENDING: Final = re.compile(r"(?:\r\n|\n|\r)\Z")


class BlockEditor:
    """`cells` may be read; they are changed through the methods."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._original = snapshot
        self._newline = snapshot.document.newline
        self.cells = CellList(snapshot)

    # --- looking -------------------------------------------------------------------------------------------

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
        """A line between two sections, which must not make front matter of what stands below a line like it."""
        first = self.cells[0].block if self.cells else None
        opened = first is not None and first.kind is BlockKind.SEPARATOR and first.text == SEPARATOR
        return self.new_cell("***" if opened else SEPARATOR, BlockKind.SEPARATOR)

    def insert(self, at: int, cells: Iterable[Cell], *, blank_before: bool = False, blank_after: bool = False) -> int:
        """Put cells in, with blank lines around them where asked and not yet there; one past the last one put in."""
        added = list(cells)
        if blank_before and at > 0 and self.cells[at - 1].kind is not BlockKind.BLANK:
            added.insert(0, self.new_cell("", BlockKind.BLANK))
        end = at + len(added)
        if blank_after and at < len(self.cells) and self.cells[at].kind is not BlockKind.BLANK:
            added.append(self.new_cell("", BlockKind.BLANK))
        self.cells.splice(at, at, added)
        return end

    def remove(self, at: int) -> None:
        """Take a cell out, and one blank line with it where two would meet or one would dangle at the end."""
        low, high, end = at, at + 1, len(self.cells)
        blank_before = at > 0 and self.cells[at - 1].kind is BlockKind.BLANK
        if high < end:
            if (blank_before or at == 0) and self.cells[high].kind is BlockKind.BLANK:
                high += 1
        elif blank_before:
            low -= 1
        self.cells.splice(low, high, ())

    def remove_entry(self, at: int) -> None:
        """Take an entry out, and the heading of its day where it was the last one of the day.

        Bytes do not say who made a heading. A heading goes only if it has exactly the shape we write, stands where
        we write it and has nothing below it; whatever a person wrote differently stays.
        """
        section = self.cells[at].block.section
        self.remove(at)
        day = parse_day(section[-1]) if len(section) > 1 and section[-2] == RECORDS else None
        heading = None if day is None else find_heading(self.cells, section)
        if day is None or heading is None or self.cells[heading].block.raw.rstrip() != f"### {day_label(day)}":
            return
        if content_end(self.cells, heading + 1, extent_of(self.cells, heading)) == heading + 1:
            self.remove(heading)

    def set_text(self, at: int, text: str) -> None:
        """Give a cell another text; its line ending stays."""
        cell = self.cells[at]
        if cell.block.text == text:
            return
        ending = _ENDING.search(cell.block.raw)
        raw = text.replace("\n", self._newline) + (ending[0] if ending else "")
        self._replace_cell(at, Cell(Block(cell.kind, raw, cell.block.section), cell.entry_id))

    def set_entry_id(self, at: int, entry_id: str) -> None:
        """Give an entry another id."""
        self._replace_cell(at, Cell(self.cells[at].block, entry_id))

    def remove_placeholder(self, heading: int) -> None:
        """The placeholder goes when the first entry comes."""
        at = self.cells.find(BlockKind.PLACEHOLDER, heading + 1, own_lines_end(self.cells, heading))
        if at is not None:
            self.remove(at)

    def ensure_section(self, section: Section) -> int:
        """The heading of a section, made where it belongs if it is missing (its parents too). Not for ``()``."""
        found = find_heading(self.cells, section)
        if found is not None:
            return found
        if len(section) == 1:
            return self._insert_top_section(section)
        parent = self.ensure_section(section[:-1])
        level = self.cells[parent].block.level + 1
        if level > DEEPEST_HEADING_LEVEL:
            return parent
        return self._insert_heading(section, level, new_subsection_position(self.cells, parent, section))

    def to_snapshot(self) -> Snapshot:
        """The snapshot this draft has become."""
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
        raw = f"{'#' * level} {section[-1]}".rstrip() + self._newline
        end = self.insert(
            at, [Cell(Block(BlockKind.HEADING, raw, section, level, section[-1]))], blank_before=True, blank_after=True
        )
        return end - 1

    def _insert_top_section(self, section: Section) -> int:
        """A section of the first rank: before the first of ours that follows it, else at the end."""
        title = section[0]
        if all(cell.kind is BlockKind.BLANK for cell in self.cells):
            raw = f"# {TITLE}{self._newline}"
            self.cells.splice(0, 0, [Cell(Block(BlockKind.HEADING, raw, (), 1, TITLE))])
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
        """Every line but the last ends; the last one as the document's last one did."""
        before = self._original.document.blocks
        open_end = bool(before) and not _ENDING.search(before[-1].raw)
        cells = self.cells
        for at in range(
            max(0, cells.untouched_head - 1), len(cells) - cells.untouched_tail
        ):  # before it only lines that end, as they did
            cell = cells[at]
            ended = _ENDING.search(cell.block.raw)
            last = at == len(cells) - 1
            if not ended and not last:
                self._set_raw(at, cell.block.raw + self._newline)
            elif ended and last and open_end and cell not in self._original.cells:
                self._set_raw(at, cell.block.raw[: ended.start()])

    def _set_raw(self, at: int, raw: str) -> None:
        block = self.cells[at].block
        whole = Block(block.kind, raw, block.section, block.level, block.title)
        self._replace_cell(at, Cell(whole, self.cells[at].entry_id))

    def _replace_cell(self, at: int, cell: Cell) -> None:
        self.cells.splice(at, at + 1, [cell])
