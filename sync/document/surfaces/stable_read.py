"""The memory file as bytes: read when nobody is writing, written only over what was read."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from sync.system.files import FileProbe, read_once

READ_INTERVAL: Final = 0.05  # two equal looks this far apart: half of all looks during a write saw half a file
MAX_WAIT: Final = 2.0  # a writer that takes longer is looked at again by the next event or poll

Sleep = Callable[[float], Awaitable[None]]


async def stable_read(path: Path, sleep: Sleep = asyncio.sleep, *, known_sha256: str | None = None) -> FileProbe | None:
    """The file once two looks agree, or None where there is none at both. After `PATIENCE`, whatever is there.

    One look is enough where it shows the version with the SHA-256 `known`: no half-written file does.
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
