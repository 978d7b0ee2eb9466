"""Parse the conversation exports of Claude and ChatGPT, as of 2026, into turns. Pure.

    Claude    [{uuid, name, chat_messages: [{uuid, sender, text, content: [{type, text}], attachments, created_at}]}],
              {uuid, title, messages: [{uuid, role, content: {content, contentBlocks}}]} of a design,
              {uuid, name, description, prompt_template, docs: [{filename, content}]} of a project
    ChatGPT   [{conversation_id, title, create_time, current_node, mapping: {node: {message, parent, children}}}];
              a part of a message is text, {content_type: audio_transcription, text} or a pointer to a file

Of a ChatGPT tree the last shown branch counts. A bad value costs that value; what is left out is counted.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import Any, Final

import msgspec

from sync.archive.model import Skipped, SkippedCounts

MAX_LEADING_VALUES: Final = 10_000  # before the first conversation
MAX_BRANCH_NODES: Final = 100_000  # also ends a cycle
MESSAGE_SEPARATOR: Final = "\n\n"  # between messages of one side
ROLES: Final = {"human": "user", "user": "user", "assistant": "assistant"}
PASTED_NAMES: Final = frozenset({"", "paste.txt"})  # of an attachment that is text which the user pasted
# What a part of a message without a text is; the type of any other one is that of an attached file.
_PART_KINDS: Final[Mapping[str, Skipped]] = {
    "thinking": Skipped.THOUGHTS,
    "thoughts": Skipped.THOUGHTS,
    "redacted_thinking": Skipped.THOUGHTS,
    "reasoning_recap": Skipped.THOUGHTS,
    "tool_use": Skipped.TOOLS,
    "tool_call": Skipped.TOOLS,
    "tool_result": Skipped.TOOLS,
    "execution_output": Skipped.TOOLS,
    "tether_browsing_display": Skipped.TOOLS,
    "user_editable_context": Skipped.HIDDEN,
    "model_editable_context": Skipped.HIDDEN,
    "token_budget": Skipped.HIDDEN,
    "flag": Skipped.HIDDEN,
    "image": Skipped.IMAGES,
    "input_image": Skipped.IMAGES,
    "image_asset_pointer": Skipped.IMAGES,
    "audio_transcription": Skipped.SPOKEN,
    "audio_asset_pointer": Skipped.SPOKEN,
    "real_time_user_audio_video_asset_pointer": Skipped.SPOKEN,
    "voice_note": Skipped.SPOKEN,
}
_TEXT_PARTS: Final = frozenset(
    {"", "text", "input_text", "output_text", "code", "audio_transcription", "voice_note", "multimodal_text"}
)


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

    program: str  # claude, chatgpt, claude-code, codex, cursor
    chat_id: str
    title: str
    started_at: datetime | None
    turns: tuple[ChatTurn, ...]


def read_chats(values: Iterable[object], skipped: SkippedCounts) -> Iterator[ImportedChat]:
    """Yield the conversations of an export; none if the first `MAX_LEADING_VALUES` values are no conversations."""
    any_found = False
    for number, value in enumerate(chain.from_iterable(map(_listed, values))):
        chat = _parse_chat(value, skipped) if isinstance(value, dict) else None
        if chat is not None and chat.turns:
            any_found = True
            yield chat
        elif chat is None:
            skipped[Skipped.UNREADABLE] += 1
        if not any_found and number >= MAX_LEADING_VALUES:
            return


def _listed(value: object) -> Iterable[object]:
    """Return the conversations of an object that lists them."""
    conversations = value.get("conversations") if isinstance(value, dict) else None
    return conversations if isinstance(conversations, list) else (value,)


def build_chat(
    program: str, chat_id: str, title: str, started_at: datetime | None, messages: Iterable[ChatMessage]
) -> ImportedChat:
    """Group the messages of a conversation into turns; without an id of its own it has that of its first message."""
    turns = tuple(_group_turns(messages))
    if not chat_id and turns:
        chat_id = hashlib.sha256(f"{turns[0].turn_id}\n{turns[0].question}".encode()).hexdigest()
    return ImportedChat(program, chat_id, title, started_at, turns)


def _parse_chat(value: Mapping[str, Any], skipped: SkippedCounts) -> ImportedChat | None:
    """Return the conversation of a value, perhaps without turns; None if it is none."""
    if isinstance(value.get("mapping"), dict):
        chat_id = stripped_text(value.get("conversation_id")) or stripped_text(value.get("id"))
        started_at, title = from_unix_seconds(value.get("create_time")), stripped_text(value.get("title"))
        return build_chat("chatgpt", chat_id, title, started_at, _chatgpt_messages(value, skipped))
    listed = next((value[name] for name in ("chat_messages", "messages") if isinstance(value.get(name), list)), None)
    if listed is None and not {"docs", "prompt_template"} & value.keys():
        return None
    title = stripped_text(value.get("name")) or stripped_text(value.get("title"))
    messages = _project_messages(value, skipped) if listed is None else _claude_messages(listed, skipped)
    return build_chat("claude", stripped_text(value.get("uuid")), title, from_iso(value.get("created_at")), messages)


def _group_turns(messages: Iterable[ChatMessage]) -> Iterator[ChatTurn]:
    """Group messages into turns: a question with the answers that follow it."""
    group: list[ChatMessage] = []
    for message in messages:
        if group and message.role == "user" and group[-1].role == "assistant":
            yield ChatTurn(tuple(group))
            group = []
        group.append(message)
    if group:
        yield ChatTurn(tuple(group))


def _claude_messages(listed: Iterable[object], skipped: SkippedCounts) -> Iterator[ChatMessage]:
    for number, item in enumerate(listed):
        role = ROLES.get(stripped_text(item.get("sender") or item.get("role"))) if isinstance(item, dict) else None
        if role is None or not isinstance(item, dict):
            skipped[Skipped.UNREADABLE] += 1
            continue
        content = item.get("content")
        if isinstance(content, dict):  # of a design
            content = content.get("contentBlocks") or content.get("content")
        text = joined_text(content, skipped) or stripped_text(item.get("text"))
        text = MESSAGE_SEPARATOR.join(filter(None, (text, *_attached_texts(item, skipped))))
        if text:
            message_id = stripped_text(item.get("uuid")) or str(number)
            yield ChatMessage(message_id, role, text, from_iso(item.get("created_at")))


def _attached_texts(message: Mapping[str, Any], skipped: SkippedCounts) -> Iterator[str]:
    """Yield the texts that the user pasted; files are left out."""
    for name in ("attachments", "files"):
        for item in listed if isinstance(listed := message.get(name), list) else ():
            pasted = isinstance(item, dict) and stripped_text(item.get("file_name")).casefold() in PASTED_NAMES
            if pasted and (text := stripped_text(item.get("extracted_content"))):
                yield text
            else:
                skipped[Skipped.FILES] += 1


def _project_messages(value: Mapping[str, Any], skipped: SkippedCounts) -> Iterator[ChatMessage]:
    """Yield what a project says: its description, its instructions, its documents."""
    at = from_iso(value.get("created_at"))
    for name in ("description", "prompt_template"):
        if text := stripped_text(value.get(name)):
            yield ChatMessage(name, "user", text, at)
    documents = value.get("docs")
    for number, item in enumerate(documents if isinstance(documents, list) else ()):
        text = stripped_text(item.get("content")) if isinstance(item, dict) else ""
        if not text:
            skipped[Skipped.FILES] += 1
            continue
        title = stripped_text(item.get("filename"))
        document_id = stripped_text(item.get("uuid")) or f"document {number}"
        yield ChatMessage(document_id, "user", f"{title}\n\n{text}".strip(), from_iso(item.get("created_at")) or at)


def _chatgpt_messages(value: Mapping[str, Any], skipped: SkippedCounts) -> Iterator[ChatMessage]:
    for node_id, item in _branch(value["mapping"], value.get("current_node"), skipped):
        author, content = item.get("author"), item.get("content")
        named = stripped_text(author.get("role")) if isinstance(author, dict) else ""
        role = ROLES.get(named)
        if role is None:
            skipped[{"tool": Skipped.TOOLS, "system": Skipped.HIDDEN}.get(named, Skipped.UNREADABLE)] += 1
        elif (hidden := _hidden_kind(item)) is not None:
            skipped[hidden] += 1
        elif text := _content_text(content, skipped):
            message_id = stripped_text(item.get("id")) or node_id
            yield ChatMessage(message_id, role, text, from_unix_seconds(item.get("create_time")))


def _content_text(content: object, skipped: SkippedCounts) -> str:
    """Return the text of a message of ChatGPT."""
    if not isinstance(content, dict):
        return joined_text(content, skipped)
    kind = _PART_KINDS.get(stripped_text(content.get("content_type")))
    if kind is not None and kind is not Skipped.SPOKEN:
        skipped[kind] += 1
        return ""
    parts = content.get("parts")
    return joined_text(parts if isinstance(parts, list) else content.get("text"), skipped)


def joined_text(content: object, skipped: SkippedCounts) -> str:
    """Return the text of a message's parts; a spoken message without any counts once."""
    texts, others = list[str](), list[Skipped]()
    for part in content if isinstance(content, list) else [content]:
        kind = _part_type(part) if isinstance(part, dict) else ""
        text = part if isinstance(part, str) else part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str) and kind in _TEXT_PARTS:
            texts += [stripped] if (stripped := text.strip()) else []
        elif part is not None:
            is_known = isinstance(part, dict) and kind not in _TEXT_PARTS - _PART_KINDS.keys()
            others.append(_PART_KINDS.get(kind, Skipped.FILES) if is_known else Skipped.UNREADABLE)
    if Skipped.SPOKEN in others:
        others = [one for one in others if one is not Skipped.SPOKEN]
        others += [] if texts else [Skipped.SPOKEN]
    skipped.update(others)
    return MESSAGE_SEPARATOR.join(texts)


