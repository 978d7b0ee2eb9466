"""Parse queries: terms of both languages, dates, phrases, and messages without content of their own."""

import sys
import time
import unicodedata
from datetime import date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.clock import SystemClock, to_unix_ms
from sync.recall.query import is_context_dependent, parse_query
from sync.recall.text.date_expressions import find_date_span
from sync.recall.text.echo_filter import LINE_PREFIX, strip_recalled_context
from sync.recall.text.tokenizer import content_terms, normalise, tokenize
from tests.support import CHINA, FixedClock

TODAY = date(2026, 2, 4)  # a Wednesday
CLOCK = FixedClock(datetime(2026, 2, 4, 9, 0, tzinfo=CHINA))


def texts(text: str) -> set[str]:
    return {term.text for term in tokenize(text)}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("重试", {"重试", "重", "试"}),
        ("吃火鍋", {"火锅", "锅"}),
        ("ＡＢＣ１２３", {"abc123", "abc", "123"}),
        ("fetchUserById", {"fetchuserbyid", "fetch", "user", "id"}),
        ("retry_count", {"retry_count", "retri", "count"}),
        ("src/app.py", {"src/app.py", "app", "py"}),
        ("HTTP E1001", {"http", "e1001"}),
        ("C++ 与 C#", {"c++", "c#", "与"}),
        ("Bart在海边", {"bart", "海边"}),
        ("ラーメン", {"ラー", "ーメ"}),
        ("пошёл домой", {"пошёл", "домой"}),
    ],
)
def test_words_identifiers_and_characters_are_terms(text: str, found: set[str]) -> None:
    assert found <= texts(text)


@given(st.text(st.sampled_from("a，！ＡｚＦ～aé\u0301\u3099か…㈱①ﾞｶ火鍋餅")))
def test_what_is_looked_for_before_it_is_folded_does_not_change_the_folding(text: str) -> None:
    plain = unicodedata.normalize("NFKC", text)
    assert normalise(text) == plain.replace("鍋", "锅").replace("餅", "饼")


@pytest.mark.parametrize(
    "forms",
    ["run runs running ran", "city cities", "study studied studying", "make makes made making", "child children"],
)
def test_the_forms_of_a_word_are_one_term(forms: str) -> None:
    assert len(texts(forms)) == 1


@pytest.mark.parametrize("pair", ["was wash", "bus busy", "sing single", "用户 用处"])
def test_different_words_stay_different(pair: str) -> None:
    one, other = pair.split()
    assert texts(one) != texts(other)


def test_function_words_drop_out_unless_there_is_nothing_else() -> None:
    assert {term.text for term in content_terms("我觉得火锅真的很好吃")} >= {"火锅", "好吃"}
    assert not {"觉得", "真的", "锅真"} & {term.text for term in content_terms("我觉得火锅真的很好吃")}
    assert [term.text for term in content_terms("when did the dog bark")] == ["dog", "bark"]
    assert [term.text for term in content_terms("the of")] == ["the", "of"]
    assert {term.text for term in content_terms("的了")} == {"的了", "的", "了"}


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("昨天的会", date(2026, 2, 3), date(2026, 2, 3)),
        ("大前天", date(2026, 2, 1), date(2026, 2, 1)),
        ("上周三说的", date(2026, 1, 28), date(2026, 1, 28)),
        ("上周", date(2026, 1, 26), date(2026, 2, 1)),
        ("三天前", date(2026, 2, 1), date(2026, 2, 1)),
        ("最近三天", date(2026, 2, 1), TODAY),
        ("十天前", date(2026, 1, 25), date(2026, 1, 25)),
        ("十五天前说的火锅", date(2026, 1, 20), date(2026, 1, 20)),
        ("二十天前我们讨论过什么", date(2026, 1, 15), date(2026, 1, 15)),
        ("九十九天前", date(2025, 10, 28), date(2025, 10, 28)),
        ("最近十五天", date(2026, 1, 20), TODAY),
        ("１５天前", date(2026, 1, 20), date(2026, 1, 20)),
        ("到 9999-12-31 为止", date.max, date.max),
        ("上个月", date(2026, 1, 1), date(2026, 1, 31)),
        ("去年", date(2025, 1, 1), date(2025, 12, 31)),
        ("2026年1月8日", date(2026, 1, 8), date(2026, 1, 8)),
        ("3月8日", date(2025, 3, 8), date(2025, 3, 8)),
        ("last Monday", date(2026, 2, 2), date(2026, 2, 2)),
        ("two weeks ago", date(2026, 1, 19), date(2026, 1, 25)),
        ("on 7 May 2023", date(2023, 5, 7), date(2023, 5, 7)),
        ("in May 2023", date(2023, 5, 1), date(2023, 5, 31)),
    ],
)
def test_days_in_words_are_spans(text: str, first: date, last: date) -> None:
    span = find_date_span(text, TODAY)
    assert span is not None
    assert (span.first, span.last) == (first, last)


