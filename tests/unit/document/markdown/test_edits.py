"""Where inserted lines go, and what is removed together with a line."""

import pytest

from sync.document.markdown.edits import (
    NewExchange,
    as_single_entry,
    edit_entry,
    insert_entry,
    insert_exchanges,
    remove_entry,
    set_footer,
)
from sync.document.markdown.model import Entry, Snapshot
from sync.document.markdown.parse import parse
from sync.document.markdown.template import DAILY_TASKS, RECORDS, WORK_HABITS, empty_document
from tests.unit.document.examples import FULL, SHORT, snapshot_of, text_of, with_exchange


def test_three_exchanges_put_into_the_template_give_the_documents_own_format() -> None:
    snapshot = snapshot_of(empty_document("2026/1/7 09:00:00").decode())
    snapshot = with_exchange(snapshot, "2026/1/7", "启动太慢怎么办", "可以缩短启动画面的时间...", ("q1", "a1"))
    snapshot = with_exchange(snapshot, "2026/1/8", "上次说到哪里了", "我先看看之前的记录...", ("q2", "a2"))
    snapshot = with_exchange(snapshot, "2026/1/8", "这台机器的编号是什么", "编号来自硬件，不会变...", ("q3", "a3"))
    snapshot = set_footer(snapshot, "2026/1/8 15:49:12")
    personal = "### 技术偏好\n- （待补充）\n\n### 个人情况\n- （待补充）\n"
    assert text_of(snapshot) == FULL.replace("### 技术偏好\n- （待补充）\n", personal)
    assert snapshot.ids == ("q2", "a2", "q3", "a3", "q1", "a1")


def test_an_exchange_goes_into_the_short_template_and_leaves_its_other_lines() -> None:
    text = text_of(with_exchange(snapshot_of(SHORT), "2026/1/8", "你好", "好"))
    assert text == (
        "# AI 对话记忆\n## 用户偏好\n- （待补充）\n## 重要对话记录\n\n### 2026/1/8\n- 用户问：你好\n- AI 答：好\n\n"
        "## 常用操作\n- （待补充）"
    )


def test_days_stay_in_order_and_a_day_in_another_format_is_used() -> None:
    snapshot = snapshot_of(FULL.replace("### 2026/1/7", "### 2026-01-05"))
    text = text_of(with_exchange(with_exchange(snapshot, "2026/1/6", "六", "六"), "2026/1/5", "五", "五", ("q5", "a5")))
    days = [line for line in text.splitlines() if line.startswith("### 2026")]
    assert days == ["### 2026/1/8", "### 2026/1/6", "### 2026-01-05"]
    assert "可以缩短启动画面的时间...\n\n- 用户问：五\n- AI 答：五\n\n---\n" in text


def test_a_deleted_section_is_created_again_in_its_place() -> None:
    text = "# AI 对话记忆\n\n## 用户偏好\n- 甲\n\n---\n\n## 常用操作\n- 乙\n\n---\n\n**最后更新**：x\n"
    result = text_of(with_exchange(snapshot_of(text), "2026/1/8", "问", "答"))
    assert result == text.replace(
        "## 常用操作", "## 重要对话记录\n\n### 2026/1/8\n- 用户问：问\n- AI 答：答\n\n---\n\n## 常用操作"
    )


def test_a_renamed_section_stays_as_it_is() -> None:
    text = FULL.replace("## 重要对话记录", "## 聊天")
    result = text_of(with_exchange(snapshot_of(text), "2026/1/8", "问", "答"))
    assert "## 聊天\n\n### 2026/1/8\n- 用户问：上次说到哪里了" in result
    assert "## 重要对话记录\n\n### 2026/1/8\n- 用户问：问\n- AI 答：答\n\n---\n\n## 常用操作" in result


@pytest.mark.parametrize(
    "text", ["", "\n\n", "随便写的", "---\nkey: v\n---\n正文\n", "**最后更新**：x", "## 重要对话记录\n正文"]
)
def test_an_exchange_can_be_inserted_into_any_document_without_loss(text: str) -> None:
    snapshot = snapshot_of(text)
    result = set_footer(with_exchange(snapshot, "2026/1/8", "问", "答"), "2026/1/8 00:00:00")
    assert parse(result.document.data) == result.document
    assert {entry.text for entry in snapshot.entries} < {entry.text for entry in result.entries}
    assert [entry.section for entry in result.entries if entry.entry_id in {"q", "a"}] == [(RECORDS, "2026/1/8")] * 2
    assert result.document.label == "2026/1/8 00:00:00"


