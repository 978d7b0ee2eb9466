"""The facts that a few words name."""

import pytest

from sync.daily.commands.named_facts import named_facts
from sync.understanding.model import Fact, FactKind, FactOrigin, FactSection, FactStatus


def fact(text: str, about: str = "user") -> Fact:
    return Fact(
        fact_id=text,
        kind=FactKind.KNOWLEDGE,
        section=FactSection.PERSONAL,
        subject="user",
        statement=text,
        slot=None,
        is_negative=False,
        valid_from="2026-11-01T10:00:00+08:00",
        valid_until=None,
        evidence=(),
        origin=FactOrigin.USER_STATED,
        confidence=1.0,
        status=FactStatus.ACTIVE,
        about=about,
    )


KNOWN = [
    fact("I'm allergic to walnuts"),
    fact("My sister is allergic to walnuts", "sister"),
    fact("I run on Saturday mornings"),
    fact("我对坚果过敏"),
    fact("我每天早上吃一片降压药"),
    fact("我妈住长沙", "mother"),
]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("my allergy", ["I'm allergic to walnuts", "My sister is allergic to walnuts"]),
        ("my sister's walnut allergy", ["My sister is allergic to walnuts"]),
        ("when I run", ["I run on Saturday mornings"]),
        ("我的过敏", ["我对坚果过敏"]),
        ("我吃降压药这件事", ["我每天早上吃一片降压药"]),
        ("我妈住哪儿", ["我妈住长沙"]),
        ("my piano lessons", []),
        ("我的钢琴课", []),
        ("", []),
    ],
)
def test_forms_of_a_word_and_the_bearer_name_a_fact_and_nothing_else_does(words: str, expected: list[str]) -> None:
    assert [one.statement for one in named_facts(words, KNOWN)] == expected
