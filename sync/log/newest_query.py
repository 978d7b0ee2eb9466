"""The queries for the newest events of some types, excluding some devices, in HLC order, and of each device.

The first reads at most `:most` events of each device and type from an index, however long the log is. Devices are found
by jumping from one to the next, because `distinct` would read every row. They are text because
`sync.document.read.cold_load` runs them without SQLAlchemy.
"""

from collections.abc import Collection, Sequence
from typing import Final

import msgspec

LAST_SPOKEN_QUERY: Final = "select device_id, max(hlc) as hlc from events where reach = 'cloud' group by device_id"
NEWEST_QUERY: Final = """
with recursive
  authors (id) as (
    select min(device_id) from events
    union all
    select (select min(device_id) from events where device_id > authors.id) from authors where authors.id is not null
  ),
  asked (id, type) as (
    select authors.id, wanted.value from authors cross join json_each(:types) as wanted
    where authors.id is not null and authors.id not in (select value from json_each(:besides))
  )
select events.* from asked cross join events on events.position in (
  select one.position from events as one indexed by events_newest
  where one.device_id = asked.id and one.type = asked.type
  order by one.hlc desc, one.replica_id desc, one.replica_seq desc limit :most
)
order by events.hlc desc, events.replica_id desc, events.replica_seq desc limit :most
"""


def newest_parameters(types: Sequence[str], excluded_devices: Collection[str], limit: int) -> dict[str, str | int]:
    """Return the parameters of `NEWEST_QUERY`."""
    return {
        "types": msgspec.json.encode(list(types)).decode(),
        "besides": msgspec.json.encode(sorted(excluded_devices)).decode(),
        "most": limit,
    }
