"""The loop between log and cloud: push, acknowledge, pull, wait.

`sync_now` and the loop share one round at a time. A failure leaves everything where it was: what is not acknowledged
is pending and is sent again; the server skips ids it knows. Waiting after failures is tenacity's: full jitter, five
minutes at most, never less than the server asked for. A batch that the server refuses for good is halved until the
culprit stands alone; it goes into quarantine, and the rest goes through. Before that an empty request is tried: where
even that one is refused, no event is to blame and none is set aside.
"""

import asyncio
import logging
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from sync.clock import Clock
from sync.cloud import replication_store
from sync.cloud.replication.freshness import ChannelFreshness, ChannelState
from sync.cloud.replication.pull_progress import PullProgressTracker
from sync.cloud.replication.sync_round import RoundResult, SyncRunner
from sync.cloud.sync_decisions import backoff_after, probe_pause
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
from sync.log.model import RemoteCursor
from sync.runtime.change_counter import ChangeCounter, wait_for_any_change
from sync.runtime.supervision import consume_exception
from sync.settings.sections import SyncSettings

MAX_RETRY_WAIT: Final = 300.0  # seconds between attempts while nothing answers
MIN_RETRY_WAIT: Final = 0.5
REFUSED_RETRY_INTERVAL: Final = 300.0  # after an error that only a person can mend, we still look now and then
CONFLICT_RETRY_INTERVAL: Final = 60.0  # seconds; another replica that does not speak is let go after ten minutes
POLL_FACTOR_WITH_CHANNEL: Final = 4  # times the pause between polls while a channel pokes us
MAX_RETRY_AFTER: Final = 3600.0  # seconds; a server that asks for more is asked again all the same

log = logging.getLogger(__name__)


class CloudState(StrEnum):
    OFF = "off"  # no project is set
    SIGNED_OUT = "signed_out"
    CONNECTING = "connecting"  # nothing has been asked yet
    SYNCED = "synced"
    OFFLINE = "offline"
    REFUSED = "refused"  # the server answers and says no; a person has to act


@dataclass(frozen=True, slots=True)
class CloudStatus:
    """What `sync/status` says about the cloud. `last_error` carries no content of the memory."""

    state: CloudState
    last_sync_at: str | None
    last_error: XiaobaiError | None
    cursor: RemoteCursor
    realtime: ChannelState = "off"


