"""Two real sidecars at two stations of a network that loses frames, isolates, routes and changes; no cloud answers."""

import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.accounts.access_point import ADDRESSES, INTERFACE, Network, NoNamespaces
from tests.acceptance.environment import cloud_settings, unique_text, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import REPOSITORY, CallFailed, Home, Sidecar

LOSS = 0.15  # of all frames, in both directions
ATTACKS = {  # by the name in `lan_attacker`: the cause, and the device that is named
    "no_tls": ("tls_failed", ""),
    "old_tls": ("tls_failed", ""),
    "recorded_bytes": ("tls_failed", ""),
    "no_certificate": ("stranger", ""),
    "unknown_key": ("stranger", ""),
    "large_frame": ("protocol_error", "device-b"),
    "half_open": ("too_slow", "device-b"),
}


def make_network(*, routed: bool = False) -> Network:
    try:
        return Network(routed=routed)
    except NoNamespaces as error:
        pytest.skip(str(error))


@pytest.fixture
def network() -> Iterator[Network]:
    with make_network() as made:
        yield made


@pytest.fixture
def homes(tmp_path: Path, local_cloud: Cloud, user: User) -> dict[str, Home]:
    """Two devices that have been logged in once, and know each other's keys."""
    made = {
        side: Home(tmp_path / side, device=f"device-{side}", **cloud_settings(local_cloud), LAN__ENABLED="auto")
        for side in ADDRESSES
    }
    with ExitStack() as stack:
        opened = [stack.enter_context(Sidecar(home)) for home in made.values()]
        for sidecar in opened:
            sidecar.log_in(user.email, user.password)
            wait_until_synced(sidecar)
        for sidecar in opened:
            sidecar.call_until("lan/status", lambda status: status["trusted"] == 1)
    return made


