"""SQL of the exchanges that wait for a model: ids alone. Their words are those of the log, and are erased with them."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import bindparam, text

from sync.db.engine import Transaction
from sync.log import store as log_store
from sync.log.event_types import EXCHANGE_RECORDED, TEXT_SUFFIX
from sync.log.model import Event
from sync.understanding.second_reader.model_request import WaitingExchange

MAX_WAITING: Final = 200  # exchanges; older ones are dropped
MAX_PREVIOUS_CHARS: Final = 300  # of the assistant's words before: their end, where it asks

_ADD: Final = text("insert or ignore into waiting_exchanges values (:event_id, 0)")
_BOUND: Final = text("delete from waiting_exchanges where rowid <= (select max(rowid) from waiting_exchanges) - :most")
_OLDEST: Final = text("select event_id, tries from waiting_exchanges order by rowid limit :most")
_COUNT: Final = text("select count(*) from waiting_exchanges")
_NEWEST: Final = text(
    "select position from events where event_id = (select event_id from waiting_exchanges order by rowid desc limit 1)"
)
_PREVIOUS: Final = text(
    "select event_id from events where session_id = :session and type = :type and position < :position"
    " order by position desc limit 1"
)
_IDS: Final[Any] = bindparam("ids", expanding=True)
_TRIED: Final = text("update waiting_exchanges set tries = tries + 1 where event_id in :ids").bindparams(_IDS)
_GIVE_UP: Final = text("delete from waiting_exchanges where tries >= :most")
_REMOVE: Final = text("delete from waiting_exchanges where event_id in :ids").bindparams(_IDS)
_CLEAR: Final = text("delete from waiting_exchanges")


def add(connection: Transaction, event_id: str) -> None:
    """Let an exchange wait; the oldest of too many are dropped."""
    connection.execute(_ADD, {"event_id": event_id})
    connection.execute(_BOUND, {"most": MAX_WAITING})


def oldest(connection: Transaction, most: int) -> list[WaitingExchange]:
    """The exchanges that have waited longest and still have words; those without are dropped."""
    rows = connection.execute(_OLDEST, {"most": most}).all()
    found = [(row, log_store.find_event(connection, row.event_id)) for row in rows]
    remove(connection, [row.event_id for row, event in found if event is None or not event.payload])
    return [
        WaitingExchange(event, _side_of(connection, event, "question"), _before(connection, event), row.tries)
        for row, event in found
        if event is not None and event.payload
    ]


def _side_of(connection: Transaction, event: Event, side: str) -> str:
    """One side of an exchange: whole if this device keeps it, else its summary."""
    whole = log_store.find_event(connection, event.event_id + TEXT_SUFFIX)
    payload = whole.payload if whole is not None and whole.payload else event.payload
    return str(payload.get(side, ""))


def _before(connection: Transaction, event: Event) -> str:
    """The end of what the assistant said before in the session."""
    values = {"session": event.session_id, "type": EXCHANGE_RECORDED, "position": event.position}
    name = connection.execute(_PREVIOUS, values).scalar()
    previous = None if name is None else log_store.find_event(connection, name)
    return "" if previous is None else _side_of(connection, previous, "answer")[-MAX_PREVIOUS_CHARS:]


def count(connection: Transaction) -> int:
    return int(connection.execute(_COUNT).scalar_one())


def newest_position(connection: Transaction) -> int:
    """The place in the log of the newest exchange that waits."""
    return int(connection.execute(_NEWEST).scalar() or 0)


def note_tries(connection: Transaction, event_ids: Collection[str], most: int) -> None:
    """Count a try in which a model said nothing about these exchanges; drop those with too many."""
    connection.execute(_TRIED, {"ids": list(event_ids)})
    connection.execute(_GIVE_UP, {"most": most})


def remove(connection: Transaction, event_ids: Collection[str]) -> None:
    connection.execute(_REMOVE, {"ids": list(event_ids)})


def clear(connection: Transaction) -> None:
    connection.execute(_CLEAR)
