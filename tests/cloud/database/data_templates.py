"""Data directories that are prepared once per version, kept in the user's cache, and copied by every start."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

from filelock import AsyncFileLock

from tests.cloud.prerequisites import Account, cache_directory, fingerprint, scratch_directory

log = logging.getLogger("tests.cloud")

WAIT_WITHIN = 180.0  # seconds for another process to make the template; 1–7 s are usual


async def template_directory(
    database: str, create: Callable[[Path], Awaitable[None]], *, account: Account | None = None
) -> Path:
    """The result of `make` in an empty directory. The first process runs it; the others wait."""
    cache = cache_directory()
    template = cache / f"{database}-{fingerprint()}"
    async with AsyncFileLock(cache / "template.lock", timeout=WAIT_WITHIN):
        if not template.is_dir():
            log.info("preparing %s, once", template)
            with scratch_directory(account, below=cache) as scratch:
                await create(scratch)
                scratch.rename(template)
    return template