def test_a_new_separator_does_not_turn_lines_into_front_matter() -> None:
    """Found by hostile Markdown: the version could not be read any more."""
    snapshot = snapshot_of("---\ntitle: 记忆\n\n**最后更新**：x\n---\n\n## 用户偏好\n- 甲\n")
    result = with_exchange(snapshot, "2026/1/8", "问", "答")
    assert parse(result.document.data) == result.document
    assert {entry.text for entry in snapshot.entries} < {entry.text for entry in result.entries}


def test_an_entry_after_an_open_fence_is_what_its_bytes_parse_to() -> None:
    snapshot = snapshot_of("## 用户偏好\n- 甲\n```\n- 乙\n- 丙\n")
    met = insert_entry(snapshot, Entry("new", "```", ("用户偏好",)), snapshot.ids[2])
    assert parse(met.document.data) == met.document
    assert [(entry.entry_id, entry.text) for entry in met.entries] == [
        (snapshot.ids[0], "- 甲"),
        (snapshot.ids[1], "```\n- 乙\n```"),
        (snapshot.ids[3], "- 丙"),
    ]
    parted = edit_entry(met, snapshot.ids[1], "```")
    assert parted.ids[:2] == met.ids[:2]
    assert len(set(parted.ids)) == len(parted.ids) == len(parse(parted.document.data).entries)


def test_added_lines_have_the_line_endings_of_the_document() -> None:
    text = FULL.replace("\n", "\r\n")
    assert "\n" not in text_of(with_exchange(snapshot_of(text), "2026/1/9", "问", "答")).replace("\r\n", "")


def test_a_document_without_a_last_newline_still_has_none() -> None:
    assert text_of(with_exchange(snapshot_of(SHORT), "2026/1/8", "问", "答")).endswith("- （待补充）")
    assert text_of(set_footer(snapshot_of("- a"), "x")) == "- a\n\n---\n\n**最后更新**：x"


def test_a_message_never_becomes_structure() -> None:
    result = with_exchange(snapshot_of(FULL), "2026/1/8", "## 标题\n---\n**最后更新**：假", "```\n# x")
    assert len(result.entries) == 8
    assert result.document.label == "2026/1/8 15:49:12"


@pytest.mark.parametrize(
    "text", ["## 标题", "---", "**最后更新**：x", "- （待补充）", "一\n二", "", " \n", "a\0b", "\ud800", "```\nx"]
)
def test_any_text_becomes_one_entry(text: str) -> None:
    safe = as_single_entry(text)
    assert [entry.text for entry in parse(safe.encode()).entries] == [safe]
    assert as_single_entry(safe) == safe


def test_an_entry_goes_after_its_neighbour_first_or_last() -> None:
    snapshot = insert_entry(snapshot_of(FULL), Entry("h1", "- 一", WORK_HABITS), None)
    snapshot = insert_entry(snapshot, Entry("h3", "- 三", WORK_HABITS), "h1")
    snapshot = insert_entry(snapshot, Entry("h2", "- 二", WORK_HABITS), "h1")
    snapshot = insert_entry(snapshot, Entry("h0", "- 零", WORK_HABITS), None)
    snapshot = insert_entry(snapshot, Entry("h4", "- 四", WORK_HABITS), "gone")
    assert "### 工作习惯\n- 零\n- 一\n- 二\n- 三\n- 四\n\n### 沟通风格" in text_of(snapshot)


def test_an_exchange_inserted_line_by_line_stays_apart() -> None:
    section = (RECORDS, "2026/1/7")
    snapshot = insert_entry(snapshot_of(FULL), Entry("q", "- 用户问：问", section), "e5")
    snapshot = insert_entry(snapshot, Entry("a", "- AI 答：答", section), "q")
    assert "时间...\n\n- 用户问：问\n- AI 答：答\n\n---" in text_of(snapshot)


