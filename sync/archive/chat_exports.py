"""What Claude and ChatGPT hand out of a person's conversations (`conversations.json`), as turns. Pure.

    Claude    [{uuid, name, created_at, chat_messages: [{uuid, sender: human | assistant, text, content: [{type, text}],
              created_at}]}]
    ChatGPT   [{conversation_id, title, create_time, current_node, mapping: {node: {message: {id, author: {role},
              content: {parts}, create_time}, parent, children}}}]

Decisions
    Of a ChatGPT tree the branch that was last shown counts: from `current_node` up to the root.
    What tools, the system and hidden messages said is no conversation. Several messages of one side in a row are one.
    Whatever is not shaped as expected is left out, alone: an export of years holds shapes of years.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

Program = Literal["claude", "chatgpt"]

MAX_LEADING_VALUES: Final = 10_000  # values before the first conversation
MAX_BRANCH_NODES: Final = 100_000  # nodes on one branch; a tree that leads in a circle ends here
MESSAGE_SEPARATOR: Final = "\n\n"  # the messages of one side
ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class ChatMessage:
    message_id: str
    role: str  # user, assistant
    text: str
    sent_at: datetime | None


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """A question and what was answered to it, in one message at least; either may be empty."""

    messages: tuple[ChatMessage, ...]

    @property
    def turn_id(self) -> str:
        """That of its first message."""
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
        """Those of question and answer after each message."""
        asked = answered = 0
        for message in self.messages:
            if message.role == "user":
                asked += len(message.text) + (len(MESSAGE_SEPARATOR) if asked else 0)
            else:
                answered += len(message.text) + (len(MESSAGE_SEPARATOR) if answered else 0)
            yield asked, answered


@dataclass(frozen=True, slots=True)
class ImportedChat:
    """One conversation, oldest turn first."""

    program: Program
    chat_id: str
    title: str
    started_at: datetime | None
    turns: tuple[ChatTurn, ...]


def read_chats(listed: Iterable[object]) -> Iterator[ImportedChat]:
    """The conversations of either export; empty if the first `MAX_LEADING_VALUES` values show that it is neither."""
    found = False
    for number, value in enumerate(listed):
        talk = _parse_chat(value) if isinstance(value, dict) else None
        if talk is not None and talk.turns:
            found = True
            yield talk
        elif not found and number >= MAX_LEADING_VALUES:
            return


def _parse_chat(value: Mapping[str, Any]) -> ImportedChat | None:
    if isinstance(value.get("mapping"), dict):
        talk_id, begun = (
            _stripped_text(value.get("conversation_id")) or _stripped_text(value.get("id")),
            _from_unix_seconds(value.get("create_time")),
        )
        program: Program = "chatgpt"
        messages, title = _chatgpt_messages(value), _stripped_text(value.get("title"))
    elif isinstance(value.get("chat_messages"), list):
        talk_id, begun = _stripped_text(value.get("uuid")), _from_iso(value.get("created_at"))
        program = "claude"
        messages, title = _claude_messages(value), _stripped_text(value.get("name"))
    else:
        return None
    return ImportedChat(program, talk_id, title, begun, tuple(_group_turns(messages))) if talk_id else None


def _group_turns(messages: Iterator[ChatMessage]) -> Iterator[ChatTurn]:
    """Messages of one side in a row together, a question with the answers behind it."""
    found: list[ChatMessage] = []
    for message in messages:
        if found and message.role == "user" and found[-1].role == "assistant":
            yield ChatTurn(tuple(found))
            found = []
        found.append(message)
    if found:
        yield ChatTurn(tuple(found))


def _claude_messages(value: Mapping[str, Any]) -> Iterator[ChatMessage]:
    for number, item in enumerate(value["chat_messages"]):
        side = ROLES.get(_stripped_text(item.get("sender"))) if isinstance(item, dict) else None
        if side is None:
            continue
        parts = item.get("content")
        blocks = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        said = "\n\n".join(_stripped_text(part.get("text")) for part in blocks if part.get("type") == "text")
        text = said.strip() or _stripped_text(item.get("text"))
        if text:
            yield ChatMessage(
                _stripped_text(item.get("uuid")) or str(number), side, text, _from_iso(item.get("created_at"))
            )


def _chatgpt_messages(value: Mapping[str, Any]) -> Iterator[ChatMessage]:
    for node_id, item in _branch(value["mapping"], value.get("current_node")):
        author, content = item.get("author"), item.get("content")
        side = ROLES.get(_stripped_text(author.get("role"))) if isinstance(author, dict) else None
        if side is None or not isinstance(content, dict) or not _is_visible(item):
            continue
        parts = content.get("parts")
        listed = parts if isinstance(parts, list) else [content.get("text")]
        text = "\n\n".join(part for part in listed if isinstance(part, str)).strip()
        if text:
            yield ChatMessage(
                _stripped_text(item.get("id")) or node_id, side, text, _from_unix_seconds(item.get("create_time"))
            )


def _is_visible(message: Mapping[str, Any]) -> bool:
    """Not one that only the model saw, or that it sent to a tool."""
    told = message.get("metadata")
    hidden = isinstance(told, dict) and told.get("is_visually_hidden_from_conversation") is True
    return not hidden and message.get("recipient") in (None, "all")


def _branch(mapping: Mapping[str, Any], leaf: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The messages from the root to a leaf; to the newest node, where no leaf is named."""
    node = leaf if isinstance(leaf, str) and leaf in mapping else next(reversed(list(mapping)), None)
    found: list[tuple[str, Mapping[str, Any]]] = []
    seen: set[str] = set()
    while isinstance(node, str) and node not in seen and len(seen) < MAX_BRANCH_NODES:
        seen.add(node)
        value = mapping.get(node)
        if not isinstance(value, dict):
            break
        if isinstance(value.get("message"), dict):
            found.append((node, value["message"]))
        node = value.get("parent")
    return iter(found[::-1])


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
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # the latter at either end of the calendar
        return None
