"""Keeps a channel to the server for as long as somebody is logged in, and pokes the replicator.

A poke is never data: it only ends the replicator's waiting, and polling goes on below it, rarer. So whatever goes wrong
here costs time and no event, and the answer is always the same: throw the channel away, wait, make a new one. Each new
one is a poke as well, since nobody knows what was missed.

What is noticed: a server that no longer answers heartbeats (half-open); a machine that slept (wall time passed that
no wait explains); a session that was refreshed by the replicator, the app or another process (the channel gets the new
token) or ended (it is closed). After a failure the wait is random, up to a bound that doubles, so that devices do not
return in step after an outage. Only a channel that lived for a while ends the doubling: a server that closes each one
at once is not stormed.
"""

import asyncio
import logging
from collections.abc import Awaitable
from contextlib import suppress
from typing import Final

from sync.clock import Clock
from sync.cloud.auth.account import REFRESH_MARGIN_SECONDS, Account
from sync.cloud.auth_port import AuthSession
from sync.cloud.port import Channel, RealtimeNotice
from sync.cloud.replication.freshness import ChannelState
from sync.cloud.replication.replicator import Replicator
from sync.errors import CloudUnavailable, LoginRequired, XiaobaiError
from sync.runtime.backoff import Backoff
from sync.runtime.change_counter import wait_for_any_change

RECONNECT_BACKOFF: Final = Backoff(base=1.0, limit=30.0, jitter=1.0)  # a channel back that late has cost one poll
MIN_RECONNECT_WAIT: Final = 0.2  # seconds
TICK_SECONDS: Final = 2.0  # seconds between two looks at clock and session
SLEEP_THRESHOLD: Final = 10.0  # seconds of wall time that a tick cannot explain
HEARTBEAT_INTERVAL: Final = 25.0  # seconds; the server drops who is silent for a minute
BUSY_HEARTBEAT_INTERVAL: Final = 4.0  # seconds, while somebody relies on the channel: see standing.VOUCHES_FOR
HEARTBEAT_TIMEOUT: Final = 10.0  # seconds for the answer to a heartbeat
REFUSED_RETRY_INTERVAL: Final = 300.0  # after a refusal that only a person can mend
LOGIN_CHECK_INTERVAL: Final = 30.0  # another process may log in

log = logging.getLogger(__name__)


class RealtimeSupervisor:
    """The supervisor of one profile's channel. `run()` for ever."""

    def __init__(self, account: Account, replicator: Replicator, *, clock: Clock, timeout: float) -> None:
        self._account = account
        self._replicator = replicator
        self._freshness = replicator.freshness
        self._clock = clock
        self._timeout = timeout
        self._failures = 0  # in a row, without a channel that lived for a while

    async def run(self) -> None:
        """Until cancelled. Errors of ours are answered by waiting; polling goes on meanwhile."""
        try:
            while True:
                seen = self._account.changed.count
                pause = await self._run_channel_and_pause()
                await wait_for_any_change(pause, (self._account.changed, seen))
        finally:
            self._set_state("off")

    async def _run_channel_and_pause(self) -> float:
        """One connection from its making to its end; seconds to wait before the next."""
        try:
            await self._run_channel()
        except LoginRequired:
            self._set_state("off")
            return LOGIN_CHECK_INTERVAL
        except CloudUnavailable as error:
            self._failures += 1
            self._note_lost(error)
            chance = self._clock.random_bytes(1)[0] / 255
            backoff = RECONNECT_BACKOFF.seconds(self._failures, chance)
            return max(MIN_RECONNECT_WAIT, backoff, error.retry_after or 0.0)
        except XiaobaiError as error:
            self._note_lost(error)
        return REFUSED_RETRY_INTERVAL

    async def _run_channel(self) -> None:
        """Never returns: a channel ends by an error."""
        session, channel = await self._join()
        began = self._clock.monotonic()
        try:
            self._set_state("joined")
            self._note_activity()
            self._replicator.wake()
            await self._serve_channel(session, channel)
        finally:
            if self._clock.monotonic() - began >= HEARTBEAT_INTERVAL:
                self._failures = 0
            await channel.close()

    async def _join(self) -> tuple[AuthSession, Channel]:
        session = await self._account.session()
        self._set_state("connecting")
        try:
            return session, await self._account.cloud.open_channel(session)
        except LoginRequired:
            session = await self._account.session(rejected_token=session.access_token)  # one refresh, one more try
        try:
            return session, await self._account.cloud.open_channel(session)
        except LoginRequired as error:  # another refresh would end the same way
            raise CloudUnavailable("the channel does not accept a token that was just issued") from error

    async def _serve_channel(self, session: AuthSession, channel: Channel) -> None:
        unanswered: float | None = None  # since when a heartbeat has been
        last_beat = self._clock.monotonic()
        seen = self._account.changed.count
        while True:
            heard = await self._receive_once(channel)
            now = self._clock.monotonic()
            if heard is not None:
                unanswered = None
                self._handle_notice(heard)
            elif unanswered is not None and now - unanswered > HEARTBEAT_TIMEOUT:
                raise CloudUnavailable("the channel is half open: nobody answers a heartbeat")
            if self._account.changed.count != seen or self._is_expiring(session):
                seen = self._account.changed.count
                session = await self._refresh_token(session, channel)
            if now - last_beat >= (
                BUSY_HEARTBEAT_INTERVAL if self._freshness.is_relied_on(now) else HEARTBEAT_INTERVAL
            ):
                last_beat, unanswered = now, unanswered or now
                await self._send_within_timeout(channel.send_heartbeat())

    async def _receive_once(self, channel: Channel) -> RealtimeNotice | None:
        """What was heard within one tick. Raises CloudUnavailable where the machine slept through it."""
        began = self._clock.now()
        heard = None
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK_SECONDS):
                heard = await channel.receive()
        if (self._clock.now() - began).total_seconds() > TICK_SECONDS + SLEEP_THRESHOLD:
            raise CloudUnavailable("the machine slept; the channel may have died meanwhile")
        return heard

    def _handle_notice(self, notice: RealtimeNotice) -> None:
        self._note_activity()
        if notice.ready:
            self._freshness.mark_ready()
            self._replicator.wake()
        if notice.poke:
            self._replicator.on_server_change(notice.head)

    async def _refresh_token(self, session: AuthSession, channel: Channel) -> AuthSession:
        """The session as it is now; the channel learns of a new token, before the server would end it."""
        fresh = await self._account.session()
        if fresh.user_id != session.user_id:
            raise CloudUnavailable("somebody else has logged in")
        if fresh.access_token != session.access_token:
            await self._send_within_timeout(channel.update_token(fresh))
        return fresh

    def _is_expiring(self, session: AuthSession) -> bool:
        return session.expires_at - REFRESH_MARGIN_SECONDS <= self._clock.now().timestamp()

    def _note_activity(self) -> None:
        self._freshness.note_activity(self._clock.monotonic(), self._clock.now().timestamp())

    def _note_lost(self, error: XiaobaiError) -> None:
        """Look at once whether the rest of the server answers; from then on it is polled as often as without us."""
        log.info("no channel: %s (%s)", error.message, error.kind)
        if self._set_state("connecting"):
            self._replicator.wake()

    def _set_state(self, state: ChannelState) -> bool:
        changed = self._freshness.set_state(state)
        if changed:
            self._replicator.state_changed.increment()
        return changed

    async def _send_within_timeout(self, sending: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await sending
        except TimeoutError as error:
            raise CloudUnavailable("the channel takes nothing any more") from error
