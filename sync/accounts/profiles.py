"""Where an account's memory lives: `profiles/<id>/` in the data directory, from the first start on.

A profile begins without an owner (the guest). The first login makes it that user's by one row in its own database,
so claiming the guest's events copies nothing and cannot be interrupted half-way. Another user gets a profile of his
own. `installation.json` names the active profile, this installation's device id, and whose document lies in the one
memory file: writing its first word is the whole of a switch between accounts, everything after it is made up for by
whoever opens the profile next (`sync.document.surfaces.handover`).
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import sqlite3
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from filelock import FileLock

from sync.encryption.database_encryption import DatabaseEncryption
from sync.encryption.driver import driver_errors
from sync.encryption.emptied_marker import EmptiedDatabase
from sync.errors import AlreadyRunning, StorageBusy, StorageCorrupt, StorageError, XiaobaiError
from sync.system.files import make_private_folder, read_once, translate_os_errors, write_private
from sync.system.hardware_id import derive_device_id
from sync.system.process_lock import ProcessLock

DEVICE_ID_PATTERN: Final = r"^[A-Za-z0-9._:-]{1,128}\Z"
DEVICE_ID_REGEX: Final = re.compile(DEVICE_ID_PATTERN)
SIDECAR_PID_FILE: Final = "sidecar.pid"
INSTALLATION_FILE: Final = "installation.json"
PROFILES_FOLDER: Final = "profiles"  # the folder of their folders
PROFILE_ID_REGEX: Final = re.compile(r"^[0-9a-f]{16}$")  # checked before it becomes a path
PROOF_REGEX: Final = re.compile(r"^[0-9a-f]{64}\Z")
OPTIONAL_FIELDS: Final = (
    ("document_of", PROFILE_ID_REGEX),
    ("removing", PROFILE_ID_REGEX),
    ("former", DEVICE_ID_REGEX),
    ("former_proof", PROOF_REGEX),
)
INSTALLATION_LOCK_TIMEOUT: Final = 10.0  # seconds to wait for another process that starts at the same moment
OWNER_READ_TIMEOUT: Final = 5.0  # seconds to wait for whoever locks another profile's database
# Waiting changes nothing about these: the table was never made, or the file is damaged.
UNREADABLE_CODES: Final = frozenset({sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})


@dataclass(frozen=True, slots=True)
class Installation:
    """What this data directory is. `document_of`: the profile whose document the memory file holds, if another's.

    `removing`: a profile whose owner wanted no copy to stay; it goes as soon as nobody works in it.
    `former`: the replica id of one that went; whoever speaks for this device next takes over from it, with the proof
    of its key (`former_proof`), which went too.
    `earlier_ids`: as what it spoke before `device_id`; those words are in its document, so no other device's.
    """

    profile: str
    device_id: str
    document_of: str | None = None
    removing: str | None = None
    former: str | None = None
    former_proof: str | None = None
    earlier_ids: tuple[str, ...] = ()

    def device_identity(self, setting: str | None) -> tuple[str, tuple[str, ...]]:
        """The device's id and its earlier ones. A setting that outranks it makes it another device, without a past."""
        return (self.device_id, self.earlier_ids) if setting is None else (setting, ())


@dataclass(frozen=True, slots=True)
class Profile:
    """One account's folder."""

    folder: Path

    @classmethod
    def of(cls, data_dir: Path, installation: Installation) -> "Profile":
        """Where the active profile lives, whether or not it is there yet."""
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
        """Documents of this profile that turned up while another one was active."""
        return self.folder / "parked"

    @property
    def archives_folder(self) -> Path:
        """What retention took from its log."""
        return self.data_dir / "archive" / self.name

    def other_profiles(self) -> list["Profile"]:
        """The other profiles of this data directory."""
        found = (
            Profile(path) for path in sorted(self.folder.parent.iterdir()) if PROFILE_ID_REGEX.fullmatch(path.name)
        )
        return [profile for profile in found if profile != self]

    def read_owner(self, encryption: DatabaseEncryption) -> str | None:
        """The user this profile belongs to; None for a guest's, and where damage has hidden whose it is.

        Raises StorageError, SettingsError where it cannot be asked now: locked, without its key, on a failing disk.
        """
        return self._query_database("select user_id from accounts", encryption) or None

    def read_replica_id(self, encryption: DatabaseEncryption) -> str | None:
        """The id under which its database speaks; None where it cannot be read."""
        try:
            return self._query_database("select replica_id from replica", encryption)
        except XiaobaiError:
            return None

    def _query_database(self, query: str, encryption: DatabaseEncryption) -> str | None:
        with translate_os_errors(self.database):
            if not self.database.exists():
                return None
        try:
            with encryption.read_only_connection(self.database, OWNER_READ_TIMEOUT) as connection:
                row = connection.execute(query).fetchone()
        except (
            EmptiedDatabase,
            UnicodeDecodeError,
        ):  # the latter are the words of SQLite's complaint about a damaged schema
            return None
        except driver_errors("Error") as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            if code in UNREADABLE_CODES:
                return None
            kind = StorageBusy if code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED} else StorageError
            name = getattr(error, "sqlite_errorname", code)
            raise kind(f"{self.database} cannot be read now: SQLite reported {name}") from error
        return None if row is None else str(row[0])


