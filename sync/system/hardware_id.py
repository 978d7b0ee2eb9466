"""Derive a stable device id from the hardware, as the original app does."""

import platform
import re
import subprocess
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Final

# Our own UUIDv5 namespace: the same machine gives other programs other ids.
DEVICE_ID_NAMESPACE: Final = uuid.UUID("6f1d2f0e-6d0b-5f6e-9d5a-2f4a3c9b7e10")
LINUX_ID_FILES: Final = ("/etc/machine-id", "/var/lib/dbus/machine-id")
MAC_COMMAND: Final = ("/usr/sbin/ioreg", "-rd1", "-c", "IOPlatformExpertDevice")
MAX_DEVICE_NAME: Final = 128  # of a device's name, as the setting DEVICE_NAME; the server takes 200
COMMAND_TIMEOUT: Final = 3.0  # seconds for the operating system to answer


def read_hardware_id() -> str | None:
    """The operating system's id of the machine, or None if it has none."""
    readers: dict[str, Callable[[], str | None]] = {
        "Linux": _read_linux_id,
        "Darwin": _read_mac_id,
        "Windows": _read_windows_id,
    }
    reader = readers.get(platform.system())
    return reader() if reader else None


def derive_device_id(hardware: str) -> str:
    """UUIDv5 of the hardware id: stable, and not the hardware id itself."""
    return str(uuid.uuid5(DEVICE_ID_NAMESPACE, hardware.strip().lower()))


def _read_linux_id() -> str | None:
    for candidate in LINUX_ID_FILES:
        try:
            text = Path(candidate).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text:
            return text
    return None


def _read_mac_id() -> str | None:
    try:
        answer = subprocess.run(MAC_COMMAND, capture_output=True, text=True, timeout=COMMAND_TIMEOUT, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'"IOPlatformUUID"\s*=\s*"([^"]+)"', answer.stdout)
    return found.group(1) if found else None


def _read_windows_id() -> str | None:
    import winreg  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - exists on Windows only

    try:
        path = r"SOFTWARE\Microsoft\Cryptography"
        with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:  # type: ignore[attr-defined,unused-ignore]
            return str(winreg.QueryValueEx(key, "MachineGuid")[0])  # type: ignore[attr-defined,unused-ignore]
    except OSError:
        return None
