"""A long log, put into a database at once: recording a million events would take hours, inserting them takes seconds.

Every second event is this device's own, what programs append; the others are conversations of three other devices, and
every other of those a line typed by hand. `events verify` finds nothing wrong with such a log. The document is left
as it is: it is a file of its own size, not a view of how long the log is.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OTHERS: Final = 3  # devices besides this one
OTHER_DEVICE: Final = "device-history-{}"

_EVENTS: Final = f"""
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < :count)
insert into events (
  event_id, schema_version, project_id, session_id, ts, ts_ms, type, payload, device_id, replica_id, replica_seq, hlc,
  origin, reach, local_date, utc_offset, server_seq, server_ts
)
select
  printf('evt_history_%012d', n), 1, 'proj_global', 'sess_20250101_001',
  strftime('%Y-%m-%dT%H:%M:%S.000Z', 1735689600 + n * 30, 'unixepoch'), (1735689600 + n * 30) * 1000,
  case when n % 2 = 1 then 'tool_call' when n % 4 = 0 then 'entry_added' else 'exchange_recorded' end,
  case when n % 2 = 1 then json_object('tool', 'search', 'text', '第 ' || n || ' 次调用')
    when n % 4 = 0 then json_object('entry_id', 'ent_' || n, 'after', null, 'section', json('["用户偏好"]'),
      'text', '- 偏好 ' || n)
    else json_object('question', '第 ' || n || ' 个问题', 'answer', '回答回答回答回答回答回答回答回答回答回答',
      'question_length', 9, 'answer_length', 20) end,
  case when n % 2 = 1 then :device else 'device-history-' || (n / 2 % {OTHERS}) end,
  case when n % 2 = 1 then :replica else 'rep_history_' || (n / 2 % {OTHERS}) end,
  case when n % 2 = 1 then :next + (n - 1) / 2 else n / 2 / {OTHERS} + 1 end,
  printf('%012x-%04x', :moment + n / 60000, n % 60000),
  'user-typed', 'cloud', '2025-01-01', 480, :head + n, case when :head is null then null else :now end
from numbers
"""
_DELIVERIES: Final = """
insert into deliveries (destination, position, state)
select 'cloud', position, case when server_seq is null then 'pending' else 'acked' end
from events where replica_id = :replica and position > :before
"""
_REPLICA: Final = """
update replica set next_seq = 1 + (select max(replica_seq) from events where replica_id = :replica),
  hlc = (select max(hlc) from events)
"""
_CURSOR: Final = """
update cursors set seq = seq + :count, head = head + :count, may_lack = 0,
  event_id = (select event_id from events order by position desc limit 1)
"""
_WATERMARKS: Final = """
update watermarks set position = (select max(position) from events)
where name <> 'document.order' and name not like '%.rules'
"""  # those two are no places in the log


@dataclass(frozen=True, slots=True)
class FilledLog:
    """What a server has to be given so that both sides hold the same. `first`: our replica's number of the first."""

    device_id: str
    replica_id: str
    first: int
    moment: int


def fill_log(database: Path, device_id: str, count: int, *, head: int | None = None) -> FilledLog:
    """Add `count` events to a closed log. `head`: the server's, if it should have them too."""
    with _opened(database) as connection:
        replica_id, following, hlc = connection.execute("select replica_id, next_seq, hlc from replica").fetchone()
        moment = int((hlc or "019000000000").partition("-")[0], 16) + 1
        before = connection.execute("select coalesce(max(position), 0) from events").fetchone()[0]
        fields = {
            "count": count,
            "device": device_id,
            "replica": replica_id,
            "next": following,
            "moment": moment,
            "head": head,
            "now": "2026-01-01T00:00:00.000000+00:00",
            "before": before,
        }
        for statement in (_EVENTS, _DELIVERIES, _REPLICA, _WATERMARKS, *([] if head is None else [_CURSOR])):
            connection.execute(statement, fields)
    return FilledLog(device_id, replica_id, following, moment)


@contextmanager
def _opened(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(database, isolation_level=None)) as connection:
        connection.execute("pragma synchronous = off")  # a crash of the machine would only spoil this test
        connection.execute("pragma cache_size = -200000")
        connection.execute("begin immediate")
        yield connection
        connection.execute("commit")
        connection.execute("pragma wal_checkpoint(truncate)")
