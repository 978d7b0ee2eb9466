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

from sync.daily.model import Mark
from sync.daily.pages.page_format import DayPage, PageSession, parse
from sync.errors import InvalidInput

SHOWN_MARKS: Final[tuple[Mark, ...]] = ("important", "outdated")


@dataclass(frozen=True, slots=True)
class PageBase:
    """A page as it was written: its text, and the records of its sessions by number.

    `deeds`: of one that a hand wrote, the events that are to say so, by the number of the session.
    """

    text: str
    record_ids: Mapping[int, str]
    change_ids: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PageChange:
    """One session's. `record_id` is None for an addition, `note` for a deletion."""

    record_id: str | None
    session: PageSession | None
    parts: tuple[str, ...] = ()
    marks: tuple[tuple[Mark, bool], ...] = ()

    @property
    def has_content(self) -> bool:
        """Whether it has words."""
        return self.session is not None and (self.record_id is None or bool(self.parts))


@dataclass(frozen=True, slots=True)
class PageDiff:
    """What a person changed in a page, and the records of the other sessions on it, by number."""

    changes: tuple[PageChange, ...]
    record_ids: Mapping[int, str]


def diff_page(
    bases: Sequence[PageBase], text: str, day: str, known_record_ids: Container[str], unfinished: PageBase | None = None
) -> PageDiff:
    """From the base that is nearest to what stands there now. InvalidInput where the page is not understood.

    `known`: the records that there are. Nearest is where the fewest of them are missing: a base may never have come to
    the disk, and what it alone has was not deleted. `begun`: the page as it was last begun to be taken in, with the
    sessions that were.
    """
    page = parse(text)
    if page.day != day:
        raise InvalidInput("line 1: the page is named after another day", field="page")
    more = _sessions_of(unfinished) if unfinished is not None else {}
    said = (
        {number: more[number] for number in unfinished.change_ids if number in more} if unfinished is not None else {}
    )
    held = [{**more, **_sessions_of(base)} for base in bases] or [more]
    found = [_diff_since(before, page) for base in held for before in (base, {**base, **said})]
    return min(
        found,
        key=lambda told: (sum(_is_deletion(change, known_record_ids) for change in told.changes), len(told.changes)),
    )


def _is_deletion(change: PageChange, known_record_ids: Container[str]) -> bool:
    return change.session is None and change.record_id is not None and change.record_id in known_record_ids


def _sessions_of(base: PageBase) -> dict[int, tuple[str, PageSession]]:
    """The record of each session of a base and what it said, by number."""
    notes = parse(base.text).sessions if base.text else ()
    return {note.number: (base.record_ids[note.number], note) for note in notes if note.number in base.record_ids}


def _diff_since(before: Mapping[int, tuple[str, PageSession]], page: DayPage) -> PageDiff:
    after = {note.number: note for note in page.sessions}
    found = [PageChange(record_id, None) for number, (record_id, _) in before.items() if number not in after]
    for number, note in after.items():
        record_id, known = before.get(number, (None, None))
        if record_id is None or known is None:
            found.append(PageChange(None, note))
        elif note != known:
            found.append(_session_change(record_id, known, note))
    return PageDiff(tuple(found), {number: before[number][0] for number in after if number in before})


def _session_change(record_id: str, before: PageSession, after: PageSession) -> PageChange:
    if (after.time, after.origin) != (before.time, before.origin):
        raise InvalidInput(f"session {after.number}: its time and its 来源 cannot be edited", field="page")
    marks = tuple(
        (mark, mark in after.marks) for mark in SHOWN_MARKS if (mark in after.marks) != (mark in before.marks)
    )
    return PageChange(record_id, after, tuple(before.content.changed_parts(after.content)), marks)
