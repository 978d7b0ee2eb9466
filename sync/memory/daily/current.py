"""The conversation that a person means, with and without a session id, and everything that was recorded of it.

Decisions
    Without an id it is the conversation that this device recorded last, if that was less than `sessions.idle_minutes`
    ago. What was recorded without a session id has no end either: it reaches back to the last pause of that length.
    Times are those of recording (HLC): an import or a late event with an old `ts` is no part of today's conversation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from sync.clock import hlc_parts, is_of_process
from sync.log.model import Event
from sync.memory.daily import store
from sync.memory.daily.talk import EXCHANGE, TALK, is_imported, of_conversation


@dataclass(frozen=True, slots=True)
class Talk:
    """A conversation. `session_id` is None if it was recorded without one; `sessions`: under which ids it is stored.

    `event_ids`: what was recorded of it and not erased; `said`: how many of these are exchanges or messages;
    `since_ms`: when the first of them was recorded, in Unix milliseconds.
    """

    session_id: str | None
    sessions: frozenset[str] = frozenset()
    event_ids: tuple[str, ...] = ()
    said: int = 0
    since_ms: int | None = None


def named(connection: Connection, session_id: str) -> Talk:
    """Everything of a session."""
    found = list(store.all_of_session(connection, session_id))
    ids = frozenset(of_conversation(found, session_id))
    talk = _talk(session_id, [event for event in found if event.event_id in ids])
    return replace(talk, sessions=frozenset({session_id}))


def newest(connection: Connection, device_id: str, *, now_ms: int, idle_ms: int) -> Talk:
    """The conversation of this device that is still going on; an empty one if there is none."""
    run: list[Event] = []
    last_ms = now_ms
    for event in store.newest_first(connection, device_id, TALK):
        if is_imported(event):
            continue
        at_ms = _recorded_ms(event)
        if last_ms - at_ms >= idle_ms:
            break
        if not is_of_process(event.session_id):
            if not run:
                return named(connection, event.session_id)
            continue
        run.append(event)
        last_ms = at_ms
    sessions = {event.session_id for event in run}
    about = [event for name in sorted(sessions) for event in _naming(connection, name)]
    return _talk(None, [*run[::-1], *about])


def _naming(connection: Connection, session_id: str) -> list[Event]:
    """The events that name a process's session in their payload: its title, for one."""
    found = list(store.all_of_session(connection, session_id))
    ids = frozenset(of_conversation(found, session_id))
    return [event for event in found if event.event_id in ids and event.type not in TALK]


def _talk(session_id: str | None, events: Sequence[Event]) -> Talk:
    left = [event for event in events if event.payload]
    return Talk(
        session_id=session_id,
        sessions=frozenset(event.session_id for event in events),
        event_ids=tuple(event.event_id for event in events),
        said=_said(left),
        since_ms=min((_recorded_ms(event) for event in left), default=None),
    )


def _said(events: Iterable[Event]) -> int:
    """How often something was said: exchanges, and messages that are not the originals of one."""
    kinds = [event.type for event in events if event.type in TALK]
    return kinds.count(EXCHANGE) or len(kinds)


def _recorded_ms(event: Event) -> int:
    return hlc_parts(event.hlc)[0]
