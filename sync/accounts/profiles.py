"""The folder of an account's memory: `profiles/<id>/` in the data directory.

A profile begins without an owner (a guest). The first login makes it the user's by one row in its database; another
user gets another profile. `installation.json` names the active profile, the device id, and the profile whose document
the memory file holds. Writing it is a switch between accounts; the next start does the rest.
"""

import contextlib
import itertools
import json
import os
import re
import secrets
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from filelock import FileLock
from msgspec.structs import asdict, replace

from sync.encryption.database_encryption import DatabaseEncryption
from sync.encryption.driver import driver_errors
from sync.encryption.emptied_marker import EmptiedDatabase
from sync.errors import AlreadyRunning, StorageBusy, StorageCorrupt, StorageError, XiaobaiError
from sync.system.files import make_private_folder, read_once, stat_stamp, translate_os_errors, write_private
from sync.system.hardware_id import derive_device_id
from sync.system.process_lock import ProcessLock

DEVICE_ID_PATTERN: Final = r"^[A-Za-z0-9._:-]{1,128}\Z"
DEVICE_ID_REGEX: Final = re.compile(DEVICE_ID_PATTERN)
SIDECAR_PID_FILE: Final = "sidecar.pid"
INSTALLATION_FILE: Final = "installation.json"
PROFILES_FOLDER: Final = "profiles"  # it has a folder for each
PROFILE_ID_REGEX: Final = re.compile(r"^[0-9a-f]{16}$")  # checked before it becomes a path
PROOF_REGEX: Final = re.compile(r"^[0-9a-f]{64}\Z")
OPTIONAL_FIELDS: Final = (
    ("document_of", PROFILE_ID_REGEX),
    ("removing", PROFILE_ID_REGEX),
    ("former", DEVICE_ID_REGEX),
    ("former_proof", PROOF_REGEX),
)
MAX_REMOVED: Final = 8  # removed profiles whose documents are recognised
INSTALLATION_LOCK_TIMEOUT: Final = 10.0  # seconds to wait for another process that starts at the same moment
OWNER_READ_TIMEOUT: Final = 5.0  # seconds to wait for a lock on another profile's database
_DEVICE_IDS: Final = """
select group_concat(device_id) from (select device_id from events
where replica_id = (select replica_id from replica) group by device_id order by max(position) desc)
"""
# Waiting does not help: the table was never created, or the file is damaged.
UNREADABLE_CODES: Final = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


class Installation(msgspec.Struct, frozen=True):
    """The content of `installation.json`. `document_of`: the profile whose document the memory file holds, if another.

    `removing`: a profile to remove as soon as no process uses it. `former`: the replica id of a removed profile; the
    next one takes the device over from it, with the proof of its deleted key (`former_proof`). `earlier_ids`: former
    ids of this device; events under them are its own. `removed`: the profiles of removed accounts, with digests of
    their owner and of the labels of their versions. `warning`, never stored: how it was derived if it was damaged.
    """

    profile: str
    device_id: str
    document_of: str | None = None
    removing: str | None = None
    former: str | None = None
    former_proof: str | None = None
    earlier_ids: tuple[str, ...] = ()
    removed: Mapping[str, tuple[str, ...]] = {}
    warning: str = ""

    def device_identity(self, setting: str | None) -> tuple[str, tuple[str, ...]]:
        """The device's id and its earlier ones. A setting makes it another device, without earlier ids."""
        return (self.device_id, self.earlier_ids) if setting is None else (setting, ())


