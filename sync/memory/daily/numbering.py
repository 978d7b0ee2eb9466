"""Which records stand on which page, under which number. Pure.

A record keeps the number it was given where no other has it on the same page; else it gets the next free one. Numbers
of removed records stay free on the page: what a person has noted as Session 2 does not become another.
"""

from collections.abc import Iterable, Mapping

from sync.memory.daily.model import Record
from sync.memory.daily.page import Page, note_of

Numbers = Mapping[int, str]
"""Session number → record id, of one day in one place."""


def days(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records by their day, days and records oldest first."""
    found: dict[str, list[Record]] = {}
    for record in sorted(records, key=lambda record: record.moment):
        found.setdefault(record.date, []).append(record)
    return found


def numbered(shown: Iterable[Record], gone: Iterable[Record] = ()) -> dict[int, Record]:
    """A day's records by their number on the page, in its order."""
    shown = sorted(shown, key=lambda record: (record.number, record.moment))
    taken: dict[int, Record] = {}
    reserved = {record.number for record in gone} | {record.number for record in shown}
    for record in shown:
        number = record.number
        if number in taken:
            number = max(reserved | set(taken)) + 1
        taken[number] = record
    return dict(sorted(taken.items()))


def page_of(day: str, sessions: Mapping[int, Record], *, with_origin: bool) -> Page:
    notes = (note_of(record, number, with_origin=with_origin) for number, record in sessions.items())
    return Page(day, tuple(notes))
