"""Own edits that come back from the log to a document that has never had them, or no longer has them."""

import random
import shutil
from contextlib import closing
from pathlib import Path
from sqlite3 import connect

import pytest
from msgspec.structs import replace

from sync.db.engine import Transaction
from sync.db.migrate import known_migrations
from sync.document.markdown.model import Entry
from sync.document.own.own_history import IDLE_SECONDS
from sync.document.versions.own_projection import OwnProjection
from sync.log import store as log_store
from sync.log.ingest import DraftBuilder
from sync.log.model import Event
from tests.integration.document.harness import DocumentHarness, open_document_harness
from tests.proof import first_in_test

HABITS = "### 工作习惯"
STYLE = "### 沟通风格"
PHONE = "13812345678"


async def lines(harness: DocumentHarness) -> list[Entry]:
    """The lines of the document with their sections, without ids."""
    return [replace(entry, entry_id="") for entry in (await harness.newest_version()).snapshot.entries]


async def receive(harness: DocumentHarness, events: list[Event]) -> None:
    """Ingest these events as a pull does, and update the document."""

    held = {event.event_id for event in await logged(harness)}

    def taking(connection: Transaction) -> None:
        log_store.insert_events(connection, [event for event in events if event.event_id not in held])

    await harness.database.write(taking)
    await harness.memory.reconcile()


async def logged(harness: DocumentHarness) -> list[Event]:
    return list(
        await harness.database.read(lambda connection: log_store.read_at_positions(connection, range(1, 1_000)))
    )


async def make_history(harness: DocumentHarness, chance: random.Random, steps: int) -> None:
    """Record, type, edit and remove lines, and reconcile after each step."""
    for number in range(steps):
        harness.clock.advance(hours=chance.choice([0, 1, 12]))
        lines = [line for line in harness.text.splitlines() if line.startswith("- ") and "待补充" not in line]
        act = chance.choice(["say", "type", "type", "reword", "remove"]) if lines else "say"
        if act == "say":
            await harness.record_exchange(f"问题{number}")
        elif act == "type":
            harness.add_line_under(chance.choice([HABITS, STYLE]), f"- 第 {number} 条")
        else:
            line = chance.choice(lines)
            harness.replace(f"{line}\n", f"{line} 改{number}\n" if act == "reword" else "")
        await harness.memory.reconcile()


