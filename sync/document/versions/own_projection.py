"""How the log becomes this device's document.

The document follows the events of its device. What was typed into it is never applied to it again; what comes back
from a backup or the server is. Everything runs inside a transaction of the caller.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.db.schema import RECOVERY_STARTED
from sync.document import store
from sync.document.capture.exchange_events import apply_exchanges, repeated_exchange_id
from sync.document.markdown.model import Operation, Snapshot, Version
from sync.document.markdown.parse import parse
from sync.document.markdown.template import empty_document
from sync.document.markdown.version_labels import time_label
from sync.document.own.own_history import OwnHistory
from sync.document.own.own_lines import OwnLines
from sync.document.own.restore_own_edits import restore_own_edits
from sync.document.own.unlogged_entries import adopt_logged_ids, unlogged_additions
from sync.log import store as log_store
from sync.log.envelope import event_ms
from sync.log.event_types import DOCUMENT_EVENT_TYPES, EXCHANGE_RECORDED
from sync.log.log import EventLog
from sync.log.model import Event
from sync.log.projections.registry import DOCUMENT
from sync.redaction import Redactor
from sync.texts.language import LanguageChoice

DOCUMENT_OFFSET: Final = DOCUMENT.name


class PendingChange(msgspec.Struct, frozen=True):
    """The document with events beyond the newest version, the time of the newest one, and the log position."""

    snapshot: Snapshot
    ts: str
    position: int


class OwnProjection:
    """What the log says beyond the newest version."""

    def __init__(self, events: EventLog, redactor: Redactor, *, clock: Clock, language: LanguageChoice) -> None:
        self._log, self._clock, self._language = events, clock, language
        self._redactor = redactor.for_egress()
        self.history = OwnHistory(events, clock)

    def is_behind(self, connection: Transaction) -> bool:
        """Whether the log has something for the document that the newest version lacks."""
        if self._pending_events(connection):
            return True
        self.history.release_if_idle()
        return False

    def pending_change(self, connection: Transaction, current: Version | None) -> PendingChange | None:
        """The document with everything in the log; None if `current` has it all."""
        pending = self._pending_events(connection)
        if not pending:
            return None
        exchanges = store.unredacted(connection, [event for event in pending if event.type == EXCHANGE_RECORDED])
        edits = [event for event in pending if event.type != EXCHANGE_RECORDED]
        local, recovery_ms = (
            snapshot_or_template(current, self._clock, self._language),
            log_store.watermark(connection, RECOVERY_STARTED),
        )
        if not edits and not recovery_ms:
            return PendingChange(apply_exchanges(local, exchanges), pending[-1].ts, pending[-1].position)
        with self.history.caught_up(connection) as lines:
            if recovery_ms:
                local = self._with_logged_ids(local, exchanges, edits, lines)
                exchanges = [  # the lines of earlier repeats have been adopted, with their counts
                    event for event in exchanges if repeated_exchange_id(event) is None or event_ms(event) > recovery_ms
                ]
            snapshot = restore_own_edits(apply_exchanges(local, exchanges), edits, lines, self._redactor.clean)
        return PendingChange(snapshot, pending[-1].ts, pending[-1].position)

    def with_logged_ids(self, connection: Transaction, local: Snapshot) -> Snapshot:
        """A document that the log follows from its first event, with the ids of the lines that events name."""
        pending = self._pending_events(connection)
        exchanges = [event for event in pending if event.type == EXCHANGE_RECORDED]
        edits = [event for event in pending if event.type != EXCHANGE_RECORDED]
        with self.history.caught_up(connection) as lines:
            return self._with_logged_ids(local, exchanges, edits, lines)

    def _with_logged_ids(
        self, local: Snapshot, exchanges: Sequence[Event], edits: Sequence[Event], lines: OwnLines
    ) -> Snapshot:
        from_template = apply_exchanges(snapshot_or_template(None, self._clock, self._language), exchanges)
        logged = restore_own_edits(from_template, edits, lines, self._redactor.clean)
        return adopt_logged_ids(local, logged, lines, self._redactor.clean)

    def unlogged_additions(self, connection: Transaction, local: Snapshot) -> tuple[Operation, ...]:
        """The entries that no event names, as additions."""
        with self.history.caught_up(connection) as lines:
            return unlogged_additions(local, lines)

    def _pending_events(self, connection: Transaction) -> list[Event]:
        offset = log_store.watermark(connection, DOCUMENT_OFFSET)
        return log_store.read_by_device(connection, self._log.device_id, after=offset, types=DOCUMENT_EVENT_TYPES)


def snapshot_or_template(current: Version | None, clock: Clock, language: LanguageChoice) -> Snapshot:
    if current is not None:
        return current.snapshot
    return Snapshot(parse(empty_document(time_label(clock.now()), language.of(None))))
