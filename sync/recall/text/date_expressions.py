"""Find dates in text, in Chinese and English, as spans of days. Pure; `today` is an argument.

Both relative days (`昨天`) and calendar dates (`2026-01-08`, `1月8日`, `May 7, 2023`) are spans. Vague words (`最近`,
`recently`) are not.
"""

import calendar
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import date, timedelta
from typing import Final, NamedTuple

from sync.recall.text.stemming import stem

_DAYS: Final = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6}
_WEEKDAYS: Final = [name.lower() for name in calendar.day_name]
_MONTHS: Final = [name.lower() for name in calendar.month_name]
_MONTH: Final = "|".join([*_MONTHS[1:], *(name[:3] for name in _MONTHS[1:] if len(name) > 3)])
_NUMBERS: Final = {name: at for at, name in enumerate("零一二三四五六七八九")} | {"两": 2, "几": 3}
_TENS: Final = re.compile("([一二三四五六七八九]?)十([一二三四五六七八九]?)")
_ENGLISH_NUMBERS: Final = {
    name: at
    for at, name in enumerate(
        """
zero one two three four five six seven eight nine ten
""".split()
    )
} | {"a": 1, "an": 1, "few": 3, "couple of": 2}
_DIGITS: Final = "一二三四五六七八九十"
_CHINESE_MONTH: Final = r"\d{1,2}|十[一二]?|[一二三四五六七八九]"
_CHINESE_DAY: Final = rf"\d{{1,2}}|[{_DIGITS}]{{1,3}}"
_SEASONS: Final = {  # and their first months
    "春天": 3, "spring": 3, "夏天": 6, "summer": 6, "秋天": 9, "autumn": 9, "fall": 9, "冬天": 12, "winter": 12,
}  # fmt: skip
_YEARS_BACK: Final = {"今年": 0, "this": 0, "去年": 1, "last": 1, "前年": 2}
_END_OF_LEAP_YEAR: Final = date(2024, 12, 31)  # a day without a year is read as one of it
_COUNT: Final = r"\d{1,3}|" + "|".join(sorted(_ENGLISH_NUMBERS, key=len, reverse=True))


class DateSpan(NamedTuple):
    """The days `first` to `last`, inclusive, and their place in the text.

    `is_calendar_date`: the text itself may contain such a date, unlike `昨天`, which depends on today.
    """

    first: date
    last: date
    start: int
    end: int
    is_calendar_date: bool


class NamedDay(NamedTuple):
    """A day as a text names it; `year` is None for 12月3日."""

    year: int | None
    month: int
    day: int

    def is_named_in(self, text: str) -> bool:
        """Whether a text names this day; without a year, that of any year."""
        return any(
            (self.month, self.day) == (named.month, named.day) and self.year in {None, named.year}
            for named in named_days(text)
        )

    def index_terms(self) -> tuple[frozenset[str], frozenset[str]]:
        """Terms of which a text that names the day has one for the month and one for the day."""
        name = _MONTHS[self.month]
        return _number_terms(self.month) | {stem(name), stem(name[:3]), stem(name[:4])}, _number_terms(self.day)


def named_days(text: str) -> frozenset[NamedDay]:
    """The days that a text names by month and day."""
    found = set()
    for pattern, read in _PATTERNS:
        if read in {_calendar_day, _english_day} and "d" in pattern.groupindex:
            for match in pattern.finditer(text):
                with suppress(ValueError):
                    day, _ = read(match, _END_OF_LEAP_YEAR)
                    found.add(NamedDay(day.year if match["y"] else None, day.month, day.day))
    return frozenset(found)


def _number_terms(number: int) -> frozenset[str]:
    """How the index has a number of a date: 3, 03, 三; of 二十三 the last two characters."""
    tens, ones = divmod(number, 10)
    chinese = f"{_DIGITS[tens - 1] if tens > 1 else ''}{'十' if tens else ''}{_DIGITS[ones - 1] if ones else ''}"
    return frozenset({str(number), f"{number:02}", chinese[-2:]})


def find_date_span(text: str, today: date) -> DateSpan | None:
    """The first span in a text (of several at one place the longest), or None."""
    spans: list[DateSpan] = []
    for pattern, read in _PATTERNS:
        for match in pattern.finditer(text):
            with suppress(ValueError, OverflowError):  # 2 月 30 日
                first, last = read(match, today)
                spans.append(DateSpan(first, last, match.start(), match.end(), read in _CALENDAR_DATES))
    return min(spans, key=lambda span: (span.start, -span.end), default=None)


Days = tuple[date, date]
_SpanReader = Callable[[re.Match[str], date], Days]


