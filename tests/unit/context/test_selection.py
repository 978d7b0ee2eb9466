"""Which items belong to a message."""

from msgspec import structs
from msgspec.structs import replace

from sync.context import selection
from sync.context.known_facts import KnownFacts
from sync.context.model import Candidate, Outcome, Reason
from sync.recall.model import Hit
from sync.recall.relevance.calibration import ItemEvidence
from tests.unit.context.test_known_facts import fact
from tests.unit.recall.examples import hit


def near(item_id: int, relevance: float, text: str = "", **changes: object) -> Hit:
    found = replace(hit(item_id, text or f"第{item_id}件事", **changes), relevance=relevance)
    return replace(found, evidence=ItemEvidence(relevance, relevance, {}))


def decide(candidates: list[Candidate], **changes: object) -> list[Outcome]:
    options = {"session_id": "now", "given_ids": (), "asks_for_past": False, "max_items": 3}
    options |= {"is_outdated": lambda _: False}
    options |= {"sources": lambda item: frozenset({item.event_id})}
    return [one.outcome for one in selection.decide(candidates, **{**options, **changes})]  # type: ignore[arg-type]


def test_without_a_relevant_item_nothing_is_given_and_with_one_the_next_best_are() -> None:
    silent = selection.relevant_candidates([near(1, 0.55, kind="entry"), near(2, 0.5, kind="entry")], lambda _: 0.6)
    assert decide(silent) == [Outcome.BELOW_THRESHOLD] * 2
    spoken = selection.relevant_candidates(
        [near(1, 0.65, kind="entry"), near(2, 0.5, kind="entry"), near(3, 0.2, kind="entry")], lambda _: 0.6
    )
    assert decide(spoken) == [Outcome.GIVEN, Outcome.GIVEN, Outcome.BELOW_THRESHOLD]


def test_what_states_a_fact_needs_little_and_what_a_program_says_of_the_user_all() -> None:
    stated = structs.replace(fact("diet.allergy"), statement_ids=("evt_1",), evidence=("evt_2",))
    facts = KnownFacts([stated])
    hits = [near(1, 0.2), near(2, 0.2, kind="exchange"), near(3, 0.2, kind="entry")]
    found = selection.relevant_candidates(hits, lambda _: 0.6, facts)
    assert [one.outcome for one in found] == [Outcome.GIVEN, Outcome.GIVEN, Outcome.BELOW_THRESHOLD]
    programs = selection.relevant_candidates([near(1, 0.2, origin="tool")], lambda _: 0.6, facts)
    assert [one.outcome for one in programs] == [Outcome.BELOW_THRESHOLD]


def test_what_the_user_said_later_of_the_same_thing_questions_a_line() -> None:
    old = near(1, 0.9, "外卖平台只上美团，饿了么抽成太高不上", date="2026-11-02")
    new = near(2, 0.1, "饿了么也开始上了，不再只上美团", date="2026-11-20")
    other = near(3, 0.1, "壁纸换成浅色了", date="2026-11-21")
    every = selection.asked_candidates([old, new, other], Reason.RELEVANT)
    assert selection.questioning(old.item, every) == new.item
    assert selection.questioning(new.item, every) is None
    assert selection.questioning(other.item, every) is None
    programs = selection.asked_candidates(
        [near(2, 0.1, new.item.text, date="2026-11-20", origin="tool")], Reason.RELEVANT
    )
    assert selection.questioning(old.item, programs) is None


def test_what_others_wrote_needs_the_whole_threshold_and_is_one_line() -> None:
    hits = [
        near(1, 0.9, kind="entry"),
        near(2, 0.4, kind="entry"),
        *(near(at, 0.9 if at < 5 else 0.4, origin="tool") for at in (3, 4, 5)),
    ]
    assert decide(selection.relevant_candidates(hits, lambda _: 0.6), max_items=5) == [
        *[Outcome.GIVEN] * 3,
        Outcome.OVER_LIMIT,
        Outcome.BELOW_THRESHOLD,
    ]


def test_at_most_so_many_items_and_each_text_once() -> None:
    asked = selection.asked_candidates([near(at, 1.0) for at in range(5)], Reason.DAY)
    assert decide(asked, max_items=2) == [Outcome.GIVEN] * 2 + [Outcome.OVER_LIMIT] * 3
    assert decide([*asked, *asked]) == decide(asked)
    assert decide(selection.asked_candidates([near(1, 1.0, "同一句"), near(2, 1.0, "同一句。")], Reason.DAY)) == [
        Outcome.GIVEN
    ]


def test_an_item_is_given_once_a_session_unless_the_user_asks_for_the_past() -> None:
    one = selection.asked_candidates([near(1, 1.0)], Reason.RELEVANT)
    assert decide(one, given_ids={"evt_1"}) == [Outcome.ALREADY_GIVEN]
    assert decide(one, is_outdated=lambda item: item.event_id == "evt_1") == [Outcome.SUPERSEDED]
    assert decide(one, given_ids={"evt_1"}, is_outdated=lambda _: True, asks_for_past=True) == [Outcome.GIVEN]


def test_the_messages_of_this_very_conversation_are_not_given() -> None:
    spoken = near(1, 1.0, kind="exchange", session_id="now")
    assert decide(selection.asked_candidates([spoken], Reason.RELEVANT)) == [Outcome.CURRENT_SESSION]
    fact = near(1, 1.0, kind="fact", session_id="now")
    assert decide(selection.asked_candidates([fact], Reason.RELEVANT)) == [Outcome.GIVEN]


def test_a_continuation_takes_the_last_session_that_has_its_words() -> None:
    old = near(1, 0.5, session_id="a", date="2026-02-01")
    new = near(2, 0.5, session_id="b", kind="message")
    record = near(3, 0.4, session_id="b", kind="daily", ts_ms=new.item.ts_ms)
    other = near(4, 0.1, session_id="c")
    assert selection.continued_session([old, new, record, other]) == [record, new]
    assert selection.continued_session([other]) == []


def test_a_message_names_a_project_by_its_folder() -> None:
    folders = {"proj_a": "/home/me/shop", "proj_b": "C:\\work\\博客\\", "proj_c": "/"}
    assert selection.named_projects("Shop 的登录页怎么改", folders) == ["proj_a"]
    assert selection.named_projects("看看博客项目", folders) == ["proj_b"]
    assert selection.named_projects("my shopping list", folders) == []
