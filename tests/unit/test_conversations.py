"""Exports of Claude and ChatGPT as turns."""

from datetime import UTC, datetime
from typing import Any

import pytest

from sync.archive.conversations import talks
from tests.archive_samples import CHATGPT, CLAUDE, node


def test_a_conversation_of_claude_is_its_questions_and_answers_with_their_times() -> None:
    (talk,) = talks(CLAUDE)

    assert (talk.program, talk.talk_id, talk.title) == ("claude", "c-1", "周末计划")
    assert [(turn.turn_id, turn.question, turn.answer) for turn in talk.turns] == [
        ("m-1", "去哪里爬山", "香山\n\n或者百望山"),
        ("m-4", "要带伞吗", ""),
    ]
    assert talk.turns[0].at == datetime(2024, 5, 1, 8, 0, tzinfo=UTC)


def test_of_a_tree_of_chatgpt_the_branch_that_was_shown_last_counts() -> None:
    (talk,) = talks(CHATGPT)

    assert (talk.program, talk.talk_id) == ("chatgpt", "g-1")
    assert [(turn.question, turn.answer) for turn in talk.turns] == [("写一首诗", "第二稿")]
    assert talk.turns[0].at == datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        None,
        {},
        [1, "x", {}, {"mapping": {}}, {"chat_messages": []}],
        [{"uuid": "x", "chat_messages": [None, {"sender": "human"}, {"sender": "robot", "text": "?"}]}],
        [{"id": "x", "mapping": {"a": node("a", "b", None), "b": node("b", "a", None)}, "current_node": "a"}],
        [{"id": "x", "mapping": {"a": {"message": {"author": "user", "content": 7}}}, "create_time": float("inf")}],
    ],
)
def test_what_has_another_shape_is_left_out(value: Any) -> None:
    assert list(talks(value)) == []
