"""Small exports of other programs, in their shapes."""

from typing import Any, Final


def node(node_id: str, parent: str | None, text: tuple[str, str] | None, **more: Any) -> dict[str, Any]:
    """A node of ChatGPT's tree; `said`: role and text."""
    if text is None:
        return {"id": node_id, "parent": parent, "children": [], "message": None}
    message = {
        "id": node_id,
        "author": {"role": text[0]},
        "content": {"content_type": "text", "parts": [text[1]]},
        "create_time": 1704067200.0,
        "recipient": "all",
        **more,
    }
    return {"id": node_id, "parent": parent, "children": [], "message": message}


def claude(message_id: str, sender: str, text: str, minute: int = 0) -> dict[str, Any]:
    return {
        "uuid": message_id,
        "sender": sender,
        "text": text,
        "content": [{"type": "text", "text": text}, {"type": "tool_use", "name": "web_search"}],
        "created_at": f"2024-05-01T08:{minute:02}:00.000000Z",
    }


CLAUDE: Final[list[dict[str, Any]]] = [
    {
        "uuid": "c-1",
        "name": "周末计划",
        "created_at": "2024-05-01T08:00:00.000000Z",
        "chat_messages": [
            claude("m-1", "human", "去哪里爬山"),
            claude("m-2", "assistant", "香山", 1),
            claude("m-3", "assistant", "或者百望山", 2),
            claude("m-4", "human", "要带伞吗", 3),
        ],
    }
]

CHATGPT: Final[list[dict[str, Any]]] = [
    {
        "conversation_id": "g-1",
        "title": "诗",
        "create_time": 1704067200.0,
        "current_node": "n-5",
        "mapping": {
            "n-0": node("n-0", None, None),
            "n-1": node("n-1", "n-0", ("system", "You are helpful.")),
            "n-2": node("n-2", "n-1", ("user", "写一首诗")),
            "n-3": node("n-3", "n-2", ("assistant", "第一稿")),
            "n-4": node("n-4", "n-2", ("assistant", "search()"), recipient="web"),
            "n-5": node("n-5", "n-4", ("assistant", "第二稿")),
        },
    }
]


def chatgpt(chat_id: str, *messages: tuple[str, Any]) -> dict[str, Any]:
    """A conversation of ChatGPT as of 2026; each message: its role, and its text or its content."""
    names = [f"{chat_id}-{number}" for number in range(len(messages))]
    mapping = {}
    for number, (name, (role, said)) in enumerate(zip(names, messages, strict=True)):
        content = said if isinstance(said, dict) else {"content_type": "text", "parts": [said]}
        message = {
            "id": name,
            "author": {"role": role},
            "content": content,
            "create_time": 1767583930.0,
            "metadata": {},
        }
        parent, children = names[number - 1] if number else None, names[number + 1 : number + 2]
        mapping[name] = {"id": name, "message": message, "parent": parent, "children": children}
    about = {"conversation_id": chat_id, "title": chat_id, "create_time": 1767583930.0}
    return {**about, "mapping": mapping, "current_node": names[-1]}


def spoken(text: str | None) -> dict[str, Any]:
    """The content of a spoken message of ChatGPT; without a text only the sound is there."""
    heard = [] if text is None else [{"content_type": "audio_transcription", "text": text, "direction": "in"}]
    return {
        "content_type": "multimodal_text",
        "parts": [*heard, {"content_type": "real_time_user_audio_video_asset_pointer", "audio_asset_pointer": {}}],
    }
