"""Events of a session → who said what, and which of them are of the conversation at all. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sync.log.model import Event
from sync.log.payloads import MESSAGE
from sync.log.withdrawn import TAKING_BACK
from sync.memory.daily.model import DEEDS, ORIGINAL
from sync.memory.daily.summarise import Turn

EXCHANGE: Final = "exchange_recorded"
TALK: Final = (MESSAGE, EXCHANGE)

# What this program notes by itself has the session of its process: lines typed by hand, deeds, devices, wishes.
_NOTED: Final = (*DEEDS, ORIGINAL, *TAKING_BACK)
_NOTED_OF: Final = ("entry_", "section_", "document_", "day_", "device_")


def is_of_conversation(kind: str) -> bool:
    """Whether events of a type say something of the session whose id they have: its words, tools, facts, titles."""
    return kind not in _NOTED and not kind.startswith(_NOTED_OF)


def turns_of(events: Sequence[Event]) -> list[Turn]:
    """Messages where the session has them, since they are whole; else the summaries of its exchanges."""
    said = [event for event in events if event.payload]
    messages = [event for event in said if event.type == MESSAGE]
    if messages:
        return [turn for event in messages for turn in _message(event.payload)]
    return [turn for event in said if event.type == EXCHANGE for turn in _exchange(event.payload)]


def _message(payload: Mapping[str, Any]) -> list[Turn]:
    content = payload.get("content")
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    text = "\n".join(text for text in texts if isinstance(text, str) and text)
    return [Turn("assistant" if payload.get("role") == "assistant" else "user", text)] if text else []


def _exchange(payload: Mapping[str, Any]) -> list[Turn]:
    question, answer = payload.get("question"), payload.get("answer")
    found = [Turn("user", question)] if isinstance(question, str) and question else []
    return [*found, Turn("assistant", answer)] if isinstance(answer, str) and answer else found
