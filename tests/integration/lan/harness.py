"""Devices with real databases whose conversations are carried from one to the other by the test."""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from sync.cloud.replication.erasure_guard import ErasureGuard, ErasureImpact
from sync.lan.exchange import PeerExchange
from sync.lan.protocol import frames
from sync.lan.protocol.frames import Message
from sync.settings.sections import PrivacySettings
from tests.fake_cloud.server import FakeServer
from tests.support import Device, FixedClock, device_key_in, open_device


class Link:
    """A connection between two devices. Frames are encoded and decoded as on the wire, and kept for the test."""

    def __init__(self, left: Device, right: Device) -> None:
        self.sides = tuple(
            PeerExchange(device.log, guard_of(device), device.clock, peer.log.device_id)
            for device, peer in ((left, right), (right, left))
        )
        self.waiting: tuple[deque[bytes], deque[bytes]] = (deque(), deque())  # to the left, to the right
        self.sent: list[tuple[int, Message]] = []  # by whom: 0 the left

    async def start(self) -> None:
        for side in (0, 1):
            await self._send(side, self.sides[side].start())

    async def note_changes(self) -> None:
        for side in (0, 1):
            await self._send(side, self.sides[side].on_log_change())

    async def deliver_one(self, side: int) -> bool:
        """Deliver the next frame to a side; False if there is none."""
        if not self.waiting[side]:
            return False
        message = frames.decode(self.waiting[side].popleft()[frames.LENGTH_BYTES :])
        await self._send(side, self.sides[side].on_message(message))
        return True

    async def run_until_quiet(self) -> None:
        while await self.deliver_one(0) or await self.deliver_one(1):
            pass

    async def _send(self, side: int, messages: AsyncIterator[Message]) -> None:
        async for message in messages:
            self.sent.append((side, message))
            self.waiting[1 - side].append(frames.encode(message))

    def records_of(self, side: int) -> list[dict[str, object]]:
        """The records that a side has sent, in order."""
        return [
            record
            for by, message in self.sent
            if by == side and isinstance(message, frames.Events)
            for record in message.events
        ]


def guard_of(device: Device) -> ErasureGuard:
    key = device_key_in(device.folder)
    return ErasureGuard(device.log, key, PrivacySettings(), lambda *_: ErasureImpact(), device.clock)


async def meet(left: Device, right: Device) -> Link:
    """Connect two devices until they have nothing more to say."""
    link = Link(left, right)
    await link.start()
    await link.run_until_quiet()
    return link


@asynccontextmanager
async def devices(folder: Path, server: FakeServer, *names: str) -> AsyncIterator[list[Device]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                open_device(
                    folder / name,
                    server,
                    device_id=f"device-{name}",
                    clock=FixedClock(seed=number),
                    single_threaded=True,
                )
            )
            for number, name in enumerate(names, start=10)
        ]
