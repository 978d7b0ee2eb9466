"""Where things stand in a document, and where new ones belong: questions over a list of cells, nothing changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sync.document.labels import parse_day
from sync.document.model import Block, Kind, Section
from sync.document.template import RECORDS

DEEPEST: Final = 6  # levels of headings in Markdown
_LAYOUT: Final = frozenset({Kind.BLANK, Kind.SEPARATOR, Kind.FOOTER})


@dataclass(frozen=True, slots=True)
class Cell:
    """A block, and its id if it is an entry."""

    block: Block
    entry_id: str | None = None

    @property
    def kind(self) -> Kind:
        return self.block.kind


def heading_of(cells: Sequence[Cell], section: Section) -> int | None:
    """The first heading of that section."""
    for at, cell in enumerate(cells):
        if cell.kind is Kind.HEADING and cell.block.section == section:
            return at
    return None


def section_titled(cells: Sequence[Cell], title: str) -> Section | None:
    """The section with that title, of the first rank if there is one, else wherever it stands."""
    headings = [cell.block.section for cell in cells if cell.kind is Kind.HEADING]
    if (title,) in headings:
        return (title,)
    return next((section for section in headings if section[-1:] == (title,)), None)


def days_below(cells: Sequence[Cell], section: Section) -> list[int]:
    """The headings of days right below a section."""
    return [
        at
        for at, cell in enumerate(cells)
        if cell.kind is Kind.HEADING and cell.block.section[:-1] == section and parse_day(cell.block.title)
    ]


def reach_of(cells: Sequence[Cell], heading: int) -> int:
    """Where a section ends, its subsections included."""
    return _next(cells, heading + 1, cells[heading].block.level)


def own_end(cells: Sequence[Cell], heading: int) -> int:
    """Where the section's own lines end: behind the last one before its subsections."""
    return content_end(cells, heading + 1, _next(cells, heading + 1, DEEPEST))


def content_end(cells: Sequence[Cell], low: int, high: int) -> int:
    """One past the last cell in the range that is no blank line, separator or footer."""
    while high > low and cells[high - 1].kind in _LAYOUT:
        high -= 1
    return high


def footer_of(cells: Sequence[Cell]) -> int:
    """The footer, or the end where there is none."""
    return next((at for at, cell in enumerate(cells) if cell.kind is Kind.FOOTER), len(cells))


def place_below(cells: Sequence[Cell], parent: int, section: Section) -> int:
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


def _next(cells: Sequence[Cell], low: int, level: int) -> int:
    """The first heading of that level or above, the footer, or the end."""
    for at in range(low, len(cells)):
        block = cells[at].block
        if block.kind is Kind.FOOTER or (block.kind is Kind.HEADING and block.level <= level):
            return at
    return len(cells)