@pytest.mark.parametrize("seed", first_in_test(range(12), 4))
async def test_an_emptied_device_gets_the_same_document_in_whatever_order_the_log_comes_back(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    async with open_document_harness(tmp_path / "before") as before, open_document_harness(tmp_path / "after") as after:
        await before.record_and_reconcile("开始")
        await make_history(before, chance, 20)
        events = await logged(before)
        for first in range(0, len(events), size := chance.choice([1, 3, 100])):
            await receive(after, events[first : first + size])
        assert await lines(after) == await lines(before)


async def test_typed_lines_come_back_redacted_and_removed_ones_stay_removed(tmp_path: Path) -> None:
    async with open_document_harness(tmp_path / "before") as before, open_document_harness(tmp_path / "after") as after:
        await before.record_and_reconcile("一")
        before.add_line_under(HABITS, f"- 电话 {PHONE}\n- 早起")
        await before.memory.reconcile()
        before.replace("- 早起\n", "")
        await before.memory.reconcile()
        await after.pull_from(before)
        assert "- 电话 [手机号]" in after.text
        assert "早起" not in after.text
        assert "用户问：一" in after.text


async def test_present_lines_stay_as_they_were_typed(tmp_path: Path) -> None:
    """A restored home has the raw line; the edit that comes back has only its redacted form."""
    async with open_document_harness(tmp_path / "home") as home:
        await home.record_and_reconcile("一")
        home.add_line_under(HABITS, f"- 电话 {PHONE}")
        await home.memory.reconcile()
    shutil.copytree(tmp_path / "home", tmp_path / "backup")
    async with open_document_harness(tmp_path / "home") as lost, open_document_harness(tmp_path / "backup") as restored:
        lost.clock.advance(hours=1)
        lost.replace(f"- 电话 {PHONE}\n", f"- 电话 {PHONE}，下班后\n- 早起\n")
        await lost.memory.reconcile()
        await receive(restored, await logged(lost))
        assert f"- 电话 {PHONE}，下班后\n- 早起\n" in restored.text


async def test_a_line_edited_meanwhile_keeps_both_edits(tmp_path: Path) -> None:
    """A restored home is used before it receives the events made after the backup."""
    async with open_document_harness(tmp_path / "home") as home:
        await home.record_and_reconcile("一")
        home.add_line_under(HABITS, "- 早上 喝 茶\n- 晚上 看书")
        await home.memory.reconcile()
        before = len(await logged(home))
    shutil.copytree(tmp_path / "home", tmp_path / "backup")
    async with open_document_harness(tmp_path / "home") as lost, open_document_harness(tmp_path / "backup") as restored:
        lost.clock.advance(hours=1)
        lost.replace("喝 茶", "喝 绿茶")
        lost.replace("- 晚上 看书\n", "")
        await lost.memory.reconcile()
        restored.clock.advance(hours=2)
        restored.clock.chance = random.Random("another time")
        restored.replace("喝 茶", "喝 白茶")
        restored.replace("看书", "看报")
        await restored.memory.reconcile()
        came_later = (await logged(lost))[before:]
        await receive(restored, [replace(event, replica_id="rep_before") for event in came_later])
        assert "喝 绿茶" in restored.text
        assert "喝 白茶" in restored.text
        assert "晚上 看报" in restored.text


async def test_lines_erased_during_a_pull_do_not_come_back_with_later_pages(tmp_path: Path) -> None:
    """The history is kept between pages, but a late edit is not merged with erased words."""
    async with open_document_harness(tmp_path / "before") as before, open_document_harness(tmp_path / "after") as after:
        await before.record_and_reconcile("一")
        before.add_line_under(HABITS, "- 早上 喝 茶\n- 早起")
        await before.memory.reconcile()
        before.replace("早上 喝 茶", "早上 喝 秘密的茶")
        await before.memory.reconcile()
        events = [replace(event, replica_id="rep_before") for event in await logged(before)]
        await receive(after, events)
        assert "- 早上 喝 秘密的茶" in after.text
        after.clock.chance = random.Random("another time")
        await after.log.append([DraftBuilder(after.redactor).build_erasure([events[-1].event_id])])
        await after.memory.reconcile()
        assert "秘密" not in after.text
        payload = {**events[-1].payload, "text": "- 晚上 喝 茶"}
        hlc = (await logged(after))[-1].hlc[:-4] + "ffff"
        await receive(after, [replace(events[-1], event_id="evt_late", replica_seq=999, hlc=hlc, payload=payload)])
        assert "- 晚上 喝 茶\n" in after.text
        assert "秘密" not in after.text
        assert "- 早起" in after.text


async def test_the_history_is_freed_when_nothing_comes_back_any_more(tmp_path: Path) -> None:
    async with open_document_harness(tmp_path / "before") as before, open_document_harness(tmp_path / "after") as after:
        await before.record_and_reconcile("一")
        before.add_line_under(HABITS, "- 早起")
        await before.memory.reconcile()
        await receive(after, await logged(before))
        projection = after.memory.versions._writer.projection
        assert isinstance(projection, OwnProjection)
        past = projection.history
        assert past._lines is not None
        after.clock.advance(seconds=IDLE_SECONDS / 2)
        await after.memory.reconcile()
        assert past._lines is not None
        after.clock.advance(seconds=IDLE_SECONDS)
        await after.memory.reconcile()
        assert past._lines is None


async def test_an_upgrade_applies_no_edit_that_the_document_has_already(tmp_path: Path) -> None:
    """The old watermark is that of the last exchange, and lines typed after it are in the file already."""
    async with open_document_harness(tmp_path / "home") as home:
        await home.record_and_reconcile("一")
        home.add_line_under(HABITS, f"- 电话 {PHONE}")
        await home.memory.reconcile()
        text, spoken = home.text, await home.record_exchange("二")
    migration = next(found for found in known_migrations() if found.name == "own_edits")
    with closing(connect(tmp_path / "home" / "memory.db")) as database, database:
        database.execute("update watermarks set position = 1 where name = 'document'")
        for statement in migration.statements:
            database.execute(statement)
        (mark,) = database.execute("select position from watermarks where name = 'document'").fetchone()
        (at,) = database.execute("select position from events where event_id = ?", [spoken]).fetchone()
        assert mark == at - 1
    async with open_document_harness(tmp_path / "home") as home:
        await home.memory.reconcile()
        assert "用户问：二" in home.text
        assert f"- 电话 {PHONE}\n" in home.text
        assert len(home.text.splitlines()) == len(text.splitlines()) + 3
