"""The result of a merge, case by case."""

from collections.abc import Callable

from sync.document.markdown.edits import edit_entry, insert_entry, remove_entry, set_footer
from sync.document.markdown.model import (
    Entry,
    EntryAdded,
    EntryEdited,
    EntryRemoved,
    MemoryDocument,
    MergePlan,
    Snapshot,
    Version,
)
from sync.document.markdown.parse import parse
from sync.document.markdown.template import RECORDS, WORK_HABITS
from sync.document.markdown.version_labels import next_label
from sync.document.merge.three_way import choose_base, lacks_end, looks_like_data_loss, plan_merge
from tests.unit.document.examples import FULL, NOW, numbered, snapshot_of, text_of, with_exchange

DAY = (RECORDS, "2026/1/8")
LISTED = FULL.replace("### 工作习惯\n- （待补充）", "### 工作习惯\n- 早上先看日志\n- 用 Mac 写代码\n- 下班前提交")


def ring_of(text: str, *changes: Callable[[Snapshot], Snapshot]) -> list[Version]:
    """The version of a text and one more for each change, each with its own label."""
    ring = [Version.of(0, snapshot_of(text))]
    for change in changes:
        label = next_label(ring[-1].label, NOW)
        ring.append(Version.of(len(ring), set_footer(change(ring[-1].snapshot), label)))
    return ring


def exchange(number: int) -> Callable[[Snapshot], Snapshot]:
    ids = (f"q{number}", f"a{number}")
    return lambda snapshot: with_exchange(snapshot, "2026/1/8", f"第{number}个问题", f"第{number}个回答", ids)


def saved(ring: list[Version], text: str) -> MergePlan:
    disk = parse(text.encode())
    return plan_merge(choose_base(disk, ring), ring[-1], disk, numbered())


def disk_of(text: str) -> MemoryDocument:
    return parse(text.encode())


def test_the_first_read_of_a_file_adds_every_line() -> None:
    made = plan_merge(None, None, disk_of(LISTED), numbered())
    assert made.operations[:2] == (
        EntryAdded("n1", None, WORK_HABITS, "- 早上先看日志"),
        EntryAdded("n2", "n1", WORK_HABITS, "- 用 Mac 写代码"),
    )
    assert len(made.operations) == 9
    assert made.merged.document == disk_of(LISTED)
    assert not made.must_write


def test_an_unchanged_file_has_no_operations() -> None:
    ring = ring_of(FULL, exchange(1))
    made = saved(ring, text_of(ring[-1].snapshot))
    assert made.operations == ()
    assert made.merged == ring[-1].snapshot


def test_an_editor_that_converts_line_endings_edits_nothing() -> None:
    ring = ring_of(LISTED)
    made = saved(ring, LISTED.replace("\n", " \r\n"))
    assert made.operations == ()
    assert text_of(made.merged) == LISTED.replace("\n", " \r\n")


def test_added_edited_and_removed_lines_are_distinguished() -> None:
    text = (
        LISTED.replace("- 用 Mac 写代码\n", "")
        .replace("早上先看日志", "每天早上先看日志")
        .replace("- 下班前提交", "- 下班前提交\n- 周五不开会")
    )
    assert saved(ring_of(LISTED), text).operations == (
        EntryEdited("e0", "- 早上先看日志", "- 每天早上先看日志", WORK_HABITS),
        EntryAdded("n1", "e2", WORK_HABITS, "- 周五不开会"),
        EntryRemoved("e1", "- 用 Mac 写代码", WORK_HABITS),
    )


def test_a_line_moved_within_its_section_keeps_its_id_without_an_operation() -> None:
    text = LISTED.replace("- 早上先看日志\n", "").replace("- 下班前提交", "- 下班前提交\n- 早上先看日志")
    made = saved(ring_of(LISTED), text)
    assert made.operations == ()
    assert made.merged.ids[:3] == ("e1", "e2", "e0")


def test_a_line_moved_to_another_section_is_an_edit_of_its_section() -> None:
    text = LISTED.replace("- 早上先看日志\n", "").replace("### 日常任务\n- （待补充）", "### 日常任务\n- 早上先看日志")
    assert saved(ring_of(LISTED), text).operations == (
        EntryEdited("e0", "- 早上先看日志", "- 早上先看日志", ("常用操作", "日常任务")),
    )


