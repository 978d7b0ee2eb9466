"""The labels of days and versions."""

from sync.document.markdown.version_labels import day_label, next_label, parse_day, parse_time_label, time_label
from tests.unit.document.examples import NOW


def test_labels_are_written_without_zero_padding_of_the_date() -> None:
    assert day_label(NOW.date()) == "2026/1/8"
    assert time_label(NOW) == "2026/1/8 15:49:12"
    assert time_label(NOW.replace(hour=3, minute=4, second=5)) == "2026/1/8 03:04:05"
    assert parse_time_label("2026/1/8 15:49:12") == NOW.replace(tzinfo=None)
    assert parse_day("2026-01-08") == parse_day("2026年1月8日") == NOW.date()
    assert parse_day("2026/2/30") is parse_time_label("昨天") is None


def test_the_label_of_a_clock_that_was_years_ahead_is_not_continued() -> None:
    assert next_label("2046/11/22 17:00:00", NOW) == "2026/1/8 15:49:12"
    assert next_label("2026/1/9 15:00:59", NOW) == "2026/1/9 15:01:00"  # a journey across the date line


def test_every_label_is_later_than_the_one_before() -> None:
    assert next_label(None, NOW) == "2026/1/8 15:49:12"
    assert next_label("2026/1/8 15:49:11", NOW) == "2026/1/8 15:49:12"
    assert next_label("2026/1/8 15:49:12", NOW) == "2026/1/8 15:49:13"
    assert next_label("2026/1/8 23:59:59", NOW) == "2026/1/9 00:00:00"
    assert next_label("9999/12/31 23:59:59", NOW) == next_label("1/8/2026, 3:49:12 PM", NOW) == "2026/1/8 15:49:12"
