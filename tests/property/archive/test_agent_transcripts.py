"""Any JSON value, anywhere in a transcript of a coding agent, costs at most its message."""

import json
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sync.archive.agent_transcripts import read_transcripts
from tests.property.archive.test_chat_exports import JSON, paths, replaced
from tests.unit.archive.test_agent_transcripts import claude_line, codex_line, codex_message, cursor_database

BIG: Final = st.sampled_from([10**400, -(10**30), 1e308])
CLAUDE_CODE: Final = [
    claude_line(1, "user", "a1"),
    claude_line(2, "assistant", [{"type": "text", "text": "a2"}]),
    claude_line(3, "user", [{"type": "text", "text": "a3"}]),
]
CODEX: Final = [
    codex_line("session_meta", {"id": "c-1", "source": "cli"}),
    codex_line("event_msg", {"type": "user_message", "message": "a1"}),
    codex_message("assistant", "a2"),
    codex_line("event_msg", {"type": "user_message", "message": "a3"}),
]
CURSOR: Final = {
    "composerData:k": {
        "createdAt": 1767583930000,
        "fullConversationHeadersOnly": [{"bubbleId": f"b{n}"} for n in (1, 2, 3)],
    },
    "bubbleId:k:b1": {"type": 1, "text": "a1", "createdAt": "2026-01-05T03:32:00.000Z"},
    "bubbleId:k:b2": {"type": 2, "text": "a2"},
    "bubbleId:k:b3": {"type": 1, "text": "a3"},
}


def read_texts(program: str, value: Any) -> set[str]:
    with TemporaryDirectory() as folder:
        if program == "cursor":
            cursor_database(Path(folder) / "state.vscdb", **value)
        else:
            (Path(folder) / "x.jsonl").write_text("\n".join(map(json.dumps, value)), "utf-8")
        chats = read_transcripts(program, Path(folder), Counter())
    return {message.text for chat in chats for turn in chat.turns for message in turn.messages}


@pytest.mark.parametrize(("program", "value"), [("claude-code", CLAUDE_CODE), ("codex", CODEX), ("cursor", CURSOR)])
@given(st.data())
def test_any_value_anywhere_costs_at_most_its_message(program: str, value: Any, data: st.DataObject) -> None:
    assert read_texts(program, value) == {"a1", "a2", "a3"}
    path = data.draw(st.sampled_from(list(paths(value))))

    lost = {"a1", "a2", "a3"} - read_texts(program, replaced(value, path, data.draw(JSON | BIG)))

    is_list_of_all = path[:1] == ("composerData:k",) and len(path) < 3
    assert len(lost) <= (3 if is_list_of_all else 1)
