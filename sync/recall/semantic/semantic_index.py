"""Semantic search: make vectors in the background, and compare a query's vector with them.

A search never depends on this: it waits a moment for its vector, and otherwise uses keywords only and says why. numpy
and the models are loaded when there is something to embed or compare, never at start.
"""

import asyncio
import importlib
import logging
from array import array
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from sync.db.engine import Database, Transaction
from sync.recall.index import store, vector_store
from sync.recall.index.item_filter import ItemFilter
from sync.recall.model import Semantic
from sync.recall.semantic.embedder import Embedder, EmbeddingFailed, ModelPart, is_dense, passage_of, query_tail_of
from sync.recall.semantic.embedding_worker import model_parts
from sync.runtime.change_counter import ChangeCounter

if TYPE_CHECKING:
    from sync.recall.semantic.vector_index import VectorIndex, VectorQuery

EMBED_BATCH: Final = 32  # vectors in one transaction
EMPTY_TEXT: Final = "-"  # replaces a text that redaction leaves empty, because an API refuses empty ones

log = logging.getLogger(__name__)


class QueryVector(msgspec.Struct, frozen=True):
    """A query's vector, or why there is none."""

    state: Semantic
    model: str = ""
    vector: bytes = b""


class SemanticIndex:
    """One profile's vectors. `redact` is applied to every text before the embedder gets it.

    `query_timeout`: seconds that a search waits for its vector; for models that are being loaded it does not wait.
    `changed` counts up when vectors may have changed. The embedder gets no text of items of `hidden_kinds`.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder | None,
        *,
        redact: Callable[[str], str],
        query_timeout: float,
        changed: ChangeCounter | None = None,
        hidden_kinds: Collection[str] = (),
    ) -> None:
        self.database = database
        self.changed = changed or ChangeCounter()
        self._embedder = embedder
        self._redact = redact
        self._hidden_kinds = hidden_kinds
        self.query_timeout = query_timeout
        self._query_tasks: set[asyncio.Task[QueryVector]] = set()
        self._vectors: VectorIndex | None = None
        self._vector_index_module: Any = None
        self.has_failed = False  # until vectors can be made again

    @property
    def is_enabled(self) -> bool:
        return self._embedder is not None

    async def embed_next(self) -> bool:
        """Make the next vectors; whether there may be more to make."""
        embedder = self._embedder
        if embedder is None:
            return False
        pending = await self.database.read(vector_store.pending_embeddings, EMBED_BATCH, self._hidden_kinds)
        if not pending.items and not pending.state.embedded_through:
            return False  # the index is empty
        try:
            model = await embedder.identity()
            if model != pending.state.model:
                pending = await self.database.write(vector_store.start_model, model, EMBED_BATCH, self._hidden_kinds)
            rows = await self._embed_items(embedder, pending.items)
        except (EmbeddingFailed, ImportError) as error:
            self.has_failed = True
            log.warning("no vectors were made: %s", error)
            return False
        self.has_failed = False
        if not rows:
            return False
        return await self.database.write(vector_store.add_vectors, pending.state, rows)

    def embed_query(self, text: str | None, patience: float | None = None) -> asyncio.Task[QueryVector]:
        """Start embedding a query; the task's result is "pending" after the timeout. None: do not embed.

        `patience`: seconds to wait at most, if less than `query_timeout`.
        """
        timeout = min(self.query_timeout, self.query_timeout if patience is None else patience)
        if self._embedder is not None and not self._embedder.is_ready:
            timeout = 0.0
        task = None
        if text is not None and self._embedder is not None and not self.has_failed:
            task = asyncio.create_task(self._embed_query_text(self._embedder, text))
            self._query_tasks.add(task)
            task.add_done_callback(self._query_tasks.discard)
        state: Semantic = "off" if text is None or not self.is_enabled else "failed"
        return asyncio.create_task(self._with_timeout(task, state, timeout))

    async def _with_timeout(
        self, task: asyncio.Task[QueryVector] | None, default_state: Semantic, timeout: float
    ) -> QueryVector:
        if task is None:
            return QueryVector(default_state)
        await asyncio.wait({task}, timeout=timeout)  # not cancelled, so that the next query finds the models loaded
        return task.result() if task.done() else QueryVector("pending")

    def query(self, connection: Transaction, query_vector: QueryVector) -> "tuple[Semantic, VectorQuery | None]":
        """The vectors to compare a query with, and whether all items have one. Inside a reading transaction."""
        if query_vector.state != "used":
            return query_vector.state, None
        state = vector_store.embedding_state(connection)
        if state.model != query_vector.model or not state.embedded_through:
            return "pending", None
        index = self._current_index(connection, state)
        if not len(index.ids):
            return "pending", None
        is_complete = vector_store.is_complete(connection, state.embedded_through)
        return "used" if is_complete else "partial", index.query(query_vector.vector)

    async def cosines_of(self, text: str, item_filter: ItemFilter) -> dict[str, dict[str, float]]:
        """How near the entries that match a filter are to a text, by each model; {} without models."""
        vector = await self.embed_query(text)

        def read(connection: Transaction) -> dict[str, dict[str, float]]:
            _, query = self.query(connection, vector) if store.is_created(connection) else ("pending", None)
            if query is None:
                return {}
            item_ids = store.matching_item_ids(connection, item_filter) or []
            cosines = query.cosines_of(item_ids, [ModelPart(*part) for part in model_parts(vector.model)])
            rows = store.by_ids(connection, list(cosines))
            return {row.entry_id or "": cosines[row.item_id] for row in rows}

        return await self.database.read(read)

    async def text_vectors(self, texts: Sequence[str], model: str) -> list[Sequence[float]]:
        """The vectors of texts by one of the local models; [] without it, or if their kind may not be sent."""
        embedder = self._embedder
        if embedder is None or self._hidden_kinds or not embedder.is_ready:
            return []
        try:
            parts = {name: (start, stop) for name, start, stop in model_parts(await embedder.identity())}
            start, stop = parts.get(model, (0, 0))
            vectors = [array("f", (await embedder.embed([text], query=False))[0]) for text in texts] if stop else []
        except EmbeddingFailed:
            return []
        return [vector[start:stop] for vector in vectors]

    async def close(self) -> None:
        for task in self._query_tasks:
            task.cancel()
        await asyncio.gather(*self._query_tasks, return_exceptions=True)
        if self._embedder is not None:
            await self._embedder.close()

    def _current_index(self, connection: Transaction, state: vector_store.EmbeddingState) -> "VectorIndex":
        """The vectors in memory, updated from the database."""
        index = self._vectors
        if index is None or index.model != state.model:  # the query's vector has loaded the module
            index = self._vector_index_module.VectorIndex(state.model, state.removed_count)
        elif index.removed_count != state.removed_count:
            index.retain(vector_store.vector_item_ids(connection), state.removed_count)
        assert index is not None
        index.add(vector_store.vectors_after(connection, index.last_id))
        self._vectors = index
        return index

    async def _load_vector_index(self) -> Any:
        """Import `vector_index`, and with it numpy, once and in a thread."""
        if self._vector_index_module is None:
            self._vector_index_module = await asyncio.to_thread(
                importlib.import_module, "sync.recall.semantic.vector_index"
            )
        return self._vector_index_module

    async def _embed_items(self, embedder: Embedder, items: Sequence[tuple[int, str]]) -> list[vector_store.VectorRow]:
        vector_index = await self._load_vector_index()
        texts = await asyncio.to_thread(lambda: [passage_of(self._redact(text)) or EMPTY_TEXT for _, text in items])
        vectors: list[bytes] = []
        for start in range(0, len(texts), embedder.batch):
            vectors += await embedder.embed(texts[start : start + embedder.batch], query=False)
        return [
            vector_store.VectorRow(item_id, is_dense(text), vector_index.quantize(vector))
            for (item_id, text), vector in zip(items, vectors, strict=True)
        ]

    async def _embed_query_text(self, embedder: Embedder, text: str) -> QueryVector:
        try:
            await self._load_vector_index()
            model = await embedder.identity()
            (vector,) = await embedder.embed([query_tail_of(self._redact(text))], query=True)
        except (EmbeddingFailed, ImportError) as error:
            self.has_failed = True
            log.warning("questions are answered by words alone: %s", error)
            return QueryVector("failed")
        return QueryVector("used", model, vector)
