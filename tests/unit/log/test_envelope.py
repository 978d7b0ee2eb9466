"""The day of an event whose author's clock was wrong."""

from datetime import UTC, date, datetime

import pytest

from sync.clock import format_hlc, to_unix_ms
from sync.log.envelope import day_of, said_ms
from sync.log.model import Event, Origin
from tests.support import event

TODAY = date(2026, 11, 27)
NOW = datetime(2026, 11, 27, 9, tzinfo=UTC)
RIGHT, AHEAD = NOW, datetime(2046, 11, 22, 9, tzinfo=UTC)
RECEIVED = "2026-11-27T09:00:05.000Z"


def said(local_date: str, ordered: datetime, server_ts: str | None, origin: Origin = Origin.MODEL) -> Event:
    hlc = format_hlc(to_unix_ms(ordered))
    return event(
        1, local_date=local_date, hlc=hlc, server_ts=server_ts, origin=str(origin), utc_offset=480, ts=RECEIVED
    )


@pytest.mark.parametrize("server_ts", [RECEIVED, None])
@pytest.mark.parametrize(
    ("local_date", "ordered", "day"),
    [
        ("2026-11-27", RIGHT, TODAY),
        ("2026-11-28", RIGHT, date(2026, 11, 28)),  # east of the server
        ("2026-11-26", RIGHT, date(2026, 11, 26)),  # west of it
        ("2025-10-23", RIGHT, TODAY),  # a dead battery: 400 days behind
        ("no date", RIGHT, TODAY),
        ("2026-11-27", AHEAD, TODAY),  # the clock is right again, its HLC is not
    ],
)
def test_the_day_is_the_named_one_unless_the_order_says_that_the_clock_was_wrong(
    local_date: str, ordered: datetime, day: date, server_ts: str | None
) -> None:
    assert day_of(said(local_date, ordered, server_ts), NOW) == day


@pytest.mark.parametrize("server_ts", [RECEIVED, None])
def test_a_clock_twenty_years_ahead_names_no_day_of_the_future(server_ts: str | None) -> None:
    ahead = said("2046-11-22", AHEAD, server_ts)
    assert day_of(ahead, NOW) == TODAY
    assert server_ts is None or said_ms(ahead) == to_unix_ms(datetime.fromisoformat(server_ts))


@pytest.mark.parametrize("origin", [Origin.IMPORTED, Origin.TOOL])
def test_a_day_that_an_import_or_a_program_names_stays(origin: Origin) -> None:
    assert day_of(said("2023-05-01", RIGHT, RECEIVED, origin), NOW) == date(2023, 5, 1)


def test_without_a_server_and_without_a_clock_the_named_day_counts() -> None:
    assert day_of(said("2025-10-23", RIGHT, None)) == date(2025, 10, 23)
