"""Sessions for other programs: their metadata, their list, and the end of abandoned ones.

The sidecar stores the ids of sessions that began through it in a small file; the next sidecar ends them. Any other
session of this device ends after `sessions.idle_minutes` without an event. If the file is lost, so do those in it.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.clock import Clock, to_unix_ms
from sync.db.engine import Transaction
from sync.errors import InvalidInput, StorageError
from sync.log.envelope import check_name
from sync.log.event_types import SESSION_END_TYPES, SESSION_META, SESSION_STARTED
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import AppendResult, Door, EventDraft
from sync.log.sessions import session_store
from sync.log.sessions.model import (
    ENDED_BY_CUT_OFF,
    ENDED_BY_IDLE_TIME,
    RESERVED_META_FIELDS,
    Session,
    draft_session_end,
)
from sync.redaction import Redactor
from sync.system.files import read_once, write_private

IDLE_CHECK_INTERVAL: Final = 60.0  # seconds
STARTUP_DELAY: Final = 0.5  # seconds; the first answer comes first
MAX_LISTED: Final = 1_000
MAX_SAVED_OPEN: Final = 1_000  # open sessions of one sidecar
DAY_MS: Final = 86_400_000

log = logging.getLogger(__name__)


class SessionListFilter(msgspec.Struct, forbid_unknown_fields=True):
    """The filter of `session-meta list`."""

    project_id: str | None = None
    days: float | None = None
    limit: int = MAX_LISTED


class SessionUpsertResult(msgspec.Struct, frozen=True):
    """A session after an upsert. `recorded` is false if nothing was new."""

    session: Session
    event_id: str | None
    recorded: bool


class SessionTracker:
    """The sessions of one profile's log. A sidecar stores the ids of its open ones in `open_sessions_file`."""

    def __init__(
        self,
        events: EventLog,
        intake: DraftBuilder,
        redactor: Redactor,
        *,
        open_sessions_file: Path,
        clock: Clock,
        idle_minutes: float,
    ) -> None:
        self._log = events
        self._intake = intake
        self._redactor = redactor.for_egress()
        self._open_sessions_file = open_sessions_file
        self._clock = clock
        self._idle_ms = int(idle_minutes * 60_000)
        self._open_ids: set[str] = set()

    async def upsert(self, value: object) -> SessionUpsertResult:
        """Record metadata of a session: title, tags, summary, any field. Known values record nothing. InvalidInput."""
        if not isinstance(value, Mapping):
            raise InvalidInput("a session's meta is a JSON object", field="meta")
        session_id = value.get("session_id")
        if not isinstance(session_id, str):
            raise InvalidInput("session_id is missing: it names the session", field="session_id")
        check_name(session_id, field="session_id")
        known = await self._find(session_id)
        project = {name: value[name] for name in ("project_id", "project_path") if value.get(name) is not None}
        if not project and known is not None:
            project = {"project_id": known.span.project_id, "project_path": known.span.project_path}
        payload = {name: item for name, item in value.items() if name not in RESERVED_META_FIELDS}
        event = {"type": SESSION_META, "session_id": session_id, "payload": payload, **project}
        draft = replace(self._intake.build(event, ids_are_known=known is not None), door=Door.PROGRAM)
        new_meta = {name: item for name, item in draft.payload.value.items() if item is not None}
        if known is not None and {**known.meta, **new_meta} == known.meta:
            return SessionUpsertResult(known, None, recorded=False)

        def build_allowed(connection: Transaction) -> list[EventDraft]:
            paused = session_store.read_paused_sessions(connection, self._log.own_device_ids).session_ids
            return [] if session_id in paused else [draft]

        recorded, _ = await self._log.append_and_count(build_allowed)
        if not recorded:
            hint = "Say 记住这个 or `save this` in this session to save it again."
            raise InvalidInput("this conversation is not to be saved", field="session_id", hint=hint)
        session = await self._find(session_id)
        assert session is not None  # it was recorded two lines above
        return SessionUpsertResult(session, recorded[0].event.event_id, recorded=True)

    async def list_sessions(self, value: Mapping[str, Any]) -> list[Session]:
        """Return the sessions of a project, or of all, active in the last `days`; newest first. InvalidInput."""
        try:
            list_filter = msgspec.convert(dict(value), SessionListFilter)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"the filter is wrong: {error}", field="filter") from None
        if list_filter.days is not None and not 0 < list_filter.days <= 36_525:
            raise InvalidInput("days is a number above 0, 36525 at most", field="days")
        if list_filter.limit < 1:
            raise InvalidInput("limit is at least 1", field="limit")
        since = None if list_filter.days is None else to_unix_ms(self._clock.now()) - int(list_filter.days * DAY_MS)
        limit = min(list_filter.limit, MAX_LISTED)
        return await self._log.database.read(
            session_store.list_sessions, self._log.own_device_ids, list_filter.project_id, since, limit
        )

    async def track(self, recorded: Sequence[AppendResult]) -> None:
        """Store which sessions begin and end through this sidecar, before the caller gets its answer."""
        before = set(self._open_ids)
        for item in recorded:
            if item.event.type == SESSION_STARTED and not item.duplicate:
                self._open_ids.add(item.event.session_id)
            elif item.event.type in SESSION_END_TYPES:
                self._open_ids.discard(item.event.session_id)
        if self._open_ids != before:
            await asyncio.to_thread(self._save_open_ids, sorted(self._open_ids)[:MAX_SAVED_OPEN])

    async def run(self) -> None:
        """End the sessions that the previous sidecar left open, then idle ones, until cancelled."""
        left_open = await asyncio.to_thread(self._load_open_ids)
        await asyncio.sleep(STARTUP_DELAY)
        await self.end(left_open - self._open_ids, ENDED_BY_CUT_OFF)
        while True:
            seen = self._log.changed.count
            await self.end_idle()
            await asyncio.sleep(IDLE_CHECK_INTERVAL)
            if self._log.changed.count == seen and not await self._open_sessions():
                await self._log.changed.wait_for_change(seen)

    async def end_idle(self) -> list[str]:
        """End this device's idle sessions; return their ids.

        The time of recording counts: a session of past days may be appended in several batches.
        """
        now = to_unix_ms(self._clock.now())
        idle = [session for session in await self._open_sessions() if now - session.span.recorded_ms >= self._idle_ms]
        return await self._end(idle, ENDED_BY_IDLE_TIME)

    async def end(self, session_ids: set[str], reason: str) -> list[str]:
        """End those of these sessions that are open; return their ids."""
        return await self._end(
            [session for session in await self._open_sessions() if session.span.session_id in session_ids], reason
        )

    async def _end(self, sessions: Sequence[Session], reason: str) -> list[str]:
        if not sessions:
            return []
        recorded = await self._log.append([draft_session_end(session, reason, self._redactor) for session in sessions])
        await self.track(recorded)
        log.info("%d sessions ended (%s)", len(sessions), reason)
        return [session.span.session_id for session in sessions]

    async def _open_sessions(self) -> list[Session]:
        device_id = self._log.device_id
        return await self._log.database.read(session_store.open_sessions, device_id)

    async def _find(self, session_id: str) -> Session | None:
        sessions = await self._log.database.read(session_store.read_sessions, [session_id], self._log.own_device_ids)
        return sessions[0] if sessions else None

    def _save_open_ids(self, session_ids: Sequence[str]) -> None:
        write_private(self._open_sessions_file, json.dumps(session_ids).encode() + b"\n")

    def _load_open_ids(self) -> set[str]:
        try:
            probe = read_once(self._open_sessions_file)
            ids = json.loads(probe.data) if probe else []
        except (StorageError, ValueError):
            return set()
        return {name for name in ids if isinstance(name, str)} if isinstance(ids, list) else set()
