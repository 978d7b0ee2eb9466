"""The Supabase adapter with faults: the right error, never a false acknowledgement, no leaked token."""

import asyncio
import gzip
import json
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from msgspec.structs import replace

from sync.clock import SystemClock
from sync.cloud.auth_port import AuthSession
from sync.cloud.contact import Contact, parse_contact
from sync.cloud.port import Cloud, DeviceFacts, SyncRequest
from sync.cloud.supabase.cloud import SupabaseCloud
from sync.cloud.supabase.http_client import tls_context
from sync.cloud.supabase.lazy import LazyCloud
from sync.errors import (
    CloudError,
    CloudUnavailable,
    CloudUnreachable,
    DeviceRevoked,
    Forbidden,
    LoginRequired,
    RateLimited,
    Rejected,
    SchemaMismatch,
)
from tests.cloud.fixtures import Cloud as LocalCloud
from tests.cloud.fixtures import User
from tests.cloud.http_server import LoopbackPort, Request, Response, http_handler
from tests.cloud.local_cloud import LocalCloud as OwnCloud
from tests.cloud.prerequisites import LOOPBACK
from tests.cloud.proxy.fault_proxy import FaultProxy
from tests.cloud.proxy.socks_proxy import SocksProxy
from tests.support import BROKEN_AFTER, FixedClock, event

FACTS = DeviceFacts("rep_a", "书房", "Linux", "0.1.0")
NOTHING = SyncRequest("device-a", "rep_a")
ONE = SyncRequest("device-a", "rep_a", events=(event(1),))
JSON = {"content-type": "application/json"}
HTML = {"content-type": "text/html"}
GOOD = {
    "epoch": "e1",
    "head": 1,
    "floor": 0,
    "reset": False,
    "events": [],
    "acked": [[ONE.events[0].event_id, 1]],
    "server_time": "2026-02-02T10:00:00.000Z",
}


@pytest.fixture
async def proxy(local_cloud: LocalCloud) -> AsyncIterator[FaultProxy]:
    async with FaultProxy(LOOPBACK, local_cloud.port) as proxy:
        yield proxy


@pytest.fixture
async def cloud(local_cloud: LocalCloud, proxy: FaultProxy) -> AsyncIterator[Cloud]:
    """A client that connects through the proxy, with a generous deadline."""
    client = SupabaseCloud(proxy.url, local_cloud.publishable_key, timeout=20.0, clock=SystemClock())
    yield client
    await client.close()


@pytest.fixture
async def user(new_user: Callable[[], User]) -> User:
    return await asyncio.to_thread(new_user)


@pytest.fixture
async def session(cloud: Cloud, user: User) -> AuthSession:
    """Signed in, with a registered device."""
    signed_in = await cloud.auth.sign_in_with_password(parse_contact(email=user.email), user.password)
    await cloud.register_device(signed_in, "device-a", FACTS)
    return signed_in


async def head(cloud: Cloud, session: AuthSession) -> int:
    return (await cloud.sync(session, NOTHING)).head


async def outcomes(cloud: Cloud, session: AuthSession) -> list[object]:
    """The outcome of each call of the port."""
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: cloud.sync(session, ONE),
        lambda: cloud.register_device(session, "device-a", FACTS),
        lambda: cloud.auth.refresh_session(session),
        lambda: cloud.auth.sign_in_with_password(Contact("email", session.label), "whatever"),
        lambda: cloud.auth.sign_out(session),
    ]
    found: list[object] = []
    async with asyncio.timeout(BROKEN_AFTER):
        for call in calls:
            found += await asyncio.gather(call(), return_exceptions=True)
    return found


async def test_a_refused_connection_is_an_outage_and_passes(
    cloud: Cloud, session: AuthSession, proxy: FaultProxy
) -> None:
    await proxy.disconnect()
    for outcome in await outcomes(cloud, session):
        assert type(outcome) is CloudUnreachable
    await proxy.reconnect()
    assert (await cloud.sync(session, ONE)).acked == ((ONE.events[0].event_id, 1),)


