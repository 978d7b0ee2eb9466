"""The shared document written out: the same lines in the same order give the same bytes. Pure.

The layout is the one the template and `edit` make: sections of ours in their order, others behind them in the order
in which they were first heard of, days newest first, a blank line before each question, a separator between sections.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Final

from sync.document.deeds import Order
from sync.document.labels import parse_day
from sync.document.model import Block, Document, Entry, Kind, Section, Snapshot
from sync.document.overlay import Overlay
from sync.document.parse import outline, parse_text
from sync.document.reading_back import read_back
from sync.document.shared import SharedFold
from sync.document.template import (
    COMMON_COMMANDS,
    COMMUNICATION_STYLE,
    DAILY_TASKS,
    OPERATIONS,
    PLACEHOLDER,
    PREFERENCES,
    QUESTION,
    RECORDS,
    SEPARATOR,
    TECHNICAL_PREFERENCES,
    WORK_HABITS,
    footer,
)

TEMPLATE: Final[tuple[Section, ...]] = (
    (PREFERENCES,),
    WORK_HABITS,
    COMMUNICATION_STYLE,
    TECHNICAL_PREFERENCES,
    (RECORDS,),
    (OPERATIONS,),
    DAILY_TASKS,
    COMMON_COMMANDS,
)
FENCES: Final = ("```", "~~~")
NOWHERE: Final[Order] = ("", "", "")
HOLDING: Final = frozenset(TEMPLATE) - {(PREFERENCES,), (OPERATIONS,)}  # those that show a placeholder while empty


def canonical(fold: SharedFold, local: Overlay) -> Snapshot:
    """The document of a fold with what the device has beyond it. The fold has a label: there is an event."""
    writer = _Writer(fold, local)
    writer.write()
    return writer.snapshot()


class _Writer:
    def __init__(self, fold: SharedFold, local: Overlay) -> None:
        self._fold = fold
        self._local = local
        self._blocks: list[Block] = []
        self._ids: list[str] = []
        self._gap = False  # whether a blank line must stand before whatever comes next
        self._first: dict[Section, Order] = {}  # when a section, or one below it, was first heard of
        self._below: defaultdict[Section, list[Section]] = defaultdict(list)
        for section in self._sections():
            self._below[section[:-1]].append(section)

    def write(self) -> None:
        form = self._local.form
        if form.front_matter:
            self._blocks.append(Block(Kind.FRONT_MATTER, form.front_matter))
            self._gap = True
        self._put(Kind.HEADING, f"# {form.title}", level=1, title=form.title)
        self._gap = True
        self._entries(())
        for number, section in enumerate(self._below[()]):
            if number:
                self._separator()
            self._section(section)
        self._separator()
        self._gap = True
        label = self._fold.label or ""
        self._put(Kind.FOOTER, footer(label), title=label)

    def snapshot(self) -> Snapshot:
        """What `parse` makes of the bytes. Every line is one entry by itself, so only a fence has to be read back."""
        form, blocks, ids = self._local.form, self._blocks, tuple(self._ids)
        text = "".join(block.raw for block in blocks)
        if not any(fence in text for fence in FENCES):
            return Snapshot(Document(outline(blocks), form.encoding, form.bom), ids)
        return read_back(parse_text(text, encoding=form.encoding, bom=form.bom), blocks, ids)

    # --- what stands where -----------------------------------------------------------------------------------

    def _sections(self) -> list[Section]:
        """Every section that is shown, and those above it, siblings in their order."""
        fold = self._fold
        shown = {section for section in TEMPLATE if fold.heading(section) is not False}
        shown |= {section for section in fold.mentioned if section and fold.heading(section)}
        shown |= {*fold.sections(), *self._local.sections, *self._local.lines}
        shown |= {section[:depth] for section in shown for depth in range(1, len(section))}
        shown.discard(())
        for section, order in fold.mentioned.items():
            for depth in range(1, len(section) + 1):
                above = section[:depth]
                self._first[above] = min(order, self._first.get(above, order))
        return sorted(shown, key=self._rank)

    def _rank(self, section: Section) -> tuple[int, int, Order, Section]:
        """Ours as the template has them, days newest first, others as they were first heard of, the device's own."""
        if section in TEMPLATE:
            return 0, TEMPLATE.index(section), NOWHERE, section
        day = parse_day(section[-1]) if section[:-1] == (RECORDS,) else None
        if day is not None:
            return 1, (date.max - day).days, NOWHERE, section
        first = self._first.get(section)
        return (3, 0, NOWHERE, section) if first is None else (2, 0, first, section)

    def _lines(self, section: Section) -> Iterator[tuple[Entry, bool]]:
        """The section's lines as this device shows them, each with whether a blank line stands before it."""
        waiting = list(self._local.lines.get(section, ()))
        for own in _behind(None, waiting):
            yield own, False
        for line in self._fold.lines(section):
            text = self._local.texts.get(line.entry_id, line.text)
            yield Entry(line.entry_id, text, section), line.place.gap
            for own in _behind(line.entry_id, waiting):
                yield own, False
        for _, own in waiting:
            yield own, False

    # --- writing ---------------------------------------------------------------------------------------------

    def _section(self, section: Section) -> None:
        title = self._local.titles.get(section[-1], section[-1])
        level = len(section) + 1
        self._gap = True
        self._put(Kind.HEADING, f"{'#' * level} {title}".rstrip(), level=level, title=title)
        self._gap = level <= 2
        empty = not self._entries(section) and not self._below[section]
        if empty and section in HOLDING:
            self._put(Kind.PLACEHOLDER, PLACEHOLDER)
        for below in self._below[section]:
            self._section(below)

    def _entries(self, section: Section) -> bool:
        """Write the lines of a section; whether there were any."""
        follows = False
        for entry, gap in self._lines(section):
            self._gap = self._gap or (follows and (gap or entry.text.startswith(QUESTION)))
            self._put(Kind.ENTRY, entry.text)
            self._ids.append(entry.entry_id)
            follows = True
        return follows

    def _separator(self) -> None:
        self._gap = True
        self._put(Kind.SEPARATOR, SEPARATOR)

    def _put(self, kind: Kind, text: str, *, level: int = 0, title: str = "") -> None:
        newline = self._local.form.newline
        if self._gap and self._blocks:
            self._blocks.append(Block(Kind.BLANK, newline))
        self._gap = False
        self._blocks.append(Block(kind, text.replace("\n", newline) + newline, (), level, title))


def _behind(entry_id: str | None, waiting: list[tuple[str | None, Entry]]) -> Iterator[Entry]:
    """The device's own lines that follow an entry, and each other; they are taken off the list."""
    last = entry_id
    for after, line in list(waiting):
        if after == last:
            waiting.remove((after, line))
            last = line.entry_id
            yield line
