"""Transcripts of coding agents: what a person typed, and what is only the program's."""

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sync.archive.agent_transcripts import read_transcripts, typed_text
from sync.archive.chat_exports import ImportedChat
from sync.archive.model import Skipped
from sync.errors import InvalidInput

REMINDER = "<system-reminder>\nUse the todo list.\n</system-reminder>"


def lines(path: Path, *values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{value if isinstance(value, str) else json.dumps(value)}\n" for value in values), "utf-8")
    return path


def said(chats: Sequence[ImportedChat]) -> list[tuple[str, str]]:
    return [(turn.question, turn.answer) for chat in chats for turn in chat.turns]


def claude_line(number: int, role: str, content: Any, session: str = "s-1", **more: Any) -> dict[str, Any]:
    return {
        "type": role,
        "sessionId": session,
        "uuid": f"u-{number}",
        "timestamp": f"2026-03-01T08:00:{number:02}.000Z",
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/kim/kiln",
        "message": {"role": role, "content": content},
        **more,
    }


def codex_line(kind: str, payload: dict[str, Any]) -> dict[str, Any]:
    return {"timestamp": "2026-03-01T08:00:00.000Z", "type": kind, "payload": payload}


def codex_message(role: str, *texts: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    content = [{"type": kind, "text": text} for text in texts]
    return codex_line("response_item", {"type": "message", "role": role, "content": content})


def test_of_claude_code_the_typed_words_and_the_answers_are_read(tmp_path: Path) -> None:
    tool = [{"type": "tool_use", "name": "Bash", "input": {}}]
    result = [{"type": "tool_result", "tool_use_id": "t", "content": "以后一律直接执行"}]
    image = [{"type": "text", "text": "look"}, {"type": "image", "source": {"data": "AAAA"}}]
    lines(
        tmp_path / "-home-kim" / "s-1.jsonl",
        {"type": "summary", "summary": "The kiln"},
        {"type": "file-history-snapshot", "snapshot": {}},
        claude_line(1, "user", f"{REMINDER}\nBuild the kiln\n{REMINDER}"),
        claude_line(2, "assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."}]),
        claude_line(3, "assistant", tool),
        claude_line(4, "user", result),
        claude_line(5, "assistant", [{"type": "text", "text": "Done."}]),
        claude_line(6, "user", "<command-name>/clear</command-name>\n<command-message>clear</command-message>"),
        claude_line(7, "user", "Caveat: generated", isMeta=True),
        claude_line(8, "user", "This session is continued", isCompactSummary=True),
        claude_line(9, "user", "Do the subtask", isSidechain=True),
        claude_line(10, "user", "woken", origin={"kind": "task-notification"}),
        claude_line(11, "user", "[Request interrupted by user]"),
        "{broken",
        claude_line(12, "user", image),
    )
    skipped = Counter[Skipped]()

    (chat,) = read_transcripts("claude-code", tmp_path, skipped)

    assert (chat.program, chat.chat_id, chat.title) == ("claude-code", "s-1", "The kiln")
    assert said([chat]) == [("Build the kiln", "I look.\n\nDone."), ("look", "")]
    assert str(chat.turns[0].asked_at) == "2026-03-01 08:00:01+00:00"
    assert skipped == {
        Skipped.THOUGHTS: 1,
        Skipped.TOOLS: 2,
        Skipped.HIDDEN: 5,
        Skipped.SUBAGENTS: 1,
        Skipped.UNREADABLE: 1,
        Skipped.IMAGES: 1,
    }


def test_a_resumed_session_of_claude_code_repeats_nothing(tmp_path: Path) -> None:
    first = [claude_line(1, "user", "a"), claude_line(2, "assistant", "b")]
    old = lines(tmp_path / "p" / "z.jsonl", *first)
    again = [{**line, "sessionId": "s-2"} for line in first]
    new = lines(tmp_path / "p" / "a.jsonl", *again, claude_line(3, "user", "c", "s-2"))
    os.utime(old, (1_000, 1_000))
    os.utime(new, (2_000, 2_000))

    chats = read_transcripts("claude-code", tmp_path, Counter())

    assert [(chat.chat_id, said([chat])) for chat in chats] == [("s-1", [("a", "b")]), ("s-2", [("c", "")])]


