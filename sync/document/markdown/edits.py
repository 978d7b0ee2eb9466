"""Changes to a snapshot: pure functions that return a new one.

`as_single_entry` makes inserted text safe: text that would parse as a heading, a separator, the footer, a placeholder
or several lines becomes one ordinary line. The records section is found by its title; if a person renamed it, a new one
is created.
"""

from collections.abc import Collection, Iterable
from itertools import groupby

import msgspec

from sync.document.markdown.block_editor import BlockEditor
from sync.document.markdown.model import BlockKind, Entry, Section, Snapshot, normalised_text
from sync.document.markdown.one_line import one_line
from sync.document.markdown.parse import parse_text
from sync.document.markdown.positions import (
    day_headings_below,
    find_heading,
    find_section_by_title,
    footer_position,
    own_lines_end,
)
from sync.document.markdown.template import QUESTION_PREFIXES, RECORDS, footer_language, footer_line
from sync.document.markdown.version_labels import parse_day
from sync.document.markdown.words import WORDS
from sync.texts.language import ZH, Language


class NewExchange(msgspec.Struct, frozen=True):
    """One exchange to insert: the ids of its two lines, its day (``2026/1/8``), the summaries and their language."""

    ids: tuple[str, str]
    day: str
    question: str
    answer: str
    language: Language = ZH

    @property
    def lines(self) -> tuple[str, str]:
        """The two lines of the document."""
        return exchange_lines(self.question, self.answer, self.language)


def exchange_lines(question: str, answer: str, language: Language) -> tuple[str, str]:
    """The two lines of an exchange, from its summaries."""
    words = WORDS[language]
    return (words.question_prefix + one_line(question)).rstrip(), (words.answer_prefix + one_line(answer)).rstrip()


def insert_exchanges(snapshot: Snapshot, exchanges: Iterable[NewExchange]) -> Snapshot:
    """Insert each exchange at the end of its day. Missing days are created, newest first.

    Summaries are put on one line, not shortened.
    """
    exchanges = list(exchanges)
    draft = BlockEditor(snapshot, exchanges[0].language if exchanges else ZH)
    for day, of_day in groupby(exchanges, key=lambda exchange: exchange.day):
        _insert_into_day(draft, day, of_day)
    return draft.to_snapshot()


def _insert_into_day(editor: BlockEditor, day: str, exchanges: Iterable[NewExchange]) -> None:
    records = find_section_by_title(editor.cells, RECORDS) or (RECORDS,)
    editor.remove_placeholder(editor.ensure_section(records))
    heading = editor.ensure_section(_day_section(editor, records, one_line(day)))
    editor.remove_placeholder(heading)
    section = editor.cells[heading].block.section
    at = own_lines_end(editor.cells, heading)
    for exchange in exchanges:
        cells = [
            editor.new_cell(text, section=section, entry_id=name)
            for name, text in zip(exchange.ids, exchange.lines, strict=True)
        ]
        at = editor.insert(at, cells, blank_before=at > heading + 1, blank_after=True)


def insert_entry(snapshot: Snapshot, entry: Entry, after: str | None) -> Snapshot:
    """Insert an entry after another of its section: first for None, last if `after` is not in the section.

    A question gets a blank line before it, so that exchanges stay apart.
    """
    draft = BlockEditor(snapshot)
    place_entry(draft, entry, after)
    return draft.to_snapshot()


def place_entry(editor: BlockEditor, entry: Entry, after: str | None) -> None:
    """Like `insert_entry`, on an editor that collects several changes."""
    at, section = _insertion_point(editor, entry.section, after)
    text = as_single_entry(entry.text)
    opens = text.startswith(QUESTION_PREFIXES) and editor.is_entry(at - 1)
    closes = not editor.is_entry(at) or editor.cells[at].block.text.startswith(QUESTION_PREFIXES)
    cell = editor.new_cell(text, section=section, entry_id=entry.entry_id)
    editor.insert(at, [cell], blank_before=opens, blank_after=closes)


def edit_entry(snapshot: Snapshot, entry_id: str, text: str) -> Snapshot:
    """Replace the text of an entry. Without such an entry the snapshot is returned unchanged."""
    draft = BlockEditor(snapshot)
    at = draft.index_of(entry_id)
    if at is not None:
        draft.set_text(at, as_single_entry(text))
    return draft.to_snapshot()


