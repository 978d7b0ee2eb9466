"""Run one sync round: register, push, acknowledge and pull until both sides are equal.

Whatever was not acknowledged stays pending, and the server ignores ids that it has, so every step can be repeated.
A database that turns out to be a copy (a cloned home, a restored backup) becomes a new replica: its unsent events
keep their ids and get new numbers.
"""

import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Final, TypeVar

from msgspec.structs import replace

from sync.clock import Clock, timestamp
from sync.cloud import replication_store
from sync.cloud.auth.account import Account
from sync.cloud.auth.device_key import DeviceKey
from sync.cloud.auth.device_registration import DeviceRegistrar
from sync.cloud.auth.token_retry import with_fresh_token
from sync.cloud.auth_port import AuthSession
from sync.cloud.port import QUOTA_CODE, DeviceFacts, SyncAnswer, SyncRequest
from sync.cloud.replication.active_devices import ActiveDevices
from sync.cloud.replication.document_upload import DocumentSource, DocumentUpload, is_displaced
from sync.cloud.replication.erasure_guard import ErasureGuard
from sync.cloud.replication.late_erasures import repeat_late_erasures
from sync.cloud.replication.pull_progress import PullProgressTracker
from sync.cloud.status import RoundJson
from sync.cloud.sync_decisions import PageVerdict, check_page, count_by_code, next_batch, split_batch
from sync.db.engine import Transaction
from sync.errors import CloudUnavailable, DeviceConflict, DeviceForked, LoginRequired, Rejected
from sync.log import store as log_store
from sync.log.log import EventLog
from sync.log.model import Event, RefusedEvent, RemoteCursor
from sync.settings.sections import SyncSettings

PULL_EVENTS: Final = 1_000  # the server's own maximum for one answer; it also stops at 1 MiB
QUOTA_RETRY_AFTER: Final = timedelta(hours=1)
# bounds of one round, against a server that never finishes it
MAX_REQUESTS: Final = 10_000
MAX_FORKS: Final = 1  # a new replica's numbers are unused, so a second fork means something else
MAX_RESETS: Final = 2

T = TypeVar("T")

log = logging.getLogger(__name__)


