"""Decide when a sync round runs: at once, at the next poll, or after a failure.

One round runs at a time. `sync_now` answers about a round that began after the call; the loop and frequent callers
share the running one. A failed round changes nothing: events that were not acknowledged stay pending and are sent
again, and the server ignores ids that it already has.
"""

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception_type

from sync.clock import Clock
from sync.cloud import replication_store
from sync.cloud.replication.freshness import ChannelFreshness
from sync.cloud.replication.pull_progress import PullProgressTracker
from sync.cloud.replication.sync_round import SyncRunner
from sync.cloud.status import CloudState, CloudStatus, RoundJson
from sync.errors import (
    CloudError,
    CloudUnavailable,
    CloudUnreachable,
    DeviceConflict,
    DeviceRevoked,
    LoginRequired,
    StorageError,
    XiaobaiError,
)
from sync.log.log import EventLog
from sync.runtime.backoff import Backoff
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change
from sync.runtime.supervision import consume_exception
from sync.settings.sections import SyncSettings

RETRY_BACKOFF: Final = Backoff(base=0.5, limit=300.0, jitter=1.0)  # of the loop, while no round gets an answer
MAX_RETRY_AFTER: Final = 3600.0  # seconds; a longer wait that the server asks for is cut to this
BREAKER_FAILURES: Final = 3  # one lost request is bad luck, three are an outage
BREAKER_BACKOFF: Final = Backoff(base=1.0, limit=30.0)  # of callers that ask often: a user waits for their answer
SHORT_OUTAGE_SECONDS: Final = 600.0
SHORT_PROBE_SECONDS: Final = 3.0  # between network probes in a short outage, so that its end is noticed at once
LONG_PROBE_SECONDS: Final = 30.0  # in a long one: every device probes a server that is down for everybody
TIMER_ERROR: Final = 0.001  # seconds by which a timer may end early; no probe for so little
PROBE_JITTER: Final = 0.5
REFUSED_RETRY_INTERVAL: Final = 300.0  # seconds, after an error that needs a person
CONFLICT_RETRY_INTERVAL: Final = 60.0  # seconds; the server releases a silent replica after ten minutes
POLL_FACTOR_AT_REST: Final = 4  # polls are so many times rarer while a channel is joined, or nobody else is there
MIN_SERVER_POLL: Final = 10.0  # seconds; bounds of what the server asks for
MAX_SERVER_POLL: Final = 3600.0
RECOVERY_SPREAD: Final = 60.0  # seconds over which devices come back after a long outage
FINAL_ROUND_SECONDS: Final = 2.0  # for the document, before a logout or the end

log = logging.getLogger(__name__)


