"""Carry out one peer's conversation on the log: read what to send, store what came."""

import logging
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial

import msgspec

from sync.clock import Clock
from sync.cloud.replication.erasure_guard import ErasureGuard
from sync.lan import store
from sync.lan.intake import DailyIntake
from sync.lan.protocol import frames, records
from sync.lan.protocol.frames import Message
from sync.lan.protocol.have_want import (
    Action,
    CheckNumbers,
    PeerConversation,
    ReadHoldings,
    Send,
    SendEvents,
    StoreEvents,
)
from sync.log.log import EventLog
from sync.log.model import Event

log = logging.getLogger(__name__)


class PeerExchange:
    """The exchange of events with one peer, `peer_device`. Methods yield the messages to send, in order.

    Errors: ProtocolError, DeviceForked, StorageError; what was stored by then stays.
    """

    def __init__(
        self, events: EventLog, guard: ErasureGuard, clock: Clock, peer_device: str, intake: DailyIntake | None = None
    ) -> None:
        self._log = events
        self._guard = guard
        self._clock = clock
        self.peer_device = peer_device
        self.intake = intake or DailyIntake(clock)
        self.on_limit: Callable[[], None] = lambda: None  # called when the peer may bring no more today
        self._conversation: PeerConversation | None = None
        self.sent = 0
        self.received = 0
        self._has_left_out = False  # an event

    @property
    def is_level(self) -> bool:
        """Whether this device has everything that the peer offers."""
        return self._conversation is not None and self._conversation.is_level

    async def start(self) -> AsyncIterator[Message]:
        self._conversation = PeerConversation(await self._log.database.read(store.read_holdings))
        self._conversation.provable = await self._provable_devices()
        self._conversation.may_ask = self._may_ask
        async for message in self._perform(self._conversation.start()):
            yield message

    async def on_message(self, message: Message) -> AsyncIterator[Message]:
        assert self._conversation is not None
        async for answer in self._perform(self._conversation.on_message(message)):
            yield answer

    async def on_log_change(self) -> AsyncIterator[Message]:
        async for message in self._perform([ReadHoldings()]):
            yield message

    async def _perform(self, actions: Sequence[Action]) -> AsyncIterator[Message]:
        assert self._conversation is not None
        waiting = list(actions)
        while waiting:
            match waiting.pop(0):
                case Send(message):
                    yield message
                case SendEvents(epoch, numbers):
                    found = await self._log.database.read(partial(store.read_offered, numbers=numbers, epoch=epoch))
                    if found is None:  # this database is a new replica by now; its new list replaces the request
                        waiting.insert(0, ReadHoldings())
                        continue
                    for part in records.parts_of(await self._guard.signer.sign(found)):
                        self.sent += len(part)
                        yield frames.Events(epoch, part)
                    yield frames.Sent(epoch)
                case StoreEvents() as came:
                    await self._take_in(came)
                case CheckNumbers(last, proven):
                    both = {*self._log.own_device_ids, self.peer_device} & proven.keys()
                    await self._log.database.read(store.check_numbers, last, {name: proven[name] for name in both})
                case ReadHoldings():
                    self._conversation.provable = await self._provable_devices()
                    own = await self._log.database.read(store.read_holdings, self._conversation.own)
                    waiting = [*self._conversation.on_holdings(own), *waiting]

    async def _provable_devices(self) -> set[str]:
        return {*await self._guard.signer.device_keys(), self.peer_device}

    def _may_ask(self) -> bool:
        has_room = self.intake.has_room(self.peer_device)
        if not has_room:
            self.on_limit()
        return has_room

    async def _take_in(self, came: StoreEvents) -> None:
        """Store what came, without malformed events and those that falsely have this device's name.

        The first ones of a connection that are left out are logged.
        """
        self.intake.add(self.peer_device, len(came.records), len(msgspec.json.encode(came.records)))
        received = records.parse_records(came.records, came.asked)
        received = await self._guard.signer.mark_unproven(received, channel_device=self.peer_device)
        own = self._log.own_device_ids
        received = [event for event in received if event.is_proven or event.device_id not in own]
        left_out = len(came.records) - len(received)
        if left_out and not self._has_left_out:
            log.warning("events of a device on the local network were left out: %d", left_out)
            self._has_left_out = True
        await self._store(received)

    async def _store(self, received: Sequence[Event]) -> None:
        review = await self._guard.review_for(received)
        storing = partial(
            store.store_events,
            received=received,
            clock=self._clock,
            own_device_ids=self._log.own_device_ids,
            peer_device=self.peer_device,
            review=review,
        )
        new = await self._log.database.write(storing)
        self.received += new
        if new:
            self._log.changed.increment()
