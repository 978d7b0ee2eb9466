"""SQL of the facts. Every function runs inside a transaction of the caller; it only reads."""

from collections.abc import Collection
from typing import Final

import msgspec
from sqlalchemy import bindparam, text

from sync.db.engine import Transaction
from sync.log import store as log_store
from sync.log.event_types import EXCHANGE_RECORDED, FACT_TYPES, MEMORY_FACT, TEXT_SUFFIX
from sync.log.model import DOOR_FIELD, Event

AFTER_ALL: Final = 2**62  # a position behind every event

_RECORDED: Final = text("select 1 from events where position = :position and event_id = :id")
_WITHOUT_DOOR: Final = text("select 1 from events where type = :type and instr(extra, :door) = 0 limit 1")
_NAMING: Final = text(
    "select 1 from events, json_each(:words) as words"
    " where events.type = :type and instr(lower(events.payload), words.value) limit 1"
)

_BEFORE: Final = text(
    "select event_id from events where session_id = :session and type = :type and position < :position"
    " order by position desc limit 1"
)
_FOREIGN: Final = text("select 1 from events where type in :types and device_id not in :own limit 1").bindparams(
    bindparam("types", expanding=True), bindparam("own", expanding=True)
)


class Turn(msgspec.Struct, frozen=True):
    """What was said in an exchange, redacted; nothing if it is erased."""

    question: str = ""
    answer: str = ""


def turn_of(connection: Transaction, exchange: Event) -> Turn:
    """Both sides of an exchange: whole if this device keeps them, else their summaries."""
    whole = log_store.find_event(connection, exchange.event_id + TEXT_SUFFIX)
    payload = whole.payload if whole is not None and whole.payload else exchange.payload

    def side(name: str) -> str:  # an empty one has a mark for its summary
        return "" if payload.get(f"{name}_length") == 0 else str(payload.get(name, ""))

    return Turn(side("question"), side("answer"))


def turn_before(connection: Transaction, session_id: str, position: int = AFTER_ALL) -> Turn:
    """The last exchange of a session before a position of the log."""
    values = {"session": session_id, "type": EXCHANGE_RECORDED, "position": position}
    event_id = connection.execute(_BEFORE, values).scalar()
    exchange = None if event_id is None else log_store.find_event(connection, event_id)
    return Turn() if exchange is None else turn_of(connection, exchange)


def has_foreign_facts(connection: Transaction, own_device_ids: Collection[str]) -> bool:
    """Whether another device stated or answered anything; it need not have registered."""
    return connection.execute(_FOREIGN, {"types": FACT_TYPES, "own": [*own_device_ids]}).first() is not None


def names_fact(connection: Transaction, words: Collection[str]) -> bool:
    """Whether the event of a fact has any of these words, in lower case."""
    values = {"type": MEMORY_FACT, "words": msgspec.json.encode(sorted(words)).decode()}
    return connection.execute(_NAMING, values).first() is not None


def is_recorded(connection: Transaction, position: int, event_id: str) -> bool:
    """Whether the log has this event. Position 0 is no event."""
    return not position or connection.execute(_RECORDED, {"position": position, "id": event_id}).first() is not None


def has_facts_of_before(connection: Transaction) -> bool:
    """Whether a fact was recorded before events named their door."""
    values = {"type": MEMORY_FACT, "door": f'"{DOOR_FIELD}"'}
    return connection.execute(_WITHOUT_DOOR, values).first() is not None