def test_a_renamed_heading_takes_its_lines_along() -> None:
    made = saved(ring_of(LISTED), LISTED.replace("### 工作习惯", "### 习惯"))
    assert {type(operation) for operation in made.operations} == {EntryEdited}
    assert [operation.entry_id for operation in made.operations] == ["e0", "e1", "e2"]


def test_a_line_similar_to_a_removed_one_is_new_under_another_heading() -> None:
    for beside in ("- 用 Mac 写代码\n- 下班前提交\n", ""):
        before = LISTED.replace("- 用 Mac 写代码\n- 下班前提交\n", beside)
        after = before.replace("- 早上先看日志\n", "").replace("沟通风格\n- （待补充）", "沟通风格\n- 早上先看看日志")
        made = saved(ring_of(before), after)
        assert {type(operation) for operation in made.operations} == {EntryAdded, EntryRemoved}


def test_a_stale_buffer_loses_none_of_five_updates_and_keeps_the_typed_line() -> None:
    ring = ring_of(FULL, *(exchange(number) for number in range(1, 6)))
    stale = FULL.replace("- （待补充）", "- 手写的一行", 1)
    made = saved(ring, stale)
    assert made.operations == (EntryAdded("n1", None, WORK_HABITS, "- 手写的一行"),)
    assert made.conflicting_ids == ()
    text = text_of(made.merged)
    assert "- 手写的一行" in text
    for number in range(1, 6):
        assert f"\n\n- 用户问：第{number}个问题\n- AI 答：第{number}个回答\n\n" in text
    assert made.must_write
    assert text_of(made.observed) == stale


def test_a_label_of_a_lost_version_removes_nothing() -> None:
    ring = ring_of(FULL, *(exchange(number) for number in range(1, 6)))
    stale = text_of(ring[2].snapshot).replace("### 工作习惯\n", "### 工作习惯\n- 手写的一行\n")
    left = [ring[0], ring[1], ring[4], ring[5]]  # the version that the editor had loaded is lost
    made = saved(left, stale)
    assert [type(operation) for operation in made.operations] == [EntryAdded]
    assert [text_of(made.merged).count(f"用户问：第{number}个问题\n") for number in range(1, 6)] == [1] * 5


def test_a_stale_buffer_without_footer_is_recognised_by_missing_lines() -> None:
    ring = ring_of(FULL, exchange(1), exchange(2))
    stale = text_of(ring[1].snapshot).split("\n**最后更新**")[0] + "\n- 手写\n"
    disk = disk_of(stale)
    assert choose_base(disk, ring) == ring[1]
    made = plan_merge(ring[1], ring[2], disk, numbered())
    assert [type(operation) for operation in made.operations] == [EntryAdded]
    assert "第2个问题" in text_of(made.merged)


def test_without_a_footer_and_without_new_lines_the_file_descends_from_the_current_version() -> None:
    ring = ring_of(LISTED, lambda snapshot: edit_entry(snapshot, "e0", "- 晚上看日志"))
    made = saved(ring, LISTED.split("**最后更新**")[0])
    assert made.operations == (EntryEdited("e0", "- 晚上看日志", "- 早上先看日志", WORK_HABITS),)


def test_a_file_without_footer_that_equals_an_older_version_descends_from_it() -> None:
    bare = LISTED.split("**最后更新**")[0]
    ring = [Version.of(0, snapshot_of(bare))]
    ring.append(Version.of(1, edit_entry(ring[0].snapshot, "e0", "- 晚上看日志")))
    made = saved(ring, bare)
    assert made.operations == ()
    assert "- 晚上看日志" in text_of(made.merged)


def test_the_newest_lines_deleted_under_a_fresh_footer_stay_deleted() -> None:
    ring = ring_of(FULL, exchange(1), exchange(2))
    text = text_of(remove_entry(remove_entry(ring[-1].snapshot, "q2"), "a2"))
    made = saved(ring, text)
    assert [operation.entry_id for operation in made.operations] == ["q2", "a2"]
    assert text_of(made.merged) == text


