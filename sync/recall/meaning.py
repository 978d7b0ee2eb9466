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

from sqlalchemy import Connection

from sync.db.engine import Database
from sync.recall import vector_store
from sync.recall.embedder import Embedder, Unembedded, beginning, ending, is_dense
from sync.recall.model import Semantic
from sync.signals import Signal

if TYPE_CHECKING:
    from sync.recall.matrix import Asked, Matrix

STORED: Final = 32  # vectors of one transaction
UNSAID: Final = "-"  # stands for a text that may not leave this device: an API refuses an empty one

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """What a question means, or why that is not known."""

    state: Semantic
    model: str = ""
    vector: bytes = b""


class Meaning:
    """One profile's vectors. `clean`: what every text goes through before it reaches the embedder.

    `patience`: seconds that a question waits for its vector. `changed` is set where vectors may have come or gone.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder | None,
        *,
        clean: Callable[[str], str],
        patience: float,
        changed: Signal | None = None,
    ) -> None:
        self.database = database
        self.changed = changed or Signal()
        self._embedder = embedder
        self._clean = clean
        self.patience = patience
        self._asking: set[asyncio.Task[Question]] = set()
        self._matrix: Matrix | None = None
        self._module: Any = None
        self.has_failed = False  # until vectors are made again

    @property
    def is_on(self) -> bool:
        return self._embedder is not None

    async def embed_some(self) -> bool:
        """Make the next vectors; whether there may be more to make now."""
        embedder = self._embedder
        if embedder is None:
            return False
        waiting = await self.database.read(lambda connection: vector_store.waiting(connection, STORED))
        if not waiting.items and not waiting.made.through:
            return False  # nothing is kept yet
        try:
            model = await embedder.identity()
            if model != waiting.made.model:
                waiting = await self.database.write(lambda connection: vector_store.begin(connection, model, STORED))
            rows = await self._made(embedder, waiting.items)
        except (Unembedded, ImportError) as error:
            self.has_failed = True
            log.warning("no vectors were made: %s", error)
            return False
        self.has_failed = False
        if not rows:
            return False
        return await self.database.write(lambda connection: vector_store.add(connection, waiting.made, rows))

    def question(self, text: str | None) -> asyncio.Task[Question]:
        """Begin to ask for the vector of a question; it is told if it comes in time. None: nobody wants to know."""
        task = None
        if text is not None and self._embedder is not None and not self.has_failed:
            task = asyncio.create_task(self._questioned(self._embedder, text))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        return asyncio.create_task(self._in_time(task, "off" if text is None or not self.is_on else "failed"))

    async def _in_time(self, task: asyncio.Task[Question] | None, otherwise: Semantic) -> Question:
        if task is None:
            return Question(otherwise)
        await asyncio.wait({task}, timeout=self.patience)  # not cancelled: the next one finds the models loaded
        return task.result() if task.done() else Question("pending")

    def asked(self, connection: Connection, question: Question) -> "tuple[Semantic, Asked | None]":
        """What the vectors say to a question, and whether all items had one. Inside a reading transaction."""
        if question.state != "used":
            return question.state, None
        made = vector_store.made(connection)
        if made.model != question.model or not made.through:
            return "pending", None
        matrix = self._level(connection, made)
        if not len(matrix.ids):
            return "pending", None
        complete = vector_store.is_complete(connection, made.through)
        return "used" if complete else "partial", matrix.asked(question.vector)

    async def close(self) -> None:
        for task in self._asking:
            task.cancel()
        await asyncio.gather(*self._asking, return_exceptions=True)
        if self._embedder is not None:
            await self._embedder.close()

    def _level(self, connection: Connection, made: vector_store.Made) -> "Matrix":
        """The matrix as the database has it."""
        from sync.recall.matrix import Matrix  # noqa: PLC0415 - numpy, which only this needs

        matrix = self._matrix
        if matrix is None or matrix.model != made.model:
            matrix = Matrix(made.model, made.removed)
        elif matrix.removed != made.removed:
            matrix.keep(vector_store.ids(connection), made.removed)
        matrix.add(vector_store.after(connection, matrix.last))
        self._matrix = matrix
        return matrix

    async def _numbers(self) -> Any:
        """The module `matrix`, and with it numpy: loaded once, beside the loop."""
        if self._module is None:
            self._module = await asyncio.to_thread(importlib.import_module, "sync.recall.matrix")
        return self._module

    async def _made(self, embedder: Embedder, items: Sequence[tuple[int, str]]) -> list[vector_store.Row]:
        matrix = await self._numbers()
        texts = await asyncio.to_thread(lambda: [beginning(self._clean(text)) or UNSAID for _, text in items])
        vectors: list[bytes] = []
        for start in range(0, len(texts), embedder.batch):
            vectors += await embedder.embed(texts[start : start + embedder.batch], query=False)
        return [
            vector_store.Row(item_id, is_dense(text), matrix.packed(vector))
            for (item_id, text), vector in zip(items, vectors, strict=True)
        ]

    async def _questioned(self, embedder: Embedder, text: str) -> Question:
        try:
            await self._numbers()
            model = await embedder.identity()
            (vector,) = await embedder.embed([ending(self._clean(text))], query=True)
        except (Unembedded, ImportError) as error:
            self.has_failed = True
            log.warning("questions are answered by words alone: %s", error)
            return Question("failed")
        return Question("used", model, vector)
