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

MOST_OTHERS: Final = 10_000  # values before the first conversation
DEEPEST: Final = 100_000  # nodes on one branch; a tree that leads in a circle ends here
BETWEEN: Final = "\n\n"  # the messages of one side
SIDES: Final = {"human": "user", "user": "user", "assistant": "assistant"}


@dataclass(frozen=True, slots=True)
class Message:
    message_id: str
    side: str  # user, assistant
    text: str
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Turn:
    """A question and what was answered to it, in one message at least; either may be empty."""

    messages: tuple[Message, ...]

    @property
    def turn_id(self) -> str:
        """That of its first message."""
        return self.messages[0].message_id

    @property
    def question(self) -> str:
        return BETWEEN.join(message.text for message in self.messages if message.side == "user")

    @property
    def answer(self) -> str:
        return BETWEEN.join(message.text for message in self.messages if message.side == "assistant")

    @property
    def at(self) -> datetime | None:
        return next((message.at for message in self.messages if message.at is not None), None)

    def lengths(self) -> Iterator[tuple[int, int]]:
        """Those of question and answer after each message."""
        asked = answered = 0
        for message in self.messages:
            if message.side == "user":
                asked += len(message.text) + (len(BETWEEN) if asked else 0)
            else:
                answered += len(message.text) + (len(BETWEEN) if answered else 0)
            yield asked, answered


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation, oldest turn first."""

    program: Program
    talk_id: str
    title: str
    begun: datetime | None
    turns: tuple[Turn, ...]


def talks(listed: Iterable[object]) -> Iterator[Talk]:
    """The conversations of either export; nothing where it is neither, which its first `MOST_OTHERS` values show."""
    found = False
    for number, value in enumerate(listed):
        talk = _talk(value) if isinstance(value, dict) else None
        if talk is not None and talk.turns:
            found = True
            yield talk
        elif not found and number >= MOST_OTHERS:
            return


def _talk(value: Mapping[str, Any]) -> Talk | None:
    if isinstance(value.get("mapping"), dict):
        talk_id, begun = (
            _text(value.get("conversation_id")) or _text(value.get("id")),
            _seconds(value.get("create_time")),
        )
        program: Program = "chatgpt"
        messages, title = _of_chatgpt(value), _text(value.get("title"))
    elif isinstance(value.get("chat_messages"), list):
        talk_id, begun = _text(value.get("uuid")), _instant(value.get("created_at"))
        program = "claude"
        messages, title = _of_claude(value), _text(value.get("name"))
    else:
        return None
    return Talk(program, talk_id, title, begun, tuple(_turns(messages))) if talk_id else None


def _turns(messages: Iterator[Message]) -> Iterator[Turn]:
    """Messages of one side in a row together, a question with the answers behind it."""
    found: list[Message] = []
    for message in messages:
        if found and message.side == "user" and found[-1].side == "assistant":
            yield Turn(tuple(found))
            found = []
        found.append(message)
    if found:
        yield Turn(tuple(found))


def _of_claude(value: Mapping[str, Any]) -> Iterator[Message]:
    for number, item in enumerate(value["chat_messages"]):
        side = SIDES.get(_text(item.get("sender"))) if isinstance(item, dict) else None
        if side is None:
            continue
        parts = item.get("content")
        blocks = [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
        said = "\n\n".join(_text(part.get("text")) for part in blocks if part.get("type") == "text")
        text = said.strip() or _text(item.get("text"))
        if text:
            yield Message(_text(item.get("uuid")) or str(number), side, text, _instant(item.get("created_at")))


def _of_chatgpt(value: Mapping[str, Any]) -> Iterator[Message]:
    for node_id, item in _branch(value["mapping"], value.get("current_node")):
        author, content = item.get("author"), item.get("content")
        side = SIDES.get(_text(author.get("role"))) if isinstance(author, dict) else None
        if side is None or not isinstance(content, dict) or not _is_shown(item):
            continue
        parts = content.get("parts")
        listed = parts if isinstance(parts, list) else [content.get("text")]
        text = "\n\n".join(part for part in listed if isinstance(part, str)).strip()
        if text:
            yield Message(_text(item.get("id")) or node_id, side, text, _seconds(item.get("create_time")))


def _is_shown(message: Mapping[str, Any]) -> bool:
    """Not one that only the model saw, or that it sent to a tool."""
    told = message.get("metadata")
    hidden = isinstance(told, dict) and told.get("is_visually_hidden_from_conversation") is True
    return not hidden and message.get("recipient") in (None, "all")


def _branch(mapping: Mapping[str, Any], leaf: object) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The messages from the root to a leaf; to the newest node, where no leaf is named."""
    node = leaf if isinstance(leaf, str) and leaf in mapping else next(reversed(list(mapping)), None)
    found: list[tuple[str, Mapping[str, Any]]] = []
    seen: set[str] = set()
    while isinstance(node, str) and node not in seen and len(seen) < DEEPEST:
        seen.add(node)
        value = mapping.get(node)
        if not isinstance(value, dict):
            break
        if isinstance(value.get("message"), dict):
            found.append((node, value["message"]))
        node = value.get("parent")
    return iter(found[::-1])


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def _seconds(value: object) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _instant(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # the latter at either end of the calendar
        return None
