"""Two real sidecars without any cloud that pair by code."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.accounts.test_lan import ids_of
from tests.acceptance.environment import unique_text
from tests.sidecar import CallFailed, Home, Sidecar, wait_until

LAN = {"LAN__ENABLED": "auto", "LAN__ADDRESS": "127.0.0.1"}


@pytest.fixture
def home_a(tmp_path: Path) -> Home:
    return Home(tmp_path / "a", device="device-a", **LAN)


@pytest.fixture
def home_b(tmp_path: Path) -> Home:
    return Home(tmp_path / "b", device="device-b", **LAN)


def pair(showing: Sidecar, entering: Sidecar) -> Any:
    return entering.call("lan/pair", code=showing.call("lan/pair")["uri"])


def exchange(a: Sidecar, b: Sidecar) -> None:
    """A new edit of each arrives at the other, and each event is once everywhere."""
    word_a, word_b = unique_text("甲说"), unique_text("乙说")
    a.update(word_a)
    b.update(word_b)
    b.call_until("memory/load", lambda told: word_a in told["digest"], waitMs=0)
    a.call_until("memory/load", lambda told: word_b in told["digest"], waitMs=0)
    wait_until(lambda: ids_of(a) == ids_of(b))
    assert set(ids_of(a).values()) == {1}


def test_two_guests_pair_exchange_and_part_without_any_cloud(home_a: Home, home_b: Home) -> None:
    with Sidecar(home_a) as a, Sidecar(home_b) as b:
        before = unique_text("配对之前")
        a.update(before)
        paired = pair(a, b)
        assert (paired["state"], paired["deviceId"], paired["name"]) == ("paired", "device-a", "name of device-a")
        pairing = a.call("lan/status")["pairing"]
        assert (pairing["state"], pairing["deviceId"], pairing["words"]) == ("paired", "device-b", paired["words"])
        b.call_until("memory/load", lambda told: before in told["digest"], waitMs=0)
        exchange(a, b)
        listed = {device["deviceId"]: device for device in a.call("devices/list")["devices"]}
        assert (listed["device-b"]["paired"], listed["device-b"]["name"]) == (True, "name of device-b")
        assert a.call("auth/status")["account"]["state"] == "not_configured"
        assert a.call("lan/status")["paired"][0]["connected"]

        assert a.call("lan/forget", deviceId="device-b") == {"paired": []}
        b.call_until("lan/status", lambda status: not status["peers"])
        after = unique_text("分手之后")
        a.update(after)
        b.update(unique_text("分手之后"))
        with pytest.raises(CallFailed) as refused:
            b.call("lan/connect", host="127.0.0.1", port=a.call("lan/status")["port"])
        assert refused.value.kind in {"peer_refused", "peer_unreachable"}
        assert ids_of(a) != ids_of(b)
        assert after not in json.dumps(b.call("events/read", limit=100), ensure_ascii=False)
        status = b.call("lan/status")
        assert (status["paired"][0]["connected"], status["peers"]) == (False, [])


def test_paired_devices_find_each_other_after_a_restart(home_a: Home, home_b: Home) -> None:
    with Sidecar(home_a) as a, Sidecar(home_b) as b:
        pair(a, b)
    with Sidecar(home_a) as a, Sidecar(home_b) as b:
        a.call_until("sync/status", lambda status: status["lan"]["peers"] == ["device-b"])
        exchange(a, b)


def test_a_code_alone_is_enough_on_one_network_and_a_wrong_one_says_so(home_a: Home, home_b: Home) -> None:
    with Sidecar(home_a) as a, Sidecar(home_b) as b:
        code = a.call("lan/pair")["code"]
        with pytest.raises(CallFailed) as refused:
            b.call("lan/pair", code=f"{(int(code) + 1) % 10**8:08d}")
        assert refused.value.kind == "peer_refused"
        assert a.call("lan/status")["pairing"]["triesLeft"] == 4
        assert b.call("lan/pair", code=f"{code[:4]} {code[4:]}")["deviceId"] == "device-a"
        exchange(a, b)


def test_a_revoked_guest_is_refused_for_good_and_the_third_device_learns_of_it(
    tmp_path: Path, home_a: Home, home_b: Home
) -> None:
    with Sidecar(home_a) as a, Sidecar(home_b) as b, Sidecar(Home(tmp_path / "c", device="device-c", **LAN)) as c:
        pair(a, b)
        pair(b, c)
        pair(c, a)
        a.call_until("sync/status", lambda status: set(status["lan"]["peers"]) == {"device-b", "device-c"})
        revoked = {device["deviceId"]: device for device in a.call("devices/revoke", deviceId="device-b")["devices"]}
        assert revoked["device-b"]["revoked"]
        for sidecar in (a, c):
            sidecar.call_until("lan/status", lambda status: "device-b" not in [p["deviceId"] for p in status["peers"]])
        c.call_until("lan/status", lambda status: "revoked" in [one["cause"] for one in status["refusals"]])
        with pytest.raises(CallFailed) as refused:
            pair(a, b)
        assert refused.value.kind == "peer_refused"


def test_a_guest_without_a_second_device_lists_no_pairing_and_can_forget_none(home_a: Home) -> None:
    with Sidecar(home_a) as a:
        status = a.call("lan/status")
        assert (status["paired"], status["pairing"]) == ([], None)
        with pytest.raises(CallFailed) as refused:
            a.call("lan/forget", deviceId="device-z")
        assert refused.value.kind == "device_unknown"
        with pytest.raises(CallFailed) as refused:
            a.call("lan/pair", code="1234")
        assert refused.value.kind == "invalid_input"
