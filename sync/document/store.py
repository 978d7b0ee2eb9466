"""The SQL of the document: its versions on every surface. The rows hold raw text and never replicate."""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import RowMapping, bindparam, delete, func, insert, select, text, update

from sync.clock import Clock, timestamp
from sync.db.engine import Transaction
from sync.db.schema import accounts, captured, events, written
from sync.document.markdown.model import Snapshot, Version
from sync.document.read.results import VersionJson
from sync.document.version_delta import VersionDelta, base_digest, decode_whole, encode_whole, same_encoding
from sync.log.envelope import event_of_row
from sync.log.event_types import EXCHANGE_RECORDED
from sync.log.model import AppendResult, Event
from sync.sequences import common_ends

FILE: Final = "file"  # the memory file
APP_CACHE: Final = "app_cache"  # row 1 of the Electron app's own database
CLOUD: Final = "cloud"  # what was sent to this device's row on the server, or found there; not redacted
RING_SIZE: Final = 20  # candidates for a base that no label or hash names

_INSERT: Final = insert(written)
_ON_SURFACE: Final = written.c.surface == bindparam("on")
_NEWEST_FIRST: Final = select(written).where(_ON_SURFACE).order_by(written.c.version.desc())
_NEWEST: Final = _NEWEST_FIRST.limit(1)
_RING: Final = _NEWEST_FIRST.limit(RING_SIZE)
_NEWEST_HASHED: Final = _NEWEST.where(written.c.sha256 == bindparam("name"))
_NEWEST_LABELLED: Final = _NEWEST.where(written.c.label == bindparam("name"))
_NEWEST_AT: Final = select(written.c.created_at).where(_ON_SURFACE).order_by(written.c.version.desc()).limit(1)
_NEWEST_NUMBER: Final = select(func.coalesce(func.max(written.c.version), 0)).where(_ON_SURFACE)
_OLDEST_BEYOND_KEPT: Final = (
    select(written.c.version).where(_ON_SURFACE).order_by(written.c.version.desc()).offset(bindparam("keep")).limit(1)
).scalar_subquery()
_LATER: Final = written.alias("later")
_STILL_BASES: Final = select(_LATER.c.base).where(
    _LATER.c.surface == bindparam("on"), _LATER.c.version > _OLDEST_BEYOND_KEPT, _LATER.c.base.is_not(None)
)
_DELETE_BEYOND: Final = delete(written).where(
    _ON_SURFACE, written.c.version <= _OLDEST_BEYOND_KEPT, written.c.version.not_in(_STILL_BASES)
)
_NUMBERED: Final = select(written).where(written.c.version == bindparam("number"))
_UNREDACTED: Final = select(captured).where(captured.c.event_id.in_(bindparam("ids", expanding=True)))
# a lookup for each of the few rows; a join would read the whole log
_UNREDACTED_POSITION: Final = (
    select(events.c.position).where(events.c.event_id == captured.c.event_id).scalar_subquery()
)
_DELETE_UNREDACTED: Final = delete(captured).where(bindparam("position") >= _UNREDACTED_POSITION)


def append(
    connection: Transaction,
    surface: str,
    snapshot: Snapshot,
    cause: str,
    clock: Clock,
    keep: int,
    *,
    digest: str | None = None,
    created_at: str | None = None,
) -> Version:
    """Add a version to the ring. The oldest beyond `keep` are deleted, unless a newer one is stored as their delta.

    `digest`: the hash of the bytes on disk, if they also had erased lines. `created_at`: of an imported version.
    """
    version = Version.of(0, snapshot)
    if digest is not None:
        version = replace(version, sha256=digest)
    values = {
        "surface": surface,
        "label": version.label,
        "sha256": version.sha256,
        **_columns(
            connection,
            connection.execute(_NEWEST, {"on": surface}).mappings().first(),
            snapshot,
            is_shown=surface == FILE,
        ),
        "cause": cause,
        "created_at": created_at or timestamp(clock.now()),
    }
    number = int(connection.execute(_INSERT, values).lastrowid or 0)
    connection.execute(_DELETE_BEYOND, {"on": surface, "keep": keep})
    return replace(version, number=number)


