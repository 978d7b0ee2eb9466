"""Which part of a text is embedded."""

import pytest

from sync.recall.semantic.embedder import PASSAGE_LENGTH, QUERY_LENGTH, is_dense, passage_of, query_tail_of


def test_of_a_text_the_beginning_counts_and_of_a_question_the_end() -> None:
    assert passage_of("短") == query_tail_of("短") == "短"
    assert passage_of("字" * 999) == "字" * int(PASSAGE_LENGTH)
    assert query_tail_of("a" * 9_999) == "a" * int(QUERY_LENGTH * 4)
    assert query_tail_of("前" + "后" * int(QUERY_LENGTH)) == "后" * int(QUERY_LENGTH)


@pytest.mark.parametrize(
    ("text", "dense"), [("去爬山", True), ("fix 支付接口", True), ("call 王 tomorrow", False), ("", False)]
)
def test_the_kind_of_script_is_that_of_most_of_a_text(text: str, dense: bool) -> None:
    assert is_dense(text) is dense
