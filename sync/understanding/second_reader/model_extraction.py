"""Ask a language model about exchanges, in the background: off until one is offered, bounded by calls a day.

Exchanges wait in memory and are lost with the process: the rules have read them already. A batch is sent when
nothing was recorded for some seconds; a batch that fails is sent a second time. What was erased meanwhile is not sent.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from sync.clock import Clock
from sync.db.engine import Transaction
from sync.log import store as log_store
from sync.log.local_state import MODEL_CALLS, MODEL_DAY, MODEL_TOKENS
from sync.log.log import EventLog
from sync.log.model import Event
from sync.redaction import Redactor
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change
from sync.runtime.log_once import LogOnce
from sync.understanding.projection import FactProjection
from sync.understanding.rules.typed_text import typed_sentences
from sync.understanding.second_reader.model_operations import TypedExchange, accept_operations, build_request
from sync.understanding.second_reader.model_port import LanguageModel, ModelFailed, ModelStatus

MIN_BATCH: Final = 5  # exchanges
MAX_BATCH: Final = 20
MAX_WAITING: Final = 200  # exchanges; older ones are dropped
MAX_TRIES: Final = 2
IDLE_SECONDS: Final = 3.0  # since the last recorded exchange
CALL_TIMEOUT: Final = 120.0  # seconds for a model's answer
MAX_TOKENS_OF_CALL: Final = 1_000_000_000  # that are counted, whatever a client says

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Offer:
    model: LanguageModel
    source: str
    max_calls_per_day: int


class ModelExtraction:
    """One profile's exchanges that wait for a model, and its answers as facts."""

    def __init__(self, log: EventLog, redactor: Redactor, projection: FactProjection, clock: Clock) -> None:
        self._log = log
        self._redactor = redactor
        self._projection = projection
        self._clock = clock
        self._offer: _Offer | None = None
        self._pending_exchanges: deque[TypedExchange] = deque(maxlen=MAX_WAITING)
        self._changed = ChangeCounter()
        self._failures = LogOnce(_log)
        self._recorded = self._refused = 0
        self._last_error: str | None = None

    def offer(self, model: LanguageModel, *, source: str, max_calls_per_day: int) -> None:
        """Use this model from now on; with 0 calls a day, none: what waits and what is still answered is dropped."""
        self._offer = _Offer(model, source, max_calls_per_day) if max_calls_per_day > 0 else None
        if self._offer is None:
            self._pending_exchanges.clear()
        self._changed.increment()

    def add(self, exchange: Event, message: str) -> None:
        """Let an exchange that was just recorded wait for the model. `message`: the redacted words of the user."""
        typed = "".join(sentence.visible for sentence in typed_sentences(message)).strip()
        if self._offer is not None and typed:
            place = exchange.session_id, exchange.project_id, exchange.project_path
            self._pending_exchanges.append(TypedExchange(exchange.event_id, typed, *place))
            self._changed.increment()

    async def status(self) -> ModelStatus:
        """The state of the model and what it cost today."""
        offer = self._offer
        if offer is None:
            return ModelStatus(last_error=self._last_error)
        calls, tokens = await self._log.database.read(self._spent_today)
        return ModelStatus(
            source=offer.source,
            max_calls_per_day=offer.max_calls_per_day,
            calls=calls,
            tokens=tokens,
            waiting=len(self._pending_exchanges),
            recorded=self._recorded,
            refused=self._refused,
            last_error=self._last_error,
        )

    async def run(self) -> None:
        """Ask about waiting exchanges until cancelled."""
        while True:
            seen = self._changed.count
            if self._offer is None or len(self._pending_exchanges) < MIN_BATCH:
                await self._changed.wait_for_change(seen)
            elif not await wait_for_any_change(IDLE_SECONDS, (self._changed, seen)) and not await self.ask():
                await self._changed.wait_for_change(self._changed.count)

    async def ask(self) -> bool:
        """Ask about one batch; whether that was allowed and succeeded. A failure is logged, and shown in `status`."""
        await self._drop_erased()
        offer = self._offer
        if offer is None or not self._pending_exchanges:
            return False
        if not await self._log.database.write(self._take_call, offer.max_calls_per_day):
            return False
        batch = [self._pending_exchanges.popleft() for _ in range(min(MAX_BATCH, len(self._pending_exchanges)))]
        try:
            await self._ask_about(offer.model, batch)
        except (ModelFailed, TimeoutError) as error:
            self._last_error = error.message if isinstance(error, ModelFailed) else "the model did not answer in time"
            self._failures.report("model", self._last_error)
            again = [replace(one, tries=one.tries + 1) for one in batch if self._offer is not None]
            self._pending_exchanges.extendleft(one for one in reversed(again) if one.tries < MAX_TRIES)
            return False
        self._last_error = None
        self._failures.clear("model")
        return True

    async def _ask_about(self, model: LanguageModel, batch: list[TypedExchange]) -> None:
        facts = await self._log.database.read(self._projection.read)
        async with asyncio.timeout(CALL_TIMEOUT):
            reply = await model.complete(build_request(batch, facts))
        if self._offer is None:
            return
        recorded, refused = await self._log.database.write(self._record, batch, reply.text, reply.tokens)
        self._recorded += recorded
        self._refused += refused
        if recorded:
            self._log.changed.increment()

    def _record(self, connection: Transaction, batch: list[TypedExchange], text: str, tokens: int) -> tuple[int, int]:
        """Record the accepted operations about exchanges that were not erased meanwhile."""
        spent = log_store.watermark(connection, MODEL_TOKENS) + min(max(0, tokens), MAX_TOKENS_OF_CALL)
        log_store.set_watermark(connection, MODEL_TOKENS, spent, self._clock)
        facts = self._projection.read(connection)
        erased = self._erased_of(connection, batch)
        accepted = accept_operations(text, [one for one in batch if one not in erased], facts, self._redactor)
        self._log.append_in(connection, accepted.drafts)
        return len(accepted.drafts), accepted.refused

    async def _drop_erased(self) -> None:
        """Drop the exchanges that were erased while they waited."""
        waiting = tuple(self._pending_exchanges)
        erased = await self._log.database.read(self._erased_of, waiting) if waiting else ()
        if erased:
            self._pending_exchanges = deque((one for one in self._pending_exchanges if one not in erased), MAX_WAITING)

    def _erased_of(self, connection: Transaction, exchanges: Sequence[TypedExchange]) -> list[TypedExchange]:
        """Those of these exchanges that the log does not have any more, or is asked to erase."""
        self._projection.read(connection)  # for `is_retracted`
        held = ((one, log_store.find_event(connection, one.event_id)) for one in exchanges)
        return [
            one
            for one, event in held
            if event is None or not event.payload or self._projection.is_retracted(one.event_id)
        ]

    def _spent_today(self, connection: Transaction) -> tuple[int, int]:
        if log_store.watermark(connection, MODEL_DAY) != self._today():
            return 0, 0
        return log_store.watermark(connection, MODEL_CALLS), log_store.watermark(connection, MODEL_TOKENS)

    def _take_call(self, connection: Transaction, most: int) -> bool:
        """Count a call before it is made, so that a process that is killed does not call again and again."""
        calls, tokens = self._spent_today(connection)
        if calls >= most:
            return False
        for name, value in ((MODEL_DAY, self._today()), (MODEL_CALLS, calls + 1), (MODEL_TOKENS, tokens)):
            log_store.set_watermark(connection, name, value, self._clock)
        return True

    def _today(self) -> int:
        return self._clock.now().date().toordinal()
