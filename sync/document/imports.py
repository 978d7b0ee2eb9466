"""Brings a memory file from somewhere else into the log; the document follows it, as it follows what is said here.

What the document says already, in the same place, is known; so is what came by an earlier import, whether or not it
still stands there.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from functools import partial
from typing import Any, Final

from sqlalchemy import Connection

from sync.clock import timestamp, utc_offset_minutes
from sync.document import store
from sync.document.capture import Exchange, Told, exchange_drafts, operation_drafts
from sync.document.deeds import sound_section
from sync.document.foreign import SOURCE, Pair, Piece, Single, pieces
from sync.document.labels import parse_time
from sync.document.ledger import Ledger, start
from sync.document.model import Document
from sync.log import store as log_store
from sync.log.model import Draft, Origin

NOON: Final = time(12)


@dataclass(frozen=True, slots=True)
class BroughtIn:
    """`too_large`: lines that no event can hold; they are left out."""

    found: int
    recorded: int
    too_large: tuple[str, ...] = ()


class Imports(Ledger):
    """The write door for what another installation's document says."""

    async def bring_in(self, document: Document, *, dry_run: bool) -> BroughtIn:
        """Take in what is new in it; in a dry run count it. Raises RedactionFailed, StorageError."""
        given = list(pieces(document))
        taking = partial(self._bring_in, given=given, label=document.label, dry_run=dry_run)
        if dry_run:
            return await self._log.database.read(taking)
        done = await self._in_transaction(taking)
        self._log.changed.set()
        return done

    def _bring_in(
        self, connection: Connection, *, given: Sequence[Piece], label: str | None, dry_run: bool
    ) -> BroughtIn:
        current = store.newest(connection, store.FILE)
        news = self._news(connection, current)
        snapshot = start(current, self._clock) if news is None else news.snapshot
        said = {(sound_section(entry.section), entry.text) for entry in snapshot.entries}
        drafts = {piece: self._draft(piece, label) for piece in given if _stands(piece) not in said}
        ids = [draft.event_id for draft in drafts.values() if draft is not None and draft.event_id is not None]
        known = log_store.known_ids(connection, ids)
        new = {piece: draft for piece, draft in drafts.items() if draft is not None and draft.event_id not in known}
        large = tuple(_stands(piece)[1][:64] for piece, draft in drafts.items() if draft is None)
        if new and not dry_run:
            self._log.record_in(connection, list(new.values()))
        return BroughtIn(len(given), len(new), large)

    def _draft(self, piece: Piece, label: str | None) -> Draft | None:
        """The event of a piece; None where it is too large for one."""
        if isinstance(piece, Single):
            found, _ = operation_drafts([piece.added], self._redactor, Origin.IMPORTED)
            draft = replace(found[0], event_id=f"evt_{piece.digest}") if found else None
        else:
            draft = self._exchange(piece)
        when = datetime.combine(piece.day, NOON) if piece.day is not None else parse_time(label or "")
        return None if draft is None else replace(draft, origin=Origin.IMPORTED, **self._dated(when))

    def _exchange(self, pair: Pair) -> Draft:
        exchange = Exchange(pair.question, pair.answer, idempotency_key=pair.key)
        (draft,) = exchange_drafts(
            exchange,
            self._redactor,
            device_id=SOURCE,
            store_messages=False,
            told=Told(pair.question, pair.answer, pair.question, pair.answer),
            decided={"source": SOURCE},
        )
        return draft

    def _dated(self, when: datetime | None) -> Mapping[str, Any]:
        """A local time as an event has it; nothing where there is none that is past and in the calendar."""
        try:
            moment = None if when is None else self._clock.local(when)
            if moment is None or moment > self._clock.now():
                return {}
            day, offset = moment.date().isoformat(), utc_offset_minutes(moment)
            return {"ts": timestamp(moment), "local_date": day, "utc_offset": offset}
        except OverflowError:
            return {}


def _stands(piece: Piece) -> tuple[tuple[str, ...], str]:
    return piece.line if isinstance(piece, Pair) else (piece.section, piece.text)
