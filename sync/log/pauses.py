"""Conversations that a person asked not to save: what other programs say in them is not recorded.

Decisions
    The newest `session_skipped` event of a session decides. It is read in the transaction that records, so that no
    process adds to a conversation that another process has just erased.
    Without a session id there is no end that an event could name. Such a pause is of this device alone and ends by
    itself after a silence of `sessions.idle_minutes`; each call that is not recorded, at most one a minute, extends it.
    One that lies ahead of the clock, which was set back, is counted from the next such call on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from sync.clock import Clock, milliseconds
from sync.log import session_store
from sync.log.log import Log
from sync.log.model import Draft, Origin, Recorded
from sync.log.payloads import SKIPPED
from sync.redaction import Redactor

EXTEND_AFTER_MS: Final = 60_000


@dataclass(frozen=True, slots=True)
class SavePauses:
    """Applies the pauses of one profile to what other programs record."""

    events: Log
    redactor: Redactor
    clock: Clock
    idle_ms: int

    def allowed(self, connection: Connection, drafts: Sequence[Draft]) -> list[Draft]:
        """The drafts that are recorded, in order; behind them the event that extends a pause, if one is due."""
        paused = session_store.pauses(connection, self.events.device_id)
        if not paused.sessions and paused.unnamed_ms is None:
            return list(drafts)
        age = None if paused.unnamed_ms is None else milliseconds(self.clock.now()) - paused.unnamed_ms
        unnamed = age is not None and age < self.idle_ms
        process = self.events.session_id in paused.sessions
        kept = [
            draft
            for draft in drafts
            if not (draft.session_id in paused.sessions if draft.session_id else unnamed or process)
        ]
        left_out = any(not draft.session_id for draft in drafts) and unnamed
        extends = left_out and age is not None and not 0 <= age < EXTEND_AFTER_MS
        return [*kept, pause(None, self.redactor, on=True)] if extends else kept

    async def record(self, drafts: Sequence[Draft]) -> list[Recorded]:
        """Record those that are allowed, or none; what was recorded."""
        recorded, _ = await self.events.record_and_count(lambda connection: self.allowed(connection, drafts))
        return said(recorded)


def pause(session_id: str | None, redactor: Redactor, *, on: bool) -> Draft:
    """The event that begins or ends a pause; without a session, that of everything without a session id."""
    about: dict[str, Any] = {"unnamed": True} if session_id is None else {"session_id": session_id}
    return Draft(type=SKIPPED, payload=redactor.payload({**about, "on": on}), origin=Origin.USER)


def said(recorded: Sequence[Recorded]) -> list[Recorded]:
    """What was recorded without the event that extends a pause."""
    return [item for item in recorded if not (item.event.type == SKIPPED and item.event.payload.get("unnamed"))]
