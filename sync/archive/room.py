"""Everything as one file, and back into a log; what other programs kept through the same door.

Decisions
    An event that is known by its id, and says something here, is left as it is, so the same file twice changes nothing
    and a broken import is gone on with by starting it again. Events are taken in batches; one batch is a transaction.
    What the exporting device said itself, also before the app gave it the id that it has, is said by this device from
    now on, under its ids, times, days and origins: it gets a place in this log, is delivered to this account's cloud
    and stands in this document. The device it came from stays in it as `imported_device_id`. What the exporter had
    heard from other devices stays theirs, in its place and with whole messages, as if it had been pulled: it is not
    sent for them, and a pull that brings it again knows it. Where another event has that place here, it is refused.
    What retention took from this device says nothing in the log, and is in its archives: an export leaves it out, or
    its blank rows would stand elsewhere in the way of its words. Where such a row stands here all the same, an archive
    that has the words fills it in again; its lines in the document and the daily records stay as they are. It goes out
    where it was never sent; a cloud that holds it, blank or not, keeps what it has, since it skips the ids it knows.
    What a person wished to be forgotten comes back from no file, and what was corrected comes corrected.
    Everything is checked and redacted anew, whoever wrote the file. Of own messages only the beginning is kept, as of
    what is said here, unless the user has them stored. What was decided about an account's devices
    (`device_…`) stays behind. Document versions and settings are in the archive for people and other programs; the
    document here grows from the events, and no import changes a setting or puts a file in the place of another.
"""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
from sqlalchemy import Connection

from sync.archive import pages, sources
from sync.archive.container import ABOUT, About, Reading, Writing, is_archive
from sync.archive.conversations import Talk, talks
from sync.archive.filing import IN_A_PART, about, events_part, write
from sync.archive.model import Exported, Heard, Taken
from sync.archive.talking import gone_on, said
from sync.clock import Clock
from sync.document import store as document_store
from sync.document.app_cache import read_content
from sync.document.foreign import is_memory
from sync.document.forgetting import expired
from sync.document.imports import Imports
from sync.document.parse import parse
from sync.errors import DocumentUntouchable, InvalidInput, RedactionFailed
from sync.files import told
from sync.jobs import stoppable
from sync.log import blank_store, outbox_store, store
from sync.log.envelope import UNDECODABLE, from_wire
from sync.log.intake import Intake
from sync.log.log import Log
from sync.log.model import CLOUD, FORGOTTEN, TAKING_AWAY, Draft, Event, Origin, Query, stays_behind
from sync.log.withdrawn import REDACTED, TAKING_BACK, Withdrawn, cleaned
from sync.memory.daily.shelf import Shelf
from sync.recall.view import RecallView
from sync.redaction import Redactor
from sync.tree.store import RULES as TREE_RULES

AT_ONCE: Final = 500  # events in one transaction
KNOWN: Final = (
    "Give an archive of this program, a memory file or the app's database, a folder of daily pages,"
    " or the conversations.json (or its zip) of Claude or ChatGPT."
)
ORIGINS: Final = frozenset(Origin)

ARCHIVE: Final = "archive"  # the source that this program writes itself
CAME_FROM: Final = "imported_device_id"

Item = Draft | Event  # to be said by this device, or another's


