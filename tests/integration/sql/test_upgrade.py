"""A project that lives with the original app's table, upgraded as `supabase db push` does it: no row may be lost."""

import asyncio
import hashlib
import shutil
import threading
from collections.abc import Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row

from sync.cloud.supabase import schema_version
from tests.cloud.local_cloud import LocalCloud
from tests.cloud.prerequisites import MIGRATIONS
from tests.integration.sql.connections import Cloud, as_role, call, open_cloud, refusal

T = TypeVar("T")
Row = dict[str, Any]

ORIGINAL_FILE = schema_version.MIGRATIONS[0]
RUN_TWICE = (ORIGINAL_FILE, "20261125000700_ai_memory_legacy.sql")

# The table as the original app's documents give it, with what its users do to it: open policies, an index with a name
# that ours would like to have, a trigger, a column of their own.
ORIGINAL = """
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
    create index ai_memory_user_id_device_id_key on ai_memory (user_id);
    alter table ai_memory add column app_version text;
    alter table ai_memory enable row level security;
    create policy "everybody reads" on ai_memory for select using (true);
    create policy ai_memory_insert on ai_memory for all using (true) with check (true);
"""
# What other copies of it looked like: ids of another type, nothing unique, nothing required, times as text.
LOOSE = """
    create table ai_memory (id bigint generated always as identity, device_id text, user_id text, content text,
        created_at text, updated_at bigint);
    grant all on ai_memory to public;
"""
MINIMAL = """
    create table ai_memory (id uuid primary key default gen_random_uuid(), device_id text unique, content text);
    alter table ai_memory enable row level security;
    create policy "everybody does" on ai_memory for all using (true) with check (true);
    create view everything as select * from ai_memory;
"""


class Project:
    """A local cloud with the original app's table in it; `upgrade` runs this repository's migrations."""

    def __init__(self, folder: Path, original: str, *, grants: Any = "classic") -> None:
        self._folder = folder
        self._original = original
        self._grants = grants
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._open = AsyncExitStack()
        self.cloud: LocalCloud

    def __enter__(self) -> Self:
        self._thread.start()
        (self._folder / "20260101000000_original_app.sql").write_text(self._original, "utf-8")
        started = LocalCloud.start(migrations=self._folder, grants=self._grants)
        self.cloud = self._run(self._open.enter_async_context(started))
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._open.aclose())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def database_url(self) -> str:
        assert self.cloud.database_url is not None
        return self.cloud.database_url

    def upgrade(self, *files: str) -> None:
        """Apply these migrations, or all, as one `supabase db push`."""
        self._run(self.cloud.stop_http())
        for path in sorted(MIGRATIONS.glob("*.sql")):
            if not files or path.name in files:
                shutil.copy(path, self._folder)
        self._run(self.cloud.start_http())

    def execute(self, statement: str, values: Any = ()) -> list[Row]:
        with psycopg.connect(self.database_url, row_factory=dict_row) as connection:
            cursor = connection.execute(statement.encode(), values)
            return cursor.fetchall() if cursor.description else []

    def account(self, **columns: Any) -> str:
        """An account with these columns of auth.users; its id."""
        named = {"id": str(uuid4()), **columns}
        places = ", ".join(f"%({name})s" for name in named)
        self.execute(f"insert into auth.users ({', '.join(named)}) values ({places})", named)
        return str(named["id"])

    def insert(self, row: Row) -> None:
        places = ", ".join(f"%({name})s" for name in row)
        self.execute(f"insert into public.ai_memory ({', '.join(row)}) values ({places})", row)

    def sign_up(self, email: str) -> str:
        return self._run(self.cloud.create_user(email, "a long password"))

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)


CONFIRMED = "2026-01-01T00:00:00Z"
BIG = "# 大\n" + "字" * 400_000  # over 1 MiB
ODD = "# AI 对话记忆\r\n\u200b- ‘引号’ \\ \t \U0001f600 \x01 e\u0301\n\n\n"  # what no conversion may touch


@dataclass
class OriginalRows:
    """Who has an account, and the rows that the original app left: by name, with who must get each."""

    accounts: dict[str, str] = field(default_factory=dict)
    rows: dict[str, Row] = field(default_factory=dict)
    owners: dict[str, str | None] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def row(self, name: str, user_id: str | None, *, owner: str | None = None, why: str = "", **more: Any) -> None:
        device = {
            "id": f"id-{name}",
            "device_id": f"device-{name}",
            "user_id": user_id,
            "content": f"# {name}\n- 一条\n",
        }
        self.rows[name] = device | more
        self.owners[name] = owner
        self.reasons[name] = why


