"""How the log becomes this device's document: the protocol, and the implementation for a document that is not shared.

`SharedProjection` (`sync.document.shared.projection`) is the other one. An own document follows the events of its
device. What was typed into it is never applied to it again; what comes back from a backup or the server is.
"""

from typing import Final, Protocol

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.db.schema import RECOVERY_STARTED
from sync.document import store
from sync.document.capture.exchange_events import apply_exchanges, draft_operation_events, repeated_exchange_id
from sync.document.markdown.language import LanguageChoice
from sync.document.markdown.model import MergePlan, Operation, Snapshot, Version
from sync.document.markdown.parse import parse
from sync.document.markdown.template import empty_document, language_of
from sync.document.markdown.version_labels import time_label
from sync.document.shared.own_history import OwnHistory
from sync.document.shared.projection import SharedChange
from sync.document.shared.restore_own_edits import restore_own_edits
from sync.document.shared.unlogged_entries import adopt_logged_ids, unlogged_additions
from sync.log import store as log_store
from sync.log.envelope import event_ms
from sync.log.event_types import DOCUMENT_EVENT_TYPES, EXCHANGE_RECORDED
from sync.log.log import EventLog
from sync.log.model import Event, EventDraft, Origin
from sync.log.projections.registry import DOCUMENT
from sync.redaction import Redactor

DOCUMENT_OFFSET: Final = DOCUMENT.name


class DocumentProjection(Protocol):
    """What the log says beyond the newest version. Everything runs inside a transaction of the caller."""

    @property
    def is_shared(self) -> bool:
        """Whether the document is built from the events of every device."""
        ...

    def reset(self) -> None:
        """Discard the reduced state; the next question reads the log again."""
        ...

    def is_behind(self, connection: Transaction, current: Version | None) -> bool:
        """Whether the log has something for the document that `current` lacks."""
        ...

    def pending_change(self, connection: Transaction, current: Version | None) -> SharedChange | None:
        """The document with everything in the log; None if `current` has it all."""
        ...

    def render_and_checkpoint(self, connection: Transaction, local: Snapshot) -> Snapshot | None:
        """The next version, rendered from the log; None if it is `local` with a footer of its own."""
        ...

    def unlogged_additions(self, connection: Transaction, local: Snapshot) -> tuple[Operation, ...]:
        """The entries that no event names, as additions."""
        ...

    def draft_edit_events(
        self, connection: Transaction, plan: MergePlan, base: Version | None, origin: Origin
    ) -> list[EventDraft]:
        """The events of a manual edit."""
        ...


class OwnProjection:
    """The projection of a document that this device does not share."""

    is_shared: Final = False

    def __init__(self, events: EventLog, redactor: Redactor, *, clock: Clock, language: LanguageChoice) -> None:
        self._log, self._clock, self._language = events, clock, language
        self._redactor = redactor.for_egress()
        self.history = OwnHistory(events, clock)

    def reset(self) -> None:
        self.history.reset()

    def is_behind(self, connection: Transaction, current: Version | None) -> bool:  # noqa: ARG002 - the protocol's
        if self._pending_events(connection):
            return True
        self.history.release_if_idle()
        return False

    def pending_change(self, connection: Transaction, current: Version | None) -> SharedChange | None:
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
            return SharedChange(apply_exchanges(local, exchanges), pending[-1].ts, pending[-1].position)
        with self.history.caught_up(connection) as reducer:
            if recovery_ms:
                from_template = apply_exchanges(snapshot_or_template(None, self._clock, self._language), exchanges)
                logged = restore_own_edits(from_template, edits, reducer, self._redactor.clean)
                local = adopt_logged_ids(local, logged, reducer, self._redactor.clean)
                exchanges = [  # the lines of earlier repeats have been adopted, with their counts
                    event for event in exchanges if repeated_exchange_id(event) is None or event_ms(event) > recovery_ms
                ]
            snapshot = restore_own_edits(apply_exchanges(local, exchanges), edits, reducer, self._redactor.clean)
        return SharedChange(snapshot, pending[-1].ts, pending[-1].position)

    def render_and_checkpoint(self, connection: Transaction, local: Snapshot) -> None:
        """A version of an own document is what was merged, not a rendering of the log."""

    def unlogged_additions(self, connection: Transaction, local: Snapshot) -> tuple[Operation, ...]:
        with self.history.caught_up(connection) as reducer:
            return unlogged_additions(local, reducer)

    def draft_edit_events(
        self,
        connection: Transaction,  # noqa: ARG002 - the protocol's
        plan: MergePlan,
        base: Version | None,  # noqa: ARG002 - the protocol's
        origin: Origin,
    ) -> list[EventDraft]:
        language = self._language.of(language_of(plan.merged.document))
        drafts, _ = draft_operation_events(plan.operations, self._redactor, origin, language)
        return drafts

    def _pending_events(self, connection: Transaction) -> list[Event]:
        offset = log_store.watermark(connection, DOCUMENT_OFFSET)
        return log_store.read_by_device(connection, self._log.device_id, after=offset, types=DOCUMENT_EVENT_TYPES)


def snapshot_or_template(current: Version | None, clock: Clock, language: LanguageChoice) -> Snapshot:
    if current is not None:
        return current.snapshot
    return Snapshot(parse(empty_document(time_label(clock.now()), language.of(None))))
