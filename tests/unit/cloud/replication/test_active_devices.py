"""When another device of the account may have something to say."""

from datetime import timedelta

from sync.clock import timestamp
from sync.cloud.port import DeviceRow
from sync.cloud.replication.active_devices import ACTIVE_DAYS, LIST_INTERVAL, ActiveDevices
from tests.support import FixedClock, event

MINE = "device-a"


def row(device_id: str, clock: FixedClock, *, days_ago: float = 0, revoked: bool = False) -> DeviceRow:
    seen = timestamp(clock.now() - timedelta(days=days_ago))
    return DeviceRow(device_id, None, None, None, None, seen, seen, seen if revoked else None)


def test_only_another_device_that_was_seen_within_a_week_is_active() -> None:
    clock = FixedClock()
    others = ActiveDevices(MINE, clock)
    others.note_list([row(MINE, clock), row("old", clock, days_ago=8), row("lost", clock, revoked=True)])
    assert not others.any_active()
    others.note_list([row("phone", clock, days_ago=6)])
    assert others.any_active()
    clock.advance(ACTIVE_DAYS.total_seconds())
    assert not others.any_active()


def test_a_device_that_sends_is_active_and_one_of_long_ago_is_not() -> None:
    clock = FixedClock()
    others = ActiveDevices(MINE, clock)
    others.note_events([event(1, device=MINE, server_ts=timestamp(clock.now()))])
    others.note_events([event(2, device="phone", server_ts=timestamp(clock.now() - timedelta(days=30)))])
    assert not others.any_active()
    others.note_events([event(3, device="phone", server_ts=timestamp(clock.now()))])
    assert others.any_active()


def test_a_revoked_device_is_not_active_whatever_it_sent() -> None:
    clock = FixedClock()
    others = ActiveDevices(MINE, clock)
    others.note_events([event(1, device="lost", server_ts=timestamp(clock.now()))])
    others.note_list([row("lost", clock, revoked=True)])
    assert not others.any_active()


def test_the_list_is_asked_for_at_first_each_day_and_for_a_device_that_it_lacks() -> None:
    clock = FixedClock()
    others = ActiveDevices(MINE, clock)
    assert others.must_be_listed()
    others.note_list([row(MINE, clock)])
    assert not others.must_be_listed()
    others.note_events([event(1, device="new", server_ts=timestamp(clock.now()))])
    assert others.must_be_listed()
    others.note_list([row(MINE, clock)])  # deleted since: asking again would not help
    assert not others.must_be_listed()
    clock.advance(LIST_INTERVAL)
    assert others.must_be_listed()


def test_a_time_that_is_none_is_passed_over() -> None:
    clock = FixedClock()
    others = ActiveDevices(MINE, clock)
    others.note_events([event(1, device="phone", server_ts=text) for text in ("never", "2026-02-02T10:00:00")])
    assert not others.any_active()
