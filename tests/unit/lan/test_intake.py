"""How much a peer may bring in a day."""

from datetime import timedelta

from sync.lan.intake import DailyIntake
from tests.support import FixedClock


def test_each_device_has_a_day_of_its_own() -> None:
    clock = FixedClock()
    intake = DailyIntake(clock, events=10, size=100)
    assert intake.has_room("device-b")
    intake.add("device-b", 10, 1)
    intake.add("device-c", 1, 100)
    intake.add("device-d", 9, 99)
    assert [intake.has_room(name) for name in ("device-b", "device-c", "device-d")] == [False, False, True]
    clock.advance(timedelta(days=1).total_seconds())
    assert intake.has_room("device-b")
    intake.add("device-b", 9, 1)
    assert intake.has_room("device-b")
