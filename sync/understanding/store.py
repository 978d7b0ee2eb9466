"""SQL of the facts. Every function runs inside a transaction of the caller; it only reads."""

from collections.abc import Collection, Iterable
from typing import Final

import msgspec
from sqlalchemy import bindparam, text

from sync.db.engine import Transaction
from sync.log.event_types import FACT_TYPES, MEMORY_FACT
from sync.log.model import DOOR_FIELD

_RECORDED: Final = text("select 1 from events where position = :position and event_id = :id")
_WITHOUT_DOOR: Final = text("select 1 from events where type = :type and instr(extra, :door) = 0 limit 1")
_NAMING: Final = text(
    "select 1 from events, json_each(:words) as words"
    " where events.type = :type and instr(lower(events.payload), words.value) limit 1"
)

_FOREIGN: Final = text("select 1 from events where type in :types and device_id not in :own limit 1").bindparams(
    bindparam("types", expanding=True), bindparam("own", expanding=True)
)


def has_foreign_facts(connection: Transaction, own_device_ids: Collection[str]) -> bool:
    """Whether another device stated or answered anything; it need not have registered."""
    return connection.execute(_FOREIGN, {"types": FACT_TYPES, "own": [*own_device_ids]}).first() is not None


def names_fact(connection: Transaction, words: Collection[str]) -> bool:
    """Whether the event of a fact has any of these words, in lower case."""
    values = {"type": MEMORY_FACT, "words": msgspec.json.encode(sorted(words)).decode()}
    return connection.execute(_NAMING, values).first() is not None


def are_recorded(connection: Transaction, events: Iterable[tuple[int, str]]) -> bool:
    """Whether the log has all these events, given by position and id. Position 0 is no event."""
    return all(
        connection.execute(_RECORDED, {"position": position, "id": event_id}).first() is not None
        for position, event_id in events
        if position
    )


def has_facts_of_before(connection: Transaction) -> bool:
    """Whether a fact was recorded before events named where they come from."""
    values = {"type": MEMORY_FACT, "door": f'"{DOOR_FIELD}"'}
    return connection.execute(_WITHOUT_DOOR, values).first() is not None
