"""Cures in tool calls: found after six quiet calls, and not where the error came back."""

from dataclasses import replace

from sync.lessons.mining import LessonCall, mine

CALL = LessonCall(1, "s1", "proj_a", "Bash", "ls", "")
ERROR = replace(CALL, command="pytest", error_key="k", error_type="ModuleNotFoundError", message="no module requests")
CURE = replace(CALL, command="pip install requests")


def test_an_action_before_six_quiet_calls_is_a_cure() -> None:
    (found,) = mine([ERROR, CURE, *[CALL] * 6])
    assert (found.cure, found.shares_term) == (CURE, True)
    assert mine([ERROR, CURE, *[CALL] * 5]) == []


def test_an_error_that_comes_back_has_no_cure_yet() -> None:
    assert mine([ERROR, CURE, CALL, CALL, ERROR, CALL]) == []


def test_an_action_after_ten_calls_is_no_cure() -> None:
    assert mine([ERROR, *[CALL] * 10, CURE, *[CALL] * 6]) == []


def test_in_an_ended_session_the_command_has_to_succeed_after_the_cure() -> None:
    assert mine([ERROR, CURE], is_ended=True) == []
    (found,) = mine([ERROR, CURE, replace(CALL, command="pytest")], is_ended=True)
    assert found.cure == CURE
