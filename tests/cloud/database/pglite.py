"""PGlite: PostgreSQL compiled to WASM, inside the Node process. Needs no installation; has one connection."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cloud import node_server
from tests.cloud.database.data_templates import template_directory
from tests.cloud.prerequisites import scratch_directory


@asynccontextmanager
async def directory() -> AsyncIterator[Path]:
    """A temporary directory whose `data` hold what a hosted project has and nothing else."""
    template = await template_directory("pglite", lambda scratch: node_server.prepare("pglite", str(scratch / "data")))
    with scratch_directory() as scratch:
        await asyncio.to_thread(shutil.copytree, template / "data", scratch / "data")
        yield scratch
