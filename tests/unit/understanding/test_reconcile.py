"""Facts out of recorded statements and the user's answers."""

from dataclasses import replace
from typing import Any

import pytest

from sync.understanding.model import (
    AnswerKind,
    Change,
    Fact,
    FactAnswer,
    FactKind,
    FactOrigin,
    FactSection,
    FactStatus,
    Level,
    RecordedStatement,
    Statement,
)
from sync.understanding.reconcile import reconcile


def said(at: int, text: str, *, origin: FactOrigin = FactOrigin.USER_STATED, **fields: Any) -> RecordedStatement:
    statement = replace(Statement(text, FactKind.PREFERENCE, FactSection.PERSONAL), **fields)
    return RecordedStatement(
        statement, f"f{at}", f"e{at}", f"{at:04}", f"2026-11-{at:02}T10:00:00+08:00", "mac", origin
    )


def answered(at: int, fact: int, kind: AnswerKind, **fields: Any) -> FactAnswer:
    return replace(FactAnswer(kind, f"f{fact}", f"e{at}", f"{at:04}", f"2026-11-{at:02}T10:00:00+08:00"), **fields)


def statuses(*items: RecordedStatement | FactAnswer) -> dict[str, str]:
    return {fact.statement: fact.status.value for fact in facts_of(*items)}


def facts_of(*items: RecordedStatement | FactAnswer) -> tuple[Fact, ...]:
    return reconcile(
        [item for item in items if isinstance(item, RecordedStatement)],
        [item for item in items if isinstance(item, FactAnswer)],
    )


def test_a_newer_statement_of_a_slot_supersedes_the_older_one_and_says_since_when() -> None:
    old, new = facts_of(said(1, "我住在天津", slot="location"), said(2, "我住在石家庄", slot="location"))
    assert (old.status, old.superseded_by, old.valid_until) == (FactStatus.SUPERSEDED, "f2", new.valid_from)
    assert new.status is FactStatus.ACTIVE


def test_a_repeated_statement_is_evidence_whatever_its_word_order_and_particles() -> None:
    (fact,) = facts_of(said(1, "12 月 26 号我考研"), said(2, "我12月26号考研啊"), said(3, "我 12 月 26 号考研。"))
    assert fact.evidence == ("e1", "e2", "e3")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("我女儿的生日是3月12日", "我女儿的生日是12月3日"),
        ("我的工号是 1203", "我的工号是 1230"),
        ("Tom reports to Mary", "Mary reports to Tom"),
        ("张姐是李哥的上司", "李哥是张姐的上司"),
    ],
)
def test_the_same_signs_in_another_order_are_another_statement(first: str, second: str) -> None:
    assert statuses(said(1, first), said(2, second))[second] == "active"
    assert statuses(said(1, first, slot="one"), said(2, second, slot="one")) == {first: "superseded", second: "active"}


def test_a_likely_statement_is_a_candidate_that_replaces_nothing_until_it_is_said_for_certain() -> None:
    home, likely = said(1, "我住在天津", slot="location"), dict[str, Any](slot="location", level=Level.LIKELY)
    moved = said(2, "我住在石家庄", change=Change.REPLACES, **likely)
    assert statuses(home, moved) == {"我住在天津": "active", "我住在石家庄": "candidate"}
    assert statuses(home, moved, said(3, "我住在石家庄", **likely))["我住在石家庄"] == "candidate"
    certain = said(3, "我住在石家庄", slot="location")
    assert statuses(home, moved, certain) == {"我住在天津": "superseded", "我住在石家庄": "active"}
    assert statuses(home, moved, answered(3, 2, AnswerKind.CONFIRMED))["我住在石家庄"] == "active"


def test_a_superseded_statement_that_is_said_again_is_active_again() -> None:
    facts = facts_of(
        said(1, "回答都用中文", slot="reply.language"),
        said(2, "回答都用英文", slot="reply.language"),
        said(3, "回答都用中文", slot="reply.language"),
    )
    assert [(fact.statement, fact.status.value) for fact in facts] == [
        ("回答都用中文", "superseded"),
        ("回答都用英文", "superseded"),
        ("回答都用中文", "active"),
    ]


def test_a_change_ends_what_shares_its_content_without_a_slot() -> None:
    assert statuses(
        said(1, "我打算三月份去冰岛"), said(2, "我喜欢猫"), said(3, "冰岛不去了", change=Change.ENDS, is_negative=True)
    ) == {"我打算三月份去冰岛": "superseded", "我喜欢猫": "active", "冰岛不去了": "active"}


