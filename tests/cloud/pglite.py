"""PGlite: PostgreSQL compiled to WASM, inside the Node process. Needs no installation; has one connection."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from filelock import AsyncFileLock

from tests.cloud import lite
from tests.cloud.tools import cache_directory, fingerprint, scratch_directory

log = logging.getLogger("tests.cloud")

TEMPLATE_WITHIN = 180.0  # seconds that a process waits for another one's template


@asynccontextmanager
async def directory() -> AsyncIterator[Path]:
    """A temporary directory whose `data` hold what a hosted project has and nothing else."""
    template = await _template()
    with scratch_directory() as scratch:
        await asyncio.to_thread(shutil.copytree, template, scratch / "data")
        yield scratch


async def _template() -> Path:
    cache = cache_directory()
    template = cache / f"pglite-{fingerprint()}"
    async with AsyncFileLock(cache / "template.lock", timeout=TEMPLATE_WITHIN):
        if not template.is_dir():
            log.info("preparing %s, once", template)
            with scratch_directory(below=cache) as scratch:
                await lite.prepare("pglite", str(scratch / "data"))
                (scratch / "data").rename(template)
    return template
