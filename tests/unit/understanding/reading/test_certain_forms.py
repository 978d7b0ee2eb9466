"""Every rule takes its sentence and leaves the other, and what stands beside a form takes its certainty."""

import pytest

from sync.understanding.reading.certain_forms import CertainForm, FoundForm, certain_forms, find_forms
from sync.understanding.reading.segments import read_sentences

MAX_RULES = 60


def forms_of(message: str) -> list[FoundForm]:
    return find_forms(message, read_sentences(message))


@pytest.mark.parametrize("rule", certain_forms(), ids=lambda rule: rule.id)
def test_a_rule_takes_its_sentence_and_leaves_the_other(rule: CertainForm) -> None:
    assert rule.id in {one.form.id for one in forms_of(rule.takes)}
    assert rule.id not in {one.form.id for one in forms_of(rule.leaves)}


def test_the_rules_are_few_and_have_names_of_their_own() -> None:
    names = [rule.id for rule in certain_forms()]
    assert len(names) == len(set(names)) <= MAX_RULES
    assert {name.partition(".")[0] for name in names} == {"zh", "en"}


@pytest.mark.parametrize(
    "message",
    [
        "如果我对花生过敏，该怎么办",
        "小时候我对花生过敏",
        "医生说我对花生过敏",
        "我对周一过敏哈哈",
        "这两天我不能吃海鲜",
        "我朋友对猫毛过敏",
        "if I'm allergic to peanuts, skip them",
        "she says I'm allergic to peanuts",
        "I used to be allergic to peanuts",
        "someone in class is allergic to latex",
    ],
)
def test_what_stands_beside_a_form_takes_its_certainty(message: str) -> None:
    assert all(one.is_doubtful for one in forms_of(message))


@pytest.mark.parametrize(
    "message", ["我对花生过敏吗？", "“我对花生过敏”什么意思", "翻译：我对花生过敏", "am I allergic to peanuts"]
)
def test_questions_and_the_words_of_others_have_no_forms(message: str) -> None:
    assert forms_of(message) == []


@pytest.mark.parametrize(
    ("message", "slot", "about"),
    [
        ("我对花生过敏", "diet.allergy.花生", "user"),
        ("我妈对花生过敏", "diet.allergy.花生", "mother"),
        ("我哥在学做菜，他对香菜过敏", "diet.allergy.香菜", "brother"),
        ("My sister is allergic to peanuts", "diet.allergy.peanuts", "sister"),
        ("我女儿叫令仪", "family.女儿", "daughter"),
        ("我叫赵明", "name", "user"),
    ],
)
def test_a_slot_has_its_thing_and_its_bearer(message: str, slot: str, about: str) -> None:
    assert (slot, about) in {(one.slot, one.about) for one in forms_of(message)}
