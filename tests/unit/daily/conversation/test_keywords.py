"""Keywords of a text, and how alike two texts are."""

import pytest

from sync.daily.conversation.keywords import keywords, similarity


class TestSummary:
    def test_words(self) -> None:
        assert keywords(["重构 API 的记忆模块，记忆模块很重要", "api"], 3)[:2] == ["api", "记忆"]
        assert similarity("今天去吃火锅", "今天去吃火锅") == 1.0
        assert similarity("今天去吃火锅", "refactor") == 0.0

    def test_chinese_keywords_are_whole_words(self) -> None:
        pytest.importorskip("rjieba")
        text = "支付模块的单元测试失败了，登录跳转也有问题。原因主要是缓存，考虑改前缀统一。中午去那家火锅店。"
        found = keywords([text], 20)
        assert {"支付", "模块", "单元测试", "登录", "跳转", "前缀", "缓存", "火锅店"} <= set(found)
        assert not {"付模块", "家火锅店", "原因主", "前缀统", "单元测", "录跳转"} & set(found)

    def test_contractions_ordinals_and_pronouns_leave_no_pieces(self) -> None:
        pytest.importorskip("rjieba")
        found = keywords(["I've moved, don't call; we'll meet on the 5th. 我换了，我开的是比亚迪，我妈住长沙"], 20)
        assert {"moved", "比亚迪", "长沙"} <= set(found)
        assert not [word for word in found if word in {"ve", "don", "ll", "th"} or word.startswith("我")]

    def test_without_a_segmenter_it_is_cut_at_function_characters(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sync.daily.conversation.keywords.content_words", lambda _: None)
        assert keywords(["重构 API 的记忆模块，记忆模块很重要", "api"], 3)[:2] == ["api", "记忆模块"]
