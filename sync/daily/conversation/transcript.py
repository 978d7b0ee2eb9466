"""Turn a session's events into a transcript, and select the events that belong to the conversation. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from msgspec.structs import replace

from sync.clock import Clock, is_process_session
from sync.daily.conversation.extractive_summary import SummaryTurn, summarise
from sync.daily.model import Content
from sync.log.authorship import Author, author_of
from sync.log.envelope import day_of
from sync.log.event_types import (
    CONVERSATION_TYPES,
    EXCHANGE_RECORDED,
    HIDING_TYPES,
    MESSAGE,
    RECORD_CHANGE_TYPES,
    SESSION_ORIGINAL,
    TEXT_SUFFIX,
)
from sync.log.model import Door, Event, is_imported
from sync.redaction import Redactor

# Events that this program records under its process's session: manual edits, record changes, devices, erasures.
_BOOKKEEPING_TYPES: Final = (*RECORD_CHANGE_TYPES, SESSION_ORIGINAL, *HIDING_TYPES)
_BOOKKEEPING_PREFIXES: Final = ("entry_", "section_", "document_", "day_", "device_")
_RANKS: Final = {Author.USER: 0, Author.MODEL: 0, Author.DEVICE: 1, Author.FILE: 3}


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


def said_by_one(events: Sequence[Event], own_device_ids: Collection[str]) -> tuple[list[Event], Door]:
    """The messages of one author, and the door of what is made of them.

    Those are the user's of this device or, without any, those of another device, of a program, or of a file.
    """
    by_author: dict[int, list[Event]] = {}
    for event in events:
        written = author_of(event)
        author = written.seen_from(own_device_ids)
        rank = _RANKS.get(author, 2) if written.is_proven else _RANKS[Author.FILE]
        by_author.setdefault(rank, []).append(event)
    first = min(by_author, default=0)
    return by_author.get(first, []), (Door.HAND, Door.HAND, Door.PROGRAM, Door.IMPORT)[first]


def turns_of(events: Sequence[Event], texts: Sequence[Event] = ()) -> list[SummaryTurn]:
    """The session's messages, which are complete; without any its exchanges, by their whole texts or summaries."""
    present = [event for event in events if event.payload]
    messages = [event for event in present if event.type == MESSAGE]
    if messages:
        return [turn for event in messages for turn in _message_turns(event.payload)]
    whole = {event.event_id.removesuffix(TEXT_SUFFIX): event.payload for event in texts if event.payload}
    exchanges = [event for event in present if event.type == EXCHANGE_RECORDED]
    return [
        turn
        for one in exchanges
        for turn in _exchange_turns({**one.payload, **_own_words(whole.get(one.event_id, {}))})
    ]


def _own_words(text: Mapping[str, Any]) -> dict[str, Any]:
    """The sides of a whole text that have no words of tools or web pages."""
    return {
        side: text[side]
        for side in ("question", "answer")
        if side in text and not (side == "answer" and "tools" in text)
    }


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


def contents_of(
    summary: Content | None,
    turns: Sequence[SummaryTurn],
    whole: Sequence[SummaryTurn],
    redactor: Redactor,
    recording: Any,
) -> tuple[Content, Content]:
    """What to record of a conversation, and what this device shows: that of `whole`, or the same before redaction.

    Tags made of raw text would lose the context that shows them to be secret.
    """
    texts = redactor.clean_turns((turn.role == "assistant", turn.text) for turn in turns)
    redacted = [SummaryTurn(turn.role, str(text)) for turn, text in zip(turns, texts, strict=True)]
    shown = list(whole) or (redacted if recording.sanitize_sensitive else list(turns))
    content = summary or summarise(redacted)
    original = summary or (content if redacted == shown else summarise(shown))
    if recording.save_code_snippets:
        return content, original
    return replace(content, code=()), replace(original, code=())


def local_time_of(event: Event, clock: Clock) -> datetime:
    """An event's time in the local zone, with the offset of its day."""
    now = clock.now()
    try:
        moment, day = clock.local(datetime.fromisoformat(event.ts)), day_of(event, now)
    except (ValueError, OverflowError):
        return now
    is_of_day = abs((moment.date() - day).days) <= 1
    return moment if is_of_day else datetime.combine(day, moment.timetz())
