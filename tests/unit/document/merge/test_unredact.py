"""A placeholder that comes back from the cloud never replaces the original value."""

import pytest

from sync.document.merge.unredact import unredact
from tests.support import REDACTOR

RAW = "# 记忆\n- 电话 13812345678，喜欢茶\n- 邮箱 lin.example@example.com\n- 平常的一行\n- 老板 13900000001\n"
MASKED = REDACTOR.clean(RAW)


def through(edited: str, raw: str = RAW) -> str:
    return unredact(edited, raw, REDACTOR.clean(raw))


def test_unedited_text_is_restored() -> None:
    assert MASKED != RAW
    assert through(MASKED) == RAW


def test_lines_added_removed_and_moved_leave_the_values_where_they_belong() -> None:
    lines = MASKED.splitlines(keepends=True)
    edited = "".join([lines[0], lines[4], "- 新的\n", lines[1], lines[3]])
    typed = RAW.splitlines(keepends=True)
    assert through(edited) == "".join([typed[0], typed[4], "- 新的\n", typed[1], typed[3]])


def test_a_line_edited_around_a_placeholder_gets_its_value_back() -> None:
    assert "- 电话 13812345678，喜欢咖啡\n" in through(MASKED.replace("喜欢茶", "喜欢咖啡"))


def test_both_lines_stay_if_a_value_cannot_be_assigned() -> None:
    edited = through(MASKED.replace("- 电话 [手机号]，喜欢茶", "- 电话 [手机号] 和 [手机号]，喜欢茶"))
    assert "- 电话 13812345678，喜欢茶\n- 电话 [手机号] 和 [手机号]，喜欢茶\n" in edited


def test_a_newly_typed_value_stays() -> None:
    assert through(RAW) == RAW


def test_a_key_of_several_lines_is_restored_whole() -> None:
    key = (
        "-----BEGIN RSA PRIVATE KEY-----\n" + "MIIEow" * 10 + "\n" + "AAbb12" * 10 + "\n-----END RSA PRIVATE KEY-----\n"
    )
    raw = f"# 记忆\n- 前\n{key}- 后\n"
    masked = REDACTOR.clean(raw)
    assert len(masked.splitlines()) < len(raw.splitlines())
    assert through(masked + "- 新的\n", raw) == raw + "- 新的\n"


@pytest.mark.parametrize("text", ["", "# 别的\n", "- 通讯录里还有三个 [自定义]\n", "没有换行"])
def test_other_text_is_unchanged(text: str) -> None:
    assert through(text) == text


@pytest.mark.parametrize("ending", ["\r\n", "\n"])
def test_the_line_endings_are_the_editors(ending: str) -> None:
    assert through(MASKED.replace("\n", ending)) == RAW.replace("\n", ending)
