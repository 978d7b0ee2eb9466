"""Days and times as the document shows them (zh-CN, local, no zero padding), and the labels of versions.

A label names one version, so labels never repeat: if the clock has not advanced a second or has gone back, the next
label is one second after the last. An earlier version wrote ``2026/1/8 15:49:12 · 532``, with the number of events, for
a document that several devices shared.
"""

import re
from datetime import date, datetime, timedelta
from typing import Final

from sync.clock import MAX_CLOCK_DRIFT

_DAY: Final = re.compile(r"(\d{4})\s*[-/.年]\s*(\d{1,2})\s*[-/.月]\s*(\d{1,2})\s*日?", re.ASCII)
_TIME: Final = re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2}) (\d{1,2}):(\d{2}):(\d{2})(?: · \d+)?", re.ASCII)
_LATEST_TIME: Final = datetime(9999, 12, 31, 23, 59, 59)  # noqa: DTZ001 - labels are local times; no second follows it


def day_label(day: date) -> str:
    """``2026/1/8``"""
    return f"{day.year}/{day.month}/{day.day}"


def time_label(instant: datetime) -> str:
    """``2026/1/8 15:49:12``, in the zone of the instant."""
    return f"{day_label(instant)} {instant:%H:%M:%S}"


def next_label(previous: str | None, now: datetime) -> str:
    """The label of the next version: `now`, or one second after `previous` if that is later.

    A label of more than a day ahead was made by a clock that was wrong.
    """
    wall = now.replace(tzinfo=None, microsecond=0)
    last = parse_time_label(previous)
    if last is None or wall > last or last >= _LATEST_TIME or last - wall > MAX_CLOCK_DRIFT:
        return time_label(wall)
    return time_label(last + timedelta(seconds=1))


def later_label(one: str | None, other: str | None) -> str | None:
    """The later of two labels; None if this program wrote neither."""
    found = [label for label in (one, other) if label is not None and parse_time_label(label) is not None]
    return max(found, key=lambda label: parse_time_label(label) or _LATEST_TIME, default=None)


def parse_day(title: str) -> date | None:
    """The day in a heading, also if a person wrote it as 2026-01-08 or 2026年1月8日."""
    match = _DAY.fullmatch(title.strip())
    return None if match is None else _date_of_match(match)


def leading_day(text: str) -> date | None:
    """The day with which a title or a file's name begins, as in 2026-01-08 or 2026-01-08 Stand-up."""
    match = _DAY.match(text.strip())
    return None if match is None else _date_of_match(match)


def parse_time_label(label: str | None) -> datetime | None:
    """The local time in a label; None for a label of another program."""
    match = None if label is None else _TIME.fullmatch(label.strip())
    day = None if match is None else _date_of_match(match)
    if match is None or day is None:
        return None
    try:
        return datetime(day.year, day.month, day.day, int(match[4]), int(match[5]), int(match[6]))  # noqa: DTZ001 - a label is local
    except ValueError:
        return None


def _date_of_match(match: re.Match[str]) -> date | None:
    try:
        return date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None
