"""What a hook reports, whichever program reports it. Standard library only, as everything that `hook` runs.

No dataclasses here: `dataclasses` imports `inspect`, which takes longer than the work with a sidecar.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

EventKind = Literal["session_start", "before_tool", "after_tool", "tool_failed"]

SHELL: Final = "Bash"  # what the shell tool of every host is called here
INTERRUPT_CODES: Final = frozenset({130, 143, -2, -15})  # SIGINT, SIGTERM: the user ended the command


class HookEvent(NamedTuple):
    """One call of a hook.

    `name`: the host's name of the event. `input`: the tool's arguments. `output`: what a shell command printed.
    `interrupted`: the user stopped or refused the tool, so its failure says nothing. `repeats`: the session goes on
    with what it was given before.
    """

    host: str
    name: str
    kind: EventKind
    session_id: str = ""
    project: str | None = None
    tool: str = ""
    input: Mapping[str, Any] = {}
    output: str = ""
    error: str = ""
    exit_code: int | None = None
    interrupted: bool = False
    repeats: bool = False


class AgentHost(NamedTuple):
    """A program that runs hooks. Another host is another value of this type and one row in `hosts`.

    `parse` returns None for an event that this program does nothing with. `answer` is the JSON that puts a text before
    the model; None if the host has no place for it. `entries` are the settings of the hooks for a command, by event.
    `settings`: other members that the settings file needs. `next_step`: what the user still has to do.
    """

    name: str
    title: str
    sends: Callable[[Mapping[str, Any]], bool]
    parse: Callable[[Mapping[str, Any], Mapping[str, str]], HookEvent | None]
    answer: Callable[[HookEvent, str], dict[str, Any] | None]
    user_file: Callable[[Path, Mapping[str, str]], Path]
    project_file: str
    entries: Callable[[str], dict[str, dict[str, Any]]]
    settings: Mapping[str, Any]
    next_step: str


def text_of(value: object) -> str:
    """A value as text: strings as they are, anything else but a missing value as nothing."""
    return value if isinstance(value, str) else ""


def object_of(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def joined(*texts: object) -> str:
    """The texts that are not blank, one after the other."""
    return "\n".join(text.strip("\n") for text in map(text_of, texts) if text.strip())
