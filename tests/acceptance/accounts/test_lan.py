"""Two real sidecars of one account that sync directly while the cloud is away."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.environment import (
    Network,
    cloud_settings,
    events_of,
    local_rows,
    printed,
    unique_text,
    wait_until_synced,
)
from tests.bulk_log import fill_log
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import CallFailed, Home, Sidecar, wait_until

LAN = {"LAN__ENABLED": "auto", "LAN__ADDRESS": "127.0.0.1"}


@pytest.fixture
def home_a(tmp_path: Path, local_cloud: Cloud, network: Network) -> Home:
    return Home(tmp_path / "a", device="device-a", **cloud_settings(local_cloud, network.url), **LAN)


@pytest.fixture
def home_b(tmp_path: Path, local_cloud: Cloud, network: Network) -> Home:
    return Home(tmp_path / "b", device="device-b", **cloud_settings(local_cloud, network.url), **LAN)


def open_logged_in(home: Home, user: User) -> Sidecar:
    sidecar = Sidecar(home)
    sidecar.log_in(user.email, user.password)
    wait_until_synced(sidecar)
    return sidecar


def listening(sidecar: Sidecar) -> Any:
    return sidecar.call_until("lan/status", lambda status: status["state"] == "listening" and status["trusted"] == 1)


def connects(sidecar: Sidecar, port: int) -> str:
    """The device that answers there, or the kind of the error."""
    try:
        return str(sidecar.call("lan/connect", host="127.0.0.1", port=port)["deviceId"])
    except CallFailed as error:
        return error.kind


def ids_of(sidecar: Sidecar) -> Counter[str]:
    return Counter(event["event_id"] for event in events_of(sidecar))


def test_an_edit_travels_without_the_cloud_and_is_once_everywhere_when_the_cloud_is_back(
    home_a: Home, home_b: Home, user: User, network: Network
) -> None:
    with open_logged_in(home_a, user) as a, open_logged_in(home_b, user) as b:
        port = listening(b)["port"]
        listening(a)
        network.disconnect()
        peer = a.call("lan/connect", host="127.0.0.1", port=port)
        assert (peer["deviceId"], peer["name"]) == ("device-b", "name of device-b")
        word_a, word_b = unique_text("甲说"), unique_text("乙说")
        a.update(word_a)
        b.update(word_b)
        b.call_until("memory/load", lambda told: word_a in told["digest"], waitMs=0)
        a.call_until("memory/load", lambda told: word_b in told["digest"], waitMs=0)
        wait_until(lambda: ids_of(a) == ids_of(b))
        assert a.call("sync/status")["lan"]["peers"] == ["device-b"]
        assert [peer["deviceId"] for peer in b.call("lan/peers")["peers"]] == ["device-a"]
        assert a.call("sync/status")["pending"] > 0
        network.reconnect()
        for sidecar in (a, b):
            sidecar.call("sync/now")
            wait_until_synced(sidecar)
        wait_until(lambda: ids_of(a) == ids_of(b))
        assert set(ids_of(a).values()) == {1}
        words = [event["payload"].get("question", "") for event in events_of(b)]
        assert [sum(word in told for told in words) for word in (word_a, word_b)] == [1, 1]


def test_two_devices_find_each_other_by_themselves(home_a: Home, home_b: Home, user: User, network: Network) -> None:
    with open_logged_in(home_a, user) as a, open_logged_in(home_b, user) as b:
        for sidecar in (a, b):
            listening(sidecar)
        network.disconnect()
        a.call_until("sync/status", lambda status: status["lan"]["peers"] == ["device-b"])
        word = unique_text("甲说")
        a.update(word)
        b.call_until("memory/load", lambda told: word in told["digest"], waitMs=0)
        a.call_until("lan/status", lambda status: status["found"] == 1)


@pytest.mark.proof
def test_a_device_that_is_killed_while_it_receives_has_everything_once_afterwards(
    home_a: Home, home_b: Home, user: User, network: Network
) -> None:
    with open_logged_in(home_a, user) as a, open_logged_in(home_b, user) as b:
        for sidecar in (a, b):
            listening(sidecar)
    network.disconnect()
    fill_log(home_a.database, "device-a", 10_000)
    with Sidecar(home_a) as a:
        for _ in range(2):
            with Sidecar(home_b) as b:
                b.call_until("lan/peers", lambda answer: answer["peers"] and answer["peers"][0]["received"])
                b.kill()
        with Sidecar(home_b) as b:
            b.call_until("lan/peers", lambda answer: answer["peers"] and answer["peers"][0]["level"])
            counts = "select count(*), count(distinct event_id) from events where event_id like 'evt_history_%'"
            assert local_rows(home_b, counts) == [(10_000, 10_000)]
            assert a.call("lan/peers")["peers"][0]["level"]


@pytest.mark.proof
def test_what_another_user_of_a_machine_says_reaches_no_device_of_the_first(
    home_a: Home, home_b: Home, ann: User, ben: User
) -> None:
    with open_logged_in(home_a, ann) as a, open_logged_in(home_b, ann) as b:
        a.call_until("lan/peers", lambda answer: answer["peers"])
        b.log_in(ben.email, ben.password)
        a.call_until("lan/peers", lambda answer: not answer["peers"])
        bens, anns = unique_text("本说"), unique_text("安说")
        b.update(bens)
        b.log_in(ann.email, ann.password)
        a.call_until("lan/peers", lambda answer: answer["peers"])
        b.update(anns)
        a.call_until("memory/load", lambda told: anns in told["digest"], waitMs=0)
        assert bens not in json.dumps(events_of(a), ensure_ascii=False)


def test_a_revoked_device_is_refused_and_the_status_says_so(home_a: Home, home_b: Home, user: User) -> None:
    with open_logged_in(home_a, user) as a, open_logged_in(home_b, user) as b:
        listening(b)
        port = listening(a)["port"]
        a.call("devices/revoke", deviceId="device-b")
        wait_until(lambda: connects(b, port) == "peer_refused")  # they may have found each other before
        status = a.call_until("lan/status", lambda status: status["refusals"])
        assert (status["refusals"][0]["cause"], status["refusals"][0]["deviceId"]) == ("revoked", "device-b")
        shown = printed(home_a, f"端口 {port}", "lan", "status")
        assert "revoked" in shown


def test_a_device_of_another_account_is_a_stranger(
    home_a: Home, home_b: Home, tmp_path: Path, local_cloud: Cloud, user: User
) -> None:
    other = Home(tmp_path / "x", device="device-x", **cloud_settings(local_cloud), **{**LAN, "LAN__ENABLED": "on"})
    with open_logged_in(home_a, user) as a, open_logged_in(home_b, user), Sidecar(other) as x:
        port = listening(a)["port"]
        with pytest.raises(CallFailed) as refused:
            x.call("lan/connect", host="127.0.0.1", port=port)
        assert refused.value.kind == "peer_refused"
        assert [one["cause"] for one in x.call("lan/status")["refusals"]] == ["stranger"]
        assert "device-x" not in [peer["deviceId"] for peer in a.call("lan/peers")["peers"]]
        status = a.call("lan/status")
        assert [(one["cause"], one["deviceId"]) for one in status["refusals"]] in ([("stranger", "")], [])


def test_a_device_that_is_alone_opens_no_port_and_off_means_off(tmp_path: Path) -> None:
    alone, off = Home(tmp_path / "a", **LAN), Home(tmp_path / "b", LAN__ENABLED="off")
    with Sidecar(alone) as a, Sidecar(off) as b:
        a.call_until("lan/status", lambda status: status["state"] == "alone")
        status = b.call("lan/status")
        assert (status["state"], status["port"]) == ("off", None)
        with pytest.raises(CallFailed) as refused:
            b.call("lan/connect", host="127.0.0.1", port=9)
        assert refused.value.kind == "lan_off"


def test_a_port_that_is_taken_is_shown_and_other_work_goes_on(tmp_path: Path) -> None:
    import socket  # noqa: PLC0415

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        home = Home(tmp_path / "a", LAN__ENABLED="on", LAN__ADDRESS="127.0.0.1", LAN__PORT=port)
        with Sidecar(home) as sidecar:
            status = sidecar.call_until("lan/status", lambda status: status["state"] == "failed")
            assert "cannot be opened" in status["problem"]
            report = json.loads(home.run("--json", "doctor", check=False).stdout)  # a command asks the sidecar
            assert "cannot be opened" in {check["name"]: check["found"] for check in report["checks"]}["local network"]
            assert sidecar.update("照常")["recorded"]
