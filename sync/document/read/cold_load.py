"""The first `load` of a starting sidecar, answered before SQLAlchemy (300 ms) is imported.

It answers only if the answer is certain: the file on disk is, byte for byte, the newest version, or is missing. In all
other cases (a manual edit, a pending erasure, an older schema, a key that only a keychain has) it returns None, and the
caller waits for the app. A test compares this answer with that of `MemoryService`.
"""

import os
from pathlib import Path
from sqlite3 import Connection, Row
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.clock import Clock
from sync.document.capture.exchange_events import apply_exchanges
from sync.document.markdown.model import Snapshot
from sync.document.markdown.parse import parse
from sync.document.markdown.template import empty_document
from sync.document.markdown.version_labels import time_label
from sync.document.read.device_digest import DeviceDigest
from sync.document.read.line_authors import AuthorLabels, LineAuthors
from sync.document.read.other_devices import (
    EDIT_EVENTS,
    EXCHANGE_EVENTS,
    MAX_EVENTS,
    device_digests,
)
from sync.document.read.results import LoadResult, LoadScope
from sync.document.version_delta import VersionDelta, decode_whole
from sync.encryption.database_encryption import DatabaseEncryption
from sync.log.devices.device_registry import DeviceRegistry, is_recovery
from sync.log.envelope import event_of_row
from sync.log.event_types import (
    DEVICE_EVENT_TYPES,
    ERASING_TYPES,
    EXCHANGE_RECORDED,
    FACT_TYPES,
    FORGET_REQUESTED,
    HIDING_TYPES,
)
from sync.log.model import Event
from sync.log.newest_query import LAST_SPOKEN_QUERY, NEWEST_QUERY, newest_parameters
from sync.system.files import read_once
from sync.texts.language import LanguageChoice

SCHEMA_VERSIONS: Final = range(2, 17)  # in which the tables read here are the same
FACT_CHANGES: Final = (*FACT_TYPES, *HIDING_TYPES)
BUSY_TIMEOUT: Final = 0.2  # seconds to wait for a writer; a reader in WAL mode does not wait at all

_NEWEST: Final = "select * from written where surface = 'file' order by version desc limit 1"
_LOCAL_HLC: Final = "select coalesce((select hlc from replica), '')"
_NUMBERED: Final = "select * from written where version = ?"
_PENDING: Final = (
    "select * from events where device_id = ? and type = ? and position >"
    " coalesce((select position from watermarks where name = 'document'), 0) order by position"
)
_PENDING_ERASURE: Final = (
    "select 1 from events where type in (?, ?) and position >"
    " coalesce((select position from watermarks where name = 'document.forgotten'), 0) limit 1"
)
_WAITING_FORGETS: Final = (
    "select 1 from events where type = ? and position >"
    " coalesce((select position from watermarks where name = 'forget.settled'), 0) limit 1"
)
_UNSHOWN_FACTS: Final = (
    f"select 1 from events where type in ({', '.join('?' * len(FACT_CHANGES))}) and position >"  # noqa: S608 - marks
    " coalesce((select position from watermarks where name = 'document.facts'), 0) limit 1"
)
_UNSENT_COUNT: Final = (
    "select coalesce(sum(count), 0) from delivery_counts where destination = 'cloud' and state = 'pending'"
)
_IS_EMPTY: Final = "select not exists(select 1 from written) and not exists(select 1 from events)"
_FORMERLY_SHARED: Final = "select coalesce(max(position), 0) from watermarks where name = 'document.shared'"
_CURSOR: Final = "select coalesce(max(seq), 0) from cursors where destination = 'cloud'"


def empty_result(clock: Clock, max_chars: int | None, language: LanguageChoice) -> LoadResult:
    """The answer of a memory in which nothing was ever recorded."""
    template = Snapshot(parse(empty_document(time_label(clock.now()), language.of(None))))
    return LoadResult.of(template, {}, (), max_chars, language=language, source="template", updated_at=None)


class FirstStartLoad(msgspec.Struct, frozen=True):
    """The load of a new installation. Without a memory file the answer is the template."""

    memory_file: Path
    clock: Clock
    language: LanguageChoice = msgspec.field(default_factory=LanguageChoice)

    def load(self, *, scope: LoadScope, max_chars: int | None) -> LoadResult | None:
        del scope
        return None if os.path.lexists(self.memory_file) else empty_result(self.clock, max_chars, self.language)