class Profile(msgspec.Struct, frozen=True):
    """One account's folder."""

    folder: Path

    @classmethod
    def of(cls, data_dir: Path, installation: Installation) -> "Profile":
        """The active profile, whether or not it exists yet."""
        return cls(data_dir / PROFILES_FOLDER / installation.profile)

    @property
    def name(self) -> str:
        return self.folder.name

    @property
    def data_dir(self) -> Path:
        return self.folder.parents[1]

    @property
    def database(self) -> Path:
        return self.folder / "memory.db"

    @property
    def session_file(self) -> Path:
        return self.folder / "session.json"

    @property
    def parked_folder(self) -> Path:
        """Documents of this profile that were saved while another one was active."""
        return self.folder / "parked"

    @property
    def removed_accounts_folder(self) -> Path:
        """Documents of removed accounts that were saved again."""
        return self.data_dir / "parked"

    @property
    def archives_folder(self) -> Path:
        """The archives of its log."""
        return self.data_dir / "archive" / self.name

    def other_profiles(self) -> list["Profile"]:
        """The other profiles of this data directory."""
        found = (
            Profile(path) for path in sorted(self.folder.parent.iterdir()) if PROFILE_ID_REGEX.fullmatch(path.name)
        )
        return [profile for profile in found if profile != self]

    def read_owner(self, encryption: DatabaseEncryption) -> str | None:
        """The owner of this profile; None for a guest's profile and if damage has hidden the owner.

        Raises StorageError, SettingsError if it cannot be read now: locked, without its key, on a failing disk.
        """
        return self._query_database("select user_id from accounts", encryption) or None

    def read_replica_id(self, encryption: DatabaseEncryption) -> str | None:
        """Its database's replica id; None if it cannot be read."""
        try:
            return self._query_database("select replica_id from replica", encryption)
        except XiaobaiError:
            return None

    def read_device_ids(self, encryption: DatabaseEncryption) -> list[str]:
        """The device ids of its replica's events, the newest first; none if they cannot be read."""
        try:
            found = (self._query_database(_DEVICE_IDS, encryption) or "").split(",")
        except XiaobaiError:
            return []
        return [name for name in found if DEVICE_ID_REGEX.fullmatch(name)]

    def _query_database(self, query: str, encryption: DatabaseEncryption) -> str | None:
        with translate_os_errors(self.database):
            if not self.database.exists():
                return None
        try:
            row = self._first_row(query, encryption)
        except (EmptiedDatabase, UnicodeDecodeError):  # the second comes from SQLite's message about a damaged schema
            return None
        except driver_errors("Error") as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in UNREADABLE_CODES:
                return None
            kind = StorageBusy if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED} else StorageError
            name = getattr(error, "sqlite_errorname", code)
            raise kind(f"{self.database} cannot be read now: SQLite reported {name}") from error
        return None if row is None or row[0] is None else str(row[0])

    def _first_row(self, query: str, encryption: DatabaseEncryption) -> Any:
        try:
            with encryption.read_only_connection(self.database, OWNER_READ_TIMEOUT) as connection:
                return connection.execute(query).fetchone()
        except driver_errors("Error") as error:
            if getattr(error, "sqlite_errorcode", None) != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise
        access = encryption.access_for(self.database)  # a killed first start left a journal: who may write rolls back
        with contextlib.closing(access.connect(self.database, timeout=OWNER_READ_TIMEOUT)) as connection:
            return connection.execute(query).fetchone()


def open_installation(
    data_dir: Path,
    read_hardware_id: Callable[[], str | None],
    encryption: DatabaseEncryption | None = None,
    jsonl_root: Path | None = None,
) -> Installation:
    """Read `installation.json`; the first process creates it. A damaged one is kept beside it and derived again.

    `jsonl_root`: the folder of the event files, which name a profile whose own folder is gone.
    """
    make_private_folder(data_dir)
    if (found := read_installation(data_dir)) is not None:
        return found
    with _installation_lock(data_dir):
        found = read_installation(data_dir)
        return found or _derive_installation(data_dir, read_hardware_id, encryption, jsonl_root)


