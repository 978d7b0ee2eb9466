"""What a second login changes in the facts of the first: it waits, is named, is answered once for all devices."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.environment import cloud_settings, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import CallFailed, Home, Sidecar, wait_until

ALLERGY, CITY = "我对花生过敏", "我住在天津"


@pytest.fixture
def open_device(tmp_path: Path, local_cloud: Cloud, user: User) -> Iterator[Any]:
    with ExitStack() as stack:

        def opened(name: str) -> Sidecar:
            home = Home(tmp_path / name, device=f"device-{name}", DEVICE_NAME=name, **cloud_settings(local_cloud))
            sidecar = stack.enter_context(Sidecar(home))
            sidecar.log_in(user.email, user.password)
            wait_until_synced(sidecar)
            return sidecar

        yield opened


def statuses(sidecar: Sidecar) -> dict[str, str]:
    return {fact["statement"]: fact["status"] for fact in sidecar.call("understanding/facts", status="all")["facts"]}


def fact_id(sidecar: Sidecar, statement: str) -> str:
    facts = sidecar.call("understanding/facts", status="all")["facts"]
    return next(str(fact["factId"]) for fact in facts if fact["statement"] == statement)


def wait_for_changes(sidecar: Sidecar, *befores: str) -> dict[str, str]:
    """Wait until exactly these texts are to be changed; the ids of the changes."""

    def listed() -> dict[str, str]:
        devices = sidecar.call("changes/list")["devices"]
        return {change["before"][0]: change["eventId"] for device in devices for change in device["changes"]}

    wait_until(lambda: set(listed()) == set(befores))
    return listed()


def warnings(sidecar: Sidecar) -> set[str]:
    return set(sidecar.call("sync/status")["document"]["warnings"])


def test_one_device_sees_nothing_of_it(open_device: Any) -> None:
    home = open_device("home")
    home.update(ALLERGY)
    home.call("understanding/retract", factId=fact_id(home, ALLERGY))
    wait_until_synced(home)
    assert home.call("sync/status")["changes"] is None
    assert home.call("changes/list") == {"devices": [], "answered": []}
    assert not {"device_waits", "foreign_changes_wait", "foreign_changes"} & warnings(home)


@pytest.fixture
def pair(open_device: Any) -> tuple[Sidecar, Sidecar]:
    """The device that stated three facts, and a second login that takes two of them away and states one anew."""
    home = open_device("home")
    for said in (ALLERGY, CITY, "我养了一只猫"):
        home.update(said)
    wait_until_synced(home)
    second = open_device("second")
    second.call_until("understanding/facts", lambda page: len(page["facts"]) == 3)
    second.call("understanding/retract", factId=fact_id(second, ALLERGY))
    second.call("understanding/edit", factId=fact_id(second, "我养了一只猫"), text="我养了一只狗")
    second.update("我现在住在宁波")
    wait_until_synced(second)
    return home, second


def test_what_a_new_login_changes_holds_there_and_waits_elsewhere_until_it_is_admitted(
    pair: tuple[Sidecar, Sidecar],
) -> None:
    home, second = pair
    there = {ALLERGY: "retracted", CITY: "superseded", "我养了一只狗": "active", "我现在住在宁波": "active"}
    assert statuses(second) == there
    wait_for_changes(home, ALLERGY, CITY, "我养了一只猫")
    here = {ALLERGY: "active", CITY: "active", "我养了一只猫": "active", "我现在住在宁波": "candidate"}
    assert statuses(home) == here
    assert {"device_waits", "foreign_changes_wait"} <= warnings(home)
    assert ALLERGY in home.load()["document"]
    with pytest.raises(CallFailed, match="not admitted"):
        second.call("changes/accept")
    with pytest.raises(CallFailed, match="not admitted"):
        second.call("devices/admit", deviceId="device-second")
    with pytest.raises(CallFailed, match="used lately"):
        second.call("devices/admit", recover=True)
    home.call("devices/admit", deviceId="device-second")
    assert statuses(home) == there
    wait_until_synced(home)
    assert "device_waits" not in warnings(home)
    assert "foreign_changes" in warnings(home)
    named = wait_for_changes(home, ALLERGY, CITY)  # of identity and health, with one undo
    home.call("changes/refuse", ids=[named[ALLERGY]])
    assert statuses(home)[ALLERGY] == "active"
    wait_until_synced(home)
    second.call_until("understanding/facts", lambda page: ALLERGY in str(page))
    assert statuses(second) == statuses(home)


def test_an_answer_makes_changes_hold_or_ends_them_on_all_devices_and_vital_ones_are_named(
    pair: tuple[Sidecar, Sidecar],
) -> None:
    home, second = pair
    changes = wait_for_changes(home, ALLERGY, CITY, "我养了一只猫")
    accepted = home.call("changes/accept", ids=["device-second"])["answered"]
    assert set(accepted).isdisjoint({changes[ALLERGY]})
    assert statuses(home)["我养了一只狗"] == "active"
    home.call("changes/refuse")
    assert statuses(home)[ALLERGY] == "active"
    assert wait_for_changes(home) == {}
    wait_until_synced(home)
    second.call_until("understanding/facts", lambda page: ALLERGY in str(page))
    assert statuses(second) == statuses(home)


def test_a_refused_device_is_revoked_and_what_it_changed_is_gone(pair: tuple[Sidecar, Sidecar]) -> None:
    home, _ = pair
    wait_for_changes(home, ALLERGY, CITY, "我养了一只猫")
    listed = home.call("devices/refuse", deviceId="device-second")["devices"]
    assert [one["deviceId"] for one in listed if one["revoked"]] == ["device-second"]
    as_before = dict.fromkeys((ALLERGY, CITY, "我养了一只猫"), "active")
    assert statuses(home) == {**as_before, "我现在住在宁波": "retracted"}
    assert home.call("changes/list")["devices"] == []


def test_a_new_login_erases_no_decision_and_no_registration_of_the_first_device(
    pair: tuple[Sidecar, Sidecar],
) -> None:
    home, second = pair
    home.call("changes/refuse", ids=[wait_for_changes(home, ALLERGY, CITY, "我养了一只猫")["我养了一只猫"]])
    home.update("我喜欢喝茶")
    home.call("understanding/retract", factId=fact_id(home, "我喜欢喝茶"))
    wait_until_synced(home)
    second.call_until("understanding/facts", lambda page: "我养了一只猫" in str(page), status="active")
    types = ("device_registered", "foreign_change_answered", "fact_retracted")

    def decisions_of_home(page: Any) -> list[str]:
        return [event["event_id"] for event in page["events"] if event["device_id"] == "device-home"]

    page = second.call_until("events/read", lambda got: len(decisions_of_home(got)) == 3, types=types)
    taken = decisions_of_home(page)
    before, listed = statuses(home), home.call("changes/list")
    for event_id in taken:
        second.call("events/forget", eventIds=[event_id])
    wait_until_synced(second)
    home.call_until("sync/status", lambda told: "mass_erasure_waits" in told["document"]["warnings"])
    wait_until_synced(home)
    assert (statuses(home), home.call("changes/list")) == (before, listed)
    home.stop()
    with Sidecar(home.home) as again:
        wait_until_synced(again)
        assert (statuses(again), again.call("changes/list")) == (before, listed)
        assert {"device_waits", "foreign_changes_wait", "mass_erasure_waits"} <= warnings(again)
        again.call("devices/admit", deviceId="device-second")
        wait_until(lambda: statuses(again) == statuses(second), 20)
        wait_until(lambda: "mass_erasure_waits" not in warnings(again))
