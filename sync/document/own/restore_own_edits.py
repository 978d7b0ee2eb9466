"""Put this device's own manual edits into a document that has never had them, or no longer has them.

They come from the log when a memory is pulled again, a home is restored from a backup, or a guest's events join an
account. Each entry becomes what its whole history says, since events may arrive out of order. A line typed here stays
as it was typed if the log has its redacted form.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final

from sync.document.capture.day_compaction import compacted_entry_hashes
from sync.document.capture.exchange_events import is_too_large_for_event
from sync.document.markdown.block_editor import BlockEditor
from sync.document.markdown.edits import as_single_entry, place_entry
from sync.document.markdown.model import Entry, Section, Snapshot
from sync.document.markdown.positions import normalised_section
from sync.document.own.own_lines import OwnLine, OwnLines, parse_entry_payload
from sync.log.event_types import DAY_FOLDED
from sync.log.model import Event

RedactText = Callable[[str], str]

_PLACEHOLDER: Final = re.compile(r"\[[^\[\]]{1,20}\]")


def restore_own_edits(snapshot: Snapshot, events: Sequence[Event], lines: OwnLines, redact: RedactText) -> Snapshot:
    """Set the entries that `events` name to their state in `lines`, which have all events of this device.

    `snapshot` contains the exchanges among the events already.
    """
    restorer = _OwnEditRestorer(snapshot, lines, redact)
    for entry_id in dict.fromkeys(entry_id for event in events for entry_id in _entry_ids_of(event)):
        for line in lines.with_copies(entry_id):
            restorer.restore(line)
    return restorer.editor.to_snapshot()


def _entry_ids_of(event: Event) -> Iterator[str]:
    if event.type == DAY_FOLDED:
        yield from compacted_entry_hashes(event)
    payload = parse_entry_payload(event)
    if payload is not None:
        yield payload.entry_id


class _OwnEditRestorer:
    """One editor for all restored lines, since each snapshot costs a parse."""

    def __init__(self, snapshot: Snapshot, lines: OwnLines, redact: RedactText) -> None:
        self.editor = BlockEditor(snapshot)
        self._present_ids = set(snapshot.ids)
        self._lines = lines
        self._redact = cache(redact)

    def restore(self, line: OwnLine) -> None:
        """Set a line to its state in the log."""
        at = self.editor.index_of(line.entry_id) if line.entry_id in self._present_ids else None
        here = None if at is None else self.editor.cells[at].block
        if not line.is_present:
            if at is not None:
                self.editor.remove_entry(at)
                self._present_ids.remove(line.entry_id)
            return
        text = line.text if here is None else restore_local_text(here.text, line.text, self._redact)
        if here is not None and at is not None and self._redacted_section(here.section) == line.section:
            if text != here.text:
                self.editor.set_text(at, as_single_entry(text))
            return
        before = next((other for other in self._lines.ids_before(line) if other in self._present_ids), None)
        if at is not None:
            self.editor.remove_entry(at)
        place_entry(self.editor, Entry(line.entry_id, text, self._local_section(line.section)), before)
        self._present_ids.add(line.entry_id)

    def _local_section(self, section: Section) -> Section:
        """The section with its headings as they were typed here."""
        sections = dict.fromkeys(cell.block.section for cell in self.editor.cells)
        return next((local for local in sections if self._redacted_section(local) == section), section)

    def _redacted_section(self, section: Section) -> Section:
        return normalised_section(tuple(map(self._redact, section)))


def restore_local_text(raw: str, logged: str, redact: RedactText) -> str:
    """The line as this device shows it: the text in the log with the values that were typed here."""
    cleaned = redact(raw)
    if cleaned == logged or is_too_large_for_event(cleaned):
        return raw
    values = _values_by_placeholder(raw, cleaned)
    restored = _PLACEHOLDER.sub(lambda match: values[match[0]].pop(0) if values.get(match[0]) else match[0], logged)
    return restored if redact(restored) == logged else logged


def _values_by_placeholder(raw: str, redacted: str) -> dict[str, list[str]]:
    """The values behind each kind of placeholder, from left to right."""
    marks = _PLACEHOLDER.findall(redacted)
    pattern = "(.+?)".join(re.escape(part) for part in _PLACEHOLDER.split(redacted))
    match = re.fullmatch(pattern, raw, re.DOTALL) if marks else None
    values: defaultdict[str, list[str]] = defaultdict(list)
    for mark, value in zip(marks, match.groups() if match else (), strict=False):
        values[mark].append(value)
    return values
