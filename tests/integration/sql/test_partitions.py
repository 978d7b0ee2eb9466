"""The partitions of ai_memory_events: users are spread over them, and no role may read one directly."""

import psycopg
import pytest

from tests.cloud.fixtures import Cloud as LocalCloud
from tests.integration.sql.connections import as_role, event, open_cloud

COUNT = """
    select count(*) from pg_inherits join pg_class on oid = inhrelid
    where inhparent = 'public.ai_memory_events'::regclass
"""


def test_users_are_spread_over_partitions_that_no_role_may_read(local_cloud: LocalCloud) -> None:
    with open_cloud(local_cloud.database_url) as cloud:
        users = [cloud.account() for _ in range(24)]
        for user in users:
            user.register()
            user.sync([event(n) for n in range(1, 3)])
        used = cloud.admin.execute("select distinct tableoid::regclass::text from public.ai_memory_events").fetchall()
        assert len(used) > 4
        assert cloud.value(COUNT) == cloud.value(COUNT + " and relrowsecurity") == 16
        for role in ("anon", "authenticated", "service_role"):
            with (
                pytest.raises(psycopg.errors.InsufficientPrivilege),
                as_role(cloud.connect(), role, users[0].claims) as cursor,
            ):
                cursor.execute(f"select * from {used[0][0]}".encode())
