"""A long history on the server, written by the superuser in one statement: pushing it would take minutes."""

import psycopg

from tests.cloud.fixtures import Cloud

_HISTORY = """
insert into public.ai_memory_events (
    user_id, seq, event_id, replica_id, replica_seq, device_id, schema_version, project_id, session_id, ts, type,
    payload, hlc, origin, local_date, utc_offset, bytes, server_ts
)
select
    user_id, head.seq + n, coalesce(%(ids)s || lpad(n::text, 12, '0'), 'evt_' || gen_random_uuid()), 'rep_history',
    head.seq + n, 'device-history', 1, 'proj_global',
    'sess_20260202_001', to_char(timestamptz '2026-02-02Z' + n * interval '1 s', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
    'exchange_recorded',
    jsonb_build_object('question', '第 ' || n || ' 个问题', 'answer', repeat('回答', 30), 'importance', 3),
    lpad(to_hex(1769990400000 + n * 1000), 12, '0') || '-0000', 'user-typed', '2026-02-02', 480, 700, now()
from public.ai_memory_heads as head, generate_series(1, %(count)s) as n
where user_id = %(user)s
"""


def write_history(cloud: Cloud, user_id: str, count: int, *, ids: str | None = None) -> None:
    """Another device's events, as if they had been pushed: numbered without a gap under the head.

    `ids`: what their ids begin with, before twelve digits from 1 on; random ones without it.
    """
    with psycopg.connect(cloud.database_url) as connection:
        connection.execute(
            "insert into public.ai_memory_devices (user_id, device_id, name) values (%s, 'device-history', 'history')"
            " on conflict do nothing",
            [user_id],
        )
        connection.execute(_HISTORY, {"user": user_id, "count": count, "ids": ids})
        connection.execute("update public.ai_memory_heads set seq = seq + %s where user_id = %s", [count, user_id])
