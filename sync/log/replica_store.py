"""The row of this replica: its id, the number of its next event, the HLC of its last one."""

from typing import Any, Final

from sqlalchemy import select

from sync.db.engine import Transaction
from sync.db.schema import MAX_KEY, REPLICA_ID_PREFIX, replica
from sync.errors import StorageCorrupt

STATE_QUERY: Final = select(replica.c.replica_id, replica.c.next_seq, replica.c.hlc)


def read_state(connection: Transaction) -> Any:
    """Return the state that numbers the next event. Raises StorageCorrupt if the row is damaged."""
    row = connection.execute(STATE_QUERY).one()
    is_number = isinstance(row.next_seq, int) and 0 < row.next_seq <= MAX_KEY
    if not is_number or not str(row.replica_id).startswith(REPLICA_ID_PREFIX):
        raise StorageCorrupt("the numbers of this replica cannot be read")
    return row