class Replicator:
    """Keep one profile's log and the server's in step. `run` is the loop; anyone may call `sync_now`."""

    def __init__(self, event_log: EventLog, runner: SyncRunner, *, clock: Clock, options: SyncSettings) -> None:
        self._log = event_log
        self._runner = runner
        self._clock = clock
        self._poll_seconds = options.poll_seconds
        self._wake = ChangeCounter()
        self._is_waiting = False  # `run` is between two rounds of its own
        self._round: asyncio.Task[RoundJson] | None = None
        self._next_round: asyncio.Task[RoundJson] | None = None  # waits for the end of `_round`
        self._has_begun = False  # `_round` has
        self._with_document = False  # the next round sends the document also if it could wait
        self._failures = 0  # rounds in a row without an answer
        self._not_before = 0.0  # monotonic seconds; `sync_unless_backing_off` rests until then
        self._unreachable_since = 0.0  # monotonic seconds; when the failures in a row began
        self._state = CloudState.CONNECTING
        self._error: XiaobaiError | None = None
        self.others = runner.others
        self.freshness = ChannelFreshness()
        self.state_changed = ChangeCounter()

    @property
    def replica_id(self) -> str:
        return self._runner.replica_id

    @property
    def pull_progress(self) -> PullProgressTracker:
        """Reports the progress of a pull that takes more than one answer."""
        return self._runner.pull_progress

    @property
    def state(self) -> CloudState:
        return self._state

    async def status(self) -> CloudStatus:
        cursor = await self._log.database.read(replication_store.read_cursor)
        return CloudStatus(self._state, cursor.synced_at, self._error, cursor, self.freshness.state)

    async def sync_now(self) -> RoundJson:
        """Run a round that begins after this call. Raises a CloudError; unsent events stay pending.

        Callers who wait for a running round to end share the next one. Cancelling the caller does not cancel it.
        """
        self._with_document = True
        if self._next_round is None and self._in_round and self._has_begun:
            self._next_round = _start(self._run_after(self._round))
        return await self._join_round()

    async def send_document(self) -> None:
        """Send a changed document before a logout or the end, if the server answered a moment ago."""
        with suppress(TimeoutError, CloudError, StorageError):
            if self._state is CloudState.SYNCED and await self._runner.document.is_unsent():
                async with asyncio.timeout(FINAL_ROUND_SECONDS):
                    await self.sync_now()

    async def _join_round(self) -> RoundJson:
        """The round that waits, the running one, or a new one."""
        if self._next_round is None and not self._in_round:
            self._has_begun, self._round = False, _start(self._run_round())
        joined = self._next_round or self._round
        assert joined is not None
        return await asyncio.shield(joined)

    async def _run_after(self, running: asyncio.Task[RoundJson] | None) -> RoundJson:
        """A round that begins when another has ended; how that ended does not matter."""
        if running is not None:
            await asyncio.wait([running])
        self._round, self._next_round = self._next_round, None
        return await self._run_round()

    async def sync_unless_backing_off(self) -> RoundJson:
        """`sync_now` for frequent callers: after several failures in a row, raise at once for a while.

        It also raises at once if this device was revoked. An app that loads with every message causes no storm.
        """
        if isinstance(self._error, DeviceRevoked):  # for good; `run` and `sync_now` still ask now and then
            raise self._error
        if self._clock.monotonic() < self._not_before:
            raise CloudUnavailable("the cloud did not answer a moment ago")
        return await self._join_round()

    def is_fresh(self) -> bool:
        """Whether the local log is known to be up to date, without asking the server. False during a round."""
        if self._in_round or self._state is not CloudState.SYNCED:
            return False
        return self.freshness.is_fresh(self._clock.monotonic(), self._clock.now().timestamp())

    def on_server_change(self, head: int | None) -> None:
        """The server's log has grown, to `head` if that is known. The end of a running round checks it again."""
        self.freshness.note_server_change(head)
        if self.freshness.has_unanswered and not self._in_round:
            self._wake.increment()

    def wake(self, *, with_document: bool = False) -> None:
        """End any wait: a user logged in or wants an answer now."""
        self._with_document = self._with_document or with_document
        self._wake.increment()

    async def run(self) -> None:
        """Sync until cancelled. Never raises a product error: `status` shows it, and the loop waits."""
        while True:
            woken = self._wake.count
            waiting = self._poll_interval()
            wakers = [(self._log.changed, self._log.changed.count)]
            try:
                await self._sync_with_retry()
            except LoginRequired:
                log.debug("not logged in")  # looking again costs nothing; another process may log in
            except CloudError as error:
                waiting = CONFLICT_RETRY_INTERVAL if isinstance(error, DeviceConflict) else REFUSED_RETRY_INTERVAL
                wakers = []  # a new event would get the same answer
                log.warning("the cloud says no: %s", error.kind)
            except StorageError as error:  # such as a full disk or a locked keychain
                wakers = []
                log.warning("a round could not be finished here: %s", error.kind)
            jittered = waiting * (0.9 + 0.2 * self._random_fraction())  # so that devices do not poll in step
            await self._wait(jittered, *wakers, (self._wake, woken))

    async def stop(self) -> None:
        """Cancel the running round. What it has not committed is pulled again after the next start."""
        tasks, self._next_round = (self._next_round, self._round), None
        for task in tasks:
            if task is not None and not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    @property
    def _in_round(self) -> bool:
        return self._round is not None and not self._round.done()

    def _poll_interval(self) -> float:
        """Seconds until the next poll: as the server asks, but not more often than this device is set to."""
        asked = min(max(self._runner.poll_seconds or 0.0, MIN_SERVER_POLL), MAX_SERVER_POLL)
        base = self._poll_seconds if self._runner.poll_seconds is None else max(self._poll_seconds, asked)
        is_at_rest = self.freshness.is_joined or (self._state is CloudState.SYNCED and not self.others.any_active())
        return base * (POLL_FACTOR_AT_REST if is_at_rest else 1)

    async def _sync_with_retry(self) -> None:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception_type(CloudUnavailable),
            wait=self._retry_wait,
            sleep=self._sleep_between_attempts,
            reraise=True,
        ):
            with attempt:
                await self._join_round()

    def _retry_wait(self, state: RetryCallState) -> float:
        """Tenacity's wait: the backoff, or what the server asked for if that is longer."""
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after if isinstance(error, CloudUnavailable) and error.retry_after else 0.0
        backoff = RETRY_BACKOFF.seconds(state.attempt_number, self._random_fraction())
        return max(backoff, min(asked, MAX_RETRY_AFTER))

    async def _sleep_between_attempts(self, seconds: float) -> None:
        """Wait, until a login, an explicit request or a network that is back ends the wait.

        New events do not end it: recording during an outage would cause a storm of requests. The network is probed only
        if no connection could be made; a server that answers with errors is left alone.
        """
        woken = (self._wake, self._wake.count)
        ends = self._clock.monotonic() + seconds
        while isinstance(self._error, CloudUnreachable) and (left := ends - self._clock.monotonic()) > TIMER_ERROR:
            if await self._wait(min(self._probe_wait(), left), woken):
                return
            if await self._runner.is_reachable():
                await self._wait(self._recovery_wait(), woken)
                return
        await self._wait(max(0.0, ends - self._clock.monotonic()), woken)

    def _probe_wait(self) -> float:
        outage = self._clock.monotonic() - self._unreachable_since
        interval = SHORT_PROBE_SECONDS if outage < SHORT_OUTAGE_SECONDS else LONG_PROBE_SECONDS
        return Backoff(interval, interval, PROBE_JITTER).seconds(1, self._random_fraction())

    def _recovery_wait(self) -> float:
        """All devices notice the end of a long outage within moments; they must not come back at once."""
        is_long = self._clock.monotonic() - self._unreachable_since >= SHORT_OUTAGE_SECONDS
        return RECOVERY_SPREAD * self._random_fraction() if is_long else 0.0

    async def _wait(self, seconds: float, *signals: tuple[ChangeCounter, int]) -> bool:
        """Return False if the time ran out."""
        self._is_waiting = True
        try:
            return await wait_for_any_change(seconds, *signals)
        finally:
            self._is_waiting = False

    def _random_fraction(self) -> float:
        return self._clock.random_bytes(1)[0] / 255

    async def _run_round(self) -> RoundJson:
        self._has_begun, began = True, self.freshness.begin_round()
        with_document, self._with_document = self._with_document, False
        try:
            done = await self._runner.run_round(with_document=with_document)
            cursor = await self._log.database.read(replication_store.read_cursor)
        except LoginRequired as error:
            self._set_state(CloudState.SIGNED_OUT, error if self._error is not None else None)
            raise
        except CloudUnavailable as error:
            self._failures += 1
            if self._failures == 1:
                self._unreachable_since = self._clock.monotonic()
            rest = BREAKER_BACKOFF.seconds(self._failures - BREAKER_FAILURES + 1)
            self._not_before = self._clock.monotonic() + max(rest, error.retry_after or 0.0)
            self._with_document |= with_document
            self._set_state(CloudState.OFFLINE, error)
            raise
        except CloudError as error:
            self._runner.reset_registration()
            self._set_state(CloudState.REFUSED, error)
            raise
        except StorageError as error:
            self._set_state(CloudState.OFFLINE, error)
            raise
        self._failures, self._not_before = 0, 0.0
        self.freshness.end_round(began, cursor.seq)
        if self.freshness.is_joined and self.freshness.has_unanswered:
            self._wake.increment()  # a poke came after this round had read
        self._set_state(CloudState.SYNCED, None)
        return done

    def _set_state(self, state: CloudState, error: XiaobaiError | None) -> None:
        if state is not self._state:
            log.info("cloud %s", state)
            if self._is_waiting:
                self._wake.increment()  # another caller's answer ends the loop's wait
        self._state, self._error = state, error
        self.state_changed.increment()


def _start(round_: Coroutine[Any, Any, RoundJson]) -> asyncio.Task[RoundJson]:
    """A task that goes on without its callers. A failure is kept in `status`."""
    task = asyncio.create_task(round_)
    task.add_done_callback(consume_exception)
    return task
