"""One call from its frame to its answer, and the batch it may belong to. State only; `dispatch` decides."""

import asyncio
from typing import Any

from bridge.api.errors import RpcError
from bridge.api.method_table import Context
from bridge.rpc.messages import Call


class BatchState:
    """Answers of one batch, until all are there."""

    __slots__ = ("answer_bytes", "answers", "unanswered")

    def __init__(self, unanswered: int) -> None:
        self.unanswered = unanswered
        self.answers: list[bytes] = []
        self.answer_bytes = 0


class CallState:
    """One call from its frame to its answer."""

    __slots__ = ("batch", "call", "cancel_error", "context", "request_bytes", "started", "task", "timer")

    def __init__(self, call: Call, batch: BatchState | None, request_bytes: int) -> None:
        self.call = call
        self.batch = batch
        self.request_bytes = request_bytes  # bytes it came in
        self.started = False
        self.cancel_error: RpcError | None = None  # why it was cancelled
        self.task: asyncio.Task[None] | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.context: Context[Any] | None = None

    def cancel(self, error: RpcError) -> None:
        """Cancel a call that has begun; its task answers."""
        if self.cancel_error is None and self.task is not None:
            self.cancel_error = error
            if self.context is not None:
                self.context.cancelled = True
            self.task.cancel()