def remove_entry(snapshot: Snapshot, entry_id: str) -> Snapshot:
    """Remove an entry, and the heading of its day if that is empty then."""
    return remove_entries(snapshot, {entry_id})


def remove_entries(snapshot: Snapshot, entry_ids: Collection[str]) -> Snapshot:
    """Remove those of these entries that are there, and the headings of days that are empty then."""
    draft = BlockEditor(snapshot)
    for at in range(len(draft.cells) - 1, -1, -1):  # from the end: a heading before an entry may go with it
        if at < len(draft.cells) and draft.cells[at].entry_id in entry_ids:
            draft.remove_entry(at)
    return draft.to_snapshot()


def set_footer(snapshot: Snapshot, label: str) -> Snapshot:
    """Set the label in the footer, which keeps its language; append the footer if it is missing."""
    draft = BlockEditor(snapshot)
    footer = footer_position(draft.cells)
    if footer < len(draft.cells):
        language = footer_language(draft.cells[footer].block.raw)
        draft.set_text(footer, footer_line(one_line(label), language))
        return draft.to_snapshot()
    text = footer_line(one_line(label), draft.language)
    end = len(draft.cells)
    while end > 0 and draft.cells[end - 1].kind is BlockKind.BLANK:
        end -= 1
    if end > 0 and draft.cells[end - 1].kind is not BlockKind.SEPARATOR:
        end = draft.insert(end, [draft.new_separator()], blank_before=True)
    if end < len(draft.cells):  # keep one of the blank lines at the end before the footer
        end += 1
    draft.insert(end, [draft.new_cell(text, BlockKind.FOOTER)], blank_before=end > 0)
    return draft.to_snapshot()


def as_single_entry(text: str) -> str:
    """Text that parses as a single entry; unchanged if it already does."""
    sound = normalised_text(text.replace("\0", "").encode("utf-8", errors="ignore").decode())
    if _is_entry(sound):
        return sound
    flat = " ".join(sound.split())
    if _is_entry(flat):
        return flat
    return "\\" + flat if flat else "-"


def section_end(editor: BlockEditor, section: Section) -> tuple[int, Section]:
    """The index after the last own line of a section, and that section. It is created if it is missing."""
    heading, found = _ensure_section_open(editor, section)
    return own_lines_end(editor.cells, heading), found


def _insertion_point(editor: BlockEditor, section: Section, after: str | None) -> tuple[int, Section]:
    heading, found = _ensure_section_open(editor, section)
    anchor = None if after is None else editor.index_of(after)
    if anchor is not None and editor.cells[anchor].block.section == found:
        return anchor + 1, found
    end = own_lines_end(editor.cells, heading)
    entries = (at for at in range(heading + 1, end) if editor.is_entry(at))
    return (next(entries, end) if after is None else end), found


def _ensure_section_open(editor: BlockEditor, section: Section) -> tuple[int, Section]:
    """The heading of a section, created if it is missing. Placeholders in it and above it are removed.

    For ``()`` it is the title of the document, or the place before the first line.
    """
    if section:
        found = editor.cells[editor.ensure_section(section)].block.section
        for depth in range(1, len(found) + 1):
            above = find_heading(editor.cells, found[:depth])
            if above is not None:
                editor.remove_placeholder(above)
        return editor.ensure_section(found), found
    title = find_heading(editor.cells, ())
    if title is not None:
        return title, ()
    return (0 if editor.cells and editor.cells[0].kind is BlockKind.FRONT_MATTER else -1), ()


def _day_section(editor: BlockEditor, records: Section, day: str) -> Section:
    """The section of a day as its heading is written: a person may have written 2026-01-08."""
    wanted = parse_day(day)
    for at in day_headings_below(editor.cells, records):
        block = editor.cells[at].block
        if wanted is not None and parse_day(block.title) == wanted:
            return block.section
    return (*records, day)


def _is_entry(text: str) -> bool:
    blocks = parse_text(text).blocks
    return len(blocks) == 1 and blocks[0].kind is BlockKind.ENTRY