async def test_a_refused_connection_sends_nothing_and_its_return_is_noticed(
    local_cloud: LocalCloud, session: AuthSession, unused_port: int
) -> None:
    nowhere = SupabaseCloud(
        f"http://127.0.0.1:{unused_port}", local_cloud.publishable_key, timeout=5.0, clock=SystemClock()
    )
    for outcome in await outcomes(nowhere, session):
        assert type(outcome) is CloudUnreachable
    assert not await nowhere.is_reachable()
    there = SupabaseCloud(local_cloud.url, local_cloud.publishable_key, timeout=BROKEN_AFTER, clock=SystemClock())
    assert await there.is_reachable()
    await nowhere.close()
    await there.close()


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


async def test_a_silent_network_ends_at_the_deadline(
    local_cloud: LocalCloud, session: AuthSession, proxy: FaultProxy
) -> None:
    hurried = SupabaseCloud(proxy.url, local_cloud.publishable_key, timeout=0.2, clock=SystemClock())
    await proxy.half_open()
    for outcome in await outcomes(hurried, session):
        assert type(outcome) is CloudUnavailable
    await hurried.close()


async def test_an_answer_that_trickles_ends_at_the_deadline_as_a_whole() -> None:
    """Each byte arrives in time, the answer never does. The client's own timeouts count each read."""
    fed = 0

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal fed
        await reader.read(1)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n")
        while True:
            writer.write(b" ")
            await writer.drain()
            fed += 1
            await asyncio.sleep(0.01)  # the pace of the fault itself

    door = LoopbackPort(trickle)
    await door.open()
    hurried = SupabaseCloud(door.url, "sb_publishable_x", timeout=0.3, clock=SystemClock())
    stranger = AuthSession("u", "l", "token", "refresh", 0.0)
    for outcome in await outcomes(hurried, stranger):
        assert type(outcome) is CloudUnavailable
    assert fed > 5
    await hurried.close()
    await door.close()


async def test_a_call_that_meets_a_dead_kept_connection_is_sent_once_more_on_a_new_one(
    local_cloud: LocalCloud, cloud: Cloud, session: AuthSession, proxy: FaultProxy
) -> None:
    await cloud.list_devices(session)  # now there is a kept connection
    await proxy.drop_response_after_request(matching="/rpc/ai_memory_sync")
    answer = await cloud.sync(session, ONE)
    assert (answer.acked, answer.head) == (((ONE.events[0].event_id, 1),), 1)
    fresh = SupabaseCloud(proxy.url, local_cloud.publishable_key, timeout=20.0, clock=SystemClock())
    await proxy.drop_response_after_request(matching="/rpc/ai_memory_sync")
    with pytest.raises(CloudUnavailable):  # a new connection that fails is an outage
        await fresh.sync(session, ONE)
    await fresh.close()


async def test_an_answer_that_was_lost_is_no_acknowledgement_and_sending_again_doubles_nothing(
    cloud: Cloud, session: AuthSession, proxy: FaultProxy
) -> None:
    await proxy.drop_response_after_request(2, matching="/rpc/ai_memory_sync")  # also of the second try
    with pytest.raises(CloudUnavailable):
        await cloud.sync(session, ONE)
    assert await head(cloud, session) == 1, "it was committed"
    again = await cloud.sync(session, ONE)
    assert again.acked == ((ONE.events[0].event_id, 1),)
    assert again.head == 1


