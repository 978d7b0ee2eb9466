"""The block of a system prompt, and how long a session keeps it."""

import pytest
from msgspec import structs

from sync.context.block_lines import FACTS, LATE, LIKELY, OWN, BlockLine
from sync.context.known_facts import KnownFacts
from sync.context.stable_block import StableBlock, compose_block, framed
from sync.texts.language import Language
from sync.understanding.model import FactStatus
from tests.unit.context.test_known_facts import fact

WALLPAPER = BlockLine(FACTS, "用户偏好", "喜欢浅色壁纸（2026-11）", frozenset({"ent_1"}))
ALLERGY = BlockLine(FACTS, "用户偏好", "我对花生过敏（2026-11）", frozenset({"ent_2"}), is_vital=True)
RULE = BlockLine(OWN, "约定", "提交前跑测试", frozenset({"ent_3"}))
LEASE = BlockLine(LATE, "重要对话记录", "2026-11-20 用户问：房租到期；AI 答：月底", frozenset({"evt_4"}))
DIGEST = "## 其他设备的记忆（只读）\n\n- 【书房 2026/1/8】打开了自动更新\n"


def composed(*lines: BlockLine, digest: str = "", room: int = 2_000) -> str:
    return compose_block(lines, digest, room, lambda text: "哮喘" in text)[0]


def test_the_memory_stands_between_its_marks_behind_three_lines() -> None:
    for language in Language:
        prompt = framed(composed(WALLPAPER), "k3v9", language)
        before, _, rest = prompt.partition("<memory-k3v9>\n")
        memory, _, after = rest.partition("\n</memory-k3v9>\n")
        assert len(before.splitlines()) == 3
        assert "- 喜欢浅色壁纸" in memory
        assert "get_ai_memory" in before
        assert after == ""
        assert framed("", "k3v9", language) == ""


def test_safety_comes_first_then_own_sections_what_was_late_and_other_devices() -> None:
    content = composed(LEASE, RULE, WALLPAPER, ALLERGY, digest=DIGEST)
    assert content == (
        "## 用户偏好\n- 我对花生过敏（2026-11）\n- 喜欢浅色壁纸（2026-11）\n\n## 约定\n- 提交前跑测试\n\n"
        "## 重要对话记录\n- 2026-11-20 用户问：房租到期；AI 答：月底\n\n" + DIGEST
    )
    assert composed() == ""


@pytest.mark.parametrize("room", range(20, 400, 9))
def test_no_bound_is_exceeded_and_safety_goes_last(room: int) -> None:
    many = [numbered(WALLPAPER, at) for at in range(20)]
    content = composed(*many, ALLERGY, numbered(WALLPAPER, 99, "哮喘"), LEASE, RULE, digest=DIGEST, room=room)
    assert len(content.strip()) <= room
    assert ("花生" in content) or room < 40
    assert content.count("## ") == 0 or "- " in content, "no heading without lines"


def numbered(line: BlockLine, at: int, word: str = "") -> BlockLine:
    return BlockLine(line.part, line.heading, f"{word}{at} {line.text}", frozenset({f"ent_{at}"}))


def test_what_may_be_a_fact_has_600_characters_what_was_late_too_and_a_program_a_tenth() -> None:
    talk = [BlockLine(LATE, "重要对话记录", f"{at} " + "话" * 60) for at in range(30)]
    assert 500 < len(composed(*talk)) <= 620
    likely = [BlockLine(LIKELY, "重要对话记录", f"{at} “" + "也许" * 30) for at in range(30)]
    content = composed(*talk, *likely)
    assert 1_000 < len(content) <= 1_220
    assert content.index("也许") < content.index("话话")
    rules = [BlockLine(FACTS, "用户偏好", f"【来自 工具】第 {at} 条规矩", author="来自 工具") for at in range(100)]
    content = composed(*rules, ALLERGY)
    assert sum(len(line) + 1 for line in content.splitlines() if "【来自 工具】" in line) <= 200
    assert content.index("花生") < content.index("工具")


def test_a_session_keeps_its_block_until_something_in_it_is_gone() -> None:
    known = fact("location")
    line = BlockLine(FACTS, "用户偏好", "我住在北京（2026-11）", frozenset({"ent_5"}), fact_id=known.fact_id)
    block = StableBlock("…", 2_000, (line, RULE))
    facts = KnownFacts([known])
    assert block.holds([line, RULE, WALLPAPER], facts, 2_000), "something was added"
    assert not block.holds([line, RULE], facts, 1_000), "another limit is another block"
    assert not block.holds([line], facts, 2_000), "removed or erased"
    replaced = KnownFacts([structs.replace(known, status=FactStatus.SUPERSEDED, superseded_by="other")])
    assert block.holds([RULE], replaced, 2_000), "the next message says what replaced it"
    assert [one.fact_id for one in block.changed(replaced)] == [known.fact_id]
    doubted = KnownFacts([structs.replace(known, questioned_by="other")])
    assert block.holds([RULE], doubted, 2_000)
    assert [one.fact_id for one in block.changed(doubted)] == [known.fact_id]
    withdrawn = KnownFacts([structs.replace(known, status=FactStatus.RETRACTED)])
    assert not block.holds([RULE], withdrawn, 2_000)
    assert block.ids == {"ent_3", "ent_5"}
