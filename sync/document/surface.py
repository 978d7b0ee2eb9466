"""The memory file as bytes: read when nobody is writing, written only over what was read."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from sync.files import Probe, probe

SETTLED_AFTER: Final = 0.05  # two equal looks this far apart: half of all looks during a write saw half a file
PATIENCE: Final = 2.0  # a writer that takes longer is looked at again by the next event or poll

Sleep = Callable[[float], Awaitable[None]]


async def stable_read(path: Path, sleep: Sleep = asyncio.sleep, *, known: str | None = None) -> Probe | None:
    """The file once two looks agree, or None where there is none at both. After `PATIENCE`, whatever is there.

    One look is enough where it shows the version with the SHA-256 `known`: no half-written file does.
    """
    before = probe(path)
    if before is not None and before.sha256 == known:
        return before
    waited = 0.0
    while waited < PATIENCE:
        await sleep(SETTLED_AFTER)
        waited += SETTLED_AFTER
        after = probe(path)
        if before == after:
            return after
        before = after
    return before
