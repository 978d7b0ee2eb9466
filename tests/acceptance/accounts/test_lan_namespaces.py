"""Two real sidecars in two network namespaces: no cloud can be reached, and the network between them changes."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest

from tests.acceptance.environment import cloud_settings, unique_text, wait_until_synced
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar

ADDRESSES = {"a": "192.0.2.1/24", "b": "192.0.2.2/24"}


def may_make_namespaces() -> bool:
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
        return False
    name = f"xm-{uuid4().hex[:8]}"
    if subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False).returncode:
        return False
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return True


pytestmark = [
    pytest.mark.proof,
    pytest.mark.skipif(not may_make_namespaces(), reason="this machine lets no test make network namespaces"),
]


@dataclass
class NetworkNamespaces:
    """Two namespaces that a pair of virtual interfaces joins."""

    tag: str

    def name(self, side: str) -> str:
        return f"xm-{self.tag}-{side}"

    def interface(self, side: str) -> str:
        return f"xm{self.tag}{side}"

    def run(self, side: str, *command: str) -> None:
        subprocess.run(["ip", "-n", self.name(side), *command], check=True, capture_output=True)

    def set_address(self, side: str, address: str) -> None:
        self.run(side, "addr", "flush", "dev", self.interface(side))
        self.run(side, "addr", "add", address, "dev", self.interface(side))

    def set_link(self, side: str, state: str) -> None:
        self.run(side, "link", "set", self.interface(side), state)

    @contextmanager
    def sidecar(self, side: str, home: Home) -> Iterator[Sidecar]:
        command = ["ip", "netns", "exec", self.name(side), sys.executable, "-m", "bridge.cli.main", "serve"]
        with Sidecar(home, command=command) as sidecar:
            yield sidecar


@pytest.fixture
def namespaces() -> Iterator[NetworkNamespaces]:
    made = NetworkNamespaces(uuid4().hex[:6])
    with ExitStack() as stack:
        for side in ADDRESSES:
            subprocess.run(["ip", "netns", "add", made.name(side)], check=True)
            stack.callback(subprocess.run, ["ip", "netns", "del", made.name(side)], check=True)
        ends = [made.interface("a"), "netns", made.name("a"), "type", "veth"]
        peer = ["peer", "name", made.interface("b"), "netns", made.name("b")]
        subprocess.run(["ip", "link", "add", *ends, *peer], check=True)
        for side, address in ADDRESSES.items():
            made.set_address(side, address)
            made.set_link(side, "up")
            made.run(side, "link", "set", "lo", "up")
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


def connected(sidecar: Sidecar, device: str) -> None:
    sidecar.call_until("sync/status", lambda status: status["lan"]["peers"] == [device])


def shows(sidecar: Sidecar, word: str) -> None:
    sidecar.call_until("memory/load", lambda told: word in told["digest"], waitMs=0)


def test_devices_find_each_other_on_a_network_without_a_cloud_and_again_after_it_changed(
    homes: dict[str, Home], namespaces: NetworkNamespaces
) -> None:
    with namespaces.sidecar("a", homes["a"]) as a, namespaces.sidecar("b", homes["b"]) as b:
        connected(a, "device-b")
        connected(b, "device-a")
        assert a.call("sync/status")["cloud"]["state"] != "synced"
        first, second, third = unique_text("甲说"), unique_text("乙说"), unique_text("断过")
        a.update(first)
        shows(b, first)
        namespaces.set_address("b", "192.0.2.99/24")
        b.update(second)
        shows(a, second)
        namespaces.set_link("b", "down")
        a.update(third)
        namespaces.set_link("b", "up")
        shows(b, third)