class Archive:
    """One profile's exports and imports."""

    def __init__(self, events: Log, intake: Intake, imports: Imports, *, clock: Clock) -> None:
        self._log = events
        self._intake = intake
        self._imports = imports
        self._clock = clock

    async def export(
        self, path: Path, *, document: str, settings: Mapping[str, Any], passphrase: str | None, heard: Heard
    ) -> Exported:
        """Write everything into a new file. Raises InvalidInput where there is one already, StorageError."""
        head = await self._log.newest_position()
        counts = [0, 0]

        async def fill(writing: Writing) -> None:
            await asyncio.to_thread(writing.add, ABOUT, await about(self._log, head, self._clock))
            counts[0] = await self._write_events(writing, head, heard)
            counts[1] = await self._write_document(writing, document)
            await asyncio.to_thread(writing.add, "settings.json", msgspec.json.encode(settings))

        filed = await write(path, passphrase, fill)
        return Exported(str(path), counts[0], counts[1], filed.bytes, filed.sha256, passphrase is not None)

    async def _write_events(self, writing: Writing, head: int, heard: Heard) -> int:
        archived = await self._log.database.read(expired)
        after = number = events = 0
        while after < head:
            page = await self._log.read(Query(after=after, limit=IN_A_PART))
            found = [event for event in page.events if event.position <= head]
            if not found:
                break
            after = found[-1].position
            if left := [event for event in found if event.payload or event.event_id not in archived]:
                number, events = number + 1, events + len(left)
                await asyncio.to_thread(writing.add, *events_part(number, left))
            heard(after, head)
        return events

    async def _write_document(self, writing: Writing, document: str) -> int:
        await asyncio.to_thread(writing.add, "documents/current.md", document.encode())
        after = number = versions = 0
        while found := await self._log.database.read(partial(document_store.kept, after=after, limit=10)):
            number, after, versions = number + 1, int(found[-1]["version"]), versions + len(found)
            lines = b"".join(msgspec.json.encode(version) + b"\n" for version in found)
            await asyncio.to_thread(writing.add, f"documents/versions-{number:06}.jsonl", lines)
        return versions

    async def take(self, path: Path, *, passphrase: str | None, dry_run: bool, heard: Heard) -> Taken:
        """Bring in what lies there, recognised by what is in it. Raises InvalidInput, StorageError."""
        if await asyncio.to_thread(path.is_dir):
            return await self._take_pages(path, await asyncio.to_thread(pages.files, path), dry_run, heard)
        with told(path):
            beginning = await asyncio.to_thread(sources.beginning, path)
        if is_archive(beginning):
            return await self._take_archive(path, passphrase=passphrase, dry_run=dry_run, heard=heard)
        if beginning.startswith(sources.SQLITE):
            return await self._take_document("app_cache", await read_content(path) or b"", dry_run)
        if not sources.is_json(beginning):
            data = await asyncio.to_thread(sources.text, path)
            if pages.is_page(data.decode(errors="replace")):
                return await self._take_pages(path, [path], dry_run, heard)
            return await self._take_document("memory_file", data, dry_run)
        return await self._take_conversations(path, dry_run=dry_run, heard=heard)

    async def _take_document(self, source: str, data: bytes, dry_run: bool) -> Taken:
        """A memory file's, wherever it was kept."""
        try:
            document = parse(data)
        except DocumentUntouchable as error:
            raise InvalidInput(error.message, field="path", hint=KNOWN) from error
        if not is_memory(document):
            raise InvalidInput("there is no memory in it", field="path", hint=KNOWN)
        done = await self._imports.bring_in(document, dry_run=dry_run)
        taken = Taken(source, found=done.found, recorded=done.recorded, dry_run=dry_run)
        for line in done.too_large:
            taken.refuse(line, "the line is too large for an event")
        taken.known = done.found - done.recorded - taken.refused
        return taken

    async def _take_pages(self, path: Path, files: Sequence[Path], dry_run: bool, heard: Heard) -> Taken:
        """Daily pages, one after the other; one that is not understood is told and stops no other."""
        if not files:
            raise InvalidInput("there is no daily page in this folder", field="path", hint=KNOWN)
        taken, project = Taken("daily_pages", dry_run=dry_run), await asyncio.to_thread(pages.project_of, path)
        book = await Shelf(self._log).book()
        here = {(*record.moment, record.content.topic) for record in (*book.records.values(), *book.gone.values())}
        for number, file in enumerate(files, 1):
            with told(file):
                data = await asyncio.to_thread(sources.text, file)
            try:
                text = data.decode()
                given = list(pages.drafts(text, project, self._intake, self._clock, taken.refuse))
            except (InvalidInput, UnicodeDecodeError) as error:
                taken.refuse(file.name, error.message if isinstance(error, InvalidInput) else "it is not text in UTF-8")
                continue
            taken.conversations += len(given)
            new = [draft for moment, draft in given if moment not in here]
            taken.found += len(given) - len(new)
            taken.known += len(given) - len(new)
            await self.record(new, taken)
            heard(number, len(files))
        return taken

    async def _take_conversations(self, path: Path, *, dry_run: bool, heard: Heard) -> Taken:
        """Claude's or ChatGPT's, one conversation after the other."""
        found = await stoppable(lambda go_on: list(talks(sources.conversations(path, go_on))))
        if not found:
            raise InvalidInput("there is no conversation of Claude or ChatGPT in it", field="path", hint=KNOWN)
        taken = Taken(found[0].program, conversations=len(found), dry_run=dry_run)
        for number, talk in enumerate(found, 1):
            divided = await self._log.database.read(partial(_gone_on, talk=talk))
            await self.record(await asyncio.to_thread(self._drafts, divided, taken), taken)
            heard(number, len(found))
        return taken

    def _drafts(self, talk: Talk, taken: Taken) -> list[Draft]:
        try:
            return list(said(talk, self._intake))
        except (InvalidInput, RedactionFailed) as error:
            taken.refuse(talk.talk_id, error.message)
            return []

    async def _take_archive(self, path: Path, *, passphrase: str | None, dry_run: bool, heard: Heard) -> Taken:
        """Bring an archive in. Raises InvalidInput, before anything is recorded, where it is not whole."""
        reading = await stoppable(partial(Reading.read_through, path, passphrase))
        taken, done = Taken(ARCHIVE, dry_run=dry_run), 0
        parts = reading.parts()
        while (part := await asyncio.to_thread(next, parts, None)) is not None:
            name, data = part
            if name.startswith("events/"):
                items, cut = await stoppable(partial(self._items, data, reading.about, taken))
                done += data.count(b"\n")
                await self.record(items, taken, cut)
                heard(done, reading.about.head)
        return taken

    async def record(self, items: Sequence[Item], taken: Taken, cut: Collection[str] = ()) -> None:
        """Take items in, batch after batch; in a dry run count what would be. `cut`: the ids of shortened messages."""
        for start in range(0, len(items), AT_ONCE):
            batch = items[start : start + AT_ONCE]
            taking = partial(self._take, items=batch, fills=taken.source == ARCHIVE, dry_run=taken.dry_run)
            new, displaced = await (
                self._log.database.read(taking) if taken.dry_run else self._log.database.write(taking)
            )
            taken.found += len(batch)
            taken.recorded += len(new)
            taken.known += len(batch) - len(new) - len(displaced)
            taken.shortened += len(new.intersection(cut))
            for event_id in displaced:
                taken.refuse(event_id, "its place is another event's here")
            if new and not taken.dry_run:
                self._log.changed.set()

    def _take(
        self, connection: Connection, *, items: Sequence[Item], fills: bool, dry_run: bool
    ) -> tuple[set[str | None], list[str]]:
        """The ids of what is new or `fills` a blank row, and of others' events whose numbers other events have here.

        What others said comes first: among their numbers may be some of a replica that this one was, or is.
        """
        ids = [item.event_id for item in items if item.event_id is not None]
        known = store.known_ids(connection, ids)
        again = _again(connection, items, self._log.device_id) if fills else []
        withdrawn = _withdrawn(connection, ids, again)
        back = [event for event in map(withdrawn.left_of, again) if event.payload]
        unknown = {item.event_id: item for item in items if item.event_id not in known}.values()
        new = [item for one in unknown if (item := _left(one, withdrawn, self._intake.redactor)) is not None]
        theirs = [item for item in new if isinstance(item, Event)]
        free: dict[tuple[str, int], Event] = {}
        for event in theirs:
            if not store.any_taken(connection, [event]):
                free.setdefault(event.number, event)
        displaced = [event.event_id for event in theirs if free.get(event.number) is not event]
        if not dry_run:
            store.add_all(connection, list(free.values()))
            store.witness(connection, list(free.values()), self._clock)
            self._log.record_in(connection, [item for item in new if isinstance(item, Draft)])
            self._bring_back(connection, back)
        taken = {item.event_id for item in new} | {event.event_id for event in back}
        return taken.difference(displaced), displaced

    def _bring_back(self, connection: Connection, back: Sequence[Event]) -> None:
        """Fill blank rows in. Views that have passed their places are built anew: nothing else tells them."""
        if back:
            blank_store.bring_back(connection, back)
            outbox_store.deliver_again(connection, CLOUD, [event.event_id for event in back])
            store.note_reordered(connection, self._clock)  # what a shared document is made of
            for view in (f"{RecallView.name}{store.RULES}", TREE_RULES):
                store.set_watermark(connection, view, 0, self._clock)

    def _items(
        self, lines: bytes, about: About, taken: Taken, go_on: Callable[[], None]
    ) -> tuple[list[Item], set[str]]:
        """What the lines say, and the ids of the messages of which only the beginning is kept here."""
        found: list[Item] = []
        cut: set[str] = set()
        for line in lines.splitlines():
            go_on()
            try:
                value = msgspec.json.decode(line)
            except UNDECODABLE:
                taken.refuse("an event", "its line is no JSON")
                continue
            if not isinstance(value, dict) or stays_behind(value.get("type")):
                continue
            try:
                event = from_wire(value)
                item = self._item(value, event, about)
                found.append(item)
                if isinstance(item, Draft) and self._intake.shortens(event.type, event.payload):
                    cut.add(str(item.event_id))
            except (InvalidInput, RedactionFailed) as error:
                taken.refuse(str(value.get("event_id")), error.message)
        return found, cut

    def _item(self, value: dict[str, Any], event: Event, about: About) -> Item:
        is_ours = event.device_id == self._log.device_id or about.is_own(event)
        intake = self._intake if is_ours else replace(self._intake, store_messages=True)
        origin = value["origin"] if value["origin"] in ORIGINS else str(Origin.IMPORTED)
        given = {name: item for name, item in value.items() if name != "session_id" or item}
        draft = intake.draft({**given, "origin": origin}, known=True)
        draft = replace(draft, payload=cleaned(event, intake.redactor)) if event.type in TAKING_BACK else draft
        if not is_ours:
            extra = draft.extra.value if draft.extra else {}
            path = None if draft.project_path is None else str(draft.project_path)
            return replace(event, payload=draft.payload.value, project_path=path, extra=extra, server_seq=None)
        if event.device_id != self._log.device_id:
            marked = {**(draft.extra.value if draft.extra else {}), CAME_FROM: event.device_id}
            draft = replace(draft, extra=self._intake.redactor.payload(marked))
        return draft


