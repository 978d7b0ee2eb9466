"""Ask a language model about exchanges, in the background: off until one is offered, bounded by calls a day.

Exchanges wait in the database, noted in the transaction that records them. They are sent when nothing
was recorded for some seconds: sooner if there are several or a session ended, later the more calls were made today.
"""

import asyncio
import logging
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Final

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.log import store as log_store
from sync.log.event_types import SESSION_END_TYPES
from sync.log.local_state import MODEL_CALLS, MODEL_DAY, MODEL_TOKENS
from sync.log.log import EventLog
from sync.log.model import Event
from sync.redaction import Redactor
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change
from sync.runtime.log_once import LogOnce
from sync.understanding.projection import FactProjection
from sync.understanding.second_reader import store
from sync.understanding.second_reader.model_operations import accept_operations
from sync.understanding.second_reader.model_port import LanguageModel, ModelFailed, ModelStatus, ModelUnavailable
from sync.understanding.second_reader.model_reply import ReadReply, read_reply
from sync.understanding.second_reader.model_request import WaitingExchange, build_request

MIN_BATCH: Final = 5  # exchanges; fewer wait longer
MAX_BATCH: Final = 20
MAX_BATCH_CHARS: Final = 24_000
MAX_TRIES: Final = 3  # answers without a word about an exchange
IDLE_SECONDS: Final = 3.0  # since the last recorded exchange
LONE_SECONDS: Final = 20.0  # the same for fewer than MIN_BATCH, times the calls of this day
RETRY_SECONDS: Final = 600.0  # after a failure, unless another exchange is recorded
CALL_TIMEOUT: Final = 120.0  # seconds for a model's answer
MAX_TOKENS_OF_CALL: Final = 1_000_000_000  # that are counted, whatever a client says

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Queue:
    """How many exchanges wait, the place of the newest and of the last end of a session, and the calls of this day."""

    waiting: int
    newest: int
    session_end: int
    calls: int

    @property
    def seconds(self) -> float:
        """How long nothing must be recorded before they are sent."""
        is_enough = self.waiting >= MIN_BATCH or self.session_end > self.newest
        return IDLE_SECONDS if is_enough else LONE_SECONDS * (1 + self.calls)


