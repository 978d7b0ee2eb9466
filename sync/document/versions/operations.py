"""Apply the operations of another surface to the document, whose layout is not that surface's. Pure."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from sync.document.markdown.edits import edit_entry, insert_entry, remove_entry
from sync.document.markdown.model import (
    Entry,
    EntryAdded,
    EntryEdited,
    EntryRemoved,
    MergePlan,
    Operation,
    Snapshot,
    Version,
)

AT_END: Final = ""  # the entry id behind which a line is inserted at the end of its section


def adapt_to_layout(planned: MergePlan, base: Version | None, current: Version | None) -> MergePlan:
    """A plan for another surface: a line moves here only if the edit moved it there."""
    base_sections = {entry.entry_id: entry.section for entry in base.snapshot.entries} if base else {}
    observed_sections = {entry.entry_id: entry.section for entry in planned.observed.entries}
    current_entries = {entry.entry_id: entry for entry in current.snapshot.entries} if current else {}

    def adapt(operation: Operation) -> Operation | None:
        entry = current_entries.get(operation.entry_id)
        if not isinstance(operation, EntryEdited) or entry is None:
            return operation
        section = observed_sections.get(operation.entry_id)
        is_moved = section is not None and base_sections.get(operation.entry_id, section) != section
        edit = operation if is_moved else replace(operation, section=entry.section)
        return edit if (edit.text, edit.section) != (entry.text, entry.section) else None

    adapted = (adapt(operation) for operation in planned.operations)
    return replace(planned, operations=tuple(operation for operation in adapted if operation is not None))


def apply_operations(snapshot: Snapshot, operations: Sequence[Operation]) -> Snapshot:
    """The snapshot with these operations. An entry that was removed here and edited there comes back."""
    for operation in operations:
        exists = operation.entry_id in snapshot.ids
        match operation:
            case EntryAdded() if not exists:
                entry = Entry(operation.entry_id, operation.text, operation.section)
                snapshot = insert_entry(snapshot, entry, operation.after)
            case EntryEdited() if exists:
                snapshot = _apply_edit(snapshot, operation)
            case EntryEdited():
                snapshot = insert_entry(snapshot, Entry(operation.entry_id, operation.text, operation.section), None)
            case EntryRemoved() if exists:
                snapshot = remove_entry(snapshot, operation.entry_id)
            case _:
                continue  # added or removed on both sides
    return snapshot


def _apply_edit(snapshot: Snapshot, edit: EntryEdited) -> Snapshot:
    """The entry with its new text; if its section changed, as the last entry there."""
    (entry,) = (entry for entry in snapshot.entries if entry.entry_id == edit.entry_id)
    if entry.section == edit.section:
        return edit_entry(snapshot, edit.entry_id, edit.text)
    return insert_entry(
        remove_entry(snapshot, edit.entry_id), replace(entry, text=edit.text, section=edit.section), AT_END
    )
