"""The row of this replica: its id, the number of its next event, the HLC of its last one."""

from typing import Any, Final

from sqlalchemy import Connection, select

from sync.db.tables import MOST_KEY, REPLICA, replica
from sync.errors import StorageCorrupt

ROW: Final = select(replica.c.replica_id, replica.c.next_seq, replica.c.hlc)


def state(connection: Connection) -> Any:
    """What the next event is numbered from. Raises StorageCorrupt for a row that is none: no event may bear it."""
    row = connection.execute(ROW).one()
    is_number = isinstance(row.next_seq, int) and 0 < row.next_seq <= MOST_KEY
    if not is_number or not str(row.replica_id).startswith(REPLICA):
        raise StorageCorrupt("the numbers of this replica cannot be read")
    return row