@pytest.mark.parametrize(
    ("status", "headers", "body", "kind"),
    [
        (200, HTML, b"<html>Please accept our terms</html>", CloudUnavailable),
        (200, {}, b"", CloudUnavailable),
        (204, {}, b"", CloudUnavailable),
        (200, JSON, b"", CloudUnavailable),
        (200, JSON, b"{}", CloudUnavailable),
        (200, JSON, b"[]", CloudUnavailable),
        (200, JSON, b"null", CloudUnavailable),
        (200, JSON, b'{"status": "success"}', CloudUnavailable),
        (200, JSON, json.dumps(GOOD).encode()[:-20], CloudUnavailable),
        (200, JSON, json.dumps({**GOOD, "acked": [["x"]]}).encode(), CloudUnavailable),
        (200, JSON, json.dumps({**GOOD, "events": [{"event_id": "x"}]}).encode(), CloudUnavailable),
        (200, JSON, json.dumps({**GOOD, "error": "something_new"}).encode(), CloudUnavailable),
        (200, JSON, b"\xff\xfe", CloudUnavailable),
        (200, {**JSON, "content-encoding": "gzip"}, b"this is no gzip", CloudUnavailable),
        (
            200,
            {**JSON, "content-encoding": "gzip"},
            gzip.compress(json.dumps(GOOD).encode() + b" " * 40_000_000),
            CloudUnavailable,
        ),
        (200, JSON, json.dumps(GOOD).encode() + b" " * 20_000_000, CloudUnavailable),
        (500, JSON, b'{"message": "internal"}', CloudUnavailable),
        (502, HTML, b"<html>bad gateway</html>", CloudUnavailable),
        (503, HTML, b"<html>maintenance</html>", CloudUnavailable),
        (429, HTML, b"slow down", RateLimited),
        (404, HTML, b"<html>no such page</html>", CloudUnavailable),
        (400, JSON, b'{"message": "who knows"}', CloudUnavailable),
        (404, JSON, b'{"message": "no Route matched with those values"}', CloudUnavailable),
        (413, HTML, b"too large", Rejected),
        (403, JSON, b'{"message": "blocked by a firewall"}', CloudUnavailable),
        (401, JSON, b'{"message": "Invalid API key", "hint": "Double check"}', Forbidden),
        (401, JSON, b'{"code": "PGRST303", "message": "JWT expired"}', LoginRequired),
        (401, JSON, b'{"code": "42501", "message": "permission denied"}', LoginRequired),
        (404, JSON, b'{"code": "PGRST202", "message": "no function"}', SchemaMismatch),
        (500, JSON, b'{"code": "57014", "message": "timeout"}', CloudUnavailable),
        (
            403,
            JSON,
            b'{"code": "42501", "message": "no", "details": "{\\"kind\\": \\"device_revoked\\"}"}',
            DeviceRevoked,
        ),
        (403, JSON, b'{"code": "42501", "message": "x", "details": "{\\"kind\\": \\"account_gone\\"}"}', LoginRequired),
        (400, JSON, b'{"code": "22P05", "message": "unsupported Unicode"}', Rejected),
    ],
)
async def test_what_is_no_answer_of_the_server_has_its_kind_of_error(
    cloud: Cloud,
    session: AuthSession,
    proxy: FaultProxy,
    status: int,
    headers: dict[str, str],
    body: bytes,
    kind: type[CloudError],
) -> None:
    await proxy.respond_with(status, headers, body)
    with pytest.raises(CloudError) as caught:
        await cloud.sync(session, ONE)
    assert type(caught.value) is kind
    assert caught.value.hint
    await proxy.reconnect()
    assert await head(cloud, session) == 0


@pytest.mark.parametrize(
    ("status", "headers", "body"),
    [
        (200, HTML, b"<html>terms</html>"),
        (204, {}, b""),
        (200, JSON, b"{}"),
        (200, JSON, b"[]"),
        (200, JSON, b'{"status": "success"}'),
        (302, {"location": "http://example.invalid/"}, b""),
        (503, HTML, b"x"),
    ],
)
async def test_a_captive_portal_neither_registers_nor_signs_in(
    cloud: Cloud, session: AuthSession, proxy: FaultProxy, status: int, headers: dict[str, str], body: bytes
) -> None:
    await proxy.respond_with(status, headers, body)
    for call in (
        cloud.register_device(session, "device-b", FACTS),
        cloud.auth.sign_in_with_password(Contact("email", session.label), "whatever"),
        cloud.auth.refresh_session(session),
    ):
        with pytest.raises(CloudUnavailable):
            await call


