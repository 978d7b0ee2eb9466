"""Which records stand on which page, under which number. Pure.

Decisions
    A record gets the next number of its page: what another project has there counts, and what is gone or put away. It
    keeps it for good, except where a recording was undone or forgotten: what a person has noted as Session 2 does not
    become another.
    Two devices, or two places that became one, may have given a number twice. The record that was recorded first keeps
    it, the other goes behind all that was recorded before it. That depends on nothing but the log, so all devices
    show the same, and a record made later moves nothing: who makes it counts from what the page shows.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from itertools import count

from sync.daily.model import Record
from sync.daily.pages.page_format import DayPage, page_session_of

FolderOf = Callable[[str | None], Hashable]
"""The place of a project's records."""


def group_by_day(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records by their day, days and records oldest first."""
    found: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.moment):
        found.setdefault(record.date, []).append(record)
    return found


def page_numbers(all_records: Iterable[Record], folder_of: FolderOf) -> dict[str, int]:
    """The number of each record on its page. `every`: `Book.all_records`."""
    where = cache(folder_of)
    pages: dict[tuple[Hashable, str], list[Record]] = {}
    for record in all_records:
        pages.setdefault((where(record.project_path), record.date), []).append(record)
    return {record_id: number for page in pages.values() for record_id, number in _assign_numbers(page).items()}


def next_number(all_records: Iterable[Record], folder_of: FolderOf, project_path: str | None, day: str) -> int:
    """That of a project's next record on a day's page. `every`: `Book.all_records`."""
    where = cache(folder_of)
    page = [
        record for record in all_records if record.date == day and where(record.project_path) == where(project_path)
    ]
    return max(_assign_numbers(page).values(), default=0) + 1


def by_page_number(of_day: Iterable[Record], page_numbers: Mapping[str, int]) -> dict[int, Record]:
    """A day's records by their number on the page, in its order."""
    return dict(sorted(((page_numbers[record.record_id], record) for record in of_day), key=lambda found: found[0]))


def page_of(day: str, numbered_records: Iterable[tuple[int, Record]], *, with_origin: bool) -> DayPage:
    return DayPage(
        day, tuple(page_session_of(record, number, with_origin=with_origin) for number, record in numbered_records)
    )


def _assign_numbers(page_records: Sequence[Record]) -> dict[str, int]:
    """By record; `page`: those of one day in one place, in the order of the log."""
    holders: dict[int, str] = {}
    for record in page_records:
        holders.setdefault(record.number, record.record_id)
    found: dict[str, int] = {}
    last = 0
    for record in page_records:
        number = record.number
        if holders[number] != record.record_id:
            number = next(free for free in count(last + 1) if free not in holders)
            holders[number] = record.record_id
        found[record.record_id] = number
        last = max(last, number)
    return found
