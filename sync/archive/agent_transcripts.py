"""Read the transcripts of coding agents into conversations.

    claude-code  `~/.claude/projects/*/*.jsonl`: {type: user|assistant, sessionId, uuid, timestamp, message: {content}}
    codex        `~/.codex/sessions/**/*.jsonl`: {timestamp, type: session_meta|event_msg|response_item, payload}
    cursor       `…/Cursor/User/globalStorage/state.vscdb`: composerData:ID and bubbleId:ID:BUBBLE (type 1 is the user);
                 `~/.cursor/projects/*/agent-transcripts/**/*.jsonl`: {role, message: {content}}

See docs/decisions/053-agent-transcripts.md for where the forms were seen and what counts as the user's words.
"""

import os
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import msgspec

from sync.archive.chat_exports import (
    ROLES,
    ChatMessage,
    ImportedChat,
    build_chat,
    from_iso,
    from_unix_seconds,
    joined_text,
    stripped_text,
)
from sync.archive.model import Skipped, SkippedCounts
from sync.errors import InvalidInput
from sync.log.envelope import DECODE_ERRORS
from sync.system.files import MAX_READ_BYTES, translate_os_errors

MAX_TRANSCRIPT_LINE: Final = 16 * 1024 * 1024  # a longer one is the output of a tool
# What a program puts around its own words: an element whose name no person types, as <system-reminder>.
_ELEMENT: Final = r"<([a-zA-Z]+[-_][\w-]*)(?:\s[^>]*)?>(?:(?!</\1>).)*</\1>\s*"
_BEFORE: Final = re.compile(rf"\s*{_ELEMENT}", re.DOTALL)
_LAST_END: Final = re.compile(r"</([a-zA-Z]+[-_][\w-]*)>\s*\Z")
_QUERY: Final = re.compile(r"<user_query>\s*(.*?)\s*</user_query>", re.DOTALL)
_INJECTED: Final = re.compile(r"# AGENTS\.md instructions for |<INSTRUCTIONS>|\[Request interrupted by user")
_SELECT_KEYS: Final = "select key from cursorDiskKV where key >= 'composerData:' and key < 'composerData;' order by key"
_SELECT_VALUE: Final = "select value from cursorDiskKV where key = ?"
_SELECT_RANGE: Final = "select key, value from cursorDiskKV where key >= ? and key < ?"

_Line = Mapping[str, Any]
_Messages = dict[str, list[ChatMessage]]  # by session


class AgentFormat(msgspec.Struct, frozen=True):
    """The transcripts of one program: the files of a folder, oldest first, and how one of them is read."""

    folders: tuple[str, ...]
    name: re.Pattern[str]  # of a file's path
    read: Callable[[Path, SkippedCounts], Iterator[ImportedChat]]


def read_transcripts(program: str, folder: Path | None, skipped: SkippedCounts) -> list[ImportedChat]:
    """Return the conversations of a program, in its own folders or in another one. Raises InvalidInput, StorageError.

    A message that a resumed session repeats, and a session that two files hold, counts once.
    """
    form, chats, seen = FORMATS[program], dict[str, list[ImportedChat]](), set[str]()
    places = [folder] if folder is not None else [Path(os.path.expandvars(one)).expanduser() for one in form.folders]
    with translate_os_errors(places[0]):
        found = (file for place in places for file in ([place] if place.is_file() else place.rglob("*")))
        files = [file for file in found if form.name.search(file.as_posix()) and file.is_file()]
        for file in sorted(files, key=lambda one: (one.suffix == ".jsonl", one.stat().st_mtime, str(one))):
            for chat in [chat for chat in form.read(file, skipped) if program != "cursor" or chat.chat_id not in chats]:
                messages = [one for turn in chat.turns for one in turn.messages if one.message_id not in seen]
                seen.update(one.message_id for one in messages)
                if messages:
                    own = build_chat(program, chat.chat_id, chat.title, chat.started_at, messages)
                    chats.setdefault(chat.chat_id, []).append(own)
    if not files:
        named = ", ".join(map(str, places))
        raise InvalidInput(f"there is no transcript of {program} in {named}", field="path", hint="Name its folder.")
    return [chat for parts in chats.values() for chat in parts]


