"""What one event of feedback says of a correction."""

from typing import Any

import pytest

from sync.lessons.corrections import Feedback, correction_id, instinct_id, read_feedback
from sync.log.model import DOOR_FIELD, Door
from tests.support import event

NAMED = instinct_id("correct:先写测试")


def feedback(origin: str = "user-typed", door: Door = Door.COMMAND, **payload: Any) -> Feedback | None:
    extra = {DOOR_FIELD: str(door)}
    return read_feedback(event(1, type="user_feedback", payload=payload, origin=origin, extra=extra))


@pytest.mark.parametrize("verdict", ["correction", "rejection"])
def test_a_correction_is_its_text_without_the_spaces_around_it(verdict: str) -> None:
    assert feedback(feedback_type=verdict, content=" 先写 测试！\n") == Feedback(NAMED, "correct", "先写 测试！")


def test_an_approval_of_what_was_corrected_speaks_against_it() -> None:
    assert feedback(feedback_type="approval", content="先写测试") == Feedback(NAMED, "hurt")


@pytest.mark.parametrize(("verdict", "effect"), [("approval", "helped"), ("rejection", "hurt"), ("correction", "hurt")])
def test_a_verdict_on_a_named_instinct_counts_for_it(verdict: str, effect: str) -> None:
    found = feedback(feedback_type=verdict, instinct_id="ins_1", content="随便")
    assert found is not None
    assert (found.instinct_id, found.effect, found.text) == ("ins_1", effect, "")


@pytest.mark.parametrize(
    "payload", [{}, {"feedback_type": "correction"}, {"feedback_type": "correction", "content": "！？"},
                {"feedback_type": "praise", "content": "好"}, {"feedback_type": ["correction"], "content": 3}],
)  # fmt: skip
def test_feedback_without_words_of_a_correction_says_nothing(payload: dict[str, Any]) -> None:
    assert feedback(**payload) is None


@pytest.mark.parametrize("origin", ["model-written", "peer"])
def test_words_of_a_model_or_of_another_device_are_no_correction(origin: str) -> None:
    assert feedback(origin, feedback_type="correction", content="先写测试") is None


@pytest.mark.parametrize("door", [Door.PROGRAM, Door.IMPORT])
def test_a_program_or_a_file_proposes_a_correction_and_judges_none(door: Door) -> None:
    assert feedback(door=door, feedback_type="correction", content="先写测试") == Feedback(NAMED, "correct", "先写测试")
    assert feedback(door=door, feedback_type="approval", content="先写测试") is None
    assert feedback(door=door, feedback_type="rejection", instinct_id="ins_1") is None
    assert feedback(door=door, feedback_type="approval", instinct_id="ins_1") is None


def test_the_id_has_the_day_of_the_first_event_and_follows_from_the_words() -> None:
    assert correction_id("2026-02-25", NAMED) == f"pat-20260225-c{NAMED[4:10]}"
