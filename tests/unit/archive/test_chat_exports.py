"""Exports of Claude and ChatGPT as turns."""

from collections import Counter
from datetime import UTC, datetime
from typing import Any

import pytest

from sync.archive.chat_exports import read_chats
from tests.chat_export_samples import CHATGPT, CLAUDE, claude, node


def test_a_conversation_of_claude_is_its_questions_and_answers_with_their_times() -> None:
    (talk,) = read_chats(CLAUDE, Counter())

    assert (talk.program, talk.chat_id, talk.title) == ("claude", "c-1", "周末计划")
    assert [(turn.turn_id, turn.question, turn.answer) for turn in talk.turns] == [
        ("m-1", "去哪里爬山", "香山\n\n或者百望山"),
        ("m-4", "要带伞吗", ""),
    ]
    assert talk.turns[0].asked_at == datetime(2024, 5, 1, 8, 0, tzinfo=UTC)


@pytest.mark.parametrize("instant", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-12:00", "soon", 7, None])
def test_a_time_out_of_the_calendar_is_none(instant: Any) -> None:
    said = {**claude("m-1", "human", "?"), "created_at": instant}
    (talk,) = read_chats([{"uuid": "c-1", "created_at": instant, "chat_messages": [said]}], Counter())

    assert (talk.started_at, talk.turns[0].asked_at) == (None, None)


def test_of_a_tree_of_chatgpt_the_branch_that_was_shown_last_counts() -> None:
    (talk,) = read_chats(CHATGPT, Counter())

    assert (talk.program, talk.chat_id) == ("chatgpt", "g-1")
    assert [(turn.question, turn.answer) for turn in talk.turns] == [("写一首诗", "第二稿")]
    assert talk.turns[0].asked_at == datetime(2024, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    [
        [],
        [1, "x", {}, {"mapping": {}}, {"chat_messages": []}],
        [{"uuid": "x", "chat_messages": [None, {"sender": "human"}, {"sender": "robot", "text": "?"}]}],
        [{"id": "x", "mapping": {"a": node("a", "b", None), "b": node("b", "a", None)}, "current_node": "a"}],
        [{"id": "x", "mapping": {"a": {"message": {"author": "user", "content": 7}}}, "create_time": float("inf")}],
        [{"uuid": "x", "chat_messages": [{"sender": sender, "text": "?"} for sender in ({"x": 1}, ["human"], None)]}],
    ],
)
def test_values_of_another_shape_are_skipped(value: Any) -> None:
    assert list(read_chats(value, Counter())) == []
