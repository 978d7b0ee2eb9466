"""What every transaction that makes a new version of the document has in common.

`Versions` does it for the file, `CloudVersions` for the copy on the server: the events of an edit, the versions that
contain it and the watermark they stand for are recorded in one transaction of the caller's. What is behind the
watermark stands in the newest version, as it was typed; what comes after it was never typed into this document.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Final, TypeVar

from sqlalchemy import Connection

from sync.clock import Clock, milliseconds, timestamp, uuid7
from sync.db.tables import FOLLOWED, RECOVERY
from sync.document import forgetting, parked, store
from sync.document.capture import ADDED, EXCHANGE, REMOVED, applied, exchange_lines, operation_drafts, repeated_by
from sync.document.clean_up import DAY_FOLDED, fold_away, imported_lines, old_days
from sync.document.corrections import with_lines
from sync.document.deeds import FOLDED
from sync.document.edit import edit_entry, insert_entry, remove_entry, set_footer
from sync.document.erased import ErasedLines, Stripped
from sync.document.forgetting import Wish
from sync.document.labels import later, next_label, time_label
from sync.document.model import (
    Document,
    Entry,
    EntryAdded,
    EntryEdited,
    EntryRemoved,
    Operation,
    Plan,
    Snapshot,
    Version,
    sha256_of,
)
from sync.document.parse import parse
from sync.document.past import Past
from sync.document.plan import choose_base, plan
from sync.document.recovery import adopted
from sync.document.returned import returned
from sync.document.sharing import News, Sharing
from sync.document.template import template
from sync.log import outbox_store
from sync.log import store as log_store
from sync.log.envelope import bounded_time, event_ms
from sync.log.log import Log
from sync.log.model import Draft, Event, Origin
from sync.redaction import Redactor

FOLLOWER: Final = FOLLOWED
RULES: Final = "redaction.rules"  # the rules of redaction that the whole log was last read under

T = TypeVar("T")

LAST: Final = ""  # behind which no entry stands
_LETTERS: Final = str.maketrans("0123456789abcdef", "abcdefghijklmnop")


@dataclass(frozen=True, slots=True)
class DocumentView:
    """The newest known document. `exists`: there is a file or an event behind it, not only the template."""

    snapshot: Snapshot
    exists: bool
    updated_at: str | None
    version: int  # the number of the newest version

    @property
    def document(self) -> Document:
        return self.snapshot.document

    @property
    def text(self) -> str:
        return self.document.text

    @property
    def sha256(self) -> str:
        return sha256_of(self.document)


@dataclass(frozen=True, slots=True)
class Edited:
    """What an edit came to: its operations, and the hash of the result."""

    operations: tuple[Operation, ...]
    sha256: str


@dataclass(frozen=True, slots=True)
class Footing:
    """What all ledgers of one document stand on. `keep`: versions in a ring; `sharing`: None for a device's own.

    `parked`: the profile's folder for documents of its that turned up where they could not stay.
    """

    log: Log
    redactor: Redactor
    clock: Clock
    keep: int
    past: Past
    sharing: Sharing | None = None
    parked: Path | None = None


class Ledger:
    """The newest version, the log it follows, and the ring it is appended to. For subclasses."""

    def __init__(self, footing: Footing) -> None:
        self._log, self._clock, self._keep = footing.log, footing.clock, footing.keep
        self._redactor = footing.redactor.for_leaving()
        self._sharing, self._past, self._parked = footing.sharing, footing.past, footing.parked
        self._erased = ErasedLines(self._redactor.clean, self._clock)

    async def has_written(self, digest: str) -> bool:
        """Whether bytes with this hash are a version of this document."""
        return await self._log.database.read(lambda connection: store.find(connection, store.FILE, digest) is not None)

    async def _edited(self, work: Callable[[Connection], Edited | None]) -> Edited | None:
        edited = await self._in_transaction(work)
        if edited is not None and edited.operations:
            self._log.changed.set()
        return edited

    async def _in_transaction(self, work: Callable[[Connection], T]) -> T:
        def working(connection: Connection) -> T:
            try:
                return work(connection)
            except BaseException:
                self._forget_folded()  # the database may run the work again
                raise

        try:
            return await self._log.database.write(working)
        except BaseException:
            self._forget_folded()
            raise

    def _forget_folded(self) -> None:
        """What was folded may have seen events that were not committed."""
        self._past.forget()
        if self._sharing is not None:
            self._sharing.forget()

    def _followed(self, connection: Connection, *, beyond: str | None = None) -> Version | None:
        """The newest version, with all that the log has. `beyond`: a label that the file has; see `_finished`."""
        current = store.newest(connection, store.FILE)
        news = self._news(connection, current)
        if news is None:
            return current
        log_store.set_watermark(connection, FOLLOWER, news.position, self._clock)
        store.drop_as_said(connection, news.position)
        is_named = self._sharing is None and log_store.watermark(connection, RECOVERY) > 0
        if is_named and current is not None and news.snapshot.document == current.snapshot.document:
            return self._append(connection, news.snapshot, "log")
        return self._append(connection, self._finished(connection, news.snapshot, current, beyond), "log")

    def _shown(self, connection: Connection, first: Document | None = None) -> DocumentView:
        """The newest version with what the log has besides, without what it asks to forget; else `first`."""
        current = store.newest(connection, store.FILE)
        if current is None and first is not None and self._sharing is None:
            unnamed = tuple(f"line {number}" for number in range(len(first.entries)))
            current = Version.of(0, Snapshot(first, unnamed))
        news = self._news(connection, current)
        snapshot = start(current, self._clock) if news is None else news.snapshot
        for asked in forgetting.waiting(connection, self._log.device_id):
            snapshot = asked.cleared(snapshot)
        updated = store.newest_at(connection, store.FILE) if news is None else news.ts
        number = 0 if current is None else current.number
        return DocumentView(snapshot, exists=(news or current) is not None, updated_at=updated, version=number)

    def _pending(self, connection: Connection) -> list[Event]:
        mark = log_store.watermark(connection, FOLLOWER)
        return log_store.of_device(connection, self._log.device_id, after=mark, types=FOLDED)

    def _news(self, connection: Connection, current: Version | None) -> News | None:
        """What the log makes of the newest version; None where that has it all."""
        if self._sharing is not None:
            return self._sharing.news(connection, current)
        pending = self._pending(connection)
        if not pending:
            return None
        said = store.as_said(connection, [event for event in pending if event.type == EXCHANGE])
        typed = [event for event in pending if event.type != EXCHANGE]
        local, begun = start(current, self._clock), log_store.watermark(connection, RECOVERY)
        if not typed and not begun:
            return News(applied(local, said), pending[-1].ts, pending[-1].position)
        with self._past.folded(connection) as fold:
            if begun:
                told = returned(applied(start(None, self._clock), said), typed, fold, self._redactor.clean)
                local = adopted(local, told, fold, self._redactor.clean)
                said = [
                    event for event in said if repeated_by(event) is None or event_ms(event) > begun
                ]  # counted there
            snapshot = returned(applied(local, said), typed, fold, self._redactor.clean)
        return News(snapshot, pending[-1].ts, pending[-1].position)

    def _is_behind(self, connection: Connection, current: Version | None) -> bool:
        if self._sharing is not None:
            return self._sharing.is_behind(connection, current)
        if self._pending(connection):
            return True
        self._past.rest()
        return False

    def _forget(self, connection: Connection) -> Wish | None:
        """Carry out the next of what the log asks to forget; what that was."""
        if (asked := forgetting.wish(connection, self._log.device_id)) is not None:
            forgetting.correct(connection, asked)
            self._past.forget()  # what it has folded said the old words
            if asked.payloads and self._sharing is not None:
                self._sharing.forget()  # and so did this
            current = self._reworded(connection, asked)
            if (planned := forgetting.planned(asked, current)) is not None:
                self._record_here(connection, self._removals(planned))
                self._append(connection, self._finished(connection, planned.snapshot, current), "forgotten")
            if asked.quotes:
                self._log.record_in(connection, forgetting.wishes(asked.quotes, self._redactor))
            if self._parked is not None and self._parked.is_dir():  # where that fails the wish waits
                parked.forget(self._parked, store.holding(connection, asked.concerned), asked.cleared, self._new_id)
            lost = forgetting.carry_out(connection, asked, self._clock)
            self._erased.note(connection, lost)
            self._past.forget()  # folded again meanwhile, with what has just been blanked
            if asked.entry_ids:
                self._fold_again(connection)
        return asked

    def _removals(self, planned: Plan) -> list[Draft]:
        """The removals of erased lines. They name no hash, which would outlast the words."""
        shared = {} if self._sharing is None else {"shared": True}
        named = ({"entry_id": one.entry_id, "section": list(one.section), **shared} for one in planned.operations)
        return [Draft(REMOVED, self._redactor.payload(payload), origin=Origin.USER) for payload in named]

    def _fold_again(self, connection: Connection) -> None:
        """A shared document is made of what the log says now: where a line stood that was forgotten, nobody knows.

        Otherwise it would differ from that of a device which has heard of the line only after it was blank.
        """
        current = store.newest(connection, store.FILE)
        if self._sharing is None or current is None:
            return
        self._sharing.forget()
        snapshot = self._finished(connection, current.snapshot, current)
        if snapshot != current.snapshot:
            self._append(connection, snapshot, "forgotten")

    def _reworded(self, connection: Connection, asked: Wish) -> Version | None:
        """The newest version, with corrected words where the old ones stood."""
        current = self._followed(connection)
        if current is None or not asked.payloads:
            return current
        snapshot = with_lines(current.snapshot, asked.rewordings)
        if self._sharing is None and snapshot == current.snapshot:
            return current
        return self._append(connection, self._finished(connection, snapshot, current), "redacted")

    def _fold_days(self, connection: Connection, today: date, keep_days: int) -> bool:
        """Fold the days that are due, as many as go at a time; whether there were any.

        They are due by a bounded time: other devices fold them too, also if this one's clock is years ahead.
        """
        current = self._followed(connection)
        if current is None:
            return False
        now = self._clock.now()
        bounded = bounded_time(now, outbox_store.server_time(connection))

        def said(event_id: str) -> tuple[str, str] | None:
            event = log_store.find(connection, event_id)
            return None if event is None else exchange_lines(event)

        today = min(today, bounded.astimezone(now.tzinfo).date())
        imported = imported_lines(log_store.of_types(connection, [ADDED], after=0), self._redactor.clean)
        days = old_days(current.snapshot, today, keep_days, said, imported)
        if not days:
            return False
        snapshot, payloads = fold_away(current.snapshot, days)
        ts = timestamp(bounded) if bounded < now else None
        drafts = [Draft(DAY_FOLDED, self._redactor.payload(payload), ts=ts, origin=Origin.TOOL) for payload in payloads]
        self._record_here(connection, drafts)
        self._append(connection, self._finished(connection, snapshot, current), "folded")
        return True

    def _record_aside(self, connection: Connection, document: Document) -> None:
        current = self._followed(connection)
        if current is not None:
            ring = store.candidates(connection, store.FILE, sha256_of(document), document.label)
            stripped = self._stripped(connection, document, choose_base(document, ring))
            self._append(connection, plan(current, current, stripped.document, self._new_id).observed, "hand")
            self._append(connection, self._finished(connection, current.snapshot, current), "restored")

    def _stripped(self, connection: Connection, document: Document, base: Version | None, digest: str = "") -> Stripped:
        """What an editor saved, without the lines that were erased since it loaded its `base`.

        `digest`: the hash by which it names the base, if it does. One that names none may have loaded any version.
        """
        if not self._erased.is_noted(connection):
            return Stripped(document)
        seen = base or store.newest(connection, store.FILE)
        ring = store.candidates(connection, store.FILE, digest, document.label)
        known = [one for one in (base, *ring) if one is not None]
        named = (one for one in known if one.sha256 == digest or one.label == document.label is not None)
        number = next((one.number for one in named), None)
        return self._erased.strip(connection, document, seen.snapshot if seen else None, number)

    def _record(self, connection: Connection, planned: Plan, base: Version | None, origin: Origin) -> None:
        """Record what can be an event; an entry that is too large to be one stays in the file."""
        if self._sharing is not None:
            drafts = self._sharing.drafts(connection, planned, base, origin)
        else:
            drafts, _ = operation_drafts(planned.operations, self._redactor, origin)
        if drafts:
            self._record_here(connection, drafts)

    def _record_here(self, connection: Connection, drafts: Sequence[Draft]) -> None:
        """Record what the next version says in its own words. The caller has followed the log in this transaction."""
        self._log.record_in(connection, drafts)
        log_store.set_watermark(connection, FOLLOWER, log_store.newest_position(connection), self._clock)

    def _append(self, connection: Connection, snapshot: Snapshot, cause: str, *, digest: str | None = None) -> Version:
        first = store.newest(connection, store.FILE) is None  # versions of another surface may have come before
        version = store.append(connection, store.FILE, snapshot, cause, self._clock, self._keep, digest=digest)
        if first:
            log_store.set_watermark(connection, RULES, self._redactor.rules, self._clock)
        return version

    def _finished(
        self, connection: Connection, snapshot: Snapshot, current: Version | None, beyond: str | None = None
    ) -> Snapshot:
        """What a version with these entries reads like, with a footer of its own: the label names the version.

        `beyond`: a label that was given already; the version that bore it may be lost, and no other gets its name.
        """
        shared = None if self._sharing is None else self._sharing.finished(connection, snapshot)
        if shared is not None:
            return shared
        return set_footer(snapshot, next_label(later(current.label if current else None, beyond), self._clock.now()))

    def _new_id(self) -> str:
        """`ent_` and 32 letters: no digits, so that no redaction rule can take an id for a number."""
        digits = uuid7(milliseconds(self._clock.now()), self._clock.random_bytes).hex
        return "ent_" + digits.translate(_LETTERS)


def start(current: Version | None, clock: Clock) -> Snapshot:
    return current.snapshot if current else Snapshot(parse(template(time_label(clock.now()))))


def elsewhere(planned: Plan, base: Version | None, current: Version | None) -> Plan:
    """A plan for another surface, whose layout is not ours: a line moves here only where a hand has moved it there."""
    was = {entry.entry_id: entry.section for entry in base.snapshot.entries} if base else {}
    there = {entry.entry_id: entry.section for entry in planned.observed.entries}
    here = {entry.entry_id: entry for entry in current.snapshot.entries} if current else {}

    def meant(one: Operation) -> Operation | None:
        now, stands = here.get(one.entry_id), there.get(one.entry_id)
        if not isinstance(one, EntryEdited) or now is None:
            return one
        is_moved = stands is not None and was.get(one.entry_id, stands) != stands
        edit = one if is_moved else replace(one, section=now.section)
        return edit if (edit.text, edit.section) != (now.text, now.section) else None

    found = (meant(one) for one in planned.operations)
    return replace(planned, operations=tuple(one for one in found if one is not None))


def _with_edit(snapshot: Snapshot, edit: EntryEdited) -> Snapshot:
    """The entry with its new text; where it stands in another section now, as the last one there."""
    (entry,) = (entry for entry in snapshot.entries if entry.entry_id == edit.entry_id)
    if entry.section == edit.section:
        return edit_entry(snapshot, edit.entry_id, edit.text)
    there = replace(entry, text=edit.text, section=edit.section)
    return insert_entry(remove_entry(snapshot, edit.entry_id), there, LAST)


def folded(snapshot: Snapshot, operations: Sequence[Operation]) -> Snapshot:
    """Operations of another surface applied to this one; what is gone here and edited there comes back."""
    for operation in operations:
        here = operation.entry_id in snapshot.ids
        match operation:
            case EntryAdded() if not here:
                entry = Entry(operation.entry_id, operation.text, operation.section)
                snapshot = insert_entry(snapshot, entry, operation.after)
            case EntryEdited() if here:
                snapshot = _with_edit(snapshot, operation)
            case EntryEdited():
                snapshot = insert_entry(snapshot, Entry(operation.entry_id, operation.text, operation.section), None)
            case EntryRemoved() if here:
                snapshot = remove_entry(snapshot, operation.entry_id)
            case _:
                continue  # added or removed on both sides
    return snapshot