def insert_original_rows(project: Project) -> OriginalRows:
    """Rows of every kind, in a project whose table is the original's."""
    story = OriginalRows()
    known = story.accounts
    known["lin"] = project.account(phone="8613812345678", phone_confirmed_at=CONFIRMED)
    known["wang"] = project.account(phone="8613900000001", phone_confirmed_at=CONFIRMED)
    known["mail"] = project.account(email="chen@example.com", email_confirmed_at=CONFIRMED)
    known["typo"] = project.account(phone="8613700000007")  # a number that was typed in and never confirmed
    known["gone"] = project.account(phone="8613600000006", phone_confirmed_at=CONFIRMED, deleted_at=CONFIRMED)
    known["american"] = project.account(phone="14155550100", phone_confirmed_at=CONFIRMED)
    known["id"] = project.account()
    story.row("plain", "13812345678", owner="lin", app_version="1.0.3", updated_at="2026-01-08T15:49:12.123456+08:00")
    story.row("spaced", "+86 138-1234-5678", owner="lin")
    story.row("zeros", "0086 139 0000 0001", owner="wang", content=ODD)
    story.row("wide", "＋８６１３９０００００００１", owner="wang", content="")
    story.row("digits", "8613900000001", owner="wang", id="")
    story.row("address", " Chen@Example.com ", owner="mail")
    story.row("uuid", known["id"].upper(), owner="id", created_at="infinity")
    story.row("guest", None, why="no_owner")
    story.row("blank", "  ", why="no_owner")
    story.row("nobody", "13511112222", why="owner_unknown")
    story.row("unconfirmed", "13700000007", why="owner_unknown")
    story.row("deleted", "13600000006", why="owner_unknown")
    story.row("chinese", "14155550100", why="owner_unknown")  # bare: a Chinese number, not the American's
    story.row("abroad", "+1 (415) 555-0100", owner="american")
    story.row("big", "13812345678", owner="lin", why="too_large", content=BIG)
    story.row("long", "13812345678", owner="lin", why="no_device", device_id="d" * 129)
    for row in story.rows.values():
        project.insert(row)
    return story


@pytest.fixture(scope="module", params=["classic", "explicit"])
def upgraded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Project, OriginalRows]]:
    with Project(tmp_path_factory.mktemp("original"), ORIGINAL, grants=request.param) as project:
        story = insert_original_rows(project)
        project.upgrade()
        yield project, story


@pytest.fixture
def cloud(upgraded: tuple[Project, OriginalRows]) -> Iterator[Cloud]:
    with open_cloud(upgraded[0].database_url) as opened:
        yield opened


def digest(text: str | None) -> str | None:
    return None if text is None else hashlib.sha256(text.encode()).hexdigest()


def legacy(project: Project) -> dict[str, Row]:
    return {row["id"]: row for row in project.execute("select * from public.ai_memory_legacy")}


# --- no row is lost -----------------------------------------------------------------------------------------


def test_every_row_is_kept_once_byte_for_byte(upgraded: tuple[Project, OriginalRows]) -> None:
    project, story = upgraded
    kept = project.execute("select * from public.ai_memory_legacy where id not like 'late-%%'")
    columns = ("id", "device_id", "user_id", "content")
    found = sorted([[row[name] or "" for name in columns] for row in kept])
    assert found == sorted([[row.get(name) or "" for name in columns] for row in story.rows.values()])
    assert legacy(project)["id-plain"]["others"] == {"app_version": "1.0.3"}
    assert project.execute(
        "select updated_at::timestamptz = '2026-01-08T07:49:12.123456Z' as same"
        " from public.ai_memory_legacy where id = 'id-plain'"
    ) == [{"same": True}]
    assert project.execute("select to_regclass('public.ai_memory_original') as left") == [{"left": None}]