def _days_ago(days: int) -> _SpanReader:
    def read(_: re.Match[str], today: date) -> Days:
        return (today - timedelta(days),) * 2

    return read


def _weeks_ago(weeks: int) -> _SpanReader:
    def read(_: re.Match[str], today: date) -> Days:
        monday = today - timedelta(today.weekday() + 7 * weeks)
        return monday, monday + timedelta(6)

    return read


def _months_ago(months: int) -> _SpanReader:
    def read(_: re.Match[str], today: date) -> Days:
        at = today.year * 12 + today.month - 1 - months
        return _whole_month(at // 12, at % 12 + 1)

    return read


def _years_ago(years: int) -> _SpanReader:
    def read(_: re.Match[str], today: date) -> Days:
        return date(today.year - years, 1, 1), date(today.year - years, 12, 31)

    return read


def _whole_month(year: int, month: int) -> Days:
    return date(year, month, 1), date(year, month, calendar.monthrange(year, month)[1])


def _parse_number(text: str) -> int:
    """Parse a number, in Chinese up to 99. Raises ValueError for vague ones, as in 三五天前 and 几十天前."""
    word = text.lower()
    if word.isdecimal():
        return int(word)
    if (tens := _TENS.fullmatch(word)) is not None:
        return 10 * _NUMBERS.get(tens[1], 1) + _NUMBERS.get(tens[2], 0)
    number = _NUMBERS.get(word, _ENGLISH_NUMBERS.get(word))
    if number is None:
        raise ValueError(f"no number: {text}")
    return number


def _units_ago(match: re.Match[str], today: date) -> Days:
    """`3 天前`, `two weeks ago`: that day, or that whole week."""
    count, unit = _parse_number(match[1]), match[2].lower()
    if unit in {"天", "日", "day"}:
        return (today - timedelta(count),) * 2
    if unit in {"周", "星期", "礼拜", "week"}:
        return _weeks_ago(count)(match, today)
    return _months_ago(count)(match, today) if unit in {"月", "month"} else _years_ago(count)(match, today)


def _last_units(match: re.Match[str], today: date) -> Days:
    """`最近三天`, `past two weeks`: until today."""
    length = {"天": 1, "日": 1, "day": 1, "周": 7, "星期": 7, "礼拜": 7, "week": 7, "月": 30, "month": 30}
    return today - timedelta(_parse_number(match[1]) * length[match[2].lower()]), today


def _chinese_weekday(match: re.Match[str], today: date) -> Days:
    weeks = len(match[1] or "")
    day = today - timedelta(today.weekday() + 7 * weeks - _DAYS[match[2]])
    return day, day


def _last_weekday(match: re.Match[str], today: date) -> Days:
    """The latest such day before today."""
    back = (today.weekday() - _WEEKDAYS.index(match[1].lower()) - 1) % 7 + 1
    return (today - timedelta(back),) * 2


def _calendar_day(match: re.Match[str], today: date) -> Days:
    day = date(int(match["y"] or today.year), _parse_number(match["m"]), _parse_number(match["d"]))
    if match["y"] is None and day > today:
        day = day.replace(year=day.year - 1)
    return day, day


def _calendar_month(match: re.Match[str], today: date) -> Days:
    del today
    return _whole_month(int(match["y"]), int(match["m"]))


def _latest_calendar_month(match: re.Match[str], today: date) -> Days:
    return _latest_month(_parse_number(match["m"]), today)


def _latest_month(month: int, today: date) -> Days:
    """The latest such month that has begun."""
    return _whole_month(today.year - (month > today.month), month)


def _english_month(match: re.Match[str], today: date) -> Days:
    """`last March`, `in March`: the latest one that is over, or has begun."""
    month = next(at for at, name in enumerate(_MONTHS) if at and name.startswith(match["m"].lower()))
    first, last = _latest_month(month, today)
    if match[1].lower() == "last" and last >= today:
        return _whole_month(first.year - 1, month)
    return first, last


def _season(match: re.Match[str], today: date) -> Days:
    """The latest such season that has begun: 去年夏天 is that of last year. Winter is named after its first month."""
    month = _SEASONS[match["s"].lower()]
    year = today.year - (month > today.month)
    if match["y"]:
        year = today.year - _YEARS_BACK[match["y"].lower()]
    after = date(year + (month == 12), (month + 2) % 12 + 1, 1)
    return date(year, month, 1), after - timedelta(1)


def _days_before(first: int, last: int) -> _SpanReader:
    def read(_: re.Match[str], today: date) -> Days:
        return today - timedelta(first), today - timedelta(last)

    return read


def _english_day(match: re.Match[str], today: date) -> Days:
    month = next(at for at, name in enumerate(_MONTHS) if at and name.startswith(match["m"].lower()))
    written = match.groupdict()
    if "d" not in written:
        return _whole_month(int(match["y"]), month)
    day = date(int(match["y"] or today.year), month, int(match["d"]))
    if match["y"] is None and day > today:
        day = day.replace(year=day.year - 1)
    return day, day


_CALENDAR_DATES: Final = (_calendar_day, _calendar_month, _latest_calendar_month, _english_day, _english_month, _season)


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_PATTERNS: Final[tuple[tuple[re.Pattern[str], _SpanReader], ...]] = (
    (_pattern(r"今天|今日|\btoday\b"), _days_ago(0)),
    (_pattern(r"昨天|昨日|昨晚|\byesterday\b|\blast night\b"), _days_ago(1)),
    (_pattern(r"(?<!大)前天|\bthe day before yesterday\b"), _days_ago(2)),
    (_pattern(r"大前天"), _days_ago(3)),
    (_pattern(r"(?:这|本)(?:周|星期|礼拜)(?![一二三四五六日天])|\bthis week\b"), _weeks_ago(0)),
    (_pattern(r"(?<!上)上(?:个)?(?:周|星期|礼拜)(?![一二三四五六日天])|\blast week\b"), _weeks_ago(1)),
    (_pattern(r"上上(?:个)?(?:周|星期|礼拜)(?![一二三四五六日天])"), _weeks_ago(2)),
    (_pattern(r"(?:这个|本)月|\bthis month\b"), _months_ago(0)),
    (_pattern(r"上(?:个)?月|\blast month\b"), _months_ago(1)),
    (_pattern(r"今年|\bthis year\b"), _years_ago(0)),
    (_pattern(r"去年|\blast year\b"), _years_ago(1)),
    (_pattern(r"前年|\bthe year before last\b"), _years_ago(2)),
    (_pattern(r"([\d一二三四五六七八九十两几]{1,3})\s*个?(天|日|周|星期|礼拜|月|年)(?:之|以)?前"), _units_ago),
    (_pattern(rf"\b({_COUNT})\s+(day|week|month|year)s?\s+ago\b"), _units_ago),
    (_pattern(r"(?:最近|过去|近)([\d一二三四五六七八九十两几]{1,3})\s*个?(天|日|周|星期|礼拜|月)"), _last_units),
    (_pattern(rf"\b(?:past|last)\s+({_COUNT})\s+(day|week|month)s?\b"), _last_units),
    (_pattern(r"(上{0,2})(?:个)?(?:周|星期|礼拜)([一二三四五六日天])"), _chinese_weekday),
    (_pattern(rf"\blast ({'|'.join(_WEEKDAYS)})\b"), _last_weekday),
    (_pattern(r"(?<!\d)(?P<y>\d{4})[-/.年](?P<m>\d{1,2})[-/.月](?P<d>\d{1,2})[日号]?(?!\d)"), _calendar_day),
    (_pattern(rf"(?<!\d)(?:(?P<y>\d{{4}})年)?(?P<m>{_CHINESE_MONTH})月(?P<d>{_CHINESE_DAY})[日号]"), _calendar_day),
    (_pattern(r"(?<!\d)(?P<y>\d{4})年(?P<m>\d{1,2})月(?!\d)"), _calendar_month),
    (_pattern(rf"(?<![\d第每])(?P<m>{_CHINESE_MONTH})月份"), _latest_calendar_month),
    (_pattern(r"前几天|前些天|前两天|\bthe other day\b"), _days_before(7, 1)),
    (_pattern(r"(?P<y>去年|前年|今年)?(?P<s>春天|夏天|秋天|冬天)"), _season),
    (_pattern(r"\b(?P<y>last|this) (?P<s>spring|summer|autumn|fall|winter)\b"), _season),
    (_pattern(rf"\b(last|in|this) (?P<m>{_MONTH})\b(?!\.?,? +\d)"), _english_month),
    (
        _pattern(rf"\b(?P<m>{_MONTH})\.?\s+(?P<d>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<y>\d{{4}}))?\b(?!:)"),
        _english_day,
    ),
    (
        _pattern(rf"\b(?P<d>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?(?P<m>{_MONTH})\.?(?:,?\s+(?P<y>\d{{4}}))?\b"),
        _english_day,
    ),
    (_pattern(rf"\b(?P<m>{_MONTH})\.?,?\s+(?P<y>\d{{4}})\b"), _english_day),
)
