"""A guest who turns out to be somebody with a profile here: what is his goes along, and his profile goes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sync.app import App, Role, open_app
from sync.cloud.contact import contact_of
from sync.cloud.memory import MemoryCloud
from sync.document.capture import Exchange
from sync.log.model import Query
from sync.settings import Settings
from tests.integration.document_desk import HandClock
from tests.support import EMAIL, PASSWORD, new_server


@dataclass
class Machine:
    """One on which an account has a profile, and a guest the file."""

    settings: Settings
    cloud: MemoryCloud
    clock: HandClock = field(default_factory=HandClock)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[App]:
        async with open_app(self.settings, Role.HELPER, cloud=self.cloud, clock=self.clock) as app:
            yield app

    async def log_in(self) -> None:
        """The account's owner comes in where a guest was."""
        async with self.open() as app:
            await app.entrance.log_in(contact_of(email=EMAIL), PASSWORD)

    def type_under(self, heading: str, line: str) -> None:
        text = self.settings.memory_file.read_text("utf-8")
        assert f"{heading}\n" in text
        self.settings.memory_file.write_text(text.replace(f"{heading}\n", f"{heading}\n{line}\n", 1), "utf-8")


@pytest.fixture
async def machine(tmp_path: Path) -> Machine:
    server = new_server()
    server.add_user("other@example.com", PASSWORD)
    settings = Settings(
        data_dir=tmp_path / "data", memory_file=tmp_path / "memory.md", device_id="device-a", token_store="file"
    )
    machine = Machine(settings, MemoryCloud(server))
    async with machine.open() as app:
        await app.entrance.log_in(contact_of(email=EMAIL), PASSWORD)
        await app.conversation.update(Exchange("早先说的", "好"))
        await app.entrance.log_in(contact_of(email="other@example.com"), PASSWORD)
    async with machine.open() as app:
        await app.entrance.log_out(remove=True, even_unsent=True)
    async with machine.open() as app:
        await app.conversation.update(Exchange("客人说的", "好"))
    return machine


async def test_his_words_keep_the_day_they_were_on(machine: Machine) -> None:
    machine.clock.move(days=5)
    await machine.log_in()
    async with machine.open() as app:
        said = (await app.log.read(Query(types=("exchange_recorded",)))).events
        assert [event.payload["question"] for event in said] == ["早先说的", "客人说的"]
        assert {(event.local_date, event.utc_offset) for event in said} == {("2026-01-08", 480)}
    assert "### 2026/1/13" not in machine.settings.memory_file.read_text("utf-8")
