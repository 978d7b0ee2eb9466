"""Turn a session's events into a transcript, and select the events that belong to the conversation. Pure."""

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
from sync.log.model import Event, is_imported

# Events that this program records under its process's session: manual edits, record changes, devices, erasures.
_BOOKKEEPING_TYPES: Final = (*RECORD_CHANGE_TYPES, SESSION_ORIGINAL, *RETRACTING_TYPES)
_BOOKKEEPING_PREFIXES: Final = ("entry_", "section_", "document_", "day_", "device_")


def conversation_event_ids(events: Iterable[Event], session_id: str) -> list[str]:
    """The ids of a session's events that belong to its conversation: messages, tools, facts, titles.

    A process's session also has whatever came without a session id, from other programs and imports. There only
    messages count, and events that name the session. Imported messages count only if there are no others: then the
    session of another process was restored.
    """
    about = [
        event
        for event in events
        if event.type not in _BOOKKEEPING_TYPES and not event.type.startswith(_BOOKKEEPING_PREFIXES)
    ]
    if not is_process_session(session_id):
        return [event.event_id for event in about]
    messages = [event for event in about if event.type in CONVERSATION_TYPES]
    messages = [event for event in messages if not is_imported(event)] or messages
    naming = [event for event in about if event.payload.get("session_id") == session_id]
    return list(dict.fromkeys(event.event_id for event in (*messages, *naming)))


def turns_of(events: Sequence[Event]) -> list[SummaryTurn]:
    """The session's messages, which are complete; without any the summaries of its exchanges."""
    present = [event for event in events if event.payload]
    messages = [event for event in present if event.type == MESSAGE]
    if messages:
        return [turn for event in messages for turn in _message_turns(event.payload)]
    return [turn for event in present if event.type == EXCHANGE_RECORDED for turn in _exchange_turns(event.payload)]


def _message_turns(payload: Mapping[str, Any]) -> list[SummaryTurn]:
    content = payload.get("content")
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
    text = "\n".join(text for text in texts if isinstance(text, str) and text)
    return [SummaryTurn("assistant" if payload.get("role") == "assistant" else "user", text)] if text else []


def _exchange_turns(payload: Mapping[str, Any]) -> list[SummaryTurn]:
    question, answer = payload.get("question"), payload.get("answer")
    turns = [SummaryTurn("user", question)] if isinstance(question, str) and question else []
    return [*turns, SummaryTurn("assistant", answer)] if isinstance(answer, str) and answer else turns
