"""The supervisor of the channel for hours of virtual time: after any failure another channel follows.

Polls are an hour apart, so anything that arrives sooner was poked.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from sync.cloud.port import DeviceFacts, SyncAnswer, SyncRequest
from sync.cloud.replication.freshness import FRESH_SECONDS
from sync.cloud.replication.realtime_supervisor import (
    BUSY_HEARTBEAT_INTERVAL,
    HEARTBEAT_INTERVAL,
    HEARTBEAT_TIMEOUT,
    RECONNECT_BACKOFF,
    REFUSED_RETRY_INTERVAL,
    SLEEP_THRESHOLD,
    TICK_SECONDS,
    RealtimeSupervisor,
)
from sync.errors import CloudUnavailable, Forbidden, LoginRequired
from sync.settings.sections import SyncSettings
from tests.fake_cloud.server import FakeCloud, FakeServer
from tests.support import (
    Device,
    LoopClock,
    background_task,
    event,
    intervals,
    new_server,
    open_device,
    run_in_virtual_time,
)

POLL = 3600.0
SOON = 1.0  # seconds; sooner than any poll


class SleepyClock(LoopClock):
    """Wall time goes on while the machine sleeps; monotonic time does not."""

    slept = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.slept)


Story = Callable[[Device, FakeServer], Awaitable[None]]


def run_with_script(
    folder: Path, story: Story, *, log_in: bool = True, clock: LoopClock | None = None, is_alone: bool = False
) -> None:
    async def main() -> None:
        listening = open_listening_device(folder, clock or LoopClock(), log_in=log_in, is_alone=is_alone)
        async with listening as (device, server):
            await story(device, server)

    run_in_virtual_time(main())


@asynccontextmanager
async def open_listening_device(
    folder: Path, clock: LoopClock, *, log_in: bool, is_alone: bool
) -> AsyncIterator[tuple[Device, FakeServer]]:
    server = new_server(clock)
    options = SyncSettings(poll_seconds=POLL, timeout_seconds=10.0)
    async with open_device(folder / "a", server, clock=clock, single_threaded=True, options=options) as device:
        if log_in:
            await device.log_in()
        if not is_alone:
            server.add_device("user-1", "device-b")
        listener = RealtimeSupervisor(device.account, device.replicator, clock=clock, timeout=10.0)
        with background_task(device.replicator.run()) as loop, background_task(listener.run()) as ears:
            await asyncio.sleep(SOON)
            yield device, server
            assert not loop.done()
            assert not ears.done(), "it goes on"


async def push_from_other_device(server: FakeServer, device: Device, number: int) -> SyncAnswer:
    """Push an event of another device of the user, past the spied cloud."""
    session = await device.account.session()
    other = FakeCloud(server)
    await other.register_device(session, "device-b", DeviceFacts("rep_b", "书房", "Linux", "1"))
    events = (event(number, replica="rep_b", device="device-b"),)
    return await other.sync(session, SyncRequest(device_id="device-b", replica_id="rep_b", events=events))


async def has_events(device: Device, count: int) -> bool:
    return len(await device.events()) == count


def joined(device: Device) -> bool:
    return device.replicator.freshness.is_joined


def test_another_device_s_event_arrives_by_a_poke(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        assert joined(device)
        await push_from_other_device(server, device, 1)
        await asyncio.sleep(SOON)
        assert await has_events(device, 1)

    run_with_script(tmp_path, story)


def test_our_own_push_costs_no_second_round(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        before = device.cloud.count("sync")
        await device.record_notes("一")
        await asyncio.sleep(SOON)
        assert device.cloud.count("sync") == before + 1

    run_with_script(tmp_path, story)


def test_a_poke_during_a_round_is_not_lost(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        original = device.cloud.edit_answer
        pushed: list[asyncio.Task[SyncAnswer]] = []

        def late(answer: SyncAnswer) -> SyncAnswer:
            if not pushed:  # the other device's event is committed after the server's answer
                pushed.append(asyncio.get_running_loop().create_task(push_from_other_device(server, device, 1)))
            return answer

        device.cloud.edit_answer = late
        await device.record_notes("一")
        await asyncio.sleep(SOON)
        device.cloud.edit_answer = original
        assert await has_events(device, 2)

    run_with_script(tmp_path, story)


def test_an_outage_of_25_seconds_is_survived_and_what_it_hid_is_fetched(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        server.down = True
        server.cut_channels()
        await asyncio.sleep(25.0)
        assert not joined(device)
        assert device.cloud.count("listen") >= 4
        server.down = False
        await push_from_other_device(server, device, 1)  # no channel is open
        await asyncio.sleep(RECONNECT_BACKOFF.limit)
        assert joined(device)
        assert await has_events(device, 1)

    run_with_script(tmp_path, story)


def test_an_older_server_pokes_but_is_never_taken_at_its_silence(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        server.announces_ready = False
        device.cloud.fail_next("sync", *(CloudUnavailable("the round at the loss gets no answer") for _ in range(3)))
        server.cut_channels()
        await push_from_other_device(server, device, 1)
        await asyncio.sleep(RECONNECT_BACKOFF.limit)
        assert joined(device)
        assert await has_events(device, 1), "a new channel is a poke as well"
        await push_from_other_device(server, device, 2)
        await asyncio.sleep(SOON)
        assert await has_events(device, 2)
        assert not device.replicator.is_fresh()

    run_with_script(tmp_path, story)


def test_a_new_channel_wakes_the_replicator_before_it_is_ready(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        server.announces_ready = False
        rounds = device.cloud.count("sync")
        device.cloud.pause_calls()
        server.cut_channels()
        await device.cloud.wait_for_call()
        device.cloud.gate.set()
        await asyncio.sleep(RECONNECT_BACKOFF.limit)
        assert joined(device)
        assert device.cloud.count("sync") >= rounds + 2, "one at the loss, one at the new channel"

    run_with_script(tmp_path, story)


def test_hours_without_a_server_are_no_storm(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        device.cloud.failures["listen"].extend(CloudUnavailable("no") for _ in range(100_000))
        server.cut_channels()
        await asyncio.sleep(3 * 3600.0)
        times = [at for name, at in zip(device.cloud.calls, device.cloud.times, strict=True) if name == "listen"]
        assert len(times) < 3 * 3600 / RECONNECT_BACKOFF.limit * 2.5
        assert max(intervals(times)) <= RECONNECT_BACKOFF.limit + SOON
        assert len({round(gap, 2) for gap in intervals(times)}) > 50, "devices must not come back in step"

    run_with_script(tmp_path, story)


def test_a_server_that_closes_every_channel_at_once_is_not_stormed(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        before = len(device.cloud.calls)
        for _ in range(900):
            server.cut_channels()
            await asyncio.sleep(1.0)
        assert device.cloud.count("listen") < 120
        assert len(device.cloud.calls) - before < 500

    run_with_script(tmp_path, story)


def test_a_half_open_connection_is_noticed_by_its_heartbeat(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        server.is_half_open = True
        listening = device.cloud.count("listen")
        await asyncio.sleep(HEARTBEAT_INTERVAL + HEARTBEAT_TIMEOUT + 3 * TICK_SECONDS)
        assert device.cloud.count("listen") > listening

    run_with_script(tmp_path, story)


def test_a_quiet_hour_keeps_its_channel(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(3000.0)
        assert device.cloud.count("listen") == 1
        assert device.cloud.count("sync") <= 3

    run_with_script(tmp_path, story)


def test_after_sleep_the_channel_is_replaced(tmp_path: Path) -> None:
    clock = SleepyClock()

    async def story(device: Device, server: FakeServer) -> None:
        clock.slept = SLEEP_THRESHOLD + TICK_SECONDS + 1
        await asyncio.sleep(TICK_SECONDS + SOON)
        assert device.cloud.count("listen") == 2
        assert joined(device)

    run_with_script(tmp_path, story, clock=clock)


def test_a_token_is_renewed_on_the_standing_channel_before_it_ends(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(2.5 * 3600.0)
        assert device.cloud.count("refresh") == 2
        assert device.cloud.count("listen") == 1
        await push_from_other_device(server, device, 1)
        await asyncio.sleep(SOON)
        assert await has_events(device, 1)

    run_with_script(tmp_path, story)


def test_a_token_that_the_channel_refuses_is_refreshed_once(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        server.accounts.expire_tokens()
        server.cut_channels()
        await asyncio.sleep(5.0)
        assert device.cloud.count("refresh") == 1
        assert joined(device)

    run_with_script(tmp_path, story)


def test_a_token_that_only_the_channel_refuses_is_refreshed_once(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        device.cloud.fail_next("listen", LoginRequired("the channel knows better"))
        server.cut_channels()
        await asyncio.sleep(5.0)
        assert device.cloud.count("refresh") == 1
        assert joined(device)

    run_with_script(tmp_path, story)


def test_a_revoked_session_ends_the_channel_and_asks_no_more(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        server.accounts.revoke_sessions()
        server.cut_channels()
        await asyncio.sleep(60.0)
        assert device.replicator.freshness.state == "off"
        calls = len(device.cloud.calls)
        await asyncio.sleep(3000.0)
        assert len(device.cloud.calls) - calls == 0

    run_with_script(tmp_path, story)


def test_the_only_device_of_an_account_has_no_channel_until_another_is_seen(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        assert device.replicator.freshness.state == "off"
        await asyncio.sleep(POLL)
        assert device.cloud.count("open_channel") == 0
        await push_from_other_device(server, device, 1)
        device.replicator.wake()
        await asyncio.sleep(SOON)
        assert joined(device)

    run_with_script(tmp_path, story, is_alone=True)


def test_logging_in_opens_the_channel_and_logging_out_closes_it(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        assert device.replicator.freshness.state == "off"
        assert device.cloud.calls == []
        await device.log_in()
        device.replicator.wake()
        await asyncio.sleep(SOON)
        assert joined(device)
        await device.account.log_out()
        await asyncio.sleep(TICK_SECONDS + SOON)
        assert device.replicator.freshness.state == "off"

    run_with_script(tmp_path, story, log_in=False)


def test_a_project_without_realtime_is_asked_now_and_then_and_polled_as_before(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        device.cloud.failures["listen"].extend(Forbidden("nobody listens here") for _ in range(100))
        server.cut_channels()
        await asyncio.sleep(10 * REFUSED_RETRY_INTERVAL)
        assert 9 <= device.cloud.count("listen") <= 12

    run_with_script(tmp_path, story)


def test_with_a_channel_polls_are_rarer_and_without_one_as_often_as_set(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        await asyncio.sleep(3 * POLL)
        assert device.cloud.count("sync") <= 3
        device.cloud.failures["listen"].extend(CloudUnavailable("no") for _ in range(100_000))
        server.cut_channels()
        before = device.cloud.count("sync")
        await asyncio.sleep(3.2 * POLL)
        assert device.cloud.count("sync") - before >= 3

    run_with_script(tmp_path, story)


def test_it_is_fresh_while_it_is_relied_on_and_stops_without_answers(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        for _ in range(200):
            assert device.replicator.is_fresh()
            await asyncio.sleep(BUSY_HEARTBEAT_INTERVAL / 2)
        server.is_half_open = True
        await asyncio.sleep(FRESH_SECONDS + BUSY_HEARTBEAT_INTERVAL)
        assert not device.replicator.is_fresh()

    run_with_script(tmp_path, story)


def test_it_does_not_vouch_while_a_round_is_under_way(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        assert device.replicator.is_fresh()
        device.cloud.pause_calls()
        await device.record_notes("一")
        await device.cloud.wait_for_call()
        assert not device.replicator.is_fresh()
        device.cloud.gate.set()
        await asyncio.sleep(SOON)
        assert device.replicator.is_fresh()

    run_with_script(tmp_path, story)


def test_it_does_not_vouch_while_the_server_refuses_rounds(tmp_path: Path) -> None:
    async def story(device: Device, server: FakeServer) -> None:
        device.cloud.permanent_failure = CloudUnavailable("the channel stands, the rest is down")
        await device.record_notes("一")
        await asyncio.sleep(SOON)
        assert joined(device)
        assert not device.replicator.is_fresh()

    run_with_script(tmp_path, story)
