"""Events of coding agents that are not as documented: nothing raises, and the sidecar accepts what a hook sends.

A hook fails open, so an exception or a refusal is silent: the call would only be missing from the lessons.
"""

import copy
import json
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec

from bridge.hooks.decision import MAX_ARGUMENT, MAX_ARGUMENTS, MAX_TEXT, event_key, requests_for
from bridge.hooks.hosts import HOSTS, sender_of
from bridge.methods.memory.lessons import CaptureParams, MatchParams
from bridge.methods.memory.notes import NotesSession
from tests.fuzz.campaign import Campaign, FuzzCases

CLAUDE: Final = {
    "session_id": "790c46a6",
    "transcript_path": "/home/u/.claude/projects/p/790c46a6.jsonl",
    "cwd": "/home/u/project",
    "hook_event_name": "PostToolUse",
    "source": "startup",
    "tool_name": "Bash",
    "tool_input": {"command": "npm test", "timeout": 1000},
    "tool_response": {"stdout": "ok", "stderr": "warn", "interrupted": False},
    "tool_use_id": "toolu_1",
    "error": "Exit code 1\n1 failed",
    "is_interrupt": False,
}
CURSOR: Final = {
    "conversation_id": "conv-1",
    "session_id": "conv-1",
    "generation_id": "gen-1",
    "cursor_version": "3.0.1",
    "workspace_roots": ["/home/u/project"],
    "user_email": "u@example.com",
    "hook_event_name": "postToolUse",
    "tool_name": "Shell",
    "tool_input": {"command": "npm test"},
    "tool_output": '{"exitCode":1,"stdout":"1 failed"}',
    "tool_use_id": "t1",
    "cwd": "/home/u/project",
    "duration": 5432,
    "error_message": "timed out",
    "failure_type": "timeout",
    "is_interrupt": False,
    "command": "npm test",
    "output": "1 failed",
}
NAMES: Final = ("SessionStart", "PreToolUse", "PostToolUse", "PostToolUseFailure", "afterShellExecution", "Stop", "")
ODD: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 130, 2**70, 1.5, float("1e308"), "", " ", "\0", "\ud800", "\u202e", "记" * 9_000),
    *("x" * 70_000, "a b " * 9_000, "{", '{"exitCode": "1"}', "[" * 50_000, '{"stdout": {"a": 1}}', "Exit code 99999"),
    *("Exit code " + "9" * 5_000, [], [None], ["/a", "/b"], {}, {"": ""}, {"command": None}, {"stdout": ["a"]}),
    {f"key {number}": "v" * 3_000 for number in range(60)},
    {"k" * 5_000: {"nested": [{"deep": "x" * 3_000}]}},
)


def hostile_event(chance: Random) -> dict[str, Any]:
    """An event of either host with some of its fields odd, missing or of the other host."""
    first, second = chance.sample((CLAUDE, CURSOR), 2)
    event: dict[str, Any] = copy.deepcopy(first)
    name = chance.choice(NAMES)
    event["hook_event_name"] = name if chance.random() < 0.5 else name[:1].lower() + name[1:]
    for field in chance.sample(sorted(event), chance.randint(0, 4)):
        event[field] = chance.choice(ODD)
    for field in chance.sample(sorted(event), chance.randint(0, 3)):
        del event[field]
    for field in chance.sample(sorted(second), chance.randint(0, 3)):
        event.setdefault(field, second[field])
    return event


async def send_events(cases: FuzzCases, folder: Path) -> None:
    del folder
    limit = MAX_ARGUMENTS * (MAX_ARGUMENT + 100) + 2 * MAX_TEXT + 10_000
    for case in cases:
        payload = json.loads(json.dumps(hostile_event(case.chance)))
        host = sender_of(payload)
        event = None if host is None else host.parse(payload, {})
        if event is None:
            continue
        assert event_key(event)
        json.dumps(HOSTS[event.host].answer(event, "text"))
        requests = requests_for(event)
        for params, accepted in (
            (requests.match, MatchParams),
            (requests.capture, CaptureParams),
            (requests.session, NotesSession),
        ):
            if params is not None:
                sent = json.dumps(params, ensure_ascii=False).encode()
                assert len(sent.decode()) <= limit
                msgspec.json.decode(sent, type=accepted)


HOOKS: Final = Campaign("hooks", full=200_000, sample=200, attack=send_events)
