"""The empty document in both languages, and its sections."""

import pytest

from sync.document.markdown.edits import NewExchange, edit_entry, insert_entry, insert_exchanges, set_footer
from sync.document.markdown.model import BlockKind, Entry, Snapshot
from sync.document.markdown.parse import parse, parse_text
from sync.document.markdown.template import (
    COMMON_COMMANDS,
    PERSONAL,
    TEMPLATE_SECTIONS,
    WORK_HABITS,
    canonical_section,
    empty_document,
    heading_title,
    language_of,
    question_of,
)
from sync.texts.language import EN, ZH, Language

ENGLISH = """\
# AI Conversation Memory

## User preferences

### Work habits
- (to be added)

### Communication style
- (to be added)

### Technical preferences
- (to be added)

### About me
- (to be added)

---

## Important conversations

- (to be added)

---

## Common operations

### Daily tasks
- (to be added)

### Common commands
- (to be added)

---

**Last updated**: 2026/1/8 15:49:12
"""


@pytest.mark.parametrize("language", Language)
def test_the_template_has_its_label_and_sections_and_no_entries(language: Language) -> None:
    document = parse(empty_document("2026/1/8 15:49:12", language))
    assert document.label == "2026/1/8 15:49:12"
    assert document.entries == ()
    assert sum(block.kind is BlockKind.PLACEHOLDER for block in document.blocks) == 7
    assert document.data == empty_document("2026/1/8 15:49:12", language)
    headings = [block.section for block in document.blocks if block.kind is BlockKind.HEADING]
    assert tuple(headings[1:]) == TEMPLATE_SECTIONS
    assert language_of(document) is language


def test_the_english_template_is_english() -> None:
    assert empty_document("2026/1/8 15:49:12", EN).decode() == ENGLISH


def test_an_english_document_gets_english_headings_lines_and_footer() -> None:
    snapshot = Snapshot(parse(empty_document("2026/1/7 09:00:00", EN)))
    exchange = NewExchange(("q", "a"), "2026/1/8", "Where were we", "At the API", EN)
    snapshot = insert_exchanges(snapshot, [exchange])
    snapshot = insert_entry(snapshot, Entry("one", "- short answers", WORK_HABITS), None)
    text = set_footer(snapshot, "2026/1/8 15:49:12").document.text
    assert "### 2026/1/8\n- User asked: Where were we\n- AI answered: At the API\n" in text
    assert "### Work habits\n- short answers\n\n### Communication style\n- (to be added)\n" in text
    assert text.endswith("**Last updated**: 2026/1/8 15:49:12\n")


def test_a_missing_section_is_created_in_the_language_of_the_document() -> None:
    short = Snapshot(parse_text("# AI Conversation Memory\n\n## User preferences\n"))
    text = insert_entry(short, Entry("one", "- likes tea", PERSONAL), None).document.text
    assert "### About me\n- likes tea\n" in text
    chinese = Snapshot(parse_text("# AI 对话记忆\n\n## 用户偏好\n"))
    assert "### 个人情况\n- 喝茶\n" in insert_entry(chinese, Entry("one", "- 喝茶", PERSONAL), None).document.text


def test_both_languages_name_the_same_section() -> None:
    for section in TEMPLATE_SECTIONS:
        english = tuple(heading_title(section[:depth], EN) for depth in range(1, len(section) + 1))
        assert canonical_section(english) == section
        assert heading_title(section, ZH) == section[-1]
    assert canonical_section(("USER PREFERENCES", "work habits")) == WORK_HABITS


@pytest.mark.parametrize("section", [("Daily tasks",), ("Notes", "About me"), ("User preferences", "Common commands")])
def test_a_title_of_a_subsection_elsewhere_is_the_users_own(section: tuple[str, ...]) -> None:
    assert canonical_section(section)[-1] == section[-1]


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("# Mine\n\n## Important conversations\n", EN),
        ("# AI Conversation Memory\n\n## 用户偏好\n", EN),
        ("# 我的\n\n## 用户偏好\n", ZH),
        ("words\n\n**Last updated**: 2026/1/8 15:49:12\n", EN),
        ("words\n\n**最后更新**：2026/1/8 15:49:12\n", ZH),
        ("# Mine\nwords\n", None),
    ],
)
def test_the_first_known_heading_tells_the_language(text: str, language: Language | None) -> None:
    assert language_of(parse_text(text)) is language


def test_the_question_is_read_in_both_languages() -> None:
    assert question_of("- 用户问：去哪") == "去哪"
    assert question_of("- User asked: where") == "where"
    assert question_of("- something else") == "- something else"


def test_text_between_headings_of_a_document_in_english_keeps_its_bytes() -> None:
    typed = ENGLISH.replace("### Daily tasks\n- (to be added)", "### daily tasks ##\n* backup  ")
    snapshot = Snapshot(parse_text(typed), ("one",))
    assert snapshot.document.text == typed
    assert snapshot.entries[0].section[-1] == "日常任务"
    assert edit_entry(snapshot, "one", "* backups").document.text == typed.replace("backup  ", "backups")
    assert COMMON_COMMANDS in {block.section for block in snapshot.document.blocks}
