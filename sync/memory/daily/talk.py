"""Events of a session → who said what. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sync.log.model import Event
from sync.log.payloads import MESSAGE
from sync.memory.daily.summarise import Turn

EXCHANGE: Final = "exchange_recorded"
TALK: Final = (MESSAGE, EXCHANGE)


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
