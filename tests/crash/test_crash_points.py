"""A sample of the crash points, more in `make proof`, all in `make crash`. CRASH_SEED and CRASH_POINTS change it."""

import os
from collections.abc import Callable
from typing import Final

import pytest

from tests.cloud.fixtures import Cloud, User
from tests.crash.crash_points import CrashPoint, ExitReason, run_point, sample
from tests.crash.crash_steps import STEPS, location_of_step
from tests.crash.in_place_writes import UNLABELLED, InPlaceWrite, in_place_writes, in_place_writes_in
from tests.crash.scenarios.scenario import BY_NAME, SCENARIOS
from tests.proof import first_in_test

POINTS: Final = sample(int(os.environ.get("CRASH_POINTS", "24")), int(os.environ.get("CRASH_SEED", "0")))


@pytest.mark.parametrize("point", first_in_test(POINTS, 3), ids=str)
def test_killed_at_a_step_what_was_acknowledged_is_there_once_and_the_file_is_whole(
    point: CrashPoint, request: pytest.FixtureRequest
) -> None:
    cloud: Cloud | None = None
    new_user: Callable[[], User] | None = None
    if BY_NAME[point.scenario].needs_cloud:
        cloud, new_user = request.getfixturevalue("local_cloud"), request.getfixturevalue("new_user")
    assert run_point(point, cloud, new_user) is ExitReason.AT_THE_POINT


def test_every_step_is_on_the_way_of_some_scenario_and_every_promised_one_is_a_step() -> None:
    assert {step for scenario in SCENARIOS for step in scenario.steps} == set(STEPS)


@pytest.mark.parametrize("step", STEPS)
def test_every_step_is_where_the_table_says(step: str) -> None:
    owner, name = location_of_step(step)
    assert callable(getattr(owner, name))


def test_whatever_changes_a_file_in_place_is_in_a_step_or_says_why_not() -> None:
    assert {place.function for place in in_place_writes() if not place.is_labelled()} == set(UNLABELLED)


def test_a_new_durable_write_is_seen_however_it_is_called() -> None:
    source = """
class Kept:
    async def put(self, path, text):
        text.replace("a", "b"), moment.replace(tzinfo=None), devices.rename("device-a", "name")
        await asyncio.to_thread(write_private, path, text)
        self.new.replace(path)
def away(path):
    (os.replace if anew else put_new)(path.with_suffix(".new"), path)
    [gone.unlink() for gone in (path,)]
"""
    found = {(place.function, place.called) for place in in_place_writes_in(source, "m")}
    put, away = {"write_private", "replace"}, {"replace", "put_new", "unlink"}
    assert found == {*(("m:Kept.put", called) for called in put), *(("m:away", called) for called in away)}
    assert not InPlaceWrite("sync.log.store:kept", "write_private").is_labelled()
    assert InPlaceWrite("sync.accounts.devices:DeviceService.list", "write_private").is_labelled()
