"""A device that was without a network for long: ten thousand events wait, and neither start nor memory feels it."""

import sys
from pathlib import Path

import pytest

from tests.acceptance.environment import Network, ServerRows, cloud_settings, wait_until_synced
from tests.bench.process_client import rss_mb
from tests.cloud.fixtures import Cloud, User
from tests.sidecar import Home, Sidecar, TimedSidecar

WAITING = 10_000
AT_ONCE = 1_000
TEXT = "离线时说的话，" * 20
ROOM = 35.0  # MB above a sidecar with nothing to send; all of the events at once take some 50


def record_without_network(sidecar: Sidecar) -> list[str]:
    """The ids of what a program recorded, in order."""
    questions: list[str] = []
    for start in range(0, WAITING, AT_ONCE):
        events = [
            {"type": "note", "payload": {"text": f"{number}：{TEXT}"}} for number in range(start, start + AT_ONCE)
        ]
        questions += sidecar.call("events/appendBatch", events=events)["eventIds"]
    return questions


@pytest.mark.proof
@pytest.mark.skipif(sys.platform != "linux", reason="reads from /proc what a process holds")
def test_ten_thousand_waiting_events_hold_up_no_start_and_arrive_once_whatever_kills_the_program(
    tmp_path: Path, local_cloud: Cloud, user: User
) -> None:
    server = ServerRows(local_cloud, user.user_id)
    with Network(local_cloud) as network:
        home = Home(tmp_path / "a", **cloud_settings(local_cloud, network.url))
        with Sidecar(home) as sidecar:
            sidecar.log_in(user.email, user.password)
            wait_until_synced(sidecar)
        with TimedSidecar(home) as sidecar:
            sidecar.load()
            before = rss_mb(sidecar.process.pid)
            network.half_open()
            questions = record_without_network(sidecar)
            sidecar.kill()

        with TimedSidecar(home) as sidecar:
            assert "用户偏好" in sidecar.load(waitMs=0)["content"]
            assert sidecar.call("sync/status")["pending"] >= WAITING, "the first answers waited for no event to go out"
            network.reconnect()
            sidecar.call_until("sync/status", lambda status: 0 < status["pending"] < WAITING // 2)
            sidecar.kill()
        assert 0 < len(server.event_ids("note")) < WAITING

        with TimedSidecar(home) as sidecar:
            last = sidecar.update("网络回来了")["eventId"]
            wait_until_synced(sidecar)
            assert rss_mb(sidecar.process.pid) < before + ROOM
        assert server.event_ids("note") == questions
        assert server.event_ids()[-1] == last
