"""Conversations that the user asked not to save: events of other programs in them are not recorded.

The newest `session_skipped` event of a session decides; it is read in the recording transaction. Without a session id,
a pause applies to this device and ends after `sessions.idle_minutes` without a call. Every refused call, at most one a
minute, extends it, for at most a day; so does one that finds the pause in the future, because the clock was set back.
"""

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.clock import Clock, from_unix_ms, to_unix_ms
from sync.db.engine import Transaction
from sync.log.event_types import SESSION_SKIPPED
from sync.log.log import EventLog
from sync.log.model import AppendResult, Door, EventDraft, Origin
from sync.log.sessions import session_store
from sync.log.sessions.session_store import MAX_UNNAMED_PAUSE_MS, PausedSessions
from sync.redaction import Redactor

EXTEND_AFTER_MS: Final = 60_000
SAVE_AGAIN_HINT: Final = "Say 记住这个 or `save this` in this session to save it again."


class SavePauses(msgspec.Struct, frozen=True):
    """Applies the pauses of one profile to what other programs record."""

    events: EventLog
    redactor: Redactor
    clock: Clock
    idle_ms: int

    def filter_allowed(self, connection: Transaction, drafts: Sequence[EventDraft]) -> list[EventDraft]:
        """Return the drafts to record, followed by the event that extends a pause, if one is due."""
        paused = session_store.read_paused_sessions(connection, self.events.own_device_ids)
        allowed = [draft for draft in drafts if not self._is_in(paused, draft.session_id)]
        age = self._unnamed_age(paused)
        any_refused = any(not draft.session_id for draft in drafts) and age is not None and age < self.idle_ms
        extends = any_refused and age is not None and not 0 <= age < EXTEND_AFTER_MS
        return [*allowed, replace(draft_pause(None, self.redactor, on=True), door=None)] if extends else allowed

    async def warning(self) -> str | None:
        """The warning of `status` about a running pause without a session id."""
        paused = await self.events.database.read(session_store.read_paused_sessions, self.events.own_device_ids)
        age = self._unnamed_age(paused)
        if age is None or age >= self.idle_ms:
            return None
        since = self.clock.local(from_unix_ms(paused.unnamed_begun_ms)).strftime("%Y-%m-%d %H:%M")
        setter = "a program or an earlier version" if paused.unnamed_door is None else "不要保存"
        end = f"`xiaobai-memory remember 记住这个` or {self.idle_ms // 60_000} minutes without a call end it"
        return f"recording_paused: since {since}, by {setter}, for all without a session id; {end}"

    def is_paused(self, connection: Transaction, session_id: str | None) -> bool:
        """Whether nothing of a session is to be saved; without an id, of what has none."""
        return self._is_in(session_store.read_paused_sessions(connection, self.events.own_device_ids), session_id)

    def _is_in(self, paused: PausedSessions, session_id: str | None) -> bool:
        if session_id:
            return session_id in paused.session_ids
        age = self._unnamed_age(paused)
        return self.events.session_id in paused.session_ids or (age is not None and age < self.idle_ms)

    def _unnamed_age(self, paused: PausedSessions) -> int | None:
        """How long ago the pause without a session id was extended, in milliseconds; None if it is over."""
        since, now_ms = paused.unnamed_since_ms, to_unix_ms(self.clock.now())
        return None if since is None or now_ms - paused.unnamed_begun_ms > MAX_UNNAMED_PAUSE_MS else now_ms - since

    async def append_allowed(self, drafts: Sequence[EventDraft]) -> list[AppendResult]:
        """Record the drafts that are allowed; return the results."""
        recorded, _ = await self.events.append_and_count(lambda connection: self.filter_allowed(connection, drafts))
        return without_pause_extensions(recorded)


def draft_pause(session_id: str | None, redactor: Redactor, *, on: bool) -> EventDraft:
    """Build the event that starts or ends a pause, of a session or of everything without a session id."""
    about: dict[str, Any] = {"unnamed": True} if session_id is None else {"session_id": session_id}
    return EventDraft(
        type=SESSION_SKIPPED, payload=redactor.clean_payload({**about, "on": on}), origin=Origin.USER, door=Door.COMMAND
    )


def without_pause_extensions(recorded: Sequence[AppendResult]) -> list[AppendResult]:
    """Return the results without the event that extends a pause."""
    return [item for item in recorded if not (item.event.type == SESSION_SKIPPED and item.event.payload.get("unnamed"))]
