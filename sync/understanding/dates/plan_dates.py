"""The last day of a plan, as its text names it in Chinese or English: 下个月8号, next Friday, on 21 May, 年底. Pure.

A day or month without a year is the next one. In doubt there is no last day, and the plan stays. The forms are data
(`plan_dates.toml`).
"""

import re
import tomllib
from calendar import monthrange
from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Final

_DATA: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
_DIGITS: Final[dict[str, int]] = _DATA["digits"]
_DAYS: Final[dict[str, int]] = _DATA["days"]
_MONTHS: Final[dict[str, int]] = _DATA["months"]
_YEARS: Final[dict[str, int]] = _DATA["years"]
_NEAR_DAYS: Final[dict[str, int]] = _DATA["near_days"]
_RECURS: Final = re.compile(_DATA["parts"]["recurs"])

Match = re.Match[str]


def last_day_of(text: str, today: date) -> date | None:
    """The last day that a plan names; None if it names none, or recurs."""
    if _RECURS.search(text):
        return None
    found = [day for pattern, read in _forms() for match in pattern.finditer(text) if (day := _day(read, match, today))]
    lasts, days = _compiled(_DATA["parts"]["lasts"]).search(text), 0
    with suppress(KeyError):  # no number: 周五一天
        days = _number(lasts["n"] or lasts["m"]) if lasts is not None else 0
    return max(found) + timedelta(days=days) if found else None


@cache
def _forms() -> list[tuple[re.Pattern[str], Callable[[Match, date], date]]]:
    return [(_compiled(one["pattern"]), _READERS[one["reads"]]) for one in _DATA["form"]]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    for name in ("number", "month"):
        pattern = pattern.replace(f"{{{name}}}", _DATA["parts"][name])
    return re.compile(pattern)


def _day(read: Callable[[Match, date], date], match: Match, today: date) -> date | None:
    try:
        return read(match, today)
    except (ValueError, KeyError, StopIteration, OverflowError):  # no such day
        return None


def _number(text: str) -> int:
    if text.isdigit():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    return (_DIGITS[tens] if tens else 1) * 10 * bool(ten) + (_DIGITS[ones] if ones else 0)


def _month_end(year: int, month: int) -> date:
    year, month = year + (month - 1) // 12, (month - 1) % 12 + 1
    return date(year, month, monthrange(year, month)[1])


def _in_month(year: int | None, month: int, day: int | None, today: date) -> date:
    """A day of a month, or the month's last one; without a year the next one from today."""

    def of_year(number: int) -> date:
        return _month_end(number, month) if day is None else date(number, month, day)

    if not 1 <= month <= 12:
        raise ValueError(month)
    if year is not None:
        return of_year(year)
    return this_year if (this_year := of_year(today.year)) >= today else of_year(today.year + 1)


def _day_of_year(match: Match, today: date) -> date:
    """明年3月12日, 21 May, in June, 2026-03-12."""
    named, month, day = match["year"], match["month"], match["day"]
    year = None if not named else today.year + _YEARS[named] if named in _YEARS else int(named)
    number = _MONTHS.get(month[:3].lower()) or _number(month)
    return _in_month(year, number, _number(day) if day else None, today)


def _day_of_month(match: Match, today: date) -> date:
    """下个月8号, 本月底, next month; 18号, the 18th: the next day of this number, as some months lack the last ones."""
    which, day = match["which"].lower(), match["day"]
    month = today.month + which.startswith(("下", "next"))
    if not day:
        return _month_end(today.year, month)
    if which:
        return _month_end(today.year, month).replace(day=_number(day))
    number, ends = _number(day), (_month_end(today.year, today.month + later) for later in range(3))
    return next(at for end in ends if number <= end.day and (at := end.replace(day=number)) >= today)


def _weekday(match: Match, today: date) -> date:
    """周五, 下周五, next Friday; 下周, next week: its last day."""
    weeks = 2 if match["next"] == "下下" else int(bool(match["next"]))
    monday = today - timedelta(days=today.weekday()) + timedelta(weeks=weeks)
    if not match["day"]:
        return monday + timedelta(days=6)
    day = monday + timedelta(days=_DAYS[match["day"][:3].lower()])
    return day if weeks or day >= today else day + timedelta(weeks=1)


def _end_of_year(match: Match, today: date) -> date:
    return date(today.year + _YEARS[match["year"].lower()], 12, 31)


def _near_day(match: Match, today: date) -> date:
    return today + timedelta(days=_NEAR_DAYS[match[0].lower()])


def _christmas(match: Match, today: date) -> date:
    return _in_month(int(match["year"]) if match["year"] else None, 12, 25, today)


_READERS: Final = {
    "day_of_year": _day_of_year,
    "day_of_month": _day_of_month,
    "weekday": _weekday,
    "end_of_year": _end_of_year,
    "near_day": _near_day,
    "christmas": _christmas,
}
