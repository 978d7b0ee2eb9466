"""The progress of a pull that takes more than one answer: the first one, after an outage, after a reset."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from sync.cloud.port import SyncAnswer
from sync.cloud.replication.pull_progress import PullProgress
from sync.errors import CloudUnavailable
from tests.fake_cloud.server import FakeServer
from tests.support import Device, event, new_server, open_device

Step = tuple[int, str, int, int]


@pytest.fixture
def server() -> FakeServer:
    return new_server()


@pytest.fixture
async def device(tmp_path: Path, server: FakeServer) -> AsyncIterator[Device]:
    async with open_device(tmp_path / "a", server) as opened:
        await opened.log_in()
        yield opened


def history(server: FakeServer, count: int) -> None:
    """Add events of another device to the server."""
    memory = server.user_logs["user-1"]
    numbers = range(memory.head + 1, memory.head + count + 1)
    others = (event(number, replica="rep_b", device="device-b", server_seq=number) for number in numbers)
    memory.events.extend(others)


async def steps(device: Device) -> list[Step]:
    """The reports of one round."""
    heard: list[PullProgress] = []
    with device.replicator.pull_progress.reporting_to(heard.append):
        await device.replicator.sync_now()
    return [(told.pull, told.step, told.done, told.total) for told in heard]


async def test_each_answer_of_a_long_pull_is_reported_and_so_is_its_end(device: Device, server: FakeServer) -> None:
    history(server, 2_500)
    assert await steps(device) == [
        (1, "begin", 1_000, 2_500),
        (1, "report", 2_000, 2_500),
        (1, "report", 2_500, 2_500),
        (1, "end", 2_500, 2_500),
    ]


async def test_a_pull_of_one_answer_is_not_reported(device: Device, server: FakeServer) -> None:
    history(server, 1_000)
    assert await steps(device) == []


async def test_our_own_backlog_is_no_pull(device: Device) -> None:
    await device.record_notes(*(f"第 {number} 条" for number in range(1_200)))
    assert await steps(device) == []


async def test_the_second_long_pull_counts_its_own_events(device: Device, server: FakeServer) -> None:
    history(server, 1_500)
    await device.replicator.sync_now()
    history(server, 1_100)
    assert await steps(device) == [
        (2, "begin", 1_000, 1_100),
        (2, "report", 1_100, 1_100),
        (2, "end", 1_100, 1_100),
    ]


async def test_what_arrives_on_the_server_meanwhile_is_counted(device: Device, server: FakeServer) -> None:
    def growing(answer: SyncAnswer) -> SyncAnswer:
        device.cloud.edit_answer = lambda later: later
        history(server, 500)
        return answer

    history(server, 1_500)
    device.cloud.edit_answer = growing
    assert [told[2:] for told in await steps(device)] == [(1_000, 1_500), (2_000, 2_000), (2_000, 2_000)]


async def test_a_pull_that_is_cut_off_ends_and_the_next_one_goes_on(device: Device, server: FakeServer) -> None:
    def cut_off(answer: SyncAnswer) -> SyncAnswer:
        device.cloud.fail_next("sync", CloudUnavailable("gone"))
        device.cloud.edit_answer = lambda later: later
        return answer

    history(server, 3_000)
    device.cloud.edit_answer = cut_off
    heard: list[PullProgress] = []
    with device.replicator.pull_progress.reporting_to(heard.append), pytest.raises(CloudUnavailable):
        await device.replicator.sync_now()
    assert [(told.step, told.done) for told in heard] == [("begin", 1_000), ("end", 1_000)]
    assert (await steps(device))[0] == (2, "begin", 1_000, 2_000)


async def test_after_a_reset_it_counts_from_zero(device: Device, server: FakeServer) -> None:
    def replaced(answer: SyncAnswer) -> SyncAnswer:
        device.cloud.edit_answer = lambda later: later
        memory = server.user_logs["user-1"]
        memory.epoch = "epoch-2"
        memory.events = [replace(known, server_seq=place + 1) for place, known in enumerate(memory.events[:1_200])]
        return answer

    history(server, 2_500)
    device.cloud.edit_answer = replaced
    assert [told[2:] for told in await steps(device)] == [
        (1_000, 2_500),
        (1_000, 1_200),
        (1_200, 1_200),
        (1_200, 1_200),
    ]


async def test_a_listener_that_has_left_gets_no_reports(device: Device, server: FakeServer) -> None:
    heard: list[PullProgress] = []
    with device.replicator.pull_progress.reporting_to(heard.append):
        pass
    history(server, 1_500)
    await device.replicator.sync_now()
    assert heard == []
