"""Whatever a message holds, a statement is a short piece of it, and the same message gives the same statements."""

from hypothesis import given
from hypothesis import strategies as st

from sync.understanding.importance import MOST, estimate_importance
from sync.understanding.model import MAX_REMEMBERED
from sync.understanding.reading.reader import MAX_STATEMENTS, extract_statements

PIECES = (
    *("我", "我们", "以后", "每天早上", "对花生过敏", "不吃", "喜欢", "住在", "天津", "用", " Vim", "如果", "他说"),
    *("现在", "改用", "不是", "翻译", "的", "吗", "，", "。", "：", "“", "”", "？", "\n"),
    *("I ", "live ", "in ", "Leeds", "never ", "my ", "son ", "is ", ", ", ". ", "'", "`", "```", "#"),
)
messages = st.lists(st.sampled_from(PIECES) | st.characters(), max_size=40).map("".join)


@given(messages)
def test_a_statement_is_a_short_piece_of_its_message(message: str) -> None:
    found = extract_statements(message)
    assert len(found) <= MAX_STATEMENTS
    for one in found:
        assert one.text
        assert one.text in " ".join(message.split())
        assert len(one.text) <= MAX_REMEMBERED
        assert 0 < one.confidence <= 1
    assert found == extract_statements(message)


@given(messages)
def test_an_importance_lies_between_nought_and_the_most(question: str) -> None:
    assert 0 < estimate_importance(question) <= MOST
