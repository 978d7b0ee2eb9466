"""Among ten thousand users a call looks at its own user's rows only, through an index, whatever the others have.

A hundred thousand events here; `python -m tests.bench.bench_sql` does it with a million and with times, which
stand in sql/README.md.
"""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from psycopg.types.json import Jsonb

from tests.cloud.database import postgres
from tests.integration.sql.connections import Account, Cloud, Json, Reader, event, migrate, open_cloud
from tests.integration.sql.many_users import ManyUsers

USERS, EACH = 10_000, 10
SETTINGS = {"ai_memory_limits"}  # one page, the same for all users: a scan reads less than its index

# What this connection has done to our tables, inside functions too: sequential scans, and rows read either way.
READ = """
    select relname, seq_scan, seq_tup_read + coalesce(idx_tup_fetch, 0)
    from pg_stat_xact_user_tables where relname like 'ai\\_memory%'
"""


@pytest.fixture
async def crowd() -> AsyncIterator[ManyUsers]:
    async with postgres.running_server() as server:
        with open_cloud(server.url) as cloud:
            migrate(cloud.admin)
            crowd = ManyUsers(cloud, USERS, EACH)
            crowd.insert_users()
            yield crowd


def touched(person: Account, **arguments: Any) -> dict[str, tuple[int, int]]:
    """Sequential scans and rows read of each table that one call looked at."""
    names = ", ".join(f"p_{name} => %({name})s" for name in arguments)
    call = f"select public.ai_memory_sync(p_device_id => 'd1', p_replica_id => 'r1', {names})".encode()
    with person.request() as cursor:
        before = {name: (scans, rows) for name, scans, rows in cursor.execute(READ.encode()).fetchall()}
        cursor.execute(call, arguments)
        after = {name: (scans, rows) for name, scans, rows in cursor.execute(READ.encode()).fetchall()}
    return {
        name: (scans - before[name][0], rows - before[name][1])
        for name, (scans, rows) in after.items()
        if (scans, rows) != before[name]
    }


def nodes(plan: Json) -> list[Json]:
    return [plan, *(node for below in plan.get("Plans", []) for node in nodes(below))]


def explained(cloud: Cloud, statement: str) -> list[Json]:
    return nodes(cloud.value(f"explain (analyze, format json) {statement}")[0]["Plan"])


async def test_a_call_reads_only_its_users_rows_through_an_index(crowd: ManyUsers) -> None:
    person = crowd.account()
    reader = Reader(person)
    reader.pull()
    place = {"after": EACH, "after_event": reader.after_event, "epoch": reader.epoch}
    for _ in range(8):  # a plan for everybody would be made at the sixth
        poll = touched(person, **place)
    pull = touched(person, after=0, epoch=reader.epoch)
    push = touched(person, events=Jsonb([event(1000 + n) for n in range(20)]), **place)
    for call, most in ((poll, 1), (pull, EACH), (push, 21)):  # the event at the cursor, and the page
        partitions = {name: cost for name, cost in call.items() if name.startswith("ai_memory_events_")}
        assert len(partitions) == 1, "one partition of sixteen"
        scanned = {name for name, (scans, _) in call.items() if scans}
        assert scanned <= SETTINGS, call
        assert all(rows <= most for _, rows in partitions.values()), call
    assert poll["ai_memory_heads"] == (0, 1)

    some = "(select user_id from ai_memory_heads where user_id <> %s limit 300)"
    admin = crowd.cloud.admin
    admin.execute(
        f"update ai_memory_devices set last_seen_at = '2020-01-01' where user_id in {some}".encode(), [person.user_id]
    )
    admin.execute(f"select ai_memory_admin_checkpoint(user_id) from {some} as x".encode(), [person.user_id])
    admin.execute("analyze")
    push = touched(person, events=Jsonb([event(2000)]), **place)
    assert "ai_memory_checkpoints" not in push, "the look-up of known ids found nothing through its index"

    lookup = f"select event_id from public.ai_memory_events where user_id = '{person.user_id}' and seq = {EACH}"
    page = (
        f"select * from public.ai_memory_events where user_id = '{person.user_id}' and seq > 3 order by seq limit 500"
    )
    for statement in (lookup, page):
        found = explained(crowd.cloud, statement)
        assert [node["Relation Name"][:-2] for node in found if "Relation Name" in node] == ["ai_memory_events_"]
        assert any(node["Node Type"].startswith(("Index", "Bitmap")) for node in found)
        assert not any(node["Node Type"] == "Seq Scan" for node in found)
