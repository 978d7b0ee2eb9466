"""What a person changed in a page, as compared with the page as it was written last. Pure.

Decisions
    A session is known by its number. One that is new is an addition, one that is missing was deleted; a page that is
    missing as a whole is written again, because folders come and go for other reasons.
    Of a session that is there, the parts that differ are edited; a mark that was written or deleted is set or taken.
    Its time and the project it came from are no things to edit: a page in which they differ is not understood.
    What was taken in already, by somebody who was killed before that was noted, is compared as it was begun: an
    addition whose record there is, and what deeds of the log have said, also where it was forgotten since.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from sync.errors import InvalidInput
from sync.memory.daily.model import Mark
from sync.memory.daily.page import Note, Page, parse

SHOWN_MARKS: Final[tuple[Mark, ...]] = ("important", "outdated")


@dataclass(frozen=True, slots=True)
class Base:
    """A page as it was written: its text, and the records of its sessions by number.

    `deeds`: of one that a hand wrote, the events that are to say so, by the number of the session.
    """

    text: str
    records: Mapping[int, str]
    deeds: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Change:
    """One session's. `record_id` is None for an addition, `note` for a deletion."""

    record_id: str | None
    note: Note | None
    parts: tuple[str, ...] = ()
    marks: tuple[tuple[Mark, bool], ...] = ()

    @property
    def says(self) -> bool:
        """Whether it has words."""
        return self.note is not None and (self.record_id is None or bool(self.parts))


@dataclass(frozen=True, slots=True)
class Told:
    """What a person changed in a page, and the records of the other sessions on it, by number."""

    changes: tuple[Change, ...]
    records: Mapping[int, str]


def changes(bases: Sequence[Base], text: str, day: str, known: Container[str], begun: Base | None = None) -> Told:
    """From the base that is nearest to what stands there now. InvalidInput where the page is not understood.

    `known`: the records that there are. Nearest is where the fewest of them are missing: a base may never have come to
    the disk, and what it alone has was not deleted. `begun`: the page as it was last begun to be taken in, with the
    sessions that were.
    """
    page = parse(text)
    if page.day != day:
        raise InvalidInput("line 1: the page is named after another day", field="page")
    more = _sessions(begun) if begun is not None else {}
    said = {number: more[number] for number in begun.deeds if number in more} if begun is not None else {}
    held = [{**more, **_sessions(base)} for base in bases] or [more]
    found = [_since(before, page) for base in held for before in (base, {**base, **said})]
    return min(found, key=lambda told: (sum(_deletes(change, known) for change in told.changes), len(told.changes)))


def _deletes(change: Change, known: Container[str]) -> bool:
    return change.note is None and change.record_id is not None and change.record_id in known


def _sessions(base: Base) -> dict[int, tuple[str, Note]]:
    """The record of each session of a base and what it said, by number."""
    notes = parse(base.text).notes if base.text else ()
    return {note.number: (base.records[note.number], note) for note in notes if note.number in base.records}


def _since(before: Mapping[int, tuple[str, Note]], page: Page) -> Told:
    after = {note.number: note for note in page.notes}
    found = [Change(record_id, None) for number, (record_id, _) in before.items() if number not in after]
    for number, note in after.items():
        record_id, known = before.get(number, (None, None))
        if record_id is None or known is None:
            found.append(Change(None, note))
        elif note != known:
            found.append(_edit(record_id, known, note))
    return Told(tuple(found), {number: before[number][0] for number in after if number in before})


def _edit(record_id: str, known: Note, note: Note) -> Change:
    if (note.time, note.origin) != (known.time, known.origin):
        raise InvalidInput(f"session {note.number}: its time and its 来源 cannot be edited", field="page")
    marks = tuple((mark, mark in note.marks) for mark in SHOWN_MARKS if (mark in note.marks) != (mark in known.marks))
    return Change(record_id, note, tuple(known.content.changed(note.content)), marks)
