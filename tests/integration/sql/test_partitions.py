"""A project that was set up before its events were partitioned, and the same one afterwards."""

from collections.abc import AsyncIterator

import psycopg
import pytest

from tests.cloud.database import postgres
from tests.integration.sql.connections import Account, Cloud, Json, Reader, as_role, event, migrate, open_cloud

FIRST_DAY = "20261121999999"
PARTITIONS = "20261122000300_ai_memory_partitions.sql"

# Everything about a table that a query through it can notice, the names of what belongs to it included.
FACTS = """
    select jsonb_build_object(
        'columns', (select jsonb_agg(to_jsonb(c) - 'table_name' - 'dtd_identifier' order by c.ordinal_position)
            from information_schema.columns as c where c.table_schema = 'public' and c.table_name = 'ai_memory_events'),
        'constraints', (select jsonb_object_agg(conname, pg_get_constraintdef(oid)) from pg_constraint
            where conrelid = 'public.ai_memory_events'::regclass and contype <> 'n'),
        'policies', (select jsonb_agg(to_jsonb(p) order by p.policyname) from pg_policies as p
            where p.tablename = 'ai_memory_events'),
        'grants', (select jsonb_agg(to_jsonb(g) order by g.grantee, g.privilege_type)
            from information_schema.role_table_grants as g
            where g.table_schema = 'public' and g.table_name = 'ai_memory_events' and g.grantee <> 'postgres'),
        'secured', (select relrowsecurity from pg_class where oid = 'public.ai_memory_events'::regclass),
        'comment', obj_description('public.ai_memory_events'::regclass)
    )
"""


@pytest.fixture
async def older(request: pytest.FixtureRequest) -> AsyncIterator[Cloud]:
    """A project that stopped at the migrations of the first day."""
    async with postgres.running_server() as server:
        with open_cloud(server.url) as cloud:
            migrate(cloud.admin, through=FIRST_DAY)
            yield cloud


def filled(cloud: Cloud) -> Account:
    account = cloud.account()
    account.register()
    account.sync([event(n) for n in range(1, 8)])
    account.call("ai_memory_forget", p_device_id="d1", p_event_ids=psycopg.types.json.Jsonb([everything(account)[3]]))
    return account


def everything(account: Account) -> list[str]:
    return [event["event_id"] for event in account.sync()["events"]]


def pulled(account: Account) -> list[Json]:
    events: list[Json] = account.sync()["events"]
    return events


async def test_partitioning_moves_every_row_and_changes_nothing_a_query_notices(older: Cloud) -> None:
    people = [filled(older) for _ in range(24)]
    before = [pulled(person) for person in people]
    facts = older.value(FACTS)
    reader = Reader(people[0])
    reader.pull(limit=3)
    migrate(older.admin, after=FIRST_DAY, through=PARTITIONS)
    assert older.value(FACTS) == facts
    assert [pulled(person) for person in people] == before
    assert older.value("select count(distinct tableoid) from public.ai_memory_events") > 4
    assert reader.pull()["head"] == 7
    assert people[0].sync([event(8)])["head"] == 8


async def test_a_partition_is_nobodys(older: Cloud) -> None:
    person = filled(older)
    migrate(older.admin, after=FIRST_DAY, through=PARTITIONS)
    found = older.value("select tableoid::regclass::text from public.ai_memory_events limit 1")
    secured = "select count(*) from pg_inherits join pg_class on oid = inhrelid where relrowsecurity"
    assert older.value(secured + " and inhparent = 'public.ai_memory_events'::regclass") == 16
    for role in ("anon", "authenticated", "service_role"):
        with (
            pytest.raises(psycopg.errors.InsufficientPrivilege),
            as_role(older.connect(), role, person.claims) as cursor,
        ):
            cursor.execute(f"select * from {found}".encode())
