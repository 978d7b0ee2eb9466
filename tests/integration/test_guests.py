"""A guest who turns out to be somebody with a profile here: what is his goes along, and his profile goes."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from sync.app import App, Role, open_app
from sync.cloud.contact import contact_of
from sync.cloud.memory import MemoryCloud
from sync.document import forgetting
from sync.document.capture import Exchange
from sync.document.neighbours import park
from sync.log.model import Query
from sync.sections import DocumentSettings
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

    def type_below(self, above: str, line: str) -> None:
        text = self.settings.memory_file.read_text("utf-8")
        assert f"{above}\n" in text
        self.settings.memory_file.write_text(text.replace(f"{above}\n", f"{above}\n{line}\n", 1), "utf-8")

    @property
    def parked(self) -> list[str]:
        return [path.read_text("utf-8") for path in sorted(self.settings.data_dir.rglob("parked/*.md"))]


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


@pytest.mark.parametrize(
    ("above", "line"),
    [
        ("### 工作习惯", "- 我的手机 13812345678，密码: Hunter2abcX9"),
        ("### 常用命令", f"- {'很长的命令' * 5_000}"),
        ("---", "\n## 还没有内容的标题\n"),
    ],
    ids=["redacted", "too large for an event", "a heading without lines"],
)
async def test_a_document_that_says_more_than_its_events_is_parked_for_him(
    machine: Machine, above: str, line: str
) -> None:
    machine.type_below(above, line)
    await machine.log_in()
    async with machine.open() as app:
        (warning,) = [text for text in (await app.status()).warnings if text.startswith("documents_parked")]
        assert str(app.profile.parked) in warning
    (parked,) = machine.parked
    assert line in parked
    assert "客人说的" in machine.settings.memory_file.read_text("utf-8")


@pytest.mark.parametrize("sharing", ["device", "user"])
async def test_one_whose_events_say_all_of_it_is_not(machine: Machine, sharing: Literal["device", "user"]) -> None:
    machine.settings = msgspec.structs.replace(machine.settings, document=DocumentSettings(sharing=sharing))
    machine.type_below("### 工作习惯", "- 客人打的一行")
    machine.type_below("---", "\n## 客人的标题\n\n- 标题下的一行")
    await machine.log_in()
    async with machine.open() as app:
        assert not [text for text in (await app.status()).warnings if text.startswith("documents_parked")]
    text = machine.settings.memory_file.read_text("utf-8")
    assert all(line in text for line in ("- 客人打的一行\n", "## 客人的标题\n", "- 标题下的一行\n", "客人说的"))
    assert machine.parked == []


async def test_a_document_that_was_parked_for_the_guest_is_his_still(machine: Machine) -> None:
    async with machine.open() as app:
        park(app.profile.parked, "- 早先替客人收好的\n".encode())
    await machine.log_in()
    async with machine.open():
        assert machine.parked == ["- 早先替客人收好的\n"]


async def test_what_is_forgotten_later_leaves_the_document_that_was_parked(machine: Machine) -> None:
    machine.type_below("### 工作习惯", "- 我的手机 13812345678")
    await machine.log_in()
    async with machine.open() as app:
        said = (await app.log.read(Query(types=("exchange_recorded",)))).events[-1]
        await forgetting.ask(app.log, app.intake, [said.event_id])
        await app.settle()
    (parked,) = machine.parked
    assert "客人说的" not in parked
    assert "13812345678" in parked
