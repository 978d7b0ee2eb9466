"""Keywords of a text, and how alike two texts are."""

from sync.daily.conversation.keywords import keywords, similarity


class TestSummary:
    def test_words(self) -> None:
        assert keywords(["重构 API 的记忆模块，记忆模块很重要", "api"], 3)[:2] == ["api", "记忆模块"]
        assert similarity("今天去吃火锅", "今天去吃火锅") == 1.0
        assert similarity("今天去吃火锅", "refactor") == 0.0