async def test_an_answer_that_is_the_servers_passes_the_same_way(
    cloud: Cloud, session: AuthSession, proxy: FaultProxy
) -> None:
    """The counterpart of the list above: a valid canned answer is accepted."""
    await proxy.respond_with(200, JSON, json.dumps(GOOD).encode())
    assert (await cloud.sync(session, ONE)).acked == ((ONE.events[0].event_id, 1),)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0"}, 0.0),
        (
            {"Retry-After": "Mon, 02 Feb 2026 10:02:00 GMT", "Date": "Mon, 02 Feb 2026 10:00:00 GMT"},
            120.0,
        ),
        ({"Retry-After": "Mon, 02 Feb 2026 09:00:00 GMT", "Date": "Mon, 02 Feb 2026 10:00:00 GMT"}, 0.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_the_time_that_the_server_asks_for_is_passed_on(
    cloud: Cloud, session: AuthSession, proxy: FaultProxy, status: int, headers: dict[str, str], seconds: float | None
) -> None:
    await proxy.respond_with(status, headers, b"wait")
    for call in (
        cloud.sync(session, ONE),
        cloud.auth.sign_in_with_password(Contact("email", session.label), "whatever"),
        cloud.auth.refresh_session(session),
    ):
        with pytest.raises(CloudUnavailable) as caught:
            await call
        assert caught.value.retry_after == seconds
        assert (type(caught.value) is RateLimited) == (status == 429)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_token_does_not_follow_a_redirect(
    cloud: Cloud, session: AuthSession, proxy: FaultProxy, status: int
) -> None:
    reached: list[Request] = []

    async def note(request: Request) -> Response:
        reached.append(request)
        return Response(200, [(b"content-type", b"application/json")], json.dumps(GOOD).encode())

    elsewhere = LoopbackPort(http_handler(note))
    await elsewhere.open()
    await proxy.respond_with(status, {"location": f"{elsewhere.url}/rest/v1/rpc/ai_memory_sync"})
    for outcome in await outcomes(cloud, session):
        assert type(outcome) is CloudUnavailable
    assert reached == []
    await elsewhere.close()


async def test_every_request_but_the_sign_in_carries_the_users_own_token(session: AuthSession) -> None:
    """With the key alone the server would treat the call as anonymous and return nothing."""
    seen: list[tuple[str, str]] = []

    async def note(request: Request) -> Response:
        headers = {name.lower(): value for name, value in request.headers}
        seen.append((request.path, headers.get(b"authorization", b"").decode()))
        return Response(503)

    door = LoopbackPort(http_handler(note))
    await door.open()
    client = SupabaseCloud(door.url, "sb_publishable_x", timeout=20.0, clock=SystemClock())
    await outcomes(client, session)
    await outcomes(client, replace(session, access_token=""))
    assert [token for path, token in seen if path != "/auth/v1/token"] == [f"Bearer {session.access_token}"] * 3
    assert {token for path, token in seen if path == "/auth/v1/token"} == {""}
    await client.close()
    await door.close()


async def test_an_expired_token_is_a_lost_login_and_a_refresh_helps(tmp_path: Path) -> None:
    """Tokens of this project are expired when they are issued."""
    async with OwnCloud.start(jwt_expiry=-60) as local:
        await local.create_user("a@example.com", "a long password")
        cloud = SupabaseCloud(local.url, local.publishable_key, timeout=20.0, clock=SystemClock())
        session = await cloud.auth.sign_in_with_password(parse_contact(email="a@example.com"), "a long password")
        for call in (cloud.register_device(session, "device-a", FACTS), cloud.sync(session, ONE)):
            with pytest.raises(LoginRequired):
                await call
        assert (await cloud.auth.refresh_session(session)).user_id == session.user_id
        await cloud.close()


async def test_the_end_of_a_token_follows_the_local_clock(local_cloud: LocalCloud, user: User) -> None:
    """Otherwise a machine with a wrong clock would refresh before every request, or never."""
    clock = FixedClock()
    clock.advance(20 * 365 * 86_400)
    cloud = SupabaseCloud(local_cloud.url, local_cloud.publishable_key, timeout=20.0, clock=clock)
    session = await cloud.auth.sign_in_with_password(parse_contact(email=user.email), user.password)
    assert session.expires_at == pytest.approx(clock.now().timestamp() + 3600)
    assert (await cloud.auth.refresh_session(session)).expires_at == pytest.approx(clock.now().timestamp() + 3600)
    await cloud.close()


async def test_a_wrong_key_is_not_reported_as_a_wrong_password(local_cloud: LocalCloud, user: User) -> None:
    cloud = SupabaseCloud(local_cloud.url, "sb_publishable_of_another_project", timeout=20.0, clock=SystemClock())
    with pytest.raises(Forbidden) as caught:
        await cloud.auth.sign_in_with_password(parse_contact(email=user.email), user.password)
    assert "XIAOBAI_SUPABASE_KEY" in caught.value.hint
    await cloud.close()


async def test_an_account_that_was_deleted_is_a_lost_login(
    cloud: Cloud, session: AuthSession, user: User, local_cloud: LocalCloud
) -> None:
    await cloud.sync(session, ONE)
    with psycopg.connect(local_cloud.database_url, autocommit=True) as connection:
        connection.execute("delete from auth.users where id = %s", (user.user_id,))
    for call in (cloud.register_device(session, "device-a", FACTS), cloud.auth.refresh_session(session)):
        with pytest.raises(LoginRequired):
            await call


async def test_a_project_without_our_functions_names_the_migrations_to_run(tmp_path: Path) -> None:
    empty = tmp_path / "migrations"
    empty.mkdir()
    async with OwnCloud.start(migrations=empty) as local:
        await local.create_user("a@example.com", "a long password")
        cloud = SupabaseCloud(local.url, local.publishable_key, timeout=20.0, clock=SystemClock())
        session = await cloud.auth.sign_in_with_password(parse_contact(email="a@example.com"), "a long password")
        for call in (cloud.register_device(session, "device-a", FACTS), cloud.sync(session, ONE)):
            with pytest.raises(SchemaMismatch) as caught:
                await call
            assert "sql/migrations" in caught.value.hint
        await cloud.close()


async def test_the_late_port_survives_an_outage_at_its_first_call(
    local_cloud: LocalCloud, proxy: FaultProxy, user: User
) -> None:
    late = LazyCloud(proxy.url, local_cloud.publishable_key, timeout=20.0, clock=SystemClock())
    contact = parse_contact(email=user.email)
    await proxy.disconnect()
    calls = await asyncio.gather(
        *(late.auth.sign_in_with_password(contact, user.password) for _ in range(3)), return_exceptions=True
    )
    assert {type(outcome) for outcome in calls} == {CloudUnreachable}
    await proxy.reconnect()
    assert (await late.auth.sign_in_with_password(contact, user.password)).user_id == user.user_id
    await late.close()


PROXIES = ("all_proxy", "http_proxy", "https_proxy", "no_proxy", "ws_proxy")
PROXIES_OR_FILES = (*PROXIES, *map(str.upper, PROXIES), "SSL_CERT_FILE", "SSLKEYLOGFILE")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Without settings of proxies and certificates; changes are read again."""
    with monkeypatch.context() as own:
        for name in PROXIES_OR_FILES:
            own.delenv(name, raising=False)
        tls_context.cache_clear()
        yield own
    tls_context.cache_clear()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ALL_PROXY", "socks4://127.0.0.1:1"),
        ("http_proxy", "http://[::1"),
        ("SSL_CERT_FILE", "/nowhere/cert.pem"),
        ("SSL_CERT_FILE", os.devnull),
        ("SSLKEYLOGFILE", "/nowhere/keys"),
    ],
)
async def test_unusable_proxy_or_certificate_settings_are_an_outage_until_they_are_repaired(
    environment: pytest.MonkeyPatch, local_cloud: LocalCloud, user: User, name: str, value: str
) -> None:
    environment.setenv(name, value)
    late = LazyCloud(local_cloud.url, local_cloud.publishable_key, timeout=BROKEN_AFTER, clock=SystemClock())
    contact = parse_contact(email=user.email)
    with pytest.raises(CloudUnavailable) as told:
        await late.auth.sign_in_with_password(contact, user.password)
    assert name.upper().replace("HTTP_", "HTTPS_") in told.value.hint
    assert value not in told.value.message + told.value.hint
    environment.delenv(name)
    assert (await late.auth.sign_in_with_password(contact, user.password)).user_id == user.user_id
    await late.close()


@pytest.mark.parametrize("scheme", ["socks5://{}", "socks5h://{}", "socks://{}/"])
async def test_a_socks_proxy_is_used_by_whichever_name(
    environment: pytest.MonkeyPatch, local_cloud: LocalCloud, user: User, scheme: str
) -> None:
    async with SocksProxy() as between:
        environment.setenv("all_proxy", scheme.format(between.address))
        cloud = SupabaseCloud(local_cloud.url, local_cloud.publishable_key, timeout=20.0, clock=SystemClock())
        session = await cloud.auth.sign_in_with_password(parse_contact(email=user.email), user.password)
        await cloud.register_device(session, "device-a", FACTS)
        assert (await cloud.sync(session, ONE)).acked == ((ONE.events[0].event_id, 1),)
        assert set(between.asked_for) == {local_cloud.port}
        await cloud.close()


async def test_a_server_that_no_proxy_is_for_is_asked_directly(
    environment: pytest.MonkeyPatch, local_cloud: LocalCloud, user: User, unused_port: int
) -> None:
    environment.setenv("all_proxy", f"socks5://127.0.0.1:{unused_port}")
    environment.setenv("no_proxy", "localhost,127.0.0.1,[::1]")
    cloud = SupabaseCloud(local_cloud.url, local_cloud.publishable_key, timeout=20.0, clock=SystemClock())
    assert (
        await cloud.auth.sign_in_with_password(parse_contact(email=user.email), user.password)
    ).user_id == user.user_id
    await cloud.close()


async def test_an_address_of_a_proxy_that_is_none_costs_the_channel_alone(
    environment: pytest.MonkeyPatch, cloud: Cloud, session: AuthSession
) -> None:
    environment.setenv("ws_proxy", "http://127.0.0.1:port")  # only the channel's library reads it
    with pytest.raises(CloudUnavailable):
        await cloud.open_channel(session)
    assert await head(cloud, session) == 0


async def test_what_speaks_no_socks_is_an_outage(environment: pytest.MonkeyPatch, session: AuthSession) -> None:
    async def speak_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    door = LoopbackPort(speak_http)
    await door.open()
    environment.setenv("all_proxy", door.url.replace("http:", "socks5:"))
    cloud = SupabaseCloud("http://127.0.0.1:9", "sb_publishable_x", timeout=5.0, clock=SystemClock())
    for outcome in await outcomes(cloud, session):
        assert type(outcome) is CloudUnavailable
    await cloud.close()
    await door.close()


async def test_a_late_port_that_was_never_used_closes() -> None:
    await LazyCloud("http://127.0.0.1:9", "sb_publishable_x", timeout=1.0, clock=SystemClock()).close()


async def test_no_error_holds_a_token_a_password_or_the_address(
    cloud: Cloud, session: AuthSession, proxy: FaultProxy
) -> None:
    await proxy.respond_with(400, JSON, b'{"code": "22023", "message": "event refused: size"}')
    for outcome in await outcomes(cloud, session):
        assert isinstance(outcome, CloudError)
        said = str(outcome) + repr(outcome) + outcome.hint
        for secret in (session.access_token, session.refresh_token, session.label, "whatever"):
            assert secret is None or secret not in said
