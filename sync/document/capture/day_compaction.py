"""Old days of the document fold into a line each: which are due, and what is left of them. Pure.

Decisions
    When a day is old depends on the clock and on a setting of one device, so the folding is an event (`day_folded`):
    the document stays a function of the log, and devices that share one see the same. The exchanges stay in the log.
    Only what this program wrote and nobody changed is folded away: exchanges whose lines still say what their events
    say. So are imported exchanges (a question with its answer from a file that was there before) whose lines still
    say what their import recorded. Lines that were typed or edited stay under their day, however old it is.
    A line that was changed or counted elsewhere at the same moment stays: the event names what it saw. An exchange
    that arrives late for a folded day is folded into the line that stands there by then.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from hashlib import sha256
from itertools import pairwise
from typing import Any, Final

from sync.document.markdown.block_editor import BlockEditor
from sync.document.markdown.edits import edit_entry, insert_entry
from sync.document.markdown.entry_ids import derived_entry_id
from sync.document.markdown.model import Entry, Section, Snapshot
from sync.document.markdown.one_line import summarize
from sync.document.markdown.repeat_suffix import split_repeat_count
from sync.document.markdown.template import QUESTION_PREFIX, RECORDS
from sync.document.markdown.version_labels import day_label, parse_day
from sync.log.model import Event, Origin

EARLIER_SECTION: Final[Section] = (RECORDS, "更早的对话")  # below the days, the newest first
MAX_DAYS: Final = 31  # folded at a time: the first time may find years, and the writer serves `update` too
MAX_EXCHANGES_PER_DAY: Final = 200  # of one day folded at a time, so that the event stays far below its bound
MAX_TOPICS: Final = 4  # questions that the line of a day names
MAX_TOPIC_LENGTH: Final = 16

_ANSWER_PREFIXES: Final = ("- AI", "- ai")  # the original app's files have several spellings of our own mark
_TOTAL: Final = re.compile(r"（(\d{1,6}) 次对话）\Z")

ExchangeLinesLookup = Callable[[str], tuple[str, str] | None]
"""An event's id -> the two lines its exchange was written as; None where it is none, or was forgotten."""

ImportedTextLookup = Callable[[Entry], str | None]
"""An entry -> its text in the log if an import recorded it and nobody changed it since, else None."""


@dataclass(frozen=True, slots=True)
class CompactableDay:
    """A day that is due, and the untouched exchanges on it: question and answer in turn."""

    day: date
    entries: tuple[Entry, ...]


def find_compactable_days(
    snapshot: Snapshot, today: date, keep_days: int, lines_of: ExchangeLinesLookup, imported_text: ImportedTextLookup
) -> list[CompactableDay]:
    """The days more than `keep_days` before today with something to fold, the oldest first; at most `MAX_DAYS`."""
    if keep_days >= today.toordinal():
        return []  # no day of any calendar is that old
    last = today - timedelta(days=keep_days)
    found: dict[date, list[Entry]] = {}
    entries = snapshot.entries
    for asked, answered in pairwise(entries):
        day = parse_day(asked.section[-1]) if asked.section[-2:-1] == (RECORDS,) else None
        if day is None or day >= last or answered.section != asked.section:
            continue
        event_id, _, side = asked.entry_id.rpartition(".")
        if side == "q" and answered.entry_id == f"{event_id}.a":
            if lines_of(event_id) == (split_repeat_count(asked.text)[0], answered.text):
                found.setdefault(day, []).extend((asked, answered))
        elif asked.text.startswith(QUESTION_PREFIX) and answered.text.startswith(_ANSWER_PREFIXES):
            texts = imported_text(asked), imported_text(answered)
            if texts[0] is not None and texts[1] is not None:
                found.setdefault(day, []).extend((replace(asked, text=texts[0]), replace(answered, text=texts[1])))
    return [CompactableDay(day, tuple(found[day][: 2 * MAX_EXCHANGES_PER_DAY])) for day in sorted(found)[:MAX_DAYS]]


def imported_text_lookup(added_events: Iterable[Event], redact: Callable[[str], str]) -> ImportedTextLookup:
    """What the imports among events of added lines recorded. `clean` redacts, as the log did."""
    imports = (event.payload for event in added_events if event.origin == Origin.IMPORTED)
    texts = {payload.get("entry_id"): payload.get("text") for payload in imports}

    def text_of(entry: Entry) -> str | None:
        text = texts.get(entry.entry_id)
        return text if isinstance(text, str) and text in {entry.text, redact(entry.text)} else None

    return text_of


def compact_days(snapshot: Snapshot, days: Sequence[CompactableDay]) -> tuple[Snapshot, list[dict[str, Any]]]:
    """The document with a line for each of these days, and the payloads of the events that say so."""
    payloads: list[dict[str, Any]] = []
    gone = {entry.entry_id for day in days for entry in day.entries}
    snapshot = _remove_entries(snapshot, gone)
    for day in days:
        entry_id = day_line_id(day.day)
        there = entry_id in snapshot.ids
        base = snapshot.text_of(entry_id) if there else None
        text = _day_line_text(day, base)
        if there:
            snapshot = edit_entry(snapshot, entry_id, text)
        else:
            snapshot = insert_entry(snapshot, Entry(entry_id, text, EARLIER_SECTION), None)
        named = [{"id": entry.entry_id, "hash": _text_hash(entry.text)} for entry in day.entries]
        payload = {"day": day.day.isoformat(), "entry_id": entry_id, "section": list(EARLIER_SECTION), "text": text}
        payloads.append({**payload, "entries": named} | ({} if base is None else {"base": base}))
    return snapshot, payloads


def compacted_entry_hashes(event: Event) -> dict[str, str]:
    """The entries that a folded day took away, each with the hash of what was seen; another writer's may be odd."""
    listed = event.payload.get("entries")
    found: dict[str, str] = {}
    for item in listed if isinstance(listed, list) else ():
        entry_id, seen = (item.get("id"), item.get("hash")) if isinstance(item, dict) else (None, None)
        if isinstance(entry_id, str) and isinstance(seen, str):
            found[entry_id] = seen
    return found


def day_line_id(day: date) -> str:
    """The id of a day's line: the same on every device."""
    return derived_entry_id("folded", day.isoformat())


def _day_line_text(compacted: CompactableDay, base: str | None) -> str:
    asked = [entry.text for entry in compacted.entries if entry.text.startswith(QUESTION_PREFIX)]
    total = sum(split_repeat_count(text)[1] for text in asked)
    topics = _summarise_topics(asked)
    if base is None:
        return f"- {day_label(compacted.day)}：{topics}（{total} 次对话）"
    before = _TOTAL.search(base)
    if before is None:
        return f"{base}；{topics}（{total} 次对话）"
    return f"{base[: before.start()]}（{int(before[1]) + total} 次对话）"


def _summarise_topics(questions: Iterable[str]) -> str:
    named = dict.fromkeys(
        summarize(split_repeat_count(text)[0].removeprefix(QUESTION_PREFIX), MAX_TOPIC_LENGTH) for text in questions
    )
    return "；".join(list(filter(None, named))[:MAX_TOPICS])


def _remove_entries(snapshot: Snapshot, entry_ids: set[str]) -> Snapshot:
    draft = BlockEditor(snapshot)
    for at in range(len(draft.cells) - 1, -1, -1):  # from the end: what goes with an entry stands right before it
        if at < len(draft.cells) and draft.cells[at].entry_id in entry_ids:
            draft.remove_entry(at)
    return draft.to_snapshot()


def _text_hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
