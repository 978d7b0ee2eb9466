"""What the original app's own schema lets through: its table as its documents give it, run through the same matrix.

The documents know no policy and no row-level security, and a hosted project of their day granted everything on a new
table to everybody, so what is missing here is not a mistake of this text.
"""

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest

from tests.cloud.fixtures import Cloud as RunningCloud
from tests.cloud.fixtures import running_cloud
from tests.integration.sql.connections import Cloud, open_cloud
from tests.integration.sql.permissions import matrix
from tests.integration.sql.permissions.fixture_rows import LOST, SHARED, FixtureRows, Person, actors
from tests.integration.sql.permissions.matrix import DirectAccess, TableSample

SCHEMA = """
    create table ai_memory (
        id text primary key,
        device_id text not null,
        user_id text,
        content text not null,
        created_at timestamptz default now(),
        updated_at timestamptz default now(),
        unique (device_id)
    );
    create index idx_ai_memory_device on ai_memory (device_id);
    create index idx_ai_memory_user on ai_memory (user_id);
"""
SHAPES = {"ai_memory": TableSample({"id": "new", "content": "# new\n"}, {"content": "# changed\n"}, ("device_id",))}

# 44 of 49, as ours answers and as it does: actor, verb, what should be, what is.
HOLES = """
owner: select ai_memory: expected reads own, but reads everybody's
owner: plant ai_memory: expected denied, but writes bob's
owner: update ai_memory: expected writes own, but writes everybody's
owner: give ai_memory: expected denied, but writes everybody's
owner: delete ai_memory: expected denied, but writes everybody's
other user: select ai_memory: expected reads own, but reads everybody's
other user: plant ai_memory: expected denied, but writes alice's
other user: update ai_memory: expected writes own, but writes everybody's
other user: give ai_memory: expected denied, but writes everybody's
other user: delete ai_memory: expected denied, but writes everybody's
anon key: select ai_memory: expected denied, but reads everybody's
anon key: insert ai_memory: expected denied, but writes alice's
anon key: plant ai_memory: expected denied, but writes alice's
anon key: upsert ai_memory: expected denied, but writes alice's
anon key: update ai_memory: expected denied, but writes everybody's
anon key: give ai_memory: expected denied, but writes everybody's
anon key: delete ai_memory: expected denied, but writes everybody's
anonymous user: select ai_memory: expected reads nothing, but reads everybody's
anonymous user: insert ai_memory: expected denied, but writes own
anonymous user: plant ai_memory: expected denied, but writes alice's
anonymous user: upsert ai_memory: expected denied, but writes own
anonymous user: update ai_memory: expected writes nothing, but writes everybody's
anonymous user: give ai_memory: expected denied, but writes everybody's
anonymous user: delete ai_memory: expected denied, but writes everybody's
revoked device: select ai_memory: expected reads own, but reads everybody's
revoked device: insert ai_memory: expected denied, but writes own
revoked device: plant ai_memory: expected denied, but writes bob's
revoked device: upsert ai_memory: expected denied, but writes own
revoked device: update ai_memory: expected writes nothing, but writes own
revoked device: give ai_memory: expected denied, but writes alice's and bob's
revoked device: delete ai_memory: expected denied, but writes own
session of a revoked device: select ai_memory: expected reads nothing, but reads everybody's
session of a revoked device: insert ai_memory: expected denied, but writes own
session of a revoked device: plant ai_memory: expected denied, but writes bob's
session of a revoked device: upsert ai_memory: expected denied, but writes own
session of a revoked device: update ai_memory: expected writes nothing, but writes everybody's
session of a revoked device: give ai_memory: expected denied, but writes everybody's
session of a revoked device: delete ai_memory: expected denied, but writes everybody's
expired token: select ai_memory: expected reads nothing, but reads everybody's
expired token: insert ai_memory: expected error 23502, but writes alice's
expired token: plant ai_memory: expected denied, but writes alice's
expired token: upsert ai_memory: expected error 23502, but writes alice's
expired token: update ai_memory: expected writes nothing, but writes everybody's
expired token: give ai_memory: expected denied, but writes everybody's
expired token: delete ai_memory: expected denied, but writes everybody's
service role: insert ai_memory: expected denied, but writes alice's
service role: plant ai_memory: expected denied, but writes alice's
service role: upsert ai_memory: expected denied, but writes alice's
service role: update ai_memory: expected denied, but writes everybody's
service role: give ai_memory: expected denied, but writes everybody's
service role: delete ai_memory: expected denied, but writes everybody's
"""


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCloud]:
    folder: Path = tmp_path_factory.mktemp("original") / "migrations"
    folder.mkdir()
    (folder / "20260101000000_original_app.sql").write_text(SCHEMA, "utf-8")
    with running_cloud("--migrations", str(folder)) as cloud:
        yield cloud


