"""SQL of the exchanges that wait for a model: ids alone. Their words are those of the log, and are erased with them."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import bindparam, text

from sync.db.engine import Transaction
from sync.log import store as log_store
from sync.understanding.second_reader.model_request import WaitingExchange
from sync.understanding.store import turn_before, turn_of

MAX_WAITING: Final = 200  # exchanges; older ones are dropped
MAX_PREVIOUS_CHARS: Final = 300  # of the assistant's words before: their end, where it asks

_ADD: Final = text("insert or ignore into waiting_exchanges values (:event_id, 0)")
_BOUND: Final = text("delete from waiting_exchanges where rowid <= (select max(rowid) from waiting_exchanges) - :most")
_OLDEST: Final = text("select event_id, tries from waiting_exchanges order by rowid limit :most")
_COUNT: Final = text("select count(*) from waiting_exchanges")
_NEWEST: Final = text(
    "select position from events where event_id = (select event_id from waiting_exchanges order by rowid desc limit 1)"
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
        WaitingExchange(
            event,
            turn_of(connection, event).question,
            turn_before(connection, event.session_id, event.position).answer[-MAX_PREVIOUS_CHARS:],
            row.tries,
        )
        for row, event in found
        if event is not None and event.payload
    ]


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