def _derive_installation(
    data_dir: Path,
    read_hardware_id: Callable[[], str | None],
    encryption: DatabaseEncryption | None,
    jsonl_root: Path | None,
) -> Installation:
    """The installation of the profile that was written last, under the device ids of its newest events."""
    path, profiles = data_dir / INSTALLATION_FILE, _profiles_by_use(data_dir, jsonl_root)
    names = (path.with_name(f"{path.name}.damaged-{number}") for number in itertools.count(1))
    aside = next(name for name in names if not name.exists()) if path.exists() else None
    device_ids = profiles[0].read_device_ids(encryption or DatabaseEncryption()) if profiles else []
    if not device_ids:
        hardware = read_hardware_id()
        device_ids = [derive_device_id(hardware) if hardware else str(uuid.uuid4())]
    name = profiles[0].name if profiles else new_profile_id()
    derived = Installation(profile=name, device_id=device_ids[0], earlier_ids=tuple(device_ids[1:]))
    if aside is not None:
        with translate_os_errors(path):
            path.rename(aside)
    _write_installation(data_dir, derived)
    if aside is None and len(profiles) <= 1:
        return derived
    kept = f"could not be read and is kept as {aside.name}" if aside else "was gone"
    others = f", the last used of {len(profiles)}" if len(profiles) > 1 else ""
    return replace(derived, warning=f"installation_derived: {path} {kept}; written again with profile {name}{others}")


def _profiles_by_use(data_dir: Path, jsonl_root: Path | None) -> list[Profile]:
    """The profiles of a data directory, the last used first. A new profile would hide their data."""
    folder, lines = data_dir / PROFILES_FOLDER, dict[str, int]()
    with translate_os_errors(folder):
        for path in jsonl_root.glob("*/events/*/*.jsonl") if jsonl_root else ():
            name = path.parents[2].name
            lines[name] = max(lines.get(name, 0), path.stat().st_mtime_ns)
        names = {*lines, *(path.name for path in (folder.iterdir() if folder.is_dir() else ()))}
    found = [Profile(folder / name) for name in sorted(filter(PROFILE_ID_REGEX.fullmatch, names))]
    return sorted(found, key=lambda profile: (_last_use(profile), lines.get(profile.name, 0)), reverse=True)


def _last_use(profile: Profile) -> int:
    stamps = (stat_stamp(profile.database.with_name(f"memory.db{suffix}")) for suffix in ("", "-wal"))
    return max((stamp[1] for stamp in stamps if stamp is not None), default=0)


def read_installation(data_dir: Path) -> Installation | None:
    """The content of `installation.json`; None if there is none or it cannot be read."""
    try:
        return _parse_installation(data_dir / INSTALLATION_FILE)
    except (FileNotFoundError, StorageCorrupt):
        return None


def change_installation(data_dir: Path, change: Callable[[Installation], Installation]) -> Installation:
    """Change `installation.json` under its lock."""
    with _installation_lock(data_dir):
        changed = change(_parse_installation(data_dir / INSTALLATION_FILE))
        _write_installation(data_dir, changed)
    return changed


def with_active_profile(installation: Installation, profile: str, *, removing: str | None = None) -> Installation:
    """Make another profile active; the memory file still holds the former one's document.

    After switching back before the file was handed over there is nothing to hand over.
    """
    holder = installation.document_of or installation.profile
    removed = removing or installation.removing
    return replace(
        installation,
        profile=profile,
        document_of=None if holder == profile else holder,
        removing=None if removed == profile else removed,
    )


def with_removed_account(installation: Installation, profile: str, digests: Sequence[str]) -> Installation:
    """Note a removed account's profile. If this is repeated, the digests that are known stay."""
    others = [(name, found) for name, found in installation.removed.items() if name != profile]
    known = dict.fromkeys((*installation.removed.get(profile, ()), *digests))
    return replace(installation, removed=dict([*others, (profile, tuple(known))][-MAX_REMOVED:]))


def with_device_id(installation: Installation, device_id: str, hardware: str | None) -> Installation:
    """Use `device_id` from now on. Its former ids stay its own if this is the same machine.

    After a home directory was copied, the original machine keeps using those ids. An id derived from other hardware
    shows a copy.
    """
    called = (*installation.earlier_ids, installation.device_id)
    is_copied = hardware is not None and derive_device_id(hardware) not in called
    earlier = () if is_copied else tuple(name for name in dict.fromkeys(called) if name != device_id)
    return replace(installation, device_id=device_id, earlier_ids=earlier)


def new_profile_id() -> str:
    return secrets.token_hex(8)