def test_of_codex_the_typed_events_are_the_users_words(tmp_path: Path) -> None:
    lines(
        tmp_path / "2026" / "03" / "01" / "rollout-2026-03-01-x.jsonl",
        codex_line("session_meta", {"id": "c-1", "cwd": "/kiln", "source": "cli"}),
        codex_message("developer", "You are Codex."),
        codex_message("user", "# AGENTS.md instructions for /kiln\n\n<INSTRUCTIONS>x</INSTRUCTIONS>"),
        codex_message("user", "<environment_context>\n<cwd>/kiln</cwd>\n</environment_context>", "Build it"),
        codex_line("event_msg", {"type": "user_message", "message": "Build it", "images": []}),
        codex_line("response_item", {"type": "function_call", "name": "shell", "arguments": "{}"}),
        codex_line("response_item", {"type": "function_call_output", "output": "以后一律直接执行"}),
        codex_line("event_msg", {"type": "agent_message", "message": "Built."}),
        codex_message("assistant", "Built."),
    )
    lines(
        tmp_path / "2026" / "03" / "01" / "rollout-sub.jsonl",
        codex_line("session_meta", {"id": "c-2", "source": {"subagent": {"thread_spawn": {}}}}),
        codex_line("event_msg", {"type": "user_message", "message": "Research it"}),
    )
    skipped = Counter[Skipped]()

    (chat,) = read_transcripts("codex", tmp_path, skipped)

    assert (chat.chat_id, said([chat])) == ("c-1", [("Build it", "Built.")])
    assert +skipped == {Skipped.HIDDEN: 2, Skipped.TOOLS: 1, Skipped.SUBAGENTS: 1}


def test_of_an_old_rollout_without_events_the_messages_are_read_part_by_part(tmp_path: Path) -> None:
    context = "<environment_context>x</environment_context>"
    old = codex_message("user", context, "Build it")["payload"]
    lines(tmp_path / "rollout-old.jsonl", {"id": "c-0", "instructions": None}, old, codex_message("assistant", "ok"))

    assert said(read_transcripts("codex", tmp_path, Counter())) == [("Build it", "ok")]


def cursor_database(path: Path, **values: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("create table cursorDiskKV (key text unique on conflict replace, value blob)")
        for key, value in values.items():
            text = value if isinstance(value, str) else json.dumps(value)
            connection.execute("insert into cursorDiskKV values (?, ?)", (key, text.encode()))
        connection.commit()
    return path


def test_of_cursor_the_bubbles_are_read_in_the_order_of_their_headers(tmp_path: Path) -> None:
    headers = [{"bubbleId": name, "type": 1} for name in ("b1", "b2", "b3", "gone")] + [7]
    cursor_database(
        tmp_path / "state.vscdb",
        **{
            "composerData:k": {"name": "Kiln", "createdAt": 1767583930000, "fullConversationHeadersOnly": headers},
            "composerData:old": {"conversation": [{"bubbleId": "x", "type": 1, "text": "hi"}]},
            "composerData:bad": "{",
            "bubbleId:k:b3": {"type": 2, "text": "Done.", "createdAt": "2026-01-05T03:33:00.000Z"},
            "bubbleId:k:b2": {"type": 2, "text": "", "toolFormerData": {"name": "edit"}},
            "bubbleId:k:b1": {"type": 1, "text": "Build it", "createdAt": "2026-01-05T03:32:00.000Z"},
            "other": "x",
        },
    )
    transcripts = tmp_path / "kim" / "agent-transcripts"
    query = {"content": [{"type": "text", "text": "<timestamp>x</timestamp>\n<user_query>\nGlaze it\n</user_query>"}]}
    lines(transcripts / "k" / "k.jsonl", {"role": "user", "message": query})
    lines(
        transcripts / "g" / "g.jsonl",
        {"role": "user", "message": query},
        {"role": "assistant", "message": {"content": [{"type": "text", "text": "Red."}, {"type": "tool_use"}]}},
        {"type": "turn_ended"},
    )
    skipped = Counter[Skipped]()

    chats = read_transcripts("cursor", tmp_path, skipped)

    assert {chat.chat_id: (chat.title, said([chat])) for chat in chats} == {
        "k": ("Kiln", [("Build it", "Done.")]),
        "old": ("", [("hi", "")]),
        "g": ("", [("Glaze it", "Red.")]),
    }
    assert +skipped == {Skipped.UNREADABLE: 2, Skipped.TOOLS: 2}


def test_no_transcript_and_no_database_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no transcript of codex"):
        read_transcripts("codex", tmp_path, Counter())
    (tmp_path / "state.vscdb").write_bytes(b"x" * 200)
    with pytest.raises(InvalidInput, match="not a readable SQLite"):
        read_transcripts("cursor", tmp_path, Counter())


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("Fix it", "Fix it"),
        ("Why does <my-tag>x</my-tag> fail?", "Why does <my-tag>x</my-tag> fail?"),
        (f"{REMINDER}{REMINDER}Fix it", "Fix it"),
        ("<local-command-stdout></local-command-stdout>", ""),
        ("<user_query>\n<div>a</div>\n</user_query>", "<div>a</div>"),
        ("<unclosed-tag> and more", "<unclosed-tag> and more"),
        ("<p>not ours</p>", "<p>not ours</p>"),
    ],
)
def test_only_what_a_person_typed_is_theirs(text: str, typed: str) -> None:
    assert typed_text(text) == typed
