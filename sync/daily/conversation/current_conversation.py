"""Find the conversation that the user means, and all of its events.

Without a session id that is the last one that this device recorded, if it is younger than `sessions.idle_minutes`.
Events without a session id belong together up to a pause of that length. Times are those of recording (HLC): an import
is not part of today's conversation, nor is a late event with an old `ts`.
"""

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from sync.clock import is_process_session, parse_hlc
from sync.daily.conversation import store
from sync.daily.conversation.command_parser import parse_command
from sync.daily.conversation.transcript import conversation_event_ids
from sync.db.engine import Transaction
from sync.log import erased_store
from sync.log.event_types import CONVERSATION_TYPES, EXCHANGE_RECORDED, EXCHANGE_TEXT, MEMORY_FACT
from sync.log.model import Door, Event, is_imported


class ConversationEvents(msgspec.Struct, frozen=True):
    """A conversation; `session_id` is None if it was recorded without one.

    `session_ids`: the ids under which its events are stored. `message_count`: its exchanges or messages that are not
    erased. `since_ms`: when the first of those was recorded, in Unix milliseconds.
    """

    session_id: str | None
    session_ids: frozenset[str] = frozenset()
    event_ids: tuple[str, ...] = ()
    message_count: int = 0
    since_ms: int | None = None


def conversation_of_session(connection: Transaction, session_id: str) -> ConversationEvents:
    """All events of a session's conversation, and of the lessons and notes that it brought about."""
    events = list(store.all_session_events(connection, session_id))
    ids = frozenset(conversation_event_ids(events, session_id))
    conversation = _conversation_of(session_id, [event for event in events if event.event_id in ids])
    side = store.side_event_ids(connection, session_id)
    return replace(
        conversation,
        session_ids=frozenset({session_id}),
        event_ids=tuple(dict.fromkeys((*conversation.event_ids, *side))),
    )


def latest_conversation(connection: Transaction, device_id: str, *, now_ms: int, idle_ms: int) -> ConversationEvents:
    """This device's current conversation; an empty one if there is none."""
    run: list[Event] = []
    last_ms = now_ms
    for event in store.newest_first(connection, device_id, CONVERSATION_TYPES):
        if is_imported(event):
            continue
        at_ms = _recorded_ms(event)
        if last_ms - at_ms >= idle_ms:
            break
        if not is_process_session(event.session_id):
            if not run:
                return conversation_of_session(connection, event.session_id)
            continue
        run.append(event)
        last_ms = at_ms
    sessions = {event.session_id for event in run}
    naming = [event for name in sorted(sessions) for event in _events_naming(connection, name)]
    return _conversation_of(None, [*run[::-1], *naming])


def last_said(connection: Transaction, device_id: str, session_id: str | None) -> list[Event]:
    """What the user said last on this device, or in a session, that is no command: newest first, with what it made."""
    types = (*CONVERSATION_TYPES, EXCHANGE_TEXT, MEMORY_FACT)
    if session_id is not None:
        events: Iterable[Event] = reversed(store.session_events(connection, session_id, types))
    else:
        events = store.newest_first(connection, device_id, types)
    found, held_ids = list[Event](), erased_store.held_ids(connection)
    for event in events:
        if is_imported(event) or not event.payload or event.event_id in held_ids:
            continue
        found.append(event)
        said = event.payload.get("question" if event.type == EXCHANGE_RECORDED else "content")
        is_whole = event.type == EXCHANGE_RECORDED or event.door == Door.COMMAND or event.payload.get("role") == "user"
        if is_whole and "." not in event.event_id:
            if event.type == MEMORY_FACT or parse_command(str(said)) is None:
                return found
            found = []
    return []


def _events_naming(connection: Transaction, session_id: str) -> list[Event]:
    """The events that name a process's session in their payload, such as its title."""
    events = list(store.all_session_events(connection, session_id))
    ids = frozenset(conversation_event_ids(events, session_id))
    return [event for event in events if event.event_id in ids and event.type not in CONVERSATION_TYPES]


def _conversation_of(session_id: str | None, events: Sequence[Event]) -> ConversationEvents:
    left = [event for event in events if event.payload]
    return ConversationEvents(
        session_id=session_id,
        session_ids=frozenset(event.session_id for event in events),
        event_ids=tuple(event.event_id for event in events),
        message_count=_message_count(left),
        since_ms=min((_recorded_ms(event) for event in left), default=None),
    )


def _message_count(events: Iterable[Event]) -> int:
    """The number of exchanges or, if there are none, of messages (else those are the exchanges' originals)."""
    kinds = [event.type for event in events if event.type in CONVERSATION_TYPES]
    return kinds.count(EXCHANGE_RECORDED) or len(kinds)


def _recorded_ms(event: Event) -> int:
    return parse_hlc(event.hlc)[0]