def test_a_row_whose_owner_has_an_account_is_that_accounts_device(upgraded: tuple[Project, OriginalRows]) -> None:
    project, story = upgraded
    moved = [name for name, owner in story.owners.items() if owner and not story.reasons[name]]
    for name in moved:
        row, user_id = story.rows[name], story.accounts[str(story.owners[name])]
        found = project.execute("select * from public.ai_memory where device_id = %s", [row["device_id"]])
        assert [str(one["user_id"]) for one in found] == [user_id], name
        assert found[0]["content"] == row["content"]
        assert found[0]["content_sha256"] == digest(row["content"])
        assert found[0]["replica_id"] is None, "the sidecar must see that nobody has read it yet"
        assert found[0]["id"] == row["id"] or not row["id"]
        devices = project.execute(
            "select replica_id from public.ai_memory_devices where (user_id, device_id) = (%s, %s)",
            [user_id, row["device_id"]],
        )
        assert devices == [{"replica_id": None}]
    assert len(project.execute("select 1 from public.ai_memory where device_id like 'device-%%'")) == len(moved)


def test_a_row_that_waits_says_why(upgraded: tuple[Project, OriginalRows]) -> None:
    project, story = upgraded
    found = legacy(project)
    for name, why in story.reasons.items():
        row, owner = found[story.rows[name]["id"]], story.owners[name]
        assert (row["kept_because"] or "") == why, name
        assert (row["moved_at"] is None) == bool(why), name
        assert (str(row["claimed_by"]) if row["claimed_by"] else None) == (story.accounts[owner] if owner else None)


def test_the_upgraded_project_is_of_the_version_this_program_needs(cloud: Cloud) -> None:
    assert cloud.value("select public.ai_memory_schema_version()") == schema_version.REQUIRED_VERSION


def test_after_the_upgrade_devices_sync_as_ever(cloud: Cloud) -> None:
    account = cloud.account()
    account.register()
    assert account.sync()["head"] == 0
    assert "snapshot" not in account.sync()


# --- nothing stays open -------------------------------------------------------------------------------------


def test_no_policy_of_the_original_lives_on(cloud: Cloud) -> None:
    assert cloud.value("select count(*) from pg_policies where policyname = 'everybody reads'") == 0
    assert cloud.value("select count(*) from pg_policies where tablename = 'ai_memory' and qual = 'true'") == 0
    assert cloud.value("select relrowsecurity from pg_class where oid = 'public.ai_memory_legacy'::regclass") is True


@pytest.mark.parametrize("table", ["ai_memory_legacy", "ai_memory_admin_legacy"])
@pytest.mark.parametrize("role", ["anon", "authenticated"])
def test_only_an_admin_reads_waiting_rows(cloud: Cloud, table: str, role: str) -> None:
    claims = {"sub": str(uuid4()), "role": role}
    with pytest.raises(psycopg.errors.InsufficientPrivilege), as_role(cloud.admin, role, claims) as cursor:
        cursor.execute(f"select * from public.{table}".encode())


@pytest.mark.parametrize("role", ["anon", "authenticated", "service_role"])
def test_no_role_writes_waiting_rows(cloud: Cloud, role: str) -> None:
    for statement in ("delete from public.ai_memory_legacy", "update public.ai_memory_legacy set content = ''"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege), as_role(cloud.admin, role, None) as cursor:
            cursor.execute(statement.encode())


@pytest.mark.parametrize("role", ["anon", "authenticated"])
def test_only_an_admin_claims(cloud: Cloud, role: str) -> None:
    user = cloud.account().user_id
    with pytest.raises(psycopg.errors.InsufficientPrivilege), as_role(cloud.admin, role, None) as cursor:
        call(cursor, "ai_memory_admin_claim_legacy", p_legacy_id=1, p_user=user)
    with pytest.raises(psycopg.errors.InsufficientPrivilege), as_role(cloud.admin, role, None) as cursor:
        call(cursor, "ai_memory_admin_match_legacy")


def test_the_list_for_admins_holds_no_content(cloud: Cloud) -> None:
    with as_role(cloud.admin, "service_role", None) as cursor:
        cursor.execute("select * from public.ai_memory_admin_legacy")
        names = {column.name for column in cursor.description or ()}
        assert cursor.fetchall()
    assert "content" not in names
    assert {"legacy_id", "device_id", "user_id", "content_bytes", "kept_because", "claimed_by"} <= names


# --- claiming -----------------------------------------------------------------------------------------------