def newest(connection: Transaction, surface: str) -> Version | None:
    row = connection.execute(_NEWEST, {"on": surface}).mappings().first()
    return None if row is None else _version(connection, row)


def shown_entry_ids(connection: Transaction) -> frozenset[str]:
    """The entries that the newest version on any surface has."""
    versions = (newest(connection, surface) for surface in (FILE, APP_CACHE, CLOUD))
    return frozenset(entry_id for version in versions if version is not None for entry_id in version.snapshot.ids)


def newest_number(connection: Transaction, surface: str) -> int:
    """The number of the newest version; 0 if there is none."""
    return int(connection.execute(_NEWEST_NUMBER, {"on": surface}).scalar_one())


def newest_created_at(connection: Transaction, surface: str) -> str | None:
    """The time of the newest version."""
    return connection.execute(_NEWEST_AT, {"on": surface}).scalar()


def base_candidates(connection: Transaction, surface: str, sha256: str, label: str | None) -> Sequence[Version]:
    """The versions among which the base of a file with this hash and label is, oldest first.

    If the label, or the hash of a file without one, names a version: the newest with that name and the newest of all.
    Otherwise the last `RING_SIZE`.
    """
    parameters = {"on": surface, "name": sha256 if label is None else label}
    named = connection.execute(_NEWEST_HASHED if label is None else _NEWEST_LABELLED, parameters).mappings().first()
    if named is not None:
        current = newest(connection, surface)
        assert current is not None  # there is at least the named one
        return [current] if named["version"] == current.number else [_version(connection, named), current]
    ring = connection.execute(_RING, {"on": surface}).mappings().all()
    return [_version(connection, row) for row in reversed(ring)]


def with_byte_prefix(connection: Transaction, surface: str, prefix: bytes, *, through: int) -> Version | None:
    """The newest version, from this number down, whose bytes begin with these."""
    rows = select(written).where(written.c.surface == surface, written.c.version <= through)
    for row in connection.execute(rows.order_by(written.c.version.desc())).mappings():
        if _snapshot(connection, row).document.data.startswith(prefix):
            return _version(connection, row)
    return None


def is_owned(connection: Transaction) -> bool:
    """Whether this memory has an owner: a cloud may have events of it."""
    return connection.execute(select(accounts.c.one)).first() is not None


def find(connection: Transaction, surface: str, sha256: str) -> Version | None:
    """The newest version with this hash."""
    row = connection.execute(_NEWEST_HASHED, {"on": surface, "name": sha256}).mappings().first()
    return None if row is None else _version(connection, row)


def hashes_with_prefix(connection: Transaction, surface: str, prefix: str) -> list[str]:
    """The hashes that begin with these digits; at most two, since a second one is ambiguous."""
    beginning_so = written.c.sha256.startswith(prefix, autoescape=True)
    hashes = select(written.c.sha256).distinct().where(written.c.surface == surface, beginning_so).limit(2)
    return list(connection.execute(hashes).scalars())


def containing(connection: Transaction, entry_ids: Collection[str]) -> list[Version]:
    """The versions that have these entries, of every surface: for each entry the newest."""
    versions: list[Version] = []
    missing = set(entry_ids)
    for row in connection.execute(select(written).order_by(written.c.version.desc())).mappings() if missing else ():
        if not missing.isdisjoint(ids := _snapshot(connection, row).ids):
            versions.append(_version(connection, row))
            missing.difference_update(ids)
    return versions


