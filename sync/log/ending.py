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
from sqlalchemy import Connection

from sync.clock import Clock, milliseconds
from sync.errors import InvalidInput, StorageError
from sync.files import probe, write_private
from sync.log import session_store
from sync.log.envelope import check_name
from sync.log.intake import Intake
from sync.log.log import Log
from sync.log.model import Draft, Recorded
from sync.log.payloads import ENDED, SESSION_META, STARTED
from sync.log.sessions import CUT_OFF, IDLE, OURS, Session, end_of
from sync.redaction import Redactor

LOOK_EVERY: Final = 60.0  # seconds between looks for sessions in which nothing is said any more
AFTER_A_START: Final = 0.5  # seconds; the first answer comes before
MOST_LISTED: Final = 1_000
MOST_NOTED: Final = 1_000  # sessions of one sidecar that may be open at once
DAY_MS: Final = 86_400_000

log = logging.getLogger(__name__)


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """What `session-meta list` may be asked (seed 002 §5.3)."""

    project_id: str | None = None
    days: float | None = None
    limit: int = MOST_LISTED


@dataclass(frozen=True, slots=True)
class Upserted:
    """A session after something was said of it. `recorded` is false where that was known."""

    session: Session
    event_id: str | None
    recorded: bool


class Sessions:
    """The sessions of one profile's log. `noted`: where a sidecar keeps the ids of those that began through it."""

    def __init__(
        self, events: Log, intake: Intake, redactor: Redactor, *, noted: Path, clock: Clock, idle_minutes: float
    ) -> None:
        self._log = events
        self._intake = intake
        self._redactor = redactor.for_leaving()
        self._noted = noted
        self._clock = clock
        self._idle_ms = int(idle_minutes * 60_000)
        self._open: set[str] = set()

    async def upsert(self, value: object) -> Upserted:
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
        said = {name: item for name, item in value.items() if name not in OURS}
        given = {"type": SESSION_META, "session_id": session_id, "payload": said, **place}
        draft = self._intake.draft(given, known=known is not None)
        told = {name: item for name, item in draft.payload.value.items() if item is not None}
        if known is not None and {**known.meta, **told} == known.meta:
            return Upserted(known, None, recorded=False)

        def allowed(connection: Connection) -> list[Draft]:
            paused = session_store.pauses(connection, self._log.device_id).sessions
            return [] if session_id in paused else [draft]

        recorded, _ = await self._log.record_and_count(allowed)
        if not recorded:
            hint = "Say 记住这个 or `save this` in this session to save it again."
            raise InvalidInput("this conversation is not to be saved", field="session_id", hint=hint)
        found = await self._find(session_id)
        assert found is not None  # it was recorded two lines above
        return Upserted(found, recorded[0].event.event_id, recorded=True)

    async def listed(self, value: Mapping[str, Any]) -> list[Session]:
        """Sessions of a project, or of all, in which something was said in so many days; newest first. InvalidInput."""
        try:
            asked = msgspec.convert(dict(value), Asked)
        except msgspec.ValidationError as error:
            raise InvalidInput(f"the filter is wrong: {error}", field="filter") from None
        if asked.days is not None and not 0 < asked.days <= 36_525:
            raise InvalidInput("days is a number above 0, 36525 at most", field="days")
        if asked.limit < 1:
            raise InvalidInput("limit is at least 1", field="limit")
        since = None if asked.days is None else milliseconds(self._clock.now()) - int(asked.days * DAY_MS)
        limit = min(asked.limit, MOST_LISTED)
        return await self._log.database.read(
            lambda connection: session_store.listed(
                connection, project_id=asked.project_id, since_ms=since, limit=limit
            )
        )

    async def heard(self, recorded: Sequence[Recorded]) -> None:
        """Note which sessions begin and end through this sidecar, before the caller is told that they do."""
        before = set(self._open)
        for item in recorded:
            if item.event.type == STARTED and not item.duplicate:
                self._open.add(item.event.session_id)
            elif item.event.type in ENDED:
                self._open.discard(item.event.session_id)
        if self._open != before:
            await asyncio.to_thread(self._write, sorted(self._open)[:MOST_NOTED])

    async def keep_ending(self) -> None:
        """End what the sidecar before this one left open, then whatever falls idle, until cancelled."""
        left = await asyncio.to_thread(self._read)
        await asyncio.sleep(AFTER_A_START)
        await self.end(left - self._open, CUT_OFF)
        while True:
            seen = self._log.changed.count
            await self.end_idle()
            await asyncio.sleep(LOOK_EVERY)
            if self._log.changed.count == seen and not await self._unended():
                await self._log.changed.wait(seen)

    async def end_idle(self) -> list[str]:
        """End this device's sessions in which nothing was recorded for long; their ids.

        By the time of recording: a session of past days may be appended in several batches.
        """
        now = milliseconds(self._clock.now())
        idle = [session for session in await self._unended() if now - session.span.recorded_ms >= self._idle_ms]
        return await self._end(idle, IDLE)

    async def end(self, session_ids: set[str], reason: str) -> list[str]:
        """End those of these sessions that are open; their ids."""
        return await self._end(
            [session for session in await self._unended() if session.span.session_id in session_ids], reason
        )

    async def _end(self, found: Sequence[Session], reason: str) -> list[str]:
        if not found:
            return []
        recorded = await self._log.record([end_of(session, reason, self._redactor) for session in found])
        await self.heard(recorded)
        log.info("%d sessions ended (%s)", len(found), reason)
        return [session.span.session_id for session in found]

    async def _unended(self) -> list[Session]:
        device_id = self._log.device_id
        return await self._log.database.read(lambda connection: session_store.unended(connection, device_id))

    async def _find(self, session_id: str) -> Session | None:
        found = await self._log.database.read(lambda connection: session_store.sessions(connection, [session_id]))
        return found[0] if found else None

    def _write(self, session_ids: Sequence[str]) -> None:
        write_private(self._noted, json.dumps(session_ids).encode() + b"\n")

    def _read(self) -> set[str]:
        try:
            found = probe(self._noted)
            said = json.loads(found.data) if found else []
        except (StorageError, ValueError):
            return set()
        return {name for name in said if isinstance(name, str)} if isinstance(said, list) else set()
