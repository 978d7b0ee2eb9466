"""The lines that the document events of this device make, applied in their order (`event_order`).

An edit whose base was changed by an edit that it did not know is merged by words; if that conflicts, both lines stay.
Events that an earlier version wrote for a document shared with other devices are read like all others. Events may
come from any program; one that cannot be understood changes nothing.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from sync.document.capture.day_compaction import compacted_entry_hashes
from sync.document.capture.exchange_events import (
    exchange_ids,
    is_in_document,
    lines_of_exchange,
    preference_entries_of,
    repeated_exchange_id,
)
from sync.document.markdown.edits import as_single_entry
from sync.document.markdown.entry_ids import conflict_copy_id, text_hash
from sync.document.markdown.model import Section
from sync.document.markdown.positions import normalised_section
from sync.document.markdown.repeat_suffix import increment_repeat_count
from sync.document.markdown.template import EARLIER, RECORDS
from sync.document.markdown.version_labels import day_label
from sync.document.merge.word_merge import merge_words
from sync.log.authorship import PROPOSING_DOORS
from sync.log.envelope import day_of
from sync.log.event_types import DAY_FOLDED, ENTRY_ADDED, ENTRY_EDITED, ENTRY_MOVED, ENTRY_REMOVED, EXCHANGE_RECORDED
from sync.log.model import Event

DERIVED_FROM_FACT: Final = "fact"  # `derived` in the payload of the events of a line that the program wrote
DERIVED_FROM_USE: Final = "use"  # a task or command that came often; once removed, it stays away
AT_END: Final = ""  # the id after which a line goes to the end of its section


class EntryPayload(msgspec.Struct):
    """The payload of an entry event."""

    entry_id: str = ""
    section: list[str] = []
    text: str | None = None
    after: str | None = None
    base: str | None = None
    base_hash: str | None = None
    placed: bool = False
    derived: str = ""


class OwnLine(msgspec.Struct):
    """A line, present or removed. `text` is empty if no event has added it."""

    entry_id: str
    section: Section
    text: str = ""
    is_present: bool = False
    texts: dict[str, str] = msgspec.field(default_factory=dict)  # all its texts so far, by their hashes
    derived: set[str] = msgspec.field(default_factory=set)  # the hashes of texts that only the program replaced
    copies: list[str] = msgspec.field(default_factory=list)  # the lines that conflicting edits added beside it

    def set_text(self, text: str) -> None:
        self.text, self.is_present = text, True
        self.texts[text_hash(text)] = text


def parse_entry_payload(event: Event) -> EntryPayload | None:
    """The payload of an entry event or a compacted day; None if it names no entry."""
    try:
        payload = msgspec.convert(dict(event.payload), EntryPayload)
    except msgspec.ValidationError:  # an event of another program
        return None
    return payload if payload.entry_id else None


class OwnLines:
    """All lines of one device's events. Removed lines keep their places, for the lines that follow them."""

    def __init__(self) -> None:
        self._lines: dict[str, OwnLine] = {}
        self._ordered: defaultdict[Section, list[str]] = defaultdict(list)
        self._proposed: set[str] = set()  # the lines that only programs and files have written

    def __contains__(self, entry_id: str) -> bool:
        return entry_id in self._lines

    def with_copies(self, entry_id: str) -> Sequence[OwnLine]:
        """A line and its conflict copies; nothing if no event names it."""
        line = self._lines.get(entry_id)
        return () if line is None else (line, *(self._lines[copy_id] for copy_id in line.copies))

    def ids_before(self, line: OwnLine) -> Iterator[str]:
        """The ids of the lines before one in its section, the nearest first."""
        order = self._ordered[line.section]
        return reversed(order[: order.index(line.entry_id)])

    def add(self, event: Event) -> None:
        """Apply an event that is later than all before it.

        A program or a file may add lines; it edits, moves and removes only such lines.
        """
        is_proposal = event.door in PROPOSING_DOORS and event.type != DAY_FOLDED  # this program's own, of any author
        if event.type == EXCHANGE_RECORDED:
            self._add_exchange(event)
            self._proposed.update(exchange_ids(event) if is_proposal else ())
            return
        if event.type == DAY_FOLDED:
            for entry_id, seen in compacted_entry_hashes(event).items():
                self._remove(entry_id, seen, ())
        payload = parse_entry_payload(event)
        if payload is None or (is_proposal and payload.entry_id in self and payload.entry_id not in self._proposed):
            return
        (self._proposed.add if is_proposal else self._proposed.discard)(payload.entry_id)
        section = normalised_section(tuple(payload.section))
        if event.type == ENTRY_REMOVED:
            self._remove(payload.entry_id, payload.base_hash, section)
        elif event.type == ENTRY_MOVED:
            self._move(self._named(payload.entry_id, section), section, payload.after)
        elif payload.text is not None:  # else malformed, or erased since
            self._add_text(event, payload, as_single_entry(payload.text), section)

    def _add_text(self, event: Event, payload: EntryPayload, text: str, section: Section) -> None:
        if event.type == DAY_FOLDED:
            base = None if payload.base is None else text_hash(payload.base)
            self._write(event, payload.entry_id, text, base, (EARLIER, None))
        elif payload.derived:
            self._derive(event, payload, text, section)
        elif event.type == ENTRY_ADDED:
            self._write(event, payload.entry_id, text, None, (section, payload.after))
        elif event.type == ENTRY_EDITED:
            line = self._write(event, payload.entry_id, text, payload.base_hash or "", (section, AT_END))
            if payload.placed or line.section != section:
                self._move(line, section, payload.after if payload.placed else AT_END)

    def _add_exchange(self, event: Event) -> None:
        if not is_in_document(event) or not (event.payload.get("question") or event.payload.get("answer")):
            return
        section, repeated = (RECORDS, day_label(day_of(event))), repeated_exchange_id(event)
        asked, answered = exchange_ids(event) if repeated is None else (f"{repeated}.q", f"{repeated}.a")
        question, answer = lines_of_exchange(event)
        if repeated is not None and (line := self._lines.get(asked)) is not None and line.text:
            line.set_text(increment_repeat_count(line.text))
        self._add_once(asked, question, section)
        self._add_once(answered, answer, section, asked)
        for entry in preference_entries_of(event):
            self._add_once(entry.entry_id, as_single_entry(entry.text), entry.section)

    def _add_once(self, entry_id: str, text: str, section: Section, after: str = AT_END) -> None:
        """Add a line that later mentions do not bring back after its removal."""
        if entry_id not in self._lines:
            self._named(entry_id, section, after).set_text(text)

    def _write(
        self, event: Event, entry_id: str, text: str, base_hash: str | None, place: tuple[Section, str | None]
    ) -> OwnLine:
        """Apply an addition (without `base_hash`) or an edit, which brings a removed line back. Return its line.

        An edit of a text that no event here has followed a change of another device.
        """
        known = self.with_copies(entry_id)
        line = next((one for one in known if text_hash(one.text) == base_hash), known[0] if known else None)
        if line is None or not (line.text and (line.is_present or base_hash is not None)):
            line = self._named(entry_id, *place)
            self._move(line, *place)
            line.set_text(text)
            return line
        base = line.texts.get(base_hash or "")
        if base is not None:
            merged = _merge_safely(base, line.text, text)
        else:
            merged = text if base_hash is not None or text == line.text else None
        if merged is None:
            line.is_present = True
            line = self._add_copy(line, conflict_copy_id(entry_id, event.event_id))
        line.derived.clear()
        line.set_text(text if merged is None else merged)
        return line

    def _add_copy(self, line: OwnLine, copy_id: str) -> OwnLine:
        line.copies.append(copy_id)
        return self._named(copy_id, line.section, line.entry_id)

    def _derive(self, event: Event, payload: EntryPayload, text: str, section: Section) -> None:
        """Apply what the program derived: add a line that is absent, or replace exactly the text that it knew."""
        line = self._lines.get(payload.entry_id)
        if event.type == ENTRY_EDITED:
            if line is not None and line.is_present and payload.base_hash == text_hash(line.text):
                line.derived.add(payload.base_hash)
                line.set_text(text)
        elif line is None or not (line.is_present or payload.derived == DERIVED_FROM_USE):
            self._named(payload.entry_id, section).set_text(text)

    def _remove(self, entry_id: str, base_hash: str | None, section: Section) -> None:
        """Remove a line, unless it was edited since the removed text."""
        line = self._named(entry_id, section)
        is_outdated = base_hash in line.texts and base_hash not in {text_hash(line.text), *line.derived}
        line.is_present = line.is_present and is_outdated

    def _named(self, entry_id: str, section: Section, after: str | None = AT_END) -> OwnLine:
        """The line with this id; if it is unknown, a new one without a text in this place."""
        line = self._lines.get(entry_id)
        if line is None:
            line = self._lines[entry_id] = OwnLine(entry_id, section)
            self._insert(line, after)
        return line

    def _move(self, line: OwnLine, section: Section, after: str | None) -> None:
        self._ordered[line.section].remove(line.entry_id)
        line.section = section
        self._insert(line, after)

    def _insert(self, line: OwnLine, after: str | None) -> None:
        order = self._ordered[line.section]
        anchor = self._lines.get(after) if after else None
        if after is None:
            order.insert(0, line.entry_id)
        elif anchor is None or anchor is line or anchor.section != line.section or order[-1] == after:
            order.append(line.entry_id)
        else:
            order.insert(order.index(after) + 1, line.entry_id)


def _merge_safely(base: str, ours: str, theirs: str) -> str | None:
    text = merge_words(base, ours, theirs)
    return text if text is None or text in {ours, theirs} or text == as_single_entry(text) else None
