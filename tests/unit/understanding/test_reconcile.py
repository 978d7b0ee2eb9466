"""Facts out of recorded statements and the user's answers."""

from typing import Any

import pytest
from msgspec.structs import replace

from sync.understanding.model import (
    REMEMBER,
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
from sync.understanding.reconcile import FactTimeline


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
    return FactTimeline(
        [item for item in items if isinstance(item, RecordedStatement)],
        [item for item in items if isinstance(item, FactAnswer)],
    ).book.facts()


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
    assert statuses(said(1, first), said(2, second)) == {first: "active", second: "active"}
    assert statuses(said(1, first, slot="age"), said(2, second, slot="age")) == {first: "superseded", second: "active"}


def test_a_likely_statement_is_a_candidate_that_replaces_nothing_until_it_is_said_for_certain() -> None:
    home, likely = said(1, "我住在天津", slot="location"), dict[str, Any](slot="location", level=Level.LIKELY)
    moved = said(2, "我住在石家庄", change=Change.REPLACES, **likely)
    assert statuses(home, moved) == {"我住在天津": "active", "我住在石家庄": "candidate"}
    assert statuses(home, moved, said(3, "我住在石家庄", **likely))["我住在石家庄"] == "candidate"
    certain = said(3, "我住在石家庄", slot="location")
    assert statuses(home, moved, certain) == {"我住在天津": "superseded", "我住在石家庄": "active"}
    assert statuses(home, moved, answered(3, 2, AnswerKind.CONFIRMED))["我住在石家庄"] == "active"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("我女儿的生日是3月12日", "我女儿的生日是12月3日"),
        ("我的工号是 1203", "我的工号是 1230"),
        ("I don't drink coffee after noon", "For months now I drink coffee at any hour"),
    ],
)
def test_another_value_or_the_opposite_of_one_thing_questions_the_older_also_without_a_verb_of_change(
    first: str, second: str
) -> None:
    old, new = facts_of(said(1, first, is_negative="n't" in first), said(2, second))
    assert (old.status, old.questioned_by) == (FactStatus.ACTIVE, new.fact_id)
    assert new.status in (FactStatus.ACTIVE, FactStatus.CANDIDATE)


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


def test_a_change_ends_what_it_names_as_its_former_value() -> None:
    change = said(3, "冰岛不去了", change=Change.ENDS, former="冰岛", is_negative=True)
    assert statuses(said(1, "我打算三月份去冰岛"), said(2, "我喜欢猫"), change) == {
        "我打算三月份去冰岛": "superseded",
        "我喜欢猫": "active",
        "冰岛不去了": "active",
    }


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
        ("I'm allergic to peanuts", "My sister isn't allergic to peanuts", Change.ENDS),
    ],
)
@pytest.mark.parametrize("slot", [None, "age"])
def test_nothing_about_one_ends_or_questions_anything_about_another(
    own: str, of_another: str, change: Change | None, slot: str | None
) -> None:
    for about in ("sister", "unknown", "user"):  # an event of before says nothing of whom it is about
        is_of_now = about != "user"
        other = said(2, of_another, change=change, slot=slot, about=about, reader="forms" if is_of_now else "")
        for facts in (
            facts_of(said(1, own, slot=slot), other),
            facts_of(replace(other, hlc="0"), said(3, own, slot=slot)),
        ):
            assert {(fact.status.value, fact.questioned_by) for fact in facts} == {("active", None)}


def test_what_one_says_anew_of_the_same_person_replaces_it() -> None:
    older, newer = (said(at, f"我妹妹今年{age}岁", slot="age", about="sister") for at, age in ((1, 20), (2, 21)))
    assert [fact.status.value for fact in facts_of(older, newer)] == ["superseded", "active"]


def test_two_facts_of_one_event_never_replace_each_other() -> None:
    one, two = said(1, "我用 Vim", slot="editor"), said(2, "我不用 Vim 了，用 Zed", slot="editor", change=Change.ENDS)
    of_one_event = replace(two, event_id=one.event_id)
    assert set(statuses(one, of_one_event).values()) == {"active"}
    assert all(fact.questioned_by is None for fact in facts_of(one, of_one_event))
    assert statuses(one, of_one_event, said(3, "我用 Helix", slot="editor")) == {
        one.statement.text: "superseded",
        two.statement.text: "active",  # it says more than that, and is marked
        "我用 Helix": "active",
    }


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("I'm lactose intolerant", "I have a nut allergy"),
        ("我对花生过敏", "我对虾过敏"),
        ("I'm a nurse", "I'm a mother of two"),
    ],
)
def test_two_statements_without_a_word_of_change_both_stay(first: str, second: str) -> None:
    for slot in (None, "diet.allergy", "role"):
        assert set(statuses(said(1, first, slot=slot), said(2, second, slot=slot)).values()) == {"active"}
    tools = said(1, "我用 VS Code", slot="editor"), said(2, "我也用 PyCharm", slot="editor", change=Change.ADDS)
    assert set(statuses(*tools).values()) == {"active"}


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


UNREAD = Statement(
    "定投已经停了", FactKind.KNOWLEDGE, FactSection.PERSONAL, change=Change.ENDS, confidence=0.4, level=Level.LIKELY
)
INVESTMENT = said(1, "我每个月定投两千块基金", kind=FactKind.HABIT)


def unread(at: int, **fields: Any) -> RecordedStatement:
    return replace(said(at, ""), statement=replace(UNREAD, **fields))


