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


def _cure_after(calls: Sequence[LessonCall], at: int, *, is_ended: bool) -> MinedCure | None:
    error = calls[at]
    window = range(at + 1, min(len(calls), at + 1 + CURE_WINDOW))
    failed = normalise_command(error.command)
    reruns = [place for place in window if failed and normalise_command(calls[place].command) == failed]
    actions = [place for place in window if calls[place].is_action and place not in reruns]
    if not actions:
        return None
    sharing = [place for place in actions if _share_term(error, calls[place])]
    before_rerun = [place for place in actions if reruns and place < reruns[0]]
    chosen = (sharing or before_rerun[-1:] or actions)[0]
    is_quiet = len(calls) - chosen - 1 >= QUIET_CALLS
    succeeded = any(place > chosen and calls[place].error_key is None for place in reruns)
    if not is_quiet and not (is_ended and succeeded):
        return None
    return MinedCure(error, calls[chosen], bool(sharing))


def _share_term(error: LessonCall, action: LessonCall) -> bool:
    return bool(_terms(f"{error.error_type} {error.message}") & _terms(action.action_text))


def _terms(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)} - _COMMON
