"""What a hook asks, keeps and shows."""

import json

import pytest

from bridge.hooks.decision import MAX_ARGUMENT, MAX_TEXT, accepted_lesson, event_key, requests_for
from bridge.hooks.event import HookEvent

CALL = HookEvent(
    "claude", "PostToolUseFailure", "tool_failed", "s", "/p", "Bash", {"command": "npm test"}, error="boom"
)
FOUND = {"lesson": {"id": "err-1", "text": "cure"}, "reason": "similar"}


def test_a_failed_tool_is_matched_and_kept() -> None:
    asked = requests_for(CALL._replace(exit_code=1))
    call = {"tool": "Bash", "input": {"command": "npm test"}, "project": "/p", "sessionId": "s", "error": "boom"}
    assert asked.match == asked.capture == call | {"exitCode": 1}
    assert asked.session is None


def test_a_tool_that_succeeded_is_kept_with_exit_code_0() -> None:
    asked = requests_for(CALL._replace(kind="after_tool", error="", output="ok"))
    assert asked.capture is not None
    assert asked.match == asked.capture
    assert asked.capture["exitCode"] == 0
    assert "error" not in asked.capture


def test_before_a_tool_nothing_is_kept() -> None:
    asked = requests_for(CALL._replace(kind="before_tool", error=""))
    assert asked.match is not None
    assert asked.capture is None


def test_an_interrupt_by_the_user_teaches_nothing() -> None:
    assert requests_for(CALL._replace(interrupted=True)) == (None, None, None)


def test_a_session_start_asks_for_the_notes_of_the_project() -> None:
    assert requests_for(HookEvent("claude", "SessionStart", "session_start", "s", "/p")).session == {
        "projectPath": "/p"
    }
    assert requests_for(HookEvent("claude", "SessionStart", "session_start", "s")) == (None, None, None)


def test_long_texts_are_cut_and_what_cannot_be_stored_is_replaced() -> None:
    event = CALL._replace(
        input={"content": "a" * 50_000, "edits": [{"a": 1}]}, error="x\0" + "y " * 25_000 + "\ud800end"
    )
    capture = requests_for(event).capture
    assert capture is not None
    assert len(capture["input"]["content"]) <= MAX_ARGUMENT
    assert capture["input"]["edits"] == '[{"a": 1}]'
    assert len(capture["error"]) <= MAX_TEXT
    assert capture["error"].endswith("?end")
    assert "\0" not in json.dumps(capture)


@pytest.mark.parametrize("end", [" ", "\n"])
def test_a_cut_never_leaves_half_a_word(end: str) -> None:
    token = "ghp_" + "a1B2" * 9
    for offset in range(45):
        text = "x" * offset + end + f"{token}{end}" * 2_000
        output = requests_for(CALL._replace(output=text)).match["output"]  # type: ignore[index]
        assert len(output) <= MAX_TEXT
        assert set(output.split()) <= {"x" * offset, token, "…"}
        assert output.count(token) > (MAX_TEXT - 200) // (len(token) + 1)


def test_a_word_longer_than_what_is_kept_is_left_out() -> None:
    assert requests_for(CALL._replace(error="z" * 50_000)).match["error"].split() == ["…"]  # type: ignore[index]


@pytest.mark.parametrize(("reason", "shown"), [("exact", True), ("command", True), ("similar", False)])
def test_before_a_tool_only_an_exact_match_is_shown(reason: str, *, shown: bool) -> None:
    answer = {**FOUND, "reason": reason}
    assert (accepted_lesson(CALL._replace(kind="before_tool"), answer) is not None) is shown
    assert accepted_lesson(CALL, answer) == ("err-1", "cure")


@pytest.mark.parametrize("answer", [{}, {"lesson": None, "reason": "none"}, {"lesson": {"id": "a", "text": ""}}])
def test_no_lesson_is_no_hint(answer: dict[str, object]) -> None:
    assert accepted_lesson(CALL, answer) is None


def test_equal_events_have_equal_keys_whatever_the_case_of_their_name() -> None:
    assert event_key(CALL) == event_key(CALL._replace(name="postToolUseFailure"))
    assert event_key(CALL) != event_key(CALL._replace(session_id="other"))
    assert event_key(CALL) != event_key(CALL._replace(error="other"))
