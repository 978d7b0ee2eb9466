"""Where an account's memory lives: `profiles/<id>/` in the data directory, from the first start on.

A profile begins without an owner (the guest). The first login makes it that user's by one row in its own database,
so claiming the guest's events copies nothing and cannot be interrupted half-way. `installation.json` names the
active profile and this installation's device id.
"""

import contextlib
import json
import os
import re
import secrets
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from sync.device import device_id_from
from sync.errors import AlreadyRunning, StorageBusy, StorageCorrupt
from sync.files import make_private_folder, probe, told, write_private

DEVICE_ID_PATTERN: Final = r"^[A-Za-z0-9._:-]{1,128}\Z"
DEVICE_ID: Final = re.compile(DEVICE_ID_PATTERN)
SIDECAR_PID: Final = "sidecar.pid"
INSTALLATION: Final = "installation.json"
PROFILE_ID: Final = re.compile(r"^[0-9a-f]{16}$")  # checked before it becomes a path
PATIENCE: Final = 10.0  # seconds to wait for another process that starts at the same moment


@dataclass(frozen=True, slots=True)
class Installation:
    """What this data directory is."""

    profile: str
    device_id: str


@dataclass(frozen=True, slots=True)
class Profile:
    """One account's folder."""

    folder: Path

    @classmethod
    def of(cls, data_dir: Path, installation: Installation) -> "Profile":
        """Where a profile lives, whether or not it is there yet."""
        return cls(data_dir / "profiles" / installation.profile)

    @property
    def database(self) -> Path:
        return self.folder / "memory.db"

    @property
    def tokens(self) -> Path:
        return self.folder / "session.json"


def open_installation(data_dir: Path, hardware: Callable[[], str | None]) -> Installation:
    """Read what this data directory is, or decide it once, whoever comes first."""
    make_private_folder(data_dir)
    path = data_dir / INSTALLATION
    if not path.exists():
        with told(data_dir):
            try:
                with FileLock(data_dir / "installation.lock", timeout=PATIENCE, mode=0o600):
                    if not path.exists():
                        _create(path, hardware)
            except Timeout as error:  # an OSError to Python, so it is met first
                raise StorageBusy(f"{data_dir} is being set up by another process") from error
    return _read(path)


def known_installation(data_dir: Path) -> Installation | None:
    """What this data directory is, or None where nothing was ever opened in it (or it cannot be read)."""
    try:
        return _read(data_dir / INSTALLATION)
    except (FileNotFoundError, StorageCorrupt):
        return None  # opening it will say what is wrong


def rename_installation(data_dir: Path, installation: Installation) -> None:
    """Store what this data directory is from now on."""
    write_private(data_dir / INSTALLATION, json.dumps(asdict(installation), indent=2).encode() + b"\n")


def open_profile(data_dir: Path, installation: Installation) -> Profile:
    profile = Profile.of(data_dir, installation)
    make_private_folder(profile.folder.parent)
    make_private_folder(profile.folder)
    return profile


def take_sidecar_role(data_dir: Path, *, patience: float) -> FileLock:
    """Become the one process that watches, renders and syncs. The lock dies with its holder.

    Raises AlreadyRunning where another process still has it after `patience` seconds.
    """
    lock = FileLock(data_dir / "sidecar.lock", timeout=patience, mode=0o600)
    with told(data_dir):
        try:
            lock.acquire()
        except Timeout as error:  # an OSError to Python, so it is met first
            raise AlreadyRunning(f"another process serves {data_dir}") from error
    return lock


def note_sidecar_pid(data_dir: Path) -> None:
    """Say who holds the role, for `doctor`; nothing depends on it."""
    with contextlib.suppress(OSError):
        descriptor = os.open(data_dir / SIDECAR_PID, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(str(os.getpid()))


def sidecar_pid(data_dir: Path) -> int | None:
    """The last process that said it holds the role; meaningful only while somebody does."""
    try:
        return int((data_dir / SIDECAR_PID).read_text())
    except (OSError, ValueError):
        return None


def _create(path: Path, hardware: Callable[[], str | None]) -> None:
    found = hardware()
    installation = Installation(
        profile=secrets.token_hex(8), device_id=device_id_from(found) if found else str(uuid.uuid4())
    )
    rename_installation(path.parent, installation)


def _read(path: Path) -> Installation:
    found_file = probe(path)
    try:
        value = json.loads(found_file.data if found_file else b"")
        installation = Installation(profile=value["profile"], device_id=value["device_id"])
    except (ValueError, KeyError, TypeError) as error:
        raise StorageCorrupt(f"{path} cannot be read", hint="Restore it from a backup, or move it aside.") from error
    for name, pattern in (("profile", PROFILE_ID), ("device_id", DEVICE_ID)):
        found = getattr(installation, name)
        if not isinstance(found, str) or not pattern.fullmatch(found):
            raise StorageCorrupt(f"{path} names an impossible {name}", hint="Restore it from a backup.")
    return installation