def test_an_editor_that_saves_twice_can_delete_a_line_that_it_added() -> None:
    ring = ring_of(FULL)
    typed = saved(ring, FULL.replace("- （待补充）", "- 写错了", 1))
    ring.append(Version.of(1, typed.observed))
    ring += [Version.of(2, set_footer(exchange(1)(typed.merged), "2026/1/8 16:00:00"))]
    made = saved(ring, FULL)
    assert made.operations == (EntryRemoved("n1", "- 写错了", WORK_HABITS),)
    assert "写错了" not in text_of(made.merged)
    assert "第1个问题" in text_of(made.merged)


def test_a_removed_line_does_not_come_back_from_a_stale_buffer() -> None:
    ring = ring_of(LISTED, lambda snapshot: remove_entry(snapshot, "e1"))
    made = saved(ring, LISTED.replace("先看日志", "先看日志和邮件"))
    assert "用 Mac 写代码" not in text_of(made.merged)
    assert made.operations == (EntryEdited("e0", "- 早上先看日志", "- 早上先看日志和邮件", WORK_HABITS),)


def test_an_edit_wins_over_a_removal_on_either_side() -> None:
    removed = ring_of(LISTED, lambda snapshot: remove_entry(snapshot, "e1"))
    made = saved(removed, LISTED.replace("用 Mac 写代码", "用 Linux 写代码"))
    assert made.operations == (EntryEdited("e1", "- 用 Mac 写代码", "- 用 Linux 写代码", WORK_HABITS),)
    edited = ring_of(LISTED, lambda snapshot: edit_entry(snapshot, "e1", "- 用 Linux 写代码"))
    made = saved(edited, LISTED.replace("- 用 Mac 写代码\n", ""))
    assert made.operations == ()
    assert "- 早上先看日志\n- 用 Linux 写代码\n- 下班前提交" in text_of(made.merged)


def test_edits_of_different_words_are_merged() -> None:
    ring = ring_of(LISTED, lambda snapshot: edit_entry(snapshot, "e1", "- 用 Mac 写代码和文档"))
    made = saved(ring, LISTED.replace("用 Mac", "用 Linux"))
    assert made.operations == (EntryEdited("e1", "- 用 Mac 写代码", "- 用 Linux 写代码和文档", WORK_HABITS),)
    assert made.conflicting_ids == ()


def test_edits_of_the_same_words_keep_both_lines_and_flag_them() -> None:
    ring = ring_of(LISTED, lambda snapshot: edit_entry(snapshot, "e1", "- 用 Linux 写代码"))
    made = saved(ring, LISTED.replace("用 Mac", "用 Windows"))
    assert made.conflicting_ids == ("e1", "n1")
    assert made.operations == (EntryAdded("n1", "e1", WORK_HABITS, "- 用 Windows 写代码"),)
    assert "- 用 Linux 写代码\n- 用 Windows 写代码\n" in text_of(made.merged)


def test_the_same_line_added_on_both_sides_is_one_entry() -> None:
    ring = ring_of(LISTED, lambda snapshot: insert_entry(snapshot, Entry("ours", "- 周五不开会", WORK_HABITS), "e2"))
    made = saved(ring, LISTED.replace("- 下班前提交", "- 下班前提交\n- 周五不开会"))
    assert made.operations == ()
    assert made.merged.ids[3] == "ours"
    assert text_of(made.merged).count("周五不开会") == 1


def test_a_heading_renamed_by_the_program_is_renamed_in_a_stale_buffer() -> None:
    ring = ring_of(LISTED, lambda _: snapshot_of(LISTED.replace("### 工作习惯", "### 习惯")))
    made = saved(ring, LISTED.replace("日常任务\n- （待补充）", "日常任务\n- 新"))
    text = text_of(made.merged)
    assert "### 工作习惯" not in text
    assert "### 习惯\n- 早上先看日志\n- 用 Mac 写代码\n- 下班前提交\n" in text
    assert [type(operation) for operation in made.operations] == [EntryAdded]


def test_an_empty_heading_typed_by_hand_survives_another_editors_stale_buffer() -> None:
    ring = ring_of(LISTED, lambda _: snapshot_of(LISTED.replace("## 常用操作\n", "## 常用操作\n\n### 以后再写\n")))
    assert "### 以后再写\n" in text_of(saved(ring, LISTED.replace("下班前", "睡前")).merged)


