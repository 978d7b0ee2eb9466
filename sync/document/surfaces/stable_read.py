"""Read the memory file while no program is writing it."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from sync.system.files import FileProbe, read_once

READ_INTERVAL: Final = 0.05  # seconds between two equal reads: half of all single reads during a write saw half a file
MAX_WAIT: Final = 2.0  # seconds; the next event or poll reads again after a slower writer

Sleep = Callable[[float], Awaitable[None]]


async def stable_read(path: Path, sleep: Sleep = asyncio.sleep, *, known_sha256: str | None = None) -> FileProbe | None:
    """The file once two reads agree, or None if both find no file. After `MAX_WAIT`, the last read.

    One read is enough if it has the hash `known_sha256`: no half-written file has it.
    """
    before = read_once(path)
    if before is not None and before.sha256 == known_sha256:
        return before
    waited = 0.0
    while waited < MAX_WAIT:
        await sleep(READ_INTERVAL)
        waited += READ_INTERVAL
        after = read_once(path)
        if before == after:
            return after
        before = after
    return before
