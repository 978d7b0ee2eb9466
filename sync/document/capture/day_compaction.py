"""Replace old days of the document by a line each. The exchanges stay in the log.

Which days are old depends on a clock and a setting, so it is an event (`day_folded`): all devices show the same.
Only exchanges whose lines still equal their events or imports are compacted; typed and edited lines stay. An exchange
that arrives later is added to the line of its day. Each author has a line of their own, with their label.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import date, timedelta
from itertools import islice, takewhile
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.document.markdown.edits import edit_entry, insert_entry, remove_entries
from sync.document.markdown.entry_ids import derived_entry_id, text_hash
from sync.document.markdown.model import BlockKind, Cell, Entry, Section, Snapshot
from sync.document.markdown.one_line import ELLIPSIS, summarize
from sync.document.markdown.repeat_suffix import split_repeat_count
from sync.document.markdown.template import EARLIER, QUESTION_PREFIXES, RECORDS, language_of, question_of
from sync.document.markdown.version_labels import day_label, parse_day
from sync.document.markdown.words import WORDS
from sync.log.authorship import OTHER_DOORS, Author, Authorship, author_of, authorship
from sync.log.event_types import DAY_FOLDED
from sync.log.model import DOOR_FIELD, Door, Event, Origin, text_in
from sync.texts.language import ZH, Language

MAX_DAYS: Final = 31  # at a time: the first run may find years, and the writer thread also serves updates
MAX_ENTRIES_PER_DAY: Final = 400  # of one day at a time, so that the event stays far below its limit
MAX_TOPICS: Final = 4  # questions in the line of a day
MAX_TOPIC_LENGTH: Final = 16

_ANSWER_STARTS: Final = ("- AI", "- ai")  # the original app's files have several spellings
_ANSWER_LABEL: Final = re.compile(r"\A- AI ?答[：:] ?", re.IGNORECASE)
CUT_LENGTH: Final = 103  # UTF-16 units of an answer that the original app cut
_TOTAL: Final = re.compile(r"(?:（(\d{1,6}) 次对话）| \((\d{1,6}) conversations\))\Z")
_ID_OF_OTHERS: Final = re.compile(rf"\.({'|'.join(sorted(OTHER_DOORS))})$", re.MULTILINE)

SourceDoor = Door | None  # None: the user, on this device

ExchangeLinesLookup = Callable[[str], tuple[tuple[str, str], SourceDoor] | None]
"""Event id -> the two lines of its exchange and its door; None if it is not an exchange here or was erased."""


class RecordedLine(msgspec.Struct, frozen=True):
    """A line as an import recorded it: at which door, its place in the log, and the door of its author's day."""

    text: str
    door: str | None
    position: int
    source: SourceDoor

    def follows(self, before: "RecordedLine") -> bool:
        """Return whether this line continues an exchange: recorded right after the one before, and no question."""
        is_next = (self.door, self.position) == (before.door, before.position + 1)
        return is_next and not self.text.startswith(QUESTION_PREFIXES)

    @classmethod
    def of(cls, event: Event) -> "RecordedLine":
        return cls(text_in(event, "text") or "", event.door, event.position, source_door(author_of(event)))


ImportedTextLookup = Callable[[Entry], RecordedLine | None]
"""An entry -> its line in the log if an import recorded it and it has not changed since, else None."""


class CompactableDay(msgspec.Struct, frozen=True):
    """A day to compact and its unchanged exchanges of one author, question and answer in turn."""

    day: date
    entries: tuple[Entry, ...]
    door: SourceDoor = None


def find_compactable_days(
    snapshot: Snapshot, today: date, keep_days: int, lines_of: ExchangeLinesLookup, imported_text: ImportedTextLookup
) -> list[CompactableDay]:
    """The days more than `keep_days` before today with exchanges to compact, oldest first, at most `MAX_DAYS`."""
    last = _first_kept_day(today, keep_days)
    days: dict[tuple[date, SourceDoor], list[Entry]] = {}
    for at, cell in enumerate(snapshot.cells):
        day = None if cell.entry_id is None else _day_of(cell.block.section)
        if day is None or day >= last:
            continue
        door, exchange = _own_exchange(snapshot.cells, at, lines_of) or _imported_exchange(
            snapshot.cells, at, imported_text
        )
        entries = days.setdefault((day, door), []) if exchange else []
        entries += exchange if len(entries) + len(exchange) <= MAX_ENTRIES_PER_DAY else []
    first = sorted(days, key=lambda found: (found[0], found[1] or ""))[:MAX_DAYS]
    return [CompactableDay(day, tuple(days[day, door]), door) for day, door in first]


