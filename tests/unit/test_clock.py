"""Order and identity: an HLC never goes back, its text order is its order, ids and times read as the rules say."""

import sys
import time
import uuid
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.clock import (
    MAX_CLOCK_DRIFT,
    MAX_HLC_COUNTER,
    SystemClock,
    format_hlc,
    from_unix_ms,
    merge_hlc,
    new_event_id,
    next_hlc,
    parse_hlc,
    timestamp,
    to_unix_ms,
    utc_offset_minutes,
    uuid7,
)
from tests.support import CHINA, FixedClock

WALLS = st.integers(0, 2**47)
HLCS = st.builds(format_hlc, WALLS, st.integers(0, MAX_HLC_COUNTER))
INSTANTS = st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001


@given(previous=st.none() | HLCS, walls=st.lists(WALLS, max_size=20))
def test_an_hlc_only_grows_whatever_the_clock_does(previous: str | None, walls: list[int]) -> None:
    for wall in walls:
        following = next_hlc(previous, wall)
        assert previous is None or following > previous
        assert parse_hlc(following)[0] >= wall
        previous = following


@given(one=HLCS, other=HLCS)
def test_the_order_of_hlc_texts_is_the_order_of_their_values(one: str, other: str) -> None:
    assert (one < other) == (parse_hlc(one) < parse_hlc(other))


def test_more_events_than_a_millisecond_can_count_borrow_the_next_one() -> None:
    assert next_hlc(format_hlc(5, MAX_HLC_COUNTER), 5) == format_hlc(6, 0)


def test_a_clock_before_1970_still_gives_an_hlc_that_can_be_read_back() -> None:
    first = next_hlc(None, -86_400_000)
    assert parse_hlc(next_hlc(first, -5)) > parse_hlc(first)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "0193a5b2c3d4",
        "0193a5b2c3d4-00000",
        "+193a5b2c3d4-0000",
        "0193A5B2C3D4-0000",
        "0193a5b2c3d4-0x00",
        "0193a5b2c3d4-+000",
        " 193a5b2c3d4-0000",
        "0193a5b2c3d4-0000\n",
        "0_93a5b2c3d4-0000",
        "0193a5b2c3d4-zzzz",
    ],
)
def test_what_is_no_hlc_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="HLC"):
        parse_hlc(text)


@given(previous=st.none() | HLCS, seen=HLCS, wall=WALLS)
def test_an_hlc_from_elsewhere_is_adopted_only_within_a_day_of_our_own_clock(
    previous: str | None, seen: str, wall: int
) -> None:
    merged = merge_hlc(previous, seen, wall)
    day = int(MAX_CLOCK_DRIFT.total_seconds() * 1000)
    if parse_hlc(seen)[0] > wall + day:
        assert merged == previous
    else:
        assert merged == max(seen, previous or "")


@given(wall=st.integers(0, 2**48 - 1), chance=st.binary(min_size=10, max_size=10))
def test_an_event_id_is_a_uuid_of_version_seven_that_holds_its_time(wall: int, chance: bytes) -> None:
    made = uuid7(wall, lambda count: chance[:count])
    assert (made.version, made.variant) == (7, uuid.RFC_4122)
    assert made.int >> 80 == wall


def test_event_ids_made_in_one_instant_differ() -> None:
    clock = FixedClock()
    made = {new_event_id(clock) for _ in range(1000)}
    assert len(made) == 1000
    assert all(text.startswith("evt_") and uuid.UUID(text[4:]).version == 7 for text in made)


@given(instant=INSTANTS)
def test_milliseconds_and_timestamp_speak_of_the_same_millisecond(instant: datetime) -> None:
    assert to_unix_ms(datetime.fromisoformat(timestamp(instant))) == to_unix_ms(instant)


@given(wall=st.integers(0, 253_402_300_799_999))
def test_no_millisecond_is_lost_to_rounding(wall: int) -> None:
    assert to_unix_ms(datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=wall)) == wall


def test_a_timestamp_is_utc_with_milliseconds_and_z() -> None:
    assert timestamp(datetime(2026, 2, 2, 18, 0, 0, 1500, CHINA)) == "2026-02-02T10:00:00.001Z"


def test_a_moment_beyond_the_calendar_is_its_first_or_its_last() -> None:
    assert timestamp(from_unix_ms(1_500)) == "1970-01-01T00:00:01.500Z"
    assert timestamp(from_unix_ms(-(2**63))) == "0001-01-01T00:00:00.000Z"
    assert timestamp(from_unix_ms(2**63 - 1)) == "9999-12-31T23:59:59.999Z"


@pytest.mark.parametrize(("hours", "minutes"), [(8, 480), (-3.5, -210), (5.75, 345), (0, 0)])
def test_the_offset_from_greenwich_is_in_minutes(hours: float, minutes: int) -> None:
    assert utc_offset_minutes(datetime(2026, 2, 2, tzinfo=timezone(timedelta(hours=hours)))) == minutes


def test_the_system_clock_is_aware_and_follows_the_zone_it_was_given() -> None:
    assert SystemClock(CHINA).now().utcoffset() == timedelta(hours=8)
    assert SystemClock().now().tzinfo is not None
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()
    assert len(clock.random_bytes(7)) == 7


@pytest.mark.skipif(sys.platform == "win32", reason="the zone of a Windows machine is no matter of a variable")
def test_where_the_system_s_zone_is_a_day_off_or_more_the_clock_is_greenwich_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC+25")
    time.tzset()
    try:
        assert SystemClock().now().utcoffset() == timedelta(0)
        day = datetime(2026, 7, 2)  # noqa: DTZ001 - as a person writes it
        assert (
            SystemClock().local(day) == SystemClock().local(day.replace(tzinfo=UTC)) == datetime(2026, 7, 2, tzinfo=UTC)
        )
        with pytest.raises(OverflowError):
            SystemClock().local(datetime.min.replace(tzinfo=CHINA))
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.skipif(sys.platform == "win32", reason="the zone of a Windows machine is no matter of a variable")
def test_a_local_time_has_the_offset_of_its_own_day(monkeypatch: pytest.MonkeyPatch) -> None:
    summer, winter = datetime(2026, 7, 2), datetime(2026, 12, 2)  # noqa: DTZ001 - as a person writes them
    assert SystemClock(CHINA).local(summer).isoformat() == "2026-07-02T00:00:00+08:00"
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")  # Berlin's rules
    time.tzset()
    try:
        assert SystemClock().local(summer).isoformat() == "2026-07-02T00:00:00+02:00"
        assert SystemClock().local(winter).isoformat() == "2026-12-02T00:00:00+01:00"
    finally:
        monkeypatch.undo()
        time.tzset()