@pytest.mark.parametrize(
    "text",
    [
        "2月30日",
        "三五天前",
        "最近两三天",
        "几十天前",
        "十几年前",
        "3十天前",
        "a may be",
        "最近怎么样",
        "12:30",
        "二月",
        "the march of time",
    ],
)
def test_what_names_no_day_is_no_span(text: str) -> None:
    assert find_date_span(text, TODAY) is None


def test_a_day_filters_a_short_query_and_is_a_preference_in_a_long_one() -> None:
    asked = parse_query("昨天的火锅", (), CLOCK)
    assert not asked.is_preference
    assert asked.since_ms == 1_770_048_000_000
    assert "昨天" not in asked.terms
    assert parse_query("小白: 昨天我去了\n小白: 今天又去了火锅店", (), CLOCK).is_preference
    written_out = parse_query("what happened on 7 May 2023", (), CLOCK)
    assert written_out.is_preference  # the text may say so itself, whenever it was recorded
    assert {"7", "may", "2023"} <= set(written_out.terms)


@pytest.mark.parametrize("text", ["9999-12-31 到期", "9999年12月", "证书在 9999-12-31 到期\n还早"])
def test_a_span_behind_which_there_is_no_day_has_no_end(text: str) -> None:
    asked = parse_query(text, (), CLOCK)
    assert asked.since_ms is not None
    assert asked.until_ms is None


@given(st.text("零一二三四五六七八九十两几0123456789 个最近过去天日周星期礼拜月年前之以-/", max_size=16))
def test_whatever_a_message_counts_it_is_read(text: str) -> None:
    parse_query(text, (), CLOCK)
    find_date_span(f"{text}天前", TODAY)


@pytest.mark.skipif(sys.platform == "win32", reason="the zone of a Windows machine is no matter of a variable")
def test_a_day_begins_at_its_own_midnight_whatever_the_clocks_show_today(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")  # Berlin's rules
    time.tzset()
    try:
        bounds = [parse_query(day, (), SystemClock()).since_ms for day in ("2026-07-02 说的", "2026-12-02 说的")]
    finally:
        monkeypatch.undo()
        time.tzset()
    written = ("2026-07-02T00:00:00+02:00", "2026-12-02T00:00:00+01:00")
    assert bounds == [to_unix_ms(datetime.fromisoformat(text)) for text in written]


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


def test_what_recall_has_handed_out_is_recognised() -> None:
    line = f"- {LINE_PREFIX}2026-02-03 用户说】爱吃火锅"
    assert strip_recalled_context(f"你好\n{line}\n再见") == "你好\n再见"
    assert strip_recalled_context("前<memory-a1b2c3d4e5f6>\n什么都行\n</memory-a1b2c3d4e5f6>后") == "前后"
    assert strip_recalled_context("<memory-a1b2c3d4e5f6>\n没有关上") == ""
    assert strip_recalled_context("【忆苦思甜】是栏目名") == "【忆苦思甜】是栏目名"
