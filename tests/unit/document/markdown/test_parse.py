"""Bytes of a document become sections and entries."""

import pytest

from sync.document.markdown.model import BlockKind
from sync.document.markdown.parse import MAX_BYTES, parse
from sync.errors import DocumentUntouchable
from tests.unit.document.examples import FULL, SHORT


def kinds(text: str) -> list[BlockKind]:
    return [block.kind for block in parse(text.encode()).blocks]


def test_the_full_and_the_short_format_are_read() -> None:
    full, short = parse(FULL.encode()), parse(SHORT.encode())
    assert full.label == "2026/1/8 15:49:12"
    assert [(entry.text[:6], entry.section[-1]) for entry in full.entries][:3] == [
        ("- 用户问：", "2026/1/8"),
        ("- AI 答", "2026/1/8"),
        ("- 用户问：", "2026/1/8"),
    ]
    assert short.entries == ()
    assert short.label is None
    assert full.data.decode() == FULL


def test_the_title_is_no_section_and_headings_nest() -> None:
    text = "# 标题\n一\n## 二\n### 三\n- 甲\n#### 四\n- 乙\n## 五\n- 丙\n# 另一个\n- 丁\n"
    sections = [entry.section for entry in parse(text.encode()).entries]
    assert sections == [(), ("二", "三"), ("二", "三", "四"), ("五",), ("另一个",)]


def test_a_fenced_block_is_one_entry_and_opens_no_section() -> None:
    document = parse("## 命令\n```sh\n# 注释\n---\n## 不是标题\n```\n- 后\n".encode())
    assert [entry.text for entry in document.entries] == ["```sh\n# 注释\n---\n## 不是标题\n```", "- 后"]
    assert document.entries[1].section == ("命令",)


def test_an_unclosed_fence_swallows_nothing() -> None:
    document = parse("```sh\n## 标题\n- 甲\n\n**最后更新**：2026/1/8 15:49:12\n".encode())
    assert [entry.text for entry in document.entries] == ["```sh", "- 甲"]
    assert document.label == "2026/1/8 15:49:12"


def test_a_fence_in_a_list_is_one_entry() -> None:
    assert [entry.text for entry in parse(b"- ```py\n  # x\n  ```\n- y\n").entries] == ["- ```py\n  # x\n  ```", "- y"]


@pytest.mark.parametrize("line", ["- （待补充）", "-（待补充）", "  - ( 待补充 )", "* （待补充)  "])
def test_placeholders_are_recognised_however_they_are_typed(line: str) -> None:
    assert kinds(line) == [BlockKind.PLACEHOLDER]


@pytest.mark.parametrize("line", ["- 用户问：（待补充）", "#标签", "a\u2028b", "|---|---|", "-", "**粗**", "1. 一"])
def test_other_lines_are_one_entry_each(line: str) -> None:
    assert kinds(line) == [BlockKind.ENTRY]


def test_separators_and_front_matter() -> None:
    assert kinds("---\ntitle: x\n---\n***\n- - -\n") == [
        BlockKind.FRONT_MATTER,
        BlockKind.SEPARATOR,
        BlockKind.SEPARATOR,
    ]
    assert kinds("---\n## 节\n- x\n---\n") == [
        BlockKind.SEPARATOR,
        BlockKind.HEADING,
        BlockKind.ENTRY,
        BlockKind.SEPARATOR,
    ]


@pytest.mark.parametrize("line", ["**最后更新**：2026/1/8 15:49:12", "**Last updated**: 2026/11/27 08:00:00 · 532  "])
def test_the_footer_is_the_last_line_in_exactly_its_form(line: str) -> None:
    assert kinds(f"- 甲\n{line}\n\n") == [BlockKind.ENTRY, BlockKind.FOOTER, BlockKind.BLANK]
    assert kinds(f"{line}\n\n- 甲\n") == [BlockKind.ENTRY, BlockKind.BLANK, BlockKind.ENTRY]
    assert kinds(f"{line}\n{line}\n") == [BlockKind.ENTRY, BlockKind.FOOTER]


@pytest.mark.parametrize(
    "line",
    [
        "**最后更新**: 2025-01-11 由夜班填写，勿改",
        "**最后更新**：2026/1/8 15:49:12 夜班",
        "**最后更新**：2026/01/08 15:49:12",
        "**最后更新**：",
        "**Last updated**: March 2025",
        "- **最后更新**：2026/1/8 15:49:12",
    ],
)
def test_a_line_that_only_begins_like_the_footer_is_an_entry(line: str) -> None:
    document = parse(f"- 甲\n\n{line}\n".encode())
    assert [entry.text for entry in document.entries] == ["- 甲", line]
    assert document.label is None


