"""The first `load` of a starting sidecar, answered before the program has finished importing itself.

SQLAlchemy and its friends take 300 ms to import; the answer stands in two small tables. So this one question is asked
without SQLAlchemy, read-only, and only where the answer is certain: the file on disk is, byte for byte, the newest
version known, or is missing. Everything else (a hand edit made meanwhile, something to forget, an older schema)
returns None, and the caller waits for the program; so does the key of an encrypted database that is in a keychain,
which may have to ask a person first. One test holds this answer against the one `Conversation` gives.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from sqlite3 import Connection, Row
from typing import Any, Final

from sync.clock import Clock
from sync.digests import sha256
from sync.document.answers import Loaded, Scope
from sync.document.capture import EXCHANGE, applied
from sync.document.differences import Difference, read_whole
from sync.document.digest import DeviceDigest, render_digest
from sync.document.labels import time_label
from sync.document.model import Snapshot, encode
from sync.document.origins import LineSources, marked
from sync.document.others import (
    ABOUT_DEVICES,
    BY_HAND,
    MOST_EVENTS,
    SAID,
    about_devices,
    digests,
    hidden_devices,
)
from sync.document.parse import parse
from sync.document.prompt import compose
from sync.document.template import template
from sync.files import probe
from sync.log.envelope import event_of_row
from sync.log.model import TAKING_AWAY, Event
from sync.log.newest import NEWEST, newest_asked
from sync.vault.vault import Vault

SCHEMAS: Final = range(2, 14)  # in which the tables read here are the same
PATIENCE: Final = 0.2  # seconds to wait for a writer; a reader in WAL mode does not wait at all

_NEWEST: Final = "select * from written where surface = 'file' order by version desc limit 1"
_NUMBERED: Final = "select * from written where version = ?"
_PENDING: Final = (
    "select * from events where device_id = ? and type = ? and position >"
    " coalesce((select position from watermarks where name = 'document'), 0) order by position"
)
_TO_FORGET: Final = (
    "select 1 from events where type in (?, ?) and position >"
    " coalesce((select position from watermarks where name = 'document.forgotten'), 0) limit 1"
)
_WAITING: Final = (
    "select coalesce(sum(count), 0) from delivery_counts where destination = 'cloud' and state = 'pending'"
)
_NOTHING: Final = "select not exists(select 1 from written) and not exists(select 1 from events)"
_CURSOR: Final = "select coalesce(max(seq), 0) from cursors where destination = 'cloud'"


def blank(clock: Clock, max_chars: int | None) -> Loaded:
    """The answer of a memory in which nothing was ever recorded."""
    document = parse(template(time_label(clock.now())))
    content, omitted = compose(document.text, "", max_chars)
    return Loaded(
        content=content,
        document=document.text,
        document_sha256=sha256(encode(document)),
        digest="",
        source="template",
        stale=False,
        pending=0,
        through_seq=0,
        updated_at=None,
        devices=(),
        omitted=omitted,
    )


@dataclass(frozen=True, slots=True)
class FirstGlimpse:
    """The first start of all: there is no installation yet. Without a memory file the answer is the template."""

    memory_file: Path
    clock: Clock

    def load(self, *, scope: Scope, max_chars: int | None) -> Loaded | None:
        del scope
        return None if os.path.lexists(self.memory_file) else blank(self.clock, max_chars)


@dataclass(frozen=True, slots=True)
class Glimpse:
    """What has to be known to look: where things are and who this device is."""

    database: Path
    memory_file: Path
    device_id: str
    other_devices: bool
    cloud: bool
    vault: Vault = field(default_factory=Vault)
    earlier_ids: tuple[str, ...] = ()
    clock: Clock | None = None  # None: a first document may come from elsewhere (a cloud, the app's cache)

    def load(self, *, scope: Scope, max_chars: int | None) -> Loaded | None:
        """The same answer as `Conversation.load` gives without asking the cloud, or None where that is not certain."""
        if not self.database.exists() or not self.vault.is_at_hand(self.database):
            return None
        try:
            with self.vault.reading(self.database, PATIENCE) as connection:
                connection.execute("begin")  # one view of the database for all that follows
                return self._look(connection, scope, max_chars)
        except Exception:  # noqa: BLE001 - damage too: a row of any content may be there
            return None  # the program itself will meet it, and knows what to do and say

    def _look(self, connection: Connection, scope: Scope, max_chars: int | None) -> Loaded | None:
        if connection.execute("pragma user_version").fetchone()[0] not in SCHEMAS:
            return None
        if connection.execute(_TO_FORGET, TAKING_AWAY).fetchone() is not None:
            return None
        row = connection.execute(_NEWEST).fetchone()
        disk = probe(self.memory_file)
        if row is None and disk is None and self.clock is not None:
            return blank(self.clock, max_chars) if connection.execute(_NOTHING).fetchone()[0] else None
        if row is None or (disk is not None and disk.sha256 != row["sha256"]):
            return None
        pending = [event_of_row(found) for found in connection.execute(_PENDING, (self.device_id, EXCHANGE))]
        snapshot = applied(_snapshot(connection, row), pending)
        document = snapshot.document
        others = self._others(connection) if scope == "user" and self.other_devices else ()
        digest = render_digest(others) if others else ""
        content, omitted = compose(marked(snapshot, self._marks(connection, snapshot)), digest, max_chars)
        return Loaded(
            content=content,
            document=document.text,
            document_sha256=sha256(encode(document)),
            digest=digest,
            source="local",
            stale=self.cloud,
            pending=connection.execute(_WAITING).fetchone()[0] if self.cloud else 0,
            through_seq=connection.execute(_CURSOR).fetchone()[0] if self.cloud else 0,
            updated_at=pending[-1].ts if pending else row["created_at"],
            devices=others,
            omitted=omitted,
        )

    def _marks(self, connection: Connection, snapshot: Snapshot) -> dict[str, str]:
        """The document is this device's own (a shared one is not looked at here): no other device has a line in it."""
        sources = LineSources({self.device_id, *self.earlier_ids})

        def ask(statement: str, parameters: dict[str, Any]) -> list[Event]:
            return [event_of_row(row) for row in connection.execute(statement, parameters)]

        sources.refresh(ask, 0, shared=False)
        return sources.marks(snapshot, lambda _device_id: None)

    def _others(self, connection: Connection) -> tuple[DeviceDigest, ...]:
        about = about_devices(_newest(connection, ABOUT_DEVICES, ()))
        besides = (self.device_id, *self.earlier_ids, *hidden_devices(about))
        return digests(_newest(connection, SAID, besides), _newest(connection, BY_HAND, besides), about)


def _snapshot(connection: Connection, row: Row) -> Snapshot:
    """What a version holds; of an older schema every one is stored whole."""
    if "base" not in row.keys() or row["base"] is None:  # noqa: SIM118 - a row's own `in` looks among its values
        return read_whole(row["bytes"], row["entry_ids"])
    base = connection.execute(_NUMBERED, (row["base"],)).fetchone()
    return Difference.read(row["bytes"], row["entry_ids"]).of(read_whole(base["bytes"], base["entry_ids"]))


def _newest(connection: Connection, types: tuple[str, ...], besides: tuple[str, ...]) -> list[Event]:
    rows = connection.execute(NEWEST, newest_asked(types, besides, MOST_EVENTS))
    return [event_of_row(row) for row in rows]