class ColdLoad(msgspec.Struct, frozen=True):
    """Where the database and the file are, and which device this is."""

    database: Path
    memory_file: Path
    device_id: str
    includes_other_devices: bool
    has_cloud: bool
    vault: DatabaseEncryption = msgspec.field(default_factory=DatabaseEncryption)
    earlier_ids: tuple[str, ...] = ()
    language: LanguageChoice = msgspec.field(default_factory=LanguageChoice)
    clock: Clock | None = None  # None: a first document may come from elsewhere (a cloud, the app's cache)

    def load(self, *, scope: LoadScope, max_chars: int | None) -> LoadResult | None:
        """The answer of `MemoryService.load` without the cloud, or None if it is not certain."""
        if not self.database.exists() or not self.vault.needs_no_keychain(self.database):
            return None
        try:
            with self.vault.read_only_connection(self.database, BUSY_TIMEOUT) as connection:
                connection.execute("begin")  # one snapshot for all reads
                return self._load_from(connection, scope, max_chars)
        except Exception:  # noqa: BLE001 - damage too: a row of any content may be there
            return None  # the app reports it

    def _load_from(self, connection: Connection, scope: LoadScope, max_chars: int | None) -> LoadResult | None:
        if connection.execute("pragma user_version").fetchone()[0] not in SCHEMA_VERSIONS:
            return None
        if connection.execute(_PENDING_ERASURE, ERASING_TYPES).fetchone() is not None:
            return None
        if connection.execute(_WAITING_FORGETS, (FORGET_REQUESTED,)).fetchone() is not None:
            return None
        if connection.execute(_UNSHOWN_FACTS, FACT_CHANGES).fetchone() is not None:
            return None
        row = connection.execute(_NEWEST).fetchone()
        disk = read_once(self.memory_file)
        if row is None and disk is None and self.clock is not None:
            return (
                empty_result(self.clock, max_chars, self.language)
                if connection.execute(_IS_EMPTY).fetchone()[0]
                else None
            )
        if row is None or (disk is not None and disk.sha256 != row["sha256"]):
            return None
        pending = [event_of_row(found) for found in connection.execute(_PENDING, (self.device_id, EXCHANGE_RECORDED))]
        snapshot = apply_exchanges(_snapshot(connection, row), pending)
        others = self._other_digests(connection) if scope == "user" and self.includes_other_devices else ()
        updated_at = pending[-1].ts if pending else row["created_at"]
        labels = self._author_labels(connection, snapshot)
        loaded = LoadResult.of(
            snapshot, labels, others, max_chars, language=self.language, source="local", updated_at=updated_at
        )
        if not self.has_cloud:
            return loaded
        unsent, cursor = (connection.execute(query).fetchone()[0] for query in (_UNSENT_COUNT, _CURSOR))
        return replace(loaded, stale=True, pending=unsent, through_seq=cursor)

    def _author_labels(self, connection: Connection, snapshot: Snapshot) -> AuthorLabels:
        """The same as in `MemoryService`."""
        sources = LineAuthors({self.device_id, *self.earlier_ids})

        def run_query(statement: str, parameters: dict[str, Any]) -> list[Event]:
            return [event_of_row(row) for row in connection.execute(statement, parameters)]

        formerly_shared = connection.execute(_FORMERLY_SHARED).fetchone()[0] > 0
        sources.refresh(run_query, 0, snapshot, formerly_shared=formerly_shared)
        registry = _registry(connection) if formerly_shared else DeviceRegistry()
        return sources.author_labels(snapshot, registry)

    def _other_digests(self, connection: Connection) -> tuple[DeviceDigest, ...]:
        registry = _registry(connection)
        excluded = (self.device_id, *self.earlier_ids, *registry.hidden)
        return device_digests(
            _latest_events(connection, EXCHANGE_EVENTS, excluded),
            _latest_events(connection, EDIT_EVENTS, excluded),
            registry,
        )


def _snapshot(connection: Connection, row: Row) -> Snapshot:
    """The snapshot of a version; an older schema stores every version whole."""
    if "base" not in row.keys() or row["base"] is None:  # noqa: SIM118 - a row's own `in` looks among its values
        return decode_whole(row["bytes"], row["entry_ids"])
    base = connection.execute(_NUMBERED, (row["base"],)).fetchone()
    return VersionDelta.decode(row["bytes"], row["entry_ids"]).apply_to(decode_whole(base["bytes"], base["entry_ids"]))


def _registry(connection: Connection) -> DeviceRegistry:
    """The same as `read_registry`."""
    named = ", ".join("?" * len(DEVICE_EVENT_TYPES))
    rows = connection.execute(f"select * from events where type in ({named})", DEVICE_EVENT_TYPES)  # noqa: S608 - our own
    events = [event_of_row(row) for row in rows]
    last_spoken = dict(map(tuple, connection.execute(LAST_SPOKEN_QUERY))) if any(map(is_recovery, events)) else {}
    return DeviceRegistry.of(events, last_spoken, connection.execute(_LOCAL_HLC).fetchone()[0])


def _latest_events(connection: Connection, types: tuple[str, ...], excluded: tuple[str, ...]) -> list[Event]:
    rows = connection.execute(NEWEST_QUERY, newest_parameters(types, excluded, MAX_EVENTS))
    return [event_of_row(row) for row in rows]
