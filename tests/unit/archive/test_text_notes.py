"""Notes of other programs as pages: nothing of a note is lost."""

import re
from datetime import date

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sync.archive.text_notes import own_day_of, read_note
from sync.daily.pages.page_format import render
from sync.document.markdown.parse import parse_text

DAY = date(2025, 11, 20)
WORD = re.compile(r"\w+")


@given(
    st.lists(
        st.sampled_from(
            ["# H", "## 2025-01-02 x", "- a", "1. b", "```py\nx = 1\n```", "~~~\n~~~", "| a | b |", "", "---", ">"]
        )
        | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=40),
        max_size=30,
    ).map("\n".join)
)
@example("- " + " ".join(f"word{number}" for number in range(4_000)))
@example("```\n" + "\n".join(f"code{number} = 1" for number in range(4_000)) + "\n```")
@example("\n".join(f"- line{number}" for number in range(250)))
def test_every_word_of_a_note_is_in_its_pages(text: str) -> None:
    document = parse_text(text)

    pages = list(read_note("note", document, DAY))

    kept = "\n".join(map(render, pages))
    marks = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)
    words = {word for block in document.entries for word in WORD.findall(marks.sub("", block.raw))}
    assert not [word for word in words if word not in kept.replace("\n", "") and word not in kept][:5]


@pytest.mark.parametrize(
    ("name", "text", "day"),
    [
        ("2025-11-20", "x", DAY),
        ("2025-11-20 stand-up", "---\ndate: 2024-01-01\n---\n", DAY),
        ("notes", '---\ntitle: x\ncreated: "2025-11-20T09:00"\n---\n', DAY),
        ("notes", "date: 2025-11-20\n", None),
        ("2025-99-99", "x", None),
    ],
)
def test_the_day_of_a_note_is_that_of_its_name_else_of_its_front_matter(name: str, text: str, day: date | None) -> None:
    assert own_day_of(name, parse_text(text)) == day
