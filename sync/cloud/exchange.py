"""One round between log and cloud: register, push, acknowledge, pull, until both sides are level.

What is not acknowledged stays pending; the server skips ids it knows, so everything here may be repeated. A batch that
the server refuses for good is taken apart until the culprit stands alone; it goes into quarantine, the rest goes
through. A replica whose numbers the server knows under other ids, or that has said there what it does not hold (a
cloned home, a restored backup), becomes a new replica: what it has not sent yet is numbered anew and keeps its ids, so
no event is lost or doubled; it makes a key of its own too. A copy under another device id is told that the key is in
use, and makes its own as well; what it has recorded under the id it had before waits while another installation speaks
for that one, and nothing else waits with it.

Where another program has written this device's document on the server, its text is read and taken in as events before
ours goes over it, with the hash of what was read: a later write of that program is foreign again. Text that could not
be taken in stays there, and so does the question about it.

A document may change without an event of our own (a shared one, a line that was forgotten), so ours names the text that
it replaces. A server without the newest migration keeps that text until we say something; it is asked no second time.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Final, Protocol, TypeVar

from sync.clock import Clock, timestamp
from sync.cloud import store
from sync.cloud.account import Account
from sync.cloud.authorized import authorized
from sync.cloud.device_key import DeviceKey
from sync.cloud.erasures import ErasureGuard
from sync.cloud.logins import Session
from sync.cloud.plan import LIMITED, Verdict, batch, by_code, halves, judge
from sync.cloud.port import FOREIGN, STALE, DeviceFacts, SnapshotRow, SyncAnswer, SyncRequest
from sync.cloud.progress import Pulls
from sync.cloud.registration import Registration
from sync.errors import CloudUnavailable, DeviceConflict, DeviceForked, LoginRequired, Rejected
from sync.log.log import Log
from sync.log.model import Cursor, Event, Refusal
from sync.sections import SyncSettings

PULL_EVENTS: Final = 1_000  # the most that the server hands out in one answer; it cuts at 1 MiB as well
LIMITED_FOR: Final = timedelta(hours=1)  # before it is tried again
MOST_REQUESTS: Final = 10_000  # in one round: a bound on a server that never says it is done
MOST_FORKS: Final = 1  # in one round: a new replica's numbers are its own; a second fork is something else
MOST_RESETS: Final = 2  # in one round: a log is replaced once, perhaps twice, not for ever

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Round:
    """What one round did."""

    pushed: int = 0
    pulled: int = 0
    quarantined: int = 0

    def and_then(self, more: "Round") -> "Round":
        """Both."""
        return Round(self.pushed + more.pushed, self.pulled + more.pulled, self.quarantined + more.quarantined)


class DocumentSource(Protocol):
    """This device's document, as the exchange needs it."""

    async def snapshot(self) -> SnapshotRow | None:
        """As it may leave; None where there is none, or it is too large."""
        ...

    async def stored(self) -> None:
        """The server has the last snapshot: what another program makes of it is an edit of that one."""
        ...

    async def take_in_foreign(self, content: str) -> bool:
        """What another program put in its place. Whether ours, which has it now, may go over it."""
        ...


