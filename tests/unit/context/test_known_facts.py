"""Questions that a fact about the user answers, and what no longer holds."""

import pytest

from sync.context.known_facts import KnownFacts
from sync.understanding.model import Fact, FactKind, FactOrigin, FactSection, FactStatus


def fact(slot: str, status: FactStatus = FactStatus.ACTIVE) -> Fact:
    return Fact(
        fact_id=f"{slot} {status}",
        kind=FactKind.IDENTITY,
        section=FactSection.PERSONAL,
        subject="user",
        statement=slot,
        slot=slot,
        is_negative=False,
        valid_from="2026-11-01T10:00:00+08:00",
        valid_until=None,
        evidence=(),
        origin=FactOrigin.USER_STATED,
        confidence=1.0,
        status=status,
    )


FACTS = KnownFacts(
    [fact(slot, status) for slot in ("name", "age", "location", "role") for status in FactStatus],
    edit_events={"age active": "the edit of the age"},
)


@pytest.mark.parametrize(
    ("slot", "questions"),
    [
        ("name", ("我叫什么名字", "你还记得我叫什么吗？", "What's my name?")),
        ("location", ("我现在住在哪里", "我住哪儿？", "Where do I live now?", "do you know where I live")),
        ("role", ("我是做什么工作的", "我在哪上班？", "What do I do for a living?")),
        (None, ("我叫什么外卖好", "我多大的鞋合适", "我在哪", "我在哪里能买到", "我现在做什么好", "what do I do")),
    ],
)
def test_a_question_about_the_user_is_answered_by_the_active_fact(slot: str | None, questions: tuple[str, ...]) -> None:
    for question in questions:
        assert FACTS.ids_answering(question) == ((f"{slot} active",) if slot else ()), question


def test_an_edited_fact_answers_with_the_text_of_its_edit() -> None:
    for question in ("我今年多大了？", "How old am I?"):
        assert FACTS.ids_answering(question) == ("the edit of the age",)
    assert "age active" not in FACTS.active_ids
