"""A memory that comes back from the log to a document that has never seen it, or no longer: also what was typed."""

import random
import shutil
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from sqlite3 import connect

import pytest
from sqlalchemy import Connection

from sync.db.migrate import known
from sync.document.model import Entry
from sync.document.past import KEPT
from sync.log import store as log_store
from sync.log.intake import Intake
from sync.log.model import Event
from tests.integration.document_desk import Desk, on_a_desk

HABITS = "### 工作习惯"
STYLE = "### 沟通风格"
PHONE = "13812345678"


async def lines(desk: Desk) -> list[Entry]:
    """What the document says, and under which headings; who said so has no say in it."""
    return [replace(entry, entry_id="") for entry in (await desk.newest()).snapshot.entries]


async def hear(desk: Desk, events: list[Event]) -> None:
    """Take these in as a pull does, and look at the document."""

    held = {event.event_id for event in await logged(desk)}

    def taking(connection: Connection) -> None:
        log_store.add_all(connection, [event for event in events if event.event_id not in held])

    await desk.database.write(taking)
    await desk.memory.settle()


async def logged(desk: Desk) -> list[Event]:
    return list(await desk.database.read(lambda connection: log_store.at_positions(connection, range(1, 1_000))))


async def live(desk: Desk, chance: random.Random, steps: int) -> None:
    """Say, type, reword and take away; each settled."""
    for number in range(steps):
        desk.clock.move(hours=chance.choice([0, 1, 12]))
        lines = [line for line in desk.text.splitlines() if line.startswith("- ") and "待补充" not in line]
        act = chance.choice(["say", "type", "type", "reword", "remove"]) if lines else "say"
        if act == "say":
            await desk.say(f"问题{number}")
        elif act == "type":
            desk.type_under(chance.choice([HABITS, STYLE]), f"- 第 {number} 条")
        else:
            line = chance.choice(lines)
            desk.replace(f"{line}\n", f"{line} 改{number}\n" if act == "reword" else "")
        await desk.memory.settle()


