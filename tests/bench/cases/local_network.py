"""Measurements of two devices on one network without a cloud: until both have the same, and what waiting costs."""

import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from tests.bench.cases.with_cloud import User, home_of, new_user
from tests.bench.measurement import Measurement
from tests.bench.process_client import cpu_seconds
from tests.bulk_log import fill_log
from tests.cloud.fixtures import Cloud, running_cloud
from tests.sidecar import Home, TimedSidecar

EVENTS: Final = 10_000
LEVEL_SECONDS: Final = 3.0
EVENTS_PER_SECOND: Final = 5_000
IDLE_SECONDS: Final = 30.0
SETTLE_SECONDS: Final = 10.0  # until projections and start are over
MOST_MB: Final = 3.0
MOST_PERCENT: Final = 0.2


def rows(folder: Path) -> Iterator[Measurement]:
    """Two devices that have met the cloud once."""
    with running_cloud() as cloud:
        user = new_user(cloud)
        homes = [_home(folder, side, cloud) for side in "ab"]
        with ExitStack() as stack:
            opened = [stack.enter_context(TimedSidecar(home)) for home in homes]
            for sidecar in opened:
                _log_in(sidecar, user)
            for sidecar in opened:
                sidecar.call("sync/now")  # the first one learns of the second
                sidecar.call_until("lan/status", lambda status: status["trusted"] == 1)
    yield from idle(homes)
    yield from level(homes)


def level(homes: list[Home]) -> Iterator[Measurement]:
    """From the moment that the two have found each other until the second has all events of the first."""
    fill_log(homes[0].database, "device-a", EVENTS)
    with TimedSidecar(homes[0]), TimedSidecar(homes[1]) as receiving:
        receiving.call_until("lan/peers", lambda answer: answer["peers"])
        began = time.perf_counter()
        receiving.call_until("lan/peers", _has_all)
        seconds = time.perf_counter() - began
    rate = EVENTS / seconds
    name = f"{EVENTS:,} events on one network"
    yield Measurement(name, seconds, "s", None, f"<= {LEVEL_SECONDS:.0f} s", seconds <= LEVEL_SECONDS)
    yield Measurement(name, rate, "events/s", None, f">= {EVENTS_PER_SECOND}", rate >= EVENTS_PER_SECOND)


def idle(homes: list[Home]) -> Iterator[Measurement]:
    """What a connection that waits costs beside a sidecar with `LAN__ENABLED=off`."""
    off_mb, off_percent = _at_rest(homes, "off")
    on_mb, on_percent = _at_rest(homes, "auto")
    memory, percent = on_mb - off_mb, on_percent - off_percent
    yield Measurement("memory of a peer, idle", memory, "MB", None, f"<= {MOST_MB:.0f} MB", memory <= MOST_MB)
    yield Measurement("CPU of a peer, idle", percent, "%", None, f"<= {MOST_PERCENT} %", percent <= MOST_PERCENT)


def _at_rest(homes: list[Home], enabled: str) -> tuple[float, float]:
    """Private memory in MB and processor time in percent, of the first of two sidecars."""
    with ExitStack() as stack:
        for home in homes:
            home.settings["LAN__ENABLED"] = enabled
        sidecar, _ = [stack.enter_context(TimedSidecar(home)) for home in homes]
        wanted = 1 if enabled == "auto" else 0
        sidecar.call_until("lan/peers", lambda answer: len(answer["peers"]) == wanted)
        time.sleep(SETTLE_SECONDS)
        before = cpu_seconds(sidecar.process.pid)
        time.sleep(IDLE_SECONDS)
        percent = (cpu_seconds(sidecar.process.pid) - before) / IDLE_SECONDS * 100
        return _private_mb(sidecar.process.pid), percent


def _private_mb(pid: int) -> float:
    """Memory that the process shares with no file and no other process; Linux only, as all of `make bench`."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Private_Dirty:")) / 1024


def _has_all(answer: Mapping[str, Any]) -> bool:
    return bool(answer["peers"] and answer["peers"][0]["level"] and answer["peers"][0]["received"] >= EVENTS)


def _home(folder: Path, side: str, cloud: Cloud) -> Home:
    settings = {"DEVICE_ID": f"device-{side}", "LAN__ENABLED": "auto", "LAN__ADDRESS": "127.0.0.1"}
    return home_of(folder / f"lan-{side}", cloud, **settings)


def _log_in(sidecar: TimedSidecar, user: User) -> None:
    sidecar.log_in(user.email, user.password)
    sidecar.call("sync/now")
