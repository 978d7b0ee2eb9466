"""Parse the conversation exports of Claude and ChatGPT (`conversations.json`) into turns. Pure.

    Claude    [{uuid, name, created_at, chat_messages: [{uuid, sender, text, content: [{type, text}], created_at}]}]
    ChatGPT   [{conversation_id, title, create_time, current_node, mapping: {node: {message, parent, children}}}]

Of a ChatGPT tree the last shown branch counts. Values of an unexpected shape are skipped one by one.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Literal

import msgspec

Program = Literal["claude", "chatgpt"]

MAX_LEADING_VALUES: Final = 10_000  # before the first conversation
MAX_BRANCH_NODES: Final = 100_000  # also ends a cycle
MESSAGE_SEPARATOR: Final = "\n\n"  # between messages of one side
ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant"}


class ChatMessage(msgspec.Struct, frozen=True):
    message_id: str
    role: str  # user, assistant
    text: str
    sent_at: datetime | None


class ChatTurn(msgspec.Struct, frozen=True):
    """A question and its answer: at least one message. Either side may be empty."""

    messages: tuple[ChatMessage, ...]

    @property
    def turn_id(self) -> str:
        """Return the id of the first message."""
        return self.messages[0].message_id

    @property
    def question(self) -> str:
        return MESSAGE_SEPARATOR.join(message.text for message in self.messages if message.role == "user")

    @property
    def answer(self) -> str:
        return MESSAGE_SEPARATOR.join(message.text for message in self.messages if message.role == "assistant")

    @property
    def asked_at(self) -> datetime | None:
        return next((message.sent_at for message in self.messages if message.sent_at is not None), None)

    def lengths(self) -> Iterator[tuple[int, int]]:
        """Yield the lengths of question and answer after each message."""
        asked = answered = 0
        for message in self.messages:
            if message.role == "user":
                asked += len(message.text) + (len(MESSAGE_SEPARATOR) if asked else 0)
            else:
                answered += len(message.text) + (len(MESSAGE_SEPARATOR) if answered else 0)
            yield asked, answered


class ImportedChat(msgspec.Struct, frozen=True):
    """One conversation, oldest turn first."""

    program: Program
    chat_id: str
    title: str
    started_at: datetime | None
    turns: tuple[ChatTurn, ...]


def read_chats(listed: Iterable[object]) -> Iterator[ImportedChat]:
    """Yield the conversations of an export; none if the first `MAX_LEADING_VALUES` values are no conversations."""
    any_found = False
    for number, value in enumerate(listed):
        chat = _parse_chat(value) if isinstance(value, dict) else None
        if chat is not None and chat.turns:
            any_found = True
            yield chat
        elif not any_found and number >= MAX_LEADING_VALUES:
            return


def _parse_chat(value: Mapping[str, Any]) -> ImportedChat | None:
    if isinstance(value.get("mapping"), dict):
        program: Program = "chatgpt"
        chat_id = _stripped_text(value.get("conversation_id")) or _stripped_text(value.get("id"))
        started_at = _from_unix_seconds(value.get("create_time"))
        messages, title = _chatgpt_messages(value), _stripped_text(value.get("title"))
    elif isinstance(value.get("chat_messages"), list):
        program = "claude"
        chat_id, started_at = _stripped_text(value.get("uuid")), _from_iso(value.get("created_at"))
        messages, title = _claude_messages(value), _stripped_text(value.get("name"))
    else:
        return None
    return ImportedChat(program, chat_id, title, started_at, tuple(_group_turns(messages))) if chat_id else None


def _group_turns(messages: Iterator[ChatMessage]) -> Iterator[ChatTurn]:
    """Group messages into turns: a question with the answers that follow it."""
    group: list[ChatMessage] = []
    for message in messages:
        if group and message.role == "user" and group[-1].role == "assistant":
            yield ChatTurn(tuple(group))
            group = []
        group.append(message)
    if group:
        yield ChatTurn(tuple(group))


def _claude_messages(value: Mapping[str, Any]) -> Iterator[ChatMessage]:
    for number, item in enumerate(value["chat_messages"]):
        role = ROLES.get(_stripped_text(item.get("sender"))) if isinstance(item, dict) else None
        if role is None:
            continue
        parts = item.get("content")
        blocks = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        joined = "\n\n".join(_stripped_text(part.get("text")) for part in blocks if part.get("type") == "text")
        text = joined.strip() or _stripped_text(item.get("text"))
        if text:
            yield ChatMessage(
                _stripped_text(item.get("uuid")) or str(number), role, text, _from_iso(item.get("created_at"))
            )


def _chatgpt_messages(value: Mapping[str, Any]) -> Iterator[ChatMessage]:
    for node_id, item in _branch(value["mapping"], value.get("current_node")):
        author, content = item.get("author"), item.get("content")
        role = ROLES.get(_stripped_text(author.get("role"))) if isinstance(author, dict) else None
        if role is None or not isinstance(content, dict) or not _is_visible(item):
            continue
        parts = content.get("parts")
        listed = parts if isinstance(parts, list) else [content.get("text")]
        text = "\n\n".join(part for part in listed if isinstance(part, str)).strip()
        if text:
            yield ChatMessage(
                _stripped_text(item.get("id")) or node_id, role, text, _from_unix_seconds(item.get("create_time"))
            )


def _is_visible(message: Mapping[str, Any]) -> bool:
    """Return False for messages that only the model saw, or that it sent to a tool."""
    metadata = message.get("metadata")
    hidden = isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True
    return not hidden and message.get("recipient") in (None, "all")


def _branch(mapping: Mapping[str, Any], leaf: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the messages from the root to a leaf; without a leaf, to the newest node."""
    node = leaf if isinstance(leaf, str) and leaf in mapping else next(reversed(list(mapping)), None)
    messages: list[tuple[str, Mapping[str, Any]]] = []
    seen: set[str] = set()
    while isinstance(node, str) and node not in seen and len(seen) < MAX_BRANCH_NODES:
        seen.add(node)
        value = mapping.get(node)
        if not isinstance(value, dict):
            break
        if isinstance(value.get("message"), dict):
            messages.append((node, value["message"]))
        node = value.get("parent")
    return iter(messages[::-1])


def _stripped_text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _from_unix_seconds(value: object) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _from_iso(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
        return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # OverflowError at either end of the calendar
        return None