def waiting(cloud: Cloud, **row: Any) -> int:
    """A row that came later than the upgrade; its number."""
    values = {"id": f"late-{uuid4()}", "device_id": str(uuid4()), "user_id": None, "content": "# 从前\n- 旧的\n"} | row
    columns = ", ".join(values)
    places = ", ".join(f"%({name})s" for name in values)
    found = cloud.admin.execute(
        f"insert into public.ai_memory_legacy ({columns}) values ({places}) returning legacy_id".encode(), values
    ).fetchone()
    assert found is not None
    return int(found[0])


def claim(cloud: Cloud, number: int, user: str) -> Any:
    with as_role(cloud.admin, "service_role", None) as cursor:
        return call(cursor, "ai_memory_admin_claim_legacy", p_legacy_id=number, p_user=user)


def test_an_admin_gives_a_row_to_an_account_and_its_device_reads_it_as_foreign(cloud: Cloud) -> None:
    account, number = cloud.account(), waiting(cloud, device_id="d1")
    assert claim(cloud, number, account.user_id) == {"moved": True, "kept_because": None}
    assert account.rows("select content from public.ai_memory") == [("# 从前\n- 旧的\n",)]
    account.register()
    assert account.sync()["snapshot"] == "foreign"
    with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
        claim(cloud, number, cloud.account().user_id)
    assert refusal(caught.value)[1] == {"kind": "bad_request", "field": "p_legacy_id"}


def test_a_claim_never_writes_over_what_the_account_has(cloud: Cloud) -> None:
    account, number = cloud.account(), waiting(cloud, device_id="d1")
    account.rows("insert into public.ai_memory (device_id, content) values ('d1', '# 现在\n')")
    assert claim(cloud, number, account.user_id) == {"moved": False, "kept_because": "device_has_document"}
    assert account.rows("select content from public.ai_memory") == [("# 现在\n",)]
    assert cloud.value("select content from public.ai_memory_legacy where legacy_id = %s", number) == "# 从前\n- 旧的\n"


def test_a_revoked_device_gets_nothing(cloud: Cloud) -> None:
    account, number = cloud.account(), waiting(cloud, device_id="d1")
    account.register()
    account.call("ai_memory_revoke_device", p_device_id="d1")
    assert claim(cloud, number, account.user_id) == {"moved": False, "kept_because": "device_revoked"}


@pytest.mark.parametrize(
    ("row", "why"),
    [({"content": None}, "no_content"), ({"content": BIG}, "too_large"), ({"device_id": None}, "no_device"),
     ({"device_id": ""}, "no_device")],
    ids=["null", "big", "no device", "empty device"],
)  # fmt: skip
def test_what_cannot_be_a_document_is_claimed_and_stays_as_it_is(cloud: Cloud, row: Row, why: str) -> None:
    account, number = cloud.account(), waiting(cloud, **row)
    assert claim(cloud, number, account.user_id) == {"moved": False, "kept_because": why}
    kept = cloud.value("select claimed_by::text from public.ai_memory_legacy where legacy_id = %s", number)
    assert kept == account.user_id


def test_a_claim_for_an_unknown_account_is_refused(cloud: Cloud) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue) as caught:
        claim(cloud, waiting(cloud), str(uuid4()))
    assert refusal(caught.value)[1] == {"kind": "bad_request", "field": "p_user"}


def test_an_account_made_later_gets_its_rows_by_matching_again(cloud: Cloud) -> None:
    number = waiting(cloud, user_id="+86 156 0000 1234", device_id="d1")
    match = "select public.ai_memory_admin_match_legacy()"
    assert cloud.value(match) == 0
    assert (
        cloud.value("select kept_because from public.ai_memory_legacy where legacy_id = %s", number) == "owner_unknown"
    )
    account = cloud.account()
    cloud.admin.execute(
        "update auth.users set phone = '8615600001234', phone_confirmed_at = now() where id = %s", [account.user_id]
    )
    assert cloud.value(match) == 1
    assert cloud.value(match) == 0
    assert account.rows("select device_id from public.ai_memory") == [("d1",)]


