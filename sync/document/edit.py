"""Changes to a snapshot, each a pure function to a new one.

A line that comes from elsewhere is made safe before it goes in: whatever would read back as a heading, a separator,
the footer, a placeholder or as several lines becomes one ordinary line (`entry_text`). The section of records is
found by its title wherever it stands; if a person renamed it, it is theirs now, and a new one is made in its place.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import groupby

from sync.document.draft import Draft
from sync.document.labels import parse_day
from sync.document.model import Entry, Kind, Section, Snapshot, plain
from sync.document.parse import parse_text
from sync.document.places import days_below, footer_of, heading_of, own_end, section_titled
from sync.document.summary import one_line
from sync.document.template import ANSWER, QUESTION, RECORDS, footer


@dataclass(frozen=True, slots=True)
class NewExchange:
    """One turn of a conversation to put in: ids of its two lines, the day (``2026/1/8``), the two summaries."""

    ids: tuple[str, str]
    day: str
    question: str
    answer: str


def insert_exchanges(snapshot: Snapshot, exchanges: Iterable[NewExchange]) -> Snapshot:
    """Each at the end of its day; a day is made if it is missing, newest first. One pass for those of one day.

    Question and answer are summaries already; they are put on one line here, not cut.
    """
    draft = Draft(snapshot)
    for day, said in groupby(exchanges, key=lambda exchange: exchange.day):
        _put(draft, day, said)
    return draft.freeze()


def insert_exchange(snapshot: Snapshot, *, ids: tuple[str, str], day: str, question: str, answer: str) -> Snapshot:
    """As `insert_exchanges`, for one."""
    return insert_exchanges(snapshot, [NewExchange(ids, day, question, answer)])


def _put(draft: Draft, day: str, exchanges: Iterable[NewExchange]) -> None:
    records = section_titled(draft.cells, RECORDS) or (RECORDS,)
    draft.drop_placeholder(draft.ensure_section(records))
    heading = draft.ensure_section(_day_section(draft, records, one_line(day)))
    draft.drop_placeholder(heading)
    section = draft.cells[heading].block.section
    at = own_end(draft.cells, heading)
    for exchange in exchanges:
        texts = (QUESTION + one_line(exchange.question), ANSWER + one_line(exchange.answer))
        cells = [
            draft.cell(text.rstrip(), section=section, entry_id=name)
            for name, text in zip(exchange.ids, texts, strict=True)
        ]
        at = draft.insert(at, cells, gap_before=at > heading + 1, gap_after=True)


def insert_entry(snapshot: Snapshot, entry: Entry, after: str | None) -> Snapshot:
    """An entry put behind another of its section; first in the section for None; last if `after` is not there.

    A question gets a blank line before it, so that exchanges stay apart.
    """
    draft = Draft(snapshot)
    put_entry(draft, entry, after)
    return draft.freeze()


def put_entry(draft: Draft, entry: Entry, after: str | None) -> None:
    """As `insert_entry`, for whoever changes more than one."""
    at, section = _place(draft, entry.section, after)
    text = entry_text(entry.text)
    opens = text.startswith(QUESTION) and draft.is_entry(at - 1)
    closes = not draft.is_entry(at) or draft.cells[at].block.text.startswith(QUESTION)
    cell = draft.cell(text, section=section, entry_id=entry.entry_id)
    draft.insert(at, [cell], gap_before=opens, gap_after=closes)


def edit_entry(snapshot: Snapshot, entry_id: str, text: str) -> Snapshot:
    """The entry with another text; the snapshot as it is if there is no such entry."""
    draft = Draft(snapshot)
    at = draft.index_of(entry_id)
    if at is not None:
        draft.edit(at, entry_text(text))
    return draft.freeze()


def remove_entry(snapshot: Snapshot, entry_id: str) -> Snapshot:
    """The snapshot without the entry, and without the heading of a day that it leaves empty."""
    draft = Draft(snapshot)
    at = draft.index_of(entry_id)
    if at is not None:
        draft.remove_entry(at)
    return draft.freeze()


def set_footer(snapshot: Snapshot, label: str) -> Snapshot:
    """The snapshot whose 最后更新 says `label`; the line is added at the end where there is none."""
    draft = Draft(snapshot)
    text = footer(one_line(label))
    found = footer_of(draft.cells)
    if found < len(draft.cells):
        draft.edit(found, text)
        return draft.freeze()
    end = len(draft.cells)
    while end > 0 and draft.cells[end - 1].kind is Kind.BLANK:
        end -= 1
    if end > 0 and draft.cells[end - 1].kind is not Kind.SEPARATOR:
        end = draft.insert(end, [draft.separator()], gap_before=True)
    if end < len(draft.cells):  # blank lines at the end: the footer goes behind the first of them
        end += 1
    draft.insert(end, [draft.cell(text, Kind.FOOTER)], gap_before=end > 0)
    return draft.freeze()


def entry_text(text: str) -> str:
    """The text as one that reads back as a single entry; itself if it does already."""
    sound = plain(text.replace("\0", "").encode("utf-8", errors="ignore").decode())
    if _is_entry(sound):
        return sound
    flat = " ".join(sound.split())
    if _is_entry(flat):
        return flat
    return "\\" + flat if flat else "-"


def last_place(draft: Draft, section: Section) -> tuple[int, Section]:
    """Behind the last own line of a section, which is made if it is missing, and the section that stands there."""
    heading, found = _open(draft, section)
    return own_end(draft.cells, heading), found


def _place(draft: Draft, section: Section, after: str | None) -> tuple[int, Section]:
    heading, found = _open(draft, section)
    anchor = None if after is None else draft.index_of(after)
    if anchor is not None and draft.cells[anchor].block.section == found:
        return anchor + 1, found
    end = own_end(draft.cells, heading)
    entries = (at for at in range(heading + 1, end) if draft.is_entry(at))
    return (next(entries, end) if after is None else end), found


def _open(draft: Draft, section: Section) -> tuple[int, Section]:
    """The heading of a section, made if it is missing and rid of its placeholder, as those above it are.

    For ``()`` it is the title of the document, or the place before the first line.
    """
    if section:
        found = draft.cells[draft.ensure_section(section)].block.section
        for depth in range(1, len(found) + 1):
            above = heading_of(draft.cells, found[:depth])
            if above is not None:
                draft.drop_placeholder(above)
        return draft.ensure_section(found), found
    title = heading_of(draft.cells, ())
    if title is not None:
        return title, ()
    return (0 if draft.cells and draft.cells[0].kind is Kind.FRONT_MATTER else -1), ()


def _day_section(draft: Draft, records: Section, day: str) -> Section:
    """The section of that day, under the heading it has: a person may have written 2026-01-08."""
    wanted = parse_day(day)
    for at in days_below(draft.cells, records):
        block = draft.cells[at].block
        if wanted is not None and parse_day(block.title) == wanted:
            return block.section
    return (*records, day)


def _is_entry(text: str) -> bool:
    blocks = parse_text(text).blocks
    return len(blocks) == 1 and blocks[0].kind is Kind.ENTRY
