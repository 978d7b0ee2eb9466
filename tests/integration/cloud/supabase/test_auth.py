"""Refusals of Supabase's login server, word for word, through the real client.

Status, code and sentence of each row are from github.com/supabase/auth at `internal/api` (the file is named beside the
row; the codes are in `apierrors/errorcode.go` and at supabase.com/docs/guides/auth/debugging/error-codes). `errors.go`
writes a refusal in two forms: for clients that request the API of 2024-01-01, as this one does, and an older one.
"""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from sync.clock import SystemClock
from sync.cloud.auth_port import AuthPort, AuthSession
from sync.cloud.contact import parse_contact
from sync.cloud.supabase.cloud import SupabaseCloud
from sync.errors import (
    BadCredentials,
    CloudUnavailable,
    CodeRefused,
    InvalidInput,
    LoginRefused,
    LoginRequired,
    MessageNotSent,
    RateLimited,
    XiaobaiError,
)
from tests.cloud.http_server import LoopbackPort, Request, Response, http_handler

PHONE, EMAIL = parse_contact(phone="13800138000"), parse_contact(email="person@example.com")
SESSION = AuthSession("user-1", "a@example.com", "access-token", "refresh-token", 0.0)
VERSION = (b"x-supabase-api-version", b"2024-01-01")
FREQUENT = "For security purposes, you can only request this after 37 seconds."

Call = Callable[[AuthPort], Awaitable[object]]


def sms(logins: AuthPort) -> Awaitable[object]:
    return logins.send_code(PHONE)


def mail(logins: AuthPort) -> Awaitable[object]:
    return logins.send_code(EMAIL)


def code(logins: AuthPort) -> Awaitable[object]:
    return logins.verify_code(PHONE, "123456")


def password(logins: AuthPort) -> Awaitable[object]:
    return logins.sign_in_with_password(EMAIL, "secret")


def refresh(logins: AuthPort) -> Awaitable[object]:
    return logins.refresh_session(SESSION)


def identify(logins: AuthPort) -> Awaitable[object]:
    return logins.identify_user("access-token")


class Refusal(NamedTuple):
    call: Call
    status: int
    code: str
    message: str
    kind: type[XiaobaiError]


REFUSALS = [
    # phone.go, mail.go: a minute between two messages to one user, and a limit of messages an hour for the project
    Refusal(sms, 429, "over_sms_send_rate_limit", FREQUENT, RateLimited),
    Refusal(sms, 429, "over_sms_send_rate_limit", "SMS rate limit exceeded", RateLimited),
    Refusal(mail, 429, "over_email_send_rate_limit", FREQUENT, RateLimited),
    Refusal(mail, 429, "over_email_send_rate_limit", "email rate limit exceeded", RateLimited),
    Refusal(code, 429, "over_request_rate_limit", "Request rate limit reached", RateLimited),
    Refusal(refresh, 429, "over_request_rate_limit", "Request rate limit reached", RateLimited),
    # otp.go, signup.go, magic_link.go
    Refusal(sms, 400, "phone_provider_disabled", "Unsupported phone provider", LoginRefused),
    Refusal(mail, 422, "email_provider_disabled", "Email logins are disabled", LoginRefused),
    Refusal(sms, 422, "otp_disabled", "Signups not allowed for otp", LoginRefused),
    Refusal(sms, 422, "signup_disabled", "Signups not allowed for this instance", LoginRefused),
    Refusal(sms, 400, "validation_failed", "Invalid phone number format (E.164 required)", InvalidInput),
    Refusal(mail, 400, "email_address_invalid", 'Email address "x" is invalid', InvalidInput),
    Refusal(mail, 400, "email_address_not_authorized", 'Email address "x" cannot be used', MessageNotSent),
    Refusal(sms, 422, "sms_send_failed", "Error sending confirmation OTP to provider: 21211", MessageNotSent),
    Refusal(sms, 400, "sms_send_failed", "Error sending sms OTP: no credit", MessageNotSent),
    Refusal(mail, 400, "captcha_failed", "captcha protection: request disallowed", LoginRefused),
    Refusal(mail, 500, "unexpected_failure", "Error sending magic link email", CloudUnavailable),
    Refusal(sms, 422, "hook_timeout", "Failed to reach hook within maximum time", CloudUnavailable),
    # verify.go: one code for wrong, expired, used and unknown
    Refusal(code, 403, "otp_expired", "Token has expired or is invalid", CodeRefused),
    Refusal(code, 403, "user_banned", "User is banned", LoginRefused),
    # token.go
    Refusal(password, 400, "invalid_credentials", "Invalid login credentials", BadCredentials),
    Refusal(password, 400, "email_not_confirmed", "Email not confirmed", LoginRefused),
    Refusal(password, 400, "phone_not_confirmed", "Phone not confirmed", LoginRefused),
    Refusal(password, 400, "user_banned", "User is banned", LoginRefused),
    Refusal(password, 422, "phone_provider_disabled", "Phone logins are disabled", LoginRefused),
    # tokens/service.go: all but the last, which is temporary, end the session
    Refusal(refresh, 400, "refresh_token_not_found", "Invalid Refresh Token: Refresh Token Not Found", LoginRequired),
    Refusal(refresh, 400, "refresh_token_already_used", "Invalid Refresh Token: Already Used", LoginRequired),
    Refusal(refresh, 400, "session_not_found", "Invalid Refresh Token: No Valid Session Found", LoginRequired),
    Refusal(refresh, 400, "session_expired", "Invalid Refresh Token: Session Expired", LoginRequired),
    Refusal(refresh, 400, "user_banned", "Invalid Refresh Token: User Banned", LoginRequired),
    Refusal(refresh, 400, "validation_failed", "Invalid Refresh Token: Not Issued By This Server", LoginRequired),
    Refusal(refresh, 409, "conflict", "Too many concurrent token refresh requests", CloudUnavailable),
    # auth.go
    Refusal(identify, 403, "bad_jwt", "invalid JWT: unable to parse or verify signature", LoginRequired),
    Refusal(identify, 403, "session_not_found", "Session from session_id claim in JWT does not exist", LoginRequired),
    Refusal(identify, 403, "user_not_found", "User from sub claim in JWT does not exist", LoginRequired),
    Refusal(identify, 401, "no_authorization", "This endpoint requires a valid Bearer token", LoginRequired),
    # unknown codes
    Refusal(password, 400, "something_new", "Something new", LoginRefused),
    Refusal(password, 422, "something_new", "Something new", LoginRefused),
    Refusal(refresh, 404, "something_new", "Something new", CloudUnavailable),
]


