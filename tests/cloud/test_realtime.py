"""The realtime channel of the local cloud: who may join, what ends it, and what it delivers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
from msgspec.structs import replace
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from sync.clock import SystemClock
from sync.cloud.auth_port import AuthSession
from sync.cloud.contact import parse_contact
from sync.cloud.port import Channel, DeviceFacts, RealtimeNotice, SyncRequest
from sync.cloud.supabase.cloud import SupabaseCloud
from sync.errors import CloudUnavailable, Forbidden, LoginRequired
from tests.cloud.fixtures import Cloud as LocalCloud
from tests.cloud.fixtures import User
from tests.cloud.local_cloud import LocalCloud as OwnCloud
from tests.cloud.prerequisites import LOOPBACK
from tests.cloud.proxy.fault_proxy import FaultProxy
from tests.support import event

WITHIN = 60.0  # seconds; a bound for a broken program


@pytest.fixture
async def cloud(local_cloud: LocalCloud) -> AsyncIterator[SupabaseCloud]:
    opened = SupabaseCloud(local_cloud.url, local_cloud.publishable_key, timeout=WITHIN, clock=SystemClock())
    yield opened
    await opened.close()


async def sign_in(cloud: SupabaseCloud, user: User) -> AuthSession:
    return await cloud.auth.sign_in_with_password(parse_contact(email=user.email), user.password)


async def until_ready(channel: Channel) -> Channel:
    assert await hear(channel) == RealtimeNotice(ready=True)
    return channel


async def hear(channel: Channel) -> RealtimeNotice:
    async with asyncio.timeout(WITHIN):
        return await channel.receive()


async def push(cloud: SupabaseCloud, session: AuthSession) -> None:
    await cloud.register_device(session, "device-a", DeviceFacts("rep_a", "书房", "Linux", "1"))
    await cloud.sync(session, SyncRequest(device_id="device-a", replica_id="rep_a", events=(event(1),)))


# --- who may join --------------------------------------------------------------------------------------------


async def test_a_user_cannot_join_the_topic_of_another(cloud: SupabaseCloud, new_user: Callable[[], User]) -> None:
    alice, bob = new_user(), new_user()
    session = await sign_in(cloud, bob)
    with pytest.raises(Forbidden):
        await cloud.open_channel(replace(session, user_id=alice.user_id))


async def test_the_publishable_key_alone_joins_nothing(
    cloud: SupabaseCloud, local_cloud: LocalCloud, new_user: Callable[[], User]
) -> None:
    user = new_user()
    session = AuthSession(user.user_id, "", local_cloud.publishable_key, None, 0.0)
    with pytest.raises(LoginRequired):
        await cloud.open_channel(session)


async def test_a_wrong_key_opens_no_connection(local_cloud: LocalCloud, new_user: Callable[[], User]) -> None:
    good = SupabaseCloud(local_cloud.url, local_cloud.publishable_key, timeout=WITHIN, clock=SystemClock())
    session = await sign_in(good, new_user())
    wrong = SupabaseCloud(local_cloud.url, "sb_publishable_other", timeout=WITHIN, clock=SystemClock())
    with pytest.raises(Forbidden):
        await wrong.open_channel(session)
    await good.close()
    await wrong.close()


# --- sending is refused -------------------------------------------------------------------------------------------


class Client:
    """A channel of raw messages, for those that the client never sends."""

    def __init__(self, connection: ClientConnection, topic: str) -> None:
        self._connection = connection
        self._topic = f"realtime:{topic}"

    async def say(self, event: str, payload: Any) -> None:
        message = {"topic": self._topic, "event": event, "payload": payload, "ref": "1"}
        await self._connection.send(json.dumps(message))

    async def next(self) -> dict[str, Any]:
        async with asyncio.timeout(WITHIN):
            told: dict[str, Any] = json.loads(await self._connection.recv())
            return told

    async def join(self, token: str, *, private: bool = True) -> dict[str, Any]:
        await self.say("phx_join", {"config": {"private": private}, "access_token": token})
        answer: dict[str, Any] = (await self.next())["payload"]
        return answer

    async def send(self, name: str) -> None:
        await self.say("broadcast", {"type": "broadcast", "event": name, "payload": {"head": 99}})

    async def beat(self) -> dict[str, Any]:
        """The next message, which must be the answer to a heartbeat."""
        await self._connection.send('{"topic": "phoenix", "event": "heartbeat", "payload": {}, "ref": "2"}')
        return await self.next()


@asynccontextmanager
async def bare(local_cloud: LocalCloud, topic: str) -> AsyncIterator[Client]:
    url = f"ws{local_cloud.url.removeprefix('http')}/realtime/v1/websocket?apikey={local_cloud.publishable_key}"
    async with connect(url, proxy=None) as connection:
        yield Client(connection, topic)


async def test_even_its_user_cannot_send_on_the_topic(
    cloud: SupabaseCloud, local_cloud: LocalCloud, new_user: Callable[[], User]
) -> None:
    session = await sign_in(cloud, new_user())
    channel = await until_ready(await cloud.open_channel(session))
    async with bare(local_cloud, f"ai_memory:{session.user_id}") as sender:
        assert (await sender.join(session.access_token))["status"] == "ok"
        await sender.send("head")
        assert (await sender.beat())["topic"] == "phoenix"
    await channel.send_heartbeat()
    assert await hear(channel) == RealtimeNotice(), "a heartbeat's answer, and no poke before it"
    await channel.close()


async def test_a_message_is_delivered_if_a_policy_allows_sending(
    cloud: SupabaseCloud, local_cloud: LocalCloud, new_user: Callable[[], User]
) -> None:
    """Without this the test above would pass on a server that delivers nothing."""
    session = await sign_in(cloud, new_user())
    topic = f"room:{session.user_id}"
    with psycopg.connect(local_cloud.database_url, autocommit=True) as admin:
        rule = f"(realtime.topic() = '{topic}')"
        admin.execute(
            f'create policy "{topic}" on realtime.messages to authenticated using {rule} with check {rule}'.encode()
        )
        try:
            async with bare(local_cloud, topic) as sender, bare(local_cloud, topic) as listener:
                for client in (sender, listener):
                    assert (await client.join(session.access_token))["status"] == "ok"
                await sender.send("hello")
                assert (await listener.next())["payload"]["event"] == "hello"
        finally:
            admin.execute(f'drop policy "{topic}" on realtime.messages'.encode())


async def test_a_public_channel_of_the_same_name_hears_no_poke(
    cloud: SupabaseCloud, local_cloud: LocalCloud, new_user: Callable[[], User]
) -> None:
    session, thief = [await sign_in(cloud, new_user()) for _ in range(2)]
    channel = await until_ready(await cloud.open_channel(session))
    async with bare(local_cloud, f"ai_memory:{session.user_id}") as listener:
        assert (await listener.join(thief.access_token, private=False))["status"] == "ok"
        await push(cloud, session)
        assert await hear(channel) == RealtimeNotice(poke=True, head=1)
        assert (await listener.beat())["topic"] == "phoenix"
    await channel.close()


# --- what ends it -------------------------------------------------------------------------------------------


async def test_a_channel_ends_with_its_token_and_a_newer_one_prolongs_it() -> None:
    async with OwnCloud.start(jwt_expiry=6) as own:
        await own.create_user("a@example.com", "a long password")
        cloud = SupabaseCloud(own.url, own.publishable_key, timeout=WITHIN, clock=SystemClock())
        session = await cloud.auth.sign_in_with_password(parse_contact(email="a@example.com"), "a long password")
        short, long = [await until_ready(await cloud.open_channel(session)) for _ in range(2)]
        newer, ended = session, asyncio.create_task(hear(short))
        while not ended.done():
            newer = await cloud.auth.refresh_session(newer)
            await long.update_token(newer)
            await asyncio.wait([ended], timeout=0.3)
        with pytest.raises(LoginRequired):
            await ended
        await long.send_heartbeat()
        assert await hear(long) == RealtimeNotice()
        with pytest.raises(LoginRequired):
            await cloud.open_channel(session)
        await cloud.close()


async def test_a_cut_ends_the_channel_and_another_can_be_joined_after_it(
    local_cloud: LocalCloud, new_user: Callable[[], User]
) -> None:
    async with FaultProxy("127.0.0.1", local_cloud.port) as proxy:
        cloud = SupabaseCloud(proxy.url, local_cloud.publishable_key, timeout=WITHIN, clock=SystemClock())
        session = await sign_in(cloud, new_user())
        channel = await until_ready(await cloud.open_channel(session))
        await proxy.disconnect()
        with pytest.raises(CloudUnavailable):
            await hear(channel)
        with pytest.raises(CloudUnavailable):
            await cloud.open_channel(session)
        await proxy.reconnect()
        await until_ready(await cloud.open_channel(session))
        await cloud.close()


@pytest.mark.parametrize("mood", ["half open", "503", "portal", "redirect", "401"])
async def test_a_network_that_lies_is_no_channel(
    local_cloud: LocalCloud, new_user: Callable[[], User], mood: str
) -> None:
    async with FaultProxy("127.0.0.1", local_cloud.port) as proxy:
        patient = SupabaseCloud(proxy.url, local_cloud.publishable_key, timeout=WITHIN, clock=SystemClock())
        session = await sign_in(patient, new_user())
        await patient.close()
        timeout = 1.0 if mood == "half open" else WITHIN  # only there no answer comes at all
        cloud = SupabaseCloud(proxy.url, local_cloud.publishable_key, timeout=timeout, clock=SystemClock())
        if mood == "half open":
            await proxy.half_open()
        elif mood == "redirect":
            there = f"ws{local_cloud.url.removeprefix('http')}/realtime/v1/websocket"
            await proxy.respond_with(307, {"location": f"{there}?apikey={local_cloud.publishable_key}"})
        else:
            status = {"503": 503, "portal": 200, "401": 401}[mood]
            await proxy.respond_with(status, {"content-type": "text/html"}, b"<html>please log in</html>")
        with pytest.raises(Forbidden if mood == "401" else CloudUnavailable):
            await cloud.open_channel(session)
        await cloud.close()


@pytest.mark.parametrize("nonsense", ["no JSON", b"\xff", b'{"topic": "\xff"}', '{"payload":' + "[" * 9_999])
async def test_what_is_no_message_is_passed_over(nonsense: str | bytes) -> None:
    async def answer(server: ServerConnection) -> None:
        joining = json.loads(await server.recv())
        await server.send(nonsense)
        await server.send(json.dumps({**joining, "event": "phx_reply", "payload": {"status": "ok"}}))
        await server.send(nonsense)
        await server.send(json.dumps({**joining, "event": "broadcast", "payload": {"payload": {"head": 7}}}))
        await server.wait_closed()

    async with serve(answer, LOOPBACK, 0) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        cloud = SupabaseCloud(f"http://{LOOPBACK}:{port}", "sb_publishable_x", timeout=WITHIN, clock=SystemClock())
        channel = await cloud.open_channel(AuthSession("user-1", "", "a.b.c", None, 0.0))
        assert await hear(channel) == RealtimeNotice(poke=True, head=7)
        await channel.close()
        await cloud.close()


async def test_an_outage_of_the_project_ends_the_channel() -> None:
    async with OwnCloud.start() as own:
        await own.create_user("a@example.com", "a long password")
        cloud = SupabaseCloud(own.url, own.publishable_key, timeout=WITHIN, clock=SystemClock())
        session = await cloud.auth.sign_in_with_password(parse_contact(email="a@example.com"), "a long password")
        channel = await until_ready(await cloud.open_channel(session))
        await own.stop_http()
        with pytest.raises(CloudUnavailable):
            await hear(channel)
        await own.start_http()
        channel = await until_ready(await cloud.open_channel(session))
        await push(cloud, session)
        assert await hear(channel) == RealtimeNotice(poke=True, head=1)
        await cloud.close()


@pytest.mark.proof
async def test_without_a_database_to_connect_to_the_project_has_no_realtime() -> None:
    async with OwnCloud.start("pglite") as own:
        await own.create_user("a@example.com", "a long password")
        cloud = SupabaseCloud(own.url, own.publishable_key, timeout=WITHIN, clock=SystemClock())
        session = await cloud.auth.sign_in_with_password(parse_contact(email="a@example.com"), "a long password")
        with pytest.raises(Forbidden):
            await cloud.open_channel(session)
        await push(cloud, session)
        await cloud.close()


async def test_nonsense_is_not_answered_and_harms_no_one_else(
    cloud: SupabaseCloud, local_cloud: LocalCloud, new_user: Callable[[], User]
) -> None:
    session = await sign_in(cloud, new_user())
    async with bare(local_cloud, f"ai_memory:{session.user_id}") as client:
        for nonsense in ("no JSON", "[]", "{}", '{"topic": 1, "event": "phx_join", "payload": 2}'):
            await client._connection.send(nonsense)
        try:
            assert (await client.join(session.access_token))["status"] == "ok"
        except (ConnectionClosed, InvalidStatus):
            pytest.fail("the door closed")
