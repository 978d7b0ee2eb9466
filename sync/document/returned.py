"""What was typed on this device and comes back to a document that has never seen it, or no longer. Pure.

A memory that was taken off the device and is pulled again, a home restored from a backup, a guest's words in the
account that he turned out to have: the log brings the device's own hand edits. Each entry they name becomes what its
whole history comes to (`SharedFold`, of this device's events alone), not what the last of them says: they may arrive
in another order than they were made in, and meet what was typed here meanwhile. What was typed here stays as it was
typed where the log says the same, redacted.
"""

from collections.abc import Iterable, Iterator, Sequence

from sync.document.clean_up import DAY_FOLDED, folded_ids
from sync.document.deeds import MOVED, said_by, sound_section
from sync.document.edit import edit_entry, insert_entry, remove_entry
from sync.document.entry_fold import Line
from sync.document.model import Entry, Section, Snapshot
from sync.document.overlay import Clean, as_typed
from sync.document.shared import SharedFold
from sync.log.model import Event


def returned(snapshot: Snapshot, news: Sequence[Event], past: Iterable[Event], clean: Clean) -> Snapshot:
    """The document with the entries that `news` name as `past`, all events of this device, have left them.

    `clean` redacts. The exchanges among the events stand in `snapshot` already.
    """
    fold = SharedFold()
    for event in past:
        fold.add(event)
    moved = {entry_id for event in news if event.type == MOVED for entry_id in _named(event)}
    for entry_id in dict.fromkeys(entry_id for event in news for entry_id in _named(event)):
        for line in fold.history(entry_id):
            snapshot = _as_folded(snapshot, line, fold, clean, moves=line.entry_id in moved)
    return snapshot


def _named(event: Event) -> Iterator[str]:
    if event.type == DAY_FOLDED:
        yield from folded_ids(event)
    said = said_by(event)
    if said is not None and said.entry_id:
        yield said.entry_id


def _as_folded(snapshot: Snapshot, line: Line, fold: SharedFold, clean: Clean, *, moves: bool) -> Snapshot:
    if not line.alive:
        return remove_entry(snapshot, line.entry_id)
    here = next((entry for entry in snapshot.entries if entry.entry_id == line.entry_id), None)
    text = line.text if here is None else as_typed(here.text, line.text, clean)
    if here is not None and not moves and _in_log(here.section, clean) == line.place.section:
        return snapshot if text == here.text else edit_entry(snapshot, line.entry_id, text)
    section = _titled_here(snapshot, line.place.section, clean)
    before = _before(line, fold, snapshot)
    return insert_entry(remove_entry(snapshot, line.entry_id), Entry(line.entry_id, text, section), before)


def _before(line: Line, fold: SharedFold, snapshot: Snapshot) -> str | None:
    """The nearest line before this one in the history's order that the document has."""
    before = None
    for other in fold.lines(line.place.section):
        if other.entry_id == line.entry_id:
            break
        if other.entry_id in snapshot.ids:
            before = other.entry_id
    return before


def _titled_here(snapshot: Snapshot, section: Section, clean: Clean) -> Section:
    """The section as its headings read here, where they were typed."""
    sections = dict.fromkeys(block.section for block in snapshot.document.blocks)
    return next((found for found in sections if _in_log(found, clean) == section), section)


def _in_log(section: Section, clean: Clean) -> Section:
    return sound_section(tuple(map(clean, section)))