def test_a_missing_section_is_created_for_an_entry() -> None:
    text = text_of(insert_entry(snapshot_of("# AI 对话记忆\n"), Entry("t", "- 备份", DAILY_TASKS), None))
    assert text == "# AI 对话记忆\n\n## 常用操作\n\n### 日常任务\n- 备份\n"


def test_an_edit_changes_one_line_and_keeps_its_ending() -> None:
    snapshot = snapshot_of(FULL.replace("\n", "\r\n"))
    assert text_of(edit_entry(snapshot, "e1", "- AI 答：新")) == text_of(snapshot).replace(
        "- AI 答：我先看看之前的记录...", "- AI 答：新"
    )
    assert edit_entry(snapshot, "nobody", "x") is snapshot


def test_a_removed_exchange_leaves_no_double_blank_lines_and_no_empty_day() -> None:
    without_second = remove_entry(remove_entry(snapshot_of(FULL), "e2"), "e3")
    assert "记录...\n\n### 2026/1/7" in text_of(without_second)
    without_day = remove_entry(remove_entry(without_second, "e4"), "e5")
    assert "记录...\n\n---\n\n## 常用操作" in text_of(without_day)
    assert "2026/1/7" not in text_of(without_day)


def test_removing_the_last_line_leaves_no_blank_line_at_the_end() -> None:
    assert text_of(remove_entry(snapshot_of("- a\n\n- b\n"), "e1")) == "- a\n"


def test_an_empty_heading_in_another_format_stays() -> None:
    snapshot = snapshot_of("## 重要对话记录\n\n### 2026-01-07\n- a\n\n## 我的\n- b\n")
    text = text_of(remove_entry(remove_entry(snapshot, "e0"), "e1"))
    assert text == "## 重要对话记录\n\n### 2026-01-07\n\n## 我的\n"


def test_the_footer_is_replaced_in_place() -> None:
    assert text_of(set_footer(snapshot_of(FULL), "2026/1/9 01:02:03")) == FULL.replace(
        "2026/1/8 15", "2026/1/9 01"
    ).replace("01:49:12", "01:02:03")


def test_gb18030_and_a_byte_order_mark_survive_an_edit() -> None:
    for data in (FULL.encode("gb18030"), FULL.encode("utf-8-sig")):
        document = parse(data)
        snapshot = Snapshot(document, tuple(map(str, range(len(document.entries)))))
        result = parse(with_exchange(snapshot, "2026/1/8", "问", "答").document.data)
        assert (result.encoding, result.bom) == (document.encoding, document.bom)
        assert len(result.entries) == 8


def test_the_first_entry_of_a_day_removes_the_placeholder_above_the_days() -> None:
    day = Entry("line", "- 用户问：一", (RECORDS, "2026/1/8"))
    text = text_of(insert_entry(snapshot_of(empty_document("2026/1/8 10:00:00").decode()), day, None))
    assert f"## {RECORDS}\n\n### 2026/1/8\n- 用户问：一\n" in text


@pytest.mark.parametrize(
    "text",
    [
        empty_document("2026/1/8 15:49:12").decode(),
        SHORT,
        "我自己的笔记\r\n\r\n没有标题\r\n",
        "# AI 对话记忆\n\n```\n没有结束的代码\n",
        "",
    ],
)
def test_many_exchanges_at_once_give_the_same_bytes_and_ids_as_one_after_another(text: str) -> None:
    days = ["2026/1/8", "2026/1/8", "2026/1/9", "2026/1/7", "2026/1/9", "2025/12/31", "2026/1/8"]
    exchanges = [
        NewExchange((f"{number}.q", f"{number}.a"), day, f"问题 {number}\n## 不是标题", f"回答 {number}")
        for number, day in enumerate(days)
    ]
    start = step_by_step = snapshot_of(text)
    for exchange in exchanges:
        step_by_step = insert_exchanges(step_by_step, [exchange])
    at_once = insert_exchanges(start, exchanges)
    assert at_once.document.data == step_by_step.document.data
    assert at_once.ids == step_by_step.ids
    assert at_once.document == step_by_step.document
