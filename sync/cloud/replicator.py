"""The loop between log and cloud: push, acknowledge, pull, wait.

`sync_now` and the loop share one round at a time. A failure leaves everything where it was: what is not acknowledged
is pending and is sent again; the server skips ids it knows. Waiting after failures is tenacity's: full jitter, five
minutes at most, never less than the server asked for. A batch that the server refuses for good is halved until the
culprit stands alone; it goes into quarantine, and the rest goes through. Before that an empty request is tried: where
even that one is refused, no event is to blame and none is set aside.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final, TypeVar

from sqlalchemy import Connection
from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from sync.clock import Clock, timestamp
from sync.cloud import store
from sync.cloud.account import Account
from sync.cloud.plan import Verdict, batch, halves, judge
from sync.cloud.port import DeviceFacts, Session, SnapshotRow, SyncAnswer, SyncRequest
from sync.errors import CloudError, CloudUnavailable, Forbidden, LoginRequired, Rejected, StorageError, XiaobaiError
from sync.log.log import Log
from sync.log.model import Cursor, Event, Refusal
from sync.settings import SyncSettings
from sync.signals import Signal, wait_for_any

LONGEST_WAIT: Final = 300.0  # seconds between attempts while nothing answers
FIRST_WAIT: Final = 0.5
LOOK_AGAIN: Final = 300.0  # after an error that only a person can mend, we still look now and then
PULL_EVENTS: Final = 500
MOST_REQUESTS: Final = 10_000  # in one round: a bound on a server that never says it is done
MOST_RESETS: Final = 2  # in one round: a log is replaced once, perhaps twice, not for ever
LONGEST_ASKED: Final = 3600.0  # seconds; a server that asks for more is asked again all the same

T = TypeVar("T")

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


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did."""

    pushed: int = 0
    pulled: int = 0
    quarantined: int = 0


SnapshotSource = Callable[[], Awaitable[SnapshotRow | None]]


