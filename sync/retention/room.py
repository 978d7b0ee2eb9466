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

from sqlalchemy import Connection

from sync.archive.container import ABOUT, Writing
from sync.archive.filing import IN_A_PART, about, events_part, write
from sync.archive.unfinished import remove_unfinished
from sync.clock import Clock, milliseconds
from sync.document import store as document_store
from sync.document.choosing import Choice
from sync.document.forgetting import FORGETTER, NAMED, taken_away
from sync.errors import InvalidInput, StorageError
from sync.files import make_private_folder, sync_folder, told
from sync.log import store as log_store
from sync.log.intake import Intake
from sync.log.log import Log
from sync.log.model import FORGOTTEN, Event
from sync.log.withdrawn import Withdrawn, correction_of
from sync.retention import store
from sync.retention.archives import LeftOf, Unread, archives, events_of, rewrite
from sync.retention.model import MEGABYTE, Applied, Old, Plan, Rules, Standing
from sync.turns import Turns

ONCE_A_DAY: Final = 86_400.0  # seconds
ARCHIVES: Final = "retention.archives"  # how far the log's wishes are carried out in the archives
PATIENCE: Final = 600.0  # seconds for another process that writes large archives anew

Heard = Callable[[int, int], None]  # done, of in all
Payloads = Mapping[str, Mapping[str, Any]]  # by the ids of events

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Household:
    """What of the settings decides here. `archives`: the folder of this profile's; `lock`: of who rewrites them."""

    archives: Path
    lock: Path
    days: int
    megabytes: int
    shared: bool
    cloud: bool