@pytest.mark.parametrize("seed", range(12))
async def test_the_document_of_an_emptied_device_is_what_it_was_however_the_log_comes_back(
    tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    async with on_a_desk(tmp_path / "before") as before, on_a_desk(tmp_path / "after") as after:
        await before.said("开始")
        await live(before, chance, 20)
        events = await logged(before)
        for first in range(0, len(events), size := chance.choice([1, 3, 100])):
            await hear(after, events[first : first + size])
        assert await lines(after) == await lines(before)


async def test_what_was_typed_comes_back_redacted_and_what_was_taken_away_stays_away(tmp_path: Path) -> None:
    async with on_a_desk(tmp_path / "before") as before, on_a_desk(tmp_path / "after") as after:
        await before.said("一")
        before.type_under(HABITS, f"- 电话 {PHONE}\n- 早起")
        await before.memory.settle()
        before.replace("- 早起\n", "")
        await before.memory.settle()
        await after.hear(before)
        assert "- 电话 [手机号]" in after.text
        assert "早起" not in after.text
        assert "用户问：一" in after.text


async def test_lines_that_stand_here_stay_as_they_were_typed(tmp_path: Path) -> None:
    """A home restored from its backup has the line in raw form; the edit that comes back knows it redacted alone."""
    async with on_a_desk(tmp_path / "home") as home:
        await home.said("一")
        home.type_under(HABITS, f"- 电话 {PHONE}")
        await home.memory.settle()
    shutil.copytree(tmp_path / "home", tmp_path / "backup")
    async with on_a_desk(tmp_path / "home") as lost, on_a_desk(tmp_path / "backup") as restored:
        lost.clock.move(hours=1)
        lost.replace(f"- 电话 {PHONE}\n", f"- 电话 {PHONE}，下班后\n- 早起\n")
        await lost.memory.settle()
        await hear(restored, await logged(lost))
        assert f"- 电话 {PHONE}，下班后\n- 早起\n" in restored.text


async def test_what_was_reworded_here_meanwhile_keeps_both_words(tmp_path: Path) -> None:
    """A home is restored, and goes on before it hears of what came after the backup."""
    async with on_a_desk(tmp_path / "home") as home:
        await home.said("一")
        home.type_under(HABITS, "- 早上 喝 茶\n- 晚上 看书")
        await home.memory.settle()
        before = len(await logged(home))
    shutil.copytree(tmp_path / "home", tmp_path / "backup")
    async with on_a_desk(tmp_path / "home") as lost, on_a_desk(tmp_path / "backup") as restored:
        lost.clock.move(hours=1)
        lost.replace("喝 茶", "喝 绿茶")
        lost.replace("- 晚上 看书\n", "")
        await lost.memory.settle()
        restored.clock.move(hours=2)
        restored.clock.chance = random.Random("another time")
        restored.replace("喝 茶", "喝 白茶")
        restored.replace("看书", "看报")
        await restored.memory.settle()
        came_later = (await logged(lost))[before:]
        await hear(restored, [replace(event, replica_id="rep_before") for event in came_later])
        assert "喝 绿茶" in restored.text
        assert "喝 白茶" in restored.text
        assert "晚上 看报" in restored.text


async def test_what_was_forgotten_while_the_memory_came_back_does_not_come_back_with_its_rest(tmp_path: Path) -> None:
    """The fold of what came before is kept between pages: a late edit is not merged with forgotten words."""
    async with on_a_desk(tmp_path / "before") as before, on_a_desk(tmp_path / "after") as after:
        await before.said("一")
        before.type_under(HABITS, "- 早上 喝 茶\n- 早起")
        await before.memory.settle()
        before.replace("早上 喝 茶", "早上 喝 秘密的茶")
        await before.memory.settle()
        events = [replace(event, replica_id="rep_before") for event in await logged(before)]
        await hear(after, events)
        assert "- 早上 喝 秘密的茶" in after.text
        after.clock.chance = random.Random("another time")
        await after.log.record([Intake(after.redactor).forgotten([events[-1].event_id])])
        await after.memory.settle()
        assert "秘密" not in after.text
        payload = {**events[-1].payload, "text": "- 晚上 喝 茶"}
        hlc = (await logged(after))[-1].hlc[:-4] + "ffff"
        await hear(after, [replace(events[-1], event_id="evt_late", replica_seq=999, hlc=hlc, payload=payload)])
        assert "- 晚上 喝 茶\n" in after.text
        assert "秘密" not in after.text
        assert "- 早起" in after.text


async def test_what_was_folded_is_let_go_when_nothing_comes_back_any_more(tmp_path: Path) -> None:
    async with on_a_desk(tmp_path / "before") as before, on_a_desk(tmp_path / "after") as after:
        await before.said("一")
        before.type_under(HABITS, "- 早起")
        await before.memory.settle()
        await hear(after, await logged(before))
        past = after.memory.versions._past
        assert past._fold is not None
        after.clock.move(seconds=KEPT / 2)
        await after.memory.settle()
        assert past._fold is not None
        after.clock.move(seconds=KEPT)
        await after.memory.settle()
        assert past._fold is None


async def test_an_update_of_the_program_applies_nothing_that_stands_in_the_document(tmp_path: Path) -> None:
    """Until then the mark stood at the last exchange, and what was typed after it is in the file already."""
    async with on_a_desk(tmp_path / "home") as home:
        await home.said("一")
        home.type_under(HABITS, f"- 电话 {PHONE}")
        await home.memory.settle()
        text, spoken = home.text, await home.say("二")
    migration = next(found for found in known() if found.name == "own_edits")
    with closing(connect(tmp_path / "home" / "memory.db")) as database, database:
        database.execute("update watermarks set position = 1 where name = 'document'")
        for statement in migration.statements:
            database.execute(statement)
        (mark,) = database.execute("select position from watermarks where name = 'document'").fetchone()
        (at,) = database.execute("select position from events where event_id = ?", [spoken]).fetchone()
        assert mark == at - 1
    async with on_a_desk(tmp_path / "home") as home:
        await home.memory.settle()
        assert "用户问：二" in home.text
        assert f"- 电话 {PHONE}\n" in home.text
        assert len(home.text.splitlines()) == len(text.splitlines()) + 3