@asynccontextmanager
async def answering(status: int, body: object, *headers: tuple[bytes, bytes]) -> AsyncIterator[AuthPort]:
    """The real client with a server that gives one answer to everything."""

    async def answer(_: Request) -> Response:
        return Response(status, [(b"content-type", b"application/json"), *headers], json.dumps(body).encode())

    door = LoopbackPort(http_handler(answer))
    await door.open()
    cloud = SupabaseCloud(door.url, "sb_publishable_x", timeout=20.0, clock=SystemClock())
    try:
        yield cloud.auth
    finally:
        await cloud.close()
        await door.close()


async def refused(call: Call, status: int, body: object, *headers: tuple[bytes, bytes]) -> XiaobaiError:
    async with answering(status, body, *headers) as logins:
        with pytest.raises(XiaobaiError) as caught:
            await call(logins)
    return caught.value


@pytest.mark.parametrize("row", REFUSALS, ids=lambda row: f"{row.call.__name__}-{row.status}-{row.code}")
async def test_a_refusal_has_its_kind_in_either_form(row: Refusal) -> None:
    errors = [
        await refused(row.call, row.status, {"code": row.code, "message": row.message}, VERSION),
        await refused(row.call, row.status, {"code": row.status, "error_code": row.code, "msg": row.message}),
    ]
    for error in errors:
        assert type(error) is row.kind
        assert error.hint
        assert row.message not in error.message + error.hint, "it may hold a number or an address"
        assert error.retryable == issubclass(row.kind, CloudUnavailable)


@pytest.mark.parametrize(
    ("body", "headers", "seconds"),
    [
        ({"code": "over_sms_send_rate_limit", "message": FREQUENT}, [], 37.0),
        ({"code": 429, "error_code": "over_sms_send_rate_limit", "msg": FREQUENT}, [], 37.0),
        ({"code": "over_sms_send_rate_limit", "message": FREQUENT}, [(b"retry-after", b"90")], 90.0),
        ({"code": "over_sms_send_rate_limit", "message": "SMS rate limit exceeded"}, [], None),
    ],
)
async def test_too_many_messages_carry_the_seconds_to_wait(
    body: object, headers: list[tuple[bytes, bytes]], seconds: float | None
) -> None:
    error = await refused(sms, 429, body, *headers)
    assert isinstance(error, RateLimited)
    assert error.retry_after == seconds
    assert ("a minute" if seconds is None else f"{seconds:.0f} s") in error.hint


@pytest.mark.parametrize(("call", "field"), [(sms, "phone"), (mail, "email")])
async def test_what_the_server_finds_impossible_is_named_by_its_field(call: Call, field: str) -> None:
    error = await refused(call, 400, {"code": "validation_failed", "message": "no"}, VERSION)
    assert isinstance(error, InvalidInput)
    assert error.field == field


@pytest.mark.parametrize(
    ("call", "kind"), [(password, BadCredentials), (refresh, LoginRequired), (identify, LoginRequired)]
)
async def test_a_server_older_than_the_codes_is_understood(call: Call, kind: type[XiaobaiError]) -> None:
    """OAuthError of errors.go."""
    error = await refused(call, 400, {"error": "invalid_grant", "error_description": "Invalid login credentials"})
    assert type(error) is kind


@pytest.mark.parametrize("call", [sms, code, password, refresh, identify])
@pytest.mark.parametrize("body", [{}, {"message": "blocked by a firewall"}])
async def test_a_403_that_is_not_the_login_server_s_ends_no_session(call: Call, body: object) -> None:
    assert type(await refused(call, 403, body)) is CloudUnavailable


@pytest.mark.parametrize("body", [{}, [], None, "", {"access_token": "x"}, {"user": {"id": "user-1"}}])
async def test_an_answer_without_a_session_is_no_login(body: object) -> None:
    for call in (code, password, refresh):
        assert type(await refused(call, 200, body)) is CloudUnavailable
