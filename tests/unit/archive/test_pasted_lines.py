"""Pasted lists of what another assistant knows."""

from collections import Counter
from datetime import date

import pytest

from sync.archive.model import Skipped
from sync.archive.pasted_lines import MAX_PASTED_BYTES, MAX_PASTED_LINES, PastedLine, memory_texts, read_pasted
from sync.errors import TooLarge


def test_each_line_is_one_thing_and_headings_are_counted() -> None:
    skipped = Counter[Skipped]()
    text = (
        "## Identity\n\n```\n[2025-11-03] - Lives in Kiel\n[unknown] - 对花生过敏\n```\n"
        "**Work:**\n* Name: Kim\n1. Uses **vim**.\n---\n偏好：\n"
    )

    found = read_pasted(text, skipped)

    assert found == [
        PastedLine("Lives in Kiel", date(2025, 11, 3)),
        PastedLine("对花生过敏"),
        PastedLine("Name: Kim"),
        PastedLine("Uses **vim**."),
    ]
    assert skipped == {Skipped.HEADINGS: 3}


def test_a_line_that_is_too_long_for_a_fact_becomes_several() -> None:
    words = [f"word{number}" for number in range(200)]

    found = read_pasted(" ".join(words), Counter())

    assert " ".join(line.text for line in found).split() == words
    assert len(found) > 1


@pytest.mark.parametrize(
    ("text", "count"), [("x\n" * (MAX_PASTED_LINES + 1), "2001 lines"), ("好" * MAX_PASTED_BYTES, "3145728 bytes")]
)
def test_more_than_a_paste_holds_is_refused_with_the_count(text: str, count: str) -> None:
    with pytest.raises(TooLarge, match=count):
        read_pasted(text, Counter())
    assert len(read_pasted("x\n" * MAX_PASTED_LINES, Counter())) == MAX_PASTED_LINES


@pytest.mark.parametrize(
    "value", [None, 7, {}, {"memory_files": 7}, {"project_memories": [1], "conversations_memory": 1}]
)
def test_a_value_of_another_shape_is_no_memory(value: object) -> None:
    assert memory_texts(value) == []


def test_a_memory_of_claude_has_texts_of_conversations_projects_and_files() -> None:
    value = {
        "conversations_memory": "Kim is a potter.",
        "project_memories": {"p": "Kiln at 950.", "q": 7},
        "memory_files": [{"path": "/a.md", "content": "Likes tea."}, None],
    }
    assert memory_texts(value) == ["Kim is a potter.", "Kiln at 950.", "Likes tea."]
