"""Sessions as other programs use them: their meta, their list, and the end of those that were cut off.

Decisions
    A session that began through a sidecar is over with it: the next one finds its id in a small file beside the
    database and ends it. All others end when nothing was said in them for `sessions.idle_minutes`, whoever began them.
    Only this device's sessions are ended here; another device ends its own.
    The file holds ids only and nothing depends on it: where it is lost, its sessions end by their idle time.
"""

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.clock import Clock, to_unix_ms
from sync.db.engine import Transaction
from sync.errors import InvalidInput, StorageError
from sync.log.envelope import check_name
from sync.log.event_types import SESSION_END_TYPES, SESSION_META, SESSION_STARTED
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import AppendResult, EventDraft
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

IDLE_CHECK_INTERVAL: Final = 60.0  # seconds between looks for sessions in which nothing is said any more
STARTUP_DELAY: Final = 0.5  # seconds; the first answer comes before
MAX_LISTED: Final = 1_000
MAX_SAVED_OPEN: Final = 1_000  # sessions of one sidecar that may be open at once
DAY_MS: Final = 86_400_000

log = logging.getLogger(__name__)


class SessionListFilter(msgspec.Struct, forbid_unknown_fields=True):
    """What `session-meta list` may be asked (seed 002 §5.3)."""

    project_id: str | None = None
    days: float | None = None
    limit: int = MAX_LISTED


@dataclass(frozen=True, slots=True)
class SessionUpsertResult:
    """A session after something was said of it. `recorded` is false where that was known."""

    session: Session
    event_id: str | None
    recorded: bool


class SessionTracker:
    """The sessions of one profile's log. `noted`: where a sidecar keeps the ids of those that began through it."""

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
        """Say something of a session: title, tags, summary, anything. The same again records nothing. InvalidInput."""
        if not isinstance(value, Mapping):
            raise InvalidInput("a session's meta is a JSON object", field="meta")
        session_id = value.get("session_id")
        if not isinstance(session_id, str):
            raise InvalidInput("session_id is missing: it names the session", field="session_id")
        check_name(session_id, field="session_id")
        known = await self._find(session_id)
        place = {name: value[name] for name in ("project_id", "project_path") if value.get(name) is not None}
        if not place and known is not None:
            place = {"project_id": known.span.project_id, "project_path": known.span.project_path}
        said = {name: item for name, item in value.items() if name not in RESERVED_META_FIELDS}
        given = {"type": SESSION_META, "session_id": session_id, "payload": said, **place}
        draft = self._intake.build(given, ids_are_known=known is not None)
        told = {name: item for name, item in draft.payload.value.items() if item is not None}
        if known is not None and {**known.meta, **told} == known.meta:
            return SessionUpsertResult(known, None, recorded=False)

        def allowed(connection: Transaction) -> list[EventDraft]:
            paused = session_store.read_paused_sessions(connection, self._log.device_id).session_ids
            return [] if session_id in paused else [draft]

        recorded, _ = await self._log.append_and_count(allowed)
        if not recorded:
            hint = "Say 记住这个 or `save this` in this session to save it again."
            raise InvalidInput("this conversation is not to be saved", field="session_id", hint=hint)
        found = await self._find(session_id)
        assert found is not None  # it was recorded two lines above
        return SessionUpsertResult(found, recorded[0].event.event_id, recorded=True)

    async def list_sessions(self, value: Mapping[str, Any]) -> list[Session]:
        """Sessions of a project, or of all, in which something was said in so many days; newest first. InvalidInput."""
        try:
            asked = msgspec.convert(dict(value), SessionListFilter)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"the filter is wrong: {error}", field="filter") from None
        if asked.days is not None and not 0 < asked.days <= 36_525:
            raise InvalidInput("days is a number above 0, 36525 at most", field="days")
        if asked.limit < 1:
            raise InvalidInput("limit is at least 1", field="limit")
        since = None if asked.days is None else to_unix_ms(self._clock.now()) - int(asked.days * DAY_MS)
        limit = min(asked.limit, MAX_LISTED)
        return await self._log.database.read(
            lambda connection: session_store.list_sessions(
                connection, project_id=asked.project_id, since_ms=since, limit=limit
            )
        )

    async def track(self, recorded: Sequence[AppendResult]) -> None:
        """Note which sessions begin and end through this sidecar, before the caller is told that they do."""
        before = set(self._open_ids)
        for item in recorded:
            if item.event.type == SESSION_STARTED and not item.duplicate:
                self._open_ids.add(item.event.session_id)
            elif item.event.type in SESSION_END_TYPES:
                self._open_ids.discard(item.event.session_id)
        if self._open_ids != before:
            await asyncio.to_thread(self._save_open_ids, sorted(self._open_ids)[:MAX_SAVED_OPEN])

    async def run(self) -> None:
        """End what the sidecar before this one left open, then whatever falls idle, until cancelled."""
        left = await asyncio.to_thread(self._load_open_ids)
        await asyncio.sleep(STARTUP_DELAY)
        await self.end(left - self._open_ids, ENDED_BY_CUT_OFF)
        while True:
            seen = self._log.changed.count
            await self.end_idle()
            await asyncio.sleep(IDLE_CHECK_INTERVAL)
            if self._log.changed.count == seen and not await self._open_sessions():
                await self._log.changed.wait_for_change(seen)

    async def end_idle(self) -> list[str]:
        """End this device's sessions in which nothing was recorded for long; their ids.

        By the time of recording: a session of past days may be appended in several batches.
        """
        now = to_unix_ms(self._clock.now())
        idle = [session for session in await self._open_sessions() if now - session.span.recorded_ms >= self._idle_ms]
        return await self._end(idle, ENDED_BY_IDLE_TIME)

    async def end(self, session_ids: set[str], reason: str) -> list[str]:
        """End those of these sessions that are open; their ids."""
        return await self._end(
            [session for session in await self._open_sessions() if session.span.session_id in session_ids], reason
        )

    async def _end(self, found: Sequence[Session], reason: str) -> list[str]:
        if not found:
            return []
        recorded = await self._log.append([draft_session_end(session, reason, self._redactor) for session in found])
        await self.track(recorded)
        log.info("%d sessions ended (%s)", len(found), reason)
        return [session.span.session_id for session in found]

    async def _open_sessions(self) -> list[Session]:
        device_id = self._log.device_id
        return await self._log.database.read(lambda connection: session_store.open_sessions(connection, device_id))

    async def _find(self, session_id: str) -> Session | None:
        found = await self._log.database.read(lambda connection: session_store.read_sessions(connection, [session_id]))
        return found[0] if found else None

    def _save_open_ids(self, session_ids: Sequence[str]) -> None:
        write_private(self._open_sessions_file, json.dumps(session_ids).encode() + b"\n")

    def _load_open_ids(self) -> set[str]:
        try:
            found = read_once(self._open_sessions_file)
            said = json.loads(found.data) if found else []
        except (StorageError, ValueError):
            return set()
        return {name for name in said if isinstance(name, str)} if isinstance(said, list) else set()