def _part_type(part: Mapping[str, Any]) -> str:
    return stripped_text(part.get("content_type")) or stripped_text(part.get("type"))


def _hidden_kind(message: Mapping[str, Any]) -> Skipped | None:
    """Return what a message is that only the model saw, or that it sent to a tool."""
    metadata = message.get("metadata")
    if isinstance(metadata, dict) and metadata.get("is_visually_hidden_from_conversation") is True:
        return Skipped.HIDDEN
    recipient = message.get("recipient")
    return Skipped.TOOLS if isinstance(recipient, str) and recipient != "all" else None


def _branch(
    mapping: Mapping[str, Any], leaf: object, skipped: SkippedCounts
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Return the messages from the root to a leaf; without a leaf, to the newest node.

    A node whose parent cannot be read hangs below the node that lists it as a child, else below the one before it.
    """
    names = list(mapping)
    parents = {
        child: name for name, node in mapping.items() for child in (_children(node) if isinstance(node, dict) else ())
    }
    node = leaf if isinstance(leaf, str) and leaf in mapping else next(reversed(names), None)
    messages: list[tuple[str, Mapping[str, Any]]] = []
    seen: set[str] = set()
    while isinstance(node, str) and node not in seen and len(seen) < MAX_BRANCH_NODES:
        seen.add(node)
        value = mapping.get(node)
        message = value.get("message") if isinstance(value, dict) else None
        if isinstance(message, dict):
            messages.append((node, message))
        elif message is not None or not isinstance(value, dict):
            skipped[Skipped.UNREADABLE] += 1
        parent = value.get("parent") if isinstance(value, dict) else 0
        if not (isinstance(parent, str) and parent in mapping):
            before = names[names.index(node) - 1] if parent is not None and node != names[0] else None
            parent = parents.get(node, before)
        node = parent
    for name in names:
        is_message = name not in seen and isinstance(mapping[name], dict) and mapping[name].get("message")
        skipped[Skipped.BRANCHES] += 1 if is_message else 0
    return iter(messages[::-1])


def _children(node: Mapping[str, Any]) -> Iterator[str]:
    children = node.get("children")
    return (child for child in (children if isinstance(children, list) else ()) if isinstance(child, str))


def stripped_text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def from_unix_seconds(value: object, scale: int = 1) -> datetime | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return datetime.fromtimestamp(value / scale, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def from_iso(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        parsed = datetime.fromisoformat(value)
        return (parsed if parsed.tzinfo is not None else parsed.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):  # OverflowError at either end of the calendar
        return None
