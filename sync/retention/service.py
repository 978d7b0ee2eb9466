"""Archives what is old, then forgets it on this device.

Decisions
    First the archive is written, read back and flushed, its place with it; then the log says what goes
    (`payload_expired`, which never leaves this device); the document's own forgetting carries that out as it does a
    wish of a person's, so index, files and versions hear of it in the same way, and a kill between any two steps loses
    nothing. Killed before the log says it, the next archive holds the same events again.
    What was planned is looked at once more in the transaction that lets it go.
    The archives are files of the user's: nothing here ever deletes one, and `import` takes them in elsewhere. What is
    to be forgotten leaves them too (`archives.py`), also what was wished while one of them was being written. What is
    corrected stays in them corrected; the log has it again, as on every device, until the next archive takes it along
    with its correction. Of what never left this device the log keeps nothing to correct: that changes there alone.
    An archive that cannot be opened or written anew stops no other and no wish: the mark of what is carried out stays,
    and the next look tries again. Only nothing more is archived until then: the log still holds what it has to follow.
    One process at a time writes an archive anew, or reads all of them: what the other has just taken out would be back.
    Without a cloud in the settings nothing waits for one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from sync.archive.archive_file import EVENTS_PER_PART, build_events_part, build_info_part, write_archive
from sync.archive.container import INFO_PART, ArchiveWriter
from sync.archive.partial_files import remove_partial_files
from sync.clock import Clock, to_unix_ms
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

INTERVAL: Final = 86_400.0  # seconds
LOCK_TIMEOUT: Final = 600.0  # seconds for another process that writes large archives anew

OnProgress = Callable[[int, int], None]  # done, of in all
PayloadsById = Mapping[str, Mapping[str, Any]]  # by the ids of events

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetentionConfig:
    """What of the settings decides here. `archives`: the folder of this profile's; `lock`: of who rewrites them."""

    archive_folder: Path
    lock_file: Path
    days: int
    megabytes: int
    has_shared_document: bool
    has_cloud: bool


