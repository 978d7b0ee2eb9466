"""A session that the app opened: used, never stored, never refreshed; another is asked for when it ends."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from sync.cloud.memory import MemoryServer
from sync.errors import CloudUnavailable, DifferentUser, LoginRequired
from tests.support import EMAIL, PASSWORD, Device, FixedClock, new_server, open_device


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def server(clock: FixedClock) -> MemoryServer:
    return new_server(clock)


@pytest.fixture
async def device(tmp_path: Path, server: MemoryServer, clock: FixedClock) -> AsyncIterator[Device]:
    async with open_device(tmp_path / "a", server, clock=clock) as opened:
        yield opened


def handed(server: MemoryServer, clock: FixedClock, email: str = EMAIL) -> tuple[str, float]:
    """What the app got by logging in itself."""
    session = server.open_session(email, PASSWORD)
    return session.access_token, clock.now().timestamp() + 3600


async def test_it_makes_the_profile_that_users_and_his_events_travel(
    device: Device, server: MemoryServer, clock: FixedClock
) -> None:
    await device.account.log_out()
    state = await device.account.adopt(*handed(server, clock))
    assert (state.state, state.label) == ("logged_in", EMAIL)
    await device.note("一")
    assert (await device.replicator.sync_now()).pushed == 1


async def test_it_is_not_stored_and_a_new_start_asks_for_it_again(
    tmp_path: Path, server: MemoryServer, clock: FixedClock
) -> None:
    async with open_device(tmp_path / "a", server, clock=clock) as first:
        await first.account.adopt(*handed(server, clock))
        tokens = first.tokens
        assert tokens.load() is None
    async with open_device(tmp_path / "a", server, clock=clock, tokens=tokens) as second:
        assert (await second.account.state()).state == "logged_out"
        with pytest.raises(LoginRequired):
            await second.account.session()


async def test_at_its_end_the_app_is_asked_once_and_nothing_is_refreshed(
    device: Device, server: MemoryServer, clock: FixedClock
) -> None:
    await device.account.adopt(*handed(server, clock))
    asked = device.account.token_needed.count
    clock.advance(timedelta(hours=2).total_seconds())
    for _ in range(3):
        with pytest.raises(LoginRequired):
            await device.replicator.sync_now()
    assert device.account.token_needed.count == asked + 1
    assert device.cloud.count("refresh") == 0
    await device.note("离线时")
    await device.account.adopt(*handed(server, clock))
    assert (await device.replicator.sync_now()).pushed == 1


async def test_a_token_the_server_does_not_know_changes_nothing(device: Device, clock: FixedClock) -> None:
    before = await device.account.state()
    with pytest.raises(LoginRequired):
        await device.account.adopt("forged", clock.now().timestamp() + 3600)
    assert await device.account.state() == before


async def test_a_token_of_another_user_is_refused(device: Device, server: MemoryServer, clock: FixedClock) -> None:
    await device.account.adopt(*handed(server, clock))
    server.add_user("other@example.com", PASSWORD)
    with pytest.raises(DifferentUser):
        await device.account.adopt(*handed(server, clock, "other@example.com"))
    assert (await device.account.state()).label == EMAIL


async def test_without_a_network_it_cannot_be_checked_and_is_not_taken(
    device: Device, server: MemoryServer, clock: FixedClock
) -> None:
    token, expires = handed(server, clock)
    server.down = True
    with pytest.raises(CloudUnavailable):
        await device.account.adopt(token, expires)


async def test_logging_out_forgets_it_and_leaves_ending_it_to_the_app(
    device: Device, server: MemoryServer, clock: FixedClock
) -> None:
    await device.account.adopt(*handed(server, clock))
    await device.account.log_out()
    assert (await device.account.state()).state == "logged_out"
    assert device.cloud.count("sign_out") == 0
