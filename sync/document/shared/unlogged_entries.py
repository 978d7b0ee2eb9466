"""Lines of the memory file whose entries damage took away. Pure.

After the versions are lost, or the events with them, nobody knows which line is which entry. The file as it is becomes
the newest version, and its lines are held: no event says them yet. An event that comes back, from the JSONL files or
the server, names the line that says the same, instead of adding it. What is held when nothing more can come back is
recorded as imported.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from functools import lru_cache

from sync.document.erased_lines_store import normalised_line
from sync.document.markdown.model import Entry, EntryAdded, Operation, Section, Snapshot
from sync.document.shared.reducer import SharedReducer


def adopt_logged_ids(
    local: Snapshot, logged: Snapshot, reducer: SharedReducer, redact: Callable[[str], str]
) -> Snapshot:
    """The held lines of `local` under the ids that they have in `told`, what the log says by itself."""
    known = set(local.ids)
    coming = [entry for entry in logged.entries if entry.entry_id not in known]
    if not coming:
        return local
    said = lru_cache(maxsize=None)(lambda text: normalised_line(redact(text)))
    waiting = unlogged_entries(local, reducer)
    renamed: dict[str, str] = {}

    def pair(key: Callable[[Entry], Hashable]) -> None:
        free: defaultdict[Hashable, deque[str]] = defaultdict(deque)
        for entry in waiting:
            if entry.entry_id not in renamed:
                free[key(entry)].append(entry.entry_id)
        taken = set(renamed.values())
        for entry in coming:
            if entry.entry_id not in taken and (found := free.get(key(entry))):
                renamed[found.popleft()] = entry.entry_id

    pair(lambda entry: (entry.section, said(entry.text)))
    pair(lambda entry: said(entry.text))
    return Snapshot(local.document, tuple(renamed.get(entry_id, entry_id) for entry_id in local.ids))


def unlogged_entries(local: Snapshot, reducer: SharedReducer) -> list[Entry]:
    """The entries that no event speaks of."""
    return [entry for entry in local.entries if not reducer.entry_with_conflicts(entry.entry_id)]


def unlogged_additions(local: Snapshot, reducer: SharedReducer) -> tuple[Operation, ...]:
    """The held lines as what a hand would have added."""
    unknown = {entry.entry_id for entry in unlogged_entries(local, reducer)}
    last: dict[Section, str] = {}
    found: list[Operation] = []
    for entry in local.entries:
        if entry.entry_id in unknown:
            found.append(EntryAdded(entry.entry_id, last.get(entry.section), entry.section, entry.text))
        last[entry.section] = entry.entry_id
    return tuple(found)
