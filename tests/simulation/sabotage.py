"""Bugs planted on purpose, one line each where it lives: a simulator that finds none of them is broken.

Each replaces one function or attribute in memory for the time of a block. `seed` is the first history, counted from 0,
that shows it; `make sim-bugs` looks for all of them anew.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

from sqlalchemy import Connection, text

import sync.archive.filing
import sync.cloud.account
import sync.cloud.exchange
import sync.cloud.memory
import sync.cloud.memory_documents
import sync.cloud.plan
import sync.document.capture
import sync.document.deeds
import sync.document.entry_fold
import sync.document.memory_file
import sync.document.plan
import sync.document.versions
import sync.files
import sync.log.store
import sync.recall.view
import sync.retention.room
import sync.switch
from sync.archive.filing import Filed
from sync.clock import hlc_text, timestamp
from sync.cloud import store as cloud_store
from sync.cloud.exchange import Exchange
from sync.cloud.memory import MemoryCloud
from sync.cloud.memory_documents import Document
from sync.cloud.plan import Verdict
from sync.cloud.port import SnapshotRow, SyncAnswer, SyncRequest
from sync.db.engine import Database
from sync.document.answers import Loaded, Updated
from sync.document.conversation import Conversation
from sync.document.deeds import Deed
from sync.document.entry_fold import Line
from sync.document.erased import ErasedLines, Stripped
from sync.document.memory_file import MemoryFile
from sync.document.model import Document as MemoryDocument
from sync.document.slow_write import SlowWrite
from sync.errors import StorageError
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.log import Beside, Drafted, Log
from sync.log.model import CLOUD, Event, Reach, Recorded, Refusal
from sync.redaction import Redactor
from sync.redaction.redactor import _Cleaner
from sync.turns import Turns
from tests.simulation.history import ASKING, ERASED, PAUSING, TOGETHER, Plan, planned
from tests.simulation.machine import CURRENT
from tests.simulation.network import SimulatedServer
from tests.support import event

Patch = tuple[Any, str, Any]  # where, which name, what instead


@dataclass(frozen=True, slots=True)
class Bug:
    """What is broken, how it is put in, and the first history that shows it; `besides`: of `BESIDES`, what it needs."""

    name: str
    patches: tuple[Patch, ...]
    seed: int
    besides: str | None = None

    def plan(self, seed: int) -> Plan:
        """The history of a seed as the bug is looked for in it; `make sim` lives it with all that is besides."""
        return planned(seed).besides(*filter(None, [self.besides]))

    @contextmanager
    def planted(self) -> Iterator[None]:
        with ExitStack() as stack:
            for place, name, value in self.patches:
                before = place.__dict__[name] if isinstance(place, type) else getattr(place, name)
                setattr(place, name, value)
                stack.callback(setattr, place, name, before)
            yield


# --- capture ------------------------------------------------------------------------------------------------------

_record_and_count = Log.record_and_count


async def _acknowledged_early(log: Log, drafted: Drafted, beside: Beside | None = None) -> tuple[list[Recorded], int]:
    """Answers first and commits a second later."""
    drafts = await log.database.read(drafted)

    async def later() -> None:
        await asyncio.sleep(1.0)
        await _record_and_count(log, lambda _: drafts, beside)

    task = asyncio.get_running_loop().create_task(later())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    answered = event(1, event_id=drafts[0].event_id or "evt_early", device=log.device_id, reach=Reach.CLOUD)
    return [Recorded(answered, duplicate=False)], 0


async def _update_refused(*_: Any) -> Updated:
    raise StorageError("nothing is recorded today")


_look = Conversation._look


async def _emptied(conversation: Conversation, **given: Any) -> Loaded:
    """The answer of a profile that nobody has said anything in."""
    return replace(await _look(conversation, **given), content="", digest="")


# --- files --------------------------------------------------------------------------------------------------------


def _in_place(temporary: Path, path: Path) -> None:
    """Writes into the file itself, as the original does."""
    data = temporary.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    process = CURRENT.get()
    if process is not None:
        process.point("in the middle of a write in place")
    path.write_bytes(data)
    temporary.unlink()


_take_in = MemoryFile._take_in
_write = MemoryFile._write
_BLIND: Final = 2.0  # seconds: what somebody saves so soon after us is taken for our own
_last_write: dict[Path, float] = {}


async def _write_noted(file: MemoryFile, *given: Any) -> None:
    await _write(file, *given)
    _last_write[file.path] = asyncio.get_running_loop().time()


async def _blind_after_own_write(file: MemoryFile, disk: Any, current: Any) -> Any:
    if asyncio.get_running_loop().time() - _last_write.get(file.path, -_BLIND) < _BLIND:
        return sync.document.memory_file._May.WRITE, None
    return await _take_in(file, disk, current)


# --- replication --------------------------------------------------------------------------------------------------

_judge = sync.cloud.plan.judge
_apply = cloud_store.apply
_send = Exchange._send


def _cursor_by_head(cursor: Any, answer: SyncAnswer) -> Verdict:
    verdict = _judge(cursor, answer)
    return (
        verdict if verdict.reset else replace(verdict, cursor=replace(verdict.cursor, seq=answer.head), caught_up=True)
    )


async def _dropped(exchange: Exchange, event: Event, why: Any) -> None:
    def drop(connection: Connection) -> None:
        outbox_store.refuse(connection, CLOUD, Refusal(event.event_id, why.code, "dropped", "2026-02-02T10:00:00.000Z"))
        outbox_store.release(connection, CLOUD, [event.event_id], "dropped")

    await exchange._log.database.write(drop)


async def _blocked(exchange: Exchange, session: Any, request: SyncRequest, cursor: Any, why: Exception) -> Any:
    del exchange, session, request, cursor
    raise why


def _emptied_by_the_server(connection: Connection, answer: SyncAnswer, verdict: Verdict, **given: Any) -> int:
    if verdict.reset:
        for table in ("quarantine", "deliveries", "events", "written"):
            connection.execute(text(f"delete from {table}"))
    return _apply(connection, answer, verdict, **given)


async def _acknowledged_when_sent(exchange: Exchange, session: Any, request: SyncRequest) -> SyncAnswer:
    pairs = [(event.event_id, 0) for event in request.events]
    await exchange._log.database.write(lambda connection: outbox_store.acknowledge(connection, CLOUD, pairs))
    return await _send(exchange, session, request)


async def _cursor_first(exchange: Exchange, answer: SyncAnswer, verdict: Verdict) -> int:
    """The cursor in a transaction of its own, before the events that it passes."""
    database = exchange._log.database
    await database.write(lambda connection: outbox_store.move_cursor(connection, CLOUD, verdict.cursor))
    take_in = partial(_apply, answer=answer, verdict=verdict, clock=exchange._clock, device_id=exchange._log.device_id)
    new = await database.write(take_in)
    exchange._log.changed.set()
    return new


def _unsent_dropped(connection: Connection, clock: Any) -> str:
    connection.execute(text("delete from deliveries where state = 'pending'"))
    return log_store.renumber(connection, [], clock)


_taken = Turns.taken


@asynccontextmanager
async def _not_alone(turns: Turns) -> AsyncIterator[None]:
    """At the stored session; whoever logs in still waits for the one before him."""
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
    known = {one.event_id for one in memory.events}
    for one in request.events:
        if one.event_id not in known:
            memory.events.append(replace(one, server_seq=memory.head + 1, server_ts=server_ts, position=0))
    numbers = {one.event_id: one.server_seq or 0 for one in memory.events}
    return tuple((one.event_id, numbers[one.event_id]) for one in request.events)


async def _unlocked(server: SimulatedServer, inner: MemoryCloud, session: Any, request: SyncRequest) -> SyncAnswer:
    """Numbers are taken when a transaction begins, and nobody waits for its end."""
    memory = server.memory_of(session)
    begun = memory.head
    await asyncio.sleep(server._chance.uniform(0.0, server._work))
    before = len(memory.events)
    answer = await inner.sync(session, replace(request, limit=min(request.limit, server.page)))
    memory.events[before:] = [
        replace(one, server_seq=begun + number) for number, one in enumerate(memory.events[before:], start=1)
    ]
    return answer


_refusal = sync.cloud.memory_documents._refusal


def _kept_until_something_is_said(held: Document, sent: SnapshotRow, replica_id: str) -> str | None:
    """As before the text that is replaced was named: what others say or forget does not reach this copy."""
    same = held.replica_id == replica_id and held.through == sent.through_replica_seq
    return "kept" if same else _refusal(held, sent, replica_id)


# --- accounts -----------------------------------------------------------------------------------------------------


async def _at_home_everywhere(*_: Any) -> None:
    return None


def _claimed_by_anybody(account: Any, connection: Connection, session: Any, **_: Any) -> None:
    cloud_store.claim(connection, session.user_id, session.label, timestamp(account._clock.now()))


# --- what people ask ----------------------------------------------------------------------------------------------

_file = sync.archive.filing.write


async def _filed_later(*given: Any) -> Filed:
    """Says that an archive is written and writes it a second later."""

    async def later() -> None:
        await asyncio.sleep(1.0)
        await _file(*given)

    task = asyncio.get_running_loop().create_task(later())
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return Filed(0, "")


def _taken_away_whatever_it_says(line: Line, _: Deed) -> None:
    line.copies.clear()


async def _is_not(*_: Any, **__: Any) -> bool:
    return False


def _does_nothing(*_: Any, **__: Any) -> Any:
    return None


def _always(answer: Any) -> Callable[..., Any]:
    return lambda *_, **__: answer


def _without_sync(module: Any) -> SimpleNamespace:
    """The module `os` with an fsync that does nothing."""
    return SimpleNamespace(**{**vars(module), "fsync": _does_nothing})


def _as_saved(_: ErasedLines, __: Connection, document: MemoryDocument, *___: Any) -> Stripped:
    return Stripped(document)


_ANY_END: Final[Patch] = (sync.document.versions, "lacks_end", _always(answer=False))

BUGS: Final = (
    Bug("an update is acknowledged before it is committed", ((Log, "record_and_count", _acknowledged_early),), 1),
    Bug("no update is recorded", ((Conversation, "update", _update_refused),), 0),
    Bug("a load answers with nothing", ((Conversation, "_look", _emptied),), 0),
    Bug("files are not synced before the rename", ((sync.files, "os", _without_sync(os)),), 7),
    Bug("files are written in place", ((sync.files, "_replace", _in_place),), 8),
    Bug(
        "what is saved soon after our own write is taken for it",
        ((MemoryFile, "_write", _write_noted), (MemoryFile, "_take_in", _blind_after_own_write)),
        15,
    ),
    Bug("a file is written without comparing it again", ((sync.files, "_check", _does_nothing),), 25),
    Bug(
        "every buffer is compared with the newest version",
        ((sync.document.versions, "choose_base", lambda _, ring: ring[-1] if ring else None),),
        7,
    ),
    Bug(
        "a lost file is a mass delete",
        ((sync.document.versions, "is_suspicious", _always(answer=False)), _ANY_END),
        10,
    ),
    Bug("a cut file is an edit", ((sync.document.plan, "is_cut_off", _always(answer=False)), _ANY_END), 10),
    Bug(
        "a file without its end is whole",
        (_ANY_END, (SlowWrite, "is_under_way", _always(answer=False))),
        22,
        besides=PAUSING,
    ),
    Bug("a stale buffer types what was erased", ((ErasedLines, "strip", _as_saved),), 19, besides=ERASED),
    Bug("a clock that goes back takes the order along", ((sync.log.store, "next_hlc", lambda _, ms: hlc_text(ms)),), 0),
    Bug("the order that the server's time changes is not noted", ((log_store, "note_reordered", _does_nothing),), 17),
    Bug(
        "a key given again makes another event", ((sync.document.capture, "keyed_event_id", _always(answer=None)),), 110
    ),
    Bug(
        "text is kept as it came",
        ((Redactor, "_replaced", lambda _, text: text), (_Cleaner, "under", lambda _, __, text: text)),
        39,
    ),
    Bug("events are recorded without a delivery", ((outbox_store, "deliver", _does_nothing),), 0),
    Bug("what is sent counts as acknowledged", ((Exchange, "_send", _acknowledged_when_sent),), 0),
    Bug("the cursor moves to the server's head", ((sync.cloud.exchange, "judge", _cursor_by_head),), 0),
    Bug("the cursor moves before its events are stored", ((Exchange, "_apply", _cursor_first),), 1),
    Bug("what was pulled before is not recognised", ((outbox_store, "replica_numbers", _always(answer={})),), 0),
    Bug("a refused event is dropped", ((Exchange, "_set_aside", _dropped),), 2),
    Bug("a refused event blocks the others", ((Exchange, "_without_culprit", _blocked),), 2),
    Bug("an emptied server empties the device", ((cloud_store, "apply", _emptied_by_the_server),), 4),
    Bug(
        "what a restored server forgot is not sent again",
        ((outbox_store, "send_again_what_was_forgotten", _always(answer=0)),),
        4,
    ),
    Bug("numbers of before a restore stay", ((outbox_store, "drop_stale_numbers", _does_nothing),), 184),
    Bug("a copied home forgets what it has not sent", ((cloud_store, "become_new_replica", _unsent_dropped),), 1),
    Bug("a session is refreshed by whoever comes", ((Turns, "taken", _not_alone),), 7),
    Bug("the server doubles what is sent again", ((sync.cloud.memory, "_push", _pushed_again),), 1),
    Bug(
        "copies of a home share their numbers",
        ((sync.cloud.memory, "_push", _pushed_over), (cloud_store, "_is_forked", _always(answer=False))),
        1,
    ),
    Bug("the server numbers without a lock", ((SimulatedServer, "sync", _unlocked),), 13),
    Bug(
        "the server does not notice that it was restored",
        ((sync.cloud.memory, "_must_reset", _always(answer=False)),),
        4,
    ),
    Bug(
        "the server keeps a document until its device says something",
        ((sync.cloud.memory_documents, "_refusal", _kept_until_something_is_said),),
        0,
    ),
    Bug(
        "whoever logs in takes the memory that is there",
        ((sync.switch, "other_home", _at_home_everywhere), (sync.cloud.account.Account, "_claim", _claimed_by_anybody)),
        4,
    ),
    Bug(
        "a wish to forget leaves the server's row", ((sync.cloud.memory, "_forget", _does_nothing),), 14, besides=ASKING
    ),
    Bug("what was forgotten stays in the write-ahead log", ((Database, "purge", _is_not),), 1, besides=ASKING),
    Bug("a search answers what was forgotten", ((sync.recall.view, "_take_away", _does_nothing),), 13, besides=ASKING),
    Bug(
        "an archive is written after the log let go",
        ((sync.retention.room, "write", _filed_later),),
        67,
        besides=ASKING,
    ),
    Bug("an archive's place is not synced", ((sync.archive.filing, "sync_folder", _does_nothing),), 67, besides=ASKING),
    Bug(
        "of two edits of a line the later takes the other's words",
        ((sync.document.entry_fold, "_merged", lambda _base, _ours, theirs: theirs),),
        0,
        besides=TOGETHER,
    ),
    Bug(
        "a removal takes an edit that it had not seen",
        ((sync.document.entry_fold, "_remove", _taken_away_whatever_it_says),),
        19,
        besides=TOGETHER,
    ),
)