def typed_text(text: str) -> str:
    """Return what a person typed of a message; empty if the program wrote all of it."""
    if (query := _QUERY.search(text)) is not None:
        return query[1].strip()
    while (element := _BEFORE.match(text)) is not None:
        text = text[element.end() :]
    if (end := _LAST_END.search(text)) is not None:  # cut by position: a pattern would take quadratic time
        start = max(text.rfind(f"<{end[1]}{mark}", 0, end.start()) for mark in (">", " ", "\n"))
        text = text[:start] if start >= 0 else text
    bare = text.strip()
    return "" if _INJECTED.match(bare) else bare


def _read_lines(path: Path, skipped: SkippedCounts) -> Iterator[tuple[int, _Line]]:
    with path.open("rb") as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_TRANSCRIPT_LINE), b""), 1):
            try:
                value = msgspec.json.decode(line) if line.strip() else {}
            except DECODE_ERRORS:
                value = None
            if isinstance(value, dict):
                yield number, value
            else:
                skipped[Skipped.UNREADABLE] += 1


def _add(messages: list[ChatMessage], message: ChatMessage, skipped: SkippedCounts) -> None:
    """Add a message with the words of its side; the user's are those that a person typed."""
    text = typed_text(message.text) if message.role == "user" else message.text
    if text:
        messages.append(msgspec.structs.replace(message, text=text))
    elif message.text:
        skipped[Skipped.HIDDEN] += 1


def _read_claude_code(path: Path, skipped: SkippedCounts) -> Iterator[ImportedChat]:
    sessions: _Messages = {}
    title = ""
    for number, line in _read_lines(path, skipped):
        role, message, origin = ROLES.get(stripped_text(line.get("type"))), line.get("message"), line.get("origin")
        title = stripped_text(line.get("summary")) or stripped_text(line.get("customTitle")) or title
        if role is None or not isinstance(message, dict):
            continue
        is_human = not isinstance(origin, dict) or origin.get("kind") in (None, "human")
        if line.get("isSidechain") is True:
            skipped[Skipped.SUBAGENTS] += 1
        elif line.get("isMeta") is True or line.get("isCompactSummary") is True or not is_human:
            skipped[Skipped.HIDDEN] += 1
        else:
            session = stripped_text(line.get("sessionId")) or path.stem
            message_id = stripped_text(line.get("uuid")) or f"{session}:{number}"
            text = joined_text(message.get("content"), skipped)
            found = ChatMessage(message_id, role, text, from_iso(line.get("timestamp")))
            _add(sessions.setdefault(session, []), found, skipped)
    for session, messages in sessions.items():
        yield build_chat("claude-code", session, title, None, messages)


def _read_codex(path: Path, skipped: SkippedCounts) -> Iterator[ImportedChat]:
    """Read a rollout: the user's words are its `user_message` events, if it has some."""
    typed, given, answers = list[ChatMessage](), list[ChatMessage](), list[ChatMessage]()
    order: dict[str, int] = {}
    session = ""
    for number, line in _read_lines(path, skipped):
        payload = line.get("payload")
        item = payload if isinstance(payload, dict) else line
        kind = stripped_text(item.get("type"))
        if line.get("type") == "session_meta" and not session:
            session = stripped_text(item.get("id"))
            if item.get("thread_source") == "subagent" or "subagent" in _object(item.get("source")):
                skipped[Skipped.SUBAGENTS] += 1
                return
        is_typed = kind == "user_message"
        role = "user" if is_typed else ROLES.get(stripped_text(item.get("role"))) if kind == "message" else None
        if role is None:
            skipped[Skipped.TOOLS] += kind.endswith("_output")
            continue
        message_id = f"{session or path.stem}:{number}"
        order[message_id] = number
        listed = typed if is_typed else given if role == "user" else answers
        content = item.get("message") if is_typed else item.get("content")
        parts = content if isinstance(content, list) and role == "user" else [content]
        for part in parts:  # each part of the user's is theirs or the program's
            found = ChatMessage(message_id, role, joined_text(part, skipped), from_iso(line.get("timestamp")))
            _add(listed, found, skipped)
    messages = sorted((*(typed or given), *answers), key=lambda one: order[one.message_id])
    yield build_chat("codex", session or path.stem, "", None, messages)