def _own_exchange(
    cells: Sequence[Cell], at: int, lines_of: ExchangeLinesLookup
) -> tuple[SourceDoor, Sequence[Entry]] | None:
    """The two unchanged lines of an exchange whose question is at a cell; None if there is no line of ours."""
    event_id, _, side = str(cells[at].entry_id).rpartition(".")
    if side != "q":
        return None
    answered = next((cell for cell in islice(cells, at + 1, None) if cell.entry_id is not None), None)
    if answered is None or answered.entry_id != f"{event_id}.a":
        return None, ()
    lines, door = lines_of(event_id) or (None, None)
    asked, reply = _entry_of(cells[at]), _entry_of(answered)
    is_unchanged = lines == (split_repeat_count(asked.text)[0], reply.text)
    return door, (asked, reply) if is_unchanged and asked.section == reply.section else ()


def _imported_exchange(
    cells: Sequence[Cell], at: int, imported_text: ImportedTextLookup
) -> tuple[SourceDoor, Sequence[Entry]]:
    """The unchanged lines of an imported exchange whose question is at a cell, recorded one after the other.

    The original app keeps the line breaks of both sides.
    """
    run, lines = list[Cell](), list[RecordedLine]()
    for cell in islice(cells, at, None) if cells[at].block.text.startswith(QUESTION_PREFIXES) else ():
        line = None if cell.entry_id is None else imported_text(_entry_of(cell))
        if line is not None and (not lines or line.follows(lines[-1])):
            lines.append(line)
        elif cell.kind is not BlockKind.BLANK:
            break
        run.append(cell)
    answered = next((n for n, cell in enumerate(run) if cell.block.text.startswith(_ANSWER_STARTS)), None)
    if answered is None:
        return None, ()
    entries = [_entry_of(cell) for cell in run[: _answer_end(run, answered)] if cell.entry_id is not None]
    recorded = [replace(entry, text=line.text) for entry, line in zip(entries, lines, strict=False)]
    return lines[0].source, recorded


def _answer_end(run: Sequence[Cell], at: int) -> int:
    """The index after an answer of the original app, which cuts it after 100 characters.

    What follows belongs to it up to that cut, else the plain lines directly below.
    """
    text = ""
    for end, cell in enumerate(run[at:], at + 1):
        text += cell.block.raw.replace("\r\n", "\n")
        body = _ANSWER_LABEL.sub("", text).rstrip()
        if body.endswith(ELLIPSIS) and (end == at + 1 or len(body.encode("utf-16-le")) == 2 * CUT_LENGTH):
            return end
    plain = takewhile(lambda cell: cell.entry_id is not None and not cell.block.text.startswith("- "), run[at + 1 :])
    return at + 1 + sum(1 for _ in plain)


def _entry_of(cell: Cell) -> Entry:
    return Entry(str(cell.entry_id), cell.block.text, cell.block.section)


def has_days_to_compact(snapshot: Snapshot, today: date, keep_days: int) -> bool:
    """Whether the document has days more than `keep_days` before today, with whatever lines."""
    last = _first_kept_day(today, keep_days)
    days = (_day_of(section) for section in {block.section for block in snapshot.document.entries})
    return any(day is not None and day < last for day in days)


def _day_of(section: Section) -> date | None:
    return parse_day(section[-1]) if section[-2:-1] == (RECORDS,) else None


def _first_kept_day(today: date, keep_days: int) -> date:
    """No day of any calendar is before `date.min`."""
    return date.min if keep_days >= today.toordinal() else today - timedelta(days=keep_days)


