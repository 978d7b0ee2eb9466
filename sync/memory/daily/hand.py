"""What a person changed in a page, as compared with the page as it was written last. Pure.

Decisions
    A session is known by its number. One that is new is an addition, one that is missing was deleted; a page that is
    missing as a whole is written again, because folders come and go for other reasons.
    Of a session that is there, the parts that differ are edited; a mark that was written or deleted is set or taken.
    Its time and the project it came from are no things to edit: a page in which they differ is not understood.
"""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sync.errors import InvalidInput
from sync.memory.daily.model import Mark
from sync.memory.daily.page import Note, Page, parse

SHOWN_MARKS: Final[tuple[Mark, ...]] = ("important", "outdated")


@dataclass(frozen=True, slots=True)
class Base:
    """A page as it was written: its text, and the records of its sessions by number."""

    text: str
    records: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Change:
    """One session's. `record_id` is None for an addition, `note` for a deletion."""

    record_id: str | None
    note: Note | None
    parts: tuple[str, ...] = ()
    marks: tuple[tuple[Mark, bool], ...] = ()


def changes(bases: Sequence[Base], text: str, day: str, known: Container[str]) -> list[Change]:
    """From the base that is nearest to what stands there now. InvalidInput where the page is not understood.

    `known`: the records that there are. Nearest is where the fewest of them are missing: a base may never have come to
    the disk, and what it alone has was not deleted.
    """
    page = parse(text)
    if page.day != day:
        raise InvalidInput("line 1: the page is named after another day", field="page")
    found = [_since(base, page) for base in bases] or [_since(Base("", {}), page)]
    return min(found, key=lambda told: (sum(_deletes(change, known) for change in told), len(told)))


def _deletes(change: Change, known: Container[str]) -> bool:
    return change.note is None and change.record_id is not None and change.record_id in known


def _since(base: Base, page: Page) -> list[Change]:
    before = {note.number: note for note in parse(base.text).notes} if base.text else {}
    after = {note.number: note for note in page.notes}
    found = [Change(base.records[number], None) for number in before if number not in after and number in base.records]
    for number, note in after.items():
        record_id, known = base.records.get(number), before.get(number)
        if record_id is None or known is None:
            found.append(Change(None, note))
        elif note != known:
            found.append(_edit(record_id, known, note))
    return found


def _edit(record_id: str, known: Note, note: Note) -> Change:
    if (note.time, note.origin) != (known.time, known.origin):
        raise InvalidInput(f"session {note.number}: its time and its 来源 cannot be edited", field="page")
    marks = tuple((mark, mark in note.marks) for mark in SHOWN_MARKS if (mark in note.marks) != (mark in known.marks))
    return Change(record_id, note, tuple(known.content.changed(note.content)), marks)
