"""Compare a page with the page as last written, to find the manual edits. Pure.

A session is identified by its number: a new number is an addition, a missing one a deletion. A missing page is no edit;
it is written again. Of a session the parts and marks that differ are edits; its time and project cannot be edited.
"""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from sync.daily.model import Mark
from sync.daily.pages.page_format import DayPage, PageSession, parse
from sync.errors import InvalidInput
from sync.sequences import is_mostly_others

SHOWN_MARKS: Final[tuple[Mark, ...]] = ("important", "outdated")


class PageBase(msgspec.Struct, frozen=True):
    """A page as written or imported: its text, and the ids of its sessions' records by number.

    `change_ids`: during an import, the ids of the events to come, by the session's number.
    """

    text: str
    record_ids: Mapping[int, str]
    change_ids: Mapping[int, str] = msgspec.field(default_factory=dict)


class PageChange(msgspec.Struct, frozen=True):
    """The edits of one session. `record_id` is None for an addition, `session` for a deletion."""

    record_id: str | None
    session: PageSession | None
    parts: tuple[str, ...] = ()
    marks: tuple[tuple[Mark, bool], ...] = ()

    @property
    def has_content(self) -> bool:
        """Whether an addition or an edit of text."""
        return self.session is not None and (self.record_id is None or bool(self.parts))


class PageDiff(msgspec.Struct, frozen=True):
    """The edits of a page, and the ids of its known records by session number."""

    changes: tuple[PageChange, ...]
    record_ids: Mapping[int, str]


def diff_page(
    bases: Sequence[PageBase],
    text: str,
    day: str,
    known_record_ids: Container[str],
    unfinished: PageBase | None = None,
    erased: Collection[str] = (),
) -> PageDiff:
    """Compare a page with its nearest base. Raises InvalidInput if the page cannot be parsed.

    The nearest base implies the fewest deletions: a base may never have reached the disk, so what only that base has
    was not deleted. `unfinished`: the base of an interrupted import, so that nothing is imported twice.
    `erased`: the headings of sessions that an editor may still show, and that are no additions.
    """
    page = parse(text)
    shown = {session.heading for base in bases for _, session in sessions_of(base).values()}
    page = replace(page, sessions=tuple(one for one in page.sessions if one.heading not in {*erased} - shown))
    if page.day != day:
        raise InvalidInput("line 1: the page is named after another day", field="page")
    begun = sessions_of(unfinished) if unfinished is not None else {}
    change_ids = unfinished.change_ids if unfinished is not None else {}
    imported = {number: begun[number] for number in change_ids if number in begun}
    befores = [{**begun, **sessions_of(base)} for base in bases] or [begun]
    diffs = [_diff_since(each, page) for before in befores for each in (before, {**before, **imported})]
    return min(
        diffs,
        key=lambda diff: (sum(_is_deletion(change, known_record_ids) for change in diff.changes), len(diff.changes)),
    )


def is_of_other_account(page: DayPage, own: Sequence[PageBase], other: Sequence[PageBase]) -> bool:
    """Whether the page of another account has most lines of this one, and ours does not."""
    ours, theirs = (_lines_of(parse(base.text) for base in bases if base.text) for bases in (own, other))
    return is_mostly_others(_lines_of([page]), ours, theirs)


def _lines_of(pages: Iterable[DayPage]) -> frozenset[str]:
    texts = [session.content.full_text for page in pages for session in page.sessions]
    return frozenset(line for text in texts for line in map(str.strip, text.splitlines()) if line)


def _is_deletion(change: PageChange, known_record_ids: Container[str]) -> bool:
    return change.session is None and change.record_id is not None and change.record_id in known_record_ids


def sessions_of(base: PageBase) -> dict[int, tuple[str, PageSession]]:
    """The record id and the content of each session of a base, by number."""
    sessions = parse(base.text).sessions if base.text else ()
    return {each.number: (base.record_ids[each.number], each) for each in sessions if each.number in base.record_ids}


def _diff_since(before: Mapping[int, tuple[str, PageSession]], page: DayPage) -> PageDiff:
    after = {session.number: session for session in page.sessions}
    changes = [PageChange(record_id, None) for number, (record_id, _) in before.items() if number not in after]
    for number, session in after.items():
        record_id, former = before.get(number, (None, None))
        if record_id is None or former is None:
            changes.append(PageChange(None, session))
        elif session != former:
            changes.append(_session_change(record_id, former, session))
    return PageDiff(tuple(changes), {number: before[number][0] for number in after if number in before})


def _session_change(record_id: str, before: PageSession, after: PageSession) -> PageChange:
    if (after.time, after.origin, after.label) != (before.time, before.origin, before.label):
        raise InvalidInput(f"session {after.number}: its time, label and project cannot be edited", field="page")
    marks = tuple(
        (mark, mark in after.marks) for mark in SHOWN_MARKS if (mark in after.marks) != (mark in before.marks)
    )
    return PageChange(record_id, after, tuple(before.content.changed_parts(after.content)), marks)
