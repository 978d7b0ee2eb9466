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
from sync.cloud import store
from sync.cloud.exchange import Exchange, Round
from sync.cloud.plan import probe_pause, rest_after
from sync.cloud.progress import Pulls
from sync.cloud.standing import ChannelState, Standing
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
from sync.jobs import heard
from sync.log.log import Log
from sync.log.model import Cursor
from sync.sections import SyncSettings
from sync.signals import Signal, wait_for_any

LONGEST_WAIT: Final = 300.0  # seconds between attempts while nothing answers
FIRST_WAIT: Final = 0.5
LOOK_AGAIN: Final = 300.0  # after an error that only a person can mend, we still look now and then
TAKE_OVER_AGAIN: Final = 60.0  # seconds; another replica that does not speak is let go after ten minutes
CALM: Final = 4  # times the pause between polls while a channel pokes us
LONGEST_ASKED: Final = 3600.0  # seconds; a server that asks for more is asked again all the same

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
    cursor: Cursor
    realtime: ChannelState = "off"


class Replicator:
    """Keeps one profile's log and the server's in step. `run()` for ever; `sync_now()` from anywhere."""

    def __init__(self, events: Log, exchange: Exchange, *, clock: Clock, options: SyncSettings) -> None:
        self._log = events
        self._exchange = exchange
        self._clock = clock
        self._poll_seconds = options.poll_seconds
        self._wake = Signal()
        self._resting = False  # whether `run` is between two rounds of its own
        self._round: asyncio.Task[Round] | None = None
        self._failures = 0  # rounds in a row without an answer
        self._not_before = 0.0  # monotonic seconds: `ask` rests until then
        self._out_since = 0.0  # monotonic seconds: the first of the rounds in a row that met no server
        self._state = CloudState.CONNECTING
        self._error: XiaobaiError | None = None
        self.standing = Standing()
        self.advanced = Signal()  # set whenever the state or the log changed through the cloud

    @property
    def replica_id(self) -> str:
        return self._exchange.replica_id

    @property
    def pulls(self) -> Pulls:
        """Where to listen to a pull that takes more than one answer."""
        return self._exchange.pulls

    @property
    def state(self) -> CloudState:
        return self._state

    async def status(self) -> CloudStatus:
        cursor = await self._log.database.read(store.cursor)
        return CloudStatus(self._state, cursor.synced_at, self._error, cursor, self.standing.state)

    async def sync_now(self) -> Round:
        """Join the round under way, or make one. Raises a CloudError; what could not be sent stays pending.

        Cancelling the caller does not cancel the round: others may have joined it.
        """
        if not self._in_round:
            self._round = asyncio.create_task(self._one_round())
            self._round.add_done_callback(heard)  # a failure is kept in `status`
        assert self._round is not None
        return await asyncio.shield(self._round)

    async def ask(self) -> Round:
        """As `sync_now`, for a caller that asks often: after failures in a row the server is left alone for a while.

        Raises at once while it rests, or where this device was revoked, so that an app that loads with every message
        makes no storm.
        """
        if isinstance(self._error, DeviceRevoked):  # for ever; `run` and `sync_now` still ask now and then
            raise self._error
        if self._clock.monotonic() < self._not_before:
            raise CloudUnavailable("the cloud did not answer a moment ago")
        return await self.sync_now()

    def vouches(self) -> bool:
        """Whether what we hold is what the server holds, known without asking it.

        Not while a round is under way: there is something that we have not said or not heard.
        """
        if self._in_round or self._state is not CloudState.SYNCED:
            return False
        return self.standing.vouches(self._clock.monotonic(), self._clock.now().timestamp())

    def poke(self, head: int | None) -> None:
        """The server's log has grown, to `head` where that is known. A round under way may answer it: see its end."""
        self.standing.poked(head)
        if self.standing.outstanding and not self._in_round:
            self._wake.set()

    def wake(self) -> None:
        """Somebody logged in or wants an answer now: do not wait any longer."""
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled. Never raises an error of ours: it is kept in `status` and answered by waiting."""
        while True:
            woken = self._wake.count
            waiting = self._poll_seconds * (CALM if self.standing.joined else 1)
            wakers = [(self._log.changed, self._log.changed.count)]
            try:
                await self._until_answered()
            except LoginRequired:
                log.debug("nobody is logged in")  # asking again costs nothing; another process may log in
            except CloudError as error:
                waiting = TAKE_OVER_AGAIN if isinstance(error, DeviceConflict) else LOOK_AGAIN
                wakers = []  # events go on waiting: each one would get the same answer
                log.warning("the cloud says no: %s", error.kind)
            except StorageError as error:  # a full disk, a locked keychain: it may pass at any time
                wakers = []
                log.warning("a round could not be finished here: %s", error.kind)
            jittered = waiting * (0.9 + 0.2 * self._chance())  # devices must not poll in step
            await self._rest(jittered, *wakers, (self._wake, woken))

    async def stop(self) -> None:
        """Let go of a round under way; what it had not committed is asked again after the next start."""
        if self._round is not None and self._in_round:
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)

    @property
    def _in_round(self) -> bool:
        return self._round is not None and not self._round.done()

    async def _until_answered(self) -> None:
        async for attempt in AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, CloudUnavailable)),
            wait=_patience,
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
            pause = probe_pause(self._clock.monotonic() - self._out_since, self._chance())
            if await self._rest(min(pause, left), wishes) or await self._exchange.reachable():
                return
        await self._rest(max(0.0, ends - self._clock.monotonic()), wishes)

    async def _rest(self, seconds: float, *signals: tuple[Signal, int]) -> bool:
        """False when the time ran out."""
        self._resting = True
        try:
            return await wait_for_any(seconds, *signals)
        finally:
            self._resting = False

    def _chance(self) -> float:
        return self._clock.random_bytes(1)[0] / 255

    async def _one_round(self) -> Round:
        began = self.standing.round_begins()
        try:
            done = await self._exchange.until_level()
            level = await self._log.database.read(store.cursor)
        except LoginRequired as error:
            self._note(CloudState.SIGNED_OUT, error if self._error is not None else None)
            raise
        except CloudUnavailable as error:
            self._failures += 1
            if self._failures == 1:
                self._out_since = self._clock.monotonic()
            self._not_before = self._clock.monotonic() + rest_after(self._failures, error.retry_after)
            self._note(CloudState.OFFLINE, error)
            raise
        except CloudError as error:
            self._exchange.register_again()
            self._note(CloudState.REFUSED, error)
            raise
        except StorageError as error:
            self._note(CloudState.OFFLINE, error)
            raise
        self._failures, self._not_before = 0, 0.0
        self.standing.round_ended(began, level.seq)
        if self.standing.joined and self.standing.outstanding:
            self._wake.set()  # a poke came after this round had read
        self._note(CloudState.SYNCED, None)
        return done

    def _note(self, state: CloudState, error: XiaobaiError | None) -> None:
        if state is not self._state:
            log.info("cloud %s", state)
            if self._resting:
                self._wake.set()  # an answer that somebody else got ends the loop's own waiting
        self._state, self._error = state, error
        self.advanced.set()


_exponential = wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT)


def _patience(state: RetryCallState) -> float:
    """Full jitter up to five minutes, and never less than the server asked for."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, CloudUnavailable) and error.retry_after else 0.0
    return max(_exponential(state), min(asked, LONGEST_ASKED))