def erase_from_versions(
    connection: Transaction,
    is_affected: Callable[[Sequence[str]], bool],
    without_erased: Callable[[Snapshot], Snapshot],
) -> dict[tuple[str, str], int]:
    """Rewrite the bytes of the affected versions, on every surface; their hashes still name what was on disk.

    If a base is rewritten, so are its deltas. Return entry id and text of each line that this removes, with the newest
    version that had it.
    """
    removed: dict[tuple[str, str], int] = {}
    rows = connection.execute(select(written).order_by(written.c.version)).mappings().all()
    groups: defaultdict[int, list[RowMapping]] = defaultdict(list)
    for row in rows:
        groups[row["version"] if row["base"] is None else row["base"]].append(row)
    for group in groups.values():
        snapshots = [_snapshot(connection, row) for row in group]
        affected = [is_affected(snapshot.ids) for snapshot in snapshots]
        last: RowMapping | None = None
        for row, before, changes in zip(group, snapshots, affected, strict=True) if any(affected) else ():
            left = without_erased(before) if changes else before
            for line in _removed_lines(before, left):
                removed[line] = max(removed.get(line, 0), row["version"])
            values = _columns(connection, last, left)
            connection.execute(update(written).where(written.c.version == row["version"]).values(values))
            last = connection.execute(_NUMBERED, {"number": row["version"]}).mappings().one()
    RECENT_SNAPSHOTS.clear()
    return removed


def _removed_lines(before: Snapshot, after: Snapshot) -> list[tuple[str, str]]:
    """Entry id and text of the lines of `before` that `after` lacks."""
    head, tail = common_ends((before.ids, after.ids), (before.document.entries, after.document.entries))
    was, stays = (
        [(name, block.text) for name, block in zip(one.ids[head:end], one.document.entries[head:end], strict=True)]
        for one, end in ((before, len(before.ids) - tail), (after, len(after.ids) - tail))
    )
    kept = set(stays)
    return [line for line in was if line not in kept]


def save_unredacted(
    connection: Transaction, recorded: Sequence[AppendResult], *, redacted: tuple[str, str], original: tuple[str, str]
) -> None:
    """Keep the original text of the exchange just recorded, until the document has it (`unredacted`).

    If the event has another text than the redacted one, the capture policy decided so, and that text stays.
    """
    event = recorded[0].event if recorded and not recorded[0].duplicate else None
    if event is None or event.type != EXCHANGE_RECORDED or original == redacted:
        return
    said = event.payload
    sides = zip(("question", "answer"), redacted, original, strict=True)
    kept = {side: raw if said.get(side) == clean else said.get(side, "") for side, clean, raw in sides}
    connection.execute(insert(captured).values(event_id=event.event_id, **kept))


def unredacted(connection: Transaction, exchanges: Sequence[Event]) -> list[Event]:
    """The exchanges with their original text, if it was kept and not erased."""
    ids = [event.event_id for event in exchanges]
    rows = connection.execute(_UNREDACTED, {"ids": ids})
    originals = {row.event_id: {"question": row.question, "answer": row.answer} for row in rows}
    return [
        replace(event, payload={**event.payload, **originals[event.event_id]})
        if event.payload and event.event_id in originals
        else event
        for event in exchanges
    ]


def delete_unredacted(connection: Transaction, position: int) -> None:
    """Delete the original texts up to here: the document has them."""
    connection.execute(_DELETE_UNREDACTED, {"position": position})


def history(connection: Transaction, surface: str, limit: int) -> list[VersionJson]:
    """The newest versions, newest first."""
    columns = (
        written.c.sha256,
        written.c.label,
        written.c.cause,
        written.c.created_at,
        func.coalesce(written.c.entries, func.json_array_length(written.c.entry_ids)),
    )
    newest_first = select(*columns).where(written.c.surface == surface).order_by(written.c.version.desc()).limit(limit)
    return [VersionJson(*row) for row in connection.execute(newest_first)]


def export_page(connection: Transaction, *, after: int, limit: int) -> list[dict[str, Any]]:
    """Versions of every surface after one number, oldest first, as JSON values for an export."""
    oldest_first = select(written).where(written.c.version > after).order_by(written.c.version).limit(limit)
    names = ("version", "surface", "label", "sha256", "cause", "created_at")
    rows = connection.execute(oldest_first).mappings()
    pages = [({name: row[name] for name in names}, _snapshot(connection, row)) for row in rows]
    return [
        {**row, "text": one.document.text, "encoding": one.document.encoding, "bom": one.document.bom, "ids": one.ids}
        for row, one in pages
    ]


