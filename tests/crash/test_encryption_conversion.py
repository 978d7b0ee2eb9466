"""Killed at every step of an encryption or a decryption; of the other points `test_points.py` takes a sample."""

from typing import Final

import pytest

from tests.crash.crash_points import CrashPoint, ExitReason, run_point
from tests.proof import first_in_test

STEPS: Final = {
    "encrypt": (
        "make the key",
        "set the mark",
        "copy all rows",
        "check the converted",
        "put the converted in place",
    ),
    "decrypt": ("copy all rows", "check the converted", "put the converted in place", "remove the mark"),
}


# What lies between two steps is shown by the side of one of them.
POINTS: Final = [
    *(CrashPoint(scenario, step, "before") for scenario, steps in STEPS.items() for step in steps),
    *(CrashPoint(scenario, steps[-1], "after") for scenario, steps in STEPS.items()),
]


@pytest.mark.parametrize("point", first_in_test(POINTS, 2), ids=str)
def test_killed_at_a_step_of_the_conversion_one_whole_database_is_left(point: CrashPoint) -> None:
    assert run_point(point, None, None) is ExitReason.AT_THE_POINT