def open_installation(data_dir: Path, read_hardware_id: Callable[[], str | None]) -> Installation:
    """Read what this data directory is, or decide it once, whoever comes first."""
    make_private_folder(data_dir)
    path = data_dir / INSTALLATION_FILE
    if not path.exists():
        with _installation_lock(data_dir):
            if not path.exists():
                found = read_hardware_id()
                device_id = derive_device_id(found) if found else str(uuid.uuid4())
                profile = _find_orphaned_profile(data_dir) or new_profile_id()
                _write_installation(data_dir, Installation(profile=profile, device_id=device_id))
    return _parse_installation(path)


def _find_orphaned_profile(data_dir: Path) -> str | None:
    """The profile that was the active one, where the file that said so is gone; None where there never was any.

    Begun anew, its words would lie in a folder that nobody names. With several nobody can tell whose turn it was.
    """
    folder = data_dir / PROFILES_FOLDER
    with translate_os_errors(folder):
        names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    found = [name for name in names if PROFILE_ID_REGEX.fullmatch(name)]
    if len(found) > 1:
        said = '{"profile": "' + " or ".join(found) + '", "device_id": "a name of this device"}'
        raise StorageCorrupt(
            f"{data_dir / INSTALLATION_FILE} is gone, and several memories are there",
            hint=f"Restore it from a backup, or say in it whose turn it is: {said}",
        )
    return found[0] if found else None


def read_installation(data_dir: Path) -> Installation | None:
    """What this data directory is, or None where nothing was ever opened in it (or it cannot be read)."""
    try:
        return _parse_installation(data_dir / INSTALLATION_FILE)
    except (FileNotFoundError, StorageCorrupt):
        return None  # opening it will say what is wrong


def change_installation(data_dir: Path, change: Callable[[Installation], Installation]) -> Installation:
    """Store what this data directory is from now on; of several that change it at once, none undoes another's."""
    with _installation_lock(data_dir):
        changed = change(_parse_installation(data_dir / INSTALLATION_FILE))
        _write_installation(data_dir, changed)
    return changed


def with_active_profile(installation: Installation, profile: str, *, removing: str | None = None) -> Installation:
    """Another profile is active from now on; the memory file still holds the document of the one that leaves.

    Switching back before anybody has handed the file over leaves nothing to hand over.
    """
    holder = installation.document_of or installation.profile
    goes = removing or installation.removing
    return replace(
        installation,
        profile=profile,
        document_of=None if holder == profile else holder,
        removing=None if goes == profile else goes,
    )


def with_device_id(installation: Installation, device_id: str, hardware: str | None) -> Installation:
    """It speaks as `device_id` from now on. What it was called before stays its own where this is the same machine.

    Under the ids that came along with a copied home the machine it was copied from goes on speaking. That it is none
    shows in an id made of this hardware, with which every installation begins; one without such an id cannot tell.
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
    """Become the one process that watches, renders and syncs. The lock dies with its holder.

    Raises AlreadyRunning where another process still has it after `patience` seconds.
    """
    busy = partial(AlreadyRunning, f"another process serves {data_dir}")
    return ProcessLock(data_dir / "sidecar.lock", timeout=timeout, timeout_error=busy).acquire()


def write_sidecar_pid(data_dir: Path) -> None:
    """Say who holds the role, for `doctor`; nothing depends on it."""
    with contextlib.suppress(OSError):
        flags = os.O_CREAT | os.O_TRUNC | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(data_dir / SIDECAR_PID_FILE, flags, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(str(os.getpid()))


def read_sidecar_pid(data_dir: Path) -> int | None:
    """The last process that said it holds the role; meaningful only while somebody does."""
    try:
        return int((data_dir / SIDECAR_PID_FILE).read_text())
    except (OSError, ValueError):
        return None


def remove_profile(data_dir: Path, name: str) -> None:
    """Delete a profile's folder with all that is in it. Once begun it may be repeated until nothing is left."""
    if not PROFILE_ID_REGEX.fullmatch(name):
        raise StorageCorrupt(f"{name!r} is no profile")
    folder = data_dir / PROFILES_FOLDER / name
    with translate_os_errors(folder):
        if folder.exists():
            shutil.rmtree(folder)


def remove_profile_tree(folder: Path) -> None:
    """Delete what a profile keeps elsewhere, with all that is in it. No link is followed."""
    if not PROFILE_ID_REGEX.fullmatch(folder.name):
        raise StorageCorrupt(f"{folder.name!r} is no profile")
    with translate_os_errors(folder):
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)


@contextlib.contextmanager
def _installation_lock(data_dir: Path) -> Iterator[None]:
    """The right to write `installation.json`, among processes."""
    busy = partial(StorageBusy, f"{data_dir} is being set up by another process")
    lock = ProcessLock(data_dir / "installation.lock", timeout=INSTALLATION_LOCK_TIMEOUT, timeout_error=busy)
    with lock.hold_blocking():
        yield


def _write_installation(data_dir: Path, installation: Installation) -> None:
    said = {name: value for name, value in asdict(installation).items() if value not in (None, ())}
    write_private(data_dir / INSTALLATION_FILE, json.dumps(said, indent=2).encode() + b"\n")


def _parse_installation(path: Path) -> Installation:
    found_file = read_once(path)
    try:
        value = json.loads(found_file.data if found_file else b"")
        installation = Installation(
            value["profile"],
            value["device_id"],
            value.get("document_of"),
            value.get("removing"),
            value.get("former"),
            value.get("former_proof"),
            tuple(value["earlier_ids"]) if isinstance(value.get("earlier_ids"), list) else (),
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