class Retention:
    """One profile's retention."""

    def __init__(self, events: Log, intake: Intake, household: Household, *, clock: Clock) -> None:
        self._log = events
        self._intake = intake
        self._household = household
        self._clock = clock
        self._turns = Turns(household.lock, patience=PATIENCE, late=_busy)  # to write archives anew

    def rules(self, days: int | None, megabytes: int | None) -> Rules:
        """What is asked for, or the settings'. InvalidInput where that is out of the calendar."""
        days = self._household.days if days is None else days
        megabytes = self._household.megabytes if megabytes is None else megabytes
        try:
            before = None if days < 0 else milliseconds(self._clock.now() - timedelta(days=days))
        except OverflowError as error:
            raise InvalidInput("so many days are out of the calendar", field="days") from error
        return Rules(before, None if megabytes < 0 else megabytes * MEGABYTE)

    async def plan(self, rules: Rules) -> Plan:
        """What would go; changes nothing."""
        plan = Plan(rules, *await self._log.database.read(store.total))
        after = 0
        before_ms = rules.before_ms if rules.most_bytes is None else None
        while not plan.is_done:
            reading = partial(store.candidates, after=after, before_ms=before_ms, limit=IN_A_PART)
            found, standing = await self._log.database.read(partial(self._with, reading=reading))
            if not found:
                break
            for old in found:
                plan.take(old, standing)
            after = found[-1].event.position
        return plan

    async def apply(self, rules: Rules, heard: Heard) -> Applied:
        """Archive what is due, then let the log say that it goes here. Raises StorageError; nothing went then."""
        carried_out = await self._log.watermark(FORGETTER)  # what was wished behind it, the log may still hold
        plan = await self.plan(rules)
        if not plan.positions:
            return Applied(plan)
        name = f"{self._clock.now():%Y-%m-%dT%H%M%S}-{self._clock.random_bytes(4).hex()}.xbm"
        path = self._household.archives / name
        await self._withdraw_everywhere()  # while the log still holds the corrections that it is about to let go
        await asyncio.to_thread(_make_folders, self._household.archives)
        positions = sorted(plan.positions)
        filed = await write(path, None, partial(self._fill, positions=positions))
        await self._withdraw_everywhere(since=carried_out)
        forgotten = 0
        for start in range(0, len(positions), NAMED):
            some = positions[start : start + NAMED]
            forgotten += await self._log.database.write(partial(self._expire, positions=some))
            heard(start + len(some), len(positions))
        self._log.changed.set()
        log.info("%d events were archived and go here", forgotten)
        return Applied(plan, str(path), filed.sha256, forgotten)

    async def keep(self, carry_out: Callable[[], Awaitable[None]]) -> None:
        """Once a day what the settings say, until cancelled."""
        while True:
            done = await self.apply(self.rules(None, None), lambda _done, _total: None)
            if done.forgotten:
                await carry_out()
            await asyncio.sleep(ONCE_A_DAY)

    async def withdraw(self, corrected: Payloads | None = None) -> int:
        """Take out of the archives, or correct, what the log wished since the last look; how many events.

        `corrected`: payloads that events have from now on of which the log does not say so. What killed writers left
        half made goes whole. An archive that cannot be opened is told. Raises StorageError where one cannot be written
        anew, after all the others.
        """
        taken, _ = await self._withdraw(corrected or {}, None)
        return taken

    async def _withdraw_everywhere(self, *, since: int | None = None) -> None:
        """Raises StorageError also where an archive cannot be opened. `since`: look again at all wishes behind it."""
        _, unopened = await self._withdraw({}, since)
        if unopened:
            raise unopened[0]

    async def _withdraw(self, corrected: Payloads, since: int | None) -> tuple[int, list[StorageError]]:
        """How many events, and why archives cannot be opened."""
        await asyncio.to_thread(remove_unfinished, self._household.archives)
        paths = await asyncio.to_thread(archives, self._household.archives)
        if not paths:
            return 0, []
        async with self._turns.taken():
            mark = await self._log.watermark(ARCHIVES)
            after = mark if since is None else min(mark, since)
            wished, position = await self._log.database.read(partial(store.wished, after=after))
            left_of = partial(_left_of, wished, corrected)
            taken, unopened, unwritten = await _rewritten(paths if wished.forgotten or corrected else [], left_of)
            if position > mark and not unopened and not unwritten:
                await self._log.database.write(
                    lambda connection: log_store.set_watermark(connection, ARCHIVES, position, self._clock)
                )
        if unwritten:
            raise unwritten[0]
        return taken, unopened

    async def visit(self, take: Callable[[Event], None]) -> tuple[str, ...]:
        """Show every archived event, as it is by now, in a thread; the names of the archives that cannot be read."""
        paths = await asyncio.to_thread(archives, self._household.archives)
        if not paths:
            return ()
        unread: Unread = {}
        async with self._turns.taken():
            mark = await self._log.watermark(ARCHIVES)
            wished, _ = await self._log.database.read(partial(store.wished, after=mark))
            taken = await self._log.database.read(taken_away)

            def visiting(path: Path) -> None:
                for left in map(wished.left_of, events_of(path, unread)):
                    if left.payload and taken.get(left.event_id) != FORGOTTEN:
                        take(left)

            for path in paths:
                await asyncio.to_thread(visiting, path)
        return tuple(unread)

    async def repeating(self, event_ids: Collection[str]) -> list[str]:
        """The archived corrections of these events: they hold the same words, and our log knows no more of whom."""
        found: list[str] = []

        def looking(event: Event) -> None:
            told = correction_of(event)
            if told is not None and told[0] in event_ids:
                found.append(event.event_id)

        await self.visit(looking)
        return found

    async def archived(self, choice: Choice) -> list[Event]:
        """Every event in the archives that a choice means: the log has its words no more."""
        found: dict[str, Event] = {}

        def looking(event: Event) -> None:
            if choice.means(event) and choice.is_of_its_time(event):
                found[event.event_id] = event

        await self.visit(looking)
        return list(found.values())

    async def _fill(self, writing: Writing, *, positions: Sequence[int]) -> None:
        await asyncio.to_thread(writing.add, ABOUT, await about(self._log, positions[-1], self._clock))
        for number, start in enumerate(range(0, len(positions), IN_A_PART), 1):
            reading = partial(store.at, positions=positions[start : start + IN_A_PART])
            found = [old.event for old in await self._log.database.read(reading)]
            await asyncio.to_thread(writing.add, *events_part(number, found))

    def _expire(self, connection: Connection, *, positions: Sequence[int]) -> int:
        found, standing = self._with(connection, partial(store.at, positions=positions))
        going = [old.event.event_id for old in found if standing.held(old) is None]
        if going:
            self._log.record_in(connection, [self._intake.expired(going)])
        return len(going)

    def _with(self, connection: Connection, reading: Callable[[Connection], list[Old]]) -> tuple[list[Old], Standing]:
        """Events, and what stands against forgetting them, as one transaction sees both."""
        corrections: dict[str, list[Old]] = {}
        for old in store.corrections(connection):
            told = correction_of(old.event)
            if told is not None:
                corrections.setdefault(told[0], []).append(self._delivered(old))
        standing = Standing(
            device_id=self._log.device_id,
            shown=document_store.shown(connection),
            shared=self._household.shared,
            marks=store.marks(connection),
            corrections=corrections,
        )
        return [self._delivered(old) for old in reading(connection)], standing

    def _delivered(self, old: Old) -> Old:
        return old if self._household.cloud else replace(old, undelivered=False)


async def _rewritten(paths: Sequence[Path], left_of: LeftOf) -> tuple[int, list[StorageError], list[StorageError]]:
    """How many events go or change, why archives cannot be opened, and why others cannot be written."""
    taken, unread, unwritten = 0, Unread(), list[StorageError]()
    for path in paths:
        try:
            taken += await rewrite(path, left_of, unread)
        except StorageError as error:
            log.warning("the archive %s could not be written anew: %s", path.name, error.message)
            unwritten.append(error)
    return taken, [error for error in unread.values() if isinstance(error, StorageError)], unwritten


def _busy() -> StorageError:
    return StorageError("another process has been at work on the archives for too long")


def _left_of(wished: Withdrawn, corrected: Payloads, event: Event) -> Event:
    left = wished.left_of(event)
    return replace(left, payload=corrected[event.event_id]) if left.payload and event.event_id in corrected else left


def _make_folders(path: Path) -> None:
    """The folders of the archives, there also after a power loss: the log is about to forget what lies in them."""
    with told(path):
        for folder in (path.parent, path):
            make_private_folder(folder)
            sync_folder(folder.parent)
