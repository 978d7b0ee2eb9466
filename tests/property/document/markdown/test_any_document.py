"""Properties of any document."""

import string

from hypothesis import given, settings
from hypothesis import strategies as st

from sync.document.markdown.block_editor import BlockEditor
from sync.document.markdown.edits import (
    as_single_entry,
    edit_entry,
    insert_entry,
    place_entry,
    remove_entry,
    set_footer,
)
from sync.document.markdown.model import BlockKind, Entry, MemoryDocument, MergePlan, Snapshot, Version
from sync.document.markdown.one_line import answer_summary, one_line, question_summary
from sync.document.markdown.parse import is_plausible_chinese, parse, parse_text
from sync.document.markdown.reparse import parse_edited, reparse
from sync.document.merge.three_way import choose_base, plan_merge
from sync.document.merge.word_merge import merge_words
from sync.document.read.prompt import compose
from sync.errors import DocumentUntouchable
from sync.redaction.prompt_fence import neutralise
from tests.proof import examples
from tests.unit.document.examples import numbered, with_exchange

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
LINES = st.sampled_from(
    [
        "", " ", "\t", "# 标题", "## 用户偏好", "### 工作习惯", "## 重要对话记录", "### 2026/1/8",
        "### 2026-1-7", "###", "###### 深", "- （待补充）", "---", "***", "- 甲", "- 甲",
        "  - 乙", "正文  ", "| a | b |",
        "|---|---|", "> 引",
        "```", "```py", "~~~", "- ```", "````", "key: v", "**最后更新**：2026/1/8 15:49:12", "**最后更新**：",
        "<!--", "-->", "<!-- 注 -->",
        "\ufeff", "a\u2028b", "\x0c", "\u3000", "## 常用操作 ##", "- 用户问：问", "- AI 答：答",
    ]
)  # fmt: skip
ENDINGS = st.sampled_from(["\n", "\n", "\r\n", "\r"])


@st.composite
def documents(draw: st.DrawFn) -> bytes:
    lines = draw(st.lists(st.tuples(st.one_of(LINES, LINES, TEXT), ENDINGS), max_size=30))
    text = "".join(line + ending for line, ending in lines)
    if draw(st.booleans()):
        text = text.rstrip("\r\n")
    bom = draw(st.sampled_from(["", "", "\ufeff"]))
    return (bom + text).encode()


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    return named(parse(draw(documents())))


def named(document: MemoryDocument, prefix: str = "e") -> Snapshot:
    return Snapshot(document, tuple(f"{prefix}{at}" for at in range(len(document.entries))))


def texts(snapshot: Snapshot) -> list[str]:
    return sorted(entry.text for entry in snapshot.entries)


@given(documents())
def test_every_accepted_file_is_written_byte_for_byte(data: bytes) -> None:
    assert parse(data).data == data


@given(documents())
def test_only_blank_blocks_have_no_text(data: bytes) -> None:
    for block in parse(data).blocks:
        assert (block.kind is BlockKind.BLANK) == (not block.raw.strip())


@given(documents())
def test_gb18030_is_written_byte_for_byte(data: bytes) -> None:
    encoded = ("记忆是我的" * 20 + data.decode()).encode("gb18030")
    try:
        assert parse(encoded).data == encoded
    except DocumentUntouchable:  # characters of private use, say: it may be in another encoding
        assert not is_plausible_chinese(encoded.decode("gb18030"))


@given(snapshots(), TEXT, TEXT, st.sampled_from(["2026/1/8", "2026/1/7", "2025/12/31"]))
def test_an_exchange_is_added_and_nothing_else_changes(
    snapshot: Snapshot, question: str, answer: str, day: str
) -> None:
    result = with_exchange(snapshot, day, question, answer)
    before = [entry.text for entry in snapshot.entries]
    assert [entry.text for entry in result.entries if entry.entry_id not in {"q", "a"}] == before
    assert parse(result.document.data) == result.document
    assert result.ids.index("a") == result.ids.index("q") + 1


@given(snapshots(), TEXT, st.data())
def test_entries_can_be_inserted_and_removed_again(snapshot: Snapshot, text: str, data: st.DataObject) -> None:
    section = tuple(data.draw(st.lists(st.sampled_from(["用户偏好", "重要对话记录", "2026/1/8", "别的"]), max_size=3)))
    after = data.draw(st.sampled_from([None, "nobody", *snapshot.ids]))
    inserted = insert_entry(snapshot, Entry("new", text, section), after)
    assert texts(inserted) == sorted([*texts(snapshot), as_single_entry(text)])
    edited = edit_entry(inserted, "new", "- 别的")
    assert edited.ids == inserted.ids
    assert texts(remove_entry(edited, "new")) == texts(snapshot)


@given(snapshots())
def test_a_footer_is_set_once(snapshot: Snapshot) -> None:
    result = set_footer(snapshot, "2026/1/8 15:49:12")
    assert result.document.label == "2026/1/8 15:49:12"
    assert result.ids == snapshot.ids
    assert set_footer(result, "2026/1/8 15:49:12") == result


@given(snapshots(), st.data())
@settings(max_examples=examples(300))
def test_parsing_the_changed_part_equals_parsing_the_whole_document(snapshot: Snapshot, data: st.DataObject) -> None:
    for step in range(3):
        draft = BlockEditor(snapshot)
        for number in range(data.draw(st.integers(1, 3))):
            change(draft, f"{step}.{number}", data)
        snapshot = draft.to_snapshot()
        whole = reparse(
            parse_text(snapshot.document.text, bom=snapshot.document.bom),
            [cell.block for cell in draft.cells],
            [cell.entry_id for cell in draft.cells if cell.entry_id is not None],
        )
        assert snapshot == whole
        assert snapshot.cells == whole.cells
        derived = [(one.shape, one.entries, one.endings) for one in (snapshot.document, whole.document)]
        assert derived[0] == derived[1]