@pytest.mark.parametrize(
    ("older", "ends"),
    [
        (("我喜欢跑步",), ("我现在喜欢喝茶", None)),
        (("我喜欢咖啡",), ("我不再喜欢茶了", None)),
        (("I like coffee",), ("I no longer like tea", None)),
        (("我老婆叫小红", "我女儿叫小明"), ("我女儿叫小月", "我女儿叫小明")),
    ],
)
def test_a_change_leaves_what_it_is_not_about(older: tuple[str, ...], ends: tuple[str, str | None]) -> None:
    text, replaced = ends
    found = statuses(
        *(said(at, words, slot=f"slot.{words[:3]}") for at, words in enumerate(older, 1)),
        said(9, text, slot=f"slot.{text[:3]}", change=Change.REPLACES),
    )
    assert {words for words, status in found.items() if status == "superseded"} == {replaced} - {None}


@pytest.mark.parametrize(
    ("own", "of_another", "change"),
    [
        ("我不吃香菜", "我老婆不吃香菜和葱", None),
        ("我喜欢喝绿茶", "我女儿现在喜欢喝绿茶", Change.REPLACES),
        ("I have a dog", "My sister has a dog called Rex", None),
    ],
)
def test_a_statement_about_a_relative_ends_no_fact_of_the_user(
    own: str, of_another: str, change: Change | None
) -> None:
    assert statuses(said(1, own), said(2, of_another, change=change)) == {own: "active", of_another: "active"}
    of_relative = said(1, of_another), said(2, f"{of_another}, 2026", change=change)
    assert [fact.status.value for fact in facts_of(*of_relative)] == ["superseded", "active"]


def test_a_change_ends_a_taste_of_one_character() -> None:
    assert statuses(said(1, "我喜欢茶"), said(2, "我不再喜欢茶了", change=Change.ENDS, is_negative=True)) == {
        "我喜欢茶": "superseded",
        "我不再喜欢茶了": "active",
    }


def test_a_named_former_value_decides_what_a_change_ends() -> None:
    assert statuses(
        said(1, "缓存用 Redis"),
        said(2, "数据库用 MongoDB"),
        said(3, "决定用 PostgreSQL 替换 MongoDB", change=Change.REPLACES, former="MongoDB"),
    ) == {"缓存用 Redis": "active", "数据库用 MongoDB": "superseded", "决定用 PostgreSQL 替换 MongoDB": "active"}


def test_a_change_without_a_topic_of_its_own_counts_only_for_a_fact_that_it_changes() -> None:
    tentative = said(2, "定投已经停了", change=Change.ENDS, confidence=0.4)
    assert facts_of(tentative) == ()
    old, new = facts_of(said(1, "我每个月定投两千块基金", kind=FactKind.HABIT), tentative)
    assert (old.status, new.status, new.kind) == (FactStatus.SUPERSEDED, FactStatus.ACTIVE, FactKind.HABIT)


def test_a_doubtful_proposal_of_a_program_is_a_candidate_like_any_other() -> None:
    (fact,) = facts_of(said(1, "我用 Vim", origin=FactOrigin.AGENT_PROPOSED, confidence=0.2))
    assert fact.status is FactStatus.CANDIDATE


def test_a_statement_that_says_more_supersedes_the_shorter_one() -> None:
    old, new = facts_of(said(1, "我住在宁波", slot="location"), said(2, "我住在宁波海曙区"))
    assert (old.status, old.superseded_by, new.status) == (FactStatus.SUPERSEDED, "f2", FactStatus.ACTIVE)


def test_a_contradiction_without_a_slot_and_without_a_change_waits_for_the_user() -> None:
    assert statuses(said(1, "我喜欢吃香菜"), said(2, "我不喜欢吃香菜", is_negative=True)) == {
        "我喜欢吃香菜": "active",
        "我不喜欢吃香菜": "candidate",
    }


def test_text_that_the_user_did_not_state_is_a_candidate_and_supersedes_nothing() -> None:
    for origin in (FactOrigin.IMPORTED, FactOrigin.AGENT_PROPOSED, FactOrigin.OTHER_DEVICE):
        assert statuses(said(1, "我用 Vim", slot="editor"), said(2, "我用 Emacs", slot="editor", origin=origin)) == {
            "我用 Vim": "active",
            "我用 Emacs": "candidate",
        }


def test_the_users_own_words_or_confirmation_make_a_candidate_active_and_supersede_the_older() -> None:
    old = said(1, "我用 Vim", slot="editor")
    candidate = said(2, "我用 Emacs", slot="editor", origin=FactOrigin.IMPORTED)
    for then in (said(3, "我用 Emacs", slot="editor"), answered(3, 2, AnswerKind.CONFIRMED)):
        assert statuses(old, candidate, then) == {"我用 Vim": "superseded", "我用 Emacs": "active"}