def create_profile_folder(data_dir: Path, installation: Installation) -> Profile:
    profile = Profile.of(data_dir, installation)
    make_private_folder(profile.folder.parent)
    make_private_folder(profile.folder)
    return profile


def acquire_sidecar_lock(data_dir: Path, *, timeout: float) -> FileLock:
    """Become the one process that watches, renders and syncs.

    Raises AlreadyRunning if another process still holds the lock after `timeout` seconds.
    """
    busy = partial(AlreadyRunning, f"another process serves {data_dir}")
    return ProcessLock(data_dir / "sidecar.lock", timeout=timeout, timeout_error=busy).acquire()


def write_sidecar_pid(data_dir: Path) -> None:
    """Write the holder's process id for `doctor`; nothing else depends on it."""
    with contextlib.suppress(OSError):
        flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(data_dir / SIDECAR_PID_FILE, flags, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(str(os.getpid()))


def read_sidecar_pid(data_dir: Path) -> int | None:
    """The last holder's process id; meaningful only while the lock is held."""
    try:
        return int((data_dir / SIDECAR_PID_FILE).read_text())
    except (OSError, ValueError):
        return None


def remove_profile(data_dir: Path, name: str) -> None:
    """Delete a profile's folder. May be repeated until nothing is left."""
    if not PROFILE_ID_REGEX.fullmatch(name):
        raise StorageCorrupt(f"{name!r} is no profile")
    folder = data_dir / PROFILES_FOLDER / name
    with translate_os_errors(folder):
        if folder.exists():
            shutil.rmtree(folder)


def remove_profile_tree(folder: Path) -> None:
    """Delete a folder that a profile has elsewhere. Does not follow links."""
    if not PROFILE_ID_REGEX.fullmatch(folder.name):
        raise StorageCorrupt(f"{folder.name!r} is no profile")
    with translate_os_errors(folder):
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)


@contextlib.contextmanager
def _installation_lock(data_dir: Path) -> Iterator[None]:
    """Hold the lock for writing `installation.json`."""
    busy = partial(StorageBusy, f"{data_dir} is being set up by another process")
    lock = ProcessLock(data_dir / "installation.lock", timeout=INSTALLATION_LOCK_TIMEOUT, timeout_error=busy)
    with lock.hold_blocking():
        yield


def _write_installation(data_dir: Path, installation: Installation) -> None:
    fields = {
        name: value for name, value in asdict(installation).items() if value not in (None, (), {}) and name != "warning"
    }
    write_private(data_dir / INSTALLATION_FILE, json.dumps(fields, indent=2).encode() + b"\n")


def _parse_installation(path: Path) -> Installation:
    file = read_once(path)
    try:
        value = json.loads(file.data if file else b"")
        installation = Installation(
            value["profile"],
            value["device_id"],
            value.get("document_of"),
            value.get("removing"),
            value.get("former"),
            value.get("former_proof"),
            tuple(value["earlier_ids"]) if isinstance(value.get("earlier_ids"), list) else (),
            {str(name): tuple(map(str, found)) for name, found in (value.get("removed") or {}).items()},
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise StorageCorrupt(f"{path} cannot be read", hint="Restore it from a backup, or move it aside.") from error
    _check_pattern(path, "device_id", installation.device_id, DEVICE_ID_REGEX)
    _check_pattern(path, "profile", installation.profile, PROFILE_ID_REGEX)
    for name, pattern in OPTIONAL_FIELDS:
        if (found := getattr(installation, name)) is not None:
            _check_pattern(path, name, found, pattern)
    for earlier in installation.earlier_ids:
        _check_pattern(path, "earlier id", earlier, DEVICE_ID_REGEX)
    if installation.removing == installation.profile:
        raise StorageCorrupt(f"{path} names the active profile as one to remove", hint="Take `removing` out of it.")
    return installation


def _check_pattern(path: Path, name: str, value: object, pattern: re.Pattern[str]) -> None:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise StorageCorrupt(f"{path} names an impossible {name}", hint="Restore it from a backup.")