FOREIGN = {
    "big5": "# 我的筆記\n- 每天早上喝一杯茶\n- 會議在星期一\n",
    "shift_jis": "# 私のメモ\n- 毎朝お茶を飲みます\n- 会議は月曜日です\n",
    "euc_jp": "# 私のメモ\n- 毎朝お茶を飲みます\n- 会議は月曜日です\n",
    "euc_kr": "# 나의 메모\n- 매일 아침 차를 한 잔 마신다\n- 회의는 월요일에 있다\n",
    "cp1252": "# Notes\n- cafés fermés le dimanche\n- réunion à dix heures\n",
    "cp1251": "# Заметки\n- каждое утро пью чай\n",
    "latin-1": "Größe äöü\n- Straße prüfen\n",
    "utf-16": "# 我的笔记\n- 喝茶\n",
    "utf-16-le": "# 我的笔记\n- 喝茶\n",
    "utf-16-be": "# notes\n- tea\n",
    "utf-32": "# 我的笔记\n",
}


@pytest.mark.parametrize("encoding", FOREIGN)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_file_in_another_encoding_is_not_read_as_gb18030(encoding: str, newline: str) -> None:
    with pytest.raises(DocumentUntouchable) as refused:
        parse(FOREIGN[encoding].replace("\n", newline).encode(encoding))
    assert "UTF-8" in refused.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "喝茶",
        "# 我的记忆\n- 用 Python 写脚本 和 工具\n",
        "- 菜刀🙂每月磨一次，用 1000 目\n",
        "- 開會時間改到星期三下午，請記得帶電腦\n",
        "- 日语练习：ありがとう，意思是谢谢；さようなら，意思是再见，明天继续背这两个词\n",
        "- №1 ①②③ → ≥ α β café\n- 王小明的电话",
    ],
)
def test_chinese_text_in_gb18030_is_read(text: str) -> None:
    document = parse(text.encode("gb18030"))
    assert (document.text, document.encoding) == (text, "gb18030")


def test_nothing_in_a_closed_comment_is_structure() -> None:
    text = "## 节\n<!--\n## 用户偏好\n---\n\n- （待补充）\n```\n-->\n- 后\n```\n"
    assert [(entry.section, entry.text) for entry in parse(text.encode()).entries] == [
        (("节",), line) for line in ("<!--", "## 用户偏好", "---", "- （待补充）", "```", "-->", "- 后", "```")
    ]


@pytest.mark.parametrize("opening", ["<!-- 一 -->", "<!--", "```\n<!--\n```", "文 <!--", "`<!--`"])
def test_what_opens_no_comment_hides_no_heading(opening: str) -> None:
    assert parse(f"{opening}\n## 节\n- 甲\n".encode()).entries[-1].section == ("节",)


def test_line_endings_and_trailing_spaces_are_not_part_of_the_text() -> None:
    one, other = parse(b"- a  \r\n```\r\nx \r\n```\r\n"), parse(b"- a\n```\nx\n```")
    assert [entry.text for entry in one.entries] == [entry.text for entry in other.entries]
    assert one.newline == "\r\n"


def test_gb18030_is_read_and_kept() -> None:
    data = FULL.encode("gb18030")
    document = parse(data)
    assert document.encoding == "gb18030"
    assert document.label == "2026/1/8 15:49:12"
    assert document.data == data


@pytest.mark.parametrize(
    "data",
    [
        b"- a\0b",
        b"x" * (MAX_BYTES + 1),
        "记忆".encode("utf-16"),
        b"\xff\xfe\xff",
        FULL.encode()[:60] + FULL.encode()[61:],
    ],
    ids=["NUL", "too large", "UTF-16", "noise", "one byte of UTF-8 missing"],
)
def test_binary_and_unknown_data_is_refused(data: bytes) -> None:
    with pytest.raises(DocumentUntouchable):
        parse(data)


def test_damaged_utf8_is_refused_even_if_it_is_valid_gb18030() -> None:
    damaged = ("记忆" * 10).encode()[:-1] + b"a"
    assert damaged.decode("gb18030")
    with pytest.raises(DocumentUntouchable):
        parse(damaged)
