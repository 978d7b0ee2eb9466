"""Notes written by hand: an edit adds a Meta where it belongs, and the rest keeps its meaning."""

import pytest

from sync.notes.note_format import parse_note, with_meta

SECTIONS = "## When to load\n\n- 部署时\n\n## One-liner\n\n先备份。\n"


@pytest.mark.parametrize(
    "text",
    [
        f"# 标题\n\n{SECTIONS}",
        f"\ufeff# 标题\n\n{SECTIONS}",
        f"\ufeff{SECTIONS}",
        SECTIONS,
        f"前言\n\n{SECTIONS}",
        f"```\n# no heading\n```\n\n{SECTIONS}",
        f"{SECTIONS}\n# 标题\n",
        f"{SECTIONS}\n# 标题",
    ],
)
def test_a_note_without_meta_keeps_its_sections_when_one_is_added(text: str) -> None:
    before, edited = parse_note(text), with_meta(text, {"Status": "archive"})
    after = parse_note(edited)
    assert (after.status, after.title, after.sections) == ("archive", before.title, before.sections)
    assert edited.startswith("\ufeff") == text.startswith("\ufeff")
    assert edited.count("\ufeff") == text.count("\ufeff")


@pytest.mark.parametrize(
    "line", ["# " + "#" * 100_000, "- A" + " " * 100_000, "- A: x" + " " * 100_000 + "y", "## " + "(" * 100_000]
)
def test_a_line_of_another_repository_is_read_in_proportion_to_its_length(line: str) -> None:
    text = f"# 标题\n\n## Meta\n\n- **Status**: active\n{line}\n"
    assert (parse_note(text).title, parse_note(text).status) == ("标题", "active")
    assert with_meta(text, {"Status": "local"}) == text.replace("active", "local")


def test_the_lines_that_a_merge_adds_to_a_label_are_read() -> None:
    lines = "- **Decision**: 用 A\n- **Alternatives**: 用 B；用 C\n- **Alternatives**: 用 D\n"
    assert parse_note(f"# x\n\n## Context / Decision\n\n{lines}").alternatives == ("用 B", "用 C", "用 D")
