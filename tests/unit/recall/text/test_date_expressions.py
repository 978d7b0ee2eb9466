"""Days in words, as spans of time."""

import sys
import time
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.clock import SystemClock, to_unix_ms
from sync.recall.query import parse_query
from sync.recall.text.date_expressions import find_date_span
from tests.support import CHINA, FixedClock

TODAY = date(2026, 2, 4)  # a Wednesday


CLOCK = FixedClock(datetime(2026, 2, 4, 9, 0, tzinfo=CHINA))


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("昨天的会", date(2026, 2, 3), date(2026, 2, 3)),
        ("大前天", date(2026, 2, 1), date(2026, 2, 1)),
        ("上周三说的", date(2026, 1, 28), date(2026, 1, 28)),
        ("上周", date(2026, 1, 26), date(2026, 2, 1)),
        ("三天前", date(2026, 2, 1), date(2026, 2, 1)),
        ("最近三天", date(2026, 2, 1), TODAY),
        ("十天前", date(2026, 1, 25), date(2026, 1, 25)),
        ("十五天前说的火锅", date(2026, 1, 20), date(2026, 1, 20)),
        ("二十天前我们讨论过什么", date(2026, 1, 15), date(2026, 1, 15)),
        ("九十九天前", date(2025, 10, 28), date(2025, 10, 28)),
        ("最近十五天", date(2026, 1, 20), TODAY),
        ("１５天前", date(2026, 1, 20), date(2026, 1, 20)),
        ("到 9999-12-31 为止", date.max, date.max),
        ("上个月", date(2026, 1, 1), date(2026, 1, 31)),
        ("去年", date(2025, 1, 1), date(2025, 12, 31)),
        ("2026年1月8日", date(2026, 1, 8), date(2026, 1, 8)),
        ("3月8日", date(2025, 3, 8), date(2025, 3, 8)),
        ("last Monday", date(2026, 2, 2), date(2026, 2, 2)),
        ("two weeks ago", date(2026, 1, 19), date(2026, 1, 25)),
        ("on 7 May 2023", date(2023, 5, 7), date(2023, 5, 7)),
        ("in May 2023", date(2023, 5, 1), date(2023, 5, 31)),
        ("十月二十号去了哪里", date(2025, 10, 20), date(2025, 10, 20)),
        ("七月份的旅行", date(2025, 7, 1), date(2025, 7, 31)),
        ("前几天说的", date(2026, 1, 28), date(2026, 2, 3)),
        ("夏天去了海边", date(2025, 6, 1), date(2025, 8, 31)),
        ("去年冬天", date(2025, 12, 1), date(2026, 2, 28)),
        ("last March", date(2025, 3, 1), date(2025, 3, 31)),
        ("in January", date(2026, 1, 1), date(2026, 1, 31)),
        ("last summer", date(2025, 6, 1), date(2025, 8, 31)),
    ],
)
def test_days_in_words_are_spans(text: str, first: date, last: date) -> None:
    span = find_date_span(text, TODAY)
    assert span is not None
    assert (span.first, span.last) == (first, last)


@pytest.mark.parametrize(
    "text",
    [
        "2月30日",
        "三五天前",
        "最近两三天",
        "几十天前",
        "十几年前",
        "3十天前",
        "a may be",
        "最近怎么样",
        "12:30",
        "二月",
        "the march of time",
    ],
)
def test_what_names_no_day_is_no_span(text: str) -> None:
    assert find_date_span(text, TODAY) is None


@pytest.mark.parametrize("text", ["9999-12-31 到期", "9999年12月", "证书在 9999-12-31 到期\n还早"])
def test_a_span_behind_which_there_is_no_day_has_no_end(text: str) -> None:
    asked = parse_query(text, (), CLOCK)
    assert asked.since_ms is not None
    assert asked.until_ms is None


@given(st.text("零一二三四五六七八九十两几0123456789 个最近过去天日周星期礼拜月年前之以-/", max_size=16))
def test_whatever_a_message_counts_it_is_read(text: str) -> None:
    parse_query(text, (), CLOCK)
    find_date_span(f"{text}天前", TODAY)


@pytest.mark.skipif(sys.platform == "win32", reason="the zone of a Windows machine is no matter of a variable")
def test_a_day_begins_at_its_own_midnight_whatever_the_clocks_show_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")  # Berlin's rules
    time.tzset()
    try:
        bounds = [parse_query(day, (), SystemClock()).since_ms for day in ("2026-07-02 说的", "2026-12-02 说的")]
    finally:
        monkeypatch.undo()
        time.tzset()
    written = ("2026-07-02T00:00:00+02:00", "2026-12-02T00:00:00+01:00")
    assert bounds == [to_unix_ms(datetime.fromisoformat(text)) for text in written]