def imported_text_lookup(added_events: Iterable[Event], redact: Callable[[str], str]) -> ImportedTextLookup:
    """Look up texts that imports among `added_events` recorded. `redact` works as for the log.

    An answer that the file had at the first start is the model's.
    """
    imports = (event for event in added_events if event.origin in {Origin.IMPORTED, Origin.MODEL})
    lines = {text_in(event, "entry_id"): RecordedLine.of(event) for event in imports}

    def text_of(entry: Entry) -> RecordedLine | None:
        line = lines.get(entry.entry_id)
        return line if line is not None and line.text in {entry.text, redact(entry.text)} else None

    return text_of


def compact_days(snapshot: Snapshot, days: Sequence[CompactableDay]) -> tuple[Snapshot, list[dict[str, Any]]]:
    """The document with a line for each of these days, and the payloads of the `day_folded` events."""
    payloads: list[dict[str, Any]] = []
    language = language_of(snapshot.document) or ZH
    snapshot = remove_entries(snapshot, {entry.entry_id for day in days for entry in day.entries})
    for day in days:
        entry_id = day_line_id(day.day, day.door)
        there = entry_id in snapshot.ids
        base = snapshot.text_of(entry_id) if there else None
        text = _day_line_text(day, base, language)
        if there:
            snapshot = edit_entry(snapshot, entry_id, text)
        else:
            snapshot = insert_entry(snapshot, Entry(entry_id, text, EARLIER), None)
        named = [{"id": entry.entry_id, "hash": text_hash(entry.text)} for entry in day.entries]
        payload = {"day": day.day.isoformat(), "entry_id": entry_id, "section": list(EARLIER), "text": text}
        payloads.append({**payload, "entries": named} | ({} if base is None else {"base": base}))
    return snapshot, payloads


def compacted_entry_hashes(event: Event) -> dict[str, str]:
    """The entries that a `day_folded` event removed, each with the hash of its text. Malformed items are skipped."""
    listed = event.payload.get("entries")
    hashes: dict[str, str] = {}
    for item in listed if isinstance(listed, list) else ():
        entry_id, seen = (item.get("id"), item.get("hash")) if isinstance(item, dict) else (None, None)
        if isinstance(entry_id, str) and isinstance(seen, str):
            hashes[entry_id] = seen
    return hashes


def day_line_id(day: date, door: SourceDoor = None) -> str:
    """The id of a day's line: the same on every device. That of another author than the user ends in their door."""
    entry_id = derived_entry_id("folded", day.isoformat())
    return entry_id if door is None else f"{entry_id}.{door}"


def has_lines_of_others(entry_ids: Iterable[str]) -> bool:
    """Return whether an old day of another author than the user is among these lines."""
    return _ID_OF_OTHERS.search("\n".join(entry_ids)) is not None


def folded_authorship(entry_id: str) -> Authorship | None:
    """Return the author of a day's line with this id; None for the user's and for other lines."""
    named = _ID_OF_OTHERS.search(entry_id)
    return named and authorship(DAY_FOLDED, Origin.TOOL, "", {DOOR_FIELD: named[1]})


def source_door(written: Authorship) -> SourceDoor:
    """Return the door under which what one author wrote is compacted."""
    if written.author is Author.USER:
        return None
    return Door(written.door) if written.door in OTHER_DOORS else Door.PROGRAM


def _day_line_text(compacted: CompactableDay, base: str | None, language: Language) -> str:
    words = WORDS[language]
    asked = [entry.text for entry in compacted.entries if entry.text.startswith(QUESTION_PREFIXES)]
    total = sum(split_repeat_count(text)[1] for text in asked)
    topics = _summarise_topics(asked, words.topic_separator)
    before = None if base is None else _TOTAL.search(base)
    if base is None:
        base = words.day_topics.format(day=day_label(compacted.day), topics=topics)
    elif before is None:
        base = f"{base}{words.topic_separator}{topics}"
    else:
        base, total = base[: before.start()], int(before[1] or before[2]) + total
    return base + words.day_total.format(total=total)


def _summarise_topics(questions: Iterable[str], separator: str) -> str:
    named = dict.fromkeys(summarize(question_of(split_repeat_count(text)[0]), MAX_TOPIC_LENGTH) for text in questions)
    return separator.join(list(filter(None, named))[:MAX_TOPICS])
