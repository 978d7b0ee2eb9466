"""A harness for search tests: one device's log, and its index behind `RecallService`."""

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from sync.recall.model import SearchRequest, SearchResult
from sync.recall.search import RecallService
from sync.recall.semantic.embedder import Embedder, EmbeddingFailed
from sync.recall.semantic.semantic_index import SemanticIndex
from sync.settings.sections import RecallSettings
from tests.support import BROKEN_AFTER, Device, FixedClock, new_server, open_device


@dataclass
class RecallHarness:
    """A device and its recall."""

    device: Device
    recall: RecallService

    @property
    def semantic(self) -> SemanticIndex:
        return self.recall.semantic_index

    async def embed(self) -> None:
        """Make the vectors of all there is, as the sidecar does in the background."""
        await self.recall.projection_runner.catch_up()
        while await self.semantic.embed_next():
            pass

    async def record_texts(self, *texts: str, kind: str = "memory_fact", store: bool = False, **more: Any) -> list[str]:
        """Record one event for each text, as another program would; their ids. `store`: also texts of unknown types."""
        given = [{"type": kind, "payload": {"content": text}, **more} for text in texts]
        intake = replace(self.device.intake, store_messages=True) if store else self.device.intake
        recorded = await self.device.log.append(intake.build_batch(given))
        return [item.event.event_id for item in recorded]

    async def record_event(self, kind: str, **payload: Any) -> str:
        (recorded,) = await self.device.log.append([self.device.intake.build({"type": kind, "payload": payload})])
        return recorded.event.event_id

    async def record_erasure(self, *event_ids: str) -> None:
        await self.device.log.append([self.device.intake.build_erasure(event_ids)])

    async def search(self, query: str, **more: Any) -> SearchResult:
        return await self.recall.search(SearchRequest(query, **more))

    async def texts_found(self, query: str, **more: Any) -> list[str]:
        return [hit.item.text for hit in (await self.search(query, **more)).hits]


class LetterCountEmbedder:
    """A model whose vectors count letters: cheap, the same everywhere, and near for texts that share some.

    `texts` is what it was given; with `broken` it refuses, with `held` it waits until that is set.
    """

    batch = 4

    def __init__(self, name: str = "letters", dimension: int = 32) -> None:
        self.name = name
        self.texts: list[str] = []
        self.fails = False
        self.is_loading = False
        self.gate: asyncio.Event | None = None
        self._dimension = dimension

    @property
    def is_ready(self) -> bool:
        return not self.is_loading

    async def identity(self) -> str:
        return self.name

    async def embed(self, texts: Sequence[str], *, query: bool) -> list[bytes]:
        del query
        if self.gate is not None:
            await self.gate.wait()
        if self.fails:
            raise EmbeddingFailed("asked to")
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
async def open_recall_harness(
    folder: Path,
    *,
    clock: FixedClock | None = None,
    embedder: Embedder | None = None,
    clean: Callable[[str], str] = str,
    patience: float = BROKEN_AFTER,
    inline: bool = False,
    **options: Any,
) -> AsyncIterator[RecallHarness]:
    async with open_device(folder, new_server(), clock=clock, single_threaded=inline) as device:
        meaning = SemanticIndex(device.database, embedder, redact=clean, query_timeout=patience)
        settings = RecallSettings(**options)
        try:
            yield RecallHarness(
                device, RecallService(device.log, device.clock, settings, may_index=True, semantic_index=meaning)
            )
        finally:
            await meaning.close()
