"""A session of the app: used, never stored, never refreshed; the app supplies a new one."""

from datetime import timedelta
from pathlib import Path

import pytest

from sync.cloud.auth_port import AccountJson
from sync.cloud.contact import parse_contact
from sync.errors import CloudUnavailable, DifferentUser, LoginRequired
from tests.fake_cloud.server import FakeServer
from tests.support import EMAIL, PASSWORD, Device, FixedClock, open_device


def app_session(server: FakeServer, clock: FixedClock, email: str = EMAIL) -> tuple[str, float]:
    """The app's own login."""
    session = server.accounts.sign_in_with_password(parse_contact(email=email), PASSWORD)
    return session.access_token, clock.now().timestamp() + 3600


async def enter_app_session(device: Device, token: str, expires_at: float) -> AccountJson:
    return await device.account.log_in(await device.account.session_from_token(token, expires_at))


async def test_it_claims_the_profile_for_that_user_and_the_events_are_sent(
    guest: Device, server: FakeServer, clock: FixedClock
) -> None:
    state = await enter_app_session(guest, *app_session(server, clock))
    assert (state.state, state.label) == ("logged_in", EMAIL)
    await guest.record_notes("一")
    assert (await guest.replicator.sync_now()).pushed == 1


async def test_it_is_not_stored_and_a_new_start_asks_for_it_again(
    tmp_path: Path, server: FakeServer, clock: FixedClock
) -> None:
    async with open_device(tmp_path / "a", server, clock=clock) as first:
        await enter_app_session(first, *app_session(server, clock))
        tokens = first.tokens
        assert tokens.load() is None
    async with open_device(tmp_path / "a", server, clock=clock, tokens=tokens) as second:
        assert (await second.account.state()).state == "logged_out"
        with pytest.raises(LoginRequired):
            await second.account.session()


async def test_at_its_end_the_app_is_asked_once_and_nothing_is_refreshed(
    guest: Device, server: FakeServer, clock: FixedClock
) -> None:
    await enter_app_session(guest, *app_session(server, clock))
    asked = guest.account.token_needed.count
    clock.advance(timedelta(hours=2).total_seconds())
    for _ in range(3):
        with pytest.raises(LoginRequired):
            await guest.replicator.sync_now()
    assert guest.account.token_needed.count == asked + 1
    assert guest.cloud.count("refresh") == 0
    await guest.record_notes("离线时")
    await enter_app_session(guest, *app_session(server, clock))
    assert (await guest.replicator.sync_now()).pushed == 1


async def test_a_token_the_server_does_not_know_changes_nothing(guest: Device, clock: FixedClock) -> None:
    before = await guest.account.state()
    with pytest.raises(LoginRequired):
        await enter_app_session(guest, "forged", clock.now().timestamp() + 3600)
    assert await guest.account.state() == before


async def test_a_token_of_another_user_is_refused(guest: Device, server: FakeServer, clock: FixedClock) -> None:
    await enter_app_session(guest, *app_session(server, clock))
    server.add_user("other@example.com", PASSWORD)
    with pytest.raises(DifferentUser):
        await enter_app_session(guest, *app_session(server, clock, "other@example.com"))
    assert (await guest.account.state()).label == EMAIL


async def test_without_a_network_it_cannot_be_checked_and_is_not_taken(
    guest: Device, server: FakeServer, clock: FixedClock
) -> None:
    token, expires = app_session(server, clock)
    server.down = True
    with pytest.raises(CloudUnavailable):
        await enter_app_session(guest, token, expires)


async def test_logging_out_forgets_it_and_leaves_ending_it_to_the_app(
    guest: Device, server: FakeServer, clock: FixedClock
) -> None:
    await enter_app_session(guest, *app_session(server, clock))
    await guest.account.log_out()
    assert (await guest.account.state()).state == "logged_out"
    assert guest.cloud.count("sign_out") == 0
