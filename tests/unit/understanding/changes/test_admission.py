"""A fact of one device is changed by another one only if that is admitted, whatever the event is called."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sync.log.devices.device_registry import DeviceRegistry, RegisteredDevice
from sync.log.devices.device_view import DeviceView
from sync.understanding.model import (
    AnswerKind,
    Change,
    FactAnswer,
    FactKind,
    FactOrigin,
    FactSection,
    FactStatus,
    RecordedStatement,
    Statement,
)
from sync.understanding.reconcile import FactBook, FactTimeline

HOME, THIEF = "home", "thief"

ALLERGY = "我对花生过敏"


def view_of(*device_ids: str, revoked: dict[str, str] | None = None) -> DeviceView:
    ends = revoked or {}
    devices = {name: RegisteredDevice(was_admitted=True, revoked_at=ends.get(name)) for name in device_ids}
    return DeviceView(DeviceRegistry(devices, has_first=True))


def with_answers(view: DeviceView, answers: dict[str, bool]) -> DeviceView:
    return msgspec.structs.replace(view, answers=answers)


ADMITTED = view_of(HOME)


def said(at: int, text: str, device: str = THIEF, **fields: Any) -> RecordedStatement:
    statement = replace(Statement(text, FactKind.CONSTRAINT, FactSection.PERSONAL, slot="diet.allergy"), **fields)
    day = f"2026-11-{at:02}T10:00:00+08:00"
    return RecordedStatement(statement, f"f{at}", f"e{at}", f"{at:04}", day, device, FactOrigin.USER_STATED)


def answered(at: int, fact: int, kind: AnswerKind, device: str = THIEF, **fields: Any) -> FactAnswer:
    day = f"2026-11-{at:02}T10:00:00+08:00"
    return FactAnswer(kind, f"f{fact}", f"e{at}", f"{at:04}", day, device_id=device, **fields)


NO_ALLERGY = Statement(
    "我对花生不过敏", FactKind.CONSTRAINT, FactSection.PERSONAL, slot="diet.allergy", is_negative=True
)
Item = RecordedStatement | FactAnswer
ATTACKS: dict[str, Item] = {
    "retracted": answered(2, 1, AnswerKind.RETRACTED),
    "rejected": answered(2, 1, AnswerKind.REJECTED),
    "edited": answered(2, 1, AnswerKind.EDITED, statement=NO_ALLERGY),
    "superseded": answered(2, 1, AnswerKind.SUPERSEDED),
    "the slot stated anew": said(2, "我对花生不过敏", is_negative=True),
    "a change of it": said(2, "我不再对花生过敏", slot=None, change=Change.ENDS, former=ALLERGY),
    "a tentative change": said(2, "花生现在可以了", change=Change.ENDS, confidence=0.4),
    "one that contains it": said(2, "我对花生和虾过敏", slot=None),
    "an end": said(2, ALLERGY, valid_until="2026-01-01"),
}


def facts_of(*items: RecordedStatement | FactAnswer, admitted: DeviceView = ADMITTED) -> dict[str, str]:
    return {fact.statement: str(fact.status) for fact in timeline(*items, admitted=admitted).facts()}


def timeline(*items: RecordedStatement | FactAnswer, admitted: DeviceView = ADMITTED) -> FactBook:
    statements = [one for one in items if isinstance(one, RecordedStatement)]
    return FactTimeline(statements, [one for one in items if isinstance(one, FactAnswer)], admitted).book


@pytest.mark.parametrize("name", ATTACKS)
def test_no_event_of_a_device_that_is_not_admitted_changes_a_fact_of_another(name: str) -> None:
    attack, own = ATTACKS[name], said(1, ALLERGY, HOME)
    folded = timeline(own, attack)
    known = folded.facts()[0]
    assert (known.statement, known.status, known.valid_until) == (ALLERGY, FactStatus.ACTIVE, None)
    assert known.questioned_by is None
    assert [fact.status for fact in folded.facts()[1:]] in ([], [FactStatus.CANDIDATE])
    (change,) = folded.open_changes()
    assert (change.event_id, change.device_id, change.before) == (attack.change_id, THIEF, (ALLERGY,))
    assert (change.waits, change.is_vital) == (True, True)


@pytest.mark.parametrize("name", ATTACKS)
def test_it_holds_when_its_device_is_admitted_or_the_user_accepts_it_and_never_when_they_refuse_it(name: str) -> None:
    attack, own = ATTACKS[name], said(1, ALLERGY, HOME)
    now = FactTimeline(*_split(own, attack), view_of(HOME, THIEF)).book.facts()
    untouched = (ALLERGY, FactStatus.ACTIVE, None, None)
    assert (now[0].statement, now[0].status, now[0].valid_until, now[0].questioned_by) != untouched
    assert FactTimeline(*_split(own, attack), with_answers(ADMITTED, {attack.change_id: True})).book.facts() == now
    for devices in (ADMITTED, view_of(HOME, THIEF)):
        refused = timeline(own, attack, admitted=with_answers(devices, {attack.change_id: False}))
        assert (refused.facts()[0].statement, refused.facts()[0].status) == (ALLERGY, FactStatus.ACTIVE)
        assert all(fact.status is FactStatus.RETRACTED for fact in refused.facts()[1:])
        assert refused.open_changes() == ()


def test_what_a_revoked_device_changed_before_its_end_holds_and_what_it_changed_later_waits() -> None:
    own, later = said(1, ALLERGY, HOME), answered(4, 1, AnswerKind.RETRACTED)
    until = view_of(HOME, THIEF, revoked={THIEF: "0003"})
    assert facts_of(own, ATTACKS["edited"], admitted=until) == {NO_ALLERGY.text: "active"}
    assert facts_of(own, later, admitted=until) == {ALLERGY: "active"}


def test_a_vital_change_of_an_admitted_device_is_named_until_it_is_answered_and_others_are_not() -> None:
    both = view_of(HOME, THIEF)
    vital = timeline(said(1, ALLERGY, HOME), ATTACKS["retracted"], admitted=both)
    assert [(one.before, one.after, one.waits) for one in vital.open_changes()] == [((ALLERGY,), None, False)]
    answered_before = with_answers(both, {"e2": True})
    assert timeline(said(1, ALLERGY, HOME), ATTACKS["retracted"], admitted=answered_before).open_changes() == ()
    theme = [said(1, "我用深色主题", HOME, slot="theme"), said(2, "我用浅色主题", slot="theme")]
    assert timeline(*theme, admitted=both).open_changes() == ()


def test_no_device_takes_a_fact_away_before_it_is_stated() -> None:
    early: list[Item] = [said(1, ALLERGY), answered(2, 1, AnswerKind.RETRACTED)]
    assert [str(fact.status) for fact in timeline(*early, said(3, ALLERGY, HOME)).facts()] == ["retracted", "active"]
    first: list[Item] = [said(1, ALLERGY), said(2, ALLERGY, HOME), answered(3, 1, AnswerKind.RETRACTED)]
    assert facts_of(*first) == {ALLERGY: "active"}
    opposite = said(1, "我不喜欢咖啡", slot=None, is_negative=True)
    assert facts_of(opposite, said(2, "我喜欢咖啡", HOME, slot=None))["我喜欢咖啡"] == "active"


CLAIMS = [
    said(1, ALLERGY, valid_until="2026-01-01"),
    said(1, "我对花生过敏的", slot="other", is_negative=False),
    said(1, ALLERGY, kind=FactKind.HABIT, change=Change.ENDS, former="花粉"),
    replace(said(1, ALLERGY, valid_until="2020-01-01"), origin=FactOrigin.AGENT_PROPOSED),
    replace(said(1, ALLERGY, HOME, valid_until="2020-01-01"), origin=FactOrigin.AGENT_PROPOSED),
]


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_was_claimed_before_the_user_said_it_leaves_no_trace_in_their_fact(claim: RecordedStatement) -> None:
    own = said(2, ALLERGY, HOME)
    (fact,) = [one for one in timeline(claim, own).facts() if one.status is FactStatus.ACTIVE]
    assert (fact.statement, fact.kind, fact.slot, fact.valid_until) == (
        ALLERGY,
        own.statement.kind,
        "diet.allergy",
        None,
    )
    assert timeline(claim, own, said(3, ALLERGY)).facts()[-1].status is FactStatus.ACTIVE


def test_a_program_ends_no_fact_by_repeating_it_with_a_day_that_is_over() -> None:
    repeated = replace(said(2, ALLERGY, HOME, valid_until="2020-01-01"), origin=FactOrigin.AGENT_PROPOSED)
    (fact,) = timeline(said(1, ALLERGY, HOME), repeated).facts()
    assert (fact.status, fact.valid_until) == (FactStatus.ACTIVE, None)


def test_what_a_device_states_before_it_is_admitted_is_a_candidate_elsewhere() -> None:
    stated = said(1, "我养了一只猫", slot=None)
    assert facts_of(stated, stated) == {"我养了一只猫": "candidate"}
    assert facts_of(stated, admitted=view_of(THIEF)) == {"我养了一只猫": "active"}
    assert facts_of(stated, admitted=with_answers(ADMITTED, {"f1": True})) == {"我养了一只猫": "active"}


def test_a_device_changes_its_own_facts_and_an_event_that_nothing_proves_changes_none() -> None:
    own = said(1, "我用 Vim", slot="editor")
    assert facts_of(own, answered(2, 1, AnswerKind.RETRACTED)) == {"我用 Vim": "retracted"}
    forged = replace(answered(2, 1, AnswerKind.RETRACTED, HOME), is_proven=False)
    folded = timeline(said(1, ALLERGY, HOME), forged)
    assert [str(fact.status) for fact in folded.facts()] == ["active"]
    assert [one.is_proven for one in folded.open_changes()] == [False]


def test_a_change_whose_fact_is_gone_waits_no_longer() -> None:
    removed = answered(3, 1, AnswerKind.RETRACTED, HOME)
    assert timeline(said(1, ALLERGY, HOME), ATTACKS["retracted"], removed).open_changes() == ()


items = st.one_of(
    st.builds(
        lambda text, device, slot, change: (text, device, slot, change),
        st.sampled_from((ALLERGY, "我用 Vim", "我用 Emacs", "我不用 Vim 了")),
        st.sampled_from((HOME, THIEF)),
        st.sampled_from((None, "editor")),
        st.sampled_from((None, Change.ENDS, Change.REPLACES)),
    ),
    st.tuples(st.sampled_from(AnswerKind), st.sampled_from((HOME, THIEF)), st.integers(1, 6)),
)


@given(st.lists(items, max_size=8))
def test_what_an_unadmitted_device_says_leaves_the_active_facts_of_others_as_they_are(plan: list[Any]) -> None:
    history: list[RecordedStatement | FactAnswer] = []
    for at, item in enumerate(plan, start=1):
        if isinstance(item[0], AnswerKind):
            text = NO_ALLERGY if item[0] is AnswerKind.EDITED else None
            history.append(answered(at, item[2], item[0], item[1], statement=text))
        else:
            history.append(said(at, item[0], item[1], slot=item[2], change=item[3]))
    without = [one for one in history if one.device_id == HOME]
    named = {one.fact_id for one in without if isinstance(one, RecordedStatement)}
    without = [one for one in without if isinstance(one, RecordedStatement) or one.fact_id in named]
    expected = {fact.statement for fact in timeline(*without).facts() if fact.status is FactStatus.ACTIVE}
    kept = [one for one in history if one in without or one.device_id == THIEF]
    assert expected <= {fact.statement for fact in timeline(*kept).facts() if fact.status is FactStatus.ACTIVE}


def _split(*items: RecordedStatement | FactAnswer) -> tuple[list[RecordedStatement], list[FactAnswer]]:
    said_ = [one for one in items if isinstance(one, RecordedStatement)]
    return said_, [one for one in items if isinstance(one, FactAnswer)]
