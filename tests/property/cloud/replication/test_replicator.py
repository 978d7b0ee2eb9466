"""Any sequence of records, rounds, lost answers, outages, restarts and restored servers ends in agreement.

After the faults, every device has every recorded event once, with the server's number.
"""

import tempfile
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from sync.errors import CloudError
from sync.log.envelope import to_wire
from tests.fake_cloud.server import FakeServer
from tests.proof import examples
from tests.support import Device, FakeSessionStorage, FixedClock, new_server, open_device, run_in_virtual_time

USER: Final = "user-1"
NAMES: Final = ("a", "b", "c")

RECORD = st.tuples(st.just("record"), st.sampled_from(NAMES), st.integers(1, 4))
ROUND = st.tuples(st.just("round"), st.sampled_from(NAMES), st.just(0))
FAULT = st.tuples(
    st.sampled_from(["lose", "down", "up", "expire", "restart", "restore", "replace", "skew"]),
    st.sampled_from(NAMES),
    st.integers(0, 6),
)
HISTORIES = st.lists(st.one_of(RECORD, ROUND, ROUND, FAULT), min_size=5, max_size=30)


class ThreeDevices:
    """Three devices of one user and their server."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._server_clock = FixedClock(seed=2)
        self.server: FakeServer = new_server(self._server_clock)
        self.recorded: set[str] = set()
        self._clocks = {name: FixedClock(seed=number) for number, name in enumerate(NAMES, 10)}
        self._tokens = {name: FakeSessionStorage() for name in NAMES}
        self._open: dict[str, tuple[Device, AsyncExitStack]] = {}

    async def device(self, name: str) -> Device:
        if name not in self._open:
            stack = AsyncExitStack()
            device = await stack.enter_async_context(
                open_device(
                    self._folder / name,
                    self.server,
                    device_id=f"device-{name}",
                    clock=self._clocks[name],
                    tokens=self._tokens[name],
                    single_threaded=True,
                )
            )
            self._open[name] = (device, stack)
        return self._open[name][0]

    async def step(self, what: str, name: str, count: int) -> None:
        device = await self.device(name)
        acts: dict[str, Callable[[], Awaitable[None]]] = {
            "record": lambda: self._record(device, count),
            "round": lambda: self._round(device),
            "restart": lambda: self.close(name),
        }
        if what in acts:
            await acts[what]()
        elif what == "lose":
            self.server.answers_to_lose = count
        elif what in {"down", "up"}:
            self.server.down = what == "down"
        elif what == "expire":
            self.server.accounts.expire_tokens()
        elif what == "skew":
            self._clocks[name].advance((count - 3) * 86_400.0)
        else:
            memory = self.server.user_logs[USER]
            self._server_clock.advance(60.0)  # events that it gets again have another server time
            epoch = f"life-{len(self.recorded)}-{count}" if what == "replace" else None
            self.server.restore(USER, max(0, memory.head - count), epoch=epoch)

    async def settle(self) -> None:
        """Stop all faults and run three rounds each."""
        self.server.down, self.server.answers_to_lose = False, 0
        for _ in range(3):
            for name in NAMES:
                device = await self.device(name)
                if (await device.account.state()).state != "logged_in":
                    await device.log_in()
                await device.replicator.sync_now()

    async def close(self, name: str) -> None:
        _, stack = self._open.pop(name)
        await stack.aclose()

    async def close_all(self) -> None:
        for name in list(self._open):
            await self.close(name)

    async def _record(self, device: Device, count: int) -> None:
        self.recorded |= set(await device.record_notes(*(f"{number}" for number in range(count))))

    async def _round(self, device: Device) -> None:
        with suppress(CloudError):
            if (await device.account.state()).state != "logged_in":
                await device.log_in()
            await device.replicator.sync_now()


async def run_history(history: list[tuple[str, str, int]], folder: Path) -> None:
    world = ThreeDevices(folder)
    try:
        for what, name, count in history:
            await world.step(what, name, count)
        await world.settle()
        there = {event.event_id: event.server_seq for event in world.server.user_logs[USER].events}
        assert set(there) == world.recorded
        first = {event.event_id: to_wire(event) for event in await (await world.device("a")).events()}
        for name in NAMES:
            device = await world.device(name)
            events = await device.events()
            assert {event.event_id: event.server_seq for event in events} == there
            assert {event.event_id: to_wire(event) for event in events} == first
            assert len(events) == len(there)
            assert (await device.log.outbox()).pending == 0
            assert await device.rows("pragma integrity_check") == [("ok",)]
    finally:
        await world.close_all()


@settings(max_examples=examples(40))
@given(history=HISTORIES)
def test_when_the_faults_stop_everybody_holds_everything_once(history: list[tuple[str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run_in_virtual_time(run_history(history, Path(folder)))
