"""Number the records of each page. Pure.

A record gets the next number of its page, counting removed and expired records, and keeps it. If two devices assign the
same number, the record that was recorded first keeps it and the other moves behind the records before it. The result
depends only on the log, so all devices agree.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import cache
from itertools import count

from sync.daily.model import Record
from sync.daily.pages.page_format import DayPage, page_session_of

FolderOf = Callable[[str | None], Hashable]
"""Identifies the folder of a project's records."""


def group_by_day(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records by day, days and records oldest first."""
    by_day: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.moment):
        by_day.setdefault(record.date, []).append(record)
    return by_day


def page_numbers(all_records: Iterable[Record], folder_of: FolderOf) -> dict[str, int]:
    """The number of each record on its page. `all_records`: in the order of the log."""
    folder = cache(folder_of)
    pages: dict[tuple[Hashable, str], list[Record]] = {}
    for record in all_records:
        pages.setdefault((folder(record.page_project), record.date), []).append(record)
    return {record_id: number for page in pages.values() for record_id, number in _assign_numbers(page).items()}


def next_number(all_records: Iterable[Record], folder_of: FolderOf, project_path: str | None, day: str) -> int:
    """The number of a project's next record on a day's page. `all_records`: in the order of the log."""
    folder = cache(folder_of)
    page = [
        record for record in all_records if record.date == day and folder(record.page_project) == folder(project_path)
    ]
    return max(_assign_numbers(page).values(), default=0) + 1


def by_page_number(of_day: Iterable[Record], page_numbers: Mapping[str, int]) -> dict[int, Record]:
    """A day's records by their number, in that order."""
    return dict(sorted(((page_numbers[record.record_id], record) for record in of_day), key=lambda pair: pair[0]))


def page_of(day: str, numbered_records: Iterable[tuple[int, Record]], *, with_origin: bool) -> DayPage:
    return DayPage(
        day, tuple(page_session_of(record, number, with_origin=with_origin) for number, record in numbered_records)
    )


def _assign_numbers(page_records: Sequence[Record]) -> dict[str, int]:
    """Numbers by record id. `page_records`: the records of one page, in the order of the log."""
    holders: dict[int, str] = {}
    for record in page_records:
        holders.setdefault(record.number, record.record_id)
    numbers: dict[str, int] = {}
    last = 0
    for record in page_records:
        number = record.number
        if holders[number] != record.record_id:
            number = next(free for free in count(last + 1) if free not in holders)
            holders[number] = record.record_id
        numbers[record.record_id] = number
        last = max(last, number)
    return numbers