class RetentionService:
    """One profile's retention."""

    def __init__(self, events: EventLog, intake: DraftBuilder, config: RetentionConfig, *, clock: Clock) -> None:
        self._log = events
        self._intake = intake
        self._config = config
        self._clock = clock
        self._archive_lock = ProcessLock(
            config.lock_file, timeout=LOCK_TIMEOUT, timeout_error=_busy_error
        )  # to write archives anew

    def build_rules(self, days: int | None, megabytes: int | None) -> RetentionRules:
        """What is asked for, or the settings'. InvalidInput where that is out of the calendar."""
        days = self._config.days if days is None else days
        megabytes = self._config.megabytes if megabytes is None else megabytes
        try:
            before = None if days < 0 else to_unix_ms(self._clock.now() - timedelta(days=days))
        except OverflowError as error:
            raise InvalidInput("so many days are out of the calendar", field="days") from error
        return RetentionRules(before, None if megabytes < 0 else megabytes * MEGABYTE)

    async def plan(self, rules: RetentionRules) -> RetentionPlan:
        """What would go; changes nothing."""
        plan = RetentionPlan(rules, *await self._log.database.read(store.count_events_and_bytes))
        after = 0
        before_ms = rules.before_ms if rules.most_bytes is None else None
        while not plan.is_complete:
            reading = partial(store.read_candidates, after=after, before_ms=before_ms, limit=EVENTS_PER_PART)
            found, standing = await self._log.database.read(partial(self._with_constraints, reading=reading))
            if not found:
                break
            for old in found:
                plan.consider(old, standing)
            after = found[-1].event.position
        return plan

    async def apply(self, rules: RetentionRules, on_progress: OnProgress) -> RetentionResult:
        """Archive what is due, then let the log say that it goes here. Raises StorageError; nothing went then."""
        carried_out = await self._log.watermark(ERASURE.name)  # what was wished behind it, the log may still hold
        plan = await self.plan(rules)
        if not plan.positions:
            return RetentionResult(plan)
        name = f"{self._clock.now():%Y-%m-%dT%H%M%S}-{self._clock.random_bytes(4).hex()}.xbm"
        path = self._config.archive_folder / name
        await self._apply_all_retractions()  # while the log still holds the corrections that it is about to let go
        await asyncio.to_thread(make_folders, self._config.archive_folder)
        positions = sorted(plan.positions)
        filed = await write_archive(path, None, partial(self._fill, positions=positions))
        await self._apply_all_retractions(since=carried_out)
        forgotten = 0
        for start in range(0, len(positions), IDS_PER_REQUEST):
            some = positions[start : start + IDS_PER_REQUEST]
            forgotten += await self._log.database.write(partial(self._expire, positions=some))
            on_progress(start + len(some), len(positions))
        self._log.changed.increment()
        log.info("%d events were archived and go here", forgotten)
        return RetentionResult(plan, str(path), filed.sha256, forgotten)

    async def run_daily(self, apply_erasures: Callable[[], Awaitable[None]]) -> None:
        """Once a day what the settings say, until cancelled."""
        while True:
            done = await self.apply(self.build_rules(None, None), lambda _done, _total: None)
            if done.forgotten:
                await apply_erasures()
            await asyncio.sleep(INTERVAL)

    async def apply_retractions(self, corrected_payloads: PayloadsById | None = None) -> int:
        """Take out of the archives, or correct, what the log wished since the last look; how many events.

        `corrected`: payloads that events have from now on of which the log does not say so. What killed writers left
        half made goes whole. An archive that cannot be opened is told. Raises StorageError where one cannot be written
        anew, after all the others.
        """
        taken, _ = await self._apply_retractions(corrected_payloads or {}, None)
        return taken

    async def _apply_all_retractions(self, *, since: int | None = None) -> None:
        """Raises StorageError also where an archive cannot be opened. `since`: look again at all wishes behind it."""
        _, unopened = await self._apply_retractions({}, since)
        if unopened:
            raise unopened[0]

    async def _apply_retractions(
        self, corrected_payloads: PayloadsById, since: int | None
    ) -> tuple[int, list[StorageError]]:
        """How many events, and why archives cannot be opened."""
        await asyncio.to_thread(remove_partial_files, self._config.archive_folder)
        paths = await asyncio.to_thread(list_archives, self._config.archive_folder)
        if not paths:
            return 0, []
        async with self._archive_lock.hold():
            mark = await self._log.watermark(ARCHIVE_RETRACTIONS.name)
            after = mark if since is None else min(mark, since)
            wished, position = await self._log.database.read(partial(store.read_retractions, after=after))
            left_of = partial(_effective_event, wished, corrected_payloads)
            taken, unopened, unwritten = await _rewrite_all(
                paths if wished.erased_ids or corrected_payloads else [], left_of
            )
            if position > mark and not unopened and not unwritten:
                await self._log.database.write(
                    lambda connection: log_store.set_watermark(
                        connection, ARCHIVE_RETRACTIONS.name, position, self._clock
                    )
                )
        if unwritten:
            raise unwritten[0]
        return taken, unopened

    async def visit_archived(self, visitor: Callable[[Event], None]) -> tuple[str, ...]:
        """Show every archived event, as it is by now, in a thread; the names of the archives that cannot be read."""
        paths = await asyncio.to_thread(list_archives, self._config.archive_folder)
        if not paths:
            return ()
        unread: UnreadableArchives = {}
        async with self._archive_lock.hold():
            mark = await self._log.watermark(ARCHIVE_RETRACTIONS.name)
            wished, _ = await self._log.database.read(partial(store.read_retractions, after=mark))
            taken = await self._log.database.read(last_erasure_types)

            def visiting(path: Path) -> None:
                for left in map(wished.effective_event, read_archived_events(path, unread)):
                    if left.payload and taken.get(left.event_id) != PAYLOAD_FORGOTTEN:
                        visitor(left)

            for path in paths:
                await asyncio.to_thread(visiting, path)
        return tuple(unread)

    async def archived_corrections_of(self, event_ids: Collection[str]) -> list[str]:
        """The archived corrections of these events: they hold the same words, and our log knows no more of whom."""
        found: list[str] = []

        def looking(event: Event) -> None:
            told = correction_of(event)
            if told is not None and told[0] in event_ids:
                found.append(event.event_id)

        await self.visit_archived(looking)
        return found

    async def find_archived(self, selection: ErasureSelection) -> list[Event]:
        """Every event in the archives that a choice means: the log has its words no more."""
        found: dict[str, Event] = {}

        def looking(event: Event) -> None:
            if selection.selects(event) and selection.is_in_period(event):
                found[event.event_id] = event

        await self.visit_archived(looking)
        return list(found.values())

    async def _fill(self, writing: ArchiveWriter, *, positions: Sequence[int]) -> None:
        await asyncio.to_thread(writing.add, INFO_PART, await build_info_part(self._log, positions[-1], self._clock))
        for number, start in enumerate(range(0, len(positions), EVENTS_PER_PART), 1):
            reading = partial(store.read_candidates_at, positions=positions[start : start + EVENTS_PER_PART])
            found = [old.event for old in await self._log.database.read(reading)]
            await asyncio.to_thread(writing.add, *build_events_part(number, found))

    def _expire(self, connection: Transaction, *, positions: Sequence[int]) -> int:
        found, standing = self._with_constraints(connection, partial(store.read_candidates_at, positions=positions))
        going = [old.event.event_id for old in found if standing.hold_reason(old) is None]
        if going:
            self._log.append_in(connection, [self._intake.build_expiry(going)])
        return len(going)

    def _with_constraints(
        self, connection: Transaction, reading: Callable[[Transaction], list[RetentionCandidate]]
    ) -> tuple[list[RetentionCandidate], RetentionConstraints]:
        """Events, and what stands against forgetting them, as one transaction sees both."""
        corrections: dict[str, list[RetentionCandidate]] = {}
        for old in store.read_correction_candidates(connection):
            told = correction_of(old.event)
            if told is not None:
                corrections.setdefault(told[0], []).append(self._ignoring_missing_cloud(old))
        standing = RetentionConstraints(
            device_id=self._log.device_id,
            shown_line_ids=document_store.shown_entry_ids(connection),
            has_shared_document=self._config.has_shared_document,
            consumer_offsets=store.read_consumer_offsets(connection),
            corrections=corrections,
        )
        return [self._ignoring_missing_cloud(old) for old in reading(connection)], standing

    def _ignoring_missing_cloud(self, candidate: RetentionCandidate) -> RetentionCandidate:
        return candidate if self._config.has_cloud else replace(candidate, is_undelivered=False)


async def _rewrite_all(
    paths: Sequence[Path], effective_event: EffectiveEvent
) -> tuple[int, list[StorageError], list[StorageError]]:
    """How many events go or change, why archives cannot be opened, and why others cannot be written."""
    taken, unread, unwritten = 0, UnreadableArchives(), list[StorageError]()
    for path in paths:
        try:
            taken += await rewrite(path, effective_event, unread)
        except StorageError as error:
            log.warning("the archive %s could not be written anew: %s", path.name, error.message)
            unwritten.append(error)
    return taken, [error for error in unread.values() if isinstance(error, StorageError)], unwritten


def _busy_error() -> StorageError:
    return StorageError("another process has been at work on the archives for too long")


def _effective_event(retractions: Retractions, corrected_payloads: PayloadsById, event: Event) -> Event:
    left = retractions.effective_event(event)
    return (
        replace(left, payload=corrected_payloads[event.event_id])
        if left.payload and event.event_id in corrected_payloads
        else left
    )
