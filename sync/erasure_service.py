"""Erase events here, on the server and on every device: the use case, and every participant in its order.

Why it is done this way: docs/decisions/007-erasure.md.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Final, Literal

import msgspec
from msgspec.structs import replace

from sync.cloud.auth.account import Account
from sync.document.erasure import erasure
from sync.document.erasure.selection import ErasureSelection
from sync.errors import CloudError, InvalidInput, StorageError
from sync.jsonl.service import EventFilesService
from sync.jsonl.unfinished import kept_trees
from sync.log.event_types import (
    FACT_VERDICT_TYPES,
    LESSON_OBSERVED,
    LESSON_TYPES,
    NOTE_TEXT_TYPES,
    PAYLOAD_FORGOTTEN,
)
from sync.log.ingest import DraftBuilder
from sync.log.log import EventLog, resolve_ids
from sync.log.model import Event

if TYPE_CHECKING:  # loaded at their first use
    from sync.cloud.replication.replicator import Replicator
    from sync.daily.commands.erasure_replies import ErasureStatus
    from sync.daily.service import DailyService
    from sync.lessons.files.live_view import LessonFiles
    from sync.notes.erasure import NoteErasure
    from sync.recall.search import RecallService
    from sync.retention.service import RetentionService
    from sync.understanding.service import FactService

CLOUD_CONFIRM_TIMEOUT: Final = 3.0  # seconds that an answer waits for the server to confirm an erasure
FILES_TIMEOUT: Final = 3.0  # seconds that an answer waits for the event files to be written
MAX_NAMED: Final = 5  # unknown ids in a message
RECENT_REQUESTS: Final = 100  # erasure requests that are looked for in quarantine


class RequestedErasure(msgspec.Struct, frozen=True):
    """The events that a request names; the files of notes that stay, each with its reason; and `unwritten_files`.

    Those could not be written again, and may still hold the text. `in_event_files`: the event files are up to date.
    `copies`: what salvages have kept, each with its reason.
    """

    named: list[str]
    kept_files: list[str]
    unwritten_files: tuple[str, ...] = ()
    in_event_files: bool = False
    copies: tuple[str, ...] = ()

    @property
    def files_left(self) -> list[str]:
        """All of these files, each with its reason."""
        reason = "it could not be written again, and may still hold the text; `doctor` or `daily status` says why"
        return [*self.kept_files, *self.copies, *(f"{path}: {reason}" for path in self.unwritten_files)]


class ErasureService(msgspec.Struct, frozen=True):
    """The erasures of one profile.

    `reconcile_document`: brings document and log together, and logs a StorageError. `blocked_document`: the memory file
    if it cannot be written now. `log_storage_errors` runs a step, logs its StorageError under a key, and goes on.
    """

    log: EventLog
    draft_builder: DraftBuilder
    account: Account
    replicator: "Replicator | None"
    event_files: EventFilesService
    daily: "Callable[[], DailyService]"
    recall: "Callable[[], RecallService]"
    lesson_files: "Callable[[], LessonFiles]"
    notes: "Callable[[], NoteErasure]"
    facts: "Callable[[], FactService]"
    retention: "Callable[[], RetentionService]"
    reconcile_document: Callable[[], Awaitable[None]]
    blocked_document: Callable[[], list[str]]
    log_storage_errors: Callable[[str, Callable[[], Coroutine[None, None, object]]], Awaitable[None]]
    is_sidecar: bool

    async def find_matching(self, selection: ErasureSelection) -> list[Event]:
        """The events that a selection means, archived ones first."""
        logged = await erasure.select_events(self.log, selection)
        known = {event.event_id for event in logged}
        archived = await self.retention().find_archived(selection)
        return [*(event for event in archived if event.event_id not in known), *logged]

    async def find_with_words(self, words: str) -> list[Event]:
        """Every event that has all of these words; none for no words."""
        selection = ErasureSelection(words)
        return [] if selection.is_empty else await self.find_matching(selection)

    async def request_by_id(self, event_ids: Sequence[str]) -> RequestedErasure:
        """`request` for ids that a caller gives. Raises InvalidInput if one is unknown; then nothing is erased."""
        known = await self.known_ids(event_ids)
        erased, given = await self.request(list(known.values())), {known[name]: name for name in event_ids}
        return replace(erased, named=[given.get(event_id, event_id) for event_id in erased.named])

    async def known_ids(self, event_ids: Sequence[str]) -> dict[str, str]:
        """The event id of each id that a caller gives. Raises InvalidInput if one is unknown."""
        known = await resolve_ids(self.log, event_ids)
        if unknown := [name for name in event_ids if name not in known]:
            hint = "Nothing was erased. If another device recorded it, run `xiaobai-memory sync` and erase it again."
            message = f"no event of this device's log has the id {', '.join(unknown[:MAX_NAMED])}"
            raise InvalidInput(message, field="eventIds", hint=hint)
        return known

    async def request(self, event_ids: Sequence[str]) -> RequestedErasure:
        """Erase these events and what repeats them.

        The files of notes go before the request: a file that stayed behind would be recorded again.
        """
        has_notes = await self.log.newest_position(NOTE_TEXT_TYPES)
        kept_files = await self.notes().remove_files(event_ids) if has_notes else []
        named = await self.request_texts(event_ids)
        in_files = bool(named) and self.is_sidecar and await self.event_files.write_all(FILES_TIMEOUT)
        copies = await asyncio.to_thread(self._copies_of_damage)
        return RequestedErasure(named, kept_files, tuple(await self._unwritten_files()), in_files, copies)

    def _copies_of_damage(self) -> tuple[str, ...]:
        """The copies that salvages have kept of the database and the event files, which nothing reads or writes."""
        reason = "kept after damage, and may still hold the text; delete it if you do not need it"
        kept = [
            *self.log.database.path.parent.glob("memory.db.damaged-*"),
            *kept_trees(self.event_files.projection.root),
        ]
        return tuple(f"{path}: {reason}" for path in sorted(kept) if not path.name.endswith(("-wal", "-shm", ".begun")))

    async def _unwritten_files(self) -> list[str]:
        """The files that this process could not write again."""
        if not self.is_sidecar:
            return []
        pages = self.daily().worker.page_files.notices
        if not await self.log.newest_position(LESSON_TYPES):
            return [*self.blocked_document(), *pages]
        lessons = self.lesson_files()
        report = await lessons.inspect()
        behind = [str(lessons.folder / name) for name in (*report.unreadable, *report.differing)]
        return [*self.blocked_document(), *pages, *behind]

    async def request_texts(self, event_ids: Sequence[str]) -> list[str]:
        """Erase these events and what repeats them, but no file of a note; the events that the request names."""
        archived = await self.retention().archived_corrections_of(frozenset(event_ids))
        calls = await self._calls_of_lessons(event_ids)
        names = [*event_ids, *archived, *calls]
        await self.keep_retracted(names)
        named = await erasure.request(self.log, self.draft_builder, names)
        await self.apply()
        return named

    async def keep_retracted(self, event_ids: Sequence[str]) -> None:
        """Retract again, before an erasure of these events, the facts that would come back with it."""
        if await self.log.newest_position(FACT_VERDICT_TYPES):
            erased = await self.log.database.read(lambda connection: erasure.erasable_events(connection, event_ids))
            await self.facts().keep_retracted(erased)

    async def _calls_of_lessons(self, event_ids: Sequence[str]) -> list[str]:
        """The observed calls from which an erased lesson would be learned again."""
        if not await self.log.newest_position((LESSON_OBSERVED,)):
            return []
        from sync.lessons.projection import observations_of  # noqa: PLC0415 - a start need not load it

        return await self.log.database.read(lambda connection: list(observations_of(connection, event_ids)))

    async def erase_and_confirm(self, event_ids: Sequence[str]) -> "ErasureStatus":
        """Erase these events and what repeats them; report what is done and what is still pending."""
        from sync.daily.commands.erasure_replies import ErasureStatus  # noqa: PLC0415 - a start need not load it

        if not event_ids:
            return ErasureStatus(0)
        requested = await self.request(event_ids)
        named = requested.named
        is_applied = requested.in_event_files and not await self.log.database.read(erasure.has_pending)
        confirmation = await self._cloud_confirmation() if named else "none"
        here: Literal["done", "soon"] = "done" if is_applied else "soon"
        kept, unwritten = len(requested.kept_files), requested.unwritten_files
        return ErasureStatus(len(named), here, confirmation, kept, unwritten)

    async def apply(self, *, vacuum: bool = False) -> None:
        """Apply every recorded erasure and correction on this device, in this order. Raises StorageError.

        A process that is not the sidecar leaves this to the sidecar. `vacuum`: also rewrite the database file.
        """
        if self.is_sidecar:
            # 1. One transaction (`sync.document.versions.erasure_step`): log payloads, the document and its events,
            #    parked documents, outbox, stored versions, hashes of the erased lines. Then the memory file, the app's
            #    cache and the insights cache.
            await self.reconcile_document()
            # 2. Pages of daily records.
            await self.log_storage_errors("daily", self.daily().reconcile)
            # 3. The search index and its vectors; the tables and files of lessons.
            await self.log_storage_errors("recall", self.recall().apply_erasures)
            if await self.log.newest_position(LESSON_TYPES):
                await self.log_storage_errors("lessons", self.lesson_files().apply_erasures)
        # 4. Freed pages of the database.
        await self.log.database.purge(vacuum=vacuum and self.is_sidecar)
        if self.is_sidecar:
            # 5. Archives, last: if one cannot be written, everything else is done.
            await self.retention().apply_retractions()
        # 6. JSONL files: `EventFilesService` follows the log; `request` waits for it.
        # 7. The server and other devices: the request is in the outbox, and each of them applies it.

    async def _cloud_confirmation(self) -> Literal["none", "done", "later", "refused"]:
        """Whether the server has the erasure. It never had a memory without a login."""
        if self.replicator is None or (await self.account.state()).state in {"not_configured", "guest"}:
            return "none"
        if self.is_sidecar:
            try:
                async with asyncio.timeout(CLOUD_CONFIRM_TIMEOUT):
                    await self.replicator.sync_unless_backing_off()
            except (TimeoutError, CloudError, StorageError):  # kept in `status`; the erasure waits in the outbox
                return "later"
        if await self._is_refused():
            return "refused"
        return "done" if (await self.log.outbox()).pending == 0 else "later"

    async def _is_refused(self) -> bool:
        """Whether a recent erasure request is in quarantine, because of a daily limit for example."""
        refused = {one.event_id for one in await self.log.quarantine.list_refused()}
        recent = await self.log.newest((PAYLOAD_FORGOTTEN,), RECENT_REQUESTS) if refused else ()
        return any(request.event_id in refused for request in recent)