class Replicator:
    """Keeps one profile's log and the server's in step. `run()` for ever; `sync_now()` from anywhere."""

    def __init__(
        self,
        events: Log,
        account: Account,
        facts: DeviceFacts,
        snapshot: SnapshotSource,
        *,
        clock: Clock,
        options: SyncSettings,
    ) -> None:
        self._log = events
        self._account = account
        self._facts = facts
        self._snapshot = snapshot
        self._clock = clock
        self._poll_seconds = options.poll_seconds
        self._timeout = options.timeout_seconds
        self._push_events = options.push_events
        self._wake = Signal()
        self._resting = False  # whether `run` is between two rounds of its own
        self._round: asyncio.Task[Round] | None = None
        self._registered: set[tuple[str, str]] = set()  # (user, device)
        self._settled_snapshot: str | None = None  # hash of the document the server has stored, or refused for good
        self._state = CloudState.CONNECTING
        self._error: XiaobaiError | None = None
        self.advanced = Signal()  # set whenever the state or the log changed through the cloud

    @property
    def state(self) -> CloudState:
        return self._state

    async def status(self) -> CloudStatus:
        cursor = await self._log.database.read(store.cursor)
        return CloudStatus(self._state, cursor.synced_at, self._error, cursor)

    async def sync_now(self) -> Round:
        """Join the round under way, or make one. Raises a CloudError; what could not be sent stays pending.

        Cancelling the caller does not cancel the round: others may have joined it.
        """
        if self._round is None or self._round.done():
            self._round = asyncio.create_task(self._one_round())
            self._round.add_done_callback(_heard)
        return await asyncio.shield(self._round)

    def wake(self) -> None:
        """Somebody logged in or wants an answer now: do not wait any longer."""
        self._wake.set()

    async def run(self) -> None:
        """Until cancelled. Never raises an error of ours: it is kept in `status` and answered by waiting."""
        while True:
            woken = self._wake.count
            waiting, wakers = self._poll_seconds, [(self._log.changed, self._log.changed.count)]
            try:
                await self._until_answered()
            except LoginRequired:
                log.debug("nobody is logged in")  # asking again costs nothing; another process may log in
            except CloudError as error:
                waiting, wakers = LOOK_AGAIN, []  # events go on waiting: each one would get the same answer
                log.warning("the cloud says no: %s", error.kind)
            except StorageError as error:  # a full disk, a locked keychain: it may pass at any time
                wakers = []
                log.warning("a round could not be finished here: %s", error.kind)
            jittered = waiting * (0.9 + 0.2 * self._clock.random_bytes(1)[0] / 255)  # devices must not poll in step
            await self._rest(jittered, *wakers, (self._wake, woken))

    async def stop(self) -> None:
        """Let go of a round under way; what it had not committed is asked again after the next start."""
        if self._round is not None and not self._round.done():
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)

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
        """A login or an explicit wish ends the wait; new events do not, or an offline burst would be a storm."""
        await self._rest(seconds, (self._wake, self._wake.count))

    async def _rest(self, seconds: float, *signals: tuple[Signal, int]) -> None:
        self._resting = True
        try:
            await wait_for_any(seconds, *signals)
        finally:
            self._resting = False

    async def _one_round(self) -> Round:
        try:
            done = await self._exchange_until_level()
        except LoginRequired as error:
            self._note(CloudState.SIGNED_OUT, error if self._error is not None else None)
            raise
        except CloudUnavailable as error:
            self._note(CloudState.OFFLINE, error)
            raise
        except CloudError as error:
            self._registered.clear()  # an administrator may have removed the device; registering again tells
            self._note(CloudState.REFUSED, error)
            raise
        except StorageError as error:
            self._note(CloudState.OFFLINE, error)
            raise
        self._note(CloudState.SYNCED, None)
        return done

    def _note(self, state: CloudState, error: XiaobaiError | None) -> None:
        if state is not self._state:
            log.info("cloud %s", state)
            if self._resting:
                self._wake.set()  # an answer that somebody else got ends the loop's own waiting
        self._state, self._error = state, error
        self.advanced.set()

    async def _exchange_until_level(self) -> Round:
        done = Round()
        resets = 0
        stands = set[tuple[str | None, int, str | None]]()
        for _ in range(MOST_REQUESTS):
            session = await self._account.session()
            waiting = await self._log.database.read(lambda connection: store.waiting(connection, self._push_events))
            events = batch(waiting.events, most_events=self._push_events)
            stand = (waiting.cursor.epoch, waiting.cursor.seq, events[0].event_id if events else None)
            if stand in stands or resets > MOST_RESETS:
                break  # the last answer brought nothing new, so the next one will not either
            stands.add(stand)
            device_id = events[0].device_id if events else self._log.device_id
            await self._register(session, device_id)
            answer, refused = await self._push(session, device_id, events, waiting.cursor)
            verdict = judge(waiting.cursor, answer)
            resets += verdict.reset
            new = await self._apply(answer, verdict)
            done = Round(done.pushed + len(answer.acked), done.pulled + new, done.quarantined + refused)
            if verdict.caught_up and (await self._log.outbox()).pending == 0:
                return done
        raise CloudUnavailable("the server's answers lead nowhere")

    async def _apply(self, answer: SyncAnswer, verdict: Verdict) -> int:
        new = await self._log.database.write(lambda connection: store.apply(connection, answer, verdict, self._clock))
        if new:
            self._log.changed.set()
        return new

    async def _register(self, session: Session, device_id: str) -> None:
        if (session.user_id, device_id) not in self._registered:
            await self._authorized(
                session, lambda good: self._account.cloud.register_device(good, device_id, self._facts)
            )
            self._registered.add((session.user_id, device_id))

    async def _push(
        self, session: Session, device_id: str, events: tuple[Event, ...], cursor: Cursor
    ) -> tuple[SyncAnswer, int]:
        """One exchange; a refused batch is taken apart first. Returns the last answer and how many were set aside."""
        snapshot = await self._snapshot() if device_id == self._log.device_id else None
        if snapshot is not None and snapshot.content_sha256 == self._settled_snapshot:
            snapshot = None
        request = SyncRequest(
            device_id=device_id,
            replica_id=self._facts.replica_id,
            events=events,
            after=cursor.seq,
            after_event=cursor.event_id,
            epoch=cursor.epoch,
            limit=PULL_EVENTS,
            snapshot=snapshot,
        )
        try:
            answer = await self._send(session, request)
        except Rejected as error:
            if not events and snapshot is None:
                raise
            return await self._without_culprit(session, request, error)
        if snapshot is not None:
            self._settled_snapshot = snapshot.content_sha256
        return answer, 0

    async def _without_culprit(self, session: Session, request: SyncRequest, why: Rejected) -> tuple[SyncAnswer, int]:
        """What `_push` does about a refusal. Raises Rejected where the server refuses an empty request as well."""
        bare = replace(request, events=(), snapshot=None)
        answer = await self._send(session, bare)
        if request.events:
            refused = await self._take_apart(session, replace(request, snapshot=None))
            return await self._send(session, bare), refused
        if request.snapshot is not None:
            self._settled_snapshot = request.snapshot.content_sha256
            log.warning("the server refuses the document (%s); it is sent again when it has changed", why.code)
        return answer, 0

    async def _take_apart(self, session: Session, request: SyncRequest) -> int:
        """Push a refused batch part by part; what is refused alone goes into quarantine. Returns how many did.

        The whole batch comes first, now without the snapshot: that may have been the culprit.
        """
        parts = [request.events]
        refused = 0
        while parts:
            part = parts.pop()
            try:
                answer = await self._send(session, replace(request, events=part))
            except Rejected as error:
                if len(part) == 1:
                    await self._set_aside(part[0], error)
                    refused += 1
                else:
                    parts.extend(reversed(halves(part)))
            else:
                await self._log.database.write(partial(store.acknowledge, answer=answer))
        return refused

    async def _set_aside(self, event: Event, why: Rejected) -> None:
        refusal = Refusal(event.event_id, why.code, why.message, timestamp(self._clock.now()))

        def keep(connection: Connection) -> None:
            store.refuse(connection, [refusal])

        await self._log.database.write(keep)
        log.warning("the server refuses event %s for good (%s)", event.event_id, why.code)

    async def _send(self, session: Session, request: SyncRequest) -> SyncAnswer:
        return await self._authorized(session, lambda good: self._account.cloud.sync(good, request))

    async def _authorized(self, session: Session, call: Callable[[Session], Awaitable[T]]) -> T:
        try:
            return await self._deadline(call(session))
        except LoginRequired:
            fresh = await self._account.session(rejected=session.access_token)  # one refresh, one more try
        try:
            return await self._deadline(call(fresh))
        except LoginRequired as error:  # another refresh would end the same way, at every poll
            hint = "Log in again; if that does not help, check the keys of the Supabase project."
            raise Forbidden("the server does not accept a token it has just issued", hint=hint) from error

    async def _deadline(self, call: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout(self._timeout):
                return await call
        except TimeoutError as error:
            raise CloudUnavailable(f"no answer within {self._timeout:g} s") from error


_exponential = wait_random_exponential(multiplier=FIRST_WAIT, max=LONGEST_WAIT)


def _patience(state: RetryCallState) -> float:
    """Full jitter up to five minutes, and never less than the server asked for."""
    error = state.outcome.exception() if state.outcome else None
    asked = error.retry_after if isinstance(error, CloudUnavailable) and error.retry_after else 0.0
    return max(_exponential(state), min(asked, LONGEST_ASKED))


def _heard(done: asyncio.Task[Round]) -> None:
    """A failure is kept in `status`; that nobody waits for the round any more is no reason for a traceback."""
    if not done.cancelled():
        done.exception()
