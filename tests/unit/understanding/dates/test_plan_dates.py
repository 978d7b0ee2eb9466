"""The last day that a plan names, in Chinese and English; the day it is said on is Wednesday, 25 November 2026."""

from datetime import date
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.understanding.dates.plan_dates import last_day_of

TODAY: Final = date(2026, 11, 25)


@pytest.mark.parametrize(
    ("text", "last_day"),
    [
        ("下个月8号我飞大阪，玩六天", "2026-12-14"),
        ("下周五去体检", "2026-12-04"),
        ("这周五去体检", "2026-11-27"),
        ("我下周五一天都要陪考", "2026-12-04"),
        ("next week we move", "2026-12-06"),
        ("we plan to move next year", "2027-12-31"),
        ("周二去体检", "2026-12-01"),
        ("下周去北京", "2026-12-06"),
        ("打算后年在合肥买房", "2028-12-31"),
        ("我 visa 4月30号到期", "2027-04-30"),
        ("五月份要搬去厦门", "2027-05-31"),
        ("三月十五日答辩", "2027-03-15"),
        ("明年9月5号结婚", "2027-09-05"),
        ("年底搬家", "2026-12-31"),
        ("明天搬家", "2026-11-26"),
        ("31号交稿", "2026-12-31"),
        ("2027-06-07，我那天高考", "2027-06-07"),
        ("I'm flying to Lisbon on 14 March", "2027-03-14"),
        ("my wedding is on June 19", "2027-06-19"),
        ("I'm moving to Antwerp in May", "2027-05-31"),
        ("starting in January 2028", "2028-01-31"),
        ("I leave on Friday", "2026-11-27"),
        ("I leave next Friday", "2026-12-04"),
        ("my exam is on the 3rd", "2026-12-03"),
        ("we launch next month", "2026-12-31"),
        ("a cushion by Christmas 2027", "2027-12-25"),
    ],
)
def test_a_plan_ends_on_the_last_day_that_it_names(text: str, last_day: str) -> None:
    assert last_day_of(text, TODAY) == date.fromisoformat(last_day)


@pytest.mark.parametrize(
    "text",
    [
        "每月8号交房租",
        "every Friday we deploy",
        "我在备孕",
        "we may go",
        "住在1号线旁边",
        "I leave on 30 February",
        "13月1号",
    ],
)
def test_what_recurs_or_names_no_day_has_no_end(text: str) -> None:
    assert last_day_of(text, TODAY) is None


@given(st.text(alphabet="0123456789年月日号十一二三下周五底明in next on the ofmayMarch-/. ", max_size=40), st.dates())
def test_no_text_and_no_day_stop_it(text: str, today: date) -> None:
    last_day_of(text, today)
