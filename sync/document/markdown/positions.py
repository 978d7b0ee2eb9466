"""Find places in a list of cells: sections, days, the footer, and where new ones belong. Changes nothing."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

from sync.document.markdown.model import KIND_LETTERS, BlockKind, Cell, Section, Snapshot, shape_of
from sync.document.markdown.one_line import one_line
from sync.document.markdown.parse import strip_closing_hashes
from sync.document.markdown.template import RECORDS, canonical_section
from sync.document.markdown.version_labels import day_label, parse_day

DEEPEST_HEADING_LEVEL: Final = 6  # levels of headings in Markdown
_LAYOUT_KINDS: Final = frozenset({BlockKind.BLANK, BlockKind.SEPARATOR, BlockKind.FOOTER})


@lru_cache(maxsize=1024)  # every event names one of few sections
def normalised_section(titles: Section) -> Section:
    """A section as the document can show it: canonical one-line titles, days in our format, at most six levels."""
    shown = tuple(strip_closing_hashes(one_line(title)) for title in titles)[: DEEPEST_HEADING_LEVEL - 1]
    section = canonical_section(shown)
    day = parse_day(section[1]) if len(section) > 1 and section[0] == RECORDS else None
    return section if day is None else (RECORDS, day_label(day), *section[2:])


class CellList(list[Cell]):
    """The cells of a snapshot while they are edited, and their kinds as `shape`.

    Only `splice` changes them. It never touched the first `untouched_head` and the last `untouched_tail` cells.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__(snapshot.cells)
        self.shape = snapshot.document.shape
        self.untouched_head = self.untouched_tail = len(self)

    def splice(self, low: int, high: int, cells: Sequence[Cell]) -> None:
        """Replace the cells from `low` to before `high`."""
        self.untouched_head, self.untouched_tail = (
            min(self.untouched_head, low),
            min(self.untouched_tail, len(self) - high),
        )
        self[low:high] = cells
        self.shape = self.shape[:low] + shape_of(cell.block for cell in cells) + self.shape[high:]

    def find(self, kind: BlockKind, low: int = 0, high: int | None = None) -> int | None:
        """The index of the first cell of a kind in the range."""
        at = self.shape.find(KIND_LETTERS[kind], low, len(self) if high is None else high)
        return None if at < 0 else at

    def headings(self, low: int = 0) -> Iterator[int]:
        """The indices of the headings from `low` on."""
        while (at := self.find(BlockKind.HEADING, low)) is not None:
            yield at
            low = at + 1


def find_heading(cells: CellList, section: Section) -> int | None:
    """The index of the first heading of a section."""
    return next((at for at in cells.headings() if cells[at].block.section == section), None)


def find_section_by_title(cells: CellList, title: str) -> Section | None:
    """The section with a title: the top-level one if it exists, else the first at any level."""
    headings = [cells[at].block.section for at in cells.headings()]
    if (title,) in headings:
        return (title,)
    return next((section for section in headings if section[-1:] == (title,)), None)


def day_headings_below(cells: CellList, section: Section) -> list[int]:
    """The indices of the day headings directly below a section."""
    return [
        at for at in cells.headings() if cells[at].block.section[:-1] == section and parse_day(cells[at].block.title)
    ]


def extent_of(cells: CellList, heading: int) -> int:
    """The end of a section with its subsections."""
    return _next_boundary(cells, heading + 1, cells[heading].block.level)


def own_lines_end(cells: CellList, heading: int) -> int:
    """The end of a section's own lines, before its subsections."""
    return content_end(cells, heading + 1, _next_boundary(cells, heading + 1, DEEPEST_HEADING_LEVEL))


def content_end(cells: CellList, low: int, high: int) -> int:
    """The index after the last cell in the range that is not a blank line, separator or footer."""
    while high > low and cells[high - 1].kind in _LAYOUT_KINDS:
        high -= 1
    return high


def footer_position(cells: CellList) -> int:
    """The index of the footer, or the end if there is none."""
    footer = cells.find(BlockKind.FOOTER)
    return len(cells) if footer is None else footer


def new_subsection_position(cells: CellList, parent: int, section: Section) -> int:
    """The index for a new subsection: days of the records newest first, others at the end of the parent."""
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
    """The index of the next heading of this level or a higher one, of the footer, or the end."""
    footer = cells.find(BlockKind.FOOTER, low)
    end = len(cells) if footer is None else footer
    heading = next((at for at in cells.headings(low) if cells[at].block.level <= level), end)
    return min(heading, end)
