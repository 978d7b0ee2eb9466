"""Put this device's own manual edits into a document that has never had them, or no longer has them.

They come from the log when a memory is pulled again, a home is restored from a backup, or a guest's events join an
account. Each entry becomes what its whole history reduces to, since events may arrive out of order. A line typed here
stays as it was typed if the log has its redacted form.
"""

from collections.abc import Iterator, Sequence
from functools import cache

from sync.document.capture.day_compaction import compacted_entry_hashes
from sync.document.markdown.block_editor import BlockEditor
from sync.document.markdown.edits import as_single_entry, place_entry
from sync.document.markdown.model import Entry, Section, Snapshot
from sync.document.shared.entry_ops import normalised_section, parse_entry_payload
from sync.document.shared.entry_reducer import EntryState
from sync.document.shared.local_overlay import RedactText, restore_local_text
from sync.document.shared.reducer import SharedReducer
from sync.log.event_types import DAY_FOLDED, ENTRY_MOVED
from sync.log.model import Event


def restore_own_edits(
    snapshot: Snapshot, events: Sequence[Event], reducer: SharedReducer, redact: RedactText
) -> Snapshot:
    """Set the entries that `events` name to their state in `reducer`, which has all events of this device.

    `snapshot` contains the exchanges among the events already.
    """
    moved = {entry_id for event in events if event.type == ENTRY_MOVED for entry_id in _entry_ids_of(event)}
    restorer = _OwnEditRestorer(snapshot, reducer, redact)
    for entry_id in dict.fromkeys(entry_id for event in events for entry_id in _entry_ids_of(event)):
        for line in reducer.entry_with_conflicts(entry_id):
            restorer.restore(line, is_moved=line.entry_id in moved)
    return restorer.editor.to_snapshot()


def _entry_ids_of(event: Event) -> Iterator[str]:
    if event.type == DAY_FOLDED:
        yield from compacted_entry_hashes(event)
    payload = parse_entry_payload(event)
    if payload is not None and payload.entry_id:
        yield payload.entry_id


class _OwnEditRestorer:
    """One editor for all restored lines, since each snapshot costs a parse."""

    def __init__(self, snapshot: Snapshot, reducer: SharedReducer, redact: RedactText) -> None:
        self.editor = BlockEditor(snapshot)
        self._present_ids = set(snapshot.ids)
        self._reducer = reducer
        self._redact = cache(redact)

    def restore(self, line: EntryState, *, is_moved: bool) -> None:
        """Set a line to its reduced state."""
        at = self.editor.index_of(line.entry_id) if line.entry_id in self._present_ids else None
        here = None if at is None else self.editor.cells[at].block
        if not line.is_present:
            if at is not None:
                self.editor.remove_entry(at)
                self._present_ids.remove(line.entry_id)
            return
        text = line.text if here is None else restore_local_text(here.text, line.text, self._redact)
        if (
            here is not None
            and at is not None
            and not is_moved
            and self._redacted_section(here.section) == line.position.section
        ):
            if text != here.text:
                self.editor.set_text(at, as_single_entry(text))
            return
        section, before = self._local_section(line.position.section), self._preceding_entry_id(line)
        if at is not None:
            self.editor.remove_entry(at)
        place_entry(self.editor, Entry(line.entry_id, text, section), before)
        self._present_ids.add(line.entry_id)

    def _preceding_entry_id(self, line: EntryState) -> str | None:
        """The nearest line before this one, in the reduced order, that the document has."""
        before = None
        for other in self._reducer.entries_in(line.position.section):
            if other.entry_id == line.entry_id:
                break
            if other.entry_id in self._present_ids:
                before = other.entry_id
        return before

    def _local_section(self, section: Section) -> Section:
        """The section with its headings as they were typed here."""
        sections = dict.fromkeys(cell.block.section for cell in self.editor.cells)
        return next((local for local in sections if self._redacted_section(local) == section), section)

    def _redacted_section(self, section: Section) -> Section:
        return normalised_section(tuple(map(self._redact, section)))