class Replicator:
    """Keeps one profile's log and the server's in step. `run()` for ever; `sync_now()` from anywhere."""

    def __init__(self, event_log: EventLog, runner: SyncRunner, *, clock: Clock, options: SyncSettings) -> None:
        self._log = event_log
        self._runner = runner
        self._clock = clock
        self._poll_seconds = options.poll_seconds
        self._wake = ChangeCounter()
        self._is_waiting = False  # whether `run` is between two rounds of its own
        self._round: asyncio.Task[RoundResult] | None = None
        self._failures = 0  # rounds in a row without an answer
        self._not_before = 0.0  # monotonic seconds: `ask` rests until then
        self._unreachable_since = 0.0  # monotonic seconds: the first of the rounds in a row that met no server
        self._state = CloudState.CONNECTING
        self._error: XiaobaiError | None = None
        self.freshness = ChannelFreshness()
        self.state_changed = ChangeCounter()  # set whenever the state or the log changed through the cloud

    @property
    def replica_id(self) -> str:
        return self._runner.replica_id

    @property
    def pull_progress(self) -> PullProgressTracker:
        """Where to listen to a pull that takes more than one answer."""
        return self._runner.pull_progress

    @property
    def state(self) -> CloudState:
        return self._state

    async def status(self) -> CloudStatus:
        cursor = await self._log.database.read(replication_store.read_cursor)
        return CloudStatus(self._state, cursor.synced_at, self._error, cursor, self.freshness.state)

    async def sync_now(self) -> RoundResult:
        """Join the round under way, or make one. Raises a CloudError; what could not be sent stays pending.

        Cancelling the caller does not cancel the round: others may have joined it.
        """
        if not self._in_round:
            self._round = asyncio.create_task(self._run_round())
            self._round.add_done_callback(consume_exception)  # a failure is kept in `status`
        assert self._round is not None
        return await asyncio.shield(self._round)

    async def sync_unless_backing_off(self) -> RoundResult:
        """As `sync_now`, for a caller that asks often: after failures in a row the server is left alone for a while.

        Raises at once while it rests, or where this device was revoked, so that an app that loads with every message
        makes no storm.
        """
        if isinstance(self._error, DeviceRevoked):  # for ever; `run` and `sync_now` still ask now and then
            raise self._error
        if self._clock.monotonic() < self._not_before:
            raise CloudUnavailable("the cloud did not answer a moment ago")
        return await self.sync_now()

    def is_fresh(self) -> bool:
        """Whether what we hold is what the server holds, known without asking it.

        Not while a round is under way: there is something that we have not said or not heard.
        """
        if self._in_round or self._state is not CloudState.SYNCED:
            return False
        return self.freshness.is_fresh(self._clock.monotonic(), self._clock.now().timestamp())

    def on_server_change(self, head: int | None) -> None:
        """The server's log has grown, to `head` where that is known. A round under way may answer it: see its end."""
        self.freshness.note_server_change(head)
        if self.freshness.has_unanswered and not self._in_round:
            self._wake.increment()

    def wake(self) -> None:
        """Somebody logged in or wants an answer now: do not wait any longer."""
        self._wake.increment()

    async def run(self) -> None:
        """Until cancelled. Never raises an error of ours: it is kept in `status` and answered by waiting."""
        while True:
            woken = self._wake.count
            waiting = self._poll_seconds * (POLL_FACTOR_WITH_CHANNEL if self.freshness.is_joined else 1)
            wakers = [(self._log.changed, self._log.changed.count)]
            try:
                await self._sync_with_retry()
            except LoginRequired:
                log.debug("nobody is logged in")  # asking again costs nothing; another process may log in
            except CloudError as error:
                waiting = CONFLICT_RETRY_INTERVAL if isinstance(error, DeviceConflict) else REFUSED_RETRY_INTERVAL
                wakers = []  # events go on waiting: each one would get the same answer
                log.warning("the cloud says no: %s", error.kind)
            except StorageError as error:  # a full disk, a locked keychain: it may pass at any time
                wakers = []
                log.warning("a round could not be finished here: %s", error.kind)
            jittered = waiting * (0.9 + 0.2 * self._random_fraction())  # devices must not poll in step
            await self._wait(jittered, *wakers, (self._wake, woken))

    async def stop(self) -> None:
        """Let go of a round under way; what it had not committed is asked again after the next start."""
        if self._round is not None and self._in_round:
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)

    @property
    def _in_round(self) -> bool:
        return self._round is not None and not self._round.done()

    async def _sync_with_retry(self) -> None:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, CloudUnavailable)),
            wait=_retry_wait,
            sleep=self._sleep_between_attempts,
            reraise=True,
        ):
            with attempt:
                await self.sync_now()

    async def _sleep_between_attempts(self, seconds: float) -> None:
        """A login or an explicit wish ends the wait, and so does a network that is back.

        New events do not, or an offline burst would be a storm. The network is only looked at where no connection could
        be made: a server that answers badly is left alone for as long as it takes.
        """
        wishes = (self._wake, self._wake.count)
        ends = self._clock.monotonic() + seconds
        while isinstance(self._error, CloudUnreachable) and (left := ends - self._clock.monotonic()) > 0:
            pause = probe_pause(self._clock.monotonic() - self._unreachable_since, self._random_fraction())
            if await self._wait(min(pause, left), wishes) or await self._runner.is_reachable():
                return
        await self._wait(max(0.0, ends - self._clock.monotonic()), wishes)

    async def _wait(self, seconds: float, *signals: tuple[ChangeCounter, int]) -> bool:
        """False when the time ran out."""
        self._is_waiting = True
        try:
            return await wait_for_any_change(seconds, *signals)
        finally:
            self._is_waiting = False

    def _random_fraction(self) -> float:
        return self._clock.random_bytes(1)[0] / 255

    async def _run_round(self) -> RoundResult:
        began = self.freshness.begin_round()
        try:
            done = await self._runner.run_round()
            level = await self._log.database.read(replication_store.read_cursor)
        except LoginRequired as error:
            self._set_state(CloudState.SIGNED_OUT, error if self._error is not None else None)
            raise
        except CloudUnavailable as error:
            self._failures += 1
            if self._failures == 1:
                self._unreachable_since = self._clock.monotonic()
            self._not_before = self._clock.monotonic() + backoff_after(self._failures, error.retry_after)
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
        self.freshness.end_round(began, level.seq)
        if self.freshness.is_joined and self.freshness.has_unanswered:
            self._wake.increment()  # a poke came after this round had read
        self._set_state(CloudState.SYNCED, None)
        return done

    def _set_state(self, state: CloudState, error: XiaobaiError | None) -> None:
        if state is not self._state:
            log.info("cloud %s", state)
            if self._is_waiting:
                self._wake.increment()  # an answer that somebody else got ends the loop's own waiting
        self._state, self._error = state, error
        self.state_changed.increment()


_exponential = wait_random_exponential(multiplier=MIN_RETRY_WAIT, max=MAX_RETRY_WAIT)


def _retry_wait(state: RetryCallState) -> float:
    """Full jitter up to five minutes, and never less than the server asked for."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, CloudUnavailable) and error.retry_after else 0.0
    return max(_exponential(state), min(asked, MAX_RETRY_AFTER))
