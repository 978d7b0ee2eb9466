"""What was typed on this device and comes back to a document that has never seen it, or no longer. Pure.

A memory that was taken off the device and is pulled again, a home restored from a backup, a guest's words in the
account that he turned out to have: the log brings the device's own hand edits. Each entry they name becomes what its
whole history comes to (`SharedFold`, of this device's events alone), not what the last of them says: they may arrive
in another order than they were made in, and meet what was typed here meanwhile. What was typed here stays as it was
typed where the log says the same, redacted.
"""

from collections.abc import Iterator, Sequence
from functools import cache

from sync.document.clean_up import DAY_FOLDED, folded_ids
from sync.document.deeds import MOVED, said_by, sound_section
from sync.document.draft import Draft
from sync.document.edit import entry_text, put_entry
from sync.document.entry_fold import Line
from sync.document.model import Entry, Section, Snapshot
from sync.document.overlay import Clean, as_typed
from sync.document.shared import SharedFold
from sync.log.model import Event


def returned(snapshot: Snapshot, news: Sequence[Event], fold: SharedFold, clean: Clean) -> Snapshot:
    """The document with the entries that `news` name as `fold`, that of all events of this device, has them.

    `clean` redacts. The exchanges among the events stand in `snapshot` already.
    """
    moved = {entry_id for event in news if event.type == MOVED for entry_id in _named(event)}
    back = _Back(snapshot, fold, clean)
    for entry_id in dict.fromkeys(entry_id for event in news for entry_id in _named(event)):
        for line in fold.history(entry_id):
            back.take(line, moves=line.entry_id in moved)
    return back.draft.freeze()


def _named(event: Event) -> Iterator[str]:
    if event.type == DAY_FOLDED:
        yield from folded_ids(event)
    said = said_by(event)
    if said is not None and said.entry_id:
        yield said.entry_id


class _Back:
    """The document while lines come back to it: one draft for all of them, since each reading back costs a parse."""

    def __init__(self, snapshot: Snapshot, fold: SharedFold, clean: Clean) -> None:
        self.draft = Draft(snapshot)
        self._there = set(snapshot.ids)
        self._fold = fold
        self._clean = cache(clean)

    def take(self, line: Line, *, moves: bool) -> None:
        """Make a line what it has become."""
        at = self.draft.index_of(line.entry_id) if line.entry_id in self._there else None
        here = None if at is None else self.draft.cells[at].block
        if not line.alive:
            if at is not None:
                self.draft.remove_entry(at)
                self._there.remove(line.entry_id)
            return
        text = line.text if here is None else as_typed(here.text, line.text, self._clean)
        if here is not None and at is not None and not moves and self._in_log(here.section) == line.place.section:
            if text != here.text:
                self.draft.edit(at, entry_text(text))
            return
        section, before = self._titled_here(line.place.section), self._before(line)
        if at is not None:
            self.draft.remove_entry(at)
        put_entry(self.draft, Entry(line.entry_id, text, section), before)
        self._there.add(line.entry_id)

    def _before(self, line: Line) -> str | None:
        """The nearest line before this one in the history's order that the document has."""
        before = None
        for other in self._fold.lines(line.place.section):
            if other.entry_id == line.entry_id:
                break
            if other.entry_id in self._there:
                before = other.entry_id
        return before

    def _titled_here(self, section: Section) -> Section:
        """The section as its headings read here, where they were typed."""
        sections = dict.fromkeys(cell.block.section for cell in self.draft.cells)
        return next((found for found in sections if self._in_log(found) == section), section)

    def _in_log(self, section: Section) -> Section:
        return sound_section(tuple(map(self._clean, section)))