def _read_cursor(path: Path, skipped: SkippedCounts) -> Iterator[ImportedChat]:
    if path.suffix == ".vscdb":
        yield from _read_cursor_database(path, skipped)
        return
    messages = list[ChatMessage]()
    for number, line in _read_lines(path, skipped):
        role, message = ROLES.get(stripped_text(line.get("role"))), line.get("message")
        if role is not None and isinstance(message, dict):
            text = joined_text(message.get("content"), skipped)
            _add(messages, ChatMessage(f"{path.stem}:{number}", role, text, None), skipped)
    written_at = datetime.fromtimestamp(path.stat().st_mtime, UTC)
    yield build_chat("cursor", path.stem, "", written_at, messages)


def _read_cursor_database(path: Path, skipped: SkippedCounts) -> Iterator[ImportedChat]:
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=2.0)) as connection:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_READ_BYTES)
            for (key,) in connection.execute(_SELECT_KEYS).fetchall():
                composer_id = str(key).partition(":")[2]
                (value,) = connection.execute(_SELECT_VALUE, (key,)).fetchone()
                rows = connection.execute(_SELECT_RANGE, (f"bubbleId:{composer_id}:", f"bubbleId:{composer_id};"))
                bubbles = {str(name).rpartition(":")[2]: _decoded(one, skipped) for name, one in rows}
                yield _composer_chat(composer_id, _decoded(value, skipped), bubbles, skipped)
    except sqlite3.DatabaseError as error:
        raise InvalidInput(f"{path.name} is not a readable SQLite database", field="path") from error


def _composer_chat(
    composer_id: str, composer: _Line, bubbles: Mapping[str, _Line], skipped: SkippedCounts
) -> ImportedChat:
    headers = composer.get("fullConversationHeadersOnly")
    inline = composer.get("conversation")
    messages = list[ChatMessage]()
    for header in headers if isinstance(headers, list) and headers else inline if isinstance(inline, list) else []:
        if not isinstance(header, dict):
            skipped[Skipped.UNREADABLE] += 1
            continue
        name = stripped_text(header.get("bubbleId"))
        bubble = bubbles.get(name, header)
        role = {1: "user", 2: "assistant"}.get(bubble["type"] if isinstance(bubble.get("type"), int) else 0)
        text = stripped_text(bubble.get("text"))
        skipped[Skipped.TOOLS] += not text and isinstance(bubble.get("toolFormerData"), dict)
        if role is not None and text:
            _add(messages, ChatMessage(f"{composer_id}:{name}", role, text, from_iso(bubble.get("createdAt"))), skipped)
    started_at = from_unix_seconds(composer.get("createdAt"), 1000)
    return build_chat("cursor", composer_id, stripped_text(composer.get("name")), started_at, messages)


def _object(value: object) -> _Line:
    return value if isinstance(value, dict) else {}


def _decoded(value: object, skipped: SkippedCounts) -> _Line:
    try:
        found = msgspec.json.decode(value) if isinstance(value, bytes | str) else {}
    except DECODE_ERRORS:
        found = None
    if not isinstance(found, dict):
        skipped[Skipped.UNREADABLE] += 1
        return {}
    return found


_CURSOR_DATA: Final = {"darwin": "~/Library/Application Support", "win32": "${APPDATA}"}.get(sys.platform, "~/.config")
FORMATS: Final[Mapping[str, AgentFormat]] = {
    "claude-code": AgentFormat(("~/.claude/projects",), re.compile(r"\.jsonl\Z"), _read_claude_code),
    "codex": AgentFormat(("~/.codex/sessions",), re.compile(r"\.jsonl\Z"), _read_codex),
    "cursor": AgentFormat(
        (f"{_CURSOR_DATA}/Cursor/User/globalStorage", "~/.cursor/projects"),
        re.compile(r"/state\.vscdb\Z|/agent-transcripts/.*\.jsonl\Z"),
        _read_cursor,
    ),
}
