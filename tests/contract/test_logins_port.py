"""One suite for every login server: the twin in memory, and Supabase's Auth client on a real project."""

from dataclasses import replace

import pytest

from sync.cloud.contact import Contact, contact_of
from sync.cloud.logins import RESEND_SECONDS, Session
from sync.errors import BadCredentials, CodeRefused, LoginRequired, RateLimited
from tests.contract.cloud_worlds import World


async def signed_in(world: World) -> Session:
    person = world.new_person()
    return await world.cloud.logins.sign_in(person.contact, person.password)


# --- password -----------------------------------------------------------------------------------------------


async def test_signing_in_gives_a_session_of_that_user(world: World) -> None:
    person = world.new_person()
    session = await world.cloud.logins.sign_in(person.contact, person.password)
    assert (session.user_id, session.label) == (person.user_id, person.email)
    assert session.access_token
    assert session.refresh_token
    again = await world.cloud.logins.sign_in(person.contact, person.password)
    assert again.user_id == person.user_id


async def test_a_wrong_password_and_an_unknown_address_are_bad_credentials(world: World) -> None:
    person = world.new_person()
    strangers = (contact_of(email="nobody@example.com"), contact_of(phone="13800138000"))
    for contact, password in ((person.contact, "not the password"), *((who, person.password) for who in strangers)):
        with pytest.raises(BadCredentials) as caught:
            await world.cloud.logins.sign_in(contact, password)
        assert not caught.value.retryable


# --- code ---------------------------------------------------------------------------------------------------


@pytest.fixture(params=["phone", "email"])
def contact(request: pytest.FixtureRequest, world: World) -> Contact:
    """Somebody who has no account yet."""
    return world.new_contact(request.param)


async def test_a_code_logs_a_person_in_and_makes_his_account_once(world: World, contact: Contact) -> None:
    await world.cloud.logins.start(contact)
    first = await world.cloud.logins.verify(contact, world.code_sent_to(contact))
    assert first.label == contact.label
    assert await world.cloud.logins.identify(first.access_token) == (first.user_id, contact.label)
    world.age_code(contact, RESEND_SECONDS)
    await world.cloud.logins.start(contact)
    again = await world.cloud.logins.verify(contact, world.code_sent_to(contact))
    assert again.user_id == first.user_id
    assert again.access_token != first.access_token


async def test_a_session_by_code_can_be_refreshed_and_keeps_its_label(world: World, contact: Contact) -> None:
    await world.cloud.logins.start(contact)
    session = await world.cloud.logins.verify(contact, world.code_sent_to(contact))
    fresh = await world.cloud.logins.refresh(session)
    assert (fresh.user_id, fresh.label) == (session.user_id, contact.label)


async def test_a_wrong_code_is_refused_and_the_right_one_is_still_good(world: World, contact: Contact) -> None:
    await world.cloud.logins.start(contact)
    code = world.code_sent_to(contact)
    with pytest.raises(CodeRefused) as caught:
        await world.cloud.logins.verify(contact, f"{(int(code) + 1) % 10**6:06}")
    assert not caught.value.retryable
    assert (await world.cloud.logins.verify(contact, code)).user_id


async def test_a_code_is_good_once(world: World, contact: Contact) -> None:
    await world.cloud.logins.start(contact)
    code = world.code_sent_to(contact)
    await world.cloud.logins.verify(contact, code)
    with pytest.raises(CodeRefused):
        await world.cloud.logins.verify(contact, code)


async def test_a_code_that_is_too_old_is_refused(world: World, contact: Contact) -> None:
    await world.cloud.logins.start(contact)
    world.age_code(contact, 3601)
    with pytest.raises(CodeRefused):
        await world.cloud.logins.verify(contact, world.code_sent_to(contact))


async def test_the_second_message_within_a_minute_is_refused_with_the_seconds_to_wait(
    world: World, contact: Contact
) -> None:
    await world.cloud.logins.start(contact)
    world.age_code(contact, 20)
    with pytest.raises(RateLimited) as caught:
        await world.cloud.logins.start(contact)
    assert caught.value.retry_after is not None
    assert 30 < caught.value.retry_after <= 40
    assert (await world.cloud.logins.verify(contact, world.code_sent_to(contact))).user_id, "the first one is good"


async def test_a_code_of_somebody_else_or_of_nobody_is_refused(world: World, contact: Contact) -> None:
    await world.cloud.logins.start(contact)
    for stranger in (world.new_contact("phone"), world.new_contact("email")):
        with pytest.raises(CodeRefused):
            await world.cloud.logins.verify(stranger, world.code_sent_to(contact))


# --- keeping and ending it ----------------------------------------------------------------------------------


async def test_a_refreshed_session_works_and_stays_the_same_users(world: World) -> None:
    session = await signed_in(world)
    fresh = await world.cloud.logins.refresh(session)
    assert (fresh.user_id, fresh.label) == (session.user_id, session.label)
    assert fresh.refresh_token != session.refresh_token
    assert fresh.expires_at >= session.expires_at
    assert await world.cloud.logins.identify(fresh.access_token) == (session.user_id, session.label)


async def test_a_refresh_whose_answer_was_lost_can_be_asked_for_again(world: World) -> None:
    session = await signed_in(world)
    lost = await world.cloud.logins.refresh(session)
    again = await world.cloud.logins.refresh(session)
    assert again.refresh_token == lost.refresh_token
    assert await world.cloud.logins.identify(again.access_token) == (session.user_id, session.label)


async def test_a_token_that_was_used_up_before_the_last_one_is_refused(world: World) -> None:
    session = await signed_in(world)
    fresh = await world.cloud.logins.refresh(session)
    await world.cloud.logins.refresh(fresh)
    with pytest.raises(LoginRequired):
        await world.cloud.logins.refresh(session)


async def test_a_session_that_was_ended_cannot_be_refreshed(world: World) -> None:
    session = await signed_in(world)
    await world.cloud.logins.sign_out(session)
    with pytest.raises(LoginRequired):
        await world.cloud.logins.refresh(session)


async def test_a_session_that_an_administrator_ended_cannot_be_refreshed(world: World) -> None:
    person = world.new_person()
    session = await world.cloud.logins.sign_in(person.contact, person.password)
    world.end_sessions(person)
    with pytest.raises(LoginRequired):
        await world.cloud.logins.refresh(session)


async def test_a_refresh_token_that_never_was_is_a_lost_login(world: World) -> None:
    with pytest.raises(LoginRequired):
        await world.cloud.logins.refresh(replace(await signed_in(world), refresh_token="never-issued"))


@pytest.mark.parametrize("token", ["garbage", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln"])
async def test_a_token_that_is_none_is_nobodys(world: World, token: str) -> None:
    with pytest.raises(LoginRequired):
        await world.cloud.logins.identify(token)
