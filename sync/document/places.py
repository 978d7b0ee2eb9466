"""Where things stand in a document, and where new ones belong: questions over a list of cells, nothing changed."""

from collections.abc import Iterator, Sequence
from typing import Final

from sync.document.labels import parse_day
from sync.document.model import SHAPES, Cell, Kind, Section, Snapshot, shape_of
from sync.document.template import RECORDS

DEEPEST: Final = 6  # levels of headings in Markdown
_LAYOUT: Final = frozenset({Kind.BLANK, Kind.SEPARATOR, Kind.FOOTER})


class Cells(list[Cell]):
    """The cells of a snapshot while they change, with the shape of its document.

    Only `splice` changes them. `head` and `tail`: how many cells at the beginning and at the end it has not touched.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.cells)
        self.shape = snapshot.document.shape
        self.head = self.tail = len(self)

    def splice(self, low: int, high: int, cells: Sequence[Cell]) -> None:
        """Put these cells in the place of those from `low` to before `high`."""
        self.head, self.tail = min(self.head, low), min(self.tail, len(self) - high)
        self[low:high] = cells
        self.shape = self.shape[:low] + shape_of(cell.block for cell in cells) + self.shape[high:]

    def find(self, kind: Kind, low: int = 0, high: int | None = None) -> int | None:
        """The first cell of that kind in the range."""
        at = self.shape.find(SHAPES[kind], low, len(self) if high is None else high)
        return None if at < 0 else at

    def headings(self, low: int = 0) -> Iterator[int]:
        """Every heading from `low` on."""
        while (at := self.find(Kind.HEADING, low)) is not None:
            yield at
            low = at + 1


def heading_of(cells: Cells, section: Section) -> int | None:
    """The first heading of that section."""
    return next((at for at in cells.headings() if cells[at].block.section == section), None)


def section_titled(cells: Cells, title: str) -> Section | None:
    """The section with that title, of the first rank if there is one, else wherever it stands."""
    headings = [cells[at].block.section for at in cells.headings()]
    if (title,) in headings:
        return (title,)
    return next((section for section in headings if section[-1:] == (title,)), None)


def days_below(cells: Cells, section: Section) -> list[int]:
    """The headings of days right below a section."""
    return [
        at for at in cells.headings() if cells[at].block.section[:-1] == section and parse_day(cells[at].block.title)
    ]


def reach_of(cells: Cells, heading: int) -> int:
    """Where a section ends, its subsections included."""
    return _next(cells, heading + 1, cells[heading].block.level)


def own_end(cells: Cells, heading: int) -> int:
    """Where the section's own lines end: behind the last one before its subsections."""
    return content_end(cells, heading + 1, _next(cells, heading + 1, DEEPEST))


def content_end(cells: Cells, low: int, high: int) -> int:
    """One past the last cell in the range that is no blank line, separator or footer."""
    while high > low and cells[high - 1].kind in _LAYOUT:
        high -= 1
    return high


def footer_of(cells: Cells) -> int:
    """The footer, or the end where there is none."""
    found = cells.find(Kind.FOOTER)
    return len(cells) if found is None else found


def place_below(cells: Cells, parent: int, section: Section) -> int:
    """Where a new subsection begins: days of the records newest first, others behind what is there."""
    day = parse_day(section[-1])
    if day is None or section[-2] != RECORDS:
        return content_end(cells, parent + 1, reach_of(cells, parent))
    days = days_below(cells, section[:-1])
    for at in days:
        other = parse_day(cells[at].block.title)
        if other is not None and other < day:
            return at
    return content_end(cells, days[-1] + 1, reach_of(cells, days[-1])) if days else own_end(cells, parent)


def _next(cells: Cells, low: int, level: int) -> int:
    """The first heading of that level or above, the footer, or the end."""
    footer = cells.find(Kind.FOOTER, low)
    end = len(cells) if footer is None else footer
    heading = next((at for at in cells.headings(low) if cells[at].block.level <= level), end)
    return min(heading, end)