def test_of_two_rows_of_one_device_the_newest_counts_and_the_other_is_kept(cloud: Cloud) -> None:
    account = cloud.account()
    same = {"user_id": account.user_id, "device_id": "d1"}
    old = waiting(cloud, **same, content="# 旧\n", updated_at="2026-01-01T00:00:00+08:00")
    new = waiting(cloud, **same, content="# 新\n", updated_at="1767750000000")  # 2026-01-07, as Date.now() says it
    timeless = waiting(cloud, **same, content="# 何时\n", updated_at="昨天")
    assert cloud.value("select public.ai_memory_admin_match_legacy()") == 1
    assert account.rows("select content from public.ai_memory") == [("# 新\n",)]
    kept = "select kept_because from public.ai_memory_legacy where legacy_id = %s"
    assert [cloud.value(kept, number) for number in (old, new, timeless)] == [
        "device_has_document", None, "device_has_document",
    ]  # fmt: skip


def test_an_account_that_goes_takes_its_old_rows_along(cloud: Cloud) -> None:
    account, number = cloud.account(), waiting(cloud)
    claim(cloud, number, account.user_id)
    cloud.admin.execute("delete from auth.users where id = %s", [account.user_id])
    assert cloud.value("select count(*) from public.ai_memory_legacy where legacy_id = %s", number) == 0


# --- the original app, afterwards ---------------------------------------------------------------------------


def test_the_errors_that_the_original_app_gets_when_it_writes_as_before(upgraded: tuple[Project, OriginalRows]) -> None:
    project, _ = upgraded
    cloud, email = project.cloud, f"{uuid4().hex}@example.com"
    project.sign_up(email)
    with httpx.Client(base_url=cloud.url, headers={"apikey": cloud.publishable_key}, trust_env=False) as client:
        person = {"email": email, "password": "a long password"}
        token = client.post("/auth/v1/token?grant_type=password", json=person).json()["access_token"]
        mine = {"authorization": f"Bearer {token}", "prefer": "resolution=merge-duplicates"}
        row = {"device_id": "hardware-9", "content": "# 一\n", "updated_at": CONFIRMED}

        def upsert(query: str = "", headers: dict[str, str] = mine, **more: Any) -> tuple[int, str]:
            answer = client.post(f"/rest/v1/ai_memory{query}", json=row | more, headers=headers)
            return answer.status_code, "" if answer.is_success else str(answer.json()["code"])

        assert upsert("?on_conflict=device_id") == (400, "42P10")  # one device may hold two accounts now
        assert upsert() == (201, "")  # without a key to find its row by: the first time a new row, then never again
        assert upsert() == (409, "23505")
        assert upsert(user_id=str(uuid4())) == (403, "42501")  # whose row it is says the token
        assert upsert(headers={"prefer": mine["prefer"]}) == (401, "42501")  # the publishable key alone
        secret = {**mine, "apikey": cloud.secret_key, "authorization": f"Bearer {cloud.secret_key}"}
        assert upsert(headers=secret) == (403, "42501")  # the service key, with which it used to come
        assert upsert("?on_conflict=user_id,device_id", content="# 二\n")[0] in {200, 201}
        changed = client.patch("/rest/v1/ai_memory?device_id=eq.hardware-9", json={"content": "# 三\n"}, headers=mine)
        assert changed.status_code == httpx.codes.NO_CONTENT
        assert client.get("/rest/v1/ai_memory?select=content", headers=mine).json() == [{"content": "# 三\n"}]


# --- other originals, other moments -------------------------------------------------------------------------


def test_an_original_of_another_shape_is_kept_as_well(tmp_path: Path) -> None:
    with Project(tmp_path, LOOSE) as project:
        owner = project.account(phone="8613812345678", phone_confirmed_at=CONFIRMED)
        mine = {"user_id": "13812345678", "device_id": "d1"}
        rows: list[Row] = [
            {**mine, "content": "# 旧\n", "updated_at": 1767700000000},
            {**mine, "content": "# 新\n", "updated_at": 1767750000000, "created_at": "gestern"},
            {**mine, "content": None, "device_id": None},
            {"user_id": None, "device_id": None, "content": None},
            {"user_id": None, "device_id": "d2", "content": BIG},
        ]
        for row in rows:
            project.insert(row)
        project.upgrade()
        kept = project.execute("select id, content, kept_because from public.ai_memory_legacy order by id")
        assert [row["id"] for row in kept] == ["1", "2", "3", "4", "5"]
        assert [row["content"] for row in kept] == [row["content"] for row in rows]
        reasons = ["device_has_document", None, "no_content", "no_owner", "no_owner"]
        assert [row["kept_because"] for row in kept] == reasons
        found = project.execute("select user_id::text, content, updated_at = to_timestamp(1767750000) as on_time"
                                " from public.ai_memory")  # fmt: skip
        assert found == [{"user_id": owner, "content": "# 新\n", "on_time": True}]


