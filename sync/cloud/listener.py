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
from sync.cloud.account import REFRESH_MARGIN, Account
from sync.cloud.logins import Session
from sync.cloud.plan import jittered_pause
from sync.cloud.port import Channel, Heard
from sync.cloud.replicator import Replicator
from sync.cloud.standing import ChannelState
from sync.errors import CloudUnavailable, LoginRequired, XiaobaiError
from sync.signals import wait_for_any

TICK: Final = 2.0  # seconds between two looks at clock and session
SLEPT: Final = 10.0  # seconds of wall time that a tick cannot explain
BEAT: Final = 25.0  # seconds; the server drops who is silent for a minute
BUSY_BEAT: Final = 4.0  # seconds, while somebody relies on the channel: see standing.VOUCHES_FOR
ANSWERED_WITHIN: Final = 10.0  # seconds for the answer to a heartbeat
LOOK_AGAIN: Final = 300.0  # after a refusal that only a person can mend
LOGIN_LOOK: Final = 30.0  # another process may log in

log = logging.getLogger(__name__)


class Listener:
    """The supervisor of one profile's channel. `run()` for ever."""

    def __init__(self, account: Account, replicator: Replicator, *, clock: Clock, timeout: float) -> None:
        self._account = account
        self._replicator = replicator
        self._standing = replicator.standing
        self._clock = clock
        self._timeout = timeout
        self._failures = 0  # in a row, without a channel that lived for a while

    async def run(self) -> None:
        """Until cancelled. Errors of ours are answered by waiting; polling goes on meanwhile."""
        try:
            while True:
                seen = self._account.changed.count
                pause = await self._pause_after_one_channel()
                await wait_for_any(pause, (self._account.changed, seen))
        finally:
            self._enter("off")

    async def _pause_after_one_channel(self) -> float:
        """One connection from its making to its end; seconds to wait before the next."""
        try:
            await self._one_channel()
        except LoginRequired:
            self._enter("off")
            return LOGIN_LOOK
        except CloudUnavailable as error:
            self._failures += 1
            self._lost(error)
            chance = self._clock.random_bytes(1)[0] / 255
            return max(jittered_pause(self._failures, chance), error.retry_after or 0.0)
        except XiaobaiError as error:
            self._lost(error)
        return LOOK_AGAIN

    async def _one_channel(self) -> None:
        """Never returns: a channel ends by an error."""
        session, channel = await self._join()
        began = self._clock.monotonic()
        try:
            self._enter("joined")
            self._alive()
            self._replicator.wake()
            await self._follow(session, channel)
        finally:
            if self._clock.monotonic() - began >= BEAT:
                self._failures = 0
            await channel.close()

    async def _join(self) -> tuple[Session, Channel]:
        session = await self._account.session()
        self._enter("connecting")
        try:
            return session, await self._account.cloud.listen(session)
        except LoginRequired:
            session = await self._account.session(rejected=session.access_token)  # one refresh, one more try
        try:
            return session, await self._account.cloud.listen(session)
        except LoginRequired as error:  # another refresh would end the same way
            raise CloudUnavailable("the channel does not accept a token that was just issued") from error

    async def _follow(self, session: Session, channel: Channel) -> None:
        unanswered: float | None = None  # since when a heartbeat has been
        last_beat = self._clock.monotonic()
        seen = self._account.changed.count
        while True:
            heard = await self._tick(channel)
            now = self._clock.monotonic()
            if heard is not None:
                unanswered = None
                self._take(heard)
            elif unanswered is not None and now - unanswered > ANSWERED_WITHIN:
                raise CloudUnavailable("the channel is half open: nobody answers a heartbeat")
            if self._account.changed.count != seen or self._expires(session):
                seen = self._account.changed.count
                session = await self._renewed(session, channel)
            if now - last_beat >= (BUSY_BEAT if self._standing.relied_on(now) else BEAT):
                last_beat, unanswered = now, unanswered or now
                await self._said(channel.beat())

    async def _tick(self, channel: Channel) -> Heard | None:
        """What was heard within one tick. Raises CloudUnavailable where the machine slept through it."""
        began = self._clock.now()
        heard = None
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK):
                heard = await channel.hear()
        if (self._clock.now() - began).total_seconds() > TICK + SLEPT:
            raise CloudUnavailable("the machine slept; the channel may have died meanwhile")
        return heard

    def _take(self, heard: Heard) -> None:
        self._alive()
        if heard.ready:
            self._standing.made_ready()
            self._replicator.wake()
        if heard.poke:
            self._replicator.poke(heard.head)

    async def _renewed(self, session: Session, channel: Channel) -> Session:
        """The session as it is now; the channel learns of a new token, before the server would end it."""
        fresh = await self._account.session()
        if fresh.user_id != session.user_id:
            raise CloudUnavailable("somebody else has logged in")
        if fresh.access_token != session.access_token:
            await self._said(channel.renew(fresh))
        return fresh

    def _expires(self, session: Session) -> bool:
        return session.expires_at - REFRESH_MARGIN <= self._clock.now().timestamp()

    def _alive(self) -> None:
        self._standing.heard(self._clock.monotonic(), self._clock.now().timestamp())

    def _lost(self, error: XiaobaiError) -> None:
        """Look at once whether the rest of the server answers; from then on it is polled as often as without us."""
        log.info("no channel: %s (%s)", error.message, error.kind)
        if self._enter("connecting"):
            self._replicator.wake()

    def _enter(self, state: ChannelState) -> bool:
        changed = self._standing.enter(state)
        if changed:
            self._replicator.advanced.set()
        return changed

    async def _said(self, word: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(self._timeout):
                await word
        except TimeoutError as error:
            raise CloudUnavailable("the channel takes nothing any more") from error