def test_lines_typed_under_an_exchange_stay_with_it() -> None:
    ring = ring_of(FULL, exchange(1))
    made = saved(ring, FULL.replace("不会变...", "不会变...\n- 备注：记在本子上"))
    assert "不会变...\n- 备注：记在本子上\n\n- 用户问：第1个问题\n" in text_of(made.merged)


def test_the_operations_lead_from_the_current_to_the_merged_document() -> None:
    ring = ring_of(LISTED, exchange(1), lambda snapshot: edit_entry(snapshot, "e0", "- 早上先看一眼日志"))
    made = saved(ring, LISTED.replace("- 用 Mac 写代码\n", "").replace("下班前提交", "下班前提交\n- 周五不开会"))
    known = {entry.entry_id: entry for entry in ring[-1].snapshot.entries}
    for operation in made.operations:
        if isinstance(operation, EntryRemoved):
            del known[operation.entry_id]
        else:
            known[operation.entry_id] = Entry(operation.entry_id, operation.text, operation.section)
    assert known == {entry.entry_id: entry for entry in made.merged.entries}


def test_an_empty_much_shorter_or_truncated_file_looks_like_data_loss() -> None:
    current = ring_of(LISTED, exchange(1))[-1]
    text = text_of(current.snapshot)
    few = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("- "))
    assert looks_like_data_loss(current, disk_of(""))
    assert looks_like_data_loss(current, disk_of(" \r\n\n"))
    assert looks_like_data_loss(current, disk_of(few))
    assert looks_like_data_loss(current, disk_of(text[: text.index("- AI 答：可以缩短")]))
    last = text.rindex("\n", 0, text.index("\n\n---", text.index("- AI 答")))
    assert looks_like_data_loss(current, disk_of(text[: last + 12])), "cut within its last line, and no line is missing"
    assert not looks_like_data_loss(current, disk_of(text[: text.index("**最后更新**")])), "only the footer is gone"


def test_a_truncated_file_without_label_is_recognised_by_any_recent_version() -> None:
    ring = ring_of(FULL, *(exchange(number) for number in range(1, 5)))
    cut = disk_of(text_of(ring[2].snapshot)[: -len("- （待补充）\n\n---\n\n**最后更新**：2026/1/8 15:49:12\n") - 40])
    base = choose_base(cut, ring)
    assert looks_like_data_loss(ring[-1], cut, base, recently_written=ring)


def test_a_file_without_its_end_is_recognised_whatever_changed_above_it() -> None:
    seen = ring_of(LISTED, *(exchange(number) for number in range(1, 5)))[-1].snapshot.document
    whole = seen.text.replace("- 用 Mac 写代码\n", "- 用 Mac 写代码\n- 新打的字\n")
    last = whole.rindex("- ", 0, whole.index("**最后更新**"))
    for cut in range(whole.index("- 新打的字"), whole.index("\n", last)):
        assert lacks_end(seen, disk_of(whole[:cut])), whole[:cut][-20:]
    for cut in range(whole.index("\n", last), whole.index("**最后更新**") + 6):
        assert lacks_end(seen, disk_of(whole[:cut])) == (not whole[:cut].endswith("\n")), "nothing is lost of it"
    end = whole[: whole.index("\n", last) + 1]
    assert not lacks_end(seen, disk_of(whole.replace(end[last - 1 :], "\n"))), "a person deleted it and kept the footer"
    assert not lacks_end(seen, disk_of(end)), "a person deleted the footer"


def test_ordinary_edits_and_a_stale_buffer_do_not_look_like_data_loss() -> None:
    ring = ring_of(FULL, *(exchange(number) for number in range(1, 9)))
    current = ring[-1]
    three_gone = remove_entry(remove_entry(remove_entry(current.snapshot, "e0"), "e1"), "e2")
    assert not looks_like_data_loss(current, three_gone.document)
    assert not looks_like_data_loss(current, current.snapshot.document)
    assert looks_like_data_loss(current, disk_of(FULL))
    assert not looks_like_data_loss(current, disk_of(FULL), base=choose_base(disk_of(FULL), ring))
    assert not looks_like_data_loss(Version.of(0, snapshot_of("# 空\n")), disk_of(""))


def test_there_is_no_base_before_the_first_version() -> None:
    assert choose_base(disk_of(FULL), []) is None
