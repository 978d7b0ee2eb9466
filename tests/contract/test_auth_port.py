"""One suite for every login server: the twin in memory, and Supabase's Auth client on a real project."""

import pytest
from msgspec.structs import replace

from sync.cloud.auth_port import RESEND_SECONDS, AuthSession
from sync.cloud.contact import Contact, parse_contact
from sync.errors import BadCredentials, CodeRefused, LoginRequired, RateLimited
from tests.contract.cloud_backends import CloudBackend


async def signed_in(world: CloudBackend) -> AuthSession:
    person = world.new_person()
    return await world.cloud.auth.sign_in_with_password(person.contact, person.password)


# --- password -----------------------------------------------------------------------------------------------


async def test_signing_in_gives_a_session_of_that_user(backend: CloudBackend) -> None:
    person = backend.new_person()
    session = await backend.cloud.auth.sign_in_with_password(person.contact, person.password)
    assert (session.user_id, session.label) == (person.user_id, person.email)
    assert session.access_token
    assert session.refresh_token
    again = await backend.cloud.auth.sign_in_with_password(person.contact, person.password)
    assert again.user_id == person.user_id


async def test_a_wrong_password_and_an_unknown_address_are_bad_credentials(backend: CloudBackend) -> None:
    person = backend.new_person()
    strangers = (parse_contact(email="nobody@example.com"), parse_contact(phone="13800138000"))
    for contact, password in ((person.contact, "not the password"), *((who, person.password) for who in strangers)):
        with pytest.raises(BadCredentials) as caught:
            await backend.cloud.auth.sign_in_with_password(contact, password)
        assert not caught.value.retryable


# --- code ---------------------------------------------------------------------------------------------------


@pytest.fixture(params=["phone", "email"])
def contact(request: pytest.FixtureRequest, backend: CloudBackend) -> Contact:
    """A contact without an account."""
    return backend.new_contact(request.param)


async def test_a_code_logs_a_user_in_and_creates_the_account_once(backend: CloudBackend, contact: Contact) -> None:
    await backend.cloud.auth.send_code(contact)
    first = await backend.cloud.auth.verify_code(contact, backend.code_sent_to(contact))
    assert first.label == contact.label
    assert await backend.cloud.auth.identify_user(first.access_token) == (first.user_id, contact.label)
    backend.age_code(contact, RESEND_SECONDS)
    await backend.cloud.auth.send_code(contact)
    again = await backend.cloud.auth.verify_code(contact, backend.code_sent_to(contact))
    assert again.user_id == first.user_id
    assert again.access_token != first.access_token


async def test_a_session_by_code_can_be_refreshed_and_keeps_its_label(backend: CloudBackend, contact: Contact) -> None:
    await backend.cloud.auth.send_code(contact)
    session = await backend.cloud.auth.verify_code(contact, backend.code_sent_to(contact))
    fresh = await backend.cloud.auth.refresh_session(session)
    assert (fresh.user_id, fresh.label) == (session.user_id, contact.label)


async def test_a_wrong_code_is_refused_and_the_right_one_is_still_good(backend: CloudBackend, contact: Contact) -> None:
    await backend.cloud.auth.send_code(contact)
    code = backend.code_sent_to(contact)
    with pytest.raises(CodeRefused) as caught:
        await backend.cloud.auth.verify_code(contact, f"{(int(code) + 1) % 10**6:06}")
    assert not caught.value.retryable
    assert (await backend.cloud.auth.verify_code(contact, code)).user_id


async def test_a_code_is_good_once(backend: CloudBackend, contact: Contact) -> None:
    await backend.cloud.auth.send_code(contact)
    code = backend.code_sent_to(contact)
    await backend.cloud.auth.verify_code(contact, code)
    with pytest.raises(CodeRefused):
        await backend.cloud.auth.verify_code(contact, code)


async def test_a_code_that_is_too_old_is_refused(backend: CloudBackend, contact: Contact) -> None:
    await backend.cloud.auth.send_code(contact)
    backend.age_code(contact, 3601)
    with pytest.raises(CodeRefused):
        await backend.cloud.auth.verify_code(contact, backend.code_sent_to(contact))


async def test_the_second_message_within_a_minute_is_refused_with_the_seconds_to_wait(
    backend: CloudBackend, contact: Contact
) -> None:
    await backend.cloud.auth.send_code(contact)
    backend.age_code(contact, 20)
    with pytest.raises(RateLimited) as caught:
        await backend.cloud.auth.send_code(contact)
    assert caught.value.retry_after is not None
    assert 30 < caught.value.retry_after <= 40
    assert (await backend.cloud.auth.verify_code(contact, backend.code_sent_to(contact))).user_id, (
        "the first one is good"
    )


async def test_a_code_of_another_user_or_an_unknown_contact_is_refused(backend: CloudBackend, contact: Contact) -> None:
    await backend.cloud.auth.send_code(contact)
    for stranger in (backend.new_contact("phone"), backend.new_contact("email")):
        with pytest.raises(CodeRefused):
            await backend.cloud.auth.verify_code(stranger, backend.code_sent_to(contact))


# --- keeping and ending it ----------------------------------------------------------------------------------


async def test_a_refreshed_session_works_and_stays_the_same_users(backend: CloudBackend) -> None:
    session = await signed_in(backend)
    fresh = await backend.cloud.auth.refresh_session(session)
    assert (fresh.user_id, fresh.label) == (session.user_id, session.label)
    assert fresh.refresh_token != session.refresh_token
    assert fresh.expires_at >= session.expires_at
    assert await backend.cloud.auth.identify_user(fresh.access_token) == (session.user_id, session.label)


async def test_a_refresh_whose_answer_was_lost_can_be_asked_for_again(backend: CloudBackend) -> None:
    session = await signed_in(backend)
    lost = await backend.cloud.auth.refresh_session(session)
    again = await backend.cloud.auth.refresh_session(session)
    assert again.refresh_token == lost.refresh_token
    assert await backend.cloud.auth.identify_user(again.access_token) == (session.user_id, session.label)


async def test_a_token_that_was_used_up_before_the_last_one_is_refused(backend: CloudBackend) -> None:
    session = await signed_in(backend)
    fresh = await backend.cloud.auth.refresh_session(session)
    await backend.cloud.auth.refresh_session(fresh)
    with pytest.raises(LoginRequired):
        await backend.cloud.auth.refresh_session(session)


async def test_a_session_that_was_ended_cannot_be_refreshed(backend: CloudBackend) -> None:
    session = await signed_in(backend)
    await backend.cloud.auth.sign_out(session)
    with pytest.raises(LoginRequired):
        await backend.cloud.auth.refresh_session(session)


async def test_a_session_that_an_administrator_ended_cannot_be_refreshed(backend: CloudBackend) -> None:
    person = backend.new_person()
    session = await backend.cloud.auth.sign_in_with_password(person.contact, person.password)
    backend.end_sessions(person)
    with pytest.raises(LoginRequired):
        await backend.cloud.auth.refresh_session(session)


async def test_a_refresh_token_that_never_was_is_a_lost_login(backend: CloudBackend) -> None:
    with pytest.raises(LoginRequired):
        await backend.cloud.auth.refresh_session(replace(await signed_in(backend), refresh_token="never-issued"))


@pytest.mark.parametrize("token", ["garbage", "eyJhbGciOiJIUzI1NiJ9.e30.c2ln"])
async def test_an_invalid_token_has_no_user(backend: CloudBackend, token: str) -> None:
    with pytest.raises(LoginRequired):
        await backend.cloud.auth.identify_user(token)
