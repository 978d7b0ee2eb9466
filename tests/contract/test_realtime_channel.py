"""The channel of every implementation of the port: a poke says that the log has grown, and never with what."""

import asyncio
import dataclasses

import pytest
from msgspec.structs import replace

from sync.cloud.port import Channel, RealtimeNotice
from sync.errors import CloudUnavailable, LoginRequired
from tests.contract.cloud_backends import CloudBackend
from tests.contract.test_cloud_port import Client, signed_in
from tests.support import BROKEN_AFTER


@pytest.fixture
async def client(backend: CloudBackend) -> Client:
    """A signed-in person with one registered device."""
    return await (await signed_in(backend)).register()


async def listening(client: Client) -> Channel:
    """A channel that misses nothing from now on."""
    channel = await client.world.cloud.open_channel(client.session)
    assert await hear(channel) == RealtimeNotice(ready=True)
    return channel


async def hear(channel: Channel) -> RealtimeNotice:
    async with asyncio.timeout(BROKEN_AFTER):
        return await channel.receive()


async def test_a_push_that_raises_the_head_pokes_all_channels_of_its_user_only(client: Client) -> None:
    stranger = await (await signed_in(client.world)).register()
    own, same, foreign = [await listening(who) for who in (client, client, stranger)]
    await client.sync(client.event(1), client.event(2))
    await stranger.sync(*(stranger.event(number) for number in range(1, 6)))
    for channel in (own, same):
        assert await hear(channel) == RealtimeNotice(poke=True, head=2)
    assert await hear(foreign) == RealtimeNotice(poke=True, head=5)
    for channel in (own, same, foreign):
        await channel.close()


async def test_a_call_that_adds_nothing_sends_no_poke(client: Client) -> None:
    first = client.event(1)
    await client.sync(first)
    channel = await listening(client)
    await client.sync(first)
    await client.sync()
    await client.sync(client.event(2))
    assert await hear(channel) == RealtimeNotice(poke=True, head=2)
    await channel.close()


async def test_a_heartbeat_is_answered(client: Client) -> None:
    channel = await listening(client)
    await channel.send_heartbeat()
    assert await hear(channel) == RealtimeNotice()
    await channel.close()


async def test_a_channel_goes_on_under_a_newer_token(client: Client) -> None:
    channel = await listening(client)
    fresh = await client.world.cloud.auth.refresh_session(client.session)
    await channel.update_token(fresh)
    await channel.send_heartbeat()
    assert await hear(channel) == RealtimeNotice()
    await dataclasses.replace(client, session=fresh).sync(client.event(1))
    assert await hear(channel) == RealtimeNotice(poke=True, head=1)
    await channel.close()


async def test_waiting_for_a_poke_can_be_given_up_without_losing_it(client: Client) -> None:
    channel = await listening(client)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await channel.receive()
    await client.sync(client.event(1))
    assert await hear(channel) == RealtimeNotice(poke=True, head=1)
    await channel.close()


async def test_a_closed_channel_stays_over(client: Client) -> None:
    channel = await listening(client)
    await channel.close()
    for _ in range(2):
        with pytest.raises(CloudUnavailable):
            await hear(channel)


async def test_a_token_that_the_server_never_issued_joins_no_channel(client: Client) -> None:
    for token in ("not a token", "a.b.c"):
        with pytest.raises(LoginRequired):
            await client.world.cloud.open_channel(replace(client.session, access_token=token))
