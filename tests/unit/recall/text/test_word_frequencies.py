"""The general lists of words, and how they cut Chinese into words."""

import pytest

from sync.recall.text.stemming import stem
from sync.recall.text.word_frequencies import chinese_segments, chinese_words, english_stems, pinyin_readings
from tests.unit.recall.text.generate_word_frequencies import FOLDER


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ("给猫买什么罐头好", ["给", "猫", "买", "什么", "罐头", "好"]),
        ("去看熊猫", ["去", "看", "熊猫"]),
        ("数据库的连接", ["数据库", "的", "连接"]),
        ("老灶火锅", ["老", "灶", "火锅"]),
        ("", []),
    ],
)
def test_a_run_is_cut_into_its_most_probable_words(run: str, words: list[str]) -> None:
    assert list(chinese_segments(run)) == words


def test_common_words_are_more_frequent_than_rare_ones_in_both_languages() -> None:
    assert chinese_words()["工作"] > chinese_words()["医生"] > chinese_words()["过敏"]
    assert english_stems()[stem("make")] > english_stems()[stem("coffee")] > english_stems()[stem("allergies")]
    assert "火" in pinyin_readings()["huo"]


def test_the_lists_are_small_and_name_their_licence() -> None:
    lists = [*FOLDER.glob("words-*.txt.gz"), FOLDER / "pinyin.txt.gz"]
    assert len(lists) == 3
    assert sum(path.stat().st_size for path in lists) <= 400_000
    assert "CC BY-SA 4.0" in (FOLDER / "words-LICENCE.md").read_text("utf-8")