def test_a_change_that_cannot_be_read_questions_the_fact_whose_object_it_names() -> None:
    assert facts_of(unread(2)) == ()
    old, new = facts_of(INVESTMENT, unread(2))
    assert (old.status, old.questioned_by, new.status) == (FactStatus.ACTIVE, new.fact_id, FactStatus.CANDIDATE)


def test_a_likely_fact_is_questioned_too_but_nothing_ends_it() -> None:
    likely = replace(INVESTMENT, statement=replace(INVESTMENT.statement, level=Level.LIKELY))
    old, new = facts_of(likely, unread(2))
    assert (old.status, old.questioned_by, new.status) == (FactStatus.CANDIDATE, new.fact_id, FactStatus.CANDIDATE)
    old, new = facts_of(likely, unread(2, confidence=1.0, level=Level.CERTAIN))
    assert (old.status, old.questioned_by, new.status) == (FactStatus.CANDIDATE, new.fact_id, FactStatus.ACTIVE)


def test_confirmed_a_questioned_fact_holds_and_the_sentence_that_only_questioned_it_is_settled() -> None:
    old, new = facts_of(INVESTMENT, unread(2), answered(3, 1, AnswerKind.CONFIRMED))
    assert (old.status, old.questioned_by, new.status) == (FactStatus.ACTIVE, None, FactStatus.RETRACTED)
    again = facts_of(INVESTMENT, unread(2), answered(3, 1, AnswerKind.CONFIRMED), unread(4))
    assert (again[0].questioned_by, len(again)) == (None, 2)
    repeated = facts_of(INVESTMENT, unread(2), said(3, INVESTMENT.statement.text))
    assert (repeated[0].status, repeated[0].questioned_by) == (FactStatus.ACTIVE, None)


def test_retracted_a_questioned_fact_ends_and_a_rejected_question_is_none() -> None:
    old, new = facts_of(INVESTMENT, unread(2), answered(3, 1, AnswerKind.RETRACTED))
    assert (old.status, old.questioned_by, new.status) == (FactStatus.RETRACTED, None, FactStatus.CANDIDATE)
    old, new = facts_of(INVESTMENT, unread(2), answered(3, 2, AnswerKind.REJECTED))
    assert (old.status, old.questioned_by, new.status) == (FactStatus.ACTIVE, None, FactStatus.RETRACTED)


def test_of_health_only_a_verb_of_ending_questions_and_the_fact_holds_until_the_user_answers() -> None:
    allergy = said(1, "我对花生过敏", slot="diet.allergy.花生")
    for change, is_questioned in ((Change.ENDS, True), (Change.REPLACES, False), (Change.NOW, False)):
        facts = facts_of(allergy, unread(2, text="花生能吃了", change=change))
        assert (facts[0].status, facts[0].questioned_by) == (FactStatus.ACTIVE, "f2" if is_questioned else None)


def test_a_likely_statement_replaces_nothing_and_is_replaced_only_by_the_same_words_said_for_certain() -> None:
    old = said(1, "我住在天津", slot="location")
    likely = said(2, "我住在宁波", slot="location", level=Level.LIKELY)
    assert statuses(old, likely) == {"我住在天津": "active", "我住在宁波": "candidate"}
    assert statuses(old, likely, replace(likely, fact_id="f3"))["我住在宁波"] == "candidate"
    newer = said(3, "我住在苏州", slot="location", change=Change.REPLACES)
    assert statuses(likely, newer)["我住在宁波"] == "candidate"
    for then in (said(3, "我住在宁波", slot="location"), answered(3, 2, AnswerKind.CONFIRMED)):
        assert statuses(old, likely, then) == {"我住在天津": "superseded", "我住在宁波": "active"}


def test_what_cannot_be_cut_out_of_a_sentence_stays_and_is_marked_as_partly_out_of_date() -> None:
    stack = said(1, "I code in TypeScript with pnpm, on a ThinkPad", slot="package_manager.javascript")
    switch = said(2, "I've switched from pnpm to bun", slot=stack.statement.slot, change=Change.REPLACES, former="pnpm")
    old, new = facts_of(stack, switch)
    assert (old.status, old.questioned_by, old.outdated_part) == (FactStatus.ACTIVE, new.fact_id, "pnpm")
    introduced = said(1, "I'm Sam, a nurse from Leeds", slot="name"), said(2, "My name is Sam", slot="name")
    assert [(fact.status.value, fact.questioned_by) for fact in facts_of(*introduced)] == [("active", None)] * 2


def test_a_doubtful_proposal_of_a_program_is_a_candidate_like_any_other() -> None:
    (fact,) = facts_of(said(1, "我用 Vim", origin=FactOrigin.AGENT_PROPOSED, confidence=0.2))
    assert fact.status is FactStatus.CANDIDATE


def test_a_statement_that_says_more_supersedes_the_shorter_one() -> None:
    old, new = facts_of(said(1, "我住在宁波", slot="location"), said(2, "我住在宁波海曙区"))
    assert (old.status, old.superseded_by, new.status) == (FactStatus.SUPERSEDED, "f2", FactStatus.ACTIVE)


def test_a_contradiction_without_a_change_waits_for_the_user_and_questions_the_older() -> None:
    old, new = facts_of(said(1, "我喜欢吃香菜"), said(2, "我不喜欢吃香菜", is_negative=True))
    assert (old.status, old.questioned_by, new.status) == (FactStatus.ACTIVE, new.fact_id, FactStatus.CANDIDATE)


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
        (fact,) = facts_of(said(1, "我喜欢猫"), answered(2, 1, kind), said(3, "我喜欢猫", reader=REMEMBER))
        assert fact.status is FactStatus.ACTIVE, "who asks to remember it wants it"


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