@given(documents(), st.data())
@settings(max_examples=examples(300))
def test_a_file_parsed_beside_a_known_document_is_what_it_parses_to(before: bytes, data: st.DataObject) -> None:
    text = before.decode()
    low = data.draw(st.integers(0, len(text)))
    high = data.draw(st.integers(low, min(len(text), low + data.draw(st.sampled_from([0, 1, 8, 40])))))
    typed = data.draw(
        st.one_of(st.sampled_from(["", "x", "- ", "\n", "\r"]), st.builds(str.__add__, LINES, ENDINGS), TEXT)
    )
    after = (text[:low] + typed + text[high:]).encode()
    found, whole = parse_edited(after, parse(before)), parse(after)
    assert found == whole
    for name in ("data", "text", "shape", "entries", "endings"):
        assert getattr(found, name) == getattr(whole, name)


def change(draft: BlockEditor, entry_id: str, data: st.DataObject) -> None:
    """One random change of an editor."""
    at = data.draw(st.integers(0, len(draft.cells)))
    line = data.draw(LINES)
    match data.draw(st.sampled_from(["insert", "remove", "edit", "exchange", "footer"])):
        case "remove" if at < len(draft.cells):
            draft.remove(at)
        case "edit" if at < len(draft.cells):
            draft.set_text(at, line)
        case "footer":
            footers = [at for at, cell in enumerate(draft.cells) if cell.kind is BlockKind.FOOTER]
            for found in footers:
                draft.set_text(found, f"**最后更新**：{entry_id}")
        case "exchange":
            place_entry(draft, Entry(entry_id, f"- 用户问：{line}", ("重要对话记录", "2026/1/8")), None)
        case _:
            draft.insert(at, [draft.new_cell(line, entry_id=entry_id)], blank_before=True)


@given(snapshots(), documents())
def test_with_the_current_version_as_base_the_file_is_unchanged(snapshot: Snapshot, data: bytes) -> None:
    current, disk = Version.of(0, snapshot), parse(data)
    made = plan_merge(current, current, disk, numbered())
    assert made.merged.document.data == data
    assert not made.must_write
    assert apply_operations(snapshot, made) == {entry.entry_id: entry for entry in made.merged.entries}


@given(snapshots(), documents(), st.data())
@settings(max_examples=examples(200))
def test_both_sides_merge_without_loss_and_a_second_merge_changes_nothing(
    snapshot: Snapshot, data: bytes, draw: st.DataObject
) -> None:
    base = Version.of(0, snapshot)
    ours = set_footer(with_exchange(snapshot, "2026/1/8", "新问", "新答"), "后")
    for entry_id in draw.draw(st.sets(st.sampled_from([*snapshot.ids, "nobody"]), max_size=4)):
        ours = draw.draw(st.sampled_from([remove_entry(ours, entry_id), edit_entry(ours, entry_id, "- 改过的")]))
    current, disk = Version.of(1, ours), parse(data)
    made = plan_merge(base, current, disk, numbered())
    assert apply_operations(ours, made) == {entry.entry_id: entry for entry in made.merged.entries}
    said = {entry.text for entry in made.merged.entries}
    assert {"- 用户问：新问", "- AI 答：新答"} <= said
    settled = Version.of(2, made.merged)
    again = parse(made.merged.document.data)
    twice = plan_merge(choose_base(again, [base, current, settled]), settled, again, numbered("m"))
    assert twice.merged.document.data == made.merged.document.data


def apply_operations(known: Snapshot, made: MergePlan) -> dict[str, Entry]:
    """The current entries with the operations applied."""
    entries = {entry.entry_id: entry for entry in known.entries}
    for operation in made.operations:
        entries.pop(operation.entry_id, None)
        if hasattr(operation, "after") or hasattr(operation, "base_text"):
            entries[operation.entry_id] = Entry(operation.entry_id, operation.text, operation.section)
    return entries


WORDS = st.lists(st.sampled_from([*"我喜欢红茶绿酒", "tea", "milk", " "]), max_size=12).map("".join)


@given(WORDS, WORDS, WORDS)
def test_word_merge_is_symmetric_and_keeps_the_words_of_both_sides(base: str, ours: str, theirs: str) -> None:
    merged = merge_words(base, ours, theirs)
    assert merged == merge_words(base, theirs, ours)
    if merged is not None:
        for char in set(ours) - set(base) | set(theirs) - set(base):
            assert char in merged


@given(st.text())
def test_a_summary_is_one_short_line_and_its_own_summary(text: str) -> None:
    for summarize, limit in ((question_summary, 50), (answer_summary, 100)):
        summary = summarize(text)
        assert summarize(summary) == summary
        assert len(summary) <= limit + 4  # the dots and an escape
        assert len(summary.splitlines()) <= 1
        assert not summary.startswith(("#", ">", "---", "```", "~~~", "- "))
    assert one_line(one_line(text)) == one_line(text)


@given(documents(), TEXT, st.integers(0, 300))
def test_composed_text_keeps_its_limit(data: bytes, digest: str, bound: int) -> None:
    content, _ = compose(parse(data), digest, bound)
    assert len(content) <= bound


@given(st.text(), st.text(string.ascii_lowercase, min_size=4, max_size=12))
def test_the_fence_never_occurs_in_the_memory(text: str, fence: str) -> None:
    assert fence not in neutralise(text + fence + text, fence)