def _gone_on(connection: Connection, *, talk: Talk) -> Talk:
    return gone_on(talk, partial(store.find, connection))


def _again(connection: Connection, items: Sequence[Item], device_id: str) -> list[Event]:
    """Events that are blank here, with the words that they have in these items."""
    given = {item.event_id: item for item in items if item.event_id is not None and _said(item)}
    found = []
    for held in blank_store.blank_among(connection, list(given)):
        item = given[held.event_id]
        extra = {} if item.extra is None else dict(item.extra.value if isinstance(item, Draft) else item.extra)
        if held.device_id != device_id:  # it stands here as what its own device said
            extra.pop(CAME_FROM, None)
        if held.type == item.type:
            found.append(replace(held, payload=_said(item), extra=extra))
    return found


def _withdrawn(connection: Connection, event_ids: Collection[str], again: Sequence[Event]) -> Withdrawn:
    """What the log has taken back of these events. A correction that comes back itself counts, behind the log's own."""
    found = Withdrawn()
    found.hear(store.of_types(connection, [FORGOTTEN], after=0))
    if not found.forgotten.isdisjoint(event_ids):
        found.hear(again)
        found.hear(store.of_types(connection, [REDACTED], after=0))
    return found


def _left(item: Item, withdrawn: Withdrawn, redactor: Redactor) -> Item | None:
    """What may be recorded of an item that is unknown here; None where a person has wished it to be forgotten."""
    if item.event_id is None or item.event_id not in withdrawn.forgotten or item.type in TAKING_AWAY:
        return item
    payload = withdrawn.corrected(item.event_id)
    if payload is None:
        return None if _said(item) else item
    if isinstance(item, Draft):
        return replace(item, payload=redactor.payload(payload))
    return replace(item, payload=payload)


def _said(item: Item) -> Mapping[str, Any]:
    return item.payload.value if isinstance(item, Draft) else item.payload
