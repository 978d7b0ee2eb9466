"""Explicit wishes in free words: remember this, forget that, save no more, tell me what you know."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from sync.daily.commands.fact_commands import FactCommands, read_wish
from sync.daily.conversation.command_parser import parse_command
from sync.daily.conversation.extractive_summary import SummaryTurn
from sync.understanding.service import FactService
from tests.integration.daily.harness import SAMPLE_TURNS, DailyHarness, open_daily_harness
from tests.support import REDACTOR

DATA = Path(__file__).parents[3] / "data" / "wishes"
MEMORY: dict[str, list[str]] = tomllib.loads((DATA / "memory.toml").read_text("utf-8"))
WISHES: list[dict[str, Any]] = [
    wish
    for name in ("development", "held_out")
    for wish in tomllib.loads((DATA / f"{name}.toml").read_text("utf-8"))["wish"]
]
LEAST = 0.9  # of the wishes of a language that are understood and carried out rightly


async def known(harness: DailyHarness) -> list[str]:
    facts = await FactService(harness.device.log, REDACTOR, harness.device.clock).current()
    return [fact.statement for fact in facts.active]


async def carried_out(harness: DailyHarness, wish: dict[str, Any]) -> tuple[str, Any]:
    """What a sentence is understood as, and with which words or facts."""
    command = parse_command(wish["text"]) or read_wish(wish["text"])
    if command is None:
        return "none", None
    if command.kind == "delete":
        service = FactService(harness.device.log, REDACTOR, harness.device.clock)
        found = await FactCommands(service, REDACTOR).find_named(command.argument.strip('"'))
        return "forget", [MEMORY[wish["language"]].index(fact.statement) for fact in found]
    kind = "remember" if command.kind == "save" and command.argument else command.kind.value
    return kind, command.argument.rstrip(".。") if kind == "remember" else None


@pytest.mark.parametrize(("language", "wish"), [("en", "remember that "), ("zh", "记住：")])
async def test_wishes_in_free_words_are_understood_and_carried_out(tmp_path: Path, language: str, wish: str) -> None:
    async with open_daily_harness(tmp_path) as harness:
        for text in MEMORY[language]:
            assert (await harness.send_command(wish + text)).done
        assert await known(harness) == MEMORY[language], "every one of them, whatever else is read in it"
        asked = [one for one in WISHES if one["language"] == language]
        missed = [
            (one["kind"], one["text"], found)
            for one in asked
            if (found := await carried_out(harness, one)) != (one["kind"], one.get("words", one.get("facts")))
        ]
        assert not [each for each in missed if each[0] == "none"], "what is no wish is for the model"
        wishes = [one for one in asked if one["kind"] != "none"]
        assert len(missed) <= (1 - LEAST) * len(wishes), missed


@pytest.mark.parametrize(
    ("wish", "forget", "confirm", "again"),
    [
        ("remember that my locker is B7 left", "forget my locker", "confirm", "Note: my locker is B7 left"),
        ("记住我的柜子在左边", "忘记我的柜子", "确认", "记一下：我的柜子在左边"),
    ],
)
async def test_a_wish_is_a_fact_that_a_forgetting_finds_and_erases(
    tmp_path: Path, wish: str, forget: str, confirm: str, again: str
) -> None:
    async with open_daily_harness(tmp_path) as harness:
        reply = await harness.send_command(wish, session_id="s1")
        (text,) = await known(harness)
        assert reply.done
        assert text in reply.message
        shown = await harness.send_command(forget)
        assert not shown.done
        assert await known(harness) == [text], "nothing goes before the confirmation"
        assert (await harness.send_command(f"{forget} {confirm}")).done
        assert await known(harness) == []
        assert (await harness.send_command(again)).done
        assert await known(harness) == [text], "what was forgotten can be asked for again"


@pytest.mark.parametrize("forget", ["forget my allergies", "忘记我的过敏"])
async def test_several_facts_that_match_are_listed_and_none_is_erased(tmp_path: Path, forget: str) -> None:
    async with open_daily_harness(tmp_path) as harness:
        facts = MEMORY["en" if forget.isascii() else "zh"][:2]
        for text in facts:
            await harness.send_command(f"记住：{text}")
        reply = await harness.send_command(forget)
        assert not reply.done
        assert all(text in reply.message for text in facts)
        assert await known(harness) == facts


@pytest.mark.parametrize(("forget", "confirm"), [("forget what I just said", "confirm"), ("忘掉刚才的", "确认")])
async def test_what_was_said_last_is_shown_and_erased_and_nothing_else(
    tmp_path: Path, forget: str, confirm: str
) -> None:
    async with open_daily_harness(tmp_path) as harness:
        assert not (await harness.send_command(forget)).done
        await harness.send_command("记住我的柜子在左边")
        await harness.send_command("记住我的车位在三楼")
        shown = await harness.send_command(forget)
        assert not shown.done
        assert "我的车位在三楼" in shown.message
        assert (await harness.send_command(f"{forget} {confirm}")).done
        assert await known(harness) == ["我的柜子在左边"]


@pytest.mark.parametrize(
    ("said", "expected"),
    [("备用钥匙在花盆下面", ["备用钥匙在花盆下面"]), ("备用钥匙在哪？", []), ("“备用钥匙在花盆下面”", [])],
)
async def test_a_pronoun_alone_means_what_the_user_said_before(tmp_path: Path, said: str, expected: list[str]) -> None:
    async with open_daily_harness(tmp_path) as harness:
        turns = (SummaryTurn("user", said), SummaryTurn("assistant", "好的。"))
        assert (await harness.send_command("记住这个", turns=turns, points_back=True)).done
        assert await known(harness) == expected


@pytest.mark.parametrize("text", ["stop remembering things", "以后别记了"])
async def test_a_pause_keeps_what_was_saved(tmp_path: Path, text: str) -> None:
    async with open_daily_harness(tmp_path) as harness:
        await harness.append_messages("s1")
        assert (await harness.send_command(text, session_id="s1")).done
        assert await harness.find("8080"), "it is not erased"
        assert (await harness.send_command("记住这个", session_id="s1", turns=SAMPLE_TURNS)).done
        assert await harness.topics()


@pytest.mark.parametrize(("text", "nothing"), [("what do you remember about me?", "Nothing"), ("你记得我什么", "没有")])
async def test_what_is_known_is_listed_with_its_month(tmp_path: Path, text: str, nothing: str) -> None:
    async with open_daily_harness(tmp_path) as harness:
        empty = await harness.send_command(text)
        assert not empty.done
        assert nothing in empty.message
        await harness.send_command("记住我的柜子在左边")
        assert "我的柜子在左边 (2026-02)" in (await harness.send_command(text)).message


async def test_what_may_not_be_stored_is_not_remembered_and_the_answer_says_so(tmp_path: Path) -> None:
    async with open_daily_harness(tmp_path) as harness:
        reply = await harness.send_command("记住我的手机号是13812345678")
        assert not reply.done
        assert "13812345678" not in reply.message
        assert await known(harness) == []
