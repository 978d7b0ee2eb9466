"""Whom a clause is about: its subject, else that of the clause before; a pronoun stands for the last relation."""

import pytest

from sync.understanding.reading.bearers import clause_bearers, relations
from sync.understanding.reading.segments import read_sentences

MAX_RELATIONS = 150


def about(message: str) -> list[str]:
    return [one.about for row in clause_bearers(read_sentences(message)) for one in row]


def test_the_words_for_relations_are_a_short_list() -> None:
    assert len(relations()) <= MAX_RELATIONS


@pytest.mark.parametrize(
    ("message", "bearers"),
    [
        ("我住宁波，有两只猫", ["user", "user"]),
        ("我女朋友是素食者，不吃鸡蛋", ["girlfriend", "girlfriend"]),
        ("我哥在学做菜，他闻不得香菜", ["brother", "brother"]),
        ("我妈有糖尿病。她每天打针。我不吃糖", ["mother", "mother", "user"]),
        ("My wife is vegan, she hates eggs, and I cook", ["wife", "wife", "user"]),
        ("he moved out", ["unknown"]),
        ("I'm a mother of two", ["user"]),
        ("我同事不吃辣", ["unknown"]),
        ("妈呀好热", ["user"]),
    ],
)
def test_a_clause_is_about_its_subject(message: str, bearers: list[str]) -> None:
    assert about(message) == bearers
