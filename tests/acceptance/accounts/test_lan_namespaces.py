"""Two real sidecars at two stations of a network that loses frames, isolates, routes and changes; no cloud answers."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.acceptance.accounts.access_point import ADDRESSES, Network, NoNamespaces
from tests.acceptance.environment import cloud_settings, unique_text, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import CallFailed, Home, Sidecar

LOSS = 0.15  # of all frames, in both directions


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
