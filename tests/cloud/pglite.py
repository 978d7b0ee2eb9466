"""PGlite: PostgreSQL compiled to WASM, inside the Node process. Needs no installation; has one connection."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cloud import lite
from tests.cloud.template import prepared
from tests.cloud.tools import scratch_directory


@asynccontextmanager
async def directory() -> AsyncIterator[Path]:
    """A temporary directory whose `data` hold what a hosted project has and nothing else."""
    template = await prepared("pglite", lambda scratch: lite.prepare("pglite", str(scratch / "data")))
    with scratch_directory() as scratch:
        await asyncio.to_thread(shutil.copytree, template / "data", scratch / "data")
        yield scratch
