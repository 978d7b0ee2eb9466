"""The index finds the lines whose beginning an answer contains, and forgets removed ones."""

from sync.document.merge.line_index import HashedMultimap, LineIndex
from sync.document.merge.text_equality import line_letters

LINE = "- 我喜欢简洁的代码，不要写太多注释\n"
SAME_START = "- 我喜欢简洁的代码也喜欢测试\n"
ANSWER = "你说过：我喜欢简洁的代码，不要写太多注释"


def test_lines_with_the_same_beginning_are_all_found() -> None:
    index = LineIndex()
    for line in (LINE, SAME_START, "- 一行完全不同的文字在这里\n", "- 短\n"):
        index.add(line)
    assert sorted(index.candidates_in(ANSWER)) == sorted(line_letters(line.rstrip()) for line in (LINE, SAME_START))


def test_a_removed_line_is_not_found() -> None:
    index = LineIndex()
    index.add(LINE)
    index.add(LINE)
    index.remove(LINE)
    assert list(index.candidates_in(ANSWER)) == [line_letters(LINE.rstrip())]
    index.remove(LINE)
    index.remove(LINE)
    assert list(index.candidates_in(ANSWER)) == []


def test_removing_another_value_of_a_key_changes_nothing() -> None:
    values = HashedMultimap()
    values.add("key", "one")
    values.remove("key", "two")
    assert values.get("key") == ["one"]
    assert values.get("other") == []
