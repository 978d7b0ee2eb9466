"""Planted bugs: a simulator that does not detect them is broken.

Each replaces one function or attribute in memory for the time of a block. `seed` is the first run, counted from 0,
that detects it; `make sim-bugs` searches for all of them again.
"""

import asyncio
import dataclasses
import os
import re
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from msgspec.structs import replace
from sqlalchemy import TextClause, text

import sync.accounts.switching
import sync.archive.archive_file
import sync.cloud.auth.account
import sync.cloud.replication.erasure_guard
import sync.cloud.replication.sync_round
import sync.cloud.sync_decisions
import sync.document.capture.capture_policy
import sync.document.capture.exchange_events
import sync.document.merge.three_way
import sync.document.surfaces.memory_file
import sync.document.versions.surface_edits
import sync.jsonl.event_import
import sync.lan.store
import sync.log.envelope
import sync.log.model
import sync.log.store
import sync.recall.index.indexer
import sync.retention.service
import sync.system.atomic_swap
import sync.system.files
import sync.understanding.projection
import tests.fake_cloud.documents
import tests.fake_cloud.server
from sync.archive.archive_file import WrittenArchive
from sync.clock import Clock, format_hlc, next_hlc, timestamp, to_unix_ms
from sync.cloud import replication_store as cloud_store
from sync.cloud.auth import device_key_store, owner_store
from sync.cloud.port import SnapshotRow, SyncAnswer, SyncRequest
from sync.cloud.replication.sync_round import SyncRunner
from sync.cloud.sync_decisions import PageVerdict
from sync.db.engine import Database, Transaction
from sync.document.erased_lines_store import ErasedLines, StrippedDocument
from sync.document.markdown.model import MemoryDocument
from sync.document.merge.three_way import _ThreeWayMerge
from sync.document.ownership.other_profiles import OtherProfiles
from sync.document.read.line_authors import LineAuthors
from sync.document.read.memory_service import MemoryService
from sync.document.read.results import LoadResult, UpdateResult
from sync.document.surfaces.memory_file import MemoryFile
from sync.document.surfaces.write_in_progress import WriteInProgress
from sync.errors import StorageError
from sync.lan.protocol.frames import Have
from sync.lan.protocol.have_want import Action, PeerConversation
from sync.lan.store import insert_received
from sync.lan.transport.trust import RefusalCause, TrustList
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.devices.device_view import EVERY_DEVICE
from sync.log.event_types import LESSON_EDITED
from sync.log.identity import store as identity_store
from sync.log.log import BuildDrafts, EventLog, StoreWithEvents
from sync.log.model import CLOUD, AppendResult, Event, EventScope, RefusedEvent, scope_of
from sync.redaction import Redactor
from sync.redaction.redactor import _RedactingCleaner
from sync.system.process_lock import ProcessLock
from tests.fake_cloud.documents import FakeDocument
from tests.fake_cloud.server import FakeCloud
from tests.simulation.host.network import SimulatedServer
from tests.simulation.host.simulated_host import CURRENT
from tests.simulation.simulator import run
from tests.simulation.workload.plan import (
    ASKING,
    ERASED,
    FORGING,
    IMPORTING,
    LAN,
    PAIRING,
    PAUSING,
    PROGRAMS,
    STATING,
    TEACHING,
    TOGETHER,
    SimulationPlan,
    make_plan,
)
from tests.support import event