class SyncRunner:
    """Exchanges events and the document with the server, one round at a time."""

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
        self.document = DocumentUpload(document, clock)
        self.others = ActiveDevices(event_log.device_id, clock)
        self.poll_seconds: float | None = None  # what the server asks for
        self._erasures = erasures
        self._clock = clock
        self._timeout = options.timeout_seconds
        self._push_events = options.push_events
        self._last_report: dict[str, int] = {}  # the last report of the quarantine, events by code
        self.pull_progress = PullProgressTracker()

    @property
    def replica_id(self) -> str:
        """The id of this database on the server. It changes if the database turns out to be a copy."""
        return self._registration.replica_id

    async def is_reachable(self) -> bool:
        return await self._account.cloud.is_reachable()

    def reset_registration(self) -> None:
        """Register again in the next round: an administrator may have removed the device."""
        self._registration.reset()

    async def run_round(self, *, with_document: bool = True) -> RoundJson:
        """Run one round. Raises a CloudError or StorageError; what it has committed by then stays.

        `with_document`: send the document also if it could wait.
        """
        self.document.at_once = with_document
        try:
            done = await self._run_until_caught_up()
            await self._report_quarantine()
            await self._refresh_device_keys()
            if not self._account.is_logged_in:  # the caller must not see data of that account
                raise LoginRequired("the login ended during the round")
            return done
        finally:
            self.pull_progress.end()

    async def _run_until_caught_up(self) -> RoundJson:
        await _release_quota_limited(self._log, self._clock)
        self._log.database.check_writable()  # or a refreshed token or an acknowledgement would be lost
        done, resets, forks = RoundJson(pushed=0, pulled=0, quarantined=0), 0, 0
        only_device: str | None = None  # send the events of this device id; None: of any former id too
        positions = set[tuple[str | int | None, ...]]()
        for _ in range(MAX_REQUESTS):
            session = await self._account.session()
            waiting, cursor = await self._read_pending(only_device)
            events = next_batch(waiting, most_events=self._push_events)
            position = (cursor.epoch, cursor.seq, *(one.event_id for one in events[:1]), self.document.base_hash)
            if position in positions or resets > MAX_RESETS:
                break  # the last answer brought nothing new, so the next one will not either
            positions.add(position)
            device_id = events[0].device_id if events else self._log.device_id
            try:
                answer, verdict, did = await self._exchange_once(session, device_id, events, cursor)
            except DeviceConflict:
                if device_id == self._log.device_id:
                    raise
                only_device = self._log.device_id
                continue
            except DeviceForked:
                forks += 1
                if forks > MAX_FORKS:
                    raise
                await self._fork_replica()
                positions.clear()
                continue
            self.pull_progress.advance(cursor, verdict)
            resets += verdict.reset
            done = done.plus(did)
            resend = device_id == self._log.device_id and await self._import_displaced(session, answer)
            if verdict.caught_up and (done.pushed or done.pulled):
                await repeat_late_erasures(self._log)
            if verdict.caught_up and not resend and not await self._has_pending(only_device):
                return done
        raise CloudUnavailable("the server's answers lead nowhere")

    async def _read_pending(self, only_device: str | None) -> replication_store.PendingBatch:
        read = partial(replication_store.pending_batch, most_events=self._push_events, device_id=only_device)
        return await self._log.database.read(read)

    async def _has_pending(self, only_device: str | None) -> bool:
        """Whether events are left to send. Raises DeviceConflict if all of them were recorded under a former id."""
        pending = (await self._log.outbox()).pending
        can_send = pending > 0 and bool((await self._read_pending(only_device)).events)  # or it waits to be forgotten
        if can_send or only_device is None or not pending:
            return can_send
        raise DeviceConflict("events of a former device id wait: another installation speaks for that id")

    async def _exchange_once(
        self, session: AuthSession, device_id: str, events: tuple[Event, ...], cursor: RemoteCursor
    ) -> tuple[SyncAnswer, PageVerdict, RoundJson]:
        """Make one request and apply its answer."""
        own = device_id == self._log.device_id
        await self._registration.ensure_registered(session, device_id, own=own, is_new=cursor.epoch is None)
        answer, refused = await self._push(session, device_id, events, cursor)
        verdict = check_page(cursor, answer)
        new = await self._apply_answer(answer, verdict)
        return answer, verdict, RoundJson(len(answer.acked), new, refused)

    async def _report_quarantine(self) -> None:
        """Report the quarantine to the administrators if it has changed."""
        refused = count_by_code(await self._log.quarantine.list_refused())
        if refused != self._last_report:
            session, device_id = await self._account.session(), self._log.device_id
            await self._registration.ensure_registered(session, device_id, own=True)
            await self._call_with_token(
                session, lambda good: self._account.cloud.report_refusals(good, device_id, refused)
            )
            self._last_report = refused

    async def _refresh_device_keys(self) -> None:
        """Record the account's devices: once a process, each day, and if an unlisted device sends events."""
        if not self.others.must_be_listed():
            return
        try:
            rows = await self._call_with_token(await self._account.session(), self._account.cloud.list_devices)
        except CloudUnavailable as error:  # the next round tries again
            log.debug("the keys of the devices are not known yet (%s)", error.kind)
            return
        if self._erasures is not None:
            await self._erasures.record_device_keys(rows)
        self.others.note_list(rows)

    async def _fork_replica(self) -> None:
        """Become a new replica: renumber the unsent events and tell the server which replica it replaces."""
        new = await self._log.database.write(replication_store.fork_replica, clock=self._clock)
        log.warning("replica %s was copied or restored; it goes on as %s", self._registration.replica_id, new)
        await self._registration.become_replica(new)

    async def _apply_answer(self, answer: SyncAnswer, verdict: PageVerdict) -> int:
        review = None if self._erasures is None else await self._erasures.review_for(answer.events)

        def apply(connection: Transaction) -> tuple[int, bool]:
            order = log_store.order_version(connection)
            new = replication_store.apply_answer(
                connection, answer, verdict, self._clock, device_id=self._log.device_id, review=review
            )
            is_reordered = not verdict.reset and log_store.order_version(connection) != order
            return new, new > 0 or is_reordered

        self.others.note_events(answer.events)
        self.poll_seconds = answer.poll_seconds
        try:
            new, has_changed = await self._log.database.write(apply)
        except DeviceForked:  # events that the server has keep their numbers
            await self._log.database.write(replication_store.acknowledge, answer=answer)
            raise
        if has_changed:  # also if only the order did: the server's time bounds a clock that is ahead
            self._log.changed.increment()
        return new

    async def _push(
        self, session: AuthSession, device_id: str, events: tuple[Event, ...], cursor: RemoteCursor
    ) -> tuple[SyncAnswer, int]:
        """Send events and the document. Return the last answer and how many events went into quarantine."""
        snapshot = await self.document.next_snapshot() if device_id == self._log.device_id else None
        if self._erasures is not None:
            events = await self._erasures.signer.sign(events)
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
        await self.document.on_answer(snapshot, answer.snapshot)
        return answer, 0

    async def _import_displaced(self, session: AuthSession, answer: SyncAnswer) -> bool:
        """Import the text that the server keeps in the place of our document. Return whether to send ours again."""
        if not is_displaced(answer.snapshot):
            return False
        stored = await self._call_with_token(
            session, lambda good: self._account.cloud.read_document(good, self._log.device_id)
        )
        return await self.document.import_stored(stored)

    async def _retry_without_refused(
        self, session: AuthSession, request: SyncRequest, cursor: RemoteCursor, error: Rejected
    ) -> tuple[SyncAnswer, int]:
        """Find out which part of a request is refused. Raises Rejected if the server refuses an empty one as well."""
        answer = await self._send_request(session, replace(request, events=(), snapshot=None))
        if request.events:
            refused = await self._bisect_batch(session, replace(request, snapshot=None))
            answer, _ = await self._push(session, request.device_id, (), cursor)  # now the document
            return answer, refused
        if request.snapshot is not None:
            self.document.on_refusal(request.snapshot, error.code)
        return answer, 0

    async def _bisect_batch(self, session: AuthSession, request: SyncRequest) -> int:
        """Push a refused batch by halves and quarantine each event that is refused alone. Return how many.

        The whole batch comes first, without the snapshot: the snapshot may have been refused.
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
                await self._log.database.write(replication_store.acknowledge, answer=answer)
        return refused

    async def _quarantine(self, event: Event, error: Rejected) -> None:
        refusal = RefusedEvent(event.event_id, error.code, error.message, timestamp(self._clock.now()))
        await self._log.database.write(replication_store.quarantine_events, [refusal])
        log.warning("the server refuses event %s for good (%s)", event.event_id, error.code)

    async def _send_request(self, session: AuthSession, request: SyncRequest) -> SyncAnswer:
        return await self._call_with_token(session, lambda good: self._account.cloud.sync(good, request))

    async def _call_with_token(self, session: AuthSession, call: Callable[[AuthSession], Awaitable[T]]) -> T:
        return await with_fresh_token(self._account, call, timeout=self._timeout, session=session)


async def _release_quota_limited(event_log: EventLog, clock: Clock) -> None:
    """Send events again that a daily limit has put into quarantine."""
    before = timestamp(clock.now() - QUOTA_RETRY_AFTER)
    refusals = await event_log.quarantine.list_refused()
    due = [one.event_id for one in refusals if one.code == QUOTA_CODE and one.noticed_at < before]
    if due:
        await event_log.quarantine.release(due, "pending")