@pytest.fixture(scope="module")
def cloud(running: RunningCloud) -> Iterator[Cloud]:
    with open_cloud(running.database_url) as opened:
        yield opened


@pytest.fixture(scope="module")
def scene(cloud: Cloud) -> FixtureRows:
    alice, bob, guest = (Person(name, str(uuid4())) for name in ("alice", "bob", "guest"))
    devices = {alice.laptop: alice, LOST: alice, SHARED: bob, guest.laptop: guest}
    insert = "insert into public.ai_memory (id, device_id, user_id, content) values (%s, %s, %s, %s)"
    for device, person in devices.items():
        row = [f"id-{device}", device, person.user_id, f"# {person.word}\n"]
        cloud.admin.execute(insert, row)
    return FixtureRows(alice, bob, guest, stray=0)


def test_the_holes_of_the_original_schema_are_these(cloud: Cloud, scene: FixtureRows) -> None:
    door = DirectAccess(cloud.admin, scene, shapes=SHAPES)
    assert list(matrix.failures(door, door.catalogue.checks(actors(scene)))) == HOLES.strip().splitlines()


def test_the_publishable_key_reads_and_deletes_everything(
    running: RunningCloud, cloud: Cloud, scene: FixtureRows
) -> None:
    row = "insert into public.ai_memory (id, device_id, user_id, content) values ('gone', 'gone', %s, '# gone')"
    cloud.admin.execute(row, [scene.alice.user_id])
    headers = {"apikey": running.publishable_key}
    with httpx.Client(base_url=f"{running.url}/rest/v1", headers=headers, trust_env=False, timeout=30) as client:
        found = client.get("/ai_memory").text
        assert client.delete("/ai_memory", params={"device_id": "eq.gone"}).is_success
    assert scene.names_in(found) == {"alice", "bob", "guest"}
    assert cloud.value("select count(*) from public.ai_memory where device_id = 'gone'") == 0


def test_one_row_a_device_is_one_row_for_all_accounts_of_a_machine(cloud: Cloud, scene: FixtureRows) -> None:
    upsert = (
        "insert into public.ai_memory (id, device_id, user_id, content) values (%s, %s, %s, '# hers now') "
        "on conflict (device_id) do update set user_id = excluded.user_id, content = excluded.content"
    )
    with cloud.admin.transaction(force_rollback=True):
        cloud.admin.execute(upsert, ["another", SHARED, scene.alice.user_id])
        kept = cloud.value("select string_agg(content, '') from public.ai_memory")
    assert scene.bob.word not in kept


def test_a_save_as_its_documents_show_it_fails_for_want_of_an_id(cloud: Cloud) -> None:
    upsert = (
        "insert into public.ai_memory (device_id, content, updated_at) values (%s, '# saved', now()) "
        "on conflict (device_id) do update set content = excluded.content"
    )
    for device in (SHARED, "never seen"):
        with pytest.raises(psycopg.errors.NotNullViolation), cloud.admin.transaction():
            cloud.admin.execute(upsert, [device])