class Exchange:
    """What is said to the server, and what is done with its answers. One round at a time."""

    def __init__(
        self,
        events: Log,
        account: Account,
        facts: DeviceFacts,
        document: DocumentSource,
        *,
        clock: Clock,
        options: SyncSettings,
        key: DeviceKey | None = None,
        erasures: ErasureGuard | None = None,
    ) -> None:
        self._log = events
        self._account = account
        self._registration = Registration(account, facts, key, timeout=options.timeout_seconds)
        self._document = document
        self._erasures = erasures
        self._heard = set[str]()  # the devices that events came from
        self._met: frozenset[str] | None = None  # those whose keys were asked for; None before the first time
        self._clock = clock
        self._timeout = options.timeout_seconds
        self._push_events = options.push_events
        self._reported: dict[str, int] = {}  # what the server was last told of the quarantine
        self.pulls = Pulls()
        self._settled_snapshot: str | None = None  # hash of the document the server has stored, or refused for good
        self._base: str | None = None  # hash of what stands there that ours may go over: taken in, or our own

    @property
    def replica_id(self) -> str:
        """Under which id this database speaks; it changes when the database turns out to be a copy."""
        return self._registration.replica_id

    async def reachable(self) -> bool:
        """Whether a connection to the server can be made."""
        return await self._account.cloud.reachable()

    def register_again(self) -> None:
        """An administrator may have removed the device; registering tells."""
        self._registration.clear()

    async def until_level(self) -> Round:
        """One round. Raises a CloudError or StorageError; what was acknowledged and taken in by then stands."""
        try:
            done = await self._until_level()
            await self._report()
            await self._note_keys()
            if not self._account.is_open:  # whoever asks now is to hear nothing from that account
                raise LoginRequired("the login ended while the server was asked")
            return done
        finally:
            self.pulls.over()

    async def _until_level(self) -> Round:
        await _release_limited(self._log, self._clock)
        self._log.database.check_writable()  # or a refreshed token, an acknowledgement would be lost
        done = Round()
        resets = forks = 0
        among: str | None = None  # the device whose events go out; None: whichever id they were recorded under
        stands = set[tuple[str | int | None, ...]]()
        for _ in range(MOST_REQUESTS):
            session = await self._account.session()
            waiting = await self._waiting(among)
            events = batch(waiting.events, most_events=self._push_events)
            stand = (waiting.cursor.epoch, waiting.cursor.seq, events[0].event_id if events else None, self._base)
            if stand in stands or resets > MOST_RESETS:
                break  # the last answer brought nothing new, so the next one will not either
            stands.add(stand)
            device_id = events[0].device_id if events else self._log.device_id
            try:
                answer, verdict, did = await self._exchanged(session, device_id, events, waiting.cursor)
            except DeviceConflict:
                if device_id == self._log.device_id:
                    raise
                among = self._log.device_id
                continue
            except DeviceForked:
                forks += 1
                if forks > MOST_FORKS:
                    raise
                await self._become_new_replica()
                stands.clear()
                continue
            self.pulls.moved(waiting.cursor, verdict)
            resets += verdict.reset
            done = done.and_then(did)
            owed = device_id == self._log.device_id and await self._is_owed(session, answer)
            if verdict.caught_up and not owed and not await self._is_more(among):
                return done
        raise CloudUnavailable("the server's answers lead nowhere")

    async def _waiting(self, among: str | None) -> store.Waiting:
        look = partial(store.waiting, most_events=self._push_events, device_id=among)
        return await self._log.database.read(look)

    async def _is_more(self, among: str | None) -> bool:
        """Whether something is left to send. Raises DeviceConflict where all that is left bears a former id."""
        if (await self._log.outbox()).pending == 0:
            return False
        if among is None or (await self._waiting(among)).events:
            return True
        raise DeviceConflict("what was recorded under a former device id waits: another installation speaks for it")

    async def _exchanged(
        self, session: Session, device_id: str, events: tuple[Event, ...], cursor: Cursor
    ) -> tuple[SyncAnswer, Verdict, Round]:
        """One request, and what is done with its answer."""
        own = device_id == self._log.device_id
        await self._registration.ensure(session, device_id, own=own, is_new=cursor.epoch is None)
        answer, refused = await self._push(session, device_id, events, cursor)
        verdict = judge(cursor, answer)
        new = await self._apply(answer, verdict)
        return answer, verdict, Round(len(answer.acked), new, refused)

    async def _report(self) -> None:
        """Tell the administrators what was set aside, when that has changed."""
        refused = by_code(await self._log.quarantine.refusals())
        if refused != self._reported:
            session, device_id = await self._account.session(), self._log.device_id
            await self._registration.ensure(session, device_id, own=True)
            await self._ask(session, lambda good: self._account.cloud.report(good, device_id, refused))
            self._reported = refused

    async def _note_keys(self) -> None:
        """Note the keys of the account's devices: once a process, and when a device is heard that was not listed."""
        if self._erasures is None or (self._met is not None and self._heard <= self._met):
            return
        try:
            rows = await self._ask(await self._account.session(), self._account.cloud.devices)
        except CloudUnavailable as error:  # the next round asks again; a key is only known later
            log.debug("the keys of the devices are not known yet (%s)", error.kind)
            return
        await self._erasures.note_keys(rows)
        self._met = frozenset(self._heard | {row.device_id for row in rows})

    async def _become_new_replica(self) -> None:
        """Number anew what was not sent; the server hears whom we replace. Twice in one round is no accident."""
        new = await self._log.database.write(partial(store.become_new_replica, clock=self._clock))
        log.warning("replica %s was copied or restored; it goes on as %s", self._registration.replica_id, new)
        await self._registration.succeed(new)

    async def _apply(self, answer: SyncAnswer, verdict: Verdict) -> int:
        judge = None if self._erasures is None else await self._erasures.judge(answer.events)
        own = self._log.device_id
        take_in = partial(store.apply, answer=answer, verdict=verdict, clock=self._clock, device_id=own, judge=judge)
        self._heard |= {event.device_id for event in answer.events}
        try:
            new = await self._log.database.write(take_in)
        except DeviceForked:  # what the server has keeps the number it has there
            await self._log.database.write(partial(store.acknowledge, answer=answer))
            raise
        if new:
            self._log.changed.set()
        return new

    async def _push(
        self, session: Session, device_id: str, events: tuple[Event, ...], cursor: Cursor
    ) -> tuple[SyncAnswer, int]:
        """One exchange; a refused batch is taken apart first. Returns the last answer and how many were set aside."""
        snapshot = await self._document.snapshot() if device_id == self._log.device_id else None
        if snapshot is not None and snapshot.content_sha256 == self._settled_snapshot:
            snapshot = None
        if snapshot is not None:
            snapshot = replace(snapshot, base_sha256=self._base)
        if self._erasures is not None:
            events = await self._erasures.signed(events)
        request = SyncRequest(
            device_id=device_id,
            replica_id=self._registration.replica_id,
            events=events,
            after=cursor.seq,
            after_event=cursor.event_id,
            after_ts=cursor.event_ts,
            epoch=cursor.epoch,
            limit=PULL_EVENTS,
            snapshot=snapshot,
        )
        try:
            answer = await self._send(session, request)
        except Rejected as error:
            if not events and snapshot is None:
                raise
            return await self._without_culprit(session, request, cursor, error)
        if snapshot is not None and answer.snapshot not in {FOREIGN, STALE}:
            self._settled_snapshot = self._base = snapshot.content_sha256
            await self._document.stored()
        return answer, 0

    async def _is_owed(self, session: Session, answer: SyncAnswer) -> bool:
        """Read what stands in the place of our document and take in another program's. Whether ours is owed now."""
        if answer.snapshot not in {FOREIGN, STALE}:
            return False
        stored = await self._ask(session, lambda good: self._account.cloud.read_document(good, self._log.device_id))
        is_foreign = stored is not None and stored.replica_id is None
        if stored is None or (is_foreign and not await self._document.take_in_foreign(stored.content)):
            return False
        owed = stored.content_sha256 != self._base
        if owed:
            self._base, self._settled_snapshot = stored.content_sha256, None
        return owed

    async def _without_culprit(
        self, session: Session, request: SyncRequest, cursor: Cursor, why: Rejected
    ) -> tuple[SyncAnswer, int]:
        """What `_push` does about a refusal. Raises Rejected where the server refuses an empty request as well."""
        answer = await self._send(session, replace(request, events=(), snapshot=None))
        if request.events:
            refused = await self._take_apart(session, replace(request, snapshot=None))
            answer, _ = await self._push(session, request.device_id, (), cursor)  # the document is not left behind
            return answer, refused
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
        await self._log.database.write(lambda connection: store.refuse(connection, [refusal]))
        log.warning("the server refuses event %s for good (%s)", event.event_id, why.code)

    async def _send(self, session: Session, request: SyncRequest) -> SyncAnswer:
        return await self._ask(session, lambda good: self._account.cloud.sync(good, request))

    async def _ask(self, session: Session, call: Callable[[Session], Awaitable[T]]) -> T:
        return await authorized(self._account, call, timeout=self._timeout, session=session)


async def _release_limited(events: Log, clock: Clock) -> None:
    """Send again what a limit of the day has set aside."""
    before = timestamp(clock.now() - LIMITED_FOR)
    refusals = await events.quarantine.refusals()
    waits = [one.event_id for one in refusals if one.code == LIMITED and one.noticed_at < before]
    if waits:
        await events.quarantine.release(waits, "pending")
