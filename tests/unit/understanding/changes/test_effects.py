"""What a newer statement does to an older one."""

from typing import Any

import pytest
from msgspec.structs import replace

from sync.understanding.changes.effects import Effect, effect_of
from sync.understanding.model import Change, FactKind, FactSection, Level, Statement


def stated(text: str, **fields: Any) -> Statement:
    return replace(Statement(text, FactKind.PREFERENCE, FactSection.PERSONAL, reader="forms"), **fields)


@pytest.mark.parametrize(
    ("older", "newer", "effect"),
    [
        (stated("我住在天津", slot="location"), stated("我住在宁波", slot="location"), Effect.ENDS),
        (stated("我用 Vim", slot="editor"), stated("我也用 Zed", slot="editor", change=Change.ADDS), Effect.NONE),
        (stated("我对花生过敏", slot="diet.allergy"), stated("我对虾过敏", slot="diet.allergy"), Effect.NONE),
        (stated("我喜欢吃辣"), stated("我不喜欢吃辣", is_negative=True), Effect.CONTRADICTS),
        (stated("缓存用 Redis"), stated("Redis 换成 Valkey 了", change=Change.REPLACES, former="Redis"), Effect.ENDS),
        (stated("我每周上瑜伽课"), stated("瑜伽这事到头了", change=Change.ENDS, level=Level.LIKELY), Effect.QUESTIONS),
        (stated("我家的橘猫特别能吃"), stated("我不打网球了", change=Change.ENDS), Effect.NONE),
        (
            stated("孙子叫小满，在实验幼儿园", about="grandson"),
            stated("小满拔了牙，现在不让吃糖", about="unknown", change=Change.NOW),
            Effect.NONE,
        ),
        (stated("用 Zed，不用 Vim 了", slot="editor", former="Vim"), stated("我用 Vim", slot="editor"), Effect.ENDS),
        (stated("用 Zed 写 Rust", slot="editor"), stated("我用 Zed", slot="editor"), Effect.NONE),
        (stated("我在成都开了家咖啡店"), stated("我乳糖不耐受，只喝黑咖啡", is_negative=True), Effect.NONE),
        (
            stated("My son Kabir is in Class 8", about="son"),
            stated("Kabir is promoted to Class 9", about="Kabir", change=Change.REPLACES),
            Effect.QUESTIONS,
        ),
    ],
)
def test_a_newer_statement_ends_or_questions_only_what_it_is_about(
    older: Statement, newer: Statement, effect: Effect
) -> None:
    assert effect_of(older, newer) is effect
    is_by_name = "Kabir" in newer.text  # a name that the older one introduces says whom it is about
    assert effect_of(older, replace(newer, about="unknown")) is (Effect.QUESTIONS if is_by_name else Effect.NONE)
    assert effect_of(replace(older, about="mother"), replace(newer, about="sister")) is Effect.NONE


def test_of_health_a_likely_sentence_questions_only_with_a_verb_of_ending() -> None:
    allergy = stated("我对花生过敏", slot="diet.allergy.花生")
    for change in Change:
        likely = stated("花生能吃了", change=change, level=Level.LIKELY)
        assert effect_of(allergy, likely) is (Effect.QUESTIONS if change is Change.ENDS else Effect.NONE)
