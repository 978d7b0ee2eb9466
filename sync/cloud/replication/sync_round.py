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
from sync.cloud import replication_store
from sync.cloud.auth.account import Account
from sync.cloud.auth.device_key import DeviceKey
from sync.cloud.auth.device_registration import DeviceRegistrar
from sync.cloud.auth.token_retry import with_fresh_token
from sync.cloud.auth_port import AuthSession
from sync.cloud.port import FOREIGN_DOCUMENT, STALE_DOCUMENT, DeviceFacts, SnapshotRow, SyncAnswer, SyncRequest
from sync.cloud.replication.erasure_guard import ErasureGuard
from sync.cloud.replication.pull_progress import PullProgressTracker
from sync.cloud.sync_decisions import QUOTA_CODE, PageVerdict, check_page, count_by_code, next_batch, split_batch
from sync.errors import CloudUnavailable, DeviceConflict, DeviceForked, LoginRequired, Rejected
from sync.log.log import EventLog
from sync.log.model import Event, RefusedEvent, RemoteCursor
from sync.settings.sections import SyncSettings

PULL_EVENTS: Final = 1_000  # the most that the server hands out in one answer; it cuts at 1 MiB as well
QUOTA_RETRY_AFTER: Final = timedelta(hours=1)  # before it is tried again
MAX_REQUESTS: Final = 10_000  # in one round: a bound on a server that never says it is done
MAX_FORKS: Final = 1  # in one round: a new replica's numbers are its own; a second fork is something else
MAX_RESETS: Final = 2  # in one round: a log is replaced once, perhaps twice, not for ever

T = TypeVar("T")

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RoundResult:
    """What one round did."""

    pushed: int = 0
    pulled: int = 0
    quarantined: int = 0

    def plus(self, other: "RoundResult") -> "RoundResult":
        """Both."""
        return RoundResult(self.pushed + other.pushed, self.pulled + other.pulled, self.quarantined + other.quarantined)


class DocumentSource(Protocol):
    """This device's document, as the exchange needs it."""

    async def snapshot(self) -> SnapshotRow | None:
        """As it may leave; None where there is none, or it is too large."""
        ...

    async def mark_stored(self) -> None:
        """The server has the last snapshot: what another program makes of it is an edit of that one."""
        ...

    async def import_foreign(self, content: str) -> bool:
        """What another program put in its place. Whether ours, which has it now, may go over it."""
        ...


