"""What the tests of recall stand on: one device's log, and its index asked through `Recall`."""

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sync.recall.embedder import Embedder, Unembedded
from sync.recall.meaning import Meaning
from sync.recall.model import Answer, Ask
from sync.recall.search import Recall
from sync.sections import RecallSettings
from tests.support import BROKEN_AFTER, Device, FixedClock, new_server, open_device


@dataclass
class Desk:
    """A device and its recall."""

    device: Device
    recall: Recall

    @property
    def meaning(self) -> Meaning:
        return self.recall.meaning

    async def embed(self) -> None:
        """Make the vectors of all there is, as the sidecar does in the background."""
        await self.recall.follower.catch_up()
        while await self.meaning.embed_some():
            pass

    async def keep(self, *texts: str, kind: str = "memory_fact", **more: Any) -> list[str]:
        """Record one event for each text, as another program would; their ids."""
        given = [{"type": kind, "payload": {"content": text}, **more} for text in texts]
        recorded = await self.device.log.record(self.device.intake.drafts(given))
        return [item.event.event_id for item in recorded]

    async def event(self, kind: str, **payload: Any) -> str:
        (recorded,) = await self.device.log.record([self.device.intake.draft({"type": kind, "payload": payload})])
        return recorded.event.event_id

    async def forget(self, *event_ids: str) -> None:
        await self.device.log.record([self.device.intake.forgotten(event_ids)])

    async def ask(self, query: str, **more: Any) -> Answer:
        return await self.recall.search(Ask(query, **more))

    async def found(self, query: str, **more: Any) -> list[str]:
        return [hit.kept.text for hit in (await self.ask(query, **more)).hits]


class LetterEmbedder:
    """A model whose vectors count letters: cheap, the same everywhere, and near for texts that share some.

    `texts` is what it was given; with `broken` it refuses, with `held` it waits until that is set.
    """

    batch = 4

    def __init__(self, name: str = "letters", dimension: int = 32) -> None:
        self.name = name
        self.texts: list[str] = []
        self.broken = False
        self.held: asyncio.Event | None = None
        self._dimension = dimension

    async def identity(self) -> str:
        return self.name

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[bytes]:
        del query
        if self.held is not None:
            await self.held.wait()
        if self.broken:
            raise Unembedded("asked to")
        self.texts += texts
        return [self._vector(text) for text in texts]

    async def close(self) -> None:
        pass

    def _vector(self, text: str) -> bytes:
        counts = [1.0] * self._dimension
        for character in text:
            counts[ord(character) % self._dimension] += 1.0
        length = sum(count * count for count in counts) ** 0.5
        return array("f", [count / length for count in counts]).tobytes()


@asynccontextmanager
async def open_desk(
    folder: Path,
    *,
    clock: FixedClock | None = None,
    embedder: Embedder | None = None,
    clean: Callable[[str], str] = str,
    patience: float = BROKEN_AFTER,
    inline: bool = False,
    **options: Any,
) -> AsyncIterator[Desk]:
    async with open_device(folder, new_server(), clock=clock, inline=inline) as device:
        meaning = Meaning(device.database, embedder, clean=clean, patience=patience)
        settings = RecallSettings(**options)
        try:
            yield Desk(device, Recall(device.log, device.clock, settings, moves=True, meaning=meaning))
        finally:
            await meaning.close()
