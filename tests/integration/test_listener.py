"""The supervisor of the channel, hours of it in virtual time, on the twin: whatever happens, another channel follows.

Polls are an hour apart, so whatever arrives sooner was poked.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path

from sync.cloud.listener import ANSWERED_WITHIN, BEAT, BUSY_BEAT, LOOK_AGAIN, SLEPT, TICK, Listener
from sync.cloud.memory import MemoryCloud, MemoryServer
from sync.cloud.plan import LONGEST_PAUSE
from sync.cloud.port import DeviceFacts, SyncAnswer, SyncRequest
from sync.cloud.standing import VOUCHES_FOR
from sync.errors import CloudUnavailable, Forbidden, LoginRequired
from sync.sections import SyncSettings
from tests.support import Device, LoopClock, event, gaps, in_virtual_time, new_server, open_device, running

POLL = 3600.0
SOON = 1.0  # seconds in which nothing but a poke can have brought it


class SleepyClock(LoopClock):
    """Its wall goes on while the machine sleeps; its monotonic time does not."""

    slept = 0.0

    def now(self) -> datetime:
        return super().now() + timedelta(seconds=self.slept)


Story = Callable[[Device, MemoryServer], Awaitable[None]]


def living(folder: Path, story: Story, *, log_in: bool = True, clock: LoopClock | None = None) -> None:
    async def main() -> None:
        async with started(folder, clock or LoopClock(), log_in=log_in) as (device, server):
            await story(device, server)

    in_virtual_time(main())


@asynccontextmanager
async def started(folder: Path, clock: LoopClock, *, log_in: bool) -> AsyncIterator[tuple[Device, MemoryServer]]:
    server = new_server(clock)
    options = SyncSettings(poll_seconds=POLL, timeout_seconds=10.0)
    async with open_device(folder / "a", server, clock=clock, inline=True, options=options) as device:
        if log_in:
            await device.log_in()
        listener = Listener(device.account, device.replicator, clock=clock, timeout=10.0)
        with running(device.replicator.run()) as loop, running(listener.run()) as ears:
            await asyncio.sleep(SOON)
            yield device, server
            assert not loop.done()
            assert not ears.done(), "it goes on"


async def elsewhere(server: MemoryServer, device: Device, number: int) -> SyncAnswer:
    """Another device of the same person pushes an event; behind the back of the watched cloud."""
    session = await device.account.session()
    other = MemoryCloud(server)
    await other.register_device(session, "device-b", DeviceFacts("rep_b", "书房", "Linux", "1"))
    events = (event(number, replica="rep_b", device="device-b"),)
    return await other.sync(session, SyncRequest(device_id="device-b", replica_id="rep_b", events=events))


async def arrived(device: Device, count: int) -> bool:
    return len(await device.events()) == count


def joined(device: Device) -> bool:
    return device.replicator.standing.joined


def test_another_device_s_event_arrives_by_a_poke(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        assert joined(device)
        await elsewhere(server, device, 1)
        await asyncio.sleep(SOON)
        assert await arrived(device, 1)

    living(tmp_path, story)


def test_our_own_push_costs_no_second_round(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        before = device.cloud.count("sync")
        await device.note("一")
        await asyncio.sleep(SOON)
        assert device.cloud.count("sync") == before + 1

    living(tmp_path, story)


def test_a_poke_during_a_round_is_not_lost(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        original = device.cloud.change
        pushed: list[asyncio.Task[SyncAnswer]] = []

        def late(answer: SyncAnswer) -> SyncAnswer:
            if not pushed:  # the server's answer is on its way when the other device's event is committed
                pushed.append(asyncio.get_running_loop().create_task(elsewhere(server, device, 1)))
            return answer

        device.cloud.change = late
        await device.note("一")
        await asyncio.sleep(SOON)
        device.cloud.change = original
        assert await arrived(device, 2)

    living(tmp_path, story)


def test_an_outage_of_25_seconds_is_survived_and_what_it_hid_is_fetched(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        server.down = True
        server.cut_channels()
        await asyncio.sleep(25.0)
        assert not joined(device)
        assert device.cloud.count("listen") >= 4
        server.down = False
        await elsewhere(server, device, 1)  # nobody is there to be poked
        await asyncio.sleep(LONGEST_PAUSE)
        assert joined(device)
        assert await arrived(device, 1)

    living(tmp_path, story)


def test_an_older_server_pokes_but_is_never_taken_at_its_silence(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        server.tells_ready = False
        device.cloud.fail_next("sync", *(CloudUnavailable("the round at the loss gets no answer") for _ in range(3)))
        server.cut_channels()
        await elsewhere(server, device, 1)
        await asyncio.sleep(LONGEST_PAUSE)
        assert joined(device)
        assert await arrived(device, 1), "a new channel is a poke as well"
        await elsewhere(server, device, 2)
        await asyncio.sleep(SOON)
        assert await arrived(device, 2)
        assert not device.replicator.vouches()

    living(tmp_path, story)


def test_a_new_channel_is_a_poke_although_nobody_says_that_it_is_fed(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        server.tells_ready = False
        rounds = device.cloud.count("sync")
        device.cloud.hold()
        server.cut_channels()
        await device.cloud.arrival()
        device.cloud.open.set()
        await asyncio.sleep(LONGEST_PAUSE)
        assert joined(device)
        assert device.cloud.count("sync") >= rounds + 2, "one at the loss, one at the new channel"

    living(tmp_path, story)


def test_hours_without_a_server_are_no_storm(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        device.cloud.failures["listen"].extend(CloudUnavailable("no") for _ in range(100_000))
        server.cut_channels()
        await asyncio.sleep(3 * 3600.0)
        times = [at for name, at in zip(device.cloud.calls, device.cloud.times, strict=True) if name == "listen"]
        assert len(times) < 3 * 3600 / LONGEST_PAUSE * 2.5
        assert max(gaps(times)) <= LONGEST_PAUSE + SOON
        assert len({round(gap, 2) for gap in gaps(times)}) > 50, "devices must not come back in step"

    living(tmp_path, story)


def test_a_server_that_closes_every_channel_at_once_is_not_stormed(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        before = len(device.cloud.calls)
        for _ in range(900):
            server.cut_channels()
            await asyncio.sleep(1.0)
        assert device.cloud.count("listen") < 120
        assert len(device.cloud.calls) - before < 500

    living(tmp_path, story)


def test_a_half_open_connection_is_noticed_by_its_heartbeat(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        server.deaf = True
        listening = device.cloud.count("listen")
        await asyncio.sleep(BEAT + ANSWERED_WITHIN + 3 * TICK)
        assert device.cloud.count("listen") > listening

    living(tmp_path, story)


def test_a_quiet_hour_keeps_its_channel(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        await asyncio.sleep(3000.0)
        assert device.cloud.count("listen") == 1
        assert device.cloud.count("sync") <= 3

    living(tmp_path, story)


def test_after_sleep_the_channel_is_made_anew(tmp_path: Path) -> None:
    clock = SleepyClock()

    async def story(device: Device, server: MemoryServer) -> None:
        clock.slept = SLEPT + TICK + 1
        await asyncio.sleep(TICK + SOON)
        assert device.cloud.count("listen") == 2
        assert joined(device)

    living(tmp_path, story, clock=clock)


def test_a_token_is_renewed_on_the_standing_channel_before_it_ends(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        await asyncio.sleep(2.5 * 3600.0)
        assert device.cloud.count("refresh") == 2
        assert device.cloud.count("listen") == 1
        await elsewhere(server, device, 1)
        await asyncio.sleep(SOON)
        assert await arrived(device, 1)

    living(tmp_path, story)


def test_a_token_that_the_channel_refuses_is_refreshed_once(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        server.accounts.expire_tokens()
        server.cut_channels()
        await asyncio.sleep(5.0)
        assert device.cloud.count("refresh") == 1
        assert joined(device)

    living(tmp_path, story)


def test_a_token_that_only_the_channel_refuses_is_refreshed_once(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        device.cloud.fail_next("listen", LoginRequired("the channel knows better"))
        server.cut_channels()
        await asyncio.sleep(5.0)
        assert device.cloud.count("refresh") == 1
        assert joined(device)

    living(tmp_path, story)


def test_a_revoked_session_ends_the_channel_and_asks_no_more(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        server.accounts.revoke_sessions()
        server.cut_channels()
        await asyncio.sleep(60.0)
        assert device.replicator.standing.state == "off"
        calls = len(device.cloud.calls)
        await asyncio.sleep(3000.0)
        assert len(device.cloud.calls) - calls == 0

    living(tmp_path, story)


def test_logging_in_opens_the_channel_and_logging_out_closes_it(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        assert device.replicator.standing.state == "off"
        assert device.cloud.calls == []
        await device.log_in()
        await asyncio.sleep(SOON)
        assert joined(device)
        await device.account.log_out()
        await asyncio.sleep(TICK + SOON)
        assert device.replicator.standing.state == "off"

    living(tmp_path, story, log_in=False)


def test_a_project_without_realtime_is_asked_now_and_then_and_polled_as_before(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        device.cloud.failures["listen"].extend(Forbidden("nobody listens here") for _ in range(100))
        server.cut_channels()
        await asyncio.sleep(10 * LOOK_AGAIN)
        assert 9 <= device.cloud.count("listen") <= 12

    living(tmp_path, story)


def test_with_a_channel_polls_are_rarer_and_without_one_as_often_as_set(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        await asyncio.sleep(3 * POLL)
        assert device.cloud.count("sync") <= 3
        device.cloud.failures["listen"].extend(CloudUnavailable("no") for _ in range(100_000))
        server.cut_channels()
        before = device.cloud.count("sync")
        await asyncio.sleep(3.2 * POLL)
        assert device.cloud.count("sync") - before >= 3

    living(tmp_path, story)


def test_it_vouches_while_it_is_relied_on_and_stops_when_nobody_answers(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        for _ in range(200):
            assert device.replicator.vouches()
            await asyncio.sleep(BUSY_BEAT / 2)
        server.deaf = True
        await asyncio.sleep(VOUCHES_FOR + BUSY_BEAT)
        assert not device.replicator.vouches()

    living(tmp_path, story)


def test_it_does_not_vouch_while_a_round_is_under_way(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        assert device.replicator.vouches()
        device.cloud.hold()
        await device.note("一")
        await device.cloud.arrival()
        assert not device.replicator.vouches()
        device.cloud.open.set()
        await asyncio.sleep(SOON)
        assert device.replicator.vouches()

    living(tmp_path, story)


def test_it_does_not_vouch_while_the_server_refuses_rounds(tmp_path: Path) -> None:
    async def story(device: Device, server: MemoryServer) -> None:
        device.cloud.always = CloudUnavailable("the channel stands, the rest is down")
        await device.note("一")
        await asyncio.sleep(SOON)
        assert joined(device)
        assert not device.replicator.vouches()

    living(tmp_path, story)
