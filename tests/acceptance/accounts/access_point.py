"""A network between two stations, each in a network namespace of its own; works without root.

`Network` starts this module as a program in a third namespace: the access point, which carries every Ethernet frame
from one station to the other, or does not. With `--routed` it is a router between two subnets instead.
"""

import array
import fcntl
import json
import os
import random
import select
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final, Self

from tests.sidecar import REPOSITORY, Home, Sidecar, wait_until

ADDRESSES: Final = {"a": "192.0.2.1/24", "b": "192.0.2.2/24"}
ROUTED: Final = {"a": "192.0.2.1/24", "b": "198.51.100.1/24"}
ROUTERS: Final = {"a": "192.0.2.254", "b": "198.51.100.254"}
MODULE: Final = "tests.acceptance.accounts.access_point"
INTERFACE: Final = "eth0"  # of each station
OFFLOADS: Final = (0x17, 0x1F, 0x24)  # of checksums and segments: frames that we carry have to be whole
SIOCETHTOOL: Final = 0x8946
BROADCAST: Final = b"\xff" * 6
FRAME_BYTES: Final = 65_536
READY_WITHIN: Final = 20.0  # seconds


class NoNamespaces(Exception):
    """This machine lets the test make no network namespaces."""


class Network:
    """Two stations `a` and `b`. The network is whole at first; each `set_…` changes what it does from then on."""

    def __init__(self, *, routed: bool = False) -> None:
        if sys.platform != "linux":
            raise NoNamespaces("network namespaces are of Linux")
        self.is_root = os.geteuid() == 0
        self.addresses = ROUTED if routed else ADDRESSES
        alone = ["unshare", "--net", *([] if self.is_root else ["--map-root-user"])]
        program = [sys.executable, "-m", MODULE, *(["--routed"] if routed else [])]
        try:
            self._process = subprocess.Popen(
                [*alone, *program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=REPOSITORY, text=True
            )
        except OSError as error:
            raise NoNamespaces("there is no `unshare`") from error
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise NoNamespaces(f"the access point ended with {self._process.wait(READY_WITHIN)}")
        self._stations: dict[str, int] = json.loads(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(READY_WITHIN)

    def set_loss(self, share: float) -> None:
        """Lose this share of all frames."""
        self._send(loss=share)

    def set_multicast(self, *, carried: bool) -> None:
        """Carry multicast, or only what has one station's address."""
        self._send(multicast=carried)

    def set_isolation(self, *, isolated: bool) -> None:
        """Keep the stations apart, as guest networks do."""
        self._send(isolated=isolated)

    def set_address(self, side: str, address: str) -> None:
        self.run(side, "ip", "addr", "flush", "dev", INTERFACE)
        self.run(side, "ip", "addr", "add", address, "dev", INTERFACE)

    def set_link(self, side: str, state: str) -> None:
        self.run(side, "ip", "link", "set", INTERFACE, state)

    def run(self, side: str, *command: str) -> None:
        subprocess.run([*self.inside(side), *command], check=True, capture_output=True)

    def inside(self, side: str) -> list[str]:
        """The beginning of a command that runs at a station."""
        user = [] if self.is_root else ["--user", "--preserve-credentials"]
        return ["nsenter", "--target", str(self._stations[side]), "--net", *user]

    @contextmanager
    def sidecar(self, side: str, home: Home) -> Iterator[Sidecar]:
        with Sidecar(home, command=[*self.inside(side), sys.executable, "-m", "bridge.cli.main", "serve"]) as sidecar:
            yield sidecar

    def _send(self, **changes: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(changes) + "\n")
        self._process.stdin.flush()
        self._process.stdout.readline()


def main(arguments: Sequence[str]) -> None:
    """Make the stations, print their processes, carry frames until stdin ends."""
    if "--whole-frames" in arguments:
        _without_offloads(INTERFACE)
        return
    routed = "--routed" in arguments
    with ExitStack() as stack:
        stations: dict[str, int] = {}
        for side, address in (ROUTED if routed else ADDRESSES).items():
            station = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
            stack.callback(station.wait)
            stack.callback(station.kill)
            stations[side] = station.pid
            own = Path("/proc/self/ns/net").readlink()
            wait_until(lambda: Path(f"/proc/{station.pid}/ns/net").readlink() != own)  # noqa: B023 - called at once
            _connect(side, station.pid, address, router=ROUTERS[side] if routed else None)
        if routed:
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
        print(json.dumps(stations), flush=True)
        _carry([] if routed else [_frames_of(f"ap-{side}") for side in stations])


def _connect(side: str, station: int, address: str, *, router: str | None) -> None:
    """A pair of interfaces, one end at the station."""
    end = f"ap-{side}"
    inside = ["nsenter", "--target", str(station), "--net"]
    _ip("link", "add", end, "type", "veth", "peer", "name", INTERFACE, "netns", str(station))
    for command in (["link", "set", "lo", "up"], ["addr", "add", address, "dev", INTERFACE]):
        _ip(*command, inside=inside)
    _without_offloads(end)
    _ip("link", "set", end, "up")
    _ip("link", "set", INTERFACE, "up", inside=inside)
    subprocess.run([*inside, sys.executable, "-m", MODULE, "--whole-frames"], check=True)
    if router is not None:
        _ip("addr", "add", f"{router}/24", "dev", end)
        _ip("route", "add", "default", "via", router, inside=inside)


def _ip(*command: str, inside: Sequence[str] = ()) -> None:
    subprocess.run([*inside, "ip", *command], check=True, capture_output=True)


def _without_offloads(interface: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        for offload in OFFLOADS:
            value = array.array("B", struct.pack("II", offload, 0))
            request = struct.pack("16sP", interface.encode(), value.buffer_info()[0])
            fcntl.ioctl(control, SIOCETHTOOL, request)


def _frames_of(interface: str) -> socket.socket:
    """All frames that come in at an interface, whoever they are for."""
    subprocess.run(["ip", "link", "set", interface, "promisc", "on"], check=True)
    every = socket.htons(3)  # ETH_P_ALL
    frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, every)
    frames.bind((interface, 0))
    return frames


def _carry(sides: Sequence[socket.socket]) -> None:
    """Carry frames from each side to the other, as the last command says."""
    rules: dict[str, Any] = {"loss": 0.0, "multicast": True, "isolated": False}
    chance = random.Random(1)
    while True:
        ready = select.select([sys.stdin, *sides], [], [])[0]
        if sys.stdin in ready:
            line = os.read(sys.stdin.fileno(), FRAME_BYTES)  # a test waits for the answer to each
            if not line:
                return
            rules |= json.loads(line)
            print("{}", flush=True)
        for side in (side for side in sides if side in ready):
            frame, (_, _, kind, *_) = side.recvfrom(FRAME_BYTES)
            is_multicast = bool(frame[0] & 1) and frame[:6] != BROADCAST
            lost = rules["isolated"] or (is_multicast and not rules["multicast"]) or chance.random() < rules["loss"]
            if kind != socket.PACKET_OUTGOING and not lost:
                sides[1 - sides.index(side)].send(frame)


if __name__ == "__main__":
    main(sys.argv[1:])
