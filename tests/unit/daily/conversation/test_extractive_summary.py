"""A summary without a model."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.daily.conversation.extractive_summary import SummaryTurn, quality, summarise
from sync.daily.model import Code, normalised_content
from sync.daily.pages.page_format import DayPage, PageSession, render
from sync.daily.pages.page_format import parse as parse_page
from tests.unit.daily.examples import DAY, talk


class TestSummary:
    chinese = talk(
        "你好，帮我设计一个记忆功能，存储位置在 .cursor/skills/memories/",
        "好的。可以采用关键词加语义搜索的方式检索。",
        "我决定自动保存，端口用 8080。",
        '配置如下：\n```json\n{"auto_save": true}\n```\n这样就可以了。',
        "可以跳过吗？",
        "可以。",
    )
    english = talk(
        "Please help me refactor the REST API",
        "Sure. Which framework do you want?",
        "We decided to use FastAPI instead of Flask because of async support.",
        "Good choice. The service must listen on port 8080.",
        "I prefer pytest for tests.",
        "Noted.",
    )

    def test_chinese(self) -> None:
        found = summarise(self.chinese)
        assert "记忆功能" in found.topic
        assert not found.topic.startswith(("你好", "帮我"))
        assert any("8080" in fact for fact in found.facts)
        assert any("关键词" in fact for fact in found.facts)
        assert not any(fact.endswith("？") for fact in found.facts)
        assert found.code == (Code("json", '{"auto_save": true}'),)
        assert 0 < len(found.tags) <= 6

    def test_english(self) -> None:
        found = summarise(self.english)
        assert "refactor the REST API" in found.topic
        assert any("FastAPI" in fact for fact in found.facts)
        assert any("pytest" in fact for fact in found.facts)
        assert not any("Which framework" in fact for fact in found.facts)
        assert {"api", "rest"} & set(found.tags)

    def test_it_is_the_same_for_the_same_turns_and_says_nothing_of_its_own(self) -> None:
        for turns in (self.chinese, self.english):
            found = summarise(turns)
            assert found == summarise(list(turns))
            said = " ".join(" ".join(turn.text.split()) for turn in turns)
            assert all(fact.rstrip("…") in said for fact in (found.topic, *found.facts))

    def test_code_is_found_whatever_ends_its_lines(self) -> None:
        for end in ("\r\n", "\r"):
            typed = [SummaryTurn(turn.role, turn.text.replace("\n", end)) for turn in self.chinese]
            assert summarise(typed) == summarise(self.chinese)

    @given(st.lists(st.builds(SummaryTurn, st.sampled_from(["user", "assistant"]), st.text(max_size=80)), max_size=6))
    def test_anything_said_gives_a_page_that_can_be_read(self, turns: list[SummaryTurn]) -> None:
        page = DayPage(DAY, (PageSession(1, "10:00:00", summarise(turns)),))
        assert parse_page(render(page)) == page
        assert 0 <= quality(summarise(turns), turns) <= 1

    def test_of_two_sentences_that_say_the_same_the_later_holds_unless_a_model_only_repeats_a_person(self) -> None:
        red, again = "前端页面的按钮统一使用红色主题的样式", "前端页面的按钮，统一使用红色主题样式吧"
        begun = "我们来定一下前端页面的样式规范", "好的。", "好", "好的。", "行", "好的。"
        assert summarise(talk(*begun, red, "好的。", again, "好的。")).facts == (again,)
        assert summarise(talk(*begun, red, again)).facts == (red,)

    def test_quality_tells_a_good_summary_from_a_poor_one(self) -> None:
        good = quality(summarise(self.english), self.english)
        poor = quality(normalised_content("对话记录"), self.english)
        repeats = quality(
            normalised_content("REST API", ["use FastAPI now", "use FastAPI now!", "use FastAPI, now"]), self.english
        )
        assert good > 0.6 > repeats > poor
        assert poor < 0.4


@pytest.mark.parametrize(
    ("begun", "agreed"),
    [
        ("周六我们吃火锅吧，你觉得哪家好", "那就番茄锅底，周六晚上六点去"),
        ("看看订单接口的进度", "明天继续做 /orders 的迁移"),
        ("Let's plan the trip to Porto", "Then we go by train on Friday evening"),
    ],
)
def test_what_the_user_agrees_to_is_a_fact_whatever_its_words_and_courtesies_and_requests_are_none(
    begun: str, agreed: str
) -> None:
    found = summarise(talk(begun, "Sure.", agreed, "好的，已经记下了。", "谢谢", "不客气", "帮我看看", "好"))
    assert found.facts == (agreed,)
    assert "客气" not in found.tags


def test_a_topic_made_of_a_summary_that_was_cut_says_that_it_is_cut() -> None:
    cut = 'My docker build keeps failing with "no space left...'
    assert summarise([SummaryTurn("user", cut), SummaryTurn("assistant", "Prune the images.")]).topic.endswith(
        "no space left…"
    )


@pytest.mark.parametrize(
    "answer",
    [
        "```typescript const port = (xs: number[]) => xs.map((x) => x + 8080);",
        "〔代码〕",
        "`const port = 8080; const path = 'a/b'`",
        "这样写：```ts\nconst port = 8080\nconst version = 2\n```",
    ],
)
def test_code_is_no_fact(answer: str) -> None:
    facts = summarise(talk("写一个处理函数", answer, "好的", "决定使用 8080 端口。")).facts
    assert facts == ("决定使用 8080 端口",)
