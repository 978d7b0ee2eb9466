"""What the tests of recall stand on: one device's log, and its index asked through `Recall`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sync.recall.model import Answer, Ask
from sync.recall.search import Recall
from sync.sections import RecallSettings
from tests.support import Device, FixedClock, new_server, open_device


@dataclass
class Desk:
    """A device and its recall."""

    device: Device
    recall: Recall

    async def keep(self, *texts: str, kind: str = "memory_fact", **more: Any) -> list[str]:
        """Record one event for each text, as another program would; their ids."""
        given = [{"type": kind, "payload": {"content": text}, **more} for text in texts]
        recorded = await self.device.log.record(self.device.intake.drafts(given))
        return [item.event.event_id for item in recorded]

    async def event(self, kind: str, **payload: Any) -> str:
        (recorded,) = await self.device.log.record([self.device.intake.draft({"type": kind, "payload": payload})])
        return recorded.event.event_id

    async def forget(self, *event_ids: str) -> None:
        await self.device.log.record([self.device.intake.forgotten(event_ids)])

    async def ask(self, query: str, **more: Any) -> Answer:
        return await self.recall.search(Ask(query, **more))

    async def found(self, query: str, **more: Any) -> list[str]:
        return [hit.kept.text for hit in (await self.ask(query, **more)).hits]


@asynccontextmanager
async def open_desk(folder: Path, *, clock: FixedClock | None = None, **options: Any) -> AsyncIterator[Desk]:
    async with open_device(folder, new_server(), clock=clock) as device:
        yield Desk(device, Recall(device.log, device.clock, RecallSettings(**options), moves=True))