def test_one_without_owner_or_times_and_with_a_view_on_it_is_copied_and_stays_closed(tmp_path: Path) -> None:
    with Project(tmp_path, MINIMAL) as project:
        project.insert({"device_id": "d1", "content": ODD})
        project.upgrade()
        (row,) = project.execute("select content, kept_because from public.ai_memory_legacy")
        assert (row["content"], row["kept_because"]) == (ODD, "no_owner")
        assert len(project.execute("select * from public.ai_memory_original_copied")) == 1
        assert project.execute("select 1 from pg_policies where tablename = 'ai_memory_original_copied'") == []
        with open_cloud(project.database_url) as cloud:
            for role in ("anon", "authenticated", "service_role"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege), as_role(cloud.admin, role, None) as cursor:
                    cursor.execute("select * from public.ai_memory_original_copied")


@pytest.fixture
def original(tmp_path: Path) -> Iterator[Project]:
    with Project(tmp_path, ORIGINAL) as project:
        project.insert({"id": "1", "device_id": "d1", "user_id": "13812345678", "content": ODD})
        yield project


def test_killed_in_the_middle_of_any_migration_it_is_as_before_and_the_next_push_goes_on(original: Project) -> None:
    everything = (
        "select oid, relname, relrowsecurity, relacl::text from pg_class where relnamespace = 'public'::regnamespace"
    )
    for path in sorted(MIGRATIONS.glob("*.sql")):
        before = original.execute(everything)
        with psycopg.connect(original.database_url) as dying:
            dying.execute("set role postgres")
            dying.execute(path.read_bytes())
            original.execute("select pg_terminate_backend(%s)", [dying.info.backend_pid])
            with pytest.raises(psycopg.OperationalError):
                dying.commit()
        assert original.execute(everything) == before, path.name
        with psycopg.connect(original.database_url) as next_push:
            next_push.execute("set role postgres")
            next_push.execute(path.read_bytes())
    assert [row["content"] for row in original.execute("select content from public.ai_memory_legacy")] == [ODD]


def test_the_first_file_leaves_our_own_table_alone(tmp_path: Path) -> None:
    others = [name for name in schema_version.MIGRATIONS if name != ORIGINAL_FILE]
    with Project(tmp_path, "select 1;") as project:
        project.upgrade(*others)
        with open_cloud(project.database_url) as cloud:
            account = cloud.account()
            account.rows("insert into public.ai_memory (device_id, content) values ('d1', %s)", ODD)
            project.upgrade()
            assert account.rows("select content from public.ai_memory") == [(ODD,)]
            assert cloud.value("select count(*) from public.ai_memory_legacy") == 0
            assert cloud.value("select public.ai_memory_schema_version()") == schema_version.REQUIRED_VERSION


def test_the_files_of_the_upgrade_may_be_run_a_second_time(original: Project) -> None:
    original.upgrade()
    before = original.execute("select * from public.ai_memory_legacy")
    for name in RUN_TWICE:
        with psycopg.connect(original.database_url) as connection:
            connection.execute("set role postgres")
            connection.execute((MIGRATIONS / name).read_bytes())
    assert original.execute("select * from public.ai_memory_legacy") == before


def test_a_project_of_schema_2_is_set_aside_with_its_rows_and_set_up_again(original: Project) -> None:
    original.upgrade()
    aside = (MIGRATIONS.parent / "set_aside_schema_2.sql").read_bytes()
    with psycopg.connect(original.database_url) as connection:
        connection.execute("set role postgres")
        with pytest.raises(psycopg.errors.RaiseException):
            connection.execute(aside)
        connection.rollback()
        connection.execute("set role postgres")
        connection.execute(
            "create or replace function public.ai_memory_schema_version() returns integer language sql as 'select 2'"
        )
        connection.execute(aside)
        for path in sorted(MIGRATIONS.glob("*.sql")):
            connection.execute(path.read_bytes())
    kept = original.execute("select content from ai_memory_before.ai_memory_legacy")
    assert [row["content"] for row in kept] == [ODD]
    with open_cloud(original.database_url) as cloud:
        account = cloud.account()
        assert account.register()["schema_version"] == schema_version.REQUIRED_VERSION
        assert account.sync()["head"] == 0