Patch = tuple[Any, str, Any]  # where, which name, what instead
MISFIT: Final = re.compile(r"^(Type|Attribute|Name)Error: |no such (table|column)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A bug, how it is planted, and the first run that detects it. `besides`: the kinds of `BESIDES` it needs."""

    name: str
    patches: tuple[Patch, ...]
    seed: int
    extra_action_set: str | None = None
    shown_by: str = ""  # what one of the defects says, if other defects do not show this bug

    def plan(self, seed: int) -> SimulationPlan:
        """The plan of a seed in which the bug is searched, with only the needed kinds of `BESIDES`."""
        return make_plan(seed).besides(*filter(None, [self.extra_action_set]))

    def find_defects(self, seed: int) -> tuple[str, ...]:
        """The defects of a run with the bug, without the errors of a plant that no longer fits the program."""
        with self.apply_patches():
            found = [defect for defect in run(self.plan(seed)).defects if not MISFIT.search(defect)]
        return tuple(found) if any(self.shown_by in defect for defect in found) else ()

    @contextmanager
    def apply_patches(self) -> Iterator[None]:
        with ExitStack() as stack:
            for place, name, value in self.patches:
                before = place.__dict__[name] if isinstance(place, type) else getattr(place, name)
                setattr(place, name, value)
                stack.callback(setattr, place, name, before)
            yield


# --- capture ------------------------------------------------------------------------------------------------------

_record_and_count = EventLog.append_and_count


async def _acknowledged_early(
    log: EventLog, drafted: BuildDrafts, beside: StoreWithEvents | None = None
) -> tuple[list[AppendResult], int]:
    """Acknowledge first and commit a second later."""
    drafts = await log.database.read(drafted)

    async def later() -> None:
        await asyncio.sleep(1.0)
        await _record_and_count(log, lambda _: drafts, beside)

    task = asyncio.get_running_loop().create_task(later())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    answered = event(1, event_id=drafts[0].event_id or "evt_early", device=log.device_id, reach=EventScope.CLOUD)
    return [AppendResult(answered, duplicate=False)], 0


async def _update_refused(*_: Any) -> UpdateResult:
    raise StorageError("nothing is recorded today")


_look = MemoryService._compose_answer


async def _emptied(conversation: MemoryService, **given: Any) -> LoadResult:
    """The result of an empty profile."""
    return replace(await _look(conversation, **given), content="", digest="")


# --- files --------------------------------------------------------------------------------------------------------


def _in_place(temporary: Path, path: Path) -> None:
    """Write into the file in place, as the original does."""
    data = temporary.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    process = CURRENT.get()
    if process is not None:
        process.point("in the middle of a write in place")
    path.write_bytes(data)
    temporary.unlink()


_take_in = MemoryFile._ingest
_write = MemoryFile._write
_BLIND: Final = 2.0  # seconds: a save so soon after ours is taken for ours
_last_write: dict[Path, float] = {}


async def _write_noted(file: MemoryFile, *given: Any) -> None:
    await _write(file, *given)
    _last_write[file.path] = asyncio.get_running_loop().time()


async def _blind_after_own_write(file: MemoryFile, disk: Any, current: Any) -> Any:
    if asyncio.get_running_loop().time() - _last_write.get(file.path, -_BLIND) < _BLIND:
        return sync.document.surfaces.memory_file._WritePermission.WRITE, None
    return await _take_in(file, disk, current)


# --- replication --------------------------------------------------------------------------------------------------

_judge = sync.cloud.sync_decisions.check_page
_apply = cloud_store.apply_answer
_send = SyncRunner._send_request


def _cursor_by_head(cursor: Any, answer: SyncAnswer) -> PageVerdict:
    verdict = _judge(cursor, answer)
    return (
        verdict if verdict.reset else replace(verdict, cursor=replace(verdict.cursor, seq=answer.head), caught_up=True)
    )


async def _dropped(exchange: SyncRunner, event: Event, why: Any) -> None:
    def drop(connection: Transaction) -> None:
        outbox_store.quarantine_event(
            connection, CLOUD, RefusedEvent(event.event_id, why.code, "dropped", "2026-02-02T10:00:00.000Z")
        )
        outbox_store.release_quarantined(connection, CLOUD, [event.event_id], "dropped")

    await exchange._log.database.write(drop)


async def _blocked(exchange: SyncRunner, session: Any, request: SyncRequest, cursor: Any, why: Exception) -> Any:
    del exchange, session, request, cursor
    raise why


def _emptied_by_the_server(
    connection: Transaction, answer: SyncAnswer, verdict: PageVerdict, clock: Clock, **given: Any
) -> int:
    if verdict.reset:
        for table in ("quarantine", "deliveries", "events", "written"):
            connection.execute(text(f"delete from {table}"))
    return _apply(connection, answer, verdict, clock, **given)


async def _acknowledged_when_sent(exchange: SyncRunner, session: Any, request: SyncRequest) -> SyncAnswer:
    pairs = [(event.event_id, 0) for event in request.events]
    await exchange._log.database.write(lambda connection: outbox_store.acknowledge(connection, CLOUD, pairs))
    return await _send(exchange, session, request)


async def _cursor_first(exchange: SyncRunner, answer: SyncAnswer, verdict: PageVerdict) -> int:
    """The cursor in a transaction of its own, before the events that it passes."""
    database = exchange._log.database
    await database.write(lambda connection: outbox_store.save_cursor(connection, CLOUD, verdict.cursor))
    take_in = partial(_apply, answer=answer, verdict=verdict, clock=exchange._clock, device_id=exchange._log.device_id)
    new = await database.write(take_in)
    if new:
        exchange._log.changed.increment()
    return new


def _unsent_dropped(connection: Transaction, clock: Any) -> str:
    connection.execute(text("delete from deliveries where state = 'pending'"))
    return log_store.renumber_as_new_replica(connection, [], clock)


def _same_id_everywhere(_: str, client_id: str) -> str:
    return f"evt_{client_id}"


_ONE_ID_OF_PROGRAMS: Final[tuple[Patch, ...]] = (
    (sync.log.envelope, "client_event_id", _same_id_everywhere),
    (sync.log.store, "client_event_id", _same_id_everywhere),
    (identity_store, "client_event_id", _same_id_everywhere),
)


def _minted(
    connection: Transaction, received: Sequence[Event], clock: Clock, *, own_device_ids: Collection[str]
) -> None:
    """What another device recorded becomes this one's under its known id, as imports did before."""
    for one in received:
        minted = replace(one, device_id=min(own_device_ids), hlc=next_hlc(one.hlc, to_unix_ms(clock.now())))
        insert_received(connection, [minted], clock, own_device_ids=own_device_ids)


_taken = ProcessLock.hold


@asynccontextmanager
async def _not_alone(turns: ProcessLock) -> AsyncIterator[None]:
    """Not for the stored session; logins still wait for each other."""
    async with AsyncExitStack() as stack:
        if turns._path.name != "session.lock":
            await stack.enter_async_context(_taken(turns))
        await asyncio.sleep(0)
        yield


# --- the server ---------------------------------------------------------------------------------------------------


def _pushed_again(memory: Any, request: SyncRequest, server_ts: str) -> tuple[tuple[str, int], ...]:
    """Neither ids nor numbers are looked up."""
    for one in request.events:
        memory.events.append(replace(one, server_seq=memory.head + 1, server_ts=server_ts, position=0))
    return tuple((one.event_id, one.server_seq or 0) for one in memory.events[-len(request.events) :] if request.events)


def _pushed_over(memory: Any, request: SyncRequest, server_ts: str) -> tuple[tuple[str, int], ...]:
    """Ids are looked up, numbers of a replica are not: a copied home is never told."""
    known_ids = {one.event_id for one in memory.events}
    for one in request.events:
        if one.event_id not in known_ids:
            memory.events.append(replace(one, server_seq=memory.head + 1, server_ts=server_ts, position=0))
    numbers = {one.event_id: one.server_seq or 0 for one in memory.events}
    return tuple((one.event_id, numbers[one.event_id]) for one in request.events)


async def _unlocked(server: SimulatedServer, inner: FakeCloud, session: Any, request: SyncRequest) -> SyncAnswer:
    """Numbers are assigned when a transaction begins, without a lock."""
    memory = server.log_of(session)
    begun = memory.head
    await asyncio.sleep(server._chance.uniform(0.0, server._work))
    before = len(memory.events)
    answer = await inner.sync(session, replace(request, limit=min(request.limit, server.page)))
    memory.events[before:] = [
        replace(one, server_seq=begun + number) for number, one in enumerate(memory.events[before:], start=1)
    ]
    return answer


_refusal = tests.fake_cloud.documents._refusal


def _kept_until_something_is_said(held: FakeDocument, sent: SnapshotRow, replica_id: str) -> str | None:
    """As before the text that is replaced was named: what others say or forget does not reach this copy."""
    same = held.replica_id == replica_id and held.through_replica_seq == sent.through_replica_seq
    return "kept" if same else _refusal(held, sent, replica_id)


# --- accounts -----------------------------------------------------------------------------------------------------


async def _at_home_everywhere(*_: Any) -> None:
    return None


def _claimed_by_anybody(account: Any, connection: Transaction, session: Any, **_: Any) -> None:
    owner_store.claim_profile(connection, session.user_id, session.label, timestamp(account._clock.now()))


# --- the local network --------------------------------------------------------------------------------------------

_refusal_of = TrustList.refusal_of
_on_have = PeerConversation._on_have


def _accepts_revoked(trust: TrustList, public_key: str | None) -> RefusalCause | None:
    cause = _refusal_of(trust, public_key)
    return None if cause is RefusalCause.REVOKED else cause


def _keeps_numbers_of_another_epoch(conversation: PeerConversation, have: Have) -> list[Action]:
    """What was asked for in one epoch counts as asked for in the next."""
    if conversation._peer is not None:
        conversation._peer = dataclasses.replace(conversation._peer, epoch=have.epoch)
    return _on_have(conversation, have)


def _offering_all(query: TextClause) -> TextClause:
    """The query without the condition of what may leave the device."""
    return text(str(query).replace(sync.lan.store._OFFERED, "true"))


# --- what people ask ----------------------------------------------------------------------------------------------

_file = sync.archive.archive_file.write_archive


async def _filed_later(*given: Any) -> WrittenArchive:
    """Says that an archive is written and writes it a second later."""

    async def later() -> None:
        await asyncio.sleep(1.0)
        await _file(*given)

    task = asyncio.get_running_loop().create_task(later())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return WrittenArchive(0, "")


async def _is_not(*_: Any, **__: Any) -> bool:
    return False


def _does_nothing(*_: Any, **__: Any) -> Any:
    return None


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


def _without_sync(module: Any) -> SimpleNamespace:
    """The module `os` with an fsync that does nothing."""
    return SimpleNamespace(**{**vars(module), "fsync": _does_nothing})


def _as_saved(_: ErasedLines, __: Transaction, document: MemoryDocument, *___: Any) -> StrippedDocument:
    return StrippedDocument(document)


_ANY_END: Final[Patch] = (sync.document.versions.surface_edits, "lacks_end", _always(answer=False))


def _sends_edited_lessons(event_type: str) -> EventScope:
    return EventScope.CLOUD if event_type == LESSON_EDITED else scope_of(event_type)


BUGS: Final = (
    PlantedBug(
        "an update is acknowledged before it is committed", ((EventLog, "append_and_count", _acknowledged_early),), 1
    ),
    PlantedBug("no update is recorded", ((MemoryService, "update", _update_refused),), 0),
    PlantedBug("a load answers with nothing", ((MemoryService, "_compose_answer", _emptied),), 0),
    PlantedBug("files are not synced before the rename", ((sync.system.files, "os", _without_sync(os)),), 19),
    PlantedBug("files are written in place", ((sync.system.files, "replace_with_retry", _in_place),), 28),
    PlantedBug(
        "what is saved soon after our own write is taken for it",
        ((MemoryFile, "_write", _write_noted), (MemoryFile, "_ingest", _blind_after_own_write)),
        15,
    ),
    PlantedBug(
        "a file is written without comparing it again",
        ((sync.system.atomic_swap, "_check_unchanged", _does_nothing),),
        25,
    ),
    PlantedBug(
        "every buffer is compared with the newest version",
        ((sync.document.versions.surface_edits, "choose_base", lambda _, ring: ring[-1] if ring else None),),
        7,
    ),
    PlantedBug(
        "a lost file is a mass delete",
        ((sync.document.versions.surface_edits, "looks_like_data_loss", _always(answer=False)), _ANY_END),
        10,
    ),
    PlantedBug(
        "a cut file is an edit", ((sync.document.merge.three_way, "is_truncated", _always(answer=False)), _ANY_END), 10
    ),
    PlantedBug(
        "a file without its end is whole",
        (_ANY_END, (WriteInProgress, "is_running", _is_not)),
        42,
        extra_action_set=PAUSING,
    ),
    PlantedBug(
        "a stale buffer types what was erased", ((ErasedLines, "strip", _as_saved),), 19, extra_action_set=ERASED
    ),
    PlantedBug(
        "a clock that goes back takes the order along", ((sync.log.store, "next_hlc", lambda _, ms: format_hlc(ms)),), 0
    ),
    PlantedBug(
        "the order that the server's time changes is not noted",
        ((log_store, "bump_order_version", _does_nothing),),
        111,
        STATING,
    ),
    PlantedBug(
        "a key given again makes another event",
        (
            (sync.document.capture.exchange_events, "keyed_event_id", _always(answer=None)),
            (sync.document.capture.capture_policy, "keyed_event_id", _always(answer=None)),
        ),
        8,
    ),
    PlantedBug(
        "text is kept as it came",
        (
            (Redactor, "_redact", lambda _, text, __: text),
            (_RedactingCleaner, "clean_value", lambda _, __, text: text),
        ),
        0,
    ),
    PlantedBug("events are recorded without a delivery", ((outbox_store, "enqueue", _does_nothing),), 0),
    PlantedBug("what is sent counts as acknowledged", ((SyncRunner, "_send_request", _acknowledged_when_sent),), 0),
    PlantedBug(
        "the cursor moves to the server's head",
        ((sync.cloud.replication.sync_round, "check_page", _cursor_by_head),),
        0,
    ),
    PlantedBug("the cursor moves before its events are stored", ((SyncRunner, "_apply_answer", _cursor_first),), 1),
    PlantedBug("what was pulled before is not recognised", ((identity_store, "read_held", _always(answer={})),), 0),
    PlantedBug("a refused event is dropped", ((SyncRunner, "_quarantine", _dropped),), 2),
    PlantedBug("a refused event blocks the others", ((SyncRunner, "_retry_without_refused", _blocked),), 2),
    PlantedBug("an emptied server empties the device", ((cloud_store, "apply_answer", _emptied_by_the_server),), 4),
    PlantedBug(
        "what a restored server forgot is not sent again",
        ((outbox_store, "requeue_lost", _always(answer=0)),),
        4,
    ),
    PlantedBug("numbers of before a restore stay", ((outbox_store, "clear_stale_numbers", _does_nothing),), 184),
    PlantedBug("a copied home forgets what it has not sent", ((cloud_store, "fork_replica", _unsent_dropped),), 1),
    PlantedBug("programs of two devices meet under one id", _ONE_ID_OF_PROGRAMS, 19, PROGRAMS),
    PlantedBug(
        "the server acknowledges the id of another author, and its device believes it",
        (
            *_ONE_ID_OF_PROGRAMS,
            (tests.fake_cloud.server, "_check_taken_ids", _does_nothing),
            (cloud_store, "winner_at_server", lambda held, *_, **__: held),
        ),
        31,
        PROGRAMS,
        shown_by="the server has another event",
    ),
    PlantedBug(
        "a program's line is shown without its author",
        ((LineAuthors, "author_labels", _always(answer={})),),
        19,
        PROGRAMS,
    ),
    PlantedBug("an import mints what it knows", ((sync.jsonl.event_import, "insert_received", _minted),), 1, IMPORTING),
    PlantedBug(
        "a correction that is no redaction is applied",
        ((sync.cloud.replication.erasure_guard, "is_redacted", _always(answer=True)),),
        17,
        FORGING,
        shown_by="a forged correction",
    ),
    PlantedBug(
        "a device that is not admitted replaces facts of others",
        ((sync.understanding.projection, "admitted_devices", _always(EVERY_DEVICE)),),
        11,
        STATING,
        shown_by="is not admitted",
    ),
    PlantedBug("a session is refreshed by whoever comes", ((ProcessLock, "hold", _not_alone),), 7),
    PlantedBug(
        "the server doubles what is sent again", ((tests.fake_cloud.server, "_append_events", _pushed_again),), 1
    ),
    PlantedBug(
        "copies of a home share their numbers",
        ((tests.fake_cloud.server, "_append_events", _pushed_over), (cloud_store, "_is_forked", _always(answer=False))),
        42,
    ),
    PlantedBug("the server numbers without a lock", ((SimulatedServer, "sync", _unlocked),), 19),
    PlantedBug(
        "the server does not notice that it was restored",
        ((tests.fake_cloud.server, "_must_reset", _always(answer=False)),),
        4,
    ),
    PlantedBug(
        "the server keeps a document until its device says something",
        ((tests.fake_cloud.documents, "_refusal", _kept_until_something_is_said),),
        18,
        ASKING,
    ),
    PlantedBug(
        "whoever logs in takes the memory that is there",
        (
            (sync.accounts.switching, "find_profile_for", _at_home_everywhere),
            (sync.cloud.auth.account.Account, "_claim_profile", _claimed_by_anybody),
        ),
        4,
    ),
    PlantedBug(
        "another account's document is an edit", ((OtherProfiles, "parked_folder_of", _always(answer=None)),), 19
    ),
    PlantedBug(
        "a wish to forget leaves the server's row",
        ((tests.fake_cloud.server, "_erase_payloads", _does_nothing),),
        14,
        extra_action_set=ASKING,
    ),
    PlantedBug(
        "what was forgotten stays in the write-ahead log", ((Database, "purge", _is_not),), 1, extra_action_set=ASKING
    ),
    PlantedBug(
        "a search answers what was forgotten",
        ((sync.recall.index.indexer, "_remove_erased", _does_nothing),),
        13,
        extra_action_set=ASKING,
    ),
    PlantedBug(
        "an archive is written after the log let go",
        ((sync.retention.service, "write_archive", _filed_later),),
        2_904,
        extra_action_set=ASKING,
    ),
    PlantedBug(
        "an archive's place is not synced",
        ((sync.archive.archive_file, "sync_folder", _does_nothing),),
        2_904,
        extra_action_set=ASKING,
    ),
    PlantedBug(
        "of two edits of a line the later takes the other's words",
        ((sync.document.merge.three_way, "merge_words", lambda _base, _ours, theirs: theirs),),
        0,
        extra_action_set=TOGETHER,
    ),
    PlantedBug(
        "a removal takes an edit that it had not seen",
        ((_ThreeWayMerge, "_was_removed_on_disk", lambda merge, entry_id: entry_id in merge._base),),
        51,
        extra_action_set=TOGETHER,
    ),
    PlantedBug(
        "an edit of a lesson is replicated",
        tuple((place, "scope_of", _sends_edited_lessons) for place in (sync.log.envelope, sync.log.model)),
        13,
        TEACHING,
    ),
    PlantedBug("a peer with a revoked key is accepted", ((TrustList, "refusal_of", _accepts_revoked),), 127, LAN),
    PlantedBug(
        "a peer gets events before its erasure requests are here",
        ((PeerConversation, "_has_peers_erasures", _always(answer=True)),),
        56,
        LAN,
    ),
    PlantedBug(
        "a peer's numbers of another epoch are trusted",
        ((PeerConversation, "_on_have", _keeps_numbers_of_another_epoch),),
        111,
        LAN,
    ),
    PlantedBug(
        "a peer gets what stays on the device",
        (
            (sync.lan.store, "_ISLANDS", _offering_all(sync.lan.store._ISLANDS)),
            (sync.lan.store, "_IN_RANGES", _offering_all(sync.lan.store._IN_RANGES)),
        ),
        30,
        LAN,
    ),
    PlantedBug("a lesson that a peer has forged is taken in", ((sync.lan.store, "replicable_events", list),), 17, LAN),
    PlantedBug(
        "a paired device that was forgotten is accepted",
        ((device_key_store, "remove_paired_device", _always(answer=True)),),
        21,
        PAIRING,
    ),
)
