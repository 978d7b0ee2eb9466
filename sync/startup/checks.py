"""One finding of `doctor`, and how a check is run: a check that fails itself is a finding too."""

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from sync.errors import XiaobaiError

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