def test_a_retracted_or_rejected_fact_stays_so_when_it_is_said_again() -> None:
    for kind in (AnswerKind.RETRACTED, AnswerKind.REJECTED):
        (fact,) = facts_of(said(1, "我喜欢猫"), answered(2, 1, kind), said(3, "我喜欢猫"))
        assert fact.status is FactStatus.RETRACTED


def test_an_edit_keeps_the_id_and_the_evidence() -> None:
    (fact,) = facts_of(
        said(1, "我住在天津", slot="location"),
        answered(2, 1, AnswerKind.EDITED, statement=said(2, "我住在天津南开区", slot="location").statement),
    )
    assert (fact.fact_id, fact.statement, fact.origin) == ("f1", "我住在天津南开区", FactOrigin.USER_CONFIRMED)
    assert fact.evidence == ("e1",)


def test_what_was_said_before_an_edit_and_is_said_again_is_a_new_fact() -> None:
    edited, new = facts_of(
        said(1, "我住在天津", slot="location"),
        answered(2, 1, AnswerKind.EDITED, statement=said(2, "我住在宁波", slot="location").statement),
        said(3, "我住在天津", slot="location"),
    )
    assert (edited.statement, edited.status, edited.evidence) == ("我住在宁波", FactStatus.SUPERSEDED, ("e1",))
    assert (new.statement, new.status, new.evidence) == ("我住在天津", FactStatus.ACTIVE, ("e3",))


def test_an_answer_names_a_fact_by_any_of_its_statements_and_may_come_before_it_in_the_order() -> None:
    (fact,) = facts_of(said(2, "我喜欢猫"), said(3, "我喜欢猫"), answered(1, 3, AnswerKind.RETRACTED))
    assert fact.status is FactStatus.RETRACTED
    assert facts_of(said(1, "我喜欢猫"), answered(2, 9, AnswerKind.RETRACTED))[0].status is FactStatus.ACTIVE


def test_a_superseded_answer_names_the_fact_that_replaces_it() -> None:
    old, _ = facts_of(
        said(1, "我喜欢深色"), said(2, "我喜欢浅色"), answered(3, 1, AnswerKind.SUPERSEDED, superseded_by="f2")
    )
    assert (old.status, old.superseded_by) == (FactStatus.SUPERSEDED, "f2")


def test_subjects_have_slots_of_their_own() -> None:
    one = replace(said(1, "数据库用 MySQL", slot="project.database"), subject="project:a")
    other = replace(said(2, "数据库用 SQLite", slot="project.database"), subject="project:b")
    assert set(statuses(one, other).values()) == {"active"}


@pytest.mark.parametrize(
    ("list_of_things", "rest"),
    [
        ("我用的是 Mac 和 VS Code", "我用的是 Mac"),
        ("我用的是 VS Code 和 Mac", "我用的是 Mac"),
        ("我用 Mac、VS Code、Zed", "我用 Mac、Zed"),
        ("I use Mac and VS Code", "I use Mac"),
    ],
)
def test_a_change_takes_out_of_a_list_only_what_it_names(list_of_things: str, rest: str) -> None:
    change = said(2, "我现在用 Vim，不用 VS Code 了", slot="editor", change=Change.ENDS, former="VS Code")
    assert statuses(said(1, list_of_things), change) == {rest: "active", change.statement.text: "active"}
    assert statuses(said(1, "我用 VS Code"), change)["我用 VS Code"] == "superseded"


def test_what_holds_now_ends_only_what_says_nearly_the_same() -> None:
    now = said(2, "我现在在学弹吉他", kind=FactKind.HABIT, change=Change.NOW)
    assert statuses(said(1, "我喜欢弹吉他"), now)["我喜欢弹吉他"] == "active"
    monday = said(2, "现在周报每周一交", kind=FactKind.HABIT, change=Change.NOW)
    assert statuses(said(1, "周报每周五交", kind=FactKind.HABIT), monday)["周报每周五交"] == "superseded"


def test_a_plan_that_is_stated_again_holds_until_its_new_day() -> None:
    first, again = said(1, "下周一体检", valid_until="2026-11-09"), said(2, "下周一体检", valid_until="2026-12-07")
    (fact,) = facts_of(first, again)
    assert (fact.valid_until, fact.evidence) == ("2026-12-07", ("e1", "e2"))
