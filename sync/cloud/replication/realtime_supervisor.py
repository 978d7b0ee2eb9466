"""Keep one realtime channel open while a user is logged in on two devices or more, and wake the replicator.

A project has few channels, and a device that is the only one of its account hears nothing there: it has none unless
another was seen within a week.

A notice is never data, so any failure only costs time: polling goes on, and the supervisor opens another channel after
a random wait. Each new channel wakes the replicator, because notices may have been missed. Only a channel that lived
for a while resets the backoff; a server that closes every channel at once is not stormed.
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
TICK_SECONDS: Final = 2.0  # between two checks of the clock and the session
SLEEP_THRESHOLD: Final = 10.0  # seconds of wall time beyond a tick: the machine slept
HEARTBEAT_INTERVAL: Final = 25.0  # seconds; the server closes a channel that is silent for a minute
BUSY_HEARTBEAT_INTERVAL: Final = 4.0  # seconds, while callers rely on the channel: below freshness.FRESH_SECONDS
HEARTBEAT_TIMEOUT: Final = 10.0  # seconds
REFUSED_RETRY_INTERVAL: Final = 300.0  # seconds, after a refusal that needs a person
LOGIN_CHECK_INTERVAL: Final = 30.0  # seconds; another process may log in

log = logging.getLogger(__name__)


class RealtimeSupervisor:
    """Supervises the channel of one profile."""

    def __init__(self, account: Account, replicator: Replicator, *, clock: Clock, timeout: float) -> None:
        self._account = account
        self._replicator = replicator
        self._freshness = replicator.freshness
        self._clock = clock
        self._timeout = timeout
        self._failures = 0  # in a row

    async def run(self) -> None:
        """Keep a channel open until cancelled. After a product error, wait and try again."""
        try:
            while True:
                seen, rounds = self._account.changed.count, self._replicator.state_changed.count
                if self._replicator.others.any_active():
                    pause = await self._run_channel_and_pause()
                    await wait_for_any_change(pause, (self._account.changed, seen))
                else:
                    self._set_state("off")
                    await wait_for_any_change(None, (self._replicator.state_changed, rounds))
        finally:
            self._set_state("off")

    async def _run_channel_and_pause(self) -> float:
        """Open one channel and serve it to its end. Return the seconds to wait before the next one."""
        try:
            await self._run_channel()
            self._set_state("off")
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
        return REFUSED_RETRY_INTERVAL  # or the other devices are silent

    async def _run_channel(self) -> None:
        """Serve one channel. A channel ends with an error, or because the other devices are silent."""
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
            session = await self._account.session(rejected_token=session.access_token)
        try:
            return session, await self._account.cloud.open_channel(session)
        except LoginRequired as error:  # refreshing again would not help
            raise CloudUnavailable("the channel does not accept a token that was just issued") from error

    async def _serve_channel(self, session: AuthSession, channel: Channel) -> None:
        unanswered: float | None = None  # when the first unanswered heartbeat was sent
        last_beat = self._clock.monotonic()
        seen = self._account.changed.count
        while self._replicator.others.any_active():
            notice = await self._receive_once(channel)
            now = self._clock.monotonic()
            if notice is not None:
                unanswered = None
                self._handle_notice(notice)
            elif unanswered is not None and now - unanswered > HEARTBEAT_TIMEOUT:
                raise CloudUnavailable("the channel is half open: no answer to a heartbeat")
            if self._account.changed.count != seen or self._is_expiring(session):
                seen = self._account.changed.count
                session = await self._refresh_token(session, channel)
            interval = BUSY_HEARTBEAT_INTERVAL if self._freshness.is_relied_on(now) else HEARTBEAT_INTERVAL
            if now - last_beat >= interval:
                last_beat, unanswered = now, unanswered or now
                await self._send_within_timeout(channel.send_heartbeat())

    async def _receive_once(self, channel: Channel) -> RealtimeNotice | None:
        """The notice of one tick, if any. Raises CloudUnavailable if the machine slept."""
        began = self._clock.now()
        notice = None
        with suppress(TimeoutError):
            async with asyncio.timeout(TICK_SECONDS):
                notice = await channel.receive()
        if (self._clock.now() - began).total_seconds() > TICK_SECONDS + SLEEP_THRESHOLD:
            raise CloudUnavailable("the machine slept; the channel may be dead")
        return notice

    def _handle_notice(self, notice: RealtimeNotice) -> None:
        self._note_activity()
        if notice.ready:
            self._freshness.mark_ready()
            self._replicator.wake()
        if notice.poke:
            self._replicator.on_server_change(notice.head)

    async def _refresh_token(self, session: AuthSession, channel: Channel) -> AuthSession:
        """The current session. A new token is passed to the channel before the old one expires."""
        fresh = await self._account.session()
        if fresh.user_id != session.user_id:
            raise CloudUnavailable("another user has logged in")
        if fresh.access_token != session.access_token:
            await self._send_within_timeout(channel.update_token(fresh))
        return fresh

    def _is_expiring(self, session: AuthSession) -> bool:
        return session.expires_at - REFRESH_MARGIN_SECONDS <= self._clock.now().timestamp()

    def _note_activity(self) -> None:
        self._freshness.note_activity(self._clock.monotonic(), self._clock.now().timestamp())

    def _note_lost(self, error: XiaobaiError) -> None:
        """Wake the replicator: it checks whether the server answers, and polls without a channel from now on."""
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
            raise CloudUnavailable("the channel accepts no messages") from error
