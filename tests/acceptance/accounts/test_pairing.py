"""Two real sidecars without any cloud that pair by code."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.accounts.test_lan import ids_of
from tests.acceptance.environment import (
    ServerRows,
    cloud_settings,
    exchanges,
    printed,
    unique_text,
    wait_until_synced,
)
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import COMMAND, CallFailed, Home, Sidecar, wait_until

LAN = {"LAN__ENABLED": "auto", "LAN__ADDRESS": "127.0.0.1"}


@pytest.fixture
def home_a(tmp_path: Path) -> Home:
    return Home(tmp_path / "a", device="device-a", **LAN)


@pytest.fixture
def home_b(tmp_path: Path) -> Home:
    return Home(tmp_path / "b", device="device-b", **LAN)


def pair(showing: Sidecar, entering: Sidecar) -> Any:
    return entering.call("lan/pair", code=showing.call("lan/pair")["uri"])


def outcome(showing: Sidecar) -> Any:
    """What became of the code that was shown; the device that entered it may know a moment earlier."""
    status = showing.call_until("lan/status", lambda status: status["pairing"]["state"] != "waiting")
    return status["pairing"]


def is_listening(status: Any) -> bool:
    return bool(status["state"] == "listening")


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
        pairing = outcome(a)
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
        assert 1 <= a.call("lan/status")["pairing"]["triesLeft"] <= 4  # a test beside this one may try its code here
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


def test_the_commands_show_a_code_take_it_and_end_the_pairing(home_a: Home, home_b: Home) -> None:
    with Sidecar(home_a) as a, Sidecar(home_b):
        shown = json.loads(printed(home_a, "code", "lan", "pair", "--json"))
        printed(home_a, "正在显示配对码", "lan", "status")
        taken = printed(home_b, "已与 name of device-a 配对（device-a）", "lan", "pair", shown["uri"])
        words = outcome(a)["words"]
        assert " ".join(words) in taken
        printed(home_a, "已配对：name of device-b  device-b", "lan", "status")
        assert "已配对" in home_b.run("devices", "list").stdout
        assert home_b.run("lan", "forget", "device-a").stdout == "没有设备与本机配对\n"
        printed(home_a, "code", "lan", "pair", "--json")
        assert "正在显示配对码" not in home_a.run("lan", "pair", "--cancel").stdout


def test_the_command_that_shows_a_code_waits_until_it_was_entered(home_a: Home, home_b: Home) -> None:
    with Sidecar(home_a) as a, Sidecar(home_b) as b:
        printed(home_a, "没有其他设备", "lan", "status")
        showing = subprocess.Popen([*COMMAND, "lan", "pair"], env=home_a.environment, stdout=subprocess.PIPE, text=True)
        assert showing.stdout is not None
        lines = [showing.stdout.readline() for _ in range(3)]
        assert "█" not in "".join(lines), "the QR code is drawn on a terminal only"
        b.call("lan/pair", code=lines[1].partition("：")[2].strip())
        rest = showing.stdout.read()
        assert "已与 name of device-b 配对（device-b）" in rest
        assert " ".join(a.call("lan/status")["pairing"]["words"]) in rest
        assert showing.wait() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a pseudo-terminal")
def test_the_qr_code_is_drawn_on_a_terminal(home_a: Home) -> None:
    with Sidecar(home_a) as a:
        printed(home_a, "没有其他设备", "lan", "status")
        terminal, other_end = os.openpty()
        showing = subprocess.Popen([*COMMAND, "lan", "pair"], env=home_a.environment, stdout=other_end)
        os.close(other_end)
        drawn = b""
        while "只能用一次".encode() not in drawn:
            drawn += os.read(terminal, 4096)
        assert drawn.decode().count("█") > 100
        showing.send_signal(signal.SIGINT)
        showing.wait()
        os.close(terminal)
        pairing = a.call("lan/status")["pairing"]
        assert (pairing["state"], pairing["cause"]) == ("failed", "code_cancelled"), "Ctrl-C ends the code"


def test_without_a_sidecar_the_commands_say_what_is_missing(home_a: Home) -> None:
    refused = home_a.run("lan", "pair", check=False)
    assert refused.returncode == 1
    assert "xiaobai-memory serve" in refused.stderr
    assert "lan pair" not in refused.stderr
    unknown = home_a.run("lan", "forget", "device-z", check=False)
    assert unknown.returncode == 1
    assert "没有这个编号的设备与本机配对" in unknown.stderr


def test_paired_guests_erase_together(home_a: Home, home_b: Home) -> None:
    with Sidecar(home_a) as a, Sidecar(home_b) as b:
        pair(a, b)
        word = unique_text("不该记住")
        a.update(word)
        b.call_until("memory/load", lambda told: word in told["digest"], waitMs=0)
        a.call("events/forgetMatching", query=word, dryRun=False)
        b.call_until("memory/load", lambda told: word not in told["digest"] + told["document"], waitMs=0)
        wait_until(lambda: word not in json.dumps(b.call("events/read", limit=100), ensure_ascii=False))


def test_paired_guests_who_log_in_to_one_account_have_each_event_once_everywhere(
    tmp_path: Path, local_cloud: Cloud, user: User, server: ServerRows
) -> None:
    """The second follows the first, logged out; its own login sends what only it may send."""
    homes = [Home(tmp_path / name, device=f"device-{name}", **cloud_settings(local_cloud), **LAN) for name in "ab"]
    with Sidecar(homes[0]) as a, Sidecar(homes[1]) as b:
        pair(a, b)
        exchange(a, b)
        a.log_in(user.email, user.password)
        wait_until_synced(a)
        b.call_until("auth/status", lambda told: told["account"]["state"] == "logged_out")
        assert b.call("auth/status")["account"]["userId"] == a.call("auth/status")["account"]["userId"]
        exchange(a, b)
        b.log_in(user.email, user.password)
        for sidecar in (a, b, a):
            sidecar.call("sync/now")
        wait_until(lambda: ids_of(a) == ids_of(b))
        assert set(ids_of(a).values()) == {1}
        assert (a.call("sync/status")["pending"], b.call("sync/status")["pending"]) == (0, 0)
        assert sorted(server.event_ids()) == sorted(event["event_id"] for event in exchanges(a))


def test_paired_guests_who_log_in_to_two_accounts_exchange_nothing_more(
    tmp_path: Path, local_cloud: Cloud, ann: User, ben: User
) -> None:
    homes = [Home(tmp_path / name, device=f"device-{name}", **cloud_settings(local_cloud), **LAN) for name in "ab"]
    with Sidecar(homes[0]) as a, Sidecar(homes[1]) as b:
        pair(a, b)
        exchange(a, b)
    with Sidecar(homes[0]) as a:
        a.log_in(ann.email, ann.password)
        wait_until_synced(a)
    with Sidecar(homes[1]) as b:
        b.log_in(ben.email, ben.password)
        wait_until_synced(b)
        with Sidecar(homes[0]) as a:
            secret = unique_text("只属于甲")
            a.update(secret)
            with pytest.raises(CallFailed) as refused:
                b.call("lan/connect", host="127.0.0.1", port=a.call_until("lan/status", is_listening)["port"])
            assert refused.value.kind == "peer_refused"
            a.call_until("lan/status", lambda told: "other_account" in [one["cause"] for one in told["refusals"]])
            assert secret not in json.dumps(b.call("events/read", limit=200), ensure_ascii=False)
            assert b.call("lan/peers")["peers"] == []
