"""The state is a pure fold of the events."""

import random
from typing import Any

import pytest

from sync.insights.state import MAX_SESSIONS, InsightsState, decode, encode
from sync.log.event_types import TYPES_WITH_TAGS, USER_FEEDBACK
from sync.log.retractions import Retractions
from tests.support import event
from tests.unit.insights.event_sequence import EventSequence


@pytest.fixture
def sequence() -> EventSequence:
    return EventSequence()


class TestReading:
    @pytest.mark.parametrize("kind", ["tool_call", "message", "exchange_recorded", *TYPES_WITH_TAGS, USER_FEEDBACK])
    def test_any_value_in_any_field_is_accepted(self, sequence: EventSequence, kind: str) -> None:
        told = ("tool", "stage", "details", "exit_code", "success", "error", "status", "file_path", "command")
        said = ("role", "content", "question", "answer", "title", "summary", "tags", "fact_type", "feedback_type")
        anything: list[Any] = [None, True, 0, -1, 10**400, 1.5, "", "字", [], [{}], {}, {"a": [1]}]
        for name in (*told, *said):
            for value in anything:
                sequence.tell(kind, **{name: value})
                sequence.tell(kind, details={name: value})
                among: dict[str, Any] = {"tool": "Edit", "content": "字", "tags": ["一"], name: [value]}
                sequence.tell(kind, **among)
        assert decode(encode(sequence.state)) == sequence.state


class TestState:
    def test_it_is_a_fold_whose_bytes_depend_on_the_events_alone(self) -> None:
        chance = random.Random(7)
        story = EventSequence()
        kinds = ("design", "implement", "test", None)
        for number in range(1_500):
            session = f"s{chance.randrange(2 * MAX_SESSIONS)}"
            story.tool(chance.choice(kinds), session=session, tool="Shell", details={"exit_code": number % 2})
            story.tell("memory_fact", fact_type="preference", content=f"喜欢{chance.random()}", session=session)
        kept = InsightsState()
        for told in story.events:  # saved and read between any two
            kept.apply(told)
            if chance.random() < 0.01:
                kept = decode(encode(kept)) or InsightsState()
        assert encode(kept) == encode(story.state)
        assert len(kept.sessions) == MAX_SESSIONS

    def test_what_is_forgotten_says_nothing_whether_it_was_blanked_yet_or_not(self) -> None:
        told = event(1, type="user_feedback", position=1, payload={"feedback_type": "correction", "content": "忘掉"})
        blank = event(1, type="user_feedback", position=1, payload={}, event_id=told.event_id)
        one, other = InsightsState(), InsightsState()
        withdrawn = Retractions()
        wish = event(2, type="payload_forgotten", payload={"event_ids": [told.event_id]})
        withdrawn.apply((wish,))
        one.apply(withdrawn.effective_event(told))
        other.apply(blank)
        assert encode(one) == encode(other)
        assert "忘掉".encode() not in encode(one)

    @pytest.mark.parametrize("junk", [b"", b"{", b"[]", b'{"format": 99}', b'{"sessions": 5}'])
    def test_a_cache_that_is_none_is_not_read(self, junk: bytes) -> None:
        assert decode(junk) is None

    @pytest.mark.parametrize(
        "payload",
        [{"tags": [1, None], "details": 7, "tool": {}}, {"content": ["x"], "feedback_type": []}, {"question": 5}],
    )
    @pytest.mark.parametrize(
        "kind", ["tool_call", "memory_fact", "user_feedback", "message", "exchange_recorded", "session_started"]
    )
    def test_what_other_programs_write_stops_nothing(
        self, sequence: EventSequence, kind: str, payload: dict[str, Any]
    ) -> None:
        sequence.tell(kind, **payload)
        assert decode(encode(sequence.state)) == sequence.state
