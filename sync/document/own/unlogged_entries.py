"""Lines of the memory file whose events were lost through damage.

After recovery the file as it is becomes the newest version, and no event names its lines. Events that come back, from
JSONL files or the server, adopt lines with the same text instead of adding them. Lines that no event names in the
end are recorded as imported.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Hashable
from functools import lru_cache

from sync.document.erased_lines_store import normalised_line
from sync.document.markdown.model import Entry, EntryAdded, Operation, Section, Snapshot
from sync.document.own.own_lines import OwnLines


def adopt_logged_ids(local: Snapshot, logged: Snapshot, lines: OwnLines, redact: Callable[[str], str]) -> Snapshot:
    """Give unlogged lines of `local` the ids of equal lines in `logged`, the document by the log alone."""
    present = set(local.ids)
    missing = [entry for entry in logged.entries if entry.entry_id not in present]
    if not missing:
        return local
    normalise = lru_cache(maxsize=None)(lambda text: normalised_line(redact(text)))
    unlogged = unlogged_entries(local, lines)
    renamed: dict[str, str] = {}

    def pair(key: Callable[[Entry], Hashable]) -> None:
        free: defaultdict[Hashable, deque[str]] = defaultdict(deque)
        for entry in unlogged:
            if entry.entry_id not in renamed:
                free[key(entry)].append(entry.entry_id)
        adopted = set(renamed.values())
        for entry in missing:
            if entry.entry_id not in adopted and (candidates := free.get(key(entry))):
                renamed[candidates.popleft()] = entry.entry_id

    pair(lambda entry: (entry.section, normalise(entry.text)))
    pair(lambda entry: normalise(entry.text))
    return Snapshot(local.document, tuple(renamed.get(entry_id, entry_id) for entry_id in local.ids))


def unlogged_entries(local: Snapshot, lines: OwnLines) -> list[Entry]:
    """The entries that no event names."""
    return [entry for entry in local.entries if entry.entry_id not in lines]


def unlogged_additions(local: Snapshot, lines: OwnLines) -> tuple[Operation, ...]:
    """The unlogged lines as additions of a manual edit."""
    unknown = {entry.entry_id for entry in unlogged_entries(local, lines)}
    last: dict[Section, str] = {}
    additions: list[Operation] = []
    for entry in local.entries:
        if entry.entry_id in unknown:
            additions.append(EntryAdded(entry.entry_id, last.get(entry.section), entry.section, entry.text))
        last[entry.section] = entry.entry_id
    return tuple(additions)
