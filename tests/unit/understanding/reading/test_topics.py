"""Slots and sections by the tools and things that a statement names."""

import pytest

from sync.understanding.model import FactKind, FactSection
from sync.understanding.reading.topics import section_of, topic_slot


@pytest.mark.parametrize(
    ("text", "kind", "slot"),
    [
        ("写代码我一直用 Neovim", FactKind.HABIT, "editor"),
        ("回答都用中文", FactKind.PREFERENCE, "reply.language"),
        ("I use pnpm", FactKind.HABIT, "package_manager.javascript"),
        ("用 VS Code 和 Chrome", FactKind.HABIT, None),
        ("我不用 Chrome", FactKind.HABIT, None),
        ("仓库用 PostgreSQL", FactKind.DECISION, None),
        ("我喜欢跑步", FactKind.PREFERENCE, None),
    ],
)
def test_one_tool_of_a_role_gives_the_slot(text: str, kind: FactKind, slot: str | None) -> None:
    assert topic_slot(text, kind) == slot


@pytest.mark.parametrize(
    ("text", "kind", "about", "section"),
    [
        ("回答简短一点", FactKind.PREFERENCE, "user", FactSection.COMMUNICATION_STYLE),
        ("我用 Neovim", FactKind.HABIT, "user", FactSection.TECHNICAL_PREFERENCES),
        ("每周一写周报", FactKind.HABIT, "user", FactSection.WORK_HABITS),
        ("我妈用 Chrome", FactKind.HABIT, "mother", FactSection.PERSONAL),
        ("周五不发版", FactKind.DECISION, "project", FactSection.TECHNICAL_PREFERENCES),
        ("我喜欢跑步", FactKind.PREFERENCE, "user", FactSection.PERSONAL),
    ],
)
def test_the_section_follows_the_words(text: str, kind: FactKind, about: str, section: FactSection) -> None:
    assert section_of(text, kind, about) is section