class SyncRunner:
    """What is said to the server, and what is done with its answers. One round at a time."""

    def __init__(
        self,
        event_log: EventLog,
        account: Account,
        facts: DeviceFacts,
        document: DocumentSource,
        *,
        clock: Clock,
        options: SyncSettings,
        key: DeviceKey | None = None,
        erasures: ErasureGuard | None = None,
    ) -> None:
        self._log = event_log
        self._account = account
        self._registration = DeviceRegistrar(account, facts, key, timeout=options.timeout_seconds)
        self._document = document
        self._erasures = erasures
        self._seen_devices = set[str]()  # the devices that events came from
        self._listed_devices: frozenset[str] | None = (
            None  # those whose keys were asked for; None before the first time
        )
        self._clock = clock
        self._timeout = options.timeout_seconds
        self._push_events = options.push_events
        self._last_report: dict[str, int] = {}  # what the server was last told of the quarantine
        self.pull_progress = PullProgressTracker()
        self._stored_hash: str | None = None  # hash of the document the server has stored, or refused for good
        self._base_hash: str | None = None  # hash of what stands there that ours may go over: taken in, or our own

    @property
    def replica_id(self) -> str:
        """Under which id this database speaks; it changes when the database turns out to be a copy."""
        return self._registration.replica_id

    async def is_reachable(self) -> bool:
        """Whether a connection to the server can be made."""
        return await self._account.cloud.is_reachable()

    def reset_registration(self) -> None:
        """An administrator may have removed the device; registering tells."""
        self._registration.reset()

    async def run_round(self) -> RoundResult:
        """One round. Raises a CloudError or StorageError; what was acknowledged and taken in by then stands."""
        try:
            done = await self._run_until_caught_up()
            await self._report_quarantine()
            await self._refresh_device_keys()
            if not self._account.is_logged_in:  # whoever asks now is to hear nothing from that account
                raise LoginRequired("the login ended while the server was asked")
            return done
        finally:
            self.pull_progress.end()

    async def _run_until_caught_up(self) -> RoundResult:
        await _release_quota_limited(self._log, self._clock)
        self._log.database.check_writable()  # or a refreshed token, an acknowledgement would be lost
        done = RoundResult()
        resets = forks = 0
        among: str | None = None  # the device whose events go out; None: whichever id they were recorded under
        stands = set[tuple[str | int | None, ...]]()
        for _ in range(MAX_REQUESTS):
            session = await self._account.session()
            waiting = await self._read_pending(among)
            events = next_batch(waiting.events, most_events=self._push_events)
            stand = (waiting.cursor.epoch, waiting.cursor.seq, events[0].event_id if events else None, self._base_hash)
            if stand in stands or resets > MAX_RESETS:
                break  # the last answer brought nothing new, so the next one will not either
            stands.add(stand)
            device_id = events[0].device_id if events else self._log.device_id
            try:
                answer, verdict, did = await self._exchange_once(session, device_id, events, waiting.cursor)
            except DeviceConflict:
                if device_id == self._log.device_id:
                    raise
                among = self._log.device_id
                continue
            except DeviceForked:
                forks += 1
                if forks > MAX_FORKS:
                    raise
                await self._fork_replica()
                stands.clear()
                continue
            self.pull_progress.advance(waiting.cursor, verdict)
            resets += verdict.reset
            done = done.plus(did)
            owed = device_id == self._log.device_id and await self._must_resend_document(session, answer)
            if verdict.caught_up and not owed and not await self._has_pending(among):
                return done
        raise CloudUnavailable("the server's answers lead nowhere")

    async def _read_pending(self, only_device: str | None) -> replication_store.PendingBatch:
        look = partial(replication_store.pending_batch, most_events=self._push_events, device_id=only_device)
        return await self._log.database.read(look)

    async def _has_pending(self, only_device: str | None) -> bool:
        """Whether something is left to send. Raises DeviceConflict where all that is left bears a former id."""
        if (await self._log.outbox()).pending == 0:
            return False
        if only_device is None or (await self._read_pending(only_device)).events:
            return True
        raise DeviceConflict("what was recorded under a former device id waits: another installation speaks for it")

    async def _exchange_once(
        self, session: AuthSession, device_id: str, events: tuple[Event, ...], cursor: RemoteCursor
    ) -> tuple[SyncAnswer, PageVerdict, RoundResult]:
        """One request, and what is done with its answer."""
        own = device_id == self._log.device_id
        await self._registration.ensure_registered(session, device_id, own=own, is_new=cursor.epoch is None)
        answer, refused = await self._push(session, device_id, events, cursor)
        verdict = check_page(cursor, answer)
        new = await self._apply_answer(answer, verdict)
        return answer, verdict, RoundResult(len(answer.acked), new, refused)

    async def _report_quarantine(self) -> None:
        """Tell the administrators what was set aside, when that has changed."""
        refused = count_by_code(await self._log.quarantine.list_refused())
        if refused != self._last_report:
            session, device_id = await self._account.session(), self._log.device_id
            await self._registration.ensure_registered(session, device_id, own=True)
            await self._call_with_token(
                session, lambda good: self._account.cloud.report_refusals(good, device_id, refused)
            )
            self._last_report = refused

    async def _refresh_device_keys(self) -> None:
        """Note the keys of the account's devices: once a process, and when a device is heard that was not listed."""
        if self._erasures is None or (self._listed_devices is not None and self._seen_devices <= self._listed_devices):
            return
        try:
            rows = await self._call_with_token(await self._account.session(), self._account.cloud.list_devices)
        except CloudUnavailable as error:  # the next round asks again; a key is only known later
            log.debug("the keys of the devices are not known yet (%s)", error.kind)
            return
        await self._erasures.record_device_keys(rows)
        self._listed_devices = frozenset(self._seen_devices | {row.device_id for row in rows})

    async def _fork_replica(self) -> None:
        """Number anew what was not sent; the server hears whom we replace. Twice in one round is no accident."""
        new = await self._log.database.write(partial(replication_store.fork_replica, clock=self._clock))
        log.warning("replica %s was copied or restored; it goes on as %s", self._registration.replica_id, new)
        await self._registration.become_replica(new)

    async def _apply_answer(self, answer: SyncAnswer, verdict: PageVerdict) -> int:
        judge = None if self._erasures is None else await self._erasures.review_for(answer.events)
        own = self._log.device_id
        take_in = partial(
            replication_store.apply_answer,
            answer=answer,
            verdict=verdict,
            clock=self._clock,
            device_id=own,
            review=judge,
        )
        self._seen_devices |= {event.device_id for event in answer.events}
        try:
            new = await self._log.database.write(take_in)
        except DeviceForked:  # what the server has keeps the number it has there
            await self._log.database.write(partial(replication_store.acknowledge, answer=answer))
            raise
        if new:
            self._log.changed.increment()
        return new

    async def _push(
        self, session: AuthSession, device_id: str, events: tuple[Event, ...], cursor: RemoteCursor
    ) -> tuple[SyncAnswer, int]:
        """One exchange; a refused batch is taken apart first. Returns the last answer and how many were set aside."""
        snapshot = await self._document.snapshot() if device_id == self._log.device_id else None
        if snapshot is not None and snapshot.content_sha256 == self._stored_hash:
            snapshot = None
        if snapshot is not None:
            snapshot = replace(snapshot, base_sha256=self._base_hash)
        if self._erasures is not None:
            events = await self._erasures.sign_requests(events)
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
            answer = await self._send_request(session, request)
        except Rejected as error:
            if not events and snapshot is None:
                raise
            return await self._retry_without_refused(session, request, cursor, error)
        if snapshot is not None and answer.snapshot not in {FOREIGN_DOCUMENT, STALE_DOCUMENT}:
            self._stored_hash = self._base_hash = snapshot.content_sha256
            await self._document.mark_stored()
        return answer, 0

    async def _must_resend_document(self, session: AuthSession, answer: SyncAnswer) -> bool:
        """Read what stands in the place of our document and take in another program's. Whether ours is owed now."""
        if answer.snapshot not in {FOREIGN_DOCUMENT, STALE_DOCUMENT}:
            return False
        stored = await self._call_with_token(
            session, lambda good: self._account.cloud.read_document(good, self._log.device_id)
        )
        is_foreign = stored is not None and stored.replica_id is None
        if stored is None or (is_foreign and not await self._document.import_foreign(stored.content)):
            return False
        owed = stored.content_sha256 != self._base_hash
        if owed:
            self._base_hash, self._stored_hash = stored.content_sha256, None
        return owed

    async def _retry_without_refused(
        self, session: AuthSession, request: SyncRequest, cursor: RemoteCursor, error: Rejected
    ) -> tuple[SyncAnswer, int]:
        """Handle a refused `_append_events`. Raises Rejected if the server refuses an empty request as well."""
        answer = await self._send_request(session, replace(request, events=(), snapshot=None))
        if request.events:
            refused = await self._bisect_batch(session, replace(request, snapshot=None))
            answer, _ = await self._push(session, request.device_id, (), cursor)  # the document is not left behind
            return answer, refused
        if request.snapshot is not None:
            self._stored_hash = request.snapshot.content_sha256
            log.warning("the server refuses the document (%s); it is sent again when it has changed", error.code)
        return answer, 0

    async def _bisect_batch(self, session: AuthSession, request: SyncRequest) -> int:
        """Push a refused batch part by part; what is refused alone goes into quarantine. Returns how many did.

        The whole batch comes first, now without the snapshot: that may have been the culprit.
        """
        parts = [request.events]
        refused = 0
        while parts:
            part = parts.pop()
            try:
                answer = await self._send_request(session, replace(request, events=part))
            except Rejected as error:
                if len(part) == 1:
                    await self._quarantine(part[0], error)
                    refused += 1
                else:
                    parts.extend(reversed(split_batch(part)))
            else:
                await self._log.database.write(partial(replication_store.acknowledge, answer=answer))
        return refused

    async def _quarantine(self, event: Event, error: Rejected) -> None:
        refusal = RefusedEvent(event.event_id, error.code, error.message, timestamp(self._clock.now()))
        await self._log.database.write(lambda connection: replication_store.quarantine_events(connection, [refusal]))
        log.warning("the server refuses event %s for good (%s)", event.event_id, error.code)

    async def _send_request(self, session: AuthSession, request: SyncRequest) -> SyncAnswer:
        return await self._call_with_token(session, lambda good: self._account.cloud.sync(good, request))

    async def _call_with_token(self, session: AuthSession, call: Callable[[AuthSession], Awaitable[T]]) -> T:
        return await with_fresh_token(self._account, call, timeout=self._timeout, session=session)


async def _release_quota_limited(event_log: EventLog, clock: Clock) -> None:
    """Send again what a limit of the day has set aside."""
    before = timestamp(clock.now() - QUOTA_RETRY_AFTER)
    refusals = await event_log.quarantine.list_refused()
    waits = [one.event_id for one in refusals if one.code == QUOTA_CODE and one.noticed_at < before]
    if waits:
        await event_log.quarantine.release(waits, "pending")
