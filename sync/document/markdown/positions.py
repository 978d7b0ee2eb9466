"""Where things stand in a document, and where new ones belong: questions over a list of cells, nothing changed."""

from collections.abc import Iterator, Sequence
from typing import Final

from sync.document.markdown.model import KIND_LETTERS, BlockKind, Cell, Section, Snapshot, shape_of
from sync.document.markdown.template import RECORDS
from sync.document.markdown.version_labels import parse_day

DEEPEST_HEADING_LEVEL: Final = 6  # levels of headings in Markdown
_LAYOUT_KINDS: Final = frozenset({BlockKind.BLANK, BlockKind.SEPARATOR, BlockKind.FOOTER})


class CellList(list[Cell]):
    """The cells of a snapshot while they change, with the shape of its document.

    Only `splice` changes them. `head` and `tail`: how many cells at the beginning and at the end it has not touched.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.cells)
        self.shape = snapshot.document.shape
        self.untouched_head = self.untouched_tail = len(self)

    def splice(self, low: int, high: int, cells: Sequence[Cell]) -> None:
        """Put these cells in the place of those from `low` to before `high`."""
        self.untouched_head, self.untouched_tail = (
            min(self.untouched_head, low),
            min(self.untouched_tail, len(self) - high),
        )
        self[low:high] = cells
        self.shape = self.shape[:low] + shape_of(cell.block for cell in cells) + self.shape[high:]

    def find(self, kind: BlockKind, low: int = 0, high: int | None = None) -> int | None:
        """The first cell of that kind in the range."""
        at = self.shape.find(KIND_LETTERS[kind], low, len(self) if high is None else high)
        return None if at < 0 else at

    def headings(self, low: int = 0) -> Iterator[int]:
        """Every heading from `low` on."""
        while (at := self.find(BlockKind.HEADING, low)) is not None:
            yield at
            low = at + 1


def find_heading(cells: CellList, section: Section) -> int | None:
    """The first heading of that section."""
    return next((at for at in cells.headings() if cells[at].block.section == section), None)


def find_section_by_title(cells: CellList, title: str) -> Section | None:
    """The section with that title, of the first rank if there is one, else wherever it stands."""
    headings = [cells[at].block.section for at in cells.headings()]
    if (title,) in headings:
        return (title,)
    return next((section for section in headings if section[-1:] == (title,)), None)


def day_headings_below(cells: CellList, section: Section) -> list[int]:
    """The headings of days right below a section."""
    return [
        at for at in cells.headings() if cells[at].block.section[:-1] == section and parse_day(cells[at].block.title)
    ]


def extent_of(cells: CellList, heading: int) -> int:
    """Where a section ends, its subsections included."""
    return _next_boundary(cells, heading + 1, cells[heading].block.level)


def own_lines_end(cells: CellList, heading: int) -> int:
    """Where the section's own lines end: behind the last one before its subsections."""
    return content_end(cells, heading + 1, _next_boundary(cells, heading + 1, DEEPEST_HEADING_LEVEL))


def content_end(cells: CellList, low: int, high: int) -> int:
    """One past the last cell in the range that is no blank line, separator or footer."""
    while high > low and cells[high - 1].kind in _LAYOUT_KINDS:
        high -= 1
    return high


def footer_position(cells: CellList) -> int:
    """The footer, or the end where there is none."""
    found = cells.find(BlockKind.FOOTER)
    return len(cells) if found is None else found


def new_subsection_position(cells: CellList, parent: int, section: Section) -> int:
    """Where a new subsection begins: days of the records newest first, others behind what is there."""
    day = parse_day(section[-1])
    if day is None or section[-2] != RECORDS:
        return content_end(cells, parent + 1, extent_of(cells, parent))
    days = day_headings_below(cells, section[:-1])
    for at in days:
        other = parse_day(cells[at].block.title)
        if other is not None and other < day:
            return at
    return content_end(cells, days[-1] + 1, extent_of(cells, days[-1])) if days else own_lines_end(cells, parent)


def _next_boundary(cells: CellList, low: int, level: int) -> int:
    """The first heading of that level or above, the footer, or the end."""
    footer = cells.find(BlockKind.FOOTER, low)
    end = len(cells) if footer is None else footer
    heading = next((at for at in cells.headings(low) if cells[at].block.level <= level), end)
    return min(heading, end)
