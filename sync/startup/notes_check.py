"""The check of notes for `doctor`."""

from collections.abc import Awaitable, Callable
from typing import Final

from sync.startup.checks import HealthCheck

MAX_SHOWN: Final = 5  # differences named in one finding


async def check_notes(known_drift: Callable[[], Awaitable[tuple[int, list[str]]]]) -> HealthCheck:
    """Compare INDEX.md and the notes in the projects that the log knows: how many, and what differs or is broken."""
    count, differences = await known_drift()
    if not count:
        return HealthCheck("notes", ok=None, found="no project has notes")
    if not differences:
        projects = "1 project" if count == 1 else f"{count} projects"
        return HealthCheck("notes", ok=True, found=f"{projects}; INDEX.md and notes agree")
    more = f" and {len(differences) - MAX_SHOWN} more" if len(differences) > MAX_SHOWN else ""
    hint = "The next command that writes a note repairs INDEX.md; correct or remove a broken file."
    return HealthCheck("notes", ok=False, found="; ".join(differences[:MAX_SHOWN]) + more, hint=hint)
