"""Events of a session → who said what, and which of them are of the conversation at all. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sync.clock import is_process_session
from sync.daily.conversation.extractive_summary import SummaryTurn
from sync.log.event_types import (
    CONVERSATION_TYPES,
    EXCHANGE_RECORDED,
    MESSAGE,
    RECORD_CHANGE_TYPES,
    RETRACTING_TYPES,
    SESSION_ORIGINAL,
)
from sync.log.model import Event, Origin

# What this program notes by itself has the session of its process: lines typed by hand, deeds, devices, wishes.
_BOOKKEEPING_TYPES: Final = (*RECORD_CHANGE_TYPES, SESSION_ORIGINAL, *RETRACTING_TYPES)
_BOOKKEEPING_PREFIXES: Final = ("entry_", "section_", "document_", "day_", "device_")


def is_imported(event: Event) -> bool:
    return event.origin == Origin.IMPORTED or "imported_device_id" in event.extra


def conversation_event_ids(events: Iterable[Event], session_id: str) -> list[str]:
    """The ids of those events with a session's id that say something of it: its words, tools, facts, titles.

    The session of a process holds whatever came without one, from other programs and imports too: of that only what was
    said is the conversation, and what names it. Imported words are it where nobody said anything else: another process
    had that session, and it was brought back.
    """
    about = (
        event
        for event in events
        if event.type not in _BOOKKEEPING_TYPES and not event.type.startswith(_BOOKKEEPING_PREFIXES)
    )
    if not is_process_session(session_id):
        return [event.event_id for event in about]
    noted = list(about)
    said = [event for event in noted if event.type in CONVERSATION_TYPES]
    said = [event for event in said if not is_imported(event)] or said
    naming = [event for event in noted if event.payload.get("session_id") == session_id]
    return list(dict.fromkeys(event.event_id for event in (*said, *naming)))


def turns_of(events: Sequence[Event]) -> list[SummaryTurn]:
    """Messages where the session has them, since they are whole; else the summaries of its exchanges."""
    said = [event for event in events if event.payload]
    messages = [event for event in said if event.type == MESSAGE]
    if messages:
        return [turn for event in messages for turn in _message_turns(event.payload)]
    return [turn for event in said if event.type == EXCHANGE_RECORDED for turn in _exchange_turns(event.payload)]


def _message_turns(payload: Mapping[str, Any]) -> list[SummaryTurn]:
    content = payload.get("content")
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    text = "\n".join(text for text in texts if isinstance(text, str) and text)
    return [SummaryTurn("assistant" if payload.get("role") == "assistant" else "user", text)] if text else []


def _exchange_turns(payload: Mapping[str, Any]) -> list[SummaryTurn]:
    question, answer = payload.get("question"), payload.get("answer")
    found = [SummaryTurn("user", question)] if isinstance(question, str) and question else []
    return [*found, SummaryTurn("assistant", answer)] if isinstance(answer, str) and answer else found