def _version(connection: Transaction, row: RowMapping) -> Version:
    return Version(row["version"], row["label"], row["sha256"], _snapshot(connection, row))


def run_event_query(connection: Transaction, statement: str, parameters: Mapping[str, Any]) -> list[Event]:
    """Run a statement that is shared with readers without SQLAlchemy; the events that it finds."""
    return [event_of_row(row) for row in connection.execute(text(statement), parameters).mappings()]


def _columns(
    connection: Transaction, before: RowMapping | None, snapshot: Snapshot, *, is_shown: bool = False
) -> dict[str, Any]:
    """The columns of a version: a delta to the base of the version before it, or the whole content.

    `is_shown`: see `SnapshotCache.add`.
    """
    columns: dict[str, Any] = {"base": None, "entries": len(snapshot.ids)}
    difference = None if before is None else _difference(connection, before, snapshot)
    if before is None or difference is None:
        columns["bytes"], columns["entry_ids"] = encode_whole(snapshot)
    else:
        columns["base"] = before["version"] if before["base"] is None else before["base"]
        columns["bytes"], columns["entry_ids"] = difference.encode()
    RECENT_SNAPSHOTS.add((columns["bytes"], columns["entry_ids"]), snapshot, is_shown=is_shown)
    return columns


def _difference(connection: Transaction, before: RowMapping, snapshot: Snapshot) -> VersionDelta | None:
    earlier = _snapshot(connection, before)
    if not same_encoding(earlier.document, snapshot.document):
        return None
    if before["base"] is None:
        delta = VersionDelta.of_base(before["bytes"], earlier)
    else:
        delta = VersionDelta.decode(before["bytes"], before["entry_ids"])
    return delta.next_delta(earlier, snapshot)


def _snapshot(connection: Transaction, row: RowMapping) -> Snapshot:
    """The snapshot of a row, cached by its content: one reconcile reads the newest version several times."""
    key = row["bytes"], row["entry_ids"]
    if (cached := RECENT_SNAPSHOTS.find(key)) is not None:
        return cached
    if row["base"] is None:
        snapshot = decode_whole(*key)
    else:
        difference = VersionDelta.decode(*key)
        base = connection.execute(_NUMBERED, {"number": row["base"]}).mappings().first()
        if base is None or base_digest(base["bytes"]) != difference.base_digest:
            raise ValueError(f"the base of version {row['version']} is not there any more")
        snapshot = difference.apply_to(_snapshot(connection, base))
    RECENT_SNAPSHOTS.add(key, snapshot)
    return snapshot


class SnapshotCache:
    """The last few snapshots by their stored content. The reader's and the writer's thread use it."""

    def __init__(self, max_size: int) -> None:
        self._max_size = max_size
        self._guard = threading.Lock()
        self._snapshots: OrderedDict[tuple[bytes, str], Snapshot] = OrderedDict()

    def find(self, key: tuple[bytes, str]) -> Snapshot | None:
        with self._guard:
            if key in self._snapshots:
                self._snapshots.move_to_end(key)
            return self._snapshots.get(key)

    def add(self, key: tuple[bytes, str], snapshot: Snapshot, *, is_shown: bool = False) -> None:
        """Add a snapshot. `is_shown`: it is the newest of the file, the only one that keeps derived values."""
        with self._guard:
            known = list(self._snapshots.values())
            if not is_shown and not any(other is snapshot for other in known):
                snapshot.drop_caches()
            for other in known if is_shown else ():
                if other is not snapshot:
                    other.drop_caches()
            self._snapshots[key] = snapshot
            self._snapshots.move_to_end(key)
            while len(self._snapshots) > self._max_size:
                self._snapshots.popitem(last=False)

    def clear(self) -> None:
        with self._guard:
            self._snapshots.clear()


RECENT_SNAPSHOTS: Final = SnapshotCache(6)