class ModelExtraction:
    """One profile's exchanges that wait for a model, and its answers as facts."""

    def __init__(self, log: EventLog, redactor: Redactor, projection: FactProjection, clock: Clock) -> None:
        self._log = log
        self._redactor = redactor
        self._projection = projection
        self._clock = clock
        self._model: LanguageModel | None = None
        self._status = ModelStatus()
        self._is_withdrawn = False  # what waits on disk is still to be dropped
        self._offered = ChangeCounter()
        self._failures = LogOnce(_log)

    def offer(self, model: LanguageModel, *, source: str, max_calls_per_day: int) -> None:
        """Use this model from now on; with 0 calls a day, none: what waits and what is still answered is dropped."""
        is_on, most = max_calls_per_day > 0, max(0, max_calls_per_day)
        self._model = model if is_on else None
        self._status = replace(self._status, source=source if is_on else "off", max_calls_per_day=most)
        self._is_withdrawn |= self._model is None
        self._offered.increment()

    def add(self, connection: Transaction, exchange: Event) -> None:
        """Let an exchange wait that this transaction records."""
        self._drop_withdrawn(connection)
        if self._model is not None:
            store.add(connection, exchange.event_id)

    async def status(self) -> ModelStatus:
        """The state of the model and what it cost today."""
        if self._model is None:
            return self._status
        queue = await self._log.database.read(self._read_queue)
        _, tokens = await self._log.database.read(self._spent_today)
        return replace(self._status, calls=queue.calls, tokens=tokens, waiting=queue.waiting)

    async def run(self) -> None:
        """Ask about waiting exchanges until cancelled."""
        seen, due = -1, 0.0
        while True:
            changes = [(one, one.count) for one in (self._offered, self._log.changed)]
            queue = await self._log.database.read(self._read_queue)
            now = asyncio.get_running_loop().time()
            if seen != (seen := max(queue.newest, queue.session_end)):
                due = now + queue.seconds
            left = due - now if queue.waiting and self._model is not None else None
            if left is not None and left <= 0:
                if await self.ask():
                    continue
                due, left = now + RETRY_SECONDS, RETRY_SECONDS
            await wait_for_any_change(left, *changes)

    async def ask(self) -> bool:
        """Ask about one batch; whether that was allowed and succeeded. A failure is logged, and shown in `status`."""
        model, calls = self._model, self._status.max_calls_per_day
        batch = [] if model is None else await self._log.database.write(self._take_batch, calls)
        if model is None or not batch:
            return False
        try:
            await self._ask_about(model, batch)
        except (ModelFailed, TimeoutError) as error:
            failure = error.message if isinstance(error, ModelFailed) else "the model did not answer in time"
            self._status = replace(self._status, last_error=failure)
            self._failures.report("model", failure)
            if not isinstance(error, ModelUnavailable):
                ids = [one.event_id for one in batch]
                await self._log.database.write(store.note_tries, ids, MAX_TRIES)
            return False
        self._status = replace(self._status, last_error=None)
        self._failures.clear("model")
        return True

    async def _ask_about(self, model: LanguageModel, batch: list[WaitingExchange]) -> None:
        facts = await self._log.database.read(self._projection.read)
        async with asyncio.timeout(CALL_TIMEOUT):
            answer = await model.complete(build_request(batch, facts, self._clock.now().date().isoformat()))
        reply = read_reply(answer.text)
        if self._model is None:
            return
        recorded, refused = await self._log.database.write(self._record, batch, reply, answer.tokens)
        done = self._status
        self._status = replace(done, recorded=done.recorded + recorded, refused=done.refused + refused)
        if recorded:
            self._log.changed.increment()

    def _record(
        self, connection: Transaction, batch: list[WaitingExchange], reply: ReadReply, tokens: int
    ) -> tuple[int, int]:
        """Record the accepted operations about exchanges that were not erased meanwhile.

        Of an answer that was cut off, those that it did not reach wait on; it may have been cut in the last one.
        """
        spent = log_store.watermark(connection, MODEL_TOKENS) + min(max(0, tokens), MAX_TOKENS_OF_CALL)
        log_store.set_watermark(connection, MODEL_TOKENS, spent, self._clock)
        facts, waiting = self._projection.read(connection), {one.event_id for one in self._oldest(connection)}
        left = [one for one in batch if one.event_id in waiting]
        accepted = accept_operations(reply, left, facts, self._redactor)
        self._log.append_in(connection, accepted.drafts)
        answered = {name for one in reply.operations[:-1] for name in one.event_ids}
        store.remove(connection, [one.event_id for one in batch if reply.is_whole or one.event_id in answered])
        store.note_tries(connection, [one.event_id for one in batch], MAX_TRIES)
        return len(accepted.drafts), accepted.refused

    def _take_batch(self, connection: Transaction, most_calls: int) -> list[WaitingExchange]:
        """The next exchanges to ask about, fewer after a failed answer; the call is counted before it is made.

        So a process that is killed does not call again and again.
        """
        self._drop_withdrawn(connection)
        waiting, (calls, tokens) = self._oldest(connection), self._spent_today(connection)
        if calls >= most_calls or not waiting:
            return []
        for name, value in ((MODEL_DAY, self._today()), (MODEL_CALLS, calls + 1), (MODEL_TOKENS, tokens)):
            log_store.set_watermark(connection, name, value, self._clock)
        batch = waiting[: max(1, MAX_BATCH >> 2 * waiting[0].tries)]
        sizes = accumulate(len(one.typed) for one in batch)
        return [one for one, size in zip(batch, sizes, strict=True) if one is batch[0] or size <= MAX_BATCH_CHARS]

    def _oldest(self, connection: Transaction) -> list[WaitingExchange]:
        """The exchanges that have waited longest, without those that the log is asked to erase."""
        self._projection.read(connection)  # for `is_retracted`
        waiting = store.oldest(connection, MAX_BATCH)
        erased = {one.event_id for one in waiting if self._projection.is_retracted(one.event_id)}
        store.remove(connection, erased)
        return [one for one in waiting if one.event_id not in erased]

    def _drop_withdrawn(self, connection: Transaction) -> None:
        if self._is_withdrawn:
            store.clear(connection)
            self._is_withdrawn = False

    def _read_queue(self, connection: Transaction) -> _Queue:
        waiting = 0 if self._is_withdrawn else store.count(connection)
        session_end = log_store.newest_position_of_types(connection, SESSION_END_TYPES)
        return _Queue(waiting, store.newest_position(connection), session_end, self._spent_today(connection)[0])

    def _spent_today(self, connection: Transaction) -> tuple[int, int]:
        if log_store.watermark(connection, MODEL_DAY) != self._today():
            return 0, 0
        return log_store.watermark(connection, MODEL_CALLS), log_store.watermark(connection, MODEL_TOKENS)

    def _today(self) -> int:
        return self._clock.now().date().toordinal()
