"""The room of the vectors: makes them in the background, and says what a question means.

Decisions
    Nothing here is ever in a caller's way: a question waits a moment for its vector and is answered by words alone
    where it does not come, or where no vectors are kept. Why meaning was not asked is told with the answer.
    numpy and the models are loaded when there is something to embed or to compare, never by a start.
"""

import asyncio
import importlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from sync.db.engine import Database, Transaction
from sync.recall.index import vector_store
from sync.recall.model import Semantic
from sync.recall.semantic.embedder import Embedder, EmbeddingFailed, is_dense, passage_of, query_tail_of
from sync.runtime.change_counter import ChangeCounter

if TYPE_CHECKING:
    from sync.recall.semantic.vector_index import VectorIndex, VectorQuery

EMBED_BATCH: Final = 32  # vectors of one transaction
EMPTY_TEXT: Final = "-"  # stands for a text that may not leave this device: an API refuses an empty one

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class QueryVector:
    """What a question means, or why that is not known."""

    state: Semantic
    model: str = ""
    vector: bytes = b""


class SemanticIndex:
    """One profile's vectors. `clean`: what every text goes through before it reaches the embedder.

    `patience`: seconds that a question waits for its vector. `changed` is set where vectors may have come or gone.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder | None,
        *,
        redact: Callable[[str], str],
        query_timeout: float,
        changed: ChangeCounter | None = None,
    ) -> None:
        self.database = database
        self.changed = changed or ChangeCounter()
        self._embedder = embedder
        self._redact = redact
        self.query_timeout = query_timeout
        self._query_tasks: set[asyncio.Task[QueryVector]] = set()
        self._vectors: VectorIndex | None = None
        self._vector_index_module: Any = None
        self.has_failed = False  # until vectors are made again

    @property
    def is_enabled(self) -> bool:
        return self._embedder is not None

    async def embed_next(self) -> bool:
        """Make the next vectors; whether there may be more to make now."""
        embedder = self._embedder
        if embedder is None:
            return False
        waiting = await self.database.read(lambda connection: vector_store.pending_embeddings(connection, EMBED_BATCH))
        if not waiting.items and not waiting.state.embedded_through:
            return False  # nothing is kept yet
        try:
            model = await embedder.identity()
            if model != waiting.state.model:
                waiting = await self.database.write(
                    lambda connection: vector_store.start_model(connection, model, EMBED_BATCH)
                )
            rows = await self._embed_items(embedder, waiting.items)
        except (EmbeddingFailed, ImportError) as error:
            self.has_failed = True
            log.warning("no vectors were made: %s", error)
            return False
        self.has_failed = False
        if not rows:
            return False
        return await self.database.write(lambda connection: vector_store.add_vectors(connection, waiting.state, rows))

    def embed_query(self, text: str | None) -> asyncio.Task[QueryVector]:
        """Begin to ask for the vector of a question; it is told if it comes in time. None: nobody wants to know."""
        task = None
        if text is not None and self._embedder is not None and not self.has_failed:
            task = asyncio.create_task(self._embed_query_text(self._embedder, text))
            self._query_tasks.add(task)
            task.add_done_callback(self._query_tasks.discard)
        return asyncio.create_task(self._with_timeout(task, "off" if text is None or not self.is_enabled else "failed"))

    async def _with_timeout(self, task: asyncio.Task[QueryVector] | None, default_state: Semantic) -> QueryVector:
        if task is None:
            return QueryVector(default_state)
        await asyncio.wait({task}, timeout=self.query_timeout)  # not cancelled: the next one finds the models loaded
        return task.result() if task.done() else QueryVector("pending")

    def query(self, connection: Transaction, query_vector: QueryVector) -> "tuple[Semantic, VectorQuery | None]":
        """What the vectors say to a question, and whether all items had one. Inside a reading transaction."""
        if query_vector.state != "used":
            return query_vector.state, None
        made = vector_store.embedding_state(connection)
        if made.model != query_vector.model or not made.embedded_through:
            return "pending", None
        matrix = self._current_index(connection, made)
        if not len(matrix.ids):
            return "pending", None
        complete = vector_store.is_complete(connection, made.embedded_through)
        return "used" if complete else "partial", matrix.query(query_vector.vector)

    async def close(self) -> None:
        for task in self._query_tasks:
            task.cancel()
        await asyncio.gather(*self._query_tasks, return_exceptions=True)
        if self._embedder is not None:
            await self._embedder.close()

    def _current_index(self, connection: Transaction, state: vector_store.EmbeddingState) -> "VectorIndex":
        """The matrix as the database has it."""
        from sync.recall.semantic.vector_index import VectorIndex  # noqa: PLC0415 - numpy, which only this needs

        matrix = self._vectors
        if matrix is None or matrix.model != state.model:
            matrix = VectorIndex(state.model, state.removed_count)
        elif matrix.removed_count != state.removed_count:
            matrix.retain(vector_store.vector_item_ids(connection), state.removed_count)
        matrix.add(vector_store.vectors_after(connection, matrix.last_id))
        self._vectors = matrix
        return matrix

    async def _load_vector_index(self) -> Any:
        """The module `matrix`, and with it numpy: loaded once, beside the loop."""
        if self._vector_index_module is None:
            self._vector_index_module = await asyncio.to_thread(
                importlib.import_module, "sync.recall.semantic.vector_index"
            )
        return self._vector_index_module

    async def _embed_items(self, embedder: Embedder, items: Sequence[tuple[int, str]]) -> list[vector_store.VectorRow]:
        matrix = await self._load_vector_index()
        texts = await asyncio.to_thread(lambda: [passage_of(self._redact(text)) or EMPTY_TEXT for _, text in items])
        vectors: list[bytes] = []
        for start in range(0, len(texts), embedder.batch):
            vectors += await embedder.embed(texts[start : start + embedder.batch], query=False)
        return [
            vector_store.VectorRow(item_id, is_dense(text), matrix.quantize(vector))
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
