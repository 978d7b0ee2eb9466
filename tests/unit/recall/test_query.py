"""What a query asks for: terms, phrases, time."""

from datetime import datetime

import pytest

from sync.recall.query import is_context_dependent, parse_query
from tests.support import CHINA, FixedClock

CLOCK = FixedClock(datetime(2026, 2, 4, 9, 0, tzinfo=CHINA))


def test_a_day_filters_a_short_query_and_is_a_preference_in_a_long_one() -> None:
    asked = parse_query("昨天的火锅", (), CLOCK)
    assert not asked.is_preference
    assert asked.since_ms == 1_770_048_000_000
    assert "昨天" not in asked.terms
    assert parse_query("小白: 昨天我去了\n小白: 今天又去了火锅店", (), CLOCK).is_preference
    written_out = parse_query("what happened on 7 May 2023", (), CLOCK)
    assert written_out.is_preference  # the text may say so itself, whenever it was recorded
    assert {"7", "may", "2023"} <= set(written_out.terms)


def test_quotation_marks_name_a_phrase_but_not_in_speech() -> None:
    assert parse_query('找"火锅店"', (), CLOCK).phrases == ("火锅店",)
    assert parse_query('Bart: "火锅店"', (), CLOCK).phrases == ()
    assert parse_query('"火锅店"\n"好的"', (), CLOCK).phrases == ()


@pytest.mark.parametrize("text", ["继续", "改一下", "再来一个吧", "do it again", "continue", "好的，继续"])
def test_a_message_that_only_points_is_answered_from_the_turns_before(text: str) -> None:
    assert is_context_dependent(text)
    asked = parse_query(text, ("昨晚吃了火锅",), CLOCK)
    assert "火锅" in asked.terms
    assert not {"继续", "continu"} & set(asked.terms)
    assert parse_query(text, (), CLOCK).terms  # without turns the message itself is searched


@pytest.mark.parametrize("text", ["重试", "继续教育怎么报名", "改密码", "how do I bake bread"])
def test_a_message_with_a_word_of_its_own_does_not_point(text: str) -> None:
    assert not is_context_dependent(text)


@pytest.mark.parametrize(
    "text",
    ["昨天干了什么", "三天前", "what did I do yesterday", "10月20日我们聊了什么", "前几天说了些什么", "夏天去了哪里"],
)
def test_a_question_of_nothing_but_a_day_is_about_that_day(text: str) -> None:
    assert parse_query(text, (), CLOCK).is_about_day


@pytest.mark.parametrize(
    "text", ["昨天的火锅", "今天天气怎么样", "what did Melanie do yesterday", "干了什么", '昨天说"火锅"']
)
def test_a_question_with_a_subject_or_without_a_day_is_not(text: str) -> None:
    assert not parse_query(text, (), CLOCK).is_about_day


def test_each_of_the_last_sentences_of_a_long_query_has_its_own_terms() -> None:
    asked = parse_query("小白: “昨晚去爬山了。”\n小白: “现在想吃火锅！”", (), CLOCK)
    assert len(asked.sentences) == 2
    assert "爬山" in asked.sentences[0]
    assert "火锅" in asked.sentences[-1]
    assert parse_query("想吃火锅", (), CLOCK).sentences == ()
    assert len(parse_query("火锅。" * 30, (), CLOCK).sentences) == 8
