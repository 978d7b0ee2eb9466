"""The small JSON files of the export: `index/*.json` and `sessions/<month>/<id>.meta.json`."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from sync.db.engine import Transaction
from sync.jsonl import indexes, store
from sync.jsonl.event_file import find_session_meta_files, write_if_changed
from sync.jsonl.indexes import JsonlIndexes
from sync.jsonl.model import is_month, month_of, safe_file_name
from sync.log.event_types import SESSION_EVENT_TYPES
from sync.log.log import EventLog
from sync.log.model import Event
from sync.log.retractions import Retractions
from sync.log.sessions import session_store
from sync.log.sessions.model import Session, to_json

MAX_DESCRIBED_SESSIONS: Final = 10_000  # sessions remembered as already written


class MetadataFiles:
    """Writes the files below `root`. `retractions` is shared with the projection, which keeps it up to date."""

    def __init__(self, root: Path, events: EventLog, retractions: Retractions) -> None:
        self._root = root
        self._log = events
        self._retractions = retractions
        self._index: JsonlIndexes | None = None
        self._described_sessions: set[str] = set()  # an ordinary event changes nothing in their files

    async def update(self, events: Sequence[Event], erased_ids: Sequence[str]) -> None:
        """Bring the files up to these events, which erase the payloads of `erased_ids`."""
        await self._update_index(events, rebuild=bool(erased_ids))
        session_ids = {
            event.session_id
            for event in events
            if event.type in SESSION_EVENT_TYPES or event.session_id not in self._described_sessions
        }
        if erased_ids:
            session_ids |= set(await self._log.database.read(store.read_described_session_ids, erased_ids))
        await self._write_session_files(sorted(session_ids - {""}))

    async def rebuild(self) -> int:
        """Make every file what the log says; return how many files of unknown sessions were removed."""
        self._described_sessions.clear()
        await self._update_index((), rebuild=True)
        written = await self._write_session_files(
            await self._log.database.read(lambda connection: list(session_store.all_session_ids(connection)))
        )
        removed = 0
        for path in await asyncio.to_thread(lambda: list(find_session_meta_files(self._root))):
            if path not in written and is_month(path.parent.name):
                with suppress(FileNotFoundError):
                    await asyncio.to_thread(path.unlink)
                removed += 1
        return removed

    async def _update_index(self, events: Sequence[Event], *, rebuild: bool) -> None:
        folder = self._root / "index"
        if self._index is None and not rebuild:
            self._index = await asyncio.to_thread(_read_index, folder)
            rebuild = self._index is None
        if self._index is None or rebuild:
            self._index = await self._log.database.read(self._index_of_log)
        if not self._index.add(map(self._retractions.effective_event, events)) and not rebuild:
            return
        for name, data in self._index.render().items():
            await asyncio.to_thread(write_if_changed, folder / f"{name}.json", data)

    def _index_of_log(self, connection: Transaction) -> JsonlIndexes:
        index = JsonlIndexes(projects=store.read_projects(connection))
        for project_id, session_id in store.read_sessions_by_project(connection):
            index.sessions.setdefault(project_id, set()).add(session_id)
        for event in store.read_events_with_tags(connection):
            index.add_tags(self._retractions.effective_event(event))
        return index

    async def _write_session_files(self, session_ids: Sequence[str]) -> set[Path]:
        """Write the files of these sessions; return the paths of those that have anything to say."""
        sessions = await self._log.database.read(
            session_store.read_sessions, session_ids, self._log.own_device_ids, self._retractions.effective_event
        )
        paths = set()
        for session in sessions:
            path = self._root / _meta_path(session)
            if session.is_described:
                await asyncio.to_thread(write_if_changed, path, indexes.json_bytes(to_json(session)))
                paths.add(path)
            else:  # nothing describes it, or what did was erased
                await asyncio.to_thread(path.unlink, missing_ok=True)
            if session.ended_at is None and len(self._described_sessions) < MAX_DESCRIBED_SESSIONS:
                self._described_sessions.add(session.span.session_id)
            else:
                self._described_sessions.discard(session.span.session_id)
        return paths


def _meta_path(session: Session) -> Path:
    return Path("sessions", month_of(session.span.first_ms), f"{safe_file_name(session.span.session_id)}.meta.json")


def _read_index(folder: Path) -> JsonlIndexes | None:
    try:
        return indexes.parse_indexes({name: (folder / f"{name}.json").read_bytes() for name in indexes.FILES})
    except OSError:
        return None
