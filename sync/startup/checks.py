"""One finding of `doctor`, and how a check is run: a check that fails itself is a finding too."""

import inspect
import logging
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from sync.errors import XiaobaiError
from sync.settings.data_dir import ENV_PREFIX

MIN_FREE_BYTES: Final = 100 * 1024 * 1024  # below it the database may soon fail
FAILED_CHECK_HINT: Final = "`xiaobai-memory events verify` and the sidecar's log may say more; please report it."

log = logging.getLogger(__name__)


class HealthCheck(msgspec.Struct, frozen=True):
    """One finding. `ok` is None if there is nothing to judge (no cloud is set); `hint` says what to do if False."""

    name: str
    ok: bool | None
    found: str
    hint: str = ""


async def run_check(name: str, check: Callable[[], Any]) -> list[HealthCheck]:
    """Run one check, synchronous or not. If the check itself fails, that is the finding; nothing is raised."""
    try:
        found = check()
        found = await found if inspect.isawaitable(found) else found
    except XiaobaiError as error:
        return [HealthCheck(name, ok=False, found=error.message, hint=error.hint)]
    except Exception as error:
        log.debug("the check %s failed", name, exc_info=True)
        return [
            HealthCheck(name, ok=False, found=f"this check failed ({type(error).__name__})", hint=FAILED_CHECK_HINT)
        ]
    return found if isinstance(found, list) else [found]


async def run_checks(checks: Mapping[str, Callable[[], Any]]) -> list[HealthCheck]:
    """Run checks one after the other."""
    return [found for name, check in checks.items() for found in await run_check(name, check)]


def check_folder(name: str, folder: Path | None, setting: str) -> HealthCheck:
    """A folder can be written or created, and has free space."""
    if folder is None:
        return HealthCheck(name, ok=None, found=f"off: encryption at rest; {ENV_PREFIX}{setting} turns them on")
    existing = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not (os.access(existing, os.W_OK | os.X_OK) and existing.is_dir()):
        hint = f"Set {ENV_PREFIX}{setting} to another folder, or give this user write permission to this one."
        return HealthCheck(name, ok=False, found=f"{existing} is no folder that can be written to", hint=hint)
    free = shutil.disk_usage(existing).free
    found = f"{existing}: {free // (1024 * 1024)} MiB free"
    return HealthCheck(name, ok=free >= MIN_FREE_BYTES, found=found, hint="Free some disk space.")
