"""One call from its frame to its answer, and the batch it may belong to. State only; `dispatch` decides."""

import asyncio
from typing import Any

from bridge.methods.failures import Failure
from bridge.methods.table import Context
from bridge.rpc.messages import Call


class Batch:
    """Answers of one batch, until all are there."""

    __slots__ = ("answers", "missing", "size")

    def __init__(self, missing: int) -> None:
        self.missing = missing
        self.answers: list[bytes] = []
        self.size = 0


class Job:
    """One call from its frame to its answer."""

    __slots__ = ("batch", "begun", "call", "context", "stopped", "task", "timer", "weight")

    def __init__(self, call: Call, batch: Batch | None, weight: int) -> None:
        self.call = call
        self.batch = batch
        self.weight = weight  # bytes it came in
        self.begun = False
        self.stopped: Failure | None = None  # why it was cancelled
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.context: Context[Any] | None = None

    def stop(self, why: Failure) -> None:
        """Cancel a call that has begun; its task answers."""
        if self.stopped is None and self.task is not None:
            self.stopped = why
            if self.context is not None:
                self.context.cancelled = True
            self.task.cancel()
