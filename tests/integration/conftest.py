"""A device on the twin cloud, for tests of replication."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.fake_cloud.server import FakeServer
from tests.support import Device, FixedClock, new_server, open_device


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def server(clock: FixedClock) -> FakeServer:
    return new_server(clock)


@pytest.fixture
async def guest(tmp_path: Path, server: FakeServer, clock: FixedClock) -> AsyncIterator[Device]:
    """A device without a login."""
    async with open_device(tmp_path / "guest", server, device_id="device-g", clock=clock) as opened:
        yield opened


@pytest.fixture
async def device(tmp_path: Path, server: FakeServer, clock: FixedClock) -> AsyncIterator[Device]:
    async with open_device(tmp_path / "a", server, clock=clock) as opened:
        await opened.log_in()
        yield opened


@pytest.fixture
async def second(tmp_path: Path, server: FakeServer) -> AsyncIterator[Device]:
    """Another device of the same person."""
    async with open_device(tmp_path / "b", server, device_id="device-b", clock=FixedClock(seed=3)) as opened:
        await opened.log_in()
        yield opened
