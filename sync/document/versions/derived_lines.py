"""Lines that the program writes from the log beside the exchanges: the facts about the user.

Each change of such a line is an entry event with `derived`, like the events of a manual edit: other devices, the digest
and an erasure treat it as a line. Which events changed the facts last is a row of `watermarks`.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.document.erasure import erasure
from sync.document.markdown.edits import edit_entry, insert_entry, remove_entry
from sync.document.markdown.entry_ids import text_hash
from sync.document.markdown.model import Entry, EntryAdded, EntryEdited, EntryRemoved, Operation, Snapshot
from sync.document.markdown.template import PREFERENCES
from sync.document.own.own_lines import DERIVED_FROM_FACT, DERIVED_FROM_USE
from sync.log import store as log_store
from sync.log.event_types import ENTRY_ADDED, ENTRY_EDITED, ENTRY_REMOVED, FACT_TYPES, HIDING_TYPES
from sync.log.local_state import FACT_LINES_END
from sync.log.log import EventLog
from sync.log.model import EventDraft, Origin
from sync.log.projections.registry import FACT_LINES
from sync.redaction import Redactor

if TYPE_CHECKING:  # loaded when there is a fact
    from sync.document.capture.fact_lines import FactLines
    from sync.understanding.projection import FactProjection

FACT_CHANGES: Final = (*FACT_TYPES, *HIDING_TYPES)


class DerivedLines:
    """The lines of facts in one profile's document. All methods run inside a transaction of the caller."""

    def __init__(self, events: EventLog, redactor: Redactor, clock: Clock) -> None:
        self._log, self._redactor, self._clock = events, redactor, clock
        self._facts: FactProjection | None = None

    def is_behind(self, connection: Transaction) -> bool:
        """Whether facts may have changed since the newest version, or the day has come on which one is over."""
        if self._newest_change(connection) > log_store.watermark(connection, FACT_LINES.name):
            return True
        return 0 < log_store.watermark(connection, FACT_LINES_END) <= self._clock.now().date().toordinal()

    def checkpoint(self, connection: Transaction) -> None:
        """Note that the newest version has all facts."""
        log_store.set_watermark(connection, FACT_LINES.name, self._newest_change(connection), self._clock)
        end = self._lines(connection).next_end if self._has_facts(connection) else None
        log_store.set_watermark(connection, FACT_LINES_END, 0 if end is None else end.toordinal(), self._clock)

    def preview(self, connection: Transaction, snapshot: Snapshot) -> Snapshot:
        """The document with the lines that the next version will have."""
        changes = self.changes(connection, snapshot) if self.is_behind(connection) else []
        return apply_changes(snapshot, changes) if changes else snapshot

    def changes(self, connection: Transaction, snapshot: Snapshot) -> list[Operation]:
        """What the document lacks of the facts; nothing while an erasure is pending, which may name them."""
        if not self._has_facts(connection) or erasure.hides_text(connection):
            return []
        return self._lines(connection).changes(snapshot)

    def fact_drafts(self, connection: Transaction, changes: Iterable[Operation]) -> list[EventDraft]:
        """The events of changes of facts, each in the session of the newest event about the fact."""
        sources = self._lines(connection).sources
        drafts = []
        for operation in changes:
            source = sources.get(operation.entry_id)
            event = None if source is None else log_store.find_event(connection, source)
            draft = self._draft(operation, DERIVED_FROM_FACT)
            drafts.append(draft if event is None else replace(draft, session_id=event.session_id))
        return drafts

    def use_drafts(self, changes: Iterable[Operation]) -> list[EventDraft]:
        """The events of changes under 常用操作."""
        return [self._draft(operation, DERIVED_FROM_USE) for operation in changes]

    def answers(self, connection: Transaction, operations: Sequence[Operation]) -> list[EventDraft]:
        """What a manual edit says about facts: see `FactLines.answers`."""
        concerns = any(operation.section[:1] == (PREFERENCES,) for operation in operations)
        if not concerns or not self._has_facts(connection):
            return []
        return self._lines(connection).answers(operations, self._redactor)

    def _newest_change(self, connection: Transaction) -> int:
        return log_store.newest_position_of_types(connection, FACT_CHANGES)

    def _has_facts(self, connection: Transaction) -> bool:
        return log_store.newest_position_of_types(connection, FACT_TYPES) > 0

    def _lines(self, connection: Transaction) -> "FactLines":
        from sync.document.capture.fact_lines import FactLines  # noqa: PLC0415
        from sync.understanding.projection import FactProjection  # noqa: PLC0415 - when there is a fact

        self._facts = self._facts or FactProjection(lambda: self._log.own_device_ids)
        devices = self._log.own_device_ids
        today = self._clock.now().date()
        return FactLines(self._facts.read(connection), devices, today, self._redactor.clean)

    def _draft(self, operation: Operation, derived: str) -> EventDraft:
        payload: dict[str, Any] = {
            "entry_id": operation.entry_id,
            "section": list(operation.section),
            "derived": derived,
        }
        match operation:
            case EntryAdded():
                kind, fields = ENTRY_ADDED, {"text": operation.text, "after": operation.after}
            case EntryEdited():
                base = self._redactor.clean(operation.base_text)
                kind, fields = ENTRY_EDITED, {"text": operation.text, "base_hash": text_hash(base)}
            case EntryRemoved():
                kind, fields = ENTRY_REMOVED, {"base_hash": text_hash(self._redactor.clean(operation.text))}
        return EventDraft(kind, self._redactor.clean_payload(payload | fields), origin=Origin.USER)


def apply_changes(snapshot: Snapshot, operations: Iterable[Operation]) -> Snapshot:
    """The snapshot with these changes."""
    for operation in operations:
        match operation:
            case EntryAdded():
                entry = Entry(operation.entry_id, operation.text, operation.section)
                snapshot = insert_entry(snapshot, entry, operation.after)
            case EntryEdited():
                snapshot = edit_entry(snapshot, operation.entry_id, operation.text)
            case EntryRemoved():
                snapshot = remove_entry(snapshot, operation.entry_id)
    return snapshot
