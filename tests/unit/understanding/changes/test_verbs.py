"""Verbs of change: what a sentence says about an older one."""

import pytest

from sync.understanding.changes.verbs import find_change, unread_change
from sync.understanding.model import Change, Level


@pytest.mark.parametrize(
    ("sentence", "change", "former"),
    [
        ("会员没续，印象笔记已经卸了", Change.ENDS, "印象笔记"),
        ("我现在花生能吃了，脱敏成功了", Change.ENDS, None),
        ("决定用 PostgreSQL 替换 MongoDB。", Change.REPLACES, "MongoDB"),
        ("上次写反了，是八月十号", Change.CORRECTS, None),
        ("最近也装了个 flomo", Change.ADDS, None),
        ("氨氯地平不吃了，改成缬沙坦，一天一颗", Change.ENDS, "氨氯地平"),
        ("现在周报每周一交", Change.NOW, None),
        ("I've let the Italian go", Change.ENDS, "Italian"),
        ("GP swapped the ramipril for losartan", Change.REPLACES, "ramipril"),
        ("I mistyped, it's 40781 and not 40718", Change.CORRECTS, "40718"),
        ("I've started to use Scrivener as well", Change.ADDS, None),
    ],
)
def test_a_verb_of_change_says_what_it_does_and_the_former_value(
    sentence: str, change: Change, former: str | None
) -> None:
    assert find_change(sentence) == (change, former)


@pytest.mark.parametrize(
    "sentence",
    [
        "这一题例外，写详细点",
        "下周四老师请假停一次课",
        "The shop's closed for a week",
        "Today I made an exception",
        "我对花生过敏",
        "I use zsh",
    ],
)
def test_what_is_for_once_or_names_no_change_changes_nothing(sentence: str) -> None:
    assert find_change(sentence)[0] in {None, Change.ADDS}
    assert unread_change(sentence, "user") is None


def test_a_change_that_cannot_be_read_is_the_whole_sentence_and_counts_only_beside_a_fact() -> None:
    unread = unread_change("沈昊把东西全搬走了", "沈昊")
    assert unread is not None
    assert (unread.text, unread.about, unread.level, unread.is_tentative) == (
        "沈昊把东西全搬走了",
        "沈昊",
        Level.LIKELY,
        True,
    )


def test_a_verb_of_moving_or_of_work_says_what_changed_if_it_is_the_users() -> None:
    sentences = (
        "我跳槽去腾讯了",
        "我搬到宁波了",
        "I've moved to Porto",
        "I quit my job",
        "楼上那户搬走了",
        "She moved to Galway",
    )
    slots = [one.slot for sentence in sentences if (one := unread_change(sentence, "user")) is not None]
    assert slots == ["employer", "home", "home", "employer", None, None]
