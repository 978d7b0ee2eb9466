"""Conversations that the user asked not to save: events of other programs in them are not recorded.

The newest `session_skipped` event of a session decides; it is read in the recording transaction. Without a session id,
a pause applies to this device and ends after `sessions.idle_minutes` without a call. Every refused call, at most one a
minute, extends it; so does one that finds the pause in the future, because the clock was set back.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sync.clock import Clock, to_unix_ms
from sync.db.engine import Transaction
from sync.log.event_types import SESSION_SKIPPED
from sync.log.log import EventLog
from sync.log.model import AppendResult, EventDraft, Origin
from sync.log.sessions import session_store
from sync.redaction import Redactor

EXTEND_AFTER_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class SavePauses:
    """Applies the pauses of one profile to what other programs record."""

    events: EventLog
    redactor: Redactor
    clock: Clock
    idle_ms: int

    def filter_allowed(self, connection: Transaction, drafts: Sequence[EventDraft]) -> list[EventDraft]:
        """Return the drafts to record, followed by the event that extends a pause, if one is due."""
        paused = session_store.read_paused_sessions(connection, self.events.device_id)
        if not paused.session_ids and paused.unnamed_since_ms is None:
            return list(drafts)
        age = None if paused.unnamed_since_ms is None else to_unix_ms(self.clock.now()) - paused.unnamed_since_ms
        unnamed = age is not None and age < self.idle_ms
        process = self.events.session_id in paused.session_ids
        allowed = [
            draft
            for draft in drafts
            if not (draft.session_id in paused.session_ids if draft.session_id else unnamed or process)
        ]
        any_refused = any(not draft.session_id for draft in drafts) and unnamed
        extends = any_refused and age is not None and not 0 <= age < EXTEND_AFTER_MS
        return [*allowed, draft_pause(None, self.redactor, on=True)] if extends else allowed

    async def append_allowed(self, drafts: Sequence[EventDraft]) -> list[AppendResult]:
        """Record the drafts that are allowed; return the results."""
        recorded, _ = await self.events.append_and_count(lambda connection: self.filter_allowed(connection, drafts))
        return without_pause_extensions(recorded)


def draft_pause(session_id: str | None, redactor: Redactor, *, on: bool) -> EventDraft:
    """Build the event that starts or ends a pause, of a session or of everything without a session id."""
    about: dict[str, Any] = {"unnamed": True} if session_id is None else {"session_id": session_id}
    return EventDraft(type=SESSION_SKIPPED, payload=redactor.clean_payload({**about, "on": on}), origin=Origin.USER)


def without_pause_extensions(recorded: Sequence[AppendResult]) -> list[AppendResult]:
    """Return the results without the event that extends a pause."""
    return [item for item in recorded if not (item.event.type == SESSION_SKIPPED and item.event.payload.get("unnamed"))]