@contextmanager
def attacker_at_b(network: Network, home: Home, port: int) -> Iterator[Callable[[str], None]]:
    """A program at the other station that attacks the device at `a`; it has the key of a trusted device."""
    arguments = [
        ADDRESSES["a"].partition("/")[0],
        str(port),
        str(home.database.parent / "device-key"),
        str(home.folder),
    ]
    process = subprocess.Popen(
        [*network.inside("b"), sys.executable, "-m", "tests.acceptance.accounts.lan_attacker", *arguments],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY, text=True,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None
    given, answers = process.stdin, process.stdout

    def attack(name: str) -> None:
        given.write(f"{name}\n")
        given.flush()
        assert answers.readline() == "\n", f"the attack {name} failed"

    try:
        yield attack
    finally:
        process.kill()
        process.wait()


def refusals(status: Any) -> Counter[tuple[str, str]]:
    """How often each cause was met, by the device that is named."""
    counts = Counter[tuple[str, str]]()
    for one in status["refusals"]:
        counts[one["cause"], one["deviceId"]] += one["count"]
    return counts


@contextmanager
def two_sidecars(network: Network, homes: dict[str, Home]) -> Iterator[tuple[Sidecar, Sidecar]]:
    with network.sidecar("a", homes["a"]) as a, network.sidecar("b", homes["b"]) as b:
        yield a, b


def connected(sidecar: Sidecar, *devices: str) -> None:
    sidecar.call_until("sync/status", lambda status: status["lan"]["peers"] == [*devices])


def shows(sidecar: Sidecar, word: str) -> None:
    sidecar.call_until("memory/load", lambda told: word in told["digest"], waitMs=0)


def travels_both_ways(a: Sidecar, b: Sidecar) -> None:
    word_a, word_b = unique_text("甲说"), unique_text("乙说")
    a.update(word_a)
    b.update(word_b)
    shows(b, word_a)
    shows(a, word_b)


def announced(sidecar: Sidecar) -> int:
    """The port, once the device announces itself at its address."""
    status = sidecar.call_until("lan/status", lambda status: [one["problem"] for one in status["interfaces"]] == [None])
    return int(status["port"])


def connects(sidecar: Sidecar, host: str, port: int) -> str:
    """The device that answers there, or the kind of the error."""
    try:
        return str(sidecar.call("lan/connect", host=host, port=port)["deviceId"])
    except CallFailed as error:
        return error.kind


def doctor(sidecar: Sidecar) -> dict[str, str]:
    checks = sidecar.call("doctor")["checks"]
    return next(check for check in checks if check["name"] == "local network")


def test_devices_find_each_other_on_a_network_that_loses_frames(homes: dict[str, Home], network: Network) -> None:
    network.set_loss(LOSS)
    with two_sidecars(network, homes) as (a, b):
        connected(a, "device-b")
        connected(b, "device-a")
        assert a.call("sync/status")["cloud"]["state"] != "synced"
        travels_both_ways(a, b)


@pytest.mark.proof
def test_guests_on_one_network_pair_by_the_digits_alone_and_meet_again(tmp_path: Path, network: Network) -> None:
    guests = {side: Home(tmp_path / side, device=f"device-{side}", LAN__ENABLED="auto") for side in ADDRESSES}
    with two_sidecars(network, guests) as (a, b):
        shown = a.call("lan/pair")
        assert f"at={ADDRESSES['a'].partition('/')[0]}:" in shown["uri"]
        assert b.call("lan/pair", code=shown["code"])["deviceId"] == "device-a"
        travels_both_ways(a, b)
    with two_sidecars(network, guests) as (a, b):
        connected(a, "device-b")
        travels_both_ways(a, b)


@pytest.mark.proof
def test_a_changed_address_and_a_link_that_was_down_are_recovered_from(
    homes: dict[str, Home], network: Network
) -> None:
    with two_sidecars(network, homes) as (a, b):
        connected(a, "device-b")
        moved, cut = unique_text("搬过"), unique_text("断过")
        network.set_address("b", "192.0.2.99/24")
        b.update(moved)
        shows(a, moved)
        network.set_link("b", "down")
        a.update(cut)
        connected(a)  # half open: nothing says that b is gone
        network.set_link("b", "up")
        shows(b, cut)


@pytest.mark.proof
def test_a_network_without_multicast_is_crossed_by_an_address_and_doctor_says_so(
    homes: dict[str, Home], network: Network
) -> None:
    network.set_multicast(carried=False)
    with two_sidecars(network, homes) as (a, b):
        announced(a)
        port = announced(b)
        assert a.call("lan/status")["found"] == 0
        assert "no other device was found" in doctor(a)["found"]
        assert "lan connect" in doctor(a)["hint"]
        assert connects(a, "192.0.2.2", port) == "device-b"
        travels_both_ways(a, b)


@pytest.mark.proof
def test_a_network_that_isolates_its_stations_is_named_and_recovered_from(
    homes: dict[str, Home], network: Network
) -> None:
    network.set_isolation(isolated=True)
    with two_sidecars(network, homes) as (a, b):
        announced(a)
        port = announced(b)
        assert connects(a, "192.0.2.2", port) == "peer_unreachable"
        assert a.call("lan/status")["found"] == 0
        assert "keep devices apart" in doctor(a)["hint"]
        network.set_isolation(isolated=False)
        assert connects(a, "192.0.2.2", port) == "device-b"
        travels_both_ways(a, b)


@pytest.mark.proof
def test_two_subnets_are_crossed_by_an_address(homes: dict[str, Home]) -> None:
    with make_network(routed=True) as network, two_sidecars(network, homes) as (a, b):
        announced(a)
        port = announced(b)
        assert a.call("lan/status")["found"] == b.call("lan/status")["found"] == 0
        assert connects(a, "198.51.100.1", port) == "device-b"
        travels_both_ways(a, b)


@pytest.mark.proof
def test_a_device_that_slept_is_left_and_gets_level_when_it_wakes(homes: dict[str, Home], network: Network) -> None:
    with two_sidecars(network, homes) as (a, b):
        connected(a, "device-b")
        connected(b, "device-a")
        a.process.send_signal(signal.SIGSTOP)
        connected(b)
        word = unique_text("睡着时")
        b.update(word)
        a.process.send_signal(signal.SIGCONT)
        shows(a, word)
        travels_both_ways(a, b)


@pytest.mark.proof
def test_devices_on_two_networks_are_reached_on_the_one_that_is_left(homes: dict[str, Home], network: Network) -> None:
    for side, number in (("a", 1), ("b", 2)):
        network.run(side, "ip", "addr", "add", f"198.51.100.{number}/24", "dev", INTERFACE)
    with two_sidecars(network, homes) as (a, b):
        connected(a, "device-b")
        for address in ("192.0.2.2/24", "198.51.100.2/24"):
            network.run("b", "ip", "addr", "del", address, "dev", INTERFACE)
            travels_both_ways(a, b)
            network.run("b", "ip", "addr", "add", address, "dev", INTERFACE)
            b.call_until("lan/status", lambda status: len(status["interfaces"]) == 2)


@pytest.mark.proof
def test_a_network_of_ipv6_alone_is_crossed_by_an_address(homes: dict[str, Home], network: Network) -> None:
    for side, address in (("a", "fd00::1/64"), ("b", "fd00::2/64")):
        network.run(side, "ip", "-4", "addr", "flush", "dev", INTERFACE)
        network.run(side, "ip", "-6", "addr", "add", address, "dev", INTERFACE, "nodad")
    with two_sidecars(network, homes) as (a, b):
        for sidecar in (a, b):
            port = sidecar.call_until("lan/status", lambda status: status["state"] == "listening")["port"]
        assert connects(a, "fd00::2", port) == "device-b"
        assert [peer["address"] for peer in a.call("lan/peers")["peers"]] == ["fd00::2"]
        travels_both_ways(a, b)


@pytest.mark.proof
def test_an_attacker_at_another_station_is_refused_by_cause_and_keeps_no_device_out(
    homes: dict[str, Home], network: Network
) -> None:
    network.set_multicast(carried=False)  # only b calls
    for number in range(20, 32):
        network.run("b", "ip", "addr", "add", f"192.0.2.{number}/24", "dev", INTERFACE)
    homes["b"].settings["LAN__ADDRESS"] = "192.0.2.2"
    with network.sidecar("a", homes["a"]) as a:
        port = announced(a)
        with attacker_at_b(network, homes["b"], port) as attack:
            for name, cause in ATTACKS.items():
                before = refusals(a.call("lan/status"))[cause]
                while refusals(a.call("lan/status"))[cause] == before:  # at first there may be no place for its address
                    attack(name)
            connected(a)
            assert set(refusals(a.call("lan/status"))) - {("too_many_connections", "")} == set(ATTACKS.values())
            attack("hold_places")
            a.call_until("lan/status", lambda status: refusals(status)["too_many_connections", ""])
            with network.sidecar("b", homes["b"]) as b:
                b.call_until("lan/status", lambda status: status["state"] == "listening")
                assert any(connects(b, "192.0.2.1", port) == "device-a" for _ in range(5))
                travels_both_ways(a, b)
    log = (homes["a"].folder / "stderr.log").read_text()
    assert {cause: log.count(f"refused: {cause}") for cause, _ in ATTACKS.values()} == {
        cause: 1 for cause, _ in ATTACKS.values()
    }


@pytest.mark.proof
def test_a_thousand_false_announcements_stop_discovery_and_nothing_else(
    homes: dict[str, Home], network: Network
) -> None:
    with network.sidecar("a", homes["a"]) as a:
        with attacker_at_b(network, homes["b"], announced(a)) as attack:
            attack("flood")
            a.call_until(
                "lan/status", lambda status: "too many announcements" in (status["interfaces"][0]["problem"] or "")
            )
            assert a.call("lan/status")["found"] == 0
        with network.sidecar("b", homes["b"]) as b:
            port = b.call_until("lan/status", lambda status: status["state"] == "listening")["port"]
            assert connects(a, "192.0.2.2", port) == "device-b"
            travels_both_ways(a, b)


@pytest.mark.proof
def test_a_copied_home_and_a_revoked_device_are_refused_by_name(
    homes: dict[str, Home], network: Network, tmp_path: Path
) -> None:
    shutil.copytree(homes["a"].folder, tmp_path / "copy")
    places = {"DATA_DIR": str(tmp_path / "copy" / "data"), "MEMORY_FILE": str(tmp_path / "copy" / homes["a"].file.name)}
    copy = Home(tmp_path / "copy", **{**homes["a"].settings, **places})
    with Sidecar(homes["a"]) as a:
        a.call("devices/revoke", deviceId="device-b")
    homes["a"].settings["LAN__ENABLED"] = "on"  # no other device is left
    with network.sidecar("a", homes["a"]) as a:
        port = announced(a)
        for home, cause in ((copy, "copy_of_this_device"), (homes["b"], "revoked")):
            with network.sidecar("b", home) as b:
                b.call_until("lan/status", lambda status: status["state"] == "listening")
                assert connects(b, "192.0.2.1", port) == "peer_refused"
            assert cause in {cause for cause, _ in refusals(a.call("lan/status"))}
        assert ("revoked", "device-b") in refusals(a.call("lan/status"))
        assert a.call("lan/peers")["peers"] == []
