"""The last day of a plan, as its text names it in Chinese or English: 下个月8号, next Friday, on 21 May, 年底. Pure.

A day or month without a year is the next one. In doubt there is no last day, and the plan stays.
"""

import re
from calendar import monthrange
from collections.abc import Callable
from datetime import date, timedelta
from typing import Final

_DIGITS: Final = {char: number for number, char in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_WEEKDAYS: Final = {char: number for number, char in enumerate("一二三四五六日")} | {"天": 6}
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_NUMBER: Final = r"\d{1,2}|[一二三四五六七八九十]{1,3}"
_MONTH_NAME: Final = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_RECURS: Final = re.compile(r"(?i)每|\bevery\b|\beach\b|\balways\b")
_LASTS: Final = re.compile(rf"(?P<n>{_NUMBER})天|(?i:\bfor (?P<m>\d{{1,2}}) days\b)")

Match = re.Match[str]


def last_day_of(text: str, today: date) -> date | None:
    """The last day that a plan names; None if it names none, or recurs."""
    if _RECURS.search(text):
        return None
    found = [day for pattern, read in _FORMS for match in pattern.finditer(text) if (day := _day(read, match, today))]
    if not found:
        return None
    lasts = _LASTS.search(text)
    length = timedelta(days=_number(lasts["n"] or lasts["m"]) if lasts is not None else 0)
    return max(found) + length


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


def _chinese_date(match: Match, today: date) -> date:
    named = match["year"]
    year = None if named is None else today.year + _YEARS[named] if named in _YEARS else int(named)
    return _in_month(year, _number(match["month"]), _number(match["day"]) if match["day"] else None, today)


def _chinese_day_of_month(match: Match, today: date) -> date:
    """下个月8号, 本月底, 18号."""
    which, day = match["which"] or "", match["day"]
    month = today.month + which.startswith("下")
    if day is None:
        return _month_end(today.year, month)
    if which:
        return _month_end(today.year, month).replace(day=_number(day))
    return _next_day_of_month(_number(day), today)


def _next_day_of_month(number: int, today: date) -> date:
    """The next day of this number; some months lack the last ones."""
    ends = (_month_end(today.year, today.month + later) for later in range(3))
    return next(day for end in ends if number <= end.day and (day := end.replace(day=number)) >= today)


def _chinese_weekday(match: Match, today: date) -> date:
    weeks = len(match["next"] or "")
    sunday = today - timedelta(days=today.weekday()) + timedelta(weeks=weeks)
    if match["day"] is None:
        return sunday + timedelta(days=6)
    day = sunday + timedelta(days=_WEEKDAYS[match["day"]])
    return day if weeks or day >= today else day + timedelta(weeks=1)


def _english_date(match: Match, today: date) -> date:
    groups = match.groupdict()
    year = int(groups["year"]) if groups.get("year") else None
    month = _MONTHS.index(match["month"][:3].lower()) + 1
    return _in_month(year, month, int(groups["day"]) if groups.get("day") else None, today)


def _english_weekday(match: Match, today: date) -> date:
    ahead = (_DAYS.index(match["day"][:3].lower()) - today.weekday()) % 7
    return today + timedelta(days=ahead + (7 if match["next"] and ahead + today.weekday() < 7 else 0))


def _english_day_of_month(match: Match, today: date) -> date:
    return _next_day_of_month(int(match["day"]), today)


def _next_unit(match: Match, today: date) -> date:
    match match["unit"].lower():
        case "week":
            return today + timedelta(days=13 - today.weekday())
        case "month":
            return _month_end(today.year, today.month + 1)
        case _:
            return date(today.year + 1, 12, 31)


def _iso_date(match: Match, _today: date) -> date:
    return date(int(match["y"]), int(match["m"]), int(match["d"]))


_YEARS: Final = {"今年": 0, "明年": 1, "后年": 2}
_NEAR_DAYS: Final = {
    "今天": 0,
    "今晚": 0,
    "明天": 1,
    "明晚": 1,
    "后天": 2,
    "大后天": 3,
    "today": 0,
    "tonight": 0,
    "tomorrow": 1,
}
_FORMS: Final[tuple[tuple[re.Pattern[str], Callable[[Match, date], date]], ...]] = (
    (re.compile(r"(?<!\d)(?P<y>20\d\d)[-/.](?P<m>\d{1,2})[-/.](?P<d>\d{1,2})(?!\d)"), _iso_date),
    (
        re.compile(
            rf"(?:(?P<year>今年|明年|后年|20\d\d) ?年? ?)?(?<!\d)(?P<month>{_NUMBER}) ?月(?!考(?!试))份? ?"
            rf"(?:(?P<day>{_NUMBER}) ?[号日])?"
        ),
        _chinese_date,
    ),
    (re.compile(rf"(?P<which>下个?月|这个?月|本月)(?:底|末)?(?:(?P<day>{_NUMBER}) ?[号日])?"), _chinese_day_of_month),
    (
        re.compile(rf"(?<![月\d一二三四五六七八九十])(?<!月 )(?P<which>)(?P<day>{_NUMBER}) ?[号日](?![线楼店机院])"),
        _chinese_day_of_month,
    ),
    (re.compile(r"(?P<next>下{0,2})个?(?:这)?(?:周|星期|礼拜)(?P<day>[一二三四五六日天])"), _chinese_weekday),
    (
        re.compile(r"(?P<next>下{1,2})个?(?:周|星期|礼拜)(?P<day>)(?![一二三四五六日天])"),
        lambda match, today: today + timedelta(days=6 - today.weekday(), weeks=len(match["next"])),
    ),
    (
        re.compile(r"(?P<year>今年|明年|后年)(?!\s?(?:\d|[一二三四五六七八九十]+月|上半年))"),
        lambda match, today: date(today.year + _YEARS[match["year"]], 12, 31),
    ),
    (re.compile(r"(?<!年)年底"), lambda _match, today: date(today.year, 12, 31)),
    (
        re.compile(r"(?i)今[天晚]|明[天晚]|大?后天|\btoday\b|\btonight\b|\btomorrow\b"),
        lambda match, today: today + timedelta(days=_NEAR_DAYS[match[0].lower()]),
    ),
    (
        re.compile(rf"(?i)\b(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?: of)? {_MONTH_NAME}\b,?(?: (?P<year>20\d\d))?"),
        _english_date,
    ),
    (
        re.compile(rf"(?i)\b{_MONTH_NAME} (?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (?P<year>20\d\d))?"),
        _english_date,
    ),
    (
        re.compile(
            rf"(?i)\b(?:in|by|before|until|next|this|of|end of|mid-|late|early) ?{_MONTH_NAME}"
            r"\b(?! \d{1,2}\b)(?: (?P<year>20\d\d))?"
        ),
        _english_date,
    ),
    (
        re.compile(r"(?i)\b(?:on |by |until )?(?P<next>next )?(?P<day>(?:mon|tues|wednes|thurs|fri|satur|sun)day)\b"),
        _english_weekday,
    ),
    (re.compile(r"(?i)\bthe (?P<day>\d{1,2})(?:st|nd|rd|th)\b(?! of)"), _english_day_of_month),
    (re.compile(r"(?i)\bnext (?P<unit>week|month|year)\b"), _next_unit),
    (
        re.compile(r"(?i)\bchristmas\b(?: (?P<year>20\d\d))?"),
        lambda match, today: _in_month(int(match["year"]) if match["year"] else None, 12, 25, today),
    ),
)
