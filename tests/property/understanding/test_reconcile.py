"""The facts do not depend on the order in which statements and answers arrive, nor on what arrives twice."""

import itertools
import random

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sync.understanding.likeness import content_of
from sync.understanding.model import (
    AnswerKind,
    Change,
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

TEXTS = ("我用 Vim", "我用 Emacs", "我不用 Vim 了，改用 Helix", "我喜欢猫", "我不喜欢猫", "我用 Emacs 和 Vim")
MOMENTS = st.integers(0, 6).map(lambda at: f"2026-11-0{at + 1}")

statements = st.builds(
    Statement,
    text=st.sampled_from(TEXTS),
    kind=st.just(FactKind.PREFERENCE),
    section=st.just(FactSection.PERSONAL),
    slot=st.sampled_from((None, "editor", "diet.allergy")),
    is_negative=st.booleans(),
    change=st.sampled_from((None, *Change)),
    former=st.sampled_from((None, "Vim")),
    confidence=st.sampled_from((0.4, 0.5, 1.0)),
    about=st.sampled_from(("user", "sister", "unknown")),
    level=st.sampled_from(Level),
    reader=st.sampled_from(("", "forms")),
)
recorded = st.builds(
    RecordedStatement,
    statement=statements,
    fact_id=st.just(""),
    event_id=st.sampled_from("ab"),
    hlc=MOMENTS,
    recorded_at=MOMENTS,
    device_id=st.sampled_from(("mac", "pc")),
    origin=st.sampled_from(FactOrigin),
)
answers = st.builds(
    FactAnswer,
    kind=st.sampled_from(AnswerKind),
    fact_id=st.integers(0, 9).map(str),
    event_id=st.sampled_from("cd"),
    hlc=MOMENTS,
    recorded_at=MOMENTS,
    statement=st.none() | statements,
    superseded_by=st.none() | st.integers(0, 9).map(str),
)
histories = st.tuples(
    st.lists(recorded, max_size=8).map(
        lambda items: [replace(item, fact_id=str(number)) for number, item in enumerate(items)]
    ),
    st.lists(answers, max_size=5, unique_by=lambda answer: (answer.hlc, answer.event_id, answer.fact_id, answer.kind)),
)


@given(histories, st.randoms(use_true_random=False))
def test_any_order_of_arrival_gives_the_same_facts(
    history: tuple[list[RecordedStatement], list[FactAnswer]], shuffled: random.Random
) -> None:
    said, answered = history
    expected = FactTimeline(said, answered).book.facts()
    mixed_said, mixed_answered = [*said, *said[:2]], list(answered)
    shuffled.shuffle(mixed_said)
    shuffled.shuffle(mixed_answered)
    assert FactTimeline(mixed_said, mixed_answered).book.facts() == expected


@settings(max_examples=400)
@given(st.lists(recorded | answers, max_size=9))
def test_what_follows_at_the_end_of_a_timeline_gives_the_same_facts(
    items: list[RecordedStatement | FactAnswer],
) -> None:
    said: list[RecordedStatement] = []
    answered: list[FactAnswer] = []
    timeline = FactTimeline()
    for number, item in enumerate(items):
        if isinstance(item, RecordedStatement):
            said.append(replace(item, fact_id=str(len(said)), hlc=f"{number:02}"))
            is_added = timeline.add(said[-1:], ())
        else:
            answered.append(replace(item, hlc=f"{number:02}"))
            is_added = timeline.add((), answered[-1:])
        expected = FactTimeline(said, answered).book.facts()
        timeline = timeline if is_added else FactTimeline(said, answered)
        assert timeline.book.facts() == expected


@given(st.lists(recorded, max_size=8))
def test_of_one_bearer_an_exclusive_slot_has_one_fact_and_what_says_a_part_of_it(
    items: list[RecordedStatement],
) -> None:
    said = [
        replace(
            item,
            fact_id=f"f{number}",
            event_id=f"e{number}",
            hlc=f"{number:02}",
            statement=replace(
                item.statement, change=None if item.statement.change is Change.ADDS else item.statement.change
            ),
        )
        for number, item in enumerate(items)
    ]
    settled = [
        fact
        for fact in FactTimeline(said).book.facts()
        if fact.status is FactStatus.ACTIVE and fact.questioned_by is None
    ]
    editors = [fact for fact in settled if fact.slot == "editor" and fact.about != "unknown"]
    for fact, other in itertools.combinations(editors, 2):
        said_by_both = content_of(fact.statement) & content_of(other.statement)
        is_part = said_by_both in (content_of(fact.statement), content_of(other.statement))
        assert fact.about != other.about or is_part


@given(histories)
def test_what_is_not_the_users_own_word_read_for_certain_is_active_only_by_their_confirmation(
    history: tuple[list[RecordedStatement], list[FactAnswer]],
) -> None:
    said, _ = history
    certain = {item.fact_id for item in said if item.is_certain}
    for fact in FactTimeline(*history).book.facts():
        if fact.status is FactStatus.ACTIVE:
            assert fact.origin in (FactOrigin.USER_STATED, FactOrigin.USER_CONFIRMED)
            assert fact.origin is FactOrigin.USER_CONFIRMED or not certain.isdisjoint(fact.statement_ids)


@given(histories)
def test_nothing_of_one_event_or_bearer_ends_or_questions_anything_of_the_same_event_or_of_another_bearer(
    history: tuple[list[RecordedStatement], list[FactAnswer]],
) -> None:
    facts = {fact.fact_id: fact for fact in FactTimeline(history[0]).book.facts()}
    for fact in facts.values():
        newer = facts.get(fact.superseded_by or fact.questioned_by or "")
        if newer is not None:
            assert set(fact.evidence).isdisjoint(newer.evidence) or len(newer.evidence) > 1 or len(fact.evidence) > 1
            assert fact.about == newer.about != "unknown"


@given(histories)
def test_a_question_names_a_newer_sentence_and_only_an_active_or_likely_fact_has_one(
    history: tuple[list[RecordedStatement], list[FactAnswer]],
) -> None:
    facts = {fact.fact_id: fact for fact in FactTimeline(*history).book.facts()}
    for fact in facts.values():
        if fact.questioned_by is not None:
            assert fact.status in (FactStatus.ACTIVE, FactStatus.CANDIDATE)
            assert facts[fact.questioned_by].status is not FactStatus.RETRACTED
        assert fact.outdated_part is None or fact.questioned_by is not None


@given(histories)
def test_every_firm_statement_belongs_to_a_fact_as_evidence(
    history: tuple[list[RecordedStatement], list[FactAnswer]],
) -> None:
    facts = FactTimeline(*history).book.facts()
    evidence = {event_id for fact in facts for event_id in fact.evidence}
    firm = {item.event_id for item in history[0] if not item.statement.is_tentative}
    assert firm <= evidence <= {item.event_id for item in history[0]}
