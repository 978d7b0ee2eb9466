"""Find cures in tool calls, without a model. Pure.

An error, then a command or an edit within ten calls, then no same error in the next six: that action may be its cure.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sync.lessons.commands import changes_something, is_edit, normalise_command

CURE_WINDOW: Final = 10  # calls after the error in which a cure is looked for
QUIET_CALLS: Final = 6  # calls after the cure without the same error
_WORD: Final = re.compile(r"[a-z0-9_@-]{3,}|[\u4e00-\u9fff]{2}", re.IGNORECASE)
_COMMON: Final = frozenset(
    [
        "error",
        "the",
        "and",
        "not",
        "for",
        "with",
        "from",
        "file",
        "line",
        "name",
        "module",
        "failed",
        "cannot",
        "could",
        "python",
        "python3",
        "node",
        "npm",
        "run",
        "install",
        "pip",
        "src",
        "test",
        "tests",
        "main",
    ]
)


@dataclass(frozen=True, slots=True)
class LessonCall:
    """A captured call. `error_key` is None for one that succeeded."""

    position: int
    session_id: str
    project_id: str
    tool: str
    command: str
    file_path: str
    error_key: str | None = None
    error_type: str = ""
    message: str = ""
    language: str = ""

    @property
    def is_action(self) -> bool:
        return self.error_key is None and (is_edit(self.tool, self.file_path) or changes_something(self.command))

    @property
    def action_text(self) -> str:
        return normalise_command(self.command) or self.file_path


@dataclass(frozen=True, slots=True)
class MinedCure:
    """An error and the action after which it did not come back. `shares_term`: the action names a word of the error."""

    error: LessonCall
    cure: LessonCall
    shares_term: bool


def mine(calls: Sequence[LessonCall], *, is_ended: bool = False) -> list[MinedCure]:
    """The cures in the calls of one session, in order.

    In a session that `is_ended`, fewer than six quiet calls suffice if the failed command succeeded after the cure.
    """
    last_at = {call.error_key: at for at, call in enumerate(calls) if call.error_key is not None}
    found = (_cure_after(calls, at, is_ended=is_ended) for at in sorted(last_at.values()))
    return [mined for mined in found if mined is not None]


def possible_cure(calls: Sequence[LessonCall], at: int) -> LessonCall | None:
    """The action after the error `at` that may be its cure, whether or not the error is over."""
    chosen = _chosen_action(calls, at)
    return None if chosen is None else calls[chosen[0]]


def _cure_after(calls: Sequence[LessonCall], at: int, *, is_ended: bool) -> MinedCure | None:
    found = _chosen_action(calls, at)
    if found is None:
        return None
    chosen, shares_term = found
    is_quiet = len(calls) - chosen - 1 >= QUIET_CALLS
    reruns = _reruns(calls, at)
    succeeded = any(place > chosen and calls[place].error_key is None for place in reruns)
    if not is_quiet and not (is_ended and succeeded):
        return None
    return MinedCure(calls[at], calls[chosen], shares_term)


def _chosen_action(calls: Sequence[LessonCall], at: int) -> tuple[int, bool] | None:
    """The place of the likeliest cure of an error, and whether it names a word of the error."""
    error, reruns = calls[at], _reruns(calls, at)
    actions = [place for place in _window(calls, at) if calls[place].is_action and place not in reruns]
    if not actions:
        return None
    sharing = [place for place in actions if _share_term(error, calls[place])]
    before_rerun = [place for place in actions if reruns and place < reruns[0]]
    return (sharing or before_rerun[-1:] or actions)[0], bool(sharing)


def _reruns(calls: Sequence[LessonCall], at: int) -> list[int]:
    failed = normalise_command(calls[at].command)
    return [place for place in _window(calls, at) if failed and normalise_command(calls[place].command) == failed]


def _window(calls: Sequence[LessonCall], at: int) -> range:
    return range(at + 1, min(len(calls), at + 1 + CURE_WINDOW))


def _share_term(error: LessonCall, action: LessonCall) -> bool:
    return bool(_terms(f"{error.error_type} {error.message}") & _terms(action.action_text))


def _terms(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)} - _COMMON
