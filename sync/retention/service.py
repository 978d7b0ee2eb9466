"""Archive old events, then expire them on this device.

The archive is complete and flushed before the log names the events in a `payload_expired`, so a kill between any two
steps loses nothing. Archives are never deleted, but erasures apply to them too. See docs/decisions/013-retention.md.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from sync.archive.archive_file import EVENTS_PER_PART, build_events_part, build_info_part, write_archive
from sync.archive.container import INFO_PART, ArchiveWriter
from sync.archive.partial_files import remove_partial_files
from sync.clock import Clock, to_unix_ms
from sync.cloud.auth.event_signer import EventSigner
from sync.db.engine import Transaction
from sync.document import store as document_store
from sync.document.erasure.erasure import IDS_PER_REQUEST, last_erasure_types
from sync.document.erasure.selection import ErasureSelection
from sync.errors import InvalidInput, StorageError
from sync.log import store as log_store
from sync.log.event_types import PAYLOAD_FORGOTTEN
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog
from sync.log.model import Event
from sync.log.projections.registry import ARCHIVE_RETRACTIONS, ERASURE
from sync.log.retractions import Retractions, correction_of
from sync.retention import store
from sync.retention.archives import (
    EffectiveEvent,
    UnreadableArchives,
    list_archives,
    make_folders,
    read_archived_events,
    rewrite,
)
from sync.retention.policy import (
    MEGABYTE,
    RetentionCandidate,
    RetentionConstraints,
    RetentionPlan,
    RetentionResult,
    RetentionRules,
)
from sync.system.process_lock import ProcessLock
from sync.understanding.projection import FactProjection

INTERVAL: Final = 86_400.0  # seconds
LOCK_TIMEOUT: Final = 600.0  # seconds for another process that rewrites large archives

OnProgress = Callable[[int, int], None]  # done, total
PayloadsById = Mapping[str, Mapping[str, Any]]  # by event id

log = logging.getLogger(__name__)


class RetentionConfig(msgspec.Struct, frozen=True):
    """The settings of retention. A process that rewrites the archives of the profile holds `lock_file`."""

    archive_folder: Path
    lock_file: Path
    days: int
    megabytes: int
    has_cloud: bool


class RetentionService:
    """One profile's retention."""

    def __init__(
        self, events: EventLog, intake: DraftBuilder, config: RetentionConfig, signer: EventSigner, *, clock: Clock
    ) -> None:
        self._log = events
        self._intake, self._signer = intake, signer
        self._config = config
        self._clock = clock
        self._facts = FactProjection(lambda: events.own_device_ids)
        self._archive_lock = ProcessLock(config.lock_file, timeout=LOCK_TIMEOUT, timeout_error=_busy_error)

    def build_rules(self, days: int | None, megabytes: int | None) -> RetentionRules:
        """Return the given rules, or those of the settings. Raises InvalidInput if they are out of the calendar."""
        days = self._config.days if days is None else days
        megabytes = self._config.megabytes if megabytes is None else megabytes
        try:
            before = None if days < 0 else to_unix_ms(self._clock.now() - timedelta(days=days))
        except OverflowError as error:
            raise InvalidInput("so many days are out of the calendar", field="days") from error
        return RetentionRules(before, None if megabytes < 0 else megabytes * MEGABYTE)

    async def plan(self, rules: RetentionRules) -> RetentionPlan:
        """Return what would expire; changes nothing."""
        plan = RetentionPlan(rules, *await self._log.database.read(store.count_events_and_bytes))
        after = 0
        before_ms = rules.before_ms if rules.most_bytes is None else None
        while not plan.is_complete:
            read = partial(store.read_candidates, after=after, before_ms=before_ms, limit=EVENTS_PER_PART)
            candidates, constraints = await self._log.database.read(self._with_constraints, read=read)
            if not candidates:
                break
            for candidate in candidates:
                plan.consider(candidate, constraints)
            after = candidates[-1].event.position
        return plan

    async def apply(self, rules: RetentionRules, on_progress: OnProgress) -> RetentionResult:
        """Archive what is due, then expire it. Raises StorageError; then nothing expired."""
        erased_until = await self._log.watermark(ERASURE.name)  # the log may still hold what later requests erase
        plan = await self.plan(rules)
        if not plan.positions:
            return RetentionResult(plan)
        name = f"{self._clock.now():%Y-%m-%dT%H%M%S}-{self._clock.random_bytes(4).hex()}.xbm"
        path = self._config.archive_folder / name
        await self._apply_all_retractions()  # while the log still holds the corrections
        await asyncio.to_thread(make_folders, self._config.archive_folder)
        positions = sorted(plan.positions)
        written = await write_archive(path, None, partial(self._fill, positions=positions), signer=self._signer)
        await self._apply_all_retractions(since=erased_until)
        forgotten = 0
        for start in range(0, len(positions), IDS_PER_REQUEST):
            batch = positions[start : start + IDS_PER_REQUEST]
            forgotten += await self._log.database.write(self._expire, positions=batch)
            on_progress(start + len(batch), len(positions))
        self._log.changed.increment()
        log.info("%d events were archived and go here", forgotten)
        return RetentionResult(plan, str(path), written.sha256, forgotten)

    async def run_daily(self, apply_erasures: Callable[[], Awaitable[None]]) -> None:
        """Apply the settings once a day, until cancelled."""
        while True:
            result = await self.apply(self.build_rules(None, None), lambda _done, _total: None)
            if result.forgotten:
                await apply_erasures()
            await asyncio.sleep(INTERVAL)

    async def apply_retractions(self, corrected_payloads: PayloadsById | None = None) -> int:
        """Apply the erasures and corrections since the last run to the archives; return how many events changed.

        `corrected_payloads`: corrections that the log does not hold. Partial files of killed writers are removed. An
        archive that cannot be opened is logged. Raises StorageError if one cannot be rewritten, after all others.
        """
        changed, _ = await self._apply_retractions(corrected_payloads or {}, None)
        return changed

    async def _apply_all_retractions(self, *, since: int | None = None) -> None:
        """Apply all requests after `since` again. Raises StorageError also if an archive cannot be opened."""
        _, unopened = await self._apply_retractions({}, since)
        if unopened:
            raise unopened[0]

    async def _apply_retractions(
        self, corrected_payloads: PayloadsById, since: int | None
    ) -> tuple[int, list[StorageError]]:
        """Return how many events changed, and the errors of archives that cannot be opened."""
        await asyncio.to_thread(remove_partial_files, self._config.archive_folder)
        paths = await asyncio.to_thread(list_archives, self._config.archive_folder)
        if not paths:
            return 0, []
        async with self._archive_lock.hold():
            offset = await self._log.watermark(ARCHIVE_RETRACTIONS.name)
            after = offset if since is None else min(offset, since)
            retractions, position = await self._log.database.read(store.read_retractions, after=after)
            effective_event = partial(_effective_event, retractions, corrected_payloads)
            changed, unopened, unwritten = await _rewrite_all(
                paths if retractions.erased_ids or corrected_payloads else [], effective_event, self._signer
            )
            if position > offset and not unopened and not unwritten:
                await self._log.database.write(log_store.set_watermark, ARCHIVE_RETRACTIONS.name, position, self._clock)
        if unwritten:
            raise unwritten[0]
        return changed, unopened

    async def visit_archived(self, visitor: Callable[[Event], None]) -> tuple[str, ...]:
        """Call `visitor` in a thread with every archived event after retractions; return the unreadable archives."""
        paths = await asyncio.to_thread(list_archives, self._config.archive_folder)
        if not paths:
            return ()
        unreadable: UnreadableArchives = {}
        async with self._archive_lock.hold():
            offset = await self._log.watermark(ARCHIVE_RETRACTIONS.name)
            retractions, _ = await self._log.database.read(store.read_retractions, after=offset)
            erased_by_type = await self._log.database.read(last_erasure_types)

            def visit(path: Path) -> None:
                for event in map(retractions.effective_event, read_archived_events(path, unreadable)):
                    if event.payload and erased_by_type.get(event.event_id) != PAYLOAD_FORGOTTEN:
                        visitor(event)

            for path in paths:
                await asyncio.to_thread(visit, path)
        return tuple(unreadable)

    async def archived_corrections_of(self, event_ids: Collection[str]) -> list[str]:
        """Return the ids of the archived corrections of these events, which the log no longer holds."""
        correction_ids: list[str] = []

        def collect(event: Event) -> None:
            correction = correction_of(event)
            if correction is not None and correction[0] in event_ids:
                correction_ids.append(event.event_id)

        await self.visit_archived(collect)
        return correction_ids

    async def find_archived(self, selection: ErasureSelection) -> list[Event]:
        """Return the archived events that a selection selects."""
        selected: dict[str, Event] = {}

        def collect(event: Event) -> None:
            if selection.selects(event) and selection.is_in_period(event):
                selected[event.event_id] = event

        await self.visit_archived(collect)
        return list(selected.values())

    async def _fill(self, writer: ArchiveWriter, *, positions: Sequence[int]) -> None:
        await asyncio.to_thread(writer.add, INFO_PART, build_info_part(self._log, positions[-1], self._clock))
        for number, start in enumerate(range(0, len(positions), EVENTS_PER_PART), 1):
            read = partial(store.read_candidates_at, positions=positions[start : start + EVENTS_PER_PART])
            part = [candidate.event for candidate in await self._log.database.read(read)]
            await asyncio.to_thread(writer.add, *build_events_part(number, part))

    def _expire(self, connection: Transaction, *, positions: Sequence[int]) -> int:
        read = partial(store.read_candidates_at, positions=positions)
        candidates, constraints = self._with_constraints(connection, read)
        expired_ids = [one.event.event_id for one in candidates if constraints.hold_reason(one) is None]
        if expired_ids:
            self._log.append_in(connection, [self._intake.build_expiry(expired_ids)])
        return len(expired_ids)

    def _with_constraints(
        self, connection: Transaction, read: Callable[[Transaction], list[RetentionCandidate]]
    ) -> tuple[list[RetentionCandidate], RetentionConstraints]:
        """Return candidates and the constraints on them, as one transaction sees both."""
        corrections: dict[str, list[RetentionCandidate]] = {}
        for candidate in store.read_correction_candidates(connection):
            correction = correction_of(candidate.event)
            if correction is not None:
                corrections.setdefault(correction[0], []).append(self._ignoring_missing_cloud(candidate))
        constraints = RetentionConstraints(
            device_id=self._log.device_id,
            shown_line_ids=document_store.shown_entry_ids(connection),
            consumer_offsets=store.read_consumer_offsets(connection),
            corrections=corrections,
            kept_fact_ids=self._facts.read(connection).kept_ids,
        )
        return [self._ignoring_missing_cloud(candidate) for candidate in read(connection)], constraints

    def _ignoring_missing_cloud(self, candidate: RetentionCandidate) -> RetentionCandidate:
        return candidate if self._config.has_cloud else replace(candidate, is_undelivered=False)


async def _rewrite_all(
    paths: Sequence[Path], effective_event: EffectiveEvent, signer: EventSigner
) -> tuple[int, list[StorageError], list[StorageError]]:
    """Return how many events changed, and the errors of archives that cannot be opened or rewritten."""
    changed, unreadable, unwritten = 0, UnreadableArchives(), list[StorageError]()
    for path in paths:
        try:
            changed += await rewrite(path, effective_event, unreadable, signer)
        except StorageError as error:
            log.warning("the archive %s could not be rewritten: %s", path.name, error.message)
            unwritten.append(error)
    return changed, [error for error in unreadable.values() if isinstance(error, StorageError)], unwritten


def _busy_error() -> StorageError:
    return StorageError("another process has been at work on the archives for too long")


def _effective_event(retractions: Retractions, corrected_payloads: PayloadsById, event: Event) -> Event:
    effective = retractions.effective_event(event)
    if effective.payload and event.event_id in corrected_payloads:
        return replace(effective, payload=corrected_payloads[event.event_id])
    return effective
